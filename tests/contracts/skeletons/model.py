"""A generative model to copy: `Calm` says that good behaviour moves little and costs little."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from policychord.models import AbstractModel


class Calm(AbstractModel):
    """s(u) = price |u|^2 + |move(x, u) - x|, up to a constant."""

    price: Float[Array, ""]

    def __init__(self, price: float = 0.1):
        self.price = jnp.asarray(price, dtype=float)

    def terms(self, actions, state, k):
        # terms have names, so that an agent's `terms(observation)` can say what makes an action dear
        effort = jax.vmap(lambda action: jnp.sum(action**2))(actions.points)
        change = jax.vmap(lambda action: jnp.sum(jnp.abs(self.move(state, action) - state)))(actions.points)
        return {"effort": self.price * effort, "change": change}

    def move(self, state, action):
        """Where an action leads: the whole state drifts by its sum."""
        return state + 0.1 * jnp.sum(action)
