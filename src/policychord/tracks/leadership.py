"""Leadership: whose heading comes first.

Of two individuals, C(tau) is the mean of the cosine between the heading of one now and of the other tau later. The
delay at which it is largest says who follows whom; the mean of an individual's delays to all others ranks it.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .motion import Motion

LONGEST = 2.0  # s: the longest delay that is tried
TOGETHER = 5.0  # s that two must be followed together, at least
MOST = 60  # individuals of a trial, those followed for longest
ALIKE = 0.5  # the least correlation at the best delay for which a delay means anything


class Leadership(NamedTuple):
    """Delays in seconds: positive where the row's heading comes before the column's. NaN where it means nothing."""

    trial: str
    ids: tuple[str, ...]
    delay: Float[np.ndarray, "id id"]
    lead: Float[np.ndarray, " id"]  # mean of an individual's delays: positive for leaders


def leadership(motion: Motion, trial: int = 0) -> Leadership:
    """Who leads in one trial."""
    one = motion.trials[trial]
    there = np.isfinite(one.velocity).all(axis=-1)
    chosen = np.sort(np.argsort(-there.sum(axis=0), kind="stable")[:MOST])
    speed = np.linalg.norm(one.velocity, axis=-1)
    heading = np.where((there & (speed > 0))[..., None], one.velocity / np.where(speed > 0, speed, 1.0)[..., None], 0.0)
    heading, followed = heading[:, chosen], (there & (speed > 0))[:, chosen].astype(float)
    most = min(round(LONGEST * motion.rate), max(len(heading) // 3, 1))
    shifts = np.arange(-most, most + 1)
    height = np.stack([_correlation(heading, followed, int(shift), TOGETHER * motion.rate) for shift in shifts])
    # of equally good delays the shortest counts
    order = np.argsort(np.abs(shifts), kind="stable")
    filled = np.where(np.isfinite(height), height, -np.inf)[order]
    best, top = shifts[order][filled.argmax(axis=0)], filled.max(axis=0)
    delay = np.where((top >= ALIKE) & (np.abs(best) < most), best / motion.rate, np.nan)
    np.fill_diagonal(delay, np.nan)
    count = np.isfinite(delay).sum(axis=1)
    lead = np.where(count > 0, np.nansum(delay, axis=1) / np.maximum(count, 1), np.nan)
    return Leadership(one.name, tuple(one.ids[i] for i in chosen), delay, lead)


def _correlation(heading: np.ndarray, followed: np.ndarray, shift: int, least: float) -> np.ndarray:
    """C of all pairs at one shift: the column's heading is taken `shift` frames later than the row's."""
    now = slice(max(-shift, 0), len(heading) - max(shift, 0))
    later = slice(max(shift, 0), len(heading) - max(-shift, 0))
    count = followed[now].T @ followed[later]
    total = sum(heading[now, :, axis].T @ heading[later, :, axis] for axis in range(2))
    return np.where(count >= least, total / np.maximum(count, 1), np.nan)
