"""`columns`: all primitives at one state, as the matrix that a gating problem needs."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import State, Time
from ..actions import AbstractActions, Grid
from .base import AbstractPrimitive
from .gaussian import Gaussian, product_of


def separable(primitives: tuple[AbstractPrimitive, ...], actions: AbstractActions) -> bool:
    """Whether all primitives are products over the axes of the grid, so that `columns` need not take a full exp."""
    return all(isinstance(p, Gaussian) and p.separable_on(actions) for p in primitives)


def columns(
    primitives: tuple[AbstractPrimitive, ...], actions: AbstractActions, state: State, k: Time, by_axes: bool
) -> Float[Array, "d n"]:
    """Pi: a column of probabilities for each primitive. `by_axes` is what `separable` says, asked once."""
    if not by_axes:
        return jnp.stack([jnp.exp(p.log_prob(actions, state, k)) for p in primitives], axis=-1)
    assert isinstance(actions, Grid)
    factors = [p.factors(actions, state, k) for p in primitives if isinstance(p, Gaussian)]
    # all primitives at once: one pass over the matrix instead of one for each column and one to stack them
    return product_of([jnp.stack(along, axis=-1) for along in zip(*factors, strict=True)], actions)
