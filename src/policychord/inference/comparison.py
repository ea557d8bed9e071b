"""`compare`: several models on the same decisions, each scored on decisions that it was not fitted to.

Every model is estimated without a fold and predicts it: l_mi = ln p(decision i | model m, estimates without i's fold).
The difference of two models is the mean of l_ai - l_bi. Its error comes from sums over clusters (people, blocks), which
are what would be resampled. A difference is established if it is larger than twice its error.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from .groups import empirical_bayes
from .likelihoods import Data, Likelihood, Model, likelihood, pointwise, restrict
from .optimise import Progress, estimate, finished, maximise, objective_of, report
from .parameters import Parameter, natural, size
from .search import SAME, Estimate, Objective, finite, keep_higher, maximise_groups, part_of
from .selection import ModelSelection, select_models

FOLDS = 5
WHOLE_ROUNDS, FOLD_ROUNDS = 10, 6  # of empirical Bayes, with all decisions and without a fold
SURE = 2.0  # errors beyond which a difference is established
HIDDEN = 1e-9  # nats per decision that rounding and the ends of searches leave: a smaller difference is none
ALIKE = 0.01  # mean |difference| of held-out ln p, in nats per decision, below which two models are one in two forms
Call = Literal["better", "not established", "worse"]
# maximum likelihood, with the declared priors, with the group as everybody's prior
Method = Literal["ml", "map", "group"]


class Difference(NamedTuple):
    """A mean difference of scores, per decision, with its standard error over clusters."""

    mean: float
    error: float

    @property
    def clear(self) -> bool:
        """Whether it is more than twice its error; never without an error."""
        return bool(abs(self.mean) > max(SURE * self.error, HIDDEN)) and bool(np.isfinite(self.error))

    @property
    def call(self) -> Call:
        """The verdict in a word."""
        if not self.clear:
            return "not established"
        return "better" if self.mean > 0 else "worse"


class Score(NamedTuple):
    """One model on the data."""

    name: str
    description: str
    parameters: int  # of one subject if everybody has their own, else of all
    z: Float[np.ndarray, "groups K"]  # estimates from all decisions
    log_likelihood: Float[np.ndarray, " groups"]  # under these
    bic: Float[np.ndarray, " groups"]
    each: Float[np.ndarray, " decisions"]  # held-out ln p of each decision that counts
    declared: tuple[Parameter, ...] = ()  # what z stands for

    @property
    def held_out(self) -> float:
        """Held-out ln p, in nats per decision."""
        return float(self.each.mean())

    def theta(self, group: int = 0) -> dict[str, np.ndarray]:
        """The estimates of a group on natural scales, by name."""
        return {name: np.asarray(value) for name, value in natural(self.declared, self.z[group]).items()}


class Estimator(NamedTuple):
    """A model that brings its own search, for a likelihood that is not a sum over units. `compare` does the rest.

    - `fit()`: estimates z from all decisions, (K) or (subjects, K).
    - `without(fold, z)`: those without each fold, (folds, ...), searched for from z.
    - `predict(z)`: ln p of every decision under estimates, in the shape of `fold`.
    """

    name: str
    parameters: int  # of one subject if everybody has their own, else of all
    fit: Callable[[], np.ndarray]
    without: Callable[[np.ndarray, np.ndarray], np.ndarray]
    predict: Callable[[np.ndarray], Float[np.ndarray, "units ..."]]
    description: str = ""


class Comparison(NamedTuple):
    """Models on the same decisions and folds, the best first by held-out score."""

    scores: tuple[Score, ...]
    clusters: Int[np.ndarray, " decisions"]  # over which errors are counted
    selection: ModelSelection | None  # over people, by BIC, if everybody has parameters of their own
    selected: tuple[str, ...] = ()  # the models that the selection is about, in its order
    missing: tuple[str, ...] = ()  # models that Ctrl-C left out

    @property
    def names(self) -> tuple[str, ...]:
        """The models, the best first."""
        return tuple(score.name for score in self.scores)

    def score(self, name: str) -> Score:
        """That of one model."""
        for score in self.scores:
            if score.name == name:
                return score
        raise ValueError(f"{name!r} was not compared: there are {', '.join(self.names)}.")

    def difference(self, name: str, other: str) -> Difference:
        """How much better the first predicts held-out decisions, in nats per decision."""
        return paired(self.score(name).each, self.score(other).each, self.clusters)


def compare(
    models: Sequence[Model | Estimator],
    data: Data,
    *,
    own: bool = False,
    fold: np.ndarray | None = None,
    clusters: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    method: Method = "map",
    starts: int = 2,
    begin: Mapping[str, np.ndarray] | None = None,
    references: Sequence[str] = ("chance",),
    at_once: int = 64,
    partial: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Estimate every model, score all on the same folds, and, if people have parameters of their own, select over them.

    - `models`: a `Model`, or an `Estimator` that brings its own search.
    - `own`: every subject has parameters of its own; without it all share them.
    - `fold`: of each unit (units), or of each decision of a unit (units, decisions); blocks in turn unless given.
    - `clusters`: what errors are counted over; subjects if there are several, else blocks.
    - `method="group"`, with `own`: empirical Bayes, the group is everybody's prior.
    - `begin`: where the search for a model's estimates begins, by name (starts, K).
    - `references` are scored and never enter the selection of models: chance, unless named otherwise.
    - `partial`: Ctrl-C gives the models that are done, `missing` names the others; without it, it ends everything.

    The order of `models` changes nothing but which are done first: selection is over models sorted by name, and ties
    keep that order.
    """
    names = [model.name for model in models]
    if not models or len(set(names)) < len(names):
        raise ValueError(f"models are called {', '.join(names) or 'nothing'}: pass one or more, every name once.")
    if method == "group" and not own:
        raise ValueError("method = 'group' is for people with parameters of their own: pass own=True.")
    begin = begin or {}
    fold = folds_within(data.subject, data.block) if fold is None and own else fold
    fold = folds_of(data.block) if fold is None else np.asarray(fold)
    weight = np.ones(fold.shape) if weight is None else weight  # the same shape with and without a fold: one program
    fitted: dict[str, tuple[np.ndarray, np.ndarray]] = {}  # estimates with everything and without each fold
    scores: list[Score] = []
    counted = np.broadcast_to(_like(weight > 0, fold), fold.shape)
    missing: tuple[str, ...] = ()

    def given_of(model: Model) -> Likelihood:
        groups = data.subject if own else None
        return likelihood(model, data.units, groups=groups, weight=weight, at_once=at_once)

    for i, model in enumerate(models):
        try:
            report(progress, f"comparing: {model.name}", i, len(models))
            if isinstance(model, Estimator):
                scores.append(_score_estimator(model, fold, counted, data.subject if own else np.zeros(len(fold))))
                continue
            base = model.borrows or model
            if base.name not in fitted:
                given = given_of(base)
                z = _estimate(given, begin.get(base.name, starts), starts, own, method)
                fitted[base.name] = z, estimate_without(given, fold, z, method=method)
            score, counted = _score(given_of(model), fold, *fitted[base.name])
            scores.append(score)
        except KeyboardInterrupt:
            if not partial or i == 0:
                raise
            missing = tuple(left.name for left in models[i:])
            break
    scores.sort(key=lambda score: score.name)
    selected = tuple(score.name for score in scores if score.name not in references)
    selection = None
    if own and len(selected) > 1 and not missing:
        selection = select_models(np.stack([-score.bic / 2 for score in scores if score.name in selected], axis=1))
    ranked = tuple(sorted(scores, key=lambda score: -score.held_out))
    labels = clusters if clusters is not None else data.subject if len(np.unique(data.subject)) > 1 else data.block
    index = np.unique(labels, return_inverse=True)[1].reshape(-1)
    index = np.broadcast_to(_like(index, counted), counted.shape)[counted]
    return Comparison(ranked, index, selection, selected, missing)


def near_duplicates(comparison: Comparison) -> tuple[tuple[str, ...], ...]:
    """Families of models that predict the same: held-out ln p differs by less than ALIKE on average."""
    families: list[list[Score]] = []
    for score in comparison.scores:
        for family in families:
            if all(np.abs(score.each - member.each).mean() < ALIKE for member in family):
                family.append(score)
                break
        else:
            families.append([score])
    return tuple(tuple(sorted(member.name for member in family)) for family in families if len(family) > 1)


def _estimate(given: Likelihood, begin: Any, starts: int, own: bool, method: Method) -> Float[np.ndarray, "groups K"]:
    if size(given.parameters) == 0:
        return np.zeros((given.groups, 0))
    if method == "group":
        return _group(given, WHOLE_ROUNDS, starts)
    if own:
        return estimate(given, method=method, starts=begin).z
    return finished(maximise(given, starts=begin, method=method)).z[None]


def _group(given: Likelihood, rounds: int, starts: int = 2) -> Float[np.ndarray, "groups K"]:
    """Everybody's estimate by empirical Bayes; Ctrl-C ends all of it."""
    group = empirical_bayes(given, rounds=rounds, starts=starts)
    if not group.complete:
        raise KeyboardInterrupt
    return group.z


def _score(given: Likelihood, fold: np.ndarray, z: np.ndarray, folds: np.ndarray) -> tuple[Score, np.ndarray]:
    """The score, and which decisions count."""
    model, whole = given.model, pointwise(given, z)
    counted = np.broadcast_to(_like(given.weight > 0, whole), whole.shape)
    free = size(model.parameters)
    total, bic = _evidence(whole, counted, given.group, free)
    each = held_out(given, fold, folds)[counted]
    return Score(model.name, model.description, free, z, total, bic, each, model.parameters), counted


def _score_estimator(model: Estimator, fold: np.ndarray, counted: np.ndarray, groups: np.ndarray) -> Score:
    """The same score of a model that brings its own search."""
    z = model.fit()
    whole = model.predict(z)
    if whole.shape != fold.shape:
        raise ValueError(f"{model.name!r} predicts an array {whole.shape}: {fold.shape} are compared.")
    total, bic = _evidence(whole, counted, np.unique(groups, return_inverse=True)[1].reshape(-1), model.parameters)
    each = held_out_by(model, fold, z)[counted]
    return Score(model.name, model.description, model.parameters, np.atleast_2d(z), total, bic, each)


def _evidence(
    whole: np.ndarray, counted: np.ndarray, group: np.ndarray, free: int
) -> tuple[Float[np.ndarray, " groups"], Float[np.ndarray, " groups"]]:
    """The log-likelihood and BIC of each group, from ln p of the decisions that count."""
    total = np.bincount(group, np.where(counted, whole, 0.0).reshape(len(group), -1).sum(axis=1))
    count = np.bincount(group, counted.reshape(len(group), -1).sum(axis=1))
    return total, free * np.log(np.maximum(count, 1)) - 2 * total


# ------------------------------------------------------------------------------------------------------- folds


def folds_of(labels: np.ndarray, folds: int = FOLDS, seed: int = 0) -> Int[np.ndarray, " units"]:
    """A fold for each unit. All units with the same label are in the same one, and folds are about equally large.

    With fewer labels than folds there are as many folds as labels; with one label an error says what to do.
    """
    names, index, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(names) < 2:
        raise ValueError(
            f"all units have the label {names[0]}: cross-validation needs two or more. Hold out by another label."
        )
    order = np.random.default_rng(seed).permutation(len(names))
    order = order[np.argsort(-counts[order], kind="stable")]
    load, fold = np.zeros(min(folds, len(names))), np.empty(len(names), int)
    for label in order:
        fold[label] = int(np.argmin(load))
        load[fold[label]] += counts[label]
    return fold[index.reshape(-1)]


def folds_within(subject: np.ndarray, labels: np.ndarray, folds: int = FOLDS) -> Int[np.ndarray, " units"]:
    """A fold for each unit such that every subject is in all folds: its labels take turns."""
    fold = np.empty(len(subject), int)
    for name in np.unique(subject):
        rows = subject == name
        fold[rows] = np.unique(labels[rows], return_inverse=True)[1].reshape(-1) % folds
    return fold


def time_blocks(labels: np.ndarray, time: np.ndarray, blocks: int = FOLDS) -> Int[np.ndarray, " units"]:
    """Blocks of consecutive units of each label: labels for folds where one subject is all there is."""
    answer = np.empty(len(labels), int)
    for number, name in enumerate(np.unique(labels)):
        rows = np.flatnonzero(labels == name)
        rows = rows[np.argsort(time[rows], kind="stable")]
        answer[rows] = number * blocks + np.arange(len(rows)) * blocks // max(len(rows), 1)
    return answer


def estimate_without(
    given: Likelihood, fold: np.ndarray, begin: np.ndarray, *, method: str = "map"
) -> Float[np.ndarray, "folds groups K"]:
    """The estimates of every group without each fold, from those with everything (groups, K), and all at once.

    With `method="group"` the group is estimated without the fold, too.
    """
    count, groups = int(fold.max()) + 1, given.groups
    if begin.shape[-1] == 0:
        return np.zeros((count, groups, 0))
    kept = [_like(given.weight, fold) * _like(fold != k, given.weight) for k in range(count)]
    rows = [np.flatnonzero((weight > 0).reshape(given.units, -1).any(axis=1)) for weight in kept]
    parts = [restrict(given, row)._replace(weight=weight[row]) for weight, row in zip(kept, rows, strict=True)]
    if method == "group":
        return np.stack([_group(part, FOLD_ROUNDS) for part in parts])
    train = restrict(given, np.concatenate(rows))._replace(
        weight=np.concatenate([part.weight for part in parts]),
        group=np.concatenate([part.group + groups * k for k, part in enumerate(parts)]),
    )
    own = estimate(train, method=method, starts=np.tile(begin, (count, 1))[None], groups=count * groups)
    try_modes_of_other_folds(objective_of(train, method, count * groups), own, count)
    return own.z.reshape(count, groups, -1)


def try_modes_of_other_folds(objective: Objective, own: Estimate, count: int) -> None:
    """Search again from another fold's mode where that is already higher: one start alone can end at a lower mode."""
    everyone = np.arange(len(own.z))
    groups, best, begin = len(own.z) // count, own.log_posterior.copy(), own.z.copy()
    for shift in range(1, count):
        z = np.roll(own.z, shift * groups, axis=0)
        value = finite(objective(z, everyone))[0]
        higher = value > best + SAME
        best[higher], begin[higher] = value[higher], z[higher]
    again = np.flatnonzero(best > own.log_posterior)
    if again.size:
        keep_higher(own, maximise_groups(part_of(objective, again), begin[again]), again)


def held_out(
    given: Likelihood, fold: np.ndarray, z: Float[np.ndarray, "folds groups K"]
) -> Float[np.ndarray, "units ..."]:
    """ln p of each decision under the estimates without its fold."""
    answer: Any = None
    for k in np.unique(fold):
        here = fold == k
        rows = np.flatnonzero(here.reshape(given.units, -1).any(axis=1))
        log_p = pointwise(restrict(given, rows), z[k])
        answer = np.zeros((given.units, *log_p.shape[1:])) if answer is None else answer
        answer[rows] = np.where(_like(here[rows], log_p), log_p, answer[rows])
    return np.asarray(answer)


def held_out_by(model: Estimator, fold: np.ndarray, z: np.ndarray) -> Float[np.ndarray, "units ..."]:
    """ln p of each decision under estimates without its fold, which are searched for from z."""
    each = np.zeros(fold.shape)
    for k, estimates in enumerate(model.without(fold, z)):
        each = np.where(fold == k, model.predict(estimates), each)
    return each


def _like(mask: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A mask or labels of units, or of decisions, with the axes that values of decisions have."""
    return mask.reshape(*mask.shape, *[1] * (values.ndim - mask.ndim))


def paired(better: np.ndarray, other: np.ndarray, clusters: np.ndarray) -> Difference:
    """The mean of `better - other` over decisions, with its error from sums over clusters."""
    difference = np.asarray(better, dtype=float) - np.asarray(other, dtype=float)
    index = np.unique(clusters, return_inverse=True)[1].reshape(-1)
    count, mean = int(index.max()) + 1, float(difference.mean())
    if count < 2:
        return Difference(mean, float("nan"))
    sums = np.bincount(index, difference - mean)
    return Difference(mean, float(np.sqrt(count / (count - 1) * (sums**2).sum()) / len(difference)))
