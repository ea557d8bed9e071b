"""The certificate of a gradient, rounding included; the proof is in docs/explanation/mathematics.md.

Let g be the gradient of V as it was computed, e_a a bound on the rounding of g_a, m = w.g and x = (m - g)/T.

    gap(g) = T KL(w || S) = T ln sum_a w_a e^{x_a} = T log1p( sum_a w_a (e^{x_a} - 1 - x_a) ),  because w.x = 0
    gap(exact g) <= gap(g) + min( |w - S|.e + V_e/(2T), 2 max e ),   V_e the largest variance of e on the way

Nothing here depends on the order in which sums are taken, so that it holds for every route and device. The elementary
functions are assumed to be right to `FUNCTION_ROUNDING`.
"""

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from .._types import Array, Scalars, Weights, namespace
from ._method import FUNCTION_ROUNDING, LARGEST_EXPONENT, NEGLIGIBLE_ENERGY, UNIT_ROUNDOFF


class _Gap(NamedTuple):
    """A bound on V(w) - V*, how much of such a number may be rounding, and how far S is from w."""

    gap: Scalars
    floor: Scalars  # with the largest rounding for all; that in the gap is at most as large
    log_ratio: Weights  # x = ln S/w, up to rounding; ln S where w = 0


def relative_rounding(d: int, n: int) -> float:
    """Roundings of a number that is a sum over actions of sums over primitives, and of the mean over the weights."""
    return (2.0 * (d + n) + FUNCTION_ROUNDING) * UNIT_ROUNDOFF


def gradient_rounding(
    relative: Any, size: Any, entropy: Weights, temperature: Array, log_weights: Weights, log_prior: Weights
) -> Weights:
    """e_a, how far an entry of the computed gradient may be from the exact one, up to a constant that all share.

    `size` holds the magnitudes of what is linear, 1 + |centre| + Pi^T |s - centre|, `relative` their rounding.
    """
    xp = namespace(size, entropy, temperature, log_weights, log_prior)
    own = temperature * (1.0 + xp.abs(log_weights) + xp.abs(log_prior))
    # weights are exponentials: rounding of the largest |ln w| is in every mixture
    mixed = xp.max(xp.abs(log_weights), axis=-1, keepdims=True)
    n = log_weights.shape[-1]
    return relative * (size + xp.abs(entropy)) + relative_rounding(0, n) * own + UNIT_ROUNDOFF * mixed


def bounded_gap(weights: Weights, log_weights: Weights, g: Weights, error: Weights, temperature: Array) -> _Gap:
    """The gap at weights (..., n) that sum to one up to rounding; `log_weights` and their part of g are 0 where w is.

    `temperature` has a last axis of length one.
    """
    xp = namespace(weights, g, temperature)
    t, n = temperature[..., 0], weights.shape[-1]
    x = (xp.sum(weights * g, axis=-1, keepdims=True) - g) / temperature
    y = log_weights + x  # ln S, up to normalisation
    heaviest = xp.argmax(y, axis=-1)[..., None]
    top = xp.take_along_axis(y, heaviest, axis=-1)
    response = xp.exp(y - top)
    total = xp.sum(response, axis=-1, keepdims=True)
    moderate = xp.max(x, axis=-1) <= LARGEST_EXPONENT
    small = xp.minimum(x, LARGEST_EXPONENT)
    excess = xp.sum(xp.where(weights > 0, weights * xp.maximum(xp.expm1(small) - small, 0.0), xp.exp(small)), axis=-1)
    exact = t * xp.where(moderate, xp.log1p(excess), (top + xp.log(total))[..., 0])

    noise = xp.max(error, axis=-1)
    first = xp.sum(xp.abs(weights - response / total) * error, axis=-1) + relative_rounding(0, n) * noise
    by_mean = xp.sum(weights * error, axis=-1) * xp.minimum(excess, 1.0)
    variance = _variance(xp, y - top, error, heaviest, temperature)

    def floor_with(variance: Scalars) -> Scalars:
        sharp = xp.minimum(first + variance / (2.0 * t), 2.0 * noise) + by_mean
        return xp.where(moderate, sharp, 4.0 * noise) + NEGLIGIBLE_ENERGY

    floor = floor_with(noise**2)
    return _Gap(exact * gap_rounding(n) + floor_with(xp.minimum(noise**2, variance)), floor, x)


def _variance(xp: ModuleType, log_share: Weights, error: Weights, heaviest: Any, temperature: Array) -> Scalars:
    """The largest variance of the rounding under any response to a gradient within it: nothing at a clear vertex."""
    apart = error + xp.take_along_axis(error, heaviest, axis=-1)
    share = xp.exp(xp.minimum(log_share + 2.0 * apart / temperature, 0.0))
    others = np.arange(error.shape[-1]) != heaviest
    return xp.sum(xp.where(others, share * apart**2, 0.0), axis=-1)


def gap_rounding(n: int) -> float:
    """The formula's own rounding: e^x is wrong by x roundings of x, and n terms are added."""
    return 1.0 + (4.0 * (LARGEST_EXPONENT + n) + FUNCTION_ROUNDING) * UNIT_ROUNDOFF
