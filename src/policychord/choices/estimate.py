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

from ..inference import (
    Data,
    Likelihood,
    Model,
    Normal,
    Parameter,
    bounded,
    empirical_bayes,
    estimate,
    likelihood,
    positive,
    real,
)
from ..inference.groups import GroupFit
from ..inference.likelihoods import pointwise
from ..inference.optimise import objective_of
from ..inference.parameters import FARTHEST, at_bound, natural, unconstrained
from ..inference.uncertainty import covariance_of, curvature, draw_laplace, inverse_of
from ..worlds.bandit import Belief
from .learners import AbstractLearner, Trials, begin, take_arms, with_parameters
from .models import (
    EVERY_FEATURE,
    FEATURES,
    ChoiceModel,
    Link,
    Mixture,
    believed,
    columns,
    compose,
    features,
    log_proba,
    log_reference,
)
from .places import places_of
from .tasks import Arms

EFFECT = 10.0  # of z = 1
WEAK = Normal(0.0, 3.0)  # of a coefficient's z
WEAK_RATE = Normal(0.0, 10.0)  # of the logit of a rate or lapse, of the logarithm of a variance over the rewards'
HELD = 0.8  # of the prior's deviation: an effect so far out was held by it, an error so wide is the prior's
BENT = 1.0  # error of a logit or logarithm: with a larger one the interval spans a factor of 50, and is all there is
CERTAIN = 1e-6  # a log-probability so near to 0 may be on its way to certainty
SEPARATES = 1e-4  # how much standardised features must speak for the choices, beyond what linear programmes round
CANDIDATES, STARTS = 128, 16  # points that are looked at, and searches that begin: half at the best, half anywhere
CHANCE = "chance"
AT_ONCE = 1024  # blocks that are worked on together: they are small
NORMAL = 1.96
STEP = 1e-4  # of z, by which slopes of natural values are measured
_SHARES = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0)  # of the reference's coefficients, where an own fit is looked for


class Estimates(NamedTuple):
    """Coefficients of everybody, (people, K) each; one row in all if the fit is pooled, and K = 0 without any."""

    coef: np.ndarray  # on natural scales
    separated: np.ndarray  # (people) no finite coefficients fit best: the weak prior holds them
    error: np.ndarray | None = None  # standard errors, from the curvature; NaN where there is none to give
    low: np.ndarray | None = None  # their intervals of 95%; NaN at a bound
    high: np.ndarray | None = None
    z: np.ndarray | None = None  # as `inference` has them
    at_bound: np.ndarray | None = None  # (people) some coefficient is at the border of its scale
    local: np.ndarray | None = None  # (people) no second start came as high: there may be a higher mode


class Fitted(NamedTuple):
    """What a fit found. Arrays have a row for each subject; those of the estimates one in all if the fit is pooled."""

    reference: str
    parameters: int
    pooled: bool
    subjects: np.ndarray
    coef: np.ndarray  # (subjects, coefficients)
    separated: np.ndarray
    log_likelihood: np.ndarray
    bic: np.ndarray
    aic: np.ndarray
    log_evidence: np.ndarray  # -bic/2
    names: tuple[str, ...] = ()  # of the coefficients
    error: np.ndarray | None = None
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    z: np.ndarray | None = None
    at_bound: np.ndarray | None = None
    local: np.ndarray | None = None

    @property
    def estimates(self) -> Estimates:
        """The part that another model may have, too."""
        return Estimates(*(getattr(self, name) for name in Estimates._fields))


# ------------------------------------------------------------------------------------ models and data


class Units(NamedTuple):
    """The data by blocks, (blocks, longest block, ...), padded; what models need and no more."""

    choice: np.ndarray
    reward: np.ndarray
    previous: np.ndarray
    offered: np.ndarray | None  # (blocks, longest, arms)
    loss: np.ndarray  # what was lost of the reward
    start: Arms  # (blocks, arms)
    belief: Belief  # (blocks, longest, arms): for models without a learner of their own
    pi: np.ndarray | None = None  # (blocks, longest, arms, primitives): for mixtures that are fitted themselves


def data_of(trials: Trials) -> tuple[Data, np.ndarray]:
    """Trials as `inference` takes them, and which of their choices count, (blocks, longest block)."""
    if trials.prior is None or trials.reward is None:
        raise ValueError("trials have no rewards and no prior: make them by `believe`.")
    at = places_of(trials)
    units = Units(
        at.spread(trials.choice), at.spread(trials.reward.astype(float)), at.spread(trials.previous, -1),
        None if trials.offered is None else at.spread(trials.offered, True),
        at.spread(np.minimum(trials.reward, 0.0) if trials.loss is None else trials.loss),
        take_arms(trials.prior, at.first),
        Belief(at.spread(trials.mean), at.spread(trials.variance)),
    )  # fmt: skip
    return Data(units, trials.subject[at.first], trials.block[at.first]), at.spread(trials.counts.astype(float))


def model_of(model: ChoiceModel, trials: Trials, name: str = "") -> Model:
    """A model of choice as a model of `inference`, with parameters on scales that suit these trials.

    All regressions on the same beliefs are one family and share their programs: what a model lacks is held at 0.
    """
    if model.link == "probit" and (trials.arms != 2 or trials.offered is not None):
        raise ValueError("link = 'probit' with more than two arms or with choice sets: use link='logit'.")
    parameters, mixture, family = _parameters_of(model, trials), _own_mixture(model), ()
    if mixture is None:
        every = (*(EVERY_FEATURE if model.learner is None else ()), "stickiness")
        family = tuple(({name: real(name) for name in every} | {one.name: one for one in parameters}).values())
    prior = None if mixture is None or mixture.prior is None else tuple(np.ravel(mixture.prior).tolist())
    key = (model.link, model.learner, None if mixture is None else (mixture.eps, prior))
    try:
        log_prob = _log_prob_of(*key)
    except TypeError:  # a learner that holds arrays has no hash
        log_prob = _log_prob_of.__wrapped__(*key)
    return Model(name or model.name, parameters, log_prob, family=family)


def _own_mixture(model: ChoiceModel) -> Mixture | None:
    """The mixture whose own likelihood is maximised; elsewhere it is the reference's."""
    return model.change if isinstance(model.change, Mixture) and model.change.own else None


def _searched(model: ChoiceModel) -> ChoiceModel:
    """The model whose likelihood is maximised."""
    return model if _own_mixture(model) else model._replace(change=None)


# cohorts, folds and comparisons of the same model share its function, and so its compiled programs
@lru_cache(maxsize=64)
def _log_prob_of(link: Link, learner: AbstractLearner | None, mixing: tuple[float, Any] | None) -> Any:
    def log_prob(theta: Mapping[str, Any], unit: Units) -> Any:
        """ln p of the choices of one block, (trials)."""
        belief = unit.belief if learner is None else _beliefs(learner, theta, unit)
        log_q = log_reference(link, theta, Belief(*map(jnp.asarray, belief)), unit.previous, unit.offered)
        if mixing is not None:
            log_q = compose(unit.pi, log_q, *mixing).log_prob
        return jnp.take_along_axis(log_q, jnp.asarray(unit.choice)[:, None], axis=1)[:, 0]

    return log_prob


def _beliefs(learner: AbstractLearner, theta: Mapping[str, Any], unit: Units) -> Belief:
    """Before every choice of a block, (trials, arms)."""
    own = with_parameters(learner, {name: theta[name] for name in learner.free})
    start = begin(own, Arms(*map(jnp.asarray, unit.start)))
    reward = jnp.stack([unit.reward - unit.loss, unit.loss], axis=-1) if learner.apart else unit.reward

    def step(belief: Belief, now: Any) -> tuple[Belief, Belief]:
        choice, reward = now
        return own.update(belief, choice, reward, start), belief

    return jax.lax.scan(step, Belief(*start[:2]), (unit.choice, reward))[1]


def _parameters_of(model: ChoiceModel, trials: Trials) -> tuple[Parameter, ...]:
    """Each on a scale on which z = 1 is a usual value, whatever the unit of the rewards."""
    kinds = {} if model.learner is None else dict(model.learner.scales)
    reward = np.asarray(trials.reward, dtype=float)
    mean, typical = float(np.mean(reward)), max(float(np.var(reward)), 1e-12)
    declared = []
    for name, spread in _spreads(model, trials).items():
        if name == "lapse" or kinds.get(name) == "unit":
            declared.append(bounded(name, 0.0, 1.0, 0.05 if name == "lapse" else 0.3, prior=WEAK_RATE))
        elif kinds.get(name) == "weight":
            declared.append(positive(name, 1.0, prior=WEAK_RATE))
        elif kinds.get(name) == "positive":
            declared.append(positive(name, typical, usual=typical, prior=WEAK_RATE))
        elif name in kinds:  # a value to start from, in units of the rewards
            declared.append(real(name, mean, centre=mean, scale=float(np.sqrt(typical)), prior=WEAK_RATE))
        else:
            start = 0.0 if name == "stickiness" else 1.0 / spread
            declared.append(real(name, start, scale=EFFECT / spread, prior=WEAK))
    return tuple(declared)


def _spreads(model: ChoiceModel, trials: Trials) -> dict[str, float]:
    """How much the feature of each coefficient differs between arms, by the task's beliefs; 1 where it never does."""
    if not isinstance(model.reference, str):
        return {}
    spread = _root_mean_square(features(model.reference, trials))
    return dict.fromkeys(model.coefficients, 1.0) | dict(zip(FEATURES[model.reference], spread.tolist(), strict=True))


def _root_mean_square(x: np.ndarray) -> np.ndarray:
    """Of features (trials, arms, features) around their mean over arms; 1 where they are the same."""
    size = np.sqrt(np.mean((x - x.mean(1, keepdims=True)) ** 2, axis=(0, 1)))
    return np.where(size > 0, size, 1.0)


def choice_likelihood(model: ChoiceModel, trials: Trials) -> Likelihood:
    """ln p of everybody's choices as a likelihood: for profiles, empirical Bayes, or NumPyro."""
    data, counts = data_of(trials)
    if mixture := _own_mixture(model):
        pi = places_of(trials).spread(columns(mixture.primitives, believed(model, trials, np.zeros((1, 0)))))
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
        return _evaluate(model, trials, Estimates(np.zeros((people, 0)), np.zeros(people, dtype=bool)))
    given = choice_likelihood(base, trials)
    with jax.enable_x64(True):
        starts = _starts(base, given, trials)
        best = estimate(given, starts=starts)
    found = describe_estimates(given, best.z)
    assert found.error is not None
    separated = found.separated | _separated(base, trials, found.coef)
    error = np.where(separated[:, None], np.nan, found.error)
    local = ~best.converged | ((best.reached < 2) & (len(starts) > 1))
    return _evaluate(model, trials, found._replace(separated=separated, error=error, local=local))


def _starts(model: ChoiceModel, given: Likelihood, trials: Trials) -> np.ndarray:
    """Where searches begin, (starts, groups, K).

    A plain regression has one maximum. Elsewhere many points are looked at, and the highest for each group are taken.
    """
    centre = unconstrained(given.parameters, {})
    if _own_mixture(model):
        known = estimate(choice_likelihood(model._replace(change=None), trials), starts=centre[None]).z
        grid = np.stack(np.meshgrid(*[_SHARES] * known.shape[1], indexing="ij"), axis=-1).reshape(-1, known.shape[1])
        points = grid[:, None] * known
    elif not (model.learned or model.lapse):
        return np.broadcast_to(centre, (1, given.groups, len(centre)))
    else:
        points = np.concatenate([centre[None], _candidates(given.parameters, centre)])[:, None]
    points = np.broadcast_to(points, (len(points), given.groups, len(centre)))
    value = np.stack([_log_likelihood(given, z) for z in points])
    # some of every size of effects: with a lapse each may have a mode, and the best points may all be near one
    kinds = [np.arange(k, len(points), 4) for k in range(4)]
    best = [kind[np.argsort(-value[kind], axis=0, kind="stable")[: STARTS // 8]] for kind in kinds]
    return np.concatenate([*(np.take_along_axis(points, at[..., None], axis=0) for at in best), points[: STARTS // 2]])


def _candidates(parameters: Sequence[Parameter], centre: np.ndarray) -> np.ndarray:
    """Points that a mode may be near, (CANDIDATES, K): rates of every size, and effects that suit them.

    What is learned at a small rate r differs little between arms, about as sqrt(r / (2 - r)): its coefficient is large.
    A filter that assumes a noise of n times the rewards' variance learns at a rate of about 1 / (1 + n).
    """
    rng = np.random.default_rng(0)
    rates = np.array([parameter.transform == "bounded" and parameter.name != "lapse" for parameter in parameters])
    effects = np.array([parameter.prior == WEAK for parameter in parameters])
    sticky = np.array([parameter.name == "stickiness" for parameter in parameters])
    normal = rng.normal(size=(CANDIDATES, len(parameters)))
    points = centre + np.where(effects, 0.0, 2.0 * normal)
    points[:, rates] = rng.uniform(-7.0, 4.0, (CANDIDATES, 1)) + normal[:, rates]
    noisy = np.array([parameter.name == "noise" for parameter in parameters])
    learned = np.ones(CANDIDATES)
    if (rates | noisy).any():
        mean = scipy.special.expit(np.where(noisy, -points, points)[:, rates | noisy]).mean(axis=1)
        learned = np.sqrt(mean / (2.0 - mean))
    sizes = np.exp(1.6 * normal) * np.where(rng.random(normal.shape) < 0.8, 1.0, -1.0) / EFFECT
    sizes[1::4] = normal[1::4]  # effects of ten and thirty: choices that are nearly certain, but for a lapse
    sizes[3::4] = 3.0 * normal[3::4]
    return np.where(effects, sizes / np.where(sticky, 1.0, learned[:, None]), points)


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
    answer = np.zeros(people, dtype=bool)
    if model.lapse or model.learned or isinstance(model.change, Mixture):
        return answer
    who = np.unique(trials.subject, return_inverse=True)[1] if people > 1 else np.zeros(len(trials.choice), dtype=int)
    certain = np.bincount(who, log_proba(model, trials, coef[who]).max(axis=1) > -CERTAIN, minlength=people) > 0
    x = features(str(model.reference), believed(model, trials, coef[who]))
    if model.stickiness:
        x = np.concatenate([x, 1.0 * (np.arange(trials.arms) == trials.previous[:, None])[..., None]], axis=-1)
    x = x / _root_mean_square(x)
    ahead = np.take_along_axis(x, trials.choice[:, None, None], axis=1) - x
    there = np.arange(trials.arms) != trials.choice[:, None]
    there = there & trials.counts[:, None] & (True if trials.offered is None else trials.offered)
    for person in np.flatnonzero(certain):
        rows = ahead[who == person][there[who == person]]
        program = linprog(-rows.sum(0), A_ub=-rows, b_ub=np.zeros(len(rows)), bounds=(-1.0, 1.0))
        answer[person] = program.status == 0 and -program.fun > SEPARATES
    return answer


def describe_estimates(given: Likelihood, z: np.ndarray, covariance: np.ndarray | None = None) -> Estimates:
    """Natural values, standard errors and intervals of estimates z, from the curvature unless a covariance is given.

    No standard error is given at a bound, where the data say less than the prior, and where the interval of a rate or a
    variance spans a factor of 50; the interval is there all the same, but at a bound.
    """
    edge, far = at_bound(z), FARTHEST - 1e-6
    with jax.enable_x64(True):
        if covariance is None:  # of the numbers that are not at a bound, given those that are
            covariance = inverse_of(
                curvature(objective_of(given, "map"), z) + 1e12 * edge[..., None] * np.eye(z.shape[1])
            )[0]
        sd = np.sqrt(np.maximum(np.einsum("gii->gi", covariance), 0.0))
        ends = (z, z - NORMAL * sd, z + NORMAL * sd)
        coef, low, high = (natural_rows(given, np.clip(end, -far, far)) for end in ends)
        slope = (natural_rows(given, z + STEP) - natural_rows(given, z - STEP)) / (2 * STEP)
    error = np.abs(slope) * sd
    widest = np.array([
        min(HELD * parameter.prior.sd if parameter.prior else np.inf, np.inf if parameter.transform == "real" else BENT)
        for parameter in given.parameters
    ])  # fmt: skip
    unknown = edge | (sd > widest)
    effects = [k for k, parameter in enumerate(given.parameters) if parameter.prior == WEAK]
    separated = (np.abs(z[:, effects]) > HELD * WEAK.sd).any(axis=1)
    low, high = (np.where(edge, np.nan, end) for end in (low, high))
    return Estimates(coef, separated, np.where(unknown, np.nan, error), low, high, z, np.asarray(edge.any(axis=1)))


def natural_rows(given: Likelihood, z: np.ndarray) -> np.ndarray:
    """Natural values, (..., coefficients)."""
    return np.stack(list(natural(given.parameters, np.asarray(z)).values()), axis=-1)


def _evaluate(model: ChoiceModel, trials: Trials, estimates: Estimates) -> Fitted:
    """Likelihood and evidence of every subject with coefficients that are known; only scored trials count."""
    subjects, who = np.unique(trials.subject, return_inverse=True)
    coef = estimates.coef[who if len(estimates.coef) > 1 else np.zeros_like(who)]
    log_p = log_proba(model, trials, coef)[np.arange(len(who)), trials.choice]
    total, counts = np.bincount(who, np.where(trials.counts, log_p, 0.0)), np.bincount(who, trials.counts)
    bic, aic = model.parameters * np.log(counts) - 2 * total, 2 * model.parameters - 2 * total
    return Fitted(
        model.name, model.parameters, model.pooled, subjects, log_likelihood=total, bic=bic, aic=aic,
        log_evidence=-bic / 2, names=model.coefficients, **estimates._asdict(),
    )  # fmt: skip


def borrow(model: ChoiceModel, trials: Trials, base: Fitted) -> Fitted:
    """A model with the coefficients of another fit, and their errors."""
    return _evaluate(model, trials, base.estimates)


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
    found = describe_estimates(given, group.z, group.covariances)._replace(separated=np.zeros(len(group.z), dtype=bool))
    return _evaluate(model, trials, found)._replace(log_evidence=group.log_evidence), group


def draw_coefficients(model: ChoiceModel, fitted: Fitted, trials: Trials, draws: int, seed: int = 0) -> np.ndarray:
    """Draws around everybody's estimate from the normal approximation on the unconstrained scale.

    (draws, people, coefficients)
    """
    assert fitted.z is not None
    given = choice_likelihood(_searched(model), trials)
    with jax.enable_x64(True):
        points = draw_laplace(fitted.z, covariance_of(given, fitted.z), draws, np.random.default_rng(seed))
        return natural_rows(given, np.clip(points, -FARTHEST, FARTHEST))
