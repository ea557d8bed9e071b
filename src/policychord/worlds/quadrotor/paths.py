"""Reference paths for a planar drone: where it should be at every control step, and how fast."""

from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

PathName = Literal["lemniscate", "circle", "square", "hover"]
Line = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # x, vx, z, vz over time

HEIGHT = 1.0  # m, where all paths begin


def path(
    name: str = "lemniscate", *, steps: int = 300, dt: float = 0.02, scale: float = 0.75, period: float = 6.0
) -> Float[np.ndarray, "sample 6"]:
    """steps + 1 rows (x, vx, z, vz, pitch, pitch rate), the last two zero; `scale` s in metres, `period` in seconds.

    lemniscate: x = s sin wt, z = 1 + s sin wt cos wt. circle: x = s/2 sin wt, z = 1 + s/2 (1 - cos wt), of diameter s.
    square: sides of length s, once around in a period. hover: stay at (0, 1). All begin there.
    """
    if name not in get_args(PathName):
        raise ValueError(f"path = {name!r}: use one of {', '.join(map(repr, get_args(PathName)))}.")
    for argument, value in (("scale", scale), ("period", period), ("dt", dt)):
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{argument} = {value!r}: pass a positive number.")
    if not steps >= 1:
        raise ValueError(f"steps = {steps!r}: pass a whole number of at least 1.")
    t = dt * np.arange(steps + 1)
    rows = np.zeros((steps + 1, 6))
    rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3] = _SHAPES[name](t, scale, 2 * np.pi / period)
    rows[:, 2] += HEIGHT
    return rows


def _lemniscate(t: np.ndarray, s: float, w: float) -> Line:
    return s * np.sin(w * t), s * w * np.cos(w * t), s * np.sin(w * t) * np.cos(w * t), s * w * np.cos(2 * w * t)


def _circle(t: np.ndarray, s: float, w: float) -> Line:
    r = s / 2
    return r * np.sin(w * t), r * w * np.cos(w * t), r * (1 - np.cos(w * t)), r * w * np.sin(w * t)


def _square(t: np.ndarray, s: float, w: float) -> Line:
    turn = (w * t / (2 * np.pi)) % 1.0
    side, along = np.divmod(4 * turn, 1.0)
    pace = 2 * s * w / np.pi  # four sides in a period
    corner, heading = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]), np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
    side = side.astype(int)
    place = s * (corner[side] + along[:, None] * heading[side])
    return place[:, 0], pace * heading[side, 0], place[:, 1], pace * heading[side, 1]


def _hover(t: np.ndarray, s: float, w: float) -> Line:
    return (np.zeros_like(t),) * 4


_SHAPES = {"lemniscate": _lemniscate, "circle": _circle, "square": _square, "hover": _hover}
