"""The parts that must keep the contracts. A new primitive, model or environment gets a line in one of these tables."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from policychord import Composer
from policychord.actions import AbstractActions, Finite, Grid
from policychord.models import BlackBox, Cost, GaussianTarget, Reference, Scaled, Sum, Value
from policychord.primitives import Categorical, Gaussian, Policy, Table
from policychord.tracks.gating import HeavyTailed
from policychord.worlds import AbstractEnv, Bandit, Crazyflie, Flock, Pendulum, Vicsek, in_ring
from policychord.worlds.quadrotor.physics import Quadrotor


class Case(NamedTuple):
    part: Any
    actions: AbstractActions


BOX = Grid([-1.0, -2.0], [1.0, 2.0], [7, 9])
DISC = Grid([-1.0, -1.0], [1.0, 1.0], 9, radius=1.0)
BALL = Grid([-1.0, -1.0, -1.0], [1.0, 1.0, 1.0], 5, radius=1.0)
LINE = Grid(-2.0, 2.0, 41)
LABELS = Finite(4)
VECTORS = Finite([[0.0, 1.0], [1.0, 0.0], [-0.5, -0.5]])

# Every primitive and every model meets all of these: at rest, inside, on the border, at a corner, and far outside.
STATES = np.array(
    [[0.0, 0.0], [0.3, -0.2], [1.0, 0.0], [-1.0, 2.0], [1e-300, -0.0], [50.0, -3.0], [1e6, -1e6], [-1e6, 0.1]]
)
TIMES = (0, 7)


def follow(x, k):
    return x


def rise(x, k):
    return jnp.array([x[0], -x[1], 0.1 * k])


def first(x, k):
    return x[:1]


def side(x, k):
    return jnp.where(x[0] > 0.5, 1, 0)


def moved(x, u, k):
    return 0.9 * x + 0.1 * jnp.sum(u)


TILTED = [[0.05, 0.02], [0.02, 0.04]]
ROWS = [[0.1, 0.2, 0.3, 0.4], [1.0, 0.0, 0.0, 0.0]]
HABIT = Table([0.1, 0.2, 0.7, 0.0])

PRIMITIVES: dict[str, Case] = {
    "gaussian on a box": Case(Gaussian(follow, [0.2, 0.4]), BOX),
    "gaussian on a box, narrow": Case(Gaussian(follow, 0.004), BOX),
    "gaussian on a box, tail": Case(Gaussian(follow, 0.1, outside="tail"), BOX),
    "gaussian on a box, tilted": Case(Gaussian(follow, covariance=TILTED), BOX),
    "gaussian on a line": Case(Gaussian(first, 0.3), LINE),
    "gaussian on a disc": Case(Gaussian(follow, 0.2), DISC),
    "gaussian on a disc, narrow": Case(Gaussian(follow, 0.011), DISC),
    "gaussian on a disc, tail": Case(Gaussian(follow, 0.2, outside="tail"), DISC),
    "gaussian on a disc, tilted": Case(Gaussian(follow, covariance=TILTED), DISC),
    "gaussian in a ball": Case(Gaussian(rise, [0.2, 0.3, 0.4]), BALL),
    "gaussian on vectors": Case(Gaussian(follow, 0.3), VECTORS),
    "gaussian, constant": Case(Gaussian([0.2, 5.0], 0.3), BOX),
    "table, one row": Case(HABIT, LABELS),
    "table, a row for each side": Case(Table(ROWS, row=side), LABELS),
    "categorical": Case(Categorical(lambda x, k: jnp.array([0.0, -jnp.inf, x[0], x[1] - k])), LABELS),
    "policy on a box": Case(Policy(lambda seen: -0.5 * seen, 0.2), BOX),
    "policy on labels": Case(Policy(lambda seen: int(seen[0] > 0), 0.1), LABELS),
    "heavy tails": Case(HeavyTailed(follow, lambda x, k: jnp.array([0.2, 0.4]), 3.0, jnp.zeros(BOX.size)), BOX),
    "composer": Case(
        Composer([Gaussian(follow, 0.3), Gaussian([0.0, 0.0], 0.3)], Cost(lambda x, u, k: u @ u), BOX, 0.1), BOX
    ),
}

MODELS: dict[str, Case] = {
    "cost of actions": Case(Cost(lambda x, u, k: jnp.sum(u**2) + 0.1 * k), BOX),
    "cost of labels": Case(Cost([1.0, 2.0, 3.0, 4.0]), LABELS),
    "cost of states": Case(Cost(predict=moved, state_cost=lambda x, k: jnp.sum(jnp.abs(x))), BOX),
    "cost, matrix": Case(Cost(predict=moved, state_cost=np.diag([1.0, 2.0]), target=[1.0, 0.0]), DISC),
    "cost to go": Case(Cost(lambda x, u, k: u[0] ** 2, predict=moved, cost_to_go=np.eye(2)), BOX),
    "cost in numpy": Case(Cost(BlackBox(lambda x, u, k: np.sum(u**2, axis=-1) + 0.1 * k)), BOX),
    "value of states": Case(Cost(predict=moved, cost_to_go=Value(lambda x: -np.sum(np.abs(x), axis=-1))), BOX),
    "scaled": Case(Scaled(Cost(lambda x, u, k: jnp.sum(u**2)), 5.0), BOX),
    "value of actions": Case(Cost(Value(lambda x, u, k: -np.sum((x - u) ** 2, axis=-1))), BOX),
    "gaussian target": Case(GaussianTarget(moved, [0.0, 1.0], 0.1, TILTED), BOX),
    "gaussian target, as wide": Case(GaussianTarget(moved, lambda x, k: 0.5 * x, [0.1, 0.2]), DISC),
    "reference": Case(Reference(HABIT), LABELS),
    "reference, gaussian": Case(Reference(Gaussian(follow, 0.05)), BOX),
    "sum": Case(Sum(goal=Cost(predict=moved, cost_to_go=np.eye(2)), calm=Cost(lambda x, u, k: u @ u)), BOX),
}

ENVS: dict[str, AbstractEnv] = {
    "bandit": Bandit(),
    "bandit, a known arm": Bandit([0.0, 100.0, 4.0], noise=1.0),
    "pendulum": Pendulum(),
    "quadrotor": Quadrotor(impulse=1.0),
    "pendulum, heavy": Pendulum(mass=3.0, largest_torque=20.0),
    "crazyflie": Crazyflie(),
    "flock": Flock(12),
    "flock, found by cells": Flock(12, search="cells", crowd=12),
    "flock, others follow": Flock(8, agents=3, follower=Vicsek(2.0, 0.5, 1.0), start=in_ring()),
}
