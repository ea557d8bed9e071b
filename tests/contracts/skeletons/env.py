"""An environment to copy: `Puck` slides on ice, pushed by the agent and by gusts."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from policychord.worlds import AbstractEnv, Box, Spaces, Step, Variable


class PuckState(NamedTuple):
    """Where the puck is and how it moves."""

    position: Float[Array, " axis"]
    velocity: Float[Array, " axis"]


class Puck(AbstractEnv):
    """A unit mass on a plane with friction; costs the squared distance from the middle and of the push."""

    dt: float = 0.1  # s
    friction: float = 0.2  # 1/s
    gust: float = 0.3  # N, standard deviation
    strongest: float = 1.0  # N, along each axis

    variables: ClassVar[Mapping[str, Variable]] = MappingProxyType(
        {"position": Variable(("axis",), "m"), "velocity": Variable(("axis",), "m/s")}
    )

    def reset(self, key):
        return PuckState(jax.random.uniform(key, (2,), minval=-1.0, maxval=1.0, dtype=float), jnp.zeros(2))

    def move(self, state: PuckState, force) -> PuckState:
        """One time step under a force: what a model of this puck predicts."""
        velocity = state.velocity + self.dt * (force - self.friction * state.velocity)
        return PuckState(state.position + self.dt * velocity, velocity)

    def step(self, key, state, action, k):
        push = jnp.clip(action, -self.strongest, self.strongest)
        cost = jnp.sum(state.position**2) + 0.1 * jnp.sum(push**2)
        # all chance comes from the key: the same key, the same gust
        following = self.move(state, push + self.gust * jax.random.normal(key, (2,)))
        return Step(following, -cost, jnp.asarray(False))

    def observe(self, state):  # what the agent sees: here not how fast the puck is
        return state.position

    def signals(self, state):
        return jnp.concatenate(state)

    def spaces(self):
        everywhere, push = np.full(4, np.inf), np.full(2, self.strongest)
        return Spaces(Box(-everywhere, everywhere), Box(-push, push))
