"""Grouped cross-validation, and comparisons of held-out scores, paired over clusters."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from .likelihoods import Likelihood, pointwise, restrict
from .optimise import finished, maximise

FOLDS = 5


class Difference(NamedTuple):
    """A mean difference of scores, a decision, with its standard error over clusters."""

    mean: float
    error: float

    @property
    def clear(self) -> bool:
        """Whether it is more than twice its error."""
        return bool(abs(self.mean) > 2 * self.error)


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
    for one in order:
        fold[one] = int(np.argmin(load))
        load[fold[one]] += counts[one]
    return fold[index.reshape(-1)]


def time_blocks(labels: np.ndarray, time: np.ndarray, blocks: int = FOLDS) -> Int[np.ndarray, " units"]:
    """Blocks of consecutive units of each label: labels for folds where one subject is all there is."""
    answer = np.empty(len(labels), int)
    for number, name in enumerate(np.unique(labels)):
        rows = np.flatnonzero(labels == name)
        rows = rows[np.argsort(time[rows], kind="stable")]
        answer[rows] = number * blocks + np.arange(len(rows)) * blocks // max(len(rows), 1)
    return answer


def cross_validate(
    given: Likelihood,
    fold: np.ndarray,
    *,
    method: str = "ml",
    fit: Callable[[Likelihood], np.ndarray] | None = None,
    start: np.ndarray | None = None,
) -> Float[np.ndarray, "units ..."]:
    """ln p of each unit under parameters that were estimated without its fold.

    `fit` takes the likelihood of the training units and gives z, (K) or (groups, K); `maximise` unless given, which
    begins at `start` (only the beginning of the climb) or at the declared values.
    """
    held_out = None
    for one in np.unique(fold):
        train, test = restrict(given, fold != one), restrict(given, fold == one)
        if fit is not None:
            z = fit(train)
        else:
            z = finished(maximise(train, starts=1 if start is None else start[None], method=method)).z
        scores = pointwise(test, z)
        held_out = np.empty((given.units, *scores.shape[1:])) if held_out is None else held_out
        held_out[fold == one] = scores
    assert held_out is not None
    return held_out


def paired(better: np.ndarray, other: np.ndarray, clusters: np.ndarray) -> Difference:
    """The mean of `better - other` over decisions, with its error from sums over clusters."""
    difference = np.asarray(better, dtype=float) - np.asarray(other, dtype=float)
    index = np.unique(clusters, return_inverse=True)[1].reshape(-1)
    count, mean = int(index.max()) + 1, float(difference.mean())
    if count < 2:
        return Difference(mean, float("nan"))
    sums = np.bincount(index, difference - mean)
    return Difference(mean, float(np.sqrt(count / (count - 1) * (sums**2).sum()) / len(difference)))
