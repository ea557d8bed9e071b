"""What an environment is: physics that starts, moves by an action, and can be seen. It knows no agent."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from .. import _types
from .._types import Action, Observation, State, Time


class Variable(NamedTuple):
    """How one field of a state is labelled: its dimensions (apart from episode and time) and its unit."""

    dims: tuple[str, ...] = ()
    unit: str = "1"


class Step(NamedTuple):
    """What an action brought about."""

    state: State
    reward: Float[_types.Array, "*episode"]
    terminated: Bool[_types.Array, "*episode"]


class Box(NamedTuple):
    """Vectors between two corners."""

    low: np.ndarray
    high: np.ndarray


class Discrete(NamedTuple):
    """The labels 0, ..., size - 1."""

    size: int


class Spaces(NamedTuple):
    """What an outsider may see and do: the box of `signals` and the actions."""

    signals: Box
    action: Box | Discrete


class AbstractEnv(eqx.Module):
    """A world. A new one is a final class with these methods; its state is a NamedTuple of arrays."""

    variables: eqx.AbstractClassVar[Mapping[str, Variable]]  # a label for each field of the state

    @abstractmethod
    def reset(self, key: Key[Array, ""]) -> State:
        """A state to start from."""

    @abstractmethod
    def step(self, key: Key[Array, ""], state: State, action: Action, k: Time) -> Step:
        """The next state, the reward on the way, and whether the episode is over."""

    @abstractmethod
    def observe(self, state: State) -> Observation:
        """What the agent sees; with several agents, every array has a leading agent axis."""

    @abstractmethod
    def signals(self, state: State) -> Float[Array, " m"]:
        """The same as a vector, for agents from elsewhere."""

    @abstractmethod
    def spaces(self) -> Spaces:
        """The bounds of `signals` and of the actions."""
