"""`fit`: which parameters of a composed agent explain decisions, how sure is that, and is gating needed at all?"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import jax
import numpy as np
from jaxtyping import Float

from .._types import require_float64
from ..core.equilibrium import solve
from .comparison import FOLDS, Comparison, Method, folds_of, folds_within, time_blocks
from .comparison import compare as compare_models
from .decisions import AGENT, TOL, Family, Observations, Setup, composed, likelihood_of_setup, rivals, setup_of
from .groups import GroupFit, empirical_bayes
from .likelihoods import Data, Likelihood, Model, by_unit, in_chunks, pointwise
from .optimise import Optimum, Progress, log_posterior, maximise
from .parameters import FARTHEST, Parameter, Theta, errors_of, intervals_of, natural, size, unconstrained
from .uncertainty import LARGEST_EPS, LEAST_MOVEMENT, Uncertainty, Verdict, uncertainty, verdicts

Held = Literal["auto", "subject", "block", "time"]
Rivals = Callable[[Theta], Sequence[Model]]  # of the estimates: models to compare with, which may begin at these
STOPPED = "Interrupted during {}. {}"
SO_FAR = STOPPED.format("the optimisation", "These are the best estimates so far.")
OFF = 0.05  # standard errors from the top that no report shows
FEW = 8  # labels from which there are enough clusters for an error


class Fit(NamedTuple):
    """What a fit found. Numbers on natural scales are in `theta`, `errors` and `intervals`, by parameter."""

    family: Family
    primitives: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    fixed: dict[str, Any]
    method: str
    uncertainty: Uncertainty  # of the estimate that all share
    verdicts: tuple[Verdict, ...]
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
    def decisions(self) -> int:
        """How many there are."""
        return self.observations.size

    @property
    def z(self) -> Float[np.ndarray, " K"]:
        """The estimates on the unconstrained scale; with groups the group's mean."""
        return self.optimum.z if self.group is None else self.group.mean

    @property
    def covariance(self) -> Float[np.ndarray, "K K"]:
        """Of z: the inverse curvature; with groups that of the group's mean."""
        return self.uncertainty.covariance if self.group is None else np.diag(self.group.error**2)

    @property
    def theta(self) -> dict[str, Any]:
        """The estimates on natural scales."""
        return _theta(self.parameters, self.z)

    @property
    def errors(self) -> dict[str, Any]:
        """Standard errors from the curvature, by the delta method."""
        return errors_of(self.parameters, self.z, self.covariance)

    @property
    def robust_errors(self) -> dict[str, Any]:
        """Standard errors from the sandwich over clusters; NaN with groups."""
        unknown = np.full_like(self.covariance, np.nan)
        return errors_of(self.parameters, self.z, self.uncertainty.sandwich if self.group is None else unknown)

    @property
    def intervals(self) -> dict[str, Any]:
        """Profile intervals, (2) or (entries, 2); of a simplex: of its log ratios. With groups of the group's mean."""
        ends = self.uncertainty.intervals
        if self.group is not None:
            ends = self.group.mean[:, None] + 1.96 * self.group.error[:, None] * [-1.0, 1.0]
        return intervals_of(self.parameters, ends)

    @property
    def log_likelihood(self) -> float:
        """ln p of all decisions."""
        return float(self.pointwise.sum())

    @property
    def bic(self) -> float:
        """K ln N - 2 ln p; with groups the sum over people, who have parameters of their own."""
        people = self.observations.subject if self.method == "group" else np.zeros(self.decisions)
        counts = np.unique(people, return_counts=True)[1]
        return size(self.parameters) * float(np.log(counts).sum()) - 2 * self.log_likelihood

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
      values of others. Temperature and the cost's scale can hardly be distinguished, so families free only one of them.
    - `method`: maximum likelihood (`ml`), with the declared priors (`map`), or `group`: every subject has parameters,
      drawn from a group that is estimated too (empirical Bayes).
    - `hold_out`: what cross-validation keeps together: subjects, blocks, or stretches of time. With `method="group"` it
      is a person's blocks or stretches of time.
    - `compare=False` leaves out the comparison with rivals on held-out decisions; a function of the estimates gives
      models of your own instead of the usual ones. `profiles=False` leaves out the profile intervals.
    - `progress(what, done, total)` is called on the way. Ctrl-C gives the best so far, with a note on what is missing
      (`complete` is False then); `resume=found.optimum` goes on from there.
    """
    require_float64()
    if not isinstance(observations, Observations):
        raise ValueError(
            f"observations is a {type(observations).__name__}: make them by `inference.from_trace(trace, env)`, "
            "`inference.from_dataset(dataset, env)` or `inference.observations(observation, action)`."
        )
    setup = setup_of(family, observations, free, fixed)
    _check_request(hold_out, method, setup.parameters)
    given = likelihood_of_setup(setup)
    labels, held_out_by = _labels(observations, hold_out, method)
    own = method == "group"
    fold = (folds_within(observations.subject, labels) if own else folds_of(labels)) if compare else None
    _check_start(given, observations)
    pooled = "map" if method == "map" else "ml"
    best = maximise(given, starts=starts, method=pooled, seed=seed, progress=progress, resume=resume)
    notes = [] if best.complete else [SO_FAR]
    group = None
    if own and not notes:
        group, notes = _group(given, min(starts, 4), seed, progress)
    best, sure, more = _uncertainty(given, best, pooled, labels, profiles and not notes, progress)
    notes += more
    each = best.z if group is None else group.z
    weights, gap, distance = _path(setup, given, each)
    reasons, complete = reasons_of(setup.parameters, best.z, weights), not notes
    if unfinished := _unfinished(given, best, sure, pooled):
        reasons = dict.fromkeys((parameter.name for parameter in setup.parameters), unfinished) | reasons
        notes += [f"Of the likelihood, {unfinished}: try more starts, or free less."] if best.complete else []
    comparison = None
    if fold is not None and complete:
        others: Rivals = partial(rivals, setup) if compare is True else compare  # type: ignore[assignment]
        models = [composed(setup), *others(_theta(setup.parameters, best.z))]
        data = Data(setup.units, observations.subject, labels)
        comparison, stopped = _compare(models, data, fold, best, method, setup.at_once, progress)
        notes, complete = [*notes, *stopped], not stopped
    return Fit(
        family=setup.family,
        primitives=setup.primitives,
        parameters=setup.parameters,
        fixed={name: np.asarray(value) for name, value in setup.fixed.items()},
        method=method,
        uncertainty=sure,
        verdicts=verdicts(setup.parameters, best.z, sure, reasons),
        pointwise=pointwise(given, each),
        comparison=comparison,
        held_out_by=held_out_by,
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
    _, uphill = log_posterior(given, best.z, method)
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
    """The group, and a note if Ctrl-C ended it."""
    try:
        group = empirical_bayes(given, starts=starts, seed=seed, progress=progress)
    except KeyboardInterrupt:
        return None, [STOPPED.format("empirical Bayes", "All share these estimates: there is no group yet.")]
    so_far = STOPPED.format("empirical Bayes", f"This is the group after {group.rounds} rounds.")
    return group, [] if group.complete else [so_far]


def likelihood_of(fit: Fit) -> Likelihood:
    """The likelihood that was maximised: `log_prob(theta, unit)` for one decision, and the data."""
    return likelihood_of_setup(setup_of(fit.family, fit.observations, fit.parameters, fit.fixed))


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


def _path(setup: Setup, given: Likelihood, z: np.ndarray) -> tuple[np.ndarray, ...]:
    """Weights of all decisions with their certificates, at natural parameters of each."""

    def weigh(row: tuple[Any, Any]) -> Any:
        equilibrium = solve(setup.choice(natural(given.parameters, row[0]), row[1]).problem, tol=TOL)
        return equilibrium.weights, equilibrium.certificate.gap, equilibrium.certificate.distance

    program = jax.jit(lambda rows: jax.lax.map(weigh, rows, batch_size=setup.at_once))
    path: tuple[np.ndarray, ...] = in_chunks(program, (by_unit(given, z), given.data), setup.at_once * 16)
    return path


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


def _compare(
    models: Sequence[Model],
    data: Data,
    fold: np.ndarray,
    best: Optimum,
    method: Method,
    at_once: int,
    progress: Progress | None,
) -> tuple[Comparison | None, list[str]]:
    """The agent and other models on the same folds, and a note if Ctrl-C ended it."""
    own = method == "group"
    try:
        comparison = compare_models(
            models, data, own=own, fold=fold, clusters=data.subject if own else data.block, method=method,
            begin={AGENT: best.z[None]}, at_once=at_once, partial=True, progress=progress,
        )  # fmt: skip
    except KeyboardInterrupt:
        return None, [STOPPED.format("the comparison", "No model is done.")]
    if comparison.missing:
        done = f"{len(comparison.scores)} of {len(models)} models are done."
        return comparison, [STOPPED.format("the comparison", done)]
    return comparison, []
