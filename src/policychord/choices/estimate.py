"""Coefficients of models that are no regression: everybody's likelihood climbed at once, by `inference`.

A unit of `inference` is one block of one person: beliefs run through it trial by trial. Coefficients of features are
scaled by the spread of what they multiply, so that a start of about one is a start everywhere.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr

from ..inference.groups import GroupFit, empirical_bayes
from ..inference.likelihoods import Likelihood, Model, likelihood, pointwise
from ..inference.optimise import of_groups
from ..inference.parameters import Normal, Parameter, bounded, natural, positive, real, unconstrained
from ..inference.search import maximise_groups
from ..inference.uncertainty import curvature, inverse_of
from ..worlds.bandit import Belief
from .beliefs import Trials
from .learners import AbstractLearner, with_parameters
from .models import ChoiceModel, Fitted, Link, evaluate, names_of
from .schemas import FEATURES

STARTS = 5
FIRST_TURNS = 30  # of each start; the best goes on
LEAST_OFFERED = -1e9  # the utility of an arm that is not on offer
# A weak prior on the unconstrained scale gives every climb an end where the likelihood has none; it moves nothing else.
WEAK = {"rate": 6.0, "coefficient": 30.0}
FAR = 0.8  # of that prior's deviation: an estimate so far out was held by it
_NORMAL = 1.96


class Units(NamedTuple):
    """The data by blocks, (blocks, longest block, ...), padded; what models need and no more."""

    choice: np.ndarray
    reward: np.ndarray
    previous: np.ndarray
    counts: np.ndarray  # 1 where a choice is scored, 0 where not, and in the padding
    offered: np.ndarray  # (blocks, longest, arms)
    start: Belief  # (blocks, arms)
    belief: Belief  # (blocks, longest, arms): for models without a learner of their own


class Grid(NamedTuple):
    """Where each trial stands among the units."""

    block: np.ndarray  # (trials)
    place: np.ndarray  # (trials)
    owner: np.ndarray  # (blocks) whose block it is


def _grid_of(trials: Trials) -> Grid:
    """Trials of one person and one block are a unit."""
    new = np.ones(len(trials.choice), dtype=bool)
    new[1:] = (trials.subject[1:] != trials.subject[:-1]) | (trials.block[1:] != trials.block[:-1])
    block = np.cumsum(new) - 1
    first = np.flatnonzero(new)
    return Grid(block, np.arange(len(block)) - first[block], trials.subject[first])


def units_of(trials: Trials) -> Units:
    """Trials by blocks, padded with what changes nothing."""
    if trials.prior is None or trials.reward is None:
        raise ValueError("trials have no rewards and no prior: make them by `believe`.")
    at, (rows, arms) = _grid_of(trials), trials.mean.shape
    shape = (at.block.max() + 1, at.place.max() + 1)
    first = np.flatnonzero(at.place == 0)

    def spread(values: Any, fill: float = 0) -> np.ndarray:
        values = np.asarray(values)
        table = np.full((*shape, *values.shape[1:]), fill, dtype=values.dtype)
        table[at.block, at.place] = values
        return table

    offered = np.ones((rows, arms), dtype=bool) if trials.offered is None else trials.offered
    return Units(
        spread(trials.choice), spread(trials.reward.astype(float)), spread(trials.previous, -1),
        spread(trials.counts.astype(float)), spread(offered, True),
        Belief(trials.prior.mean[first], trials.prior.variance[first]),
        Belief(spread(trials.mean), spread(trials.variance)),
    )  # fmt: skip


def _parameters_of(model: ChoiceModel, trials: Trials) -> tuple[Parameter, ...]:
    """What is fitted, on its natural scale, with starts that suit the rewards."""
    kinds: dict[str, str] = {} if model.learner is None else dict(model.learner.scales)
    size = _sizes(model, trials)
    found = []
    for name in names_of(model):
        if name == "lapse":
            found.append(bounded(name, 0.0, 1.0, 0.05, prior=Normal(0.0, WEAK["rate"])))
        elif kinds.get(name) == "unit":
            found.append(bounded(name, 0.0, 1.0, 0.3, prior=Normal(0.0, WEAK["rate"])))
        elif kinds.get(name) == "positive":
            typical = max(float(np.var(np.asarray(trials.reward))), 1e-12)
            found.append(positive(name, typical, prior=Normal(float(np.log(typical)), WEAK["rate"])))
        elif name in kinds:  # a value to start from, in units of the rewards
            spread = float(np.std(np.asarray(trials.reward))) or 1.0
            found.append(real(name, float(np.mean(np.asarray(trials.reward))), prior=Normal(0.0, 100 * spread)))
        else:
            start = 0.0 if name == "stickiness" else 1.0 / size[name]
            found.append(real(name, start, prior=Normal(0.0, WEAK["coefficient"] / size[name])))
    return tuple(found)


def _sizes(model: ChoiceModel, trials: Trials) -> dict[str, float]:
    """How much a feature differs between arms, by the task's beliefs: coefficients are about one over this."""
    reward = np.asarray(trials.reward, dtype=float)
    spread = float(np.std(reward)) or 1.0
    total = float(np.sqrt(np.mean(trials.variance.sum(1)))) or 1.0
    known = {"V": spread, "V/TU": max(spread / total, 0.1), "RU": float(np.sqrt(np.mean(trials.variance))) or 1.0}
    return {name: known.get(name, 1.0) for name in names_of(model)}


def choice_likelihood(model: ChoiceModel, trials: Trials, groups: np.ndarray | None = None) -> Likelihood:
    """ln p of everybody's choices as a likelihood: for `maximise`, profiles, empirical Bayes, or NumPyro."""
    given, sizes = _parameters_of(model, trials), _sizes(model, trials)
    free = tuple(_unit_scaled(one, sizes) for one in given)
    names = tuple(FEATURES[str(model.reference)])
    scale = {name: sizes[name] for name in names}
    learner = model.learner

    def log_prob(theta: Mapping[str, Any], unit: Units) -> Any:
        given = {name: value / scale.get(name, 1.0) for name, value in theta.items()}
        weighed = [given[name] for name in names]
        return _block_log_prob(model, learner, given, weighed, unit)

    owner = _grid_of(trials).owner if groups is None else groups
    with jax.enable_x64(True):
        # four batches of this size are one call of the compiled program: no larger than what there is
        one = Model(str(model.reference), free, log_prob)
        return likelihood(one, units_of(trials), groups=owner, at_once=min(64, -(-len(owner) // 4)))


def _unit_scaled(one: Parameter, sizes: Mapping[str, float]) -> Parameter:
    """Coefficients of features are climbed times the size of the feature."""
    size = sizes.get(one.name, 1.0)
    if one.transform != "real" or size == 1.0 or one.prior is None:
        return one
    return real(one.name, one.start * size, prior=Normal(one.prior.mean * size, one.prior.sd * size))


def _block_log_prob(
    model: ChoiceModel, learner: AbstractLearner | None, given: Mapping[str, Any], weighed: Sequence[Any], unit: Units
) -> Any:
    """ln p of the choices of one block, (trials), in JAX; zero where a choice does not count."""
    arms = jnp.arange(unit.offered.shape[-1])

    def decide(belief: Belief, previous: Any, offered: Any) -> Any:
        seen = _Seen(belief.mean, belief.variance)
        features = FEATURES[str(model.reference)].values()
        utility = jnp.zeros(len(arms))
        for weight, feature in zip(weighed, features, strict=True):
            utility = utility + weight * feature(seen)  # type: ignore[arg-type]
        if model.stickiness:
            utility = utility + jnp.where(arms == previous, given["stickiness"], 0.0)
        log_q = _log_choice(utility, offered, model.link)
        if model.lapse:
            even = offered / offered.sum()
            log_q = jnp.log((1.0 - given["lapse"]) * jnp.exp(log_q) + given["lapse"] * even + 1e-300)
        return log_q

    if learner is None:
        log_q = jax.vmap(decide)(unit.belief, unit.previous, unit.offered)
    else:
        own = with_parameters(learner, {name: given[name] for name in learner.free})
        start = own.start(*(jnp.asarray(one) for one in unit.start))

        def step(belief: Belief, now: Any) -> tuple[Belief, Any]:
            choice, reward, previous, offered = now
            return own.update(belief, choice, reward, start), decide(belief, previous, offered)

        _, log_q = jax.lax.scan(step, start, (unit.choice, unit.reward, unit.previous, unit.offered))
    chosen = jnp.take_along_axis(log_q, jnp.asarray(unit.choice)[:, None], axis=1)[:, 0]
    return jnp.where(unit.counts > 0, chosen, 0.0)


class _Seen(NamedTuple):
    """What a feature looks at."""

    mean: Any
    variance: Any


def _log_choice(utility: Any, offered: Any, link: Link) -> Any:
    if link == "probit":
        z = utility[0] - utility[1]
        return jnp.stack([log_ndtr(z), log_ndtr(-z)])
    return jax.nn.log_softmax(jnp.where(offered, utility, LEAST_OFFERED))


def climb(model: ChoiceModel, trials: Trials) -> Fitted:
    """The model's fit: maximum likelihood with a weak prior, everybody from several starts in step."""
    _check(model, trials)
    groups = np.zeros(_grid_of(trials).block.max() + 1, dtype=int) if model.pooled else None
    given = choice_likelihood(model, trials, groups)
    with jax.enable_x64(True):
        objective = _with_priors(of_groups(given), given.parameters)
        best = _best_of(objective, [np.tile(begin, (given.groups, 1)) for begin in _starts(given)])
        covariance, _ = inverse_of(curvature(objective, best))
    coef, error, low, high = _natural(model, trials, given, best, covariance)
    held = np.array([_held(given.parameters, z) for z in best])
    return evaluate(model, trials, coef, held, error, (low, high))


def climb_folds(
    model: ChoiceModel, trials: Trials, fold: np.ndarray, coef: np.ndarray, *, pooled: bool = False
) -> np.ndarray:
    """Coefficients for every trial that were estimated without its fold, (trials, coefficients).

    All folds are climbed at once, for each person or with `pooled` for everybody together, from the coefficients that
    fit all trials, (people, coefficients).
    """
    at, folds = _grid_of(trials), int(fold.max()) + 1
    one = np.zeros(at.block.max() + 1, dtype=int) if pooled else None
    given = choice_likelihood(model, trials, one)
    kept = np.repeat(given.data.counts[None], folds, axis=0)
    kept[fold, at.block, at.place] = 0.0
    tiled = jax.tree_util.tree_map(lambda leaf: np.tile(leaf, (folds, *[1] * (leaf.ndim - 1))), given.data)
    people = given.groups
    group = np.concatenate([given.group + people * k for k in range(folds)])
    every = given._replace(
        data=tiled._replace(counts=kept.reshape(-1, kept.shape[-1])),
        group=group,
        weight=np.tile(given.weight, (folds, *[1] * (given.weight.ndim - 1))),
    )
    with jax.enable_x64(True):
        begin = np.tile(_to_z(given, model, trials, coef), (folds, 1))
        best = _best_of(_with_priors(of_groups(every), every.parameters), [begin])
    found = _natural(model, trials, given, best, np.zeros((len(best), best.shape[1], best.shape[1])))[0]
    return found[given.group[at.block] + people * fold]


def draw_coefficients(model: ChoiceModel, fitted: Fitted, trials: Trials, draws: int, seed: int = 0) -> np.ndarray:
    """Draws around everybody's estimate from the normal approximation on the unconstrained scale, with the weak prior.

    (draws, people, coefficients)
    """
    given = choice_likelihood(model, trials)
    with jax.enable_x64(True):
        z = _to_z(given, model, trials, fitted.coef)
        covariance, _ = inverse_of(curvature(_with_priors(of_groups(given), given.parameters), z))
    root = np.linalg.cholesky(covariance + 1e-12 * np.eye(z.shape[1]))
    normal = np.random.default_rng(seed).normal(size=(draws, *z.shape))
    points = (z + np.einsum("gij,dgj->dgi", root, normal)).reshape(-1, z.shape[1])
    none = np.zeros((len(points), z.shape[1], z.shape[1]))
    return _natural(model, trials, given, points, none)[0].reshape(draws, *z.shape)


def _best_of(objective: Any, begins: list[np.ndarray]) -> np.ndarray:
    """The highest of the climbs from several starts, for each group; only the best of them goes on to its end."""
    ends = [maximise_groups(objective, begin, steps=FIRST_TURNS) for begin in begins]
    first = np.argmax(np.stack([np.round(end.value, 9) for end in ends]), axis=0)
    pick = first, np.arange(len(first))
    return maximise_groups(
        objective, *(np.stack(one)[pick] for one in zip(*((e.z, e.inverse) for e in ends), strict=True))
    ).z


def shrink(model: ChoiceModel, trials: Trials) -> tuple[Fitted, GroupFit]:
    """Empirical Bayes: everybody's estimate drawn towards the group's, and the group. The evidence is Laplace's.

    `log_evidence` is then that of a person's choices given the group, and not -BIC/2.
    """
    _check(model, trials)
    given = choice_likelihood(model, trials)
    with jax.enable_x64(True):
        group = empirical_bayes(given)
    coef, error, low, high = _natural(model, trials, given, group.z, group.covariances)
    found = evaluate(model, trials, coef, np.zeros(len(coef), dtype=bool), error, (low, high))
    return found._replace(log_evidence=group.log_evidence), group


def _log_likelihood_of(model: ChoiceModel, trials: Trials, coef: np.ndarray) -> np.ndarray:
    """ln p of each choice by the compiled likelihood, (trials): the same as `log_proba` gives in NumPy."""
    given, at = choice_likelihood(model, trials), _grid_of(trials)
    with jax.enable_x64(True):
        return pointwise(given, _to_z(given, model, trials, coef))[at.block, at.place]


def _check(model: ChoiceModel, trials: Trials) -> None:
    if model.change is not None and not isinstance(model.change, str) and model.change.own:
        raise ValueError("coefficients = 'own' are for references that are regressions: use 'reference'.")
    if model.link == "probit" and (trials.arms != 2 or trials.offered is not None):
        raise ValueError("link = 'probit' with more than two arms or with choice sets: use link='logit'.")


def _with_priors(objective: Any, parameters: Sequence[Parameter]) -> Any:
    """The likelihood with the weak priors, for all groups."""
    mean = np.array([one.prior.mean if one.prior else 0.0 for one in parameters])
    sd = np.array([one.prior.sd if one.prior else np.inf for one in parameters])

    def posterior(z: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, gradient = objective(z, which)
        off = (z - mean) / sd
        return value - 0.5 * (off**2).sum(1), gradient - off / sd

    return posterior


def _starts(given: Likelihood) -> list[np.ndarray]:
    """The declared start, and others that reach the corners of the rates."""
    centre = unconstrained(given.parameters, {})
    bounds = np.array([one.transform == "bounded" and one.name != "lapse" for one in given.parameters])
    signs = ((0.0, 1.0), (2.5, 1.0), (1.0, 3.0), (-2.0, 2.0), (3.5, 0.3))[:STARTS]
    real_ones = np.array([one.transform == "real" and one.name != "start_value" for one in given.parameters])
    return [np.where(bounds, centre + shift, np.where(real_ones, centre * times, centre)) for shift, times in signs]


def _natural(
    model: ChoiceModel, trials: Trials, given: Likelihood, z: np.ndarray, covariance: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients, standard errors and intervals on natural scales, (people, coefficients) each."""
    sizes = _sizes(model, trials)
    by = np.array([sizes[name] if name in FEATURES[str(model.reference)] else 1.0 for name in names_of(model)])

    def values(z: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            found = jax.vmap(lambda row: jnp.stack(list(natural(given.parameters, row).values())))(jnp.asarray(z))
        return np.asarray(found) / by

    sd = np.sqrt(np.maximum(np.einsum("gii->gi", covariance), 0.0))
    at = values(z) * by
    slope = np.stack([_slope(one, at[:, k]) for k, one in enumerate(given.parameters)], axis=1)
    return values(z), np.abs(slope) * sd / by, values(z - _NORMAL * sd), values(z + _NORMAL * sd)


def _slope(one: Parameter, value: np.ndarray) -> np.ndarray:
    """d(natural)/dz at a natural value."""
    if one.transform == "bounded":
        return value * (1.0 - value)
    return value if one.transform == "positive" else np.ones_like(value)


def _to_z(given: Likelihood, model: ChoiceModel, trials: Trials, coef: np.ndarray) -> np.ndarray:
    """From coefficients (people, coefficients) to z."""
    sizes = _sizes(model, trials)
    columns = []
    for one, value in zip(given.parameters, np.asarray(coef, dtype=float).T, strict=True):
        if one.name in FEATURES[str(model.reference)]:
            value = value * sizes[one.name]
        if one.transform == "bounded":
            value = np.clip(value, 1e-9, 1 - 1e-9)
            value = np.log(value) - np.log1p(-value)
        columns.append(np.log(np.maximum(value, 1e-12)) if one.transform == "positive" else value)
    return np.stack(columns, axis=1)


def _held(parameters: Sequence[Parameter], z: np.ndarray) -> bool:
    """Whether the weak prior holds an estimate that would go to infinity; a rate at its border is no such thing."""
    real_ones = [(one, value) for one, value in zip(parameters, z, strict=True) if one.transform == "real"]
    return any(abs(value - one.prior.mean) > FAR * one.prior.sd for one, value in real_ones if one.prior is not None)
