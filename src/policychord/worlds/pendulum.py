"""A pendulum to be swung up and balanced: the dynamics, limits and reward of Gymnasium's Pendulum-v1, in batches."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from .._types import Action, ArrayLike, Time
from ..loops.environment import AbstractEnv, Box, Spaces, Step, Variable


class PendulumState(NamedTuple):
    """Angle from upright and angular velocity."""

    angle: Float[Array, ""]
    velocity: Float[Array, ""]


class Pendulum(AbstractEnv):
    """m l^2/3 a = m g l/2 sin(angle) + torque, semi-implicit Euler; costs angle^2 + velocity^2/10 + torque^2/1000."""

    gravity: float = 10.0  # m/s^2
    mass: float = 1.0  # kg
    length: float = 1.0  # m
    dt: float = 0.05  # s
    largest_torque: float = 2.0  # N m
    largest_velocity: float = 8.0  # rad/s

    variables: ClassVar[Mapping[str, Variable]] = MappingProxyType(
        {"angle": Variable(unit="rad"), "velocity": Variable(unit="rad/s")}
    )

    def reset(self, key: Key[Array, ""]) -> PendulumState:
        angle, velocity = jax.random.uniform(key, (2,), minval=-1.0, maxval=1.0, dtype=float)
        return PendulumState(jnp.pi * angle, velocity)

    def move(self, state: PendulumState, torque: ArrayLike) -> PendulumState:
        """One time step under a torque: what a model of this pendulum predicts."""
        torque = jnp.clip(torque, -self.largest_torque, self.largest_torque)
        pull = 1.5 * self.gravity / self.length * jnp.sin(state.angle) + 3.0 * torque / (self.mass * self.length**2)
        velocity = jnp.clip(state.velocity + pull * self.dt, -self.largest_velocity, self.largest_velocity)
        return PendulumState(state.angle + velocity * self.dt, velocity)

    def step(self, key: Key[Array, ""], state: PendulumState, action: Action, k: Time) -> Step:
        torque = jnp.clip(action[0], -self.largest_torque, self.largest_torque)
        cost = upright(state.angle) ** 2 + 0.1 * state.velocity**2 + 0.001 * torque**2
        return Step(self.move(state, torque), -cost, jnp.asarray(False))

    def observe(self, state: PendulumState) -> PendulumState:
        return state

    def signals(self, state: PendulumState) -> Float[Array, " m"]:
        return jnp.stack([jnp.cos(state.angle), jnp.sin(state.angle), state.velocity])

    def spaces(self) -> Spaces:
        farthest = np.array([1.0, 1.0, self.largest_velocity])
        torque = np.array([self.largest_torque])
        return Spaces(Box(-farthest, farthest), Box(-torque, torque))


def upright(angle: ArrayLike) -> Float[Array, "..."]:
    """The same angle in [-pi, pi): how far from upright."""
    return (angle + jnp.pi) % (2 * jnp.pi) - jnp.pi
