"""How much two samples differ: the Mann-Whitney test, and Cliff's delta with an interval."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.stats import mannwhitneyu

from ._types import ArrayLike


class EffectSize(NamedTuple):
    """delta = P(a > b) - P(a < b), from -1 (a is always smaller) to 1, with a bootstrap interval and a p-value."""

    delta: float
    low: float
    high: float
    p: float  # two-sided Mann-Whitney U


class Spread(NamedTuple):
    """The middle of a sample and its middle half."""

    median: float
    low: float  # lower quartile
    high: float  # upper quartile

    @property
    def range(self) -> float:
        """The inter-quartile range."""
        return self.high - self.low


def spread(sample: Float[np.ndarray, " n"]) -> Spread:
    """Median and quartiles."""
    low, median, high = np.quantile(_finite("sample", sample), [0.25, 0.5, 0.75])
    return Spread(float(median), float(low), float(high))


def cliffs_delta(a: Float[np.ndarray, " n"], b: Float[np.ndarray, " m"]) -> float:
    """delta = 2 U/(n m) - 1, U the number of pairs with a > b, ties counting half."""
    a, b = _finite("a", a), _finite("b", b)
    ordered = np.sort(b)
    below, up_to = np.searchsorted(ordered, a, "left"), np.searchsorted(ordered, a, "right")
    return float((below.sum() + up_to.sum()) / (a.size * b.size) - 1.0)


def effect_size(
    a: Float[np.ndarray, " n"],
    b: Float[np.ndarray, " m"],
    *,
    paired: bool = False,
    resamples: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> EffectSize:
    """Cliff's delta of a against b, its percentile bootstrap interval, and the Mann-Whitney p-value.

    With `paired` the i-th entries belong together (the same weather) and are drawn together. A resample only counts how
    often each entry is drawn, c, so its delta is c_a^T D c_b / (n m) with D = sign(a_i - b_j).
    """
    a, b = _finite("a", a), _finite("b", b)
    if paired and a.size != b.size:
        raise ValueError(f"a has {a.size} entries and b {b.size}: paired samples are equally long.")
    if resamples < 1 or not 0 < level < 1:
        raise ValueError(f"resamples = {resamples}, level = {level}: at least 1, and a number between 0 and 1.")
    rng = np.random.default_rng(seed)
    above = np.sign(a[:, None] - b[None]).astype(np.float32)  # -1, 0 and 1 lose nothing
    often_a = rng.multinomial(a.size, np.full(a.size, 1 / a.size), resamples)
    often_b = often_a if paired else rng.multinomial(b.size, np.full(b.size, 1 / b.size), resamples)
    rows = often_a.astype(np.float32) @ above  # whole numbers, far below where float32 would round
    deltas = np.einsum("rj,rj->r", rows.astype(float), often_b.astype(float)) / (a.size * b.size)
    low, high = np.quantile(deltas, [(1 - level) / 2, (1 + level) / 2])
    p = float(mannwhitneyu(a, b, alternative="two-sided").pvalue)
    return EffectSize(cliffs_delta(a, b), float(low), float(high), p)


def _finite(name: str, sample: ArrayLike) -> Float[np.ndarray, " n"]:
    values = np.asarray(sample, dtype=float)
    if values.ndim != 1 or values.size == 0 or np.any(np.isnan(values)):
        raise ValueError(f"{name} has shape {values.shape}: pass one row of numbers, without NaN.")
    return values


__all__ = ["EffectSize", "Spread", "cliffs_delta", "effect_size", "spread"]
