"""What a generative model is, a price for every action; acting like a policy (`Reference`), several at once (`Sum`)."""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import ArrayLike, Observation, Time, is_traced
from ..actions import AbstractActions
from ..primitives.base import AbstractPrimitive

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


class Reference(AbstractModel):
    """s(u) = -ln q(u | x), q any primitive. Probabilities below `floor` count as `floor`, so no cost is infinite."""

    policy: AbstractPrimitive
    log_floor: Float[Array, ""]

    def __init__(self, policy: AbstractPrimitive, floor: float = 1e-300):
        if not isinstance(policy, AbstractPrimitive):
            raise ValueError(f"policy is a {type(policy).__name__}: pass a primitive, such as Table or Categorical.")
        if not 0 < floor < 1:
            raise ValueError(f"floor = {floor!r}: a probability between 0 and 1.")
        self.policy, self.log_floor = policy, jnp.asarray(np.log(floor))

    def terms(self, actions: AbstractActions, observation: Observation, k: Time) -> Terms:
        return {"reference": -jnp.maximum(self.policy.log_prob(actions, observation, k), self.log_floor)}


class Sum(AbstractModel):
    """s(u) = the sum of the models' costs. Terms carry their model's name: `Sum(goal=Cost(...))` has `goal.state`."""

    models: dict[str, AbstractModel]

    def __init__(self, **models: AbstractModel):
        if not models:
            raise ValueError("a sum needs at least one model: Sum(goal=..., safety=...).")
        for name, model in models.items():
            if not isinstance(model, AbstractModel):
                raise ValueError(f"{name} is a {type(model).__name__}: pass generative models.")
        self.models = models

    def terms(self, actions: AbstractActions, observation: Observation, k: Time) -> Terms:
        return {
            f"{name}.{term}": cost
            for name, model in self.models.items()
            for term, cost in model.terms(actions, observation, k).items()
        }


class Scaled(AbstractModel):
    """s(u) = factor times the costs of another model: a change of their unit."""

    model: AbstractModel
    factor: Float[Array, ""]

    def __init__(self, model: AbstractModel, factor: ArrayLike):
        if not isinstance(model, AbstractModel):
            raise ValueError(f"model is a {type(model).__name__}: pass a generative model.")
        if not is_traced(factor) and not (np.ndim(factor) == 0 and np.isfinite(factor) and factor >= 0):
            raise ValueError(f"factor = {factor!r}: pass a number of at least 0.")
        self.model, self.factor = model, jnp.asarray(factor, dtype=float)

    def terms(self, actions: AbstractActions, observation: Observation, k: Time) -> Terms:
        return {name: self.factor * term for name, term in self.model.terms(actions, observation, k).items()}
