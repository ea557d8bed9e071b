"""Gaussian bandits: arms of unknown value, rewards with noise, and beliefs about them by the Kalman filter."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from .._types import Action, ArrayLike, Time, namespace
from ..loops.environment import AbstractEnv, Box, Discrete, Spaces, Step, Variable


class Belief(NamedTuple):
    """What is known of each arm: the mean and the variance of its value."""

    mean: Float[Array | np.ndarray, "*batch arms"]
    variance: Float[Array | np.ndarray, "*batch arms"]


class BanditState(NamedTuple):
    """The arms' true values, which are hidden, and the beliefs about them, which the agent sees."""

    value: Float[Array, " arms"]
    mean: Float[Array, " arms"]
    variance: Float[Array, " arms"]


class Bandit(AbstractEnv):
    """One block: values drawn from N(0, variance), rewards from N(value, noise). An arm without variance pays zero."""

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
        # all arms pay at every trial, though only one is seen: agents that choose differently meet the same noise
        noise = jnp.sqrt(self.noise) * jax.random.normal(key, state.value.shape, dtype=float)
        reward = (state.value + jnp.where(self.variance > 0, noise, 0.0))[action]
        mean, variance = map(jnp.asarray, update_belief(self.observe(state), action, reward, self.noise))
        return Step(BanditState(state.value, mean, variance), reward, jnp.asarray(False))

    def observe(self, state: BanditState) -> Belief:
        return Belief(state.mean, state.variance)

    def signals(self, state: BanditState) -> Float[Array, " m"]:
        return jnp.concatenate([state.mean, state.variance])

    def spaces(self) -> Spaces:
        arms = len(self.variance)
        high = np.concatenate([np.full(arms, np.inf), np.asarray(self.variance)])
        low = np.concatenate([np.full(arms, -np.inf), np.zeros(arms)])
        return Spaces(Box(low, high), Discrete(arms))


def update_belief(belief: Belief, choice: Action, reward: ArrayLike, noise: ArrayLike) -> Belief:
    """The Kalman filter for the chosen arm: gain g = v/(v + noise), m + g (reward - m), v - g v.

    Beliefs (..., arms), choices and rewards (...): one person or many at once, in NumPy or JAX. The variance is written
    v - g v everywhere, as the paper writes it: (1 - g) v rounds otherwise, which breaks other ties between arms.
    """
    xp = namespace(*belief, choice, reward)
    mean, variance = belief
    chosen = xp.arange(mean.shape[-1]) == xp.asarray(choice)[..., None]
    total = variance + noise
    gain = xp.where(
        chosen & (total > 0), variance / xp.where(total > 0, total, 1.0), 0.0
    )  # 0: nothing is left to learn
    return Belief(mean + gain * (xp.asarray(reward)[..., None] - mean), variance - gain * variance)
