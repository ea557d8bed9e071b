"""Small worlds and agents that the tests of the loops share, so that they compile once."""

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from policychord import Composer
from policychord.actions import Finite, Grid
from policychord.models import Cost
from policychord.primitives import Categorical, Gaussian, Table
from policychord.worlds import AbstractEnv, Bandit, Belief, Box, Pendulum, Spaces, Step, Variable

LINE = Grid(-2.0, 2.0, 21)
PENDULUM = Pendulum()


def fall(x, k):
    return -jnp.sign(x.velocity)[None]


def hold(x, k):
    return -jnp.stack([8.0 * jnp.sin(x.angle) + 2.0 * x.velocity])


def ahead(x, u, k):
    return PENDULUM.move(x, u[0])


def tall(x, k):
    return 1 - jnp.cos(x.angle) + 0.05 * x.velocity**2


SWINGER = Composer(
    {"fall": Gaussian(fall, 0.3), "hold": Gaussian(hold, 0.3)}, Cost(predict=ahead, cost_to_go=tall), LINE, 0.1
)

ARMS = Bandit([100.0, 100.0])
CHOOSER = Composer(
    {
        "greedy": Categorical(lambda belief, k: belief.mean / 5),
        "curious": Categorical(lambda belief, k: jnp.sqrt(belief.variance)),
        "habit": Table([0.7, 0.3]),
    },
    Cost(lambda belief, u, k: -belief.mean[u] / 10), Finite(2), 0.05,
)  # fmt: skip


class WalkState(NamedTuple):
    place: jax.Array
    steps: jax.Array


class Walk(AbstractEnv):
    """A random walk that is over at `edge`, and would break if anybody went on from there."""

    edge: float = 2.0

    variables: ClassVar[Mapping[str, Variable]] = {"place": Variable((), "m"), "steps": Variable()}

    def reset(self, key):
        return WalkState(jnp.zeros(()), jnp.zeros((), int))

    def step(self, key, state, action, k):
        place = state.place + action[0] + jax.random.normal(key, dtype=float)
        place = jnp.where(jnp.abs(state.place) >= self.edge, jnp.nan, place)
        return Step(WalkState(place, state.steps + 1), 1.0 + 0.0 * place, jnp.abs(place) >= self.edge)

    def observe(self, state):
        return state.place

    def signals(self, state):
        return state.place[None]

    def spaces(self):
        return Spaces(Box(np.array([-np.inf]), np.array([np.inf])), Box(np.array([-2.0]), np.array([2.0])))


def drift(x, k):
    return 0.1 * jnp.ones(1)


WALKER = Composer(
    {"drift": Gaussian(drift, 0.3), "back": Gaussian([-0.2], 0.3)}, Cost(lambda x, u, k: u[0] ** 2), LINE, 0.1
)
BELIEF = Belief(np.zeros(2), np.full(2, 100.0))
