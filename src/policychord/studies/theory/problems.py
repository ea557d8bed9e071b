"""Gating problems to try the theory on: random ones, and ones as they occur in the paper's three studies."""

import numpy as np

from ...core.objective import Problem, problem

# Few shapes, many problems: every shape costs a compilation.
SHAPES = ((2, 3), (12, 3), (40, 6))  # (actions, primitives)


def random_problems(seed: int, count: int) -> list[Problem]:
    """Batches of random problems, one batch a shape: peaked and flat primitives, hot and cold, half with a prior."""
    rng = np.random.default_rng(seed)
    share = -(-count // len(SHAPES))
    return [_random_batch(rng, share, d, n) for d, n in SHAPES]


def _random_batch(rng: np.random.Generator, batch: int, d: int, n: int) -> Problem:
    spread = 10 ** rng.uniform(-0.5, 1.0, (batch, 1, 1))
    # a floor under the primitives: the paper assumes full support
    pi = rng.gamma(spread, size=(batch, d, n)) + 1e-3
    uniform, prior = np.full((batch, n), 1.0 / n), rng.dirichlet(np.full(n, 2.0), batch)
    return problem(
        pi=pi / pi.sum(axis=1, keepdims=True),
        action_cost=rng.normal(scale=2.0, size=(batch, d)),
        eps=10 ** rng.uniform(-1.5, 0.5, batch),
        prior=np.where(rng.random((batch, 1)) < 0.5, uniform, prior),
    )


def random_weights(seed: int, like: Problem) -> np.ndarray:
    """Random points of the simplex, one for each problem."""
    batch, n = like.log_prior.shape
    return np.random.default_rng(seed).dirichlet(np.ones(n), batch)


def flock_problems(seed: int, count: int) -> Problem:
    """A boid's choice of acceleration: three social forces on the disc |u| <= 3, aligning with its neighbours."""
    rng = np.random.default_rng(seed)
    axis = np.linspace(-3.0, 3.0, 30)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    actions = grid[np.linalg.norm(grid, axis=1) <= 3.0]
    angle = rng.uniform(0, 2 * np.pi, (count, 3))
    length = np.stack([rng.uniform(0, 3, count), np.full(count, 3.0), rng.uniform(0, 3, count)], -1)
    means = length[..., None] * np.stack([np.cos(angle), np.sin(angle)], -1)
    velocity, target = rng.uniform(-0.7, 0.7, (2, count, 1, 2))
    moved = velocity + 0.05 * actions
    moved /= np.maximum(1.0, np.linalg.norm(moved, axis=-1, keepdims=True))
    cost = 50.0 * ((moved - target) ** 2).sum(-1)
    return problem(log_pi=_gaussians(actions, means, 0.1), action_cost=cost, eps=0.5)


def bandit_problems(seed: int, count: int) -> Problem:
    """A person's choice between two arms: exploit, seek uncertainty, avoid risk; eps = .01."""
    rng = np.random.default_rng(seed)
    value, variance = rng.normal(scale=6.0, size=count), rng.uniform(0.5, 60.0, (2, count))
    exploit = np.where(value > 0, 0.99, 0.01)
    uncertain = variance[0] / variance.sum(0)
    averse = 1.0 / (1.0 + np.exp(variance[0] - variance[1]))
    first = np.stack([exploit, uncertain, averse], -1)
    drift = value / np.sqrt(variance.sum(0)) + 0.1 * (np.sqrt(variance[0]) - np.sqrt(variance[1]))
    chosen = 1.0 / (1.0 + np.exp(-1.6 * drift))
    model = np.stack([chosen, 1.0 - chosen], -1)
    return problem(pi=np.stack([first, 1.0 - first], -2), action_cost=-np.log(model), eps=0.01)


def quadrotor_problems(seed: int, count: int) -> Problem:
    """A drone's choice of two thrusts between two controllers, judged by the state one step ahead; eps = .05."""
    rng = np.random.default_rng(seed)
    low, high, hover = 0.056323, 0.296683, 0.1323
    axis = np.linspace(low, high, 30)
    actions = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    means = np.clip(rng.normal(hover, 0.03, (count, 2, 2)), low, high)
    climb, turn = rng.normal(scale=0.5, size=(count, 1)), rng.normal(scale=2.0, size=(count, 1))
    lift, torque = (actions.sum(-1) - 2 * hover) / 0.027, (actions[:, 1] - actions[:, 0]) * 0.02807 / 1.4e-5
    cost = 1.0 * (climb + 0.02 * lift) ** 2 + 0.1 * (turn + 0.02 * torque) ** 2 + 0.1 * (actions**2).sum(-1)
    return problem(log_pi=_gaussians(actions, means, 1e-4), action_cost=cost, eps=0.05)


STUDIES = {"flock": flock_problems, "bandit": bandit_problems, "quadrotor": quadrotor_problems}


def _gaussians(actions: np.ndarray, means: np.ndarray, variance: float) -> np.ndarray:
    """ln of Gaussians around `means` (..., n, 2), normalised over the actions: (..., d, n)."""
    log_pi = -((actions[:, None, :] - means[..., None, :, :]) ** 2).sum(-1) / (2 * variance)
    top = log_pi.max(axis=-2, keepdims=True)
    return log_pi - top - np.log(np.exp(log_pi - top).sum(axis=-2, keepdims=True))
