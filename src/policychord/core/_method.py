"""The numbers of the method, shared by its compiled and its JAX implementation."""

import math
from enum import IntEnum

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
# Conjugate gradients do not hear a primitive of a negligible weight: where the others are at rest up to rounding, its
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

    def __new__(cls, number: int, sentence: str = "") -> "Outcome":
        member = int.__new__(cls, number)
        member._value_ = number
        member.sentence = sentence
        return member


def typical_rounding(d: int) -> float:
    """Usual rounding of a sum over d actions: it decides which steps the search takes and proves nothing."""
    return UNIT_ROUNDOFF * (8.0 + math.sqrt(d))
