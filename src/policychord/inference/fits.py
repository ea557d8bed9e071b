"""`fit`: which parameters of a composed agent explain decisions, how sure is that, and is gating needed at all?"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import jax
import numpy as np
from jaxtyping import Float

from .._types import require_float64
from ..agent import Composer
from ..agent.gates import AtEquilibrium
from .comparison import FOLDS, Comparison, Method, folds_of, folds_within, time_blocks
from .comparison import compare as compare_models
from .decisions import (
    CONSTANT,
    By,
    Family,
    Observations,
    composed,
    family_of,
    inner_parameters,
    observed_by,
    rivals,
    weights_of,
)
from .findings import amount, no_verdict
from .groups import GroupFit, empirical_bayes
from .likelihoods import Data, Likelihood, Model, likelihood, pointwise
from .optimise import Optimum, Progress, log_posterior, maximise
from .parameters import FARTHEST, Parameter, Theta, natural, size, slopes, unconstrained
from .uncertainty import LARGEST_EPS, LEAST_MOVEMENT, Interval, Uncertainty, Verdict, uncertainty, verdicts

Held = Literal["auto", "subject", "block", "time"]
Rivals = Callable[[Theta], Sequence[Model]]  # of the estimates: models to compare with, which may begin at these
ENTRIES = 12_000  # numbers of one matrix of primitives times units worked on together: what a cache holds
STOPPED = "Interrupted during {}. {}"
SO_FAR = STOPPED.format("the optimisation", "These are the best estimates so far.")
AGENT = "composed"  # the agent's own name in a comparison
OFF = 0.05  # standard errors from the top that no report shows
FEW = 8  # labels from which there are enough clusters for an error


class Fit(NamedTuple):
    """What a fit found. Numbers on natural scales are in `theta`, `errors` and `intervals`, by parameter."""

    family: Family
    primitives: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    fixed: dict[str, Any]
    method: str
    decisions: int
    theta: dict[str, Any]
    errors: dict[str, Any]  # from the curvature, by the delta method
    robust_errors: dict[str, Any]  # from the sandwich over clusters
    intervals: dict[str, Any]  # profile intervals, (2) or (entries, 2); of a simplex: of its log ratios
    uncertainty: Uncertainty
    verdicts: tuple[Verdict, ...]
    log_likelihood: float
    bic: float
    pointwise: Float[np.ndarray, " N"]
    comparison: Comparison | None  # of the agent and its rivals on held-out decisions
    held_out_by: str  # what the folds keep together
    weights: Float[np.ndarray, "N n"]  # of the primitives, at every decision
    gap: Float[np.ndarray, " N"]  # certificate of the weights: V(w) - V* <= gap
    distance: Float[np.ndarray, " N"]  # certificate: |w - w*|_1 <= distance
    observations: Observations
    optimum: Optimum
    group: GroupFit | None  # with groups: mean, covariance and everybody's estimate
    notes: tuple[str, ...]
    complete: bool = True  # False if Ctrl-C left something out: the notes say what

    @property
    def z(self) -> Float[np.ndarray, " K"]:
        """The estimates on the unconstrained scale; with groups the group's mean."""
        return self.optimum.z if self.group is None else self.group.mean

    @property
    def held_out(self) -> float:
        """Held-out ln p of the agent, in nats per decision; NaN if it was not compared."""
        compared = self.comparison is not None and AGENT in self.comparison.names
        return self.comparison.score(AGENT).held_out if self.comparison and compared else float("nan")


def fit(
    family: Family | Callable[[Theta], Any],
    observations: Observations,
    free: Sequence[Any] | None = None,
    fixed: Theta | None = None,
    *,
    method: Method = "ml",
    starts: int = 8,
    hold_out: Held = "auto",
    compare: bool | Rivals = True,
    profiles: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
    resume: Optimum | None = None,
) -> Fit:
    """Estimate parameters of a family of composed agents from decisions, and judge the estimate.

    - `family`: a `Family`, or a function of theta (natural values by name) that gives a `Composer` or a function of
      (observation, k) to a `Problem`. What does not depend on theta is best made outside of it.
    - `free`: names of the family's parameters, or `Parameter`s; those that the family recommends unless given. `fixed`:
      values of others. Temperature and the cost's scale can hardly be told apart, so families free only one of them.
    - `method`: maximum likelihood (`ml`), with the declared priors (`map`), or `group`: every subject has parameters,
      drawn from a group that is estimated too (empirical Bayes).
    - `hold_out`: what cross-validation keeps together: subjects, blocks, or stretches of time. With `method="group"` it
      is a person's blocks or stretches of time.
    - `compare=False` leaves out the comparison with rivals on held-out decisions; a function of the estimates gives
      models of your own instead of the usual ones. `profiles=False` leaves out the profile intervals.
    - `progress(what, done, total)` is told how far it is. Ctrl-C gives the best so far, with a note on what is missing
      (`complete` is False then); `resume=found.optimum` goes on from there.
    """
    require_float64()
    if not isinstance(observations, Observations):
        raise ValueError(
            f"observations is a {type(observations).__name__}: make them by `inference.from_trace(trace, env)`, "
            "`inference.from_dataset(dataset, env)` or `inference.observations(observation, action)`."
        )
    known, chosen, rest = family_of(family, free, fixed or {})
    _check_request(hold_out, method, chosen)
    setup = setup_of(known, chosen, rest, observations)
    model = composed(known, chosen, rest, setup.by)
    given = likelihood_of_model(model, setup, observations)
    labels, what = _labels(observations, hold_out, method)
    within = method == "group"
    fold = (folds_within(observations.subject, labels) if within else folds_of(labels)) if compare else None
    _check_start(given, observations)
    pooled = "map" if method == "map" else "ml"
    best = maximise(given, starts=starts, method=pooled, seed=seed, progress=progress, resume=resume)
    notes = [] if best.complete else [SO_FAR]
    group = None
    if within and not notes:
        group, notes = _group(given, min(starts, 4), seed, progress)
    best, sure, more = _uncertainty(given, best, pooled, labels, profiles and not notes, progress)
    notes += more
    z, each = (best.z, best.z) if group is None else (group.mean, group.z)
    weights, gap, distance = _path(known, rest, setup, given, each)
    log_p = pointwise(given, each)
    reasons, complete = reasons_of(chosen, best.z, weights), not notes
    if unfinished := _unfinished(given, best, sure, pooled):
        reasons = dict.fromkeys((parameter.name for parameter in chosen), unfinished) | reasons
        notes += [f"Of the likelihood, {unfinished}: try more starts, or free less."] if best.complete else []
    comparison = None
    if compare and fold is not None and complete:
        others: Rivals = partial(_usual_rivals, known, chosen, rest, setup) if compare is True else compare
        data = Data(setup.data, observations.subject, labels)
        comparison, stopped = _compare(model, others, data, fold, best, method, setup.at_once, progress)
        notes, complete = [*notes, *stopped], not stopped
    errors, robust_errors, intervals = _scales(chosen, z, sure, group)
    counts = np.bincount(given.group) if within else np.array([observations.size])
    return Fit(
        family=known,
        primitives=setup.names,
        parameters=chosen,
        fixed={name: np.asarray(value) for name, value in rest.items()},
        method=method,
        decisions=observations.size,
        theta=_theta(chosen, z),
        errors=errors,
        robust_errors=robust_errors,
        intervals=intervals,
        uncertainty=sure,
        verdicts=verdicts(chosen, best.z, sure, reasons),
        log_likelihood=float(log_p.sum()),
        bic=size(chosen) * float(np.log(counts).sum()) - 2 * float(log_p.sum()),
        pointwise=log_p,
        comparison=comparison,
        held_out_by=what,
        weights=weights,
        gap=gap,
        distance=distance,
        observations=observations,
        optimum=best,
        group=group,
        notes=tuple(notes),
        complete=complete,
    )


def _check_request(hold_out: Any, method: Any, free: Sequence[Parameter]) -> None:
    if method not in get_args(Method):
        raise ValueError(f"method = {method!r}: use one of {', '.join(get_args(Method))}.")
    if hold_out not in get_args(Held):
        raise ValueError(f"hold_out = {hold_out!r}: use one of {', '.join(get_args(Held))}.")
    if method == "group" and hold_out == "subject":
        raise ValueError("hold_out = 'subject' with method = 'group': own parameters need own decisions. Use 'block' "
                         "or 'time'.")  # fmt: skip
    if method == "map" and not any(parameter.prior for parameter in free):
        names = ", ".join(parameter.name for parameter in free)
        raise ValueError(f"method = 'map', but {names} has no prior: declare one, such as prior=Normal(0, 1), on z.")


def _check_start(given: Likelihood, seen: Observations) -> None:
    """A decision without a likelihood at the declared values is named: no search would get anywhere."""
    log_p = pointwise(given, unconstrained(given.parameters, {}))
    if np.isfinite(log_p).all():
        return
    row = int(np.flatnonzero(~np.isfinite(log_p))[0])
    leaves = jax.tree_util.tree_leaves_with_path((seen.observation, seen.action))
    names = ("observation", "action")
    odd = [names[path[0].idx] + jax.tree_util.keystr(path[1:]) for path, leaf in leaves
           if leaf.dtype.kind == "f" and not np.isfinite(leaf[row]).all()]  # fmt: skip
    why = f"{', '.join(odd)} of it is not finite" if odd else "the family's problem of it is not finite"
    raise ValueError(
        f"decision {row} has the log-likelihood {log_p[row]} at the declared values: {why}. Leave the decision out, or "
        "correct it."
    )


def _unfinished(given: Likelihood, best: Optimum, sure: Uncertainty, method: str) -> str:
    """Why the estimate may not be at the mode; nothing if it is, or less than OFF standard errors from it."""
    if not best.complete:
        return "the optimisation was interrupted"
    uphill = log_posterior(given, best.z, method).gradient
    uphill = np.where(np.abs(best.z) >= FARTHEST, 0.0, uphill)
    off = float(np.sqrt(uphill @ sure.covariance @ uphill))
    return "" if best.converged or off < OFF else f"the mode was not reached (it is {off:.2g} standard errors away)"


def _uncertainty(
    given: Likelihood, best: Optimum, method: str, labels: np.ndarray, profiles: bool, progress: Progress | None
) -> tuple[Optimum, Uncertainty, list[str]]:
    """(the optimum, its uncertainty, what Ctrl-C left out); a profile may find a higher point than all runs."""
    wanted = None if profiles else ()
    how_sure = partial(uncertainty, given, method=method, clusters=labels, progress=progress)
    sure = how_sure(best.z, profiles=wanted)
    if sure.higher is not None and len(sure.profiled) == size(given.parameters):
        best = _go_on(given, best, sure.higher, method)
        if not best.complete:
            return best, how_sure(best.z, profiles=()), [SO_FAR]
        sure = how_sure(best.z, profiles=wanted)
    if profiles and len(sure.profiled) < len(best.z):
        return best, sure, [STOPPED.format("the profiles", "Intervals without one are from the curvature.")]
    return best, sure, []


def _go_on(given: Likelihood, best: Optimum, z: np.ndarray, method: str) -> Optimum:
    """The optimum after another run, from a point that a profile found to be higher than all runs."""
    higher = maximise(given, starts=z[None], method=method)
    return best._replace(
        z=higher.z, log_posterior=higher.log_posterior, log_likelihood=higher.log_likelihood,
        evaluations=best.evaluations + higher.evaluations, converged=higher.converged, complete=higher.complete,
        paths=(*best.paths, *higher.paths),
    )  # fmt: skip


def _group(given: Likelihood, starts: int, seed: int, progress: Progress | None) -> tuple[GroupFit | None, list[str]]:
    """The group, and what is to be said if Ctrl-C ended it."""
    try:
        group = empirical_bayes(given, starts=starts, seed=seed, progress=progress)
    except KeyboardInterrupt:
        return None, [STOPPED.format("empirical Bayes", "All share these estimates: there is no group yet.")]
    so_far = STOPPED.format("empirical Bayes", f"This is the group after {group.rounds} rounds.")
    return group, [] if group.complete else [so_far]


class _Setup(NamedTuple):
    """What the observations mean for this family."""

    names: tuple[str, ...]
    by: By
    data: dict[str, Any]
    at_once: int
    features: int


def setup_of(family: Family, free: tuple[Parameter, ...], fixed: Theta, seen: Observations) -> _Setup:
    start = {**fixed, **{parameter.name: np.asarray(parameter.start, dtype=float) for parameter in free}}
    agent = family.build(start)
    if isinstance(agent, Composer) and not isinstance(agent.gate, AtEquilibrium):
        raise ValueError(
            f"the family's agents have the gate {type(agent.gate).__name__}: a fit needs gate='equilibrium', whose "
            "weights follow from the observation alone. Constant weights are among the rivals."
        )
    actions = agent.actions if isinstance(agent, Composer) else None
    by, action = observed_by(actions, seen.action)
    data = {"observation": seen.observation, "action": action, "k": seen.k}
    first = jax.tree_util.tree_map(lambda leaf: leaf[0], seen.observation)
    pose = agent.problem if isinstance(agent, Composer) else agent
    shape = jax.eval_shape(pose, first, 0).pi.shape
    names = agent.names if isinstance(agent, Composer) else _names(family, shape[1])
    features = 0
    if family.features is not None:
        values = np.asarray(jax.jit(jax.vmap(family.features))(seen.observation))
        spread = values.std(axis=0)
        data["features"] = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        features = values.shape[1]
    return _Setup(tuple(names), by, data, int(np.clip(ENTRIES * 3 // (shape[0] * shape[1]), 8, 256)), features)


def _names(family: Family, count: int) -> tuple[str, ...]:
    """Of the primitives of bare problems: the labels of the declared prior, or else numbers."""
    labels = next((parameter.labels for parameter in family.parameters if parameter.name == "prior"), ())
    return labels if len(labels) == count else tuple(f"primitive {a}" for a in range(count))


def likelihood_of(fit: Fit) -> Likelihood:
    """The likelihood that was maximised: `log_prob(theta, unit)` for one decision, and the data."""
    setup = setup_of(fit.family, fit.parameters, fit.fixed, fit.observations)
    return likelihood_of_model(composed(fit.family, fit.parameters, fit.fixed, setup.by), setup, fit.observations)


def likelihood_of_model(model: Model, setup: _Setup, seen: Observations) -> Likelihood:
    return likelihood(model, setup.data, groups=seen.subject, at_once=setup.at_once)


def _labels(seen: Observations, hold_out: Held, method: str) -> tuple[np.ndarray, str]:
    """Which decisions belong together, for folds and for errors. A person's own parameters are tested on blocks."""
    subjects = np.unique(seen.subject, return_inverse=True)[1].reshape(-1)
    blocks = np.unique(np.stack([subjects, np.unique(seen.block, return_inverse=True)[1].reshape(-1)]), axis=1,
                       return_inverse=True)[1].reshape(-1)  # fmt: skip
    if method == "group":
        several = all(len(np.unique(blocks[subjects == s])) > 1 for s in np.unique(subjects))
        if hold_out == "block" and not several:
            raise ValueError("hold_out = 'block', but somebody has one block only: use 'time'.")
        by_block = several and hold_out != "time"
        return (blocks, "block") if by_block else (time_blocks(subjects, seen.k), "time")
    if hold_out == "subject" or (hold_out == "auto" and subjects.max() + 1 >= FEW):
        return subjects, "subject"
    if hold_out == "block" or (hold_out == "auto" and blocks.max() + 1 >= FEW):
        return blocks, "block"
    return time_blocks(subjects, seen.k, 2 * FOLDS), "time"


def _path(family: Family, fixed: Theta, setup: _Setup, given: Likelihood, z: np.ndarray) -> tuple[np.ndarray, ...]:
    """Weights of all decisions with their certificates, at natural parameters of each."""
    weigh = weights_of(family, fixed, setup.by)

    def weigh_at(row: tuple[Any, Any]) -> Any:
        return weigh(natural(given.parameters, row[0]), row[1])

    program = jax.jit(lambda z, data: jax.lax.map(weigh_at, (z, data), batch_size=setup.at_once))
    rows = np.broadcast_to(z, (given.units, z.shape[-1])) if z.ndim == 1 else z[given.group]
    length = max(setup.at_once * 16, 1)
    parts = []
    for begin in range(0, given.units, length):
        here = np.minimum(np.arange(begin, begin + length), given.units - 1)
        weighed = program(rows[here], jax.tree_util.tree_map(lambda leaf, here=here: leaf[here], given.data))
        parts.append([np.asarray(a)[: given.units - begin] for a in weighed])
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def reasons_of(parameters: Sequence[Parameter], z: np.ndarray, weights: np.ndarray | None = None) -> dict[str, str]:
    """What the agent itself says about which parameters cannot be known."""
    theta, reasons = _theta(parameters, z), {}
    eps = theta.get("eps")
    if eps is not None and np.ndim(eps) == 0 and eps > LARGEST_EPS:
        reasons["eps"] = f"above {LARGEST_EPS:g} the weights stay at the prior, whatever the temperature"
    if weights is not None and weights.std(axis=0).max() < LEAST_MOVEMENT:
        still = f"the weights hardly move (sd below {LEAST_MOVEMENT:g})"
        reasons |= {name: still for name in ("eps",) if name in theta and name not in reasons}
    return reasons


def _theta(parameters: Sequence[Parameter], z: np.ndarray) -> dict[str, Any]:
    return {name: np.asarray(value) for name, value in natural(parameters, z).items()}


def _scales(
    parameters: Sequence[Parameter], z: np.ndarray, sure: Uncertainty, group: GroupFit | None
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Errors and intervals on natural scales. With groups the error of the group's mean."""
    jacobian, at, intervals = slopes(parameters, z), 0, {}
    covariance = sure.covariance if group is None else np.diag(group.error**2)
    robust = sure.sandwich if group is None else np.full_like(covariance, np.nan)
    ends = sure.intervals if group is None else tuple(
        Interval(a - 1.96 * e, a + 1.96 * e) for a, e in zip(group.mean, group.error, strict=True)
    )  # fmt: skip

    def errors(matrix: np.ndarray) -> dict[str, Any]:
        by_name = {}
        for parameter in parameters:
            rows = jacobian[parameter.name].reshape(-1, len(z))
            sd = np.sqrt(np.einsum("ei,ij,ej->e", rows, matrix, rows))
            by_name[parameter.name] = sd if parameter.labels else sd[0]
        return by_name

    for parameter in parameters:
        part = np.array(ends[at : at + parameter.free])
        if parameter.transform != "simplex":
            low, high = (natural([parameter], np.clip(part[:, side], -700, 700)) for side in (0, 1))
            both = np.stack(
                [np.atleast_1d(np.asarray(low[parameter.name])), np.atleast_1d(np.asarray(high[parameter.name]))], -1
            )
            if parameter.transform == "real":
                both = np.where(np.isinf(part), part, both)
            part = np.where(np.isinf(part) & (parameter.transform == "positive"), np.where(part > 0, np.inf, 0.0), both)
        intervals[parameter.name] = part if parameter.labels else part[0]
        at += parameter.free
    return errors(covariance), errors(robust), intervals


# -------------------------------------------------------------------------------------------------- rivals


def _usual_rivals(
    family: Family, free: tuple[Parameter, ...], fixed: Theta, setup: _Setup, theta: Theta
) -> Sequence[Model]:
    """The rivals of a composed agent; searches of their estimates begin at those of the agent."""
    begun = tuple(
        parameter._replace(start=theta[parameter.name] if parameter.labels else float(theta[parameter.name]))
        for parameter in free
    )
    inner = inner_parameters(family, begun, fixed, setup.by, setup.data)
    return rivals(family, begun, inner, fixed, setup.by, setup.names, setup.features)


def _compare(
    model: Model,
    others: Rivals,
    data: Data,
    fold: np.ndarray,
    best: Optimum,
    method: Method,
    at_once: int,
    progress: Progress | None,
) -> tuple[Comparison | None, list[str]]:
    """The agent and other models on the same folds, and a note if Ctrl-C ended it."""
    models = [model, *others(_theta(model.parameters, best.z))]
    own = method == "group"
    try:
        comparison = compare_models(
            models, data, own=own, fold=fold, clusters=data.subject if own else data.block, method=method,
            begin={model.name: best.z[None]}, at_once=at_once, partial=True, progress=progress,
        )  # fmt: skip
    except KeyboardInterrupt:
        return None, [STOPPED.format("the comparison", "No model is done.")]
    if comparison.missing:
        done = f"{len(comparison.scores)} of {len(models)} models are done."
        return comparison, [STOPPED.format("the comparison", done)]
    return comparison, []


def sentence_of(fit: Fit) -> str:
    """Whether state-dependent weights are needed, from held-out scores and the weights' movement."""
    comparison = fit.comparison
    if comparison is None or not {AGENT, CONSTANT} <= set(comparison.names):
        return "Gating was not compared with constant weights."
    if lost := no_verdict(comparison):
        return f"{lost} (Held out by {fit.held_out_by}.)"
    gain, moved = comparison.difference(AGENT, CONSTANT), float(fit.weights.std(axis=0).max())
    if moved < LEAST_MOVEMENT:
        return (
            f"The weights hardly move (sd {moved:.4f}), so what the composed agent adds over constant weights "
            f"({amount(gain)}) is not gating: constant weights do."
        )
    words = {
        "better": f"State-dependent gating adds {amount(gain)} over constant weights: it is needed here.",
        "not established": f"State-dependent gating adds {amount(gain)} over constant weights: it is not needed here.",
        "worse": f"State-dependent gating predicts worse than constant weights ({amount(gain)}): it is the wrong model "
        "here.",
    }[gain.call]
    best = next(name for name in comparison.names if name != CONSTANT)
    if best != AGENT and (ahead := comparison.difference(best, AGENT)).call == "better":
        words += f" {best.capitalize()} predicts better, by {amount(ahead)}."
    return f"{words} (Held out by {fit.held_out_by}.)"
