"""Gaussian bandits: arms of unknown value, rewards with noise, and beliefs about them by the Kalman filter."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from .._types import Action, ArrayLike, Time
from .base import AbstractEnv, Box, Discrete, Spaces, Step, Variable


class Belief(NamedTuple):
    """What is known of each arm: the mean and the variance of its value."""

    mean: Float[Array, " arms"]
    variance: Float[Array, " arms"]


class BanditState(NamedTuple):
    """The arms' true values, which nobody sees, and the beliefs about them, which the agent does."""

    value: Float[Array, " arms"]
    mean: Float[Array, " arms"]
    variance: Float[Array, " arms"]


class Bandit(AbstractEnv):
    """One block: values drawn from N(0, variance), rewards from N(value, noise). A variance of zero is a known arm."""

    variance: Float[Array, " arms"]
    noise: float = 10.0  # variance of a reward

    variables: ClassVar[Mapping[str, Variable]] = MappingProxyType(
        {
            "value": Variable(("arm",), "points"),
            "mean": Variable(("arm",), "points"),
            "variance": Variable(("arm",), "points^2"),
        }
    )

    def __init__(self, variance: ArrayLike = (100.0, 100.0), noise: float = 10.0):
        values = np.asarray(variance, dtype=float)
        if values.ndim != 1 or len(values) < 2 or not np.all(np.isfinite(values) & (values >= 0)):
            raise ValueError(f"variance = {values.tolist()}: one number of at least 0 for each of two or more arms.")
        if not (np.isfinite(noise) and noise > 0):
            raise ValueError(f"noise = {noise!r}: the variance of a reward is a positive number.")
        self.variance, self.noise = jnp.asarray(values), float(noise)

    def reset(self, key: Key[Array, ""]) -> BanditState:
        value = jnp.sqrt(self.variance) * jax.random.normal(key, self.variance.shape, dtype=float)
        return BanditState(value, jnp.zeros_like(self.variance), self.variance)

    def step(self, key: Key[Array, ""], state: BanditState, action: Action, k: Time) -> Step:
        # all arms pay at every trial, though only one is seen: agents that choose differently meet the same luck
        luck = jnp.sqrt(self.noise) * jax.random.normal(key, state.value.shape, dtype=float)
        reward = (state.value + luck)[action]
        belief = learn(Belief(state.mean, state.variance), action, reward, self.noise)
        return Step(BanditState(state.value, *belief), reward, jnp.asarray(False))

    def observe(self, state: BanditState) -> Belief:
        return Belief(state.mean, state.variance)

    def signals(self, state: BanditState) -> Float[Array, " m"]:
        return jnp.concatenate([state.mean, state.variance])

    def spaces(self) -> Spaces:
        arms = len(self.variance)
        high = np.concatenate([np.full(arms, np.inf), np.asarray(self.variance)])
        low = np.concatenate([np.full(arms, -np.inf), np.zeros(arms)])
        return Spaces(Box(low, high), Discrete(arms))


def learn(belief: Belief, choice: Action, reward: ArrayLike, noise: ArrayLike) -> Belief:
    """The Kalman filter for the chosen arm: gain g = v/(v + noise), m + g (reward - m), v - g v."""
    gain = belief.variance[choice] / (belief.variance[choice] + noise)
    mean = belief.mean.at[choice].add(gain * (reward - belief.mean[choice]))
    return Belief(mean, belief.variance.at[choice].multiply(1.0 - gain))
