"""Models of choice as data, and `fit`: from choices with beliefs to coefficients, likelihood and evidence.

A model takes the utilities of a classic model (the reference) to probabilities q of the arms. It may have a learner of
its own, stickiness (a bonus for the arm taken last) and a lapse rate. A composed model mixes primitives so that they
come close to q; a floored one keeps q away from zero without any primitive.

A new model is a `ChoiceModel`. The features and primitives that it is made of are lines in the tables of `schemas.py`,
what people learn by in `learners.py`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Literal, NamedTuple, get_args

import jax
import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr, log_softmax

from .._types import Array, ArrayLike
from ..core.equilibrium import ConvergenceError, solve
from ..core.objective import problem
from .beliefs import Trials, relearn, take
from .glm import Engine, Link, fit_choices, log_choice_prob, log_choice_slope
from .learners import AbstractLearner
from .schemas import FEATURES, PAPER, OfTrials, Schemas, columns, features, schemas_by_name

# ||w - w*||_1 <= sqrt(2 gap/eps), so a gap of 1e-22 places every weight to 1e-9 or better at eps = 1e-3 and above
GAP = 1e-22
# where rounding does not allow as much: very cold, or very sure; the certificate says what was reached
PLAIN_GAP = 1e-12
LEAST = 1e-300  # no choice is impossible, only unheard of (as in `models.Reference`)
FLOOR = 0.01  # that of the exploitation primitive
Floor = Literal["clip", "lapse", "hull"]
# Where to look for the coefficients of the own likelihood: shares of the reference's, and climbs from the best of them.
_SHARES = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0)
_CLIMBS = 6


class Mixture(NamedTuple):
    """Primitives that are mixed at every trial, at temperature `eps`."""

    primitives: Mapping[str, OfTrials]
    eps: float
    prior: ArrayLike | None = None
    own: bool = False  # coefficients maximise the mixture's own likelihood, not the reference's


class ChoiceModel(NamedTuple):
    """A model with coefficients for each person, or with `pooled` the same for all. See `classic`, `composed`, ..."""

    reference: str | OfTrials  # the classic model whose coefficients these are, or a function with ln q of every arm
    link: Link
    change: Mixture | Floor | None  # what becomes of the reference's probabilities
    parameters: int  # counted by BIC and AIC
    pooled: bool = False
    learner: AbstractLearner | None = None  # None: the beliefs that stand in the trials
    stickiness: bool = False  # one more coefficient: what the arm taken last has more
    lapse: bool = False  # one more: how often any arm is drawn


class Fitted(NamedTuple):
    """What a fit found. Arrays have a row for each subject; `coef` has one row in all if the fit is pooled."""

    reference: str
    parameters: int
    pooled: bool
    subjects: np.ndarray
    coef: np.ndarray  # (subjects, coefficients)
    separated: np.ndarray  # no finite coefficients fit best, so that a weak prior had to hold them
    log_likelihood: np.ndarray
    bic: np.ndarray
    aic: np.ndarray
    log_evidence: np.ndarray  # -bic/2
    names: tuple[str, ...] = ()  # of the coefficients
    error: np.ndarray | None = None  # (subjects, coefficients) standard errors, from the curvature
    low: np.ndarray | None = None  # their intervals of 95 %
    high: np.ndarray | None = None


class Composition(NamedTuple):
    """Weights of the primitives at every trial and the policy they make."""

    weights: np.ndarray  # (trials, primitives)
    log_prob: np.ndarray  # (trials, arms)
    distance: np.ndarray  # (trials) certificate: |w - w*|_1 is at most this


# ------------------------------------------------------------------------------------------ models


def classic(
    name: str = "Hybrid",
    link: Link = "probit",
    *,
    learner: AbstractLearner | None = None,
    stickiness: bool = False,
    lapse: bool = False,
    pooled: bool = False,
) -> ChoiceModel:
    """UCB, Thompson, Hybrid or Value: p(arm) from a weighted sum of features, by probit or logit.

    `learner` makes its own beliefs (with parameters of each person, where it has `free` ones); `stickiness` and `lapse`
    add a coefficient each.
    """
    if name not in FEATURES:
        raise ValueError(f"name = {name!r}: the classic models are {', '.join(FEATURES)}.")
    model = ChoiceModel(name, link, None, 0, pooled, learner, stickiness, lapse)
    return model._replace(parameters=len(names_of(model)))


def composed(
    primitives: Schemas = tuple(PAPER),
    reference: "str | ChoiceModel | OfTrials" = "Hybrid",
    link: Link = "probit",
    *,
    eps: float = 0.01,
    prior: ArrayLike | None = None,
    coefficients: Literal["reference", "own"] = "reference",
    parameters: int | None = None,
    pooled: bool = False,
) -> ChoiceModel:
    """Primitives mixed at every trial so that they come close to a reference.

    The reference is a classic model by name, any other model, or a function of `Trials` that gives ln q of every arm
    (its link, learner and coefficients are then its own). `coefficients="reference"` are those that fit the reference
    best, as in the paper; `"own"` maximise this model's own likelihood. `parameters` are the reference's unless counted
    otherwise. `primitives`: names, or a dict of names to functions of `Trials`.
    """
    if coefficients not in ("reference", "own"):
        raise ValueError(f"coefficients = {coefficients!r}: use 'reference' or 'own'.")
    if isinstance(reference, ChoiceModel):
        base = reference
    elif isinstance(reference, str):
        base = classic(reference, link, pooled=pooled)
    else:
        base = ChoiceModel(reference, link, None, 0, pooled)
    if base.change is not None or (coefficients == "own" and not is_regression(base)):
        raise ValueError(
            f"reference = {_name_of(base)} is changed already, or has no coefficients of a regression: compose a plain "
            "model, with coefficients='reference'."
        )
    mixture = Mixture(schemas_by_name(primitives), eps, prior, coefficients == "own")
    return base._replace(change=mixture, parameters=base.parameters if parameters is None else parameters)


def names_of(model: ChoiceModel) -> tuple[str, ...]:
    """The coefficients in their order: the learner's, those of the features, stickiness, lapse."""
    own = () if model.learner is None else model.learner.free
    weighed = tuple(FEATURES[model.reference]) if isinstance(model.reference, str) else ()
    return (*own, *weighed, *(("stickiness",) if model.stickiness else ()), *(("lapse",) if model.lapse else ()))


def _name_of(model: ChoiceModel) -> str:
    """The reference's name."""
    return model.reference if isinstance(model.reference, str) else getattr(model.reference, "__name__", "function")


def is_regression(model: ChoiceModel) -> bool:
    """Whether its coefficients multiply features that are known, so that a regression finds them."""
    learns = model.learner is not None and bool(model.learner.free)
    return (
        isinstance(model.reference, str) and bool(names_of(model)) and not (learns or model.stickiness or model.lapse)
    )


def _floored(rule: Floor, reference: str = "Hybrid", link: Link = "probit", *, pooled: bool = False) -> ChoiceModel:
    """The reference with a floor under its probabilities and no primitive to choose from: what a floor alone gives."""
    if rule not in get_args(Floor):
        raise ValueError(f"rule = {rule!r}: use one of {', '.join(get_args(Floor))}.")
    return classic(reference, link, pooled=pooled)._replace(change=rule)


# --------------------------------------------------------------------------------------- policies


def log_proba(model: ChoiceModel, trials: Trials, coef: np.ndarray) -> np.ndarray:
    """ln p of every arm at every trial, (trials, arms); `coef` has a row for each trial (see `coefficients_of`)."""
    if isinstance(model.change, Mixture):
        return weigh(model, trials, coef).log_prob
    log_q = _reference(model, trials, coef)
    return log_q if model.change is None else FLOORS[model.change](log_q, trials)


def weigh(model: ChoiceModel, trials: Trials, coef: np.ndarray) -> Composition:
    """Weights and policy of a composed model at every trial, all solved as one batch."""
    mixture = model.change
    if not isinstance(mixture, Mixture):
        raise ValueError(f"model is the {_name_of(model)} without primitives: only a composed model has weights.")
    log_q = _reference(model, trials, coef)
    return compose(columns(mixture.primitives, believed(model, trials, coef)), log_q, mixture.eps, mixture.prior)


def believed(model: ChoiceModel, trials: Trials, coef: np.ndarray) -> Trials:
    """The trials with the beliefs of the model's own learner, if it has one; `coef` has a row for each trial."""
    if model.learner is None:
        return trials
    return relearn(trials, model.learner, {name: coef[:, k, None] for k, name in enumerate(model.learner.free)})


def _reference(model: ChoiceModel, trials: Trials, coef: np.ndarray) -> np.ndarray:
    """ln q of every arm; an arm that is not on offer has none."""
    seen = believed(model, trials, coef)
    if not isinstance(model.reference, str):
        log_q = np.asarray(model.reference(seen), dtype=float)
        if log_q.shape != trials.mean.shape:
            raise ValueError(
                f"the reference {_name_of(model)!r} answered with shape {log_q.shape}: ln q for each of the "
                f"{len(trials.choice)} trials and {trials.arms} arms was expected."
            )
        return log_softmax(log_q if trials.offered is None else np.where(trials.offered, log_q, -np.inf), axis=1)
    if is_regression(model) and trials.offered is None:
        return log_choice_prob(features(model.reference, seen), coef, model.link)
    given = dict(zip(names_of(model), np.asarray(coef, dtype=float).T, strict=True))
    x = features(model.reference, seen)
    utility = sum(
        (given[name][:, None] * x[..., k] for k, name in enumerate(FEATURES[model.reference])), 0.0 * seen.mean
    )
    if model.stickiness:
        again = np.arange(trials.arms) == trials.previous[:, None]
        utility = utility + np.where(again, given["stickiness"][:, None], 0.0)
    if model.link == "probit":
        if trials.arms != 2 or trials.offered is not None:
            raise ValueError("link = 'probit' with more than two arms or with choice sets: use link='logit'.")
        z = utility[:, 0] - utility[:, 1]
        log_q = log_ndtr(np.stack([z, -z], axis=1))
    else:
        log_q = log_softmax(utility if trials.offered is None else np.where(trials.offered, utility, -np.inf), axis=1)
    if not model.lapse:
        return log_q
    rate = given["lapse"][:, None]
    return np.log((1.0 - rate) * np.exp(log_q) + rate * _evenly(trials))


def _evenly(trials: Trials) -> np.ndarray:
    """The same probability for every arm on offer, (trials, arms)."""
    offered = np.ones_like(trials.mean) if trials.offered is None else trials.offered.astype(float)
    return offered / offered.sum(1, keepdims=True)


def compose(pi: np.ndarray, log_q: np.ndarray, eps: float, prior: ArrayLike | None = None) -> Composition:
    """min_w KL(Pi w, q) + eps KL(w, prior) for every trial. State terms cancel (q(x|.) = p(x|.)), so s = -ln q.

    The batch form of a `Composer` with a `Reference` that `replay` walks through: the same weights, without a loop.
    """
    problems = problem(pi=pi, action_cost=-np.maximum(log_q, np.log(LEAST)), eps=eps, prior=prior)
    try:
        best = solve(problems, tol=GAP)
    except ConvergenceError:
        best = solve(problems, tol=PLAIN_GAP)
    weights, distance = np.asarray(best.weights), np.asarray(best.certificate.distance)
    # Both arms by the same sum, never as 1 - p: a primitive that excludes an arm leaves it to the others.
    prob = np.einsum("tan,tn->ta", pi, weights)
    return Composition(weights, np.log(np.maximum(prob, LEAST)), distance)


def _slope(
    pi: np.ndarray,
    log_q: np.ndarray,
    found: Composition,
    choice: np.ndarray,
    eps: float,
    prior: ArrayLike | None = None,
) -> np.ndarray:
    """d ln p(choice) / d ln q, (trials, arms), by the solver's own derivative at the weights that were found."""
    row = np.arange(len(choice))
    towards = pi[row, choice] / np.exp(found.log_prob[row, choice, None])  # d ln p(choice) / d w
    cost = -np.maximum(log_q, np.log(LEAST))
    uniform = np.full(pi.shape[-1], 1.0 / pi.shape[-1])
    with jax.enable_x64(True):
        return -np.asarray(_pull(pi, cost, eps, uniform if prior is None else prior, found.weights, towards))


@jax.jit
def _pull(*given: jax.Array) -> jax.Array:
    pi, cost, eps, prior, weights, towards = given

    def best(cost: jax.Array) -> Array:
        return solve(problem(pi=pi, action_cost=cost, eps=eps, prior=prior), tol=PLAIN_GAP, start=weights).weights

    return jax.vjp(best, cost)[1](towards)[0]


def _clip(log_q: np.ndarray, trials: Trials) -> np.ndarray:
    """q kept within [.01, .99]; with more arms, raised to .01 and normalised."""
    prob = np.clip(np.exp(log_q), FLOOR, 1 - FLOOR)
    return np.log(prob / prob.sum(1, keepdims=True))


def _lapse(log_q: np.ndarray, trials: Trials) -> np.ndarray:
    """.98 q + .01 for two arms: in one trial of fifty an arm is drawn blindly."""
    return np.log((1 - FLOOR * trials.arms) * np.exp(log_q) + FLOOR)


def _hull(log_q: np.ndarray, trials: Trials) -> np.ndarray:
    """q kept between the most extreme of the paper's primitives (two arms): what any mixture of them can reach."""
    if trials.arms != 2:
        raise ValueError(f"rule = 'hull' with {trials.arms} arms: it is there for two; use 'clip' or 'lapse'.")
    pi = columns(PAPER, trials)
    return np.log(np.maximum(np.clip(np.exp(log_q), pi.min(-1), pi.max(-1)), LEAST))


FLOORS: Mapping[str, Callable[[np.ndarray, Trials], np.ndarray]] = {"clip": _clip, "lapse": _lapse, "hull": _hull}


# -------------------------------------------------------------------------------------------- fits


def fit(model: ChoiceModel, trials: Trials, *, engine: Engine = "statsmodels") -> Fitted:
    """Estimate the coefficients, person by person. `engine="scoring"` is the same regression, and faster.

    Models that are no regression (a learner with free parameters, stickiness, a lapse, choice sets) climb their
    likelihood from several starts, everybody at once (`estimate`).
    """
    if not isinstance(model.reference, str):
        people = 1 if model.pooled else len(np.unique(trials.subject))
        return evaluate(model, trials, np.zeros((people, 0)), np.zeros(people, dtype=bool))
    if not is_regression(model) or trials.offered is not None:
        from .estimate import climb  # compiles, and only these models need it

        return climb(model, trials)
    seen = believed(model, trials, np.zeros((len(trials.choice), 0)))
    x = features(model.reference, seen)
    rows_of = [np.arange(len(trials.choice))] if model.pooled else _by_subject(trials.subject)
    groups = [rows[trials.counts[rows]] for rows in rows_of]
    fits = [fit_choices(x[rows], trials.choice[rows], model.link, engine=engine) for rows in groups]
    coef = np.stack([one.coef for one in fits])
    separated = np.array([one.separated for one in fits])
    if isinstance(model.change, Mixture) and model.change.own:
        ascend = partial(_climb, model, model.change)
        coef = np.stack([ascend(start, take(seen, rows)) for start, rows in zip(coef, groups, strict=True)])
        return evaluate(model, trials, coef, separated)
    error = np.stack([_errors(x[rows], one, model.link) for rows, one in zip(groups, coef, strict=True)])
    error[separated] = np.nan
    return evaluate(model, trials, coef, separated, error)


def _errors(x: np.ndarray, coef: np.ndarray, link: Link) -> np.ndarray:
    """Standard errors of regression coefficients, from the expected information sum_t E[slope slope^T]."""
    slope = log_choice_slope(x, coef, link)
    prob = np.exp(log_choice_prob(x, coef, link))[..., None]
    information = np.einsum("tof,tog->fg", np.where(prob > 0, prob * slope, 0.0), slope)
    return np.sqrt(np.maximum(np.diag(np.linalg.pinv(information)), 0.0))


def evaluate(
    model: ChoiceModel,
    trials: Trials,
    coef: np.ndarray,
    separated: np.ndarray,
    error: np.ndarray | None = None,
    interval: tuple[np.ndarray, np.ndarray] | None = None,
) -> Fitted:
    """Likelihood and evidence of every subject with coefficients that are known, (subjects, coefficients).

    Trials that are not scored count nowhere. The interval is coef +- 1.96 errors unless given.
    """
    subjects = np.unique(trials.subject)
    none = np.zeros(len(subjects))
    if error is not None and interval is None:
        interval = coef - 1.96 * error, coef + 1.96 * error
    found = Fitted(_name_of(model), model.parameters, model.pooled, subjects, coef, separated, none, none, none, none,
                   names_of(model), error, *(interval or (None, None)))  # fmt: skip
    log_p = np.where(trials.counts, _log_p(model, found, trials), 0.0)
    rows_of = _by_subject(trials.subject)
    total = np.array([log_p[rows].sum() for rows in rows_of])
    counts = np.array([trials.counts[rows].sum() for rows in rows_of])
    bic, aic = model.parameters * np.log(counts) - 2 * total, 2 * model.parameters - 2 * total
    return found._replace(log_likelihood=total, bic=bic, aic=aic, log_evidence=-bic / 2)


def coefficients_of(found: Fitted, trials: Trials) -> np.ndarray:
    """The coefficients of whoever made each choice, (trials, coefficients)."""
    if found.pooled:
        return np.broadcast_to(found.coef[0], (len(trials.choice), found.coef.shape[1]))
    at = np.minimum(np.searchsorted(found.subjects, trials.subject), len(found.subjects) - 1)
    if (unknown := found.subjects[at] != trials.subject).any():
        raise ValueError(
            f"subject {trials.subject[unknown][0]} was not among those fitted: fit with pooled=True to predict "
            "people who were not."
        )
    return found.coef[at]


def _predict_proba(model: ChoiceModel, found: Fitted, trials: Trials) -> np.ndarray:
    """The probability of every arm, (trials, arms)."""
    return np.exp(log_proba(model, trials, coefficients_of(found, trials)))


def _score(model: ChoiceModel, found: Fitted, trials: Trials) -> float:
    """The mean of ln p(choice) over the trials that are scored."""
    return float(_log_p(model, found, trials)[trials.counts].mean())


def _log_p(model: ChoiceModel, found: Fitted, trials: Trials) -> np.ndarray:
    log_prob = log_proba(model, trials, coefficients_of(found, trials))
    return log_prob[np.arange(len(trials.choice)), trials.choice]


def _climb(model: ChoiceModel, mixture: Mixture, start: np.ndarray, trials: Trials) -> np.ndarray:
    """The best of several climbs: the likelihood has hills, and plains where the policy is at its border."""
    pi, x = columns(mixture.primitives, trials), features(str(model.reference), trials)
    row = np.arange(len(trials.choice))
    how = mixture.eps, mixture.prior

    def loss(coef: np.ndarray) -> tuple[float, np.ndarray]:
        log_q = log_choice_prob(x, coef, model.link)
        policy = compose(pi, log_q, *how)
        towards_q = _slope(pi, log_q, policy, trials.choice, *how)
        gradient = np.einsum("ta,taf->f", towards_q, log_choice_slope(x, coef, model.link))
        return -policy.log_prob[row, trials.choice].sum(), -gradient

    candidates = np.stack([start * share for share in product(_SHARES, repeat=len(start))])
    log_q = np.concatenate([log_choice_prob(x, coef, model.link) for coef in candidates])
    tried = compose(np.tile(pi, (len(candidates), 1, 1)), log_q, *how).log_prob
    value = tried.reshape(len(candidates), *trials.mean.shape)[:, row, trials.choice].sum(1)
    best = candidates[np.argsort(-value, kind="stable")[:_CLIMBS]]
    climbs = [minimize(loss, coef, jac=True, method="BFGS") for coef in best]
    return min(climbs, key=lambda climb: climb.fun).x


def _by_subject(subject: np.ndarray) -> list[np.ndarray]:
    """The rows of each subject, in the order of their numbers."""
    order = np.argsort(subject, kind="stable")
    _, starts = np.unique(subject[order], return_index=True)
    return np.split(order, starts[1:])
