"""`Nobody`: a population without members, for flocks in which all follow rules of the literature."""

import equinox as eqx
import jax.numpy as jnp

from ...agent import Decision, Memory
from ...core.objective import Certificate


class Nobody(eqx.Module):
    """Decides nothing, in the shapes that a population would."""

    names: tuple[str, ...] = eqx.field(static=True)

    def start(self) -> Memory:
        nothing = jnp.zeros((0, len(self.names)))
        return Memory(nothing, nothing)

    def decide(self, key, state, k, memory) -> Decision:
        none = jnp.zeros(0)
        return Decision(jnp.zeros((0, 2)), memory.weights, Certificate(none, none), jnp.zeros(0, bool), memory)
