"""Pushes: every drone's velocity jumps by the same amount at the same moment. They are part of a flight."""

import math
import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

FASTEST = 4.0  # m/s, of one push
MOST = 40  # in one flight

_NUMBER = r"-?\d{1,3}(?:\.\d{1,4})?"
_WRITTEN = re.compile(rf"(\d{{1,5}})\*({_NUMBER})\*({_NUMBER})")


class Push(NamedTuple):
    """A jump of the velocity, just before decision k."""

    k: int
    x: float  # m/s, to the right
    z: float  # m/s, upwards


def push(k: int, x: Any, z: Any) -> Push:
    """A push that has been looked at: what a page says may be anything."""
    for axis, value in (("x", x), ("z", z)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"push {axis} = {str(value)[:60]}: pass a velocity in m/s.")
    if math.hypot(x, z) > FASTEST + 0.01:
        raise ValueError(f"push = {math.hypot(x, z):.3g} m/s: at most {FASTEST:g} m/s.")
    return Push(k, round(float(x), 3), round(float(z), 3))


def written(pushes: Sequence[Push]) -> str:
    """Pushes in characters that an address holds as they are: 61*0.8*-0.3_130*0*1.2."""
    return "_".join(f"{one.k}*{one.x:g}*{one.z:g}" for one in pushes)


def read(text: Any) -> tuple[Push, ...]:
    """What `written` wrote."""
    if text == "":
        return ()
    found = [_WRITTEN.fullmatch(part) for part in str(text)[:2000].split("_")]
    if not all(found):
        raise ValueError(f"pushes = {str(text)[:60]}: write them as decision*x*z, joined by _, with x and z in m/s.")
    return allowed([push(int(one[1]), float(one[2]), float(one[3])) for one in found if one])


def allowed(pushes: Sequence[Push]) -> tuple[Push, ...]:
    """Pushes in the order in which they come, if they are not too many."""
    if len(pushes) > MOST:
        raise ValueError(f"{len(pushes)} pushes: at most {MOST} in one flight. Forget them and begin again.")
    return tuple(sorted(pushes, key=lambda one: one.k))


def where_they_part(some: Sequence[Push], others: Sequence[Push]) -> int:
    """The first decision at which one of two different flights is pushed and the other is not."""
    pairs = zip_longest(some, others)
    return next(min(one.k for one in pair if one is not None) for pair in pairs if pair[0] != pair[1])


def kicks(pushes: Sequence[Push], steps: int) -> Float[np.ndarray, "step 2"]:
    """What is added to the velocity before each decision."""
    table = np.zeros((steps, 2))
    for one in pushes:
        if one.k < steps:
            table[one.k] += one.x, one.z
    return table
