"""What the compiled and the JAX implementation share: the numbers of the method, its outcomes, its certificate."""

import math
from enum import IntEnum
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from .._types import Array, Scalars, Weights, namespace

UNIT_ROUNDOFF = 2.0**-53

# What the certificate takes for granted: exp, expm1, log and log1p are right to five roundings (two and a half units in
# the last place), and a handful of other operations surround each of them.
FUNCTION_ROUNDING = 12.0
LARGEST_EXPONENT = 600.0  # of e^x where the gap is computed from e^x - 1 - x
# Mixtures and weights below their floors change the energy by less than this: 1e-261 of weight at a cost of 1e12, and
# 1e-300 for each action whose probability is replaced by the tangent of p ln p.
NEGLIGIBLE_ENERGY = 1e-240
# Columns that miss one by more than this were not made by `problem`.
COLUMN_TOLERANCE = 1e-4

# Weights live in log space above this floor. Mixtures have a floor of their own, far enough below that a primitive
# resting on the first is still heard in the rows that it alone supports: at a weight of exactly zero no certificate
# could be given.
LOG_FLOOR = -600.0
RESTING = math.exp(LOG_FLOOR + 10.0)  # a weight up to this counts as resting on the floor
MIXTURE_FLOOR = 1e-300

ARMIJO = 1e-4  # share of the predicted decrease that a Newton step must deliver
GAP_FALL = 0.9  # where rounding hides the energy, an accepted step brings the gap below this share
BACKTRACK = 0.3  # a rejected step is shortened by this factor
REJECTIONS_BEFORE_MIRROR = 8  # then take the step that cannot fail
COOLING = 0.3  # factor between the temperatures of the homotopy
GENTLE_COOLING = 0.7  # the same in the second attempt

# The gap does not see primitives whose weight is negligible. A few more passes, at most, bring their
# log-weights to rest as well, because somebody may take the logarithm of what they alone support.
SETTLED = 1e-3
FINISHING_PASSES = 2

# Up to this many primitives the Newton system is formed and factorised, beyond it never.
DENSE_UP_TO = 40
CG_FORCING = 0.3
# Conjugate gradients do not see a primitive of a negligible weight: where the others are at rest up to rounding, its
# part of the residual is smaller than theirs. Up to this weight a primitive that wants to grow by more than a factor e
# takes the step of its own diagonal.
NEGLIGIBLE = UNIT_ROUNDOFF
CG_REDUCTION = 1e-12  # of the residual, where a derivative is solved for

MAX_PASSES = 10_000
RETRY_AFTER = 5000  # passes of the first attempt; the second one starts from the prior

# Rounding is the limit where it makes up this share of the gap; after so many passes in a row the search ends there.
ROUNDING_SHARE = 0.5
HIDDEN_PASSES = 100


class Outcome(IntEnum):
    """How a search for the optimal weights ended: an integer, so that it passes through `jit` and `vmap`."""

    sentence: str

    CONVERGED = 0, "The weights are optimal to the tolerance."
    NOT_CONVERGED = 1, "The search stalled before it reached the tolerance."
    ROUNDING_LIMIT = 2, "Rounding in float64 hides whether better weights exist."
    BAD_INPUT = 3, "Something given is not a number, or is outside its allowed range."
    NOT_OPTIMISED = 4, "The weights were given by another rule; the optimum was not searched for."
    NOT_CONVEX = 5, "The complexity is not convex, so nothing is proved about the weights."
    NOT_SMOOTH = 6, "The complexity has a kink here, and its gradient on one side proves no more than this gap."
    LOCAL = 7, "No small step improves the weights; the complexity is not convex, so others may be better."
    NOT_INTEGRATED = 8, "The gate's dynamics could not be followed for their whole duration."
    CYCLES = 9, "The players' weights go round and do not settle."

    def __new__(cls, number: int, sentence: str = "") -> "Outcome":
        member = int.__new__(cls, number)
        member._value_ = number
        member.sentence = sentence
        return member


def typical_rounding(d: int) -> float:
    """Usual rounding of a sum over d actions: it decides which steps the search takes and proves nothing."""
    return UNIT_ROUNDOFF * (8.0 + math.sqrt(d))


# --------------------------------------------------------------- the certificate of a gradient, rounding included
# Let g be the gradient of V as it was computed, e_a a bound on the rounding of g_a, m = w.g and x = (m - g)/T.
#
#     gap(g) = T KL(w || S) = T ln sum_a w_a e^{x_a} = T log1p( sum_a w_a (e^{x_a} - 1 - x_a) ),  because w.x = 0
#     gap(exact g) <= gap(g) + min( |w - S|.e + V_e/(2T), 2 max e ),   V_e the largest variance of e on the way
#
# Nothing here depends on the order in which sums are taken, so that it holds for every route and device. The elementary
# functions are assumed to be right to `FUNCTION_ROUNDING`. The proof is in docs/explanation/mathematics.md.


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
