"""`Reference`: act like this policy."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Observation, Time
from ..actions import AbstractActions
from ..primitives.base import AbstractPrimitive
from .base import AbstractModel, Terms


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
