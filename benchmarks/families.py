"""The five sizes that speed is measured on, from a flock's 30 x 30 grid to 128 primitives."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr


class Arrays(NamedTuple):
    """The keyword arguments of `problem`; the prior is uniform where it is None."""

    pi: np.ndarray
    action_cost: np.ndarray
    eps: np.ndarray
    prior: np.ndarray | None = None


class Size(NamedTuple):
    """A family of problems of one shape, and how many of them a timed batch holds."""

    draw: Callable[[np.random.Generator, int], Arrays]
    batch: int


def grid(low: float, high: float, cells: int = 30) -> np.ndarray:
    """The points of a square grid, one row each."""
    axis = np.linspace(low, high, cells)
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)


def gaussians(points: np.ndarray, means: np.ndarray, sd: float) -> np.ndarray:
    """A column N(mean, sd^2 I) on the points for each of the means (..., n, 2)."""
    distance = sum((points[:, None, k] - means[..., None, :, k]) ** 2 for k in range(2))
    nearest = distance.min(axis=-2, keepdims=True)
    pi = np.exp((nearest - distance) / (2.0 * sd**2))
    return pi / pi.sum(axis=-2, keepdims=True)


def flock_cost(points: np.ndarray, velocity: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """50 |v + u dt - v_bar|^2 with dt = 0.05, for every acceleration u on the grid."""
    return 50.0 * np.sum((velocity[..., None, :] + 0.05 * points - wanted[..., None, :]) ** 2, axis=-1)


def flock(rng: np.random.Generator, batch: int) -> Arrays:
    """A: three Gaussian accelerations and the cost of missing the neighbours' velocity."""
    points = grid(-3.0, 3.0)
    means = rng.uniform(-3.0, 3.0, (batch, 3, 2))
    velocity, wanted = rng.uniform(-0.7, 0.7, (2, batch, 2))
    pi = gaussians(points, means, np.sqrt(0.1))
    return Arrays(pi, flock_cost(points, velocity, wanted), np.full(batch, 0.5))


def quadrotor(rng: np.random.Generator, batch: int) -> Arrays:
    """B: two narrow Gaussians of thrusts, a random quadratic cost, a low temperature."""
    low, high = 0.0563, 0.2967
    points = grid(low, high)
    means = rng.uniform(low, high, (batch, 2, 2))
    offset = points - rng.uniform(low, high, (batch, 1, 2))
    shape = rng.normal(size=(batch, 2, 2)) * 10.0  # thrusts differ by about 0.1, so costs by about 1
    return Arrays(gaussians(points, means, 0.01), np.sum((offset @ shape) ** 2, axis=-1), np.full(batch, 0.05))


def bandit(rng: np.random.Generator, batch: int) -> Arrays:
    """C: three ways to choose between two arms, against the surprise of a fitted chooser."""
    value, doubt = rng.normal(size=(2, batch)) * 2.0
    score = np.stack([value, value / (0.5 + np.abs(doubt)), doubt], axis=-1)
    # in half of the trials one arm is certain, and exploring it or not is a matter of course: a column (1, 0)
    score[:, 2] = np.where(rng.random(batch) < 0.5, 40.0, score[:, 2])
    fitted = score[:, :2].sum(-1)
    cost = -np.stack([log_ndtr(fitted), log_ndtr(-fitted)], axis=-1)
    return Arrays(np.stack([ndtr(score), ndtr(-score)], axis=-2), cost, np.full(batch, 0.01))


def dirichlet(rng: np.random.Generator, batch: int, n: int, d: int) -> Arrays:
    """Primitives drawn evenly from all distributions over d actions, with a normal cost."""
    pi = rng.exponential(size=(batch, d, n))
    pi /= pi.sum(axis=-2, keepdims=True)
    return Arrays(pi, rng.normal(size=(batch, d)), np.full(batch, 0.5))


def medium(rng: np.random.Generator, batch: int) -> Arrays:
    """D: 16 random primitives over 256 actions."""
    return dirichlet(rng, batch, 16, 256)


def large(rng: np.random.Generator, batch: int) -> Arrays:
    """E: 128 random primitives over 4096 actions."""
    return dirichlet(rng, batch, 128, 4096)


SIZES = {
    "A": Size(flock, 200),
    "B": Size(quadrotor, 200),
    "C": Size(bandit, 2000),
    "D": Size(medium, 200),
    "E": Size(large, 8),
}
