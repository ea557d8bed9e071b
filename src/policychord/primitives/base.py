"""What a primitive is: a policy, seen as a distribution over an action set."""

from abc import abstractmethod

import equinox as eqx
from jaxtyping import Array, Float

from .._types import Observation, Time
from ..actions import AbstractActions


class AbstractPrimitive(eqx.Module):
    """One reusable behaviour. A new one is a final class with this one method."""

    @abstractmethod
    def log_prob(self, actions: AbstractActions, observation: Observation, k: Time) -> Float[Array, " d"]:
        """ln pi(u | x) for every action of the set at step k; its exponentials sum to one."""
