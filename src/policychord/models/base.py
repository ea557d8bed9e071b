"""What a generative model is: a price for every action, with its terms kept apart."""

from abc import abstractmethod

import equinox as eqx
from jaxtyping import Array, Float

from .._types import Observation, Time
from ..actions import AbstractActions

Terms = dict[str, Float[Array, " d"]]


class AbstractModel(eqx.Module):
    """A description of good behaviour. A new one is a final class with this one method."""

    @abstractmethod
    def terms(self, actions: AbstractActions, observation: Observation, k: Time) -> Terms:
        """The named terms of s(u) = KL( p(x'|x,u), q(x'|x,u) ) - ln q(u|x), each with a number for every action."""


def action_cost(
    model: AbstractModel, actions: AbstractActions, observation: Observation, k: Time
) -> Float[Array, " d"]:
    """s(u) for every action: the sum of the model's terms."""
    first, *others = model.terms(actions, observation, k).values()
    return sum(others, first)
