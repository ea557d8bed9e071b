"""What a primitive is: a policy, seen as a distribution over an action set."""

from abc import abstractmethod
from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
from jaxtyping import Array, Float

from .._types import Observation, Time
from ..actions import AbstractActions, Sampled


class AbstractPrimitive(eqx.Module):
    """One reusable behaviour. A new one is a final class with this one method."""

    @abstractmethod
    def log_prob(self, actions: AbstractActions, observation: Observation, k: Time) -> Float[Array, " d"]:
        """ln pi(u | x) for every action of the set at step k; its exponentials sum to one."""


class Moments(NamedTuple):
    """Expectations under a primitive, in closed form: they take away most of the error of sampling."""

    log_density: Float[Array, ""]  # E[ln pi], minus the entropy
    first: Float[Array, " dim"]  # E[y]
    second: Float[Array, "dim dim"]  # E[y y^T]


@runtime_checkable
class Draws(Protocol):
    """A primitive that `Sampled` actions can be drawn from, besides its `log_prob`."""

    def sample(
        self, uniforms: Float[Array, "m dim"], actions: Sampled, observation: Observation, k: Time
    ) -> Float[Array, "m dim"]:
        """The points at which uniform numbers are its quantiles."""

    def log_density(
        self, points: Float[Array, "d dim"], actions: Sampled, observation: Observation, k: Time
    ) -> Float[Array, " d"]:
        """ln pi(u | x) at any points, as a density."""

    def moments(self, actions: Sampled, observation: Observation, k: Time) -> Moments | None:
        """What is known about it in closed form; None if nothing is."""
