"""What a generative model is: a price for every action, with its parts kept apart."""

from abc import abstractmethod

import equinox as eqx
from jaxtyping import Array, Float

from .._types import State, Time
from ..actions import AbstractActions

Parts = dict[str, Float[Array, " d"]]


class AbstractModel(eqx.Module):
    """A description of good behaviour. A new one is a final class with this one method."""

    @abstractmethod
    def parts(self, actions: AbstractActions, state: State, k: Time) -> Parts:
        """The named terms of s(u) = KL( p(x'|x,u), q(x'|x,u) ) - ln q(u|x), each with a number for every action."""


def action_cost(model: AbstractModel, actions: AbstractActions, state: State, k: Time) -> Float[Array, " d"]:
    """s(u) for every action: the sum of the model's parts."""
    parts = list(model.parts(actions, state, k).values())
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
