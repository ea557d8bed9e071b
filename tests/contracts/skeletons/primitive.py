"""A primitive to copy: `Shy` keeps away from large actions, the more so the further the state is from rest."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from policychord.primitives import AbstractPrimitive


class Shy(AbstractPrimitive):
    """pi(u | x) proportional to exp( -(strength + min(|x|, 1)) |u|^2 )."""

    strength: Float[Array, ""]  # an array, so that agents which differ in it can be one Population

    def __init__(self, strength: float = 1.0):
        if not strength > 0:
            raise ValueError(f"strength = {strength!r}: pass a positive number.")
        self.strength = jnp.asarray(strength, dtype=float)

    def log_prob(self, actions, state, k):
        effort = jnp.sum(actions.points.reshape(actions.size, -1) ** 2, axis=-1)
        distance = jnp.minimum(jnp.linalg.norm(state), 1.0)
        # normalised in log space: nothing underflows, however narrow the primitive is
        return jax.nn.log_softmax(-(self.strength + distance) * effort)
