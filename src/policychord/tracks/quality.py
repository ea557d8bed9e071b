"""What is suspicious in tracks: jumps, exchanged identities, frames that repeat, two individuals in one place.

A position is predicted by going straight on from the two before it. It is a jump if it lies much farther from that
than nine of ten positions do. Two individuals that jump at once, each to where the other one was expected, have most
likely exchanged their identities.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

USUAL = 0.9  # quantile of the deviations that a jump is compared with
SWAPPED = 0.5  # of the deviation that is left if both identities are exchanged


class Suspicions(NamedTuple):
    """Counts over all trials, and the share of positions that are left out for them."""

    jumps: int = 0  # positions that no motion explains; those of exchanges are among them
    swaps: int = 0  # pairs
    repeated: int = 0  # frames in which everybody stays exactly where they were
    merged: int = 0  # positions shared with another individual
    positions: int = 0

    @property
    def share(self) -> float:
        """Of the positions: jumps."""
        return self.jumps / max(self.positions, 1)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for a person."""
        notes = []
        if self.jumps:
            pairs = f", {self.swaps:,} pairs of them exchanged identities" if self.swaps else ""
            notes.append(f"{self.jumps:,} positions ({100 * self.share:.2g}%) are jumps that no motion explains"
                         f"{pairs}: tracks are cut there (--jump 0 keeps them).")  # fmt: skip
        if self.repeated:
            notes.append(f"{self.repeated:,} frames repeat the one before: the frame rate may be lower than it says.")
        if self.merged:
            notes.append(f"{self.merged:,} positions are shared by two individuals: detections may be merged.")
        return tuple(notes)


def suspect(
    positions: list[Float[np.ndarray, "frame id 2"]], jump: float
) -> tuple[list[Bool[np.ndarray, "frame id"]], Suspicions]:
    """(which positions of each trial are jumps, what was counted); a jump is `jump` usual deviations or more.

    With `jump` = 0 nothing is one.
    """
    off = [_deviation(position) for position in positions]
    known = np.concatenate([part[np.isfinite(part)] for part in off] or [np.zeros(0)])
    usual = float(np.quantile(known, USUAL)) if len(known) else 0.0
    with np.errstate(invalid="ignore"):
        bad = [part > jump * usual if jump and usual else np.zeros(part.shape, bool) for part in off]
    swaps, repeated, merged = 0, 0, 0
    for position, part, distance in zip(positions, bad, off, strict=True):
        swaps += _swaps(position, part, distance)
        there = np.isfinite(position[..., 0])
        still = np.where(there[1:] & there[:-1], (np.diff(position, axis=0) == 0).all(axis=-1), True)
        repeated += int((still.all(axis=1) & (there[1:] & there[:-1]).any(axis=1)).sum())
        merged += _merged(position)
    count = sum(int(np.isfinite(position[..., 0]).sum()) for position in positions)
    return bad, Suspicions(sum(int(part.sum()) for part in bad), swaps, repeated, merged, count)


def _expected(position: np.ndarray) -> np.ndarray:
    """Straight on from the two frames before; NaN where one of them is missing."""
    ahead = np.full_like(position, np.nan)
    ahead[2:] = 2 * position[1:-1] - position[:-2]
    return ahead


def _deviation(position: np.ndarray) -> np.ndarray:
    return np.linalg.norm(position - _expected(position), axis=-1)


def _swaps(position: np.ndarray, bad: np.ndarray, off: np.ndarray) -> int:
    """Pairs that jump in the same frame, each to where the other was expected."""
    count, expected = 0, _expected(position)
    for frame in np.flatnonzero(bad.sum(axis=1) > 1):
        who = np.flatnonzero(bad[frame])
        cross = np.linalg.norm(position[frame, who][:, None] - expected[frame, who][None], axis=-1)
        both = cross + cross.T
        own = off[frame, who][:, None] + off[frame, who][None]
        count += int(np.triu(both < SWAPPED * own, 1).sum())
    return count


def _merged(position: np.ndarray) -> int:
    """Positions that another individual has in the same frame."""
    count = 0
    for places in position:
        there = places[np.isfinite(places[:, 0])]
        count += len(there) - len(np.unique(there, axis=0))
    return count
