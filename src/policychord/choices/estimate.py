"""From choices with beliefs to everybody's coefficients: models of choice as models of `inference`.

A unit is one block of one person: beliefs run through it trial by trial. Estimates maximise the likelihood with a weak
prior, which gives a search an end where the likelihood has none. The size of a coefficient is measured by its effect,
coefficient times spread of its feature between arms: N(0, 30^2) beforehand, and at most 200.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from scipy.optimize import linprog

from ..inference.groups import GroupFit, empirical_bayes
from ..inference.likelihoods import Data, Likelihood, Model, likelihood, pointwise
from ..inference.optimise import estimate
from ..inference.parameters import FARTHEST, Normal, Parameter, bounded, natural, positive, real, unconstrained
from ..inference.uncertainty import covariance_of
from ..worlds.bandit import Belief
from .beliefs import Trials
from .learners import AbstractLearner, with_parameters
from .models import ChoiceModel, Mixture, believed, compose, log_proba, log_reference
from .schemas import FEATURES, columns, features

EFFECT = 10.0  # of z = 1
WEAK = Normal(0.0, 3.0)  # of a coefficient's z
WEAK_RATE = Normal(0.0, 10.0)  # of the logit of a rate or lapse, of the logarithm of a variance over the rewards'
HELD = 0.8  # of the prior's deviation: an effect so far out was held by it
CERTAIN = 1e-6  # a log-probability so near to 0 may be on its way to certainty
SEPARATES = 1e-4  # how much standardised features must speak for the choices, beyond what linear programmes round
CANDIDATES, STARTS = 128, 16  # points that are looked at, and searches that begin: half at the best, half anywhere
AT_ONCE = 1024  # blocks that are worked on together: they are small
NORMAL = 1.96
STEP = 1e-4  # of z, by which slopes of natural values are measured
_SHARES = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0)  # of the reference's coefficients, where an own fit is looked for


class Fitted(NamedTuple):
    """What a fit found. Arrays have a row for each subject; `coef` has one row in all if the fit is pooled."""

    reference: str
    parameters: int
    pooled: bool
    subjects: np.ndarray
    coef: np.ndarray  # (subjects, coefficients)
    separated: np.ndarray  # no finite coefficients fit best: the weak prior holds them
    log_likelihood: np.ndarray
    bic: np.ndarray
    aic: np.ndarray
    log_evidence: np.ndarray  # -bic/2
    names: tuple[str, ...] = ()  # of the coefficients
    error: np.ndarray | None = None  # (subjects, coefficients) standard errors, from the curvature
    low: np.ndarray | None = None  # their intervals of 95 %
    high: np.ndarray | None = None
    z: np.ndarray | None = None  # (subjects, K) the estimates as `inference` has them


# ------------------------------------------------------------------------------------ models and data


class Units(NamedTuple):
    """The data by blocks, (blocks, longest block, ...), padded; what models need and no more."""

    choice: np.ndarray
    reward: np.ndarray
    previous: np.ndarray
    offered: np.ndarray | None  # (blocks, longest, arms)
    start: Belief  # (blocks, arms)
    belief: Belief  # (blocks, longest, arms): for models without a learner of their own
    pi: np.ndarray | None = None  # (blocks, longest, arms, primitives): for mixtures that are fitted themselves


class Places(NamedTuple):
    """Where each trial stands among the units."""

    block: np.ndarray  # (trials)
    place: np.ndarray  # (trials)
    first: np.ndarray  # (blocks) its first trial

    def spread(self, values: Any, fill: float = 0) -> np.ndarray:
        """From trials to blocks."""
        values = np.asarray(values)
        table = np.full((len(self.first), self.place.max() + 1, *values.shape[1:]), fill, dtype=values.dtype)
        table[self.block, self.place] = values
        return table


def places_of(trials: Trials) -> Places:
    """Trials of one person and one block are a unit."""
    new = np.ones(len(trials.choice), dtype=bool)
    new[1:] = (trials.subject[1:] != trials.subject[:-1]) | (trials.block[1:] != trials.block[:-1])
    block = np.cumsum(new) - 1
    first = np.flatnonzero(new)
    return Places(block, np.arange(len(block)) - first[block], first)


def data_of(trials: Trials) -> tuple[Data, np.ndarray]:
    """Trials as `inference` takes them, and which of their choices count, (blocks, longest block)."""
    if trials.prior is None or trials.reward is None:
        raise ValueError("trials have no rewards and no prior: make them by `believe`.")
    at = places_of(trials)
    units = Units(
        at.spread(trials.choice), at.spread(trials.reward.astype(float)), at.spread(trials.previous, -1),
        None if trials.offered is None else at.spread(trials.offered, True),
        Belief(trials.prior.mean[at.first], trials.prior.variance[at.first]),
        Belief(at.spread(trials.mean), at.spread(trials.variance)),
    )  # fmt: skip
    return Data(units, trials.subject[at.first], trials.block[at.first]), at.spread(trials.counts.astype(float))


def model_of(model: ChoiceModel, trials: Trials, name: str = "") -> Model:
    """A model of choice as a model of `inference`, with parameters on scales that suit these trials."""
    if model.link == "probit" and (trials.arms != 2 or trials.offered is not None):
        raise ValueError("link = 'probit' with more than two arms or with choice sets: use link='logit'.")
    key = model._replace(parameters=0, pooled=False)
    if isinstance(model.change, Mixture) and model.change.own:
        prior = None if model.change.prior is None else tuple(np.asarray(model.change.prior, dtype=float).tolist())
        key = key._replace(change=Mixture((), model.change.eps, prior, True))  # type: ignore[arg-type]
    else:
        key = key._replace(change=None)
    try:
        log_prob = _log_prob_of(key)
    except TypeError:  # a learner that holds arrays has no hash
        log_prob = _log_prob_of.__wrapped__(key)
    return Model(name or model.name, _parameters_of(model, trials), log_prob)


# cohorts, folds and comparisons of the same model share its function, and so its compiled programs
@lru_cache(maxsize=64)
def _log_prob_of(model: ChoiceModel) -> Any:
    def log_prob(theta: Mapping[str, Any], unit: Units) -> Any:
        """ln p of the choices of one block, (trials)."""
        belief = unit.belief if model.learner is None else _beliefs(model.learner, theta, unit)
        log_q = log_reference(model, theta, Belief(*map(jnp.asarray, belief)), unit.previous, unit.offered)
        if isinstance(model.change, Mixture):
            log_q = compose(unit.pi, log_q, model.change.eps, model.change.prior).log_prob
        return jnp.take_along_axis(log_q, jnp.asarray(unit.choice)[:, None], axis=1)[:, 0]

    return log_prob


def _beliefs(learner: AbstractLearner, theta: Mapping[str, Any], unit: Units) -> Belief:
    """Before every choice of a block, (trials, arms)."""
    own = with_parameters(learner, {name: theta[name] for name in learner.free})
    start = own.start(*(jnp.asarray(part) for part in unit.start))

    def step(belief: Belief, now: Any) -> tuple[Belief, Belief]:
        choice, reward = now
        return own.update(belief, choice, reward, start), belief

    return jax.lax.scan(step, start, (unit.choice, unit.reward))[1]


def _parameters_of(model: ChoiceModel, trials: Trials) -> tuple[Parameter, ...]:
    """Each on a scale on which z = 1 is a usual value, whatever the unit of the rewards."""
    kinds: dict[str, str] = {} if model.learner is None else dict(model.learner.scales)
    size = _spreads(model, trials)
    reward = np.asarray(trials.reward, dtype=float)
    typical = max(float(np.var(reward)), 1e-12)
    declared = []
    for name in model.coefficients:
        if name == "lapse":
            declared.append(bounded(name, 0.0, 1.0, 0.05, prior=WEAK_RATE))
        elif kinds.get(name) == "unit":
            declared.append(bounded(name, 0.0, 1.0, 0.3, prior=WEAK_RATE))
        elif kinds.get(name) == "positive":
            declared.append(positive(name, typical, usual=typical, prior=WEAK_RATE))
        elif name in kinds:  # a value to start from, in units of the rewards
            mean = float(np.mean(reward))
            declared.append(real(name, mean, centre=mean, scale=float(np.sqrt(typical)), prior=WEAK_RATE))
        else:
            start = 0.0 if name == "stickiness" else 1.0 / size[name]
            declared.append(real(name, start, scale=EFFECT / size[name], prior=WEAK))
    return tuple(declared)


def _spreads(model: ChoiceModel, trials: Trials) -> dict[str, float]:
    """How much each feature differs between arms, by the task's beliefs: root mean square, one where it never does."""
    if not isinstance(model.reference, str):
        return {}
    x = features(model.reference, trials)
    spread = np.sqrt(np.mean((x - x.mean(1, keepdims=True)) ** 2, axis=(0, 1)))
    names = FEATURES[model.reference]
    sizes = {name: float(size) if size > 0 else 1.0 for name, size in zip(names, spread, strict=True)}
    return dict.fromkeys(model.coefficients, 1.0) | sizes


def choice_likelihood(model: ChoiceModel, trials: Trials) -> Likelihood:
    """ln p of everybody's choices as a likelihood: for profiles, empirical Bayes, or NumPyro."""
    data, counts = data_of(trials)
    if isinstance(model.change, Mixture) and model.change.own:
        seen = believed(model, trials, np.zeros((len(trials.choice), 0)))
        pi = places_of(trials).spread(columns(model.change.primitives, seen))
        pi[pi.sum(axis=(2, 3)) == 0] = 1.0 / trials.arms  # where a block has no trial
        data = data._replace(units=data.units._replace(pi=pi))
    groups = None if model.pooled else data.subject
    with jax.enable_x64(True):
        return likelihood(model_of(model, trials), data.units, groups=groups, weight=counts, at_once=AT_ONCE)


# -------------------------------------------------------------------------------------------- fits


def fit(model: ChoiceModel, trials: Trials) -> Fitted:
    """Everybody's coefficients, from several starts, all people at once.

    A composed model has the coefficients of its reference unless they are its `own`.
    """
    base = _searched(model)
    if not base.coefficients:
        people = 1 if model.pooled else len(np.unique(trials.subject))
        return _evaluate(model, trials, np.zeros((people, 0)), np.zeros(people, dtype=bool))
    given = choice_likelihood(base, trials)
    with jax.enable_x64(True):
        z = estimate(given, starts=_starts(base, given, trials)).z
    found = describe_estimates(given, z)
    separated = found.separated | _separated(base, trials, found.coef)
    error = np.where(separated[:, None], np.nan, found.error)
    return _evaluate(model, trials, found.coef, separated, error, found.low, found.high, z)


def _searched(model: ChoiceModel) -> ChoiceModel:
    """The model whose likelihood is maximised: the reference, or a mixture with coefficients of its own."""
    own = isinstance(model.change, Mixture) and model.change.own
    return model if own else model._replace(change=None)


def _starts(model: ChoiceModel, given: Likelihood, trials: Trials) -> np.ndarray:
    """Where searches begin, (starts, groups, K).

    A plain regression has one maximum. Elsewhere many points are looked at, and the highest for each group are taken.
    """
    centre = unconstrained(given.parameters, {})
    learns = model.learner is not None and bool(model.learner.free)
    if isinstance(model.change, Mixture):
        plain = model._replace(change=None)
        known = estimate(choice_likelihood(plain, trials), starts=centre[None]).z
        grid = np.stack(np.meshgrid(*[_SHARES] * known.shape[1], indexing="ij"), axis=-1).reshape(-1, known.shape[1])
        points = grid[:, None] * known
    elif not (learns or model.lapse):
        return np.broadcast_to(centre, (1, given.groups, len(centre)))
    else:
        points = np.concatenate([centre[None], _candidates(given.parameters, centre)])[:, None]
    points = np.broadcast_to(points, (len(points), given.groups, len(centre)))
    value = np.stack([_log_likelihood(given, z) for z in points])
    best = np.argsort(-value, axis=0, kind="stable")[: STARTS // 2]
    return np.concatenate([np.take_along_axis(points, best[..., None], axis=0), points[: STARTS // 2]])


def _candidates(parameters: Sequence[Parameter], centre: np.ndarray) -> np.ndarray:
    """Points that a mode may be near, (CANDIDATES, K): rates of every size, and effects that suit them.

    What is learned at a small rate r differs little between arms, about as sqrt(r / (2 - r)): its coefficient is large.
    """
    rng = np.random.default_rng(0)
    rates = np.array([parameter.transform == "bounded" and parameter.name != "lapse" for parameter in parameters])
    effects = np.array([parameter.prior == WEAK for parameter in parameters])
    normal = rng.normal(size=(CANDIDATES, len(parameters)))
    points = centre + np.where(effects, 0.0, 2.0 * normal)
    points[:, rates] = rng.uniform(-7.0, 4.0, (CANDIDATES, 1)) + normal[:, rates]
    learned = np.ones(CANDIDATES)
    if rates.any():
        mean = scipy.special.expit(points[:, rates]).mean(axis=1)
        learned = np.sqrt(mean / (2.0 - mean))
    sizes = np.exp(1.6 * normal) * np.where(rng.random(normal.shape) < 0.8, 1.0, -1.0) / EFFECT
    sizes[1::2] = normal[1::2]  # effects of ten: choices that are nearly certain, but for a lapse
    names = np.array([parameter.name == "stickiness" for parameter in parameters])
    return np.where(effects, sizes / np.where(names, 1.0, learned[:, None]), points)


def _log_likelihood(given: Likelihood, z: np.ndarray) -> np.ndarray:
    """Of every group."""
    each = np.where(given.weight > 0, pointwise(given, z), 0.0).sum(axis=1)
    return np.bincount(given.group, each, minlength=given.groups)


def _separated(model: ChoiceModel, trials: Trials, coef: np.ndarray) -> np.ndarray:
    """Whose choices are perfectly separated by the features of a plain regression, (people).

    Then there are coefficients b with (x_chosen - x_other) b >= 0 in all trials and > 0 in one, along which the
    likelihood grows without end (Albert and Anderson 1984, Biometrika 71); a linear programme looks for b. Only those
    of whom some choice has become certain are looked at.
    """
    people = len(coef)
    if model.lapse or isinstance(model.change, Mixture) or (model.learner is not None and model.learner.free):
        return np.zeros(people, dtype=bool)
    who = np.zeros(len(trials.choice), dtype=int)
    who = who if people == 1 else np.unique(trials.subject, return_inverse=True)[1].reshape(-1)
    certain = np.bincount(who, log_proba(model, trials, coef[who]).max(axis=1) > -CERTAIN, minlength=people) > 0
    x = features(str(model.reference), believed(model, trials, coef[who]))
    if model.stickiness:
        x = np.concatenate([x, 1.0 * (np.arange(trials.arms) == trials.previous[:, None])[..., None]], axis=-1)
    spread = np.sqrt(np.mean((x - x.mean(1, keepdims=True)) ** 2, axis=(0, 1)))
    x = x / np.where(spread > 0, spread, 1.0)
    ahead = np.take_along_axis(x, trials.choice[:, None, None], axis=1) - x
    there = np.ones(x.shape[:2], dtype=bool) if trials.offered is None else trials.offered
    there = there & (np.arange(trials.arms) != trials.choice[:, None]) & trials.counts[:, None]
    answer = np.zeros(people, dtype=bool)
    for person in np.flatnonzero(certain):
        rows = ahead[who == person][there[who == person]]
        program = linprog(-rows.sum(0), A_ub=-rows, b_ub=np.zeros(len(rows)), bounds=(-1.0, 1.0))
        answer[person] = program.status == 0 and -program.fun > SEPARATES
    return answer


class Estimates(NamedTuple):
    """Coefficients on natural scales, (people, coefficients) each, and whether a weak prior holds one of a person's."""

    coef: np.ndarray
    separated: np.ndarray
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray


def describe_estimates(given: Likelihood, z: np.ndarray, covariance: np.ndarray | None = None) -> Estimates:
    """Natural values, standard errors and intervals of estimates z, from the curvature unless a covariance is given."""
    with jax.enable_x64(True):
        if covariance is None:
            covariance = covariance_of(given, z)
        sd = np.sqrt(np.maximum(np.einsum("gii->gi", covariance), 0.0))
        far = FARTHEST - 1e-6
        ends = (z, z - NORMAL * sd, z + NORMAL * sd)
        coef, low, high = (natural_rows(given, np.clip(end, -far, far)) for end in ends)
        slope = (natural_rows(given, z + STEP) - natural_rows(given, z - STEP)) / (2 * STEP)
    effects = [k for k, one in enumerate(given.parameters) if one.prior == WEAK]
    separated = (np.abs(z[:, effects]) > HELD * WEAK.sd).any(axis=1)
    return Estimates(coef, separated, np.abs(slope) * sd, low, high)


def natural_rows(given: Likelihood, z: np.ndarray) -> np.ndarray:
    """Natural values, (..., coefficients)."""
    return np.stack(list(natural(given.parameters, np.asarray(z)).values()), axis=-1)


def _evaluate(
    model: ChoiceModel,
    trials: Trials,
    coef: np.ndarray,
    separated: np.ndarray,
    error: np.ndarray | None = None,
    low: np.ndarray | None = None,
    high: np.ndarray | None = None,
    z: np.ndarray | None = None,
) -> Fitted:
    """Likelihood and evidence of every subject with coefficients that are known, (subjects, coefficients).

    Trials that are not scored count nowhere.
    """
    subjects, who = np.unique(trials.subject, return_inverse=True)
    none = np.zeros(len(subjects))
    fitted = Fitted(
        model.name, model.parameters, model.pooled, subjects, coef, separated, none, none, none, none,
        model.coefficients, error, low, high, z,
    )  # fmt: skip
    log_p = log_proba(model, trials, coefficients_of(fitted, trials))[np.arange(len(who)), trials.choice]
    total = np.bincount(who, np.where(trials.counts, log_p, 0.0))
    counts = np.bincount(who, trials.counts)
    bic, aic = model.parameters * np.log(counts) - 2 * total, 2 * model.parameters - 2 * total
    return fitted._replace(log_likelihood=total, bic=bic, aic=aic, log_evidence=-bic / 2)


def borrow(model: ChoiceModel, trials: Trials, base: Fitted) -> Fitted:
    """A model with the coefficients of another fit, and their errors."""
    return _evaluate(model, trials, base.coef, base.separated, base.error, base.low, base.high, base.z)


def coefficients_of(fitted: Fitted, trials: Trials) -> np.ndarray:
    """The coefficients of whoever made each choice, (trials, coefficients)."""
    if fitted.pooled:
        return np.broadcast_to(fitted.coef[0], (len(trials.choice), fitted.coef.shape[1]))
    at = np.minimum(np.searchsorted(fitted.subjects, trials.subject), len(fitted.subjects) - 1)
    if (unknown := fitted.subjects[at] != trials.subject).any():
        raise ValueError(
            f"subject {trials.subject[unknown][0]} was not among those fitted: fit with pooled=True to predict "
            "people who were not."
        )
    return fitted.coef[at]


def shrink(model: ChoiceModel, trials: Trials) -> tuple[Fitted, GroupFit]:
    """Empirical Bayes: everybody's estimate drawn towards the group's, and the group. The evidence is Laplace's.

    `log_evidence` is then that of a person's choices given the group, and not -BIC/2.
    """
    given = choice_likelihood(_searched(model), trials)
    with jax.enable_x64(True):
        group = empirical_bayes(given)
    estimates = describe_estimates(given, group.z, group.covariances)
    fitted = _evaluate(model, trials, *estimates._replace(separated=np.zeros(len(group.z), dtype=bool)), z=group.z)
    return fitted._replace(log_evidence=group.log_evidence), group


def draw_coefficients(model: ChoiceModel, fitted: Fitted, trials: Trials, draws: int, seed: int = 0) -> np.ndarray:
    """Draws around everybody's estimate from the normal approximation on the unconstrained scale.

    (draws, people, coefficients)
    """
    assert fitted.z is not None
    given = choice_likelihood(_searched(model), trials)
    with jax.enable_x64(True):
        covariance = covariance_of(given, fitted.z)
        root = np.linalg.cholesky(covariance + 1e-12 * np.eye(fitted.z.shape[1]))
        normal = np.random.default_rng(seed).normal(size=(draws, *fitted.z.shape))
        points = fitted.z + np.einsum("gij,dgj->dgi", root, normal)
        return natural_rows(given, points)
