"""`select`: from a mixture to one action."""

import math
from typing import Literal

import jax
import jax.numpy as jnp

from .._types import Array
from ..actions import AbstractActions, Finite
from ..primitives.columns import Drawn

Selection = Literal["sample", "mean", "mode", "dither"]


def select(
    selection: Selection, actions: AbstractActions, key: Array, pi: jax.Array, weights: Array, debt: Array,
    drawn: Drawn | None = None,
) -> tuple[jax.Array, Array]:  # fmt: skip
    """An action of the mixture Pi w, and what each primitive is owed afterwards.

    Of `drawn` points each stands for another volume, and the means of the primitives are known better.
    """
    if selection == "mean":
        return actions.mean(pi @ weights) if drawn is None else jnp.asarray(weights) @ drawn.means, debt
    if selection == "mode":
        prob = pi @ weights
        return actions.at(jnp.argmax(prob if drawn is None else jnp.log(prob) + drawn.offset)), debt
    if selection == "sample":
        return actions.at(_draw(key, pi @ weights)), debt
    debt = jnp.asarray(debt + weights)
    turn = jnp.argmax(debt)
    action = _act_by(actions, key, pi[:, turn]) if drawn is None else drawn.means[turn]
    return action, debt.at[turn].add(-1.0)


def _act_by(actions: AbstractActions, key: Array, prob: jax.Array) -> jax.Array:
    """The mean of one primitive; labels have none, so one of them is drawn."""
    if isinstance(actions, Finite) and actions.labels:
        return actions.at(_draw(key, prob))
    return actions.mean(prob)


def _draw(key: Array, prob: jax.Array) -> jax.Array:
    """An index drawn by inverting the distribution function: one uniform number, the same for a paired comparison.

    First the block of actions that the number falls into, then the action: two short running sums cost a quarter of
    a long one. An action without probability is never drawn, whatever rounding does to the sums.
    """
    block = math.isqrt(prob.shape[0] - 1) + 1
    blocks = jnp.pad(prob, (0, -prob.shape[0] % block)).reshape(-1, block)
    share = jnp.sum(blocks, axis=1)
    level = jax.random.uniform(key, dtype=prob.dtype) * jnp.sum(share)
    row, below = _first_above(share, level)
    return row * block + _first_above(blocks[row], level - below)[0]


def _first_above(prob: jax.Array, level: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The first index, among those with a probability, at which the running sum exceeds the level; the sum before."""
    up_to = jnp.cumsum(prob)
    reached = jnp.where(prob > 0, up_to, 0.0)
    # rounding may take the level just below zero, or above the sum
    level = jnp.clip(level, 0.0, jnp.nextafter(jnp.max(reached), 0.0))
    index = jnp.argmax(reached > level)
    return index, jnp.where(index > 0, up_to[index - 1], 0.0)
