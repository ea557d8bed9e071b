"""The arena: found from where a group has been, if that is round, and how near its walls are."""

import numpy as np
from jaxtyping import Float
from scipy.optimize import least_squares

from .motion import Motion

SECTORS = 24
LEAST = 500  # positions from which an arena may be found
UNEVEN = 0.05  # largest standard deviation of the reach over the sectors, in radii
RIM, CROWDED = 0.85, 0.04  # in a round arena, at least this share of the positions lies beyond this share of the radius


def find_arena(motion: Motion) -> tuple[float, ...]:
    """The circle (x, y, radius) that a group fills; nothing if what it fills is not round.

    Tracks without walls reach farther in some directions than in others, and seldom come near their farthest place.
    """
    place = np.concatenate([trial.position.reshape(-1, 2) for trial in motion.trials])
    place = place[np.isfinite(place[:, 0])]
    if len(place) < LEAST:
        return ()
    low, high = np.quantile(place, [0.001, 0.999], axis=0)
    centre, reach = (low + high) / 2, np.zeros(0)
    for _ in range(4):
        offset = place - centre
        sector = ((np.arctan2(offset[:, 1], offset[:, 0]) / (2 * np.pi)) % 1 * SECTORS).astype(int) % SECTORS
        distance = np.linalg.norm(offset, axis=1)
        if len(np.unique(sector)) < SECTORS:
            return ()
        farthest = [np.flatnonzero(sector == s)[np.argmax(distance[sector == s])] for s in range(SECTORS)]
        rim = place[farthest]

        def miss(circle: np.ndarray, rim: np.ndarray = rim) -> np.ndarray:
            return np.linalg.norm(rim - circle[:2], axis=1) - circle[2]

        circle = least_squares(miss, [*centre, distance[farthest].mean()]).x
        centre, reach = circle[:2], miss(circle)
    radius = float(circle[2])
    inside = np.linalg.norm(place - centre, axis=1) / radius
    if reach.std() > UNEVEN * radius or (inside > RIM).mean() < CROWDED:
        return ()
    return float(centre[0]), float(centre[1]), radius


def inward(
    arena: tuple[float, ...], place: Float[np.ndarray, "N 2"]
) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, "N 2"]]:
    """The share of the way from the middle to the nearest wall, from 0 to 1, and the unit vector away from it."""
    if len(arena) == 3:
        offset = place - np.array(arena[:2])
        length = np.linalg.norm(offset, axis=1)
        return np.clip(length / arena[2], 0, 1), -offset / np.maximum(length, 1e-12)[:, None]
    low, high = np.array(arena[:2]), np.array(arena[2:])
    half = (high - low).min() / 2
    gap = np.concatenate([place - low, high - place], axis=1)  # to the left, the lower, the right and the upper wall
    nearest = gap.argmin(axis=1)
    normal = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])[nearest]
    return np.clip(1 - gap.min(axis=1) / half, 0, 1), normal
