"""Stand-ins for the studies that lend their gating problems: problems in their likeness, without an hour of flying."""

import numpy as np
from pydantic import BaseModel

from policychord.core.objective import problem
from policychord_paper.commands import reproduce
from policychord_paper.reproduce import Chosen
from policychord_paper.study import Recording, Study

COUNT = 48  # of each study


class Told(BaseModel):
    """A lender needs settings, which name its files."""

    seed: int = 0


def flock_problems(seed, count):
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
    return problem(log_pi=_log_gaussians(actions, means, 0.1), action_cost=cost, eps=0.5)


def bandit_problems(seed, count):
    """A person's choice between two arms: exploit, seek uncertainty, avoid risk."""
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


def quadrotor_problems(seed, count):
    """A drone's choice of two thrusts between two controllers, judged by the state one step ahead."""
    rng = np.random.default_rng(seed)
    low, high, hover = 0.056323, 0.296683, 0.1323
    axis = np.linspace(low, high, 30)
    actions = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    means = np.clip(rng.normal(hover, 0.03, (count, 2, 2)), low, high)
    climb, turn = rng.normal(scale=0.5, size=(count, 1)), rng.normal(scale=2.0, size=(count, 1))
    lift, torque = (actions.sum(-1) - 2 * hover) / 0.027, (actions[:, 1] - actions[:, 0]) * 0.02807 / 1.4e-5
    cost = 0.1 * (climb + 0.02 * lift) ** 2 + 0.1 * (turn + 0.02 * torque) ** 2 + 0.1 * (actions**2).sum(-1)
    return problem(log_pi=_log_gaussians(actions, means, 1e-4), action_cost=cost, eps=0.05)


def _log_gaussians(actions, means, variance):
    """ln of Gaussians around `means` (..., n, 2), normalised over the actions: (..., d, n)."""
    log_pi = -((actions[:, None, :] - means[..., None, :, :]) ** 2).sum(-1) / (2 * variance)
    top = log_pi.max(axis=-2, keepdims=True)
    return log_pi - top - np.log(np.exp(log_pi - top).sum(axis=-2, keepdims=True))


STAND_INS = {"flock": flock_problems, "bandit": bandit_problems, "quadrotor": quadrotor_problems}


def draw():
    return {name: make(0, COUNT) for name, make in STAND_INS.items()}


def excluding(batch):
    """A primitive that excludes an action, as one of Experiment 1 does."""
    pi = batch.pi.copy()
    pi[0, :, 1] = [1.0, 0.0]
    return batch._replace(pi=pi)


def problems(settings, results):
    drawn = results["draw"]
    return drawn | {"bandit": excluding(drawn["bandit"])}


def lenders(*given):
    """One study that lends for all three."""
    study = Study(
        name="lender", title="", introduction="", settings=Told, experiments=lambda settings: {"draw": draw},
        evidence=lambda settings, results: None, claims=(), figures={}, datasets=lambda settings, evidence: {},
        recording=Recording(lambda settings: ["draw"], problems),
    )  # fmt: skip
    return [Chosen(study, Told())]


def lend():
    """The command asks these from now on."""
    reproduce._lenders = lenders
