"""`columns`: all primitives for one observation, as the matrix that a gating problem needs."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._types import Observation, Time
from ..actions import AbstractActions, Grid
from .base import AbstractPrimitive
from .gaussian import Gaussian, factors, product_of


def separable(primitives: tuple[AbstractPrimitive, ...], actions: AbstractActions) -> bool:
    """Whether all primitives are products over the axes of the grid, so that `columns` need not take a full exp."""
    return all(isinstance(p, Gaussian) and p.separable_on(actions) for p in primitives)


def columns(
    primitives: tuple[AbstractPrimitive, ...],
    actions: AbstractActions,
    observation: Observation,
    k: Time,
    by_axes: bool,
) -> Float[Array, "d n"]:
    """Pi: a column of probabilities for each primitive. `by_axes` is what `separable` says, asked once."""
    pi, well = filled_columns(primitives, actions, observation, k, by_axes)
    return jnp.where(well, pi, jnp.nan)


def filled_columns(
    primitives: tuple[AbstractPrimitive, ...],
    actions: AbstractActions,
    observation: Observation,
    k: Time,
    by_axes: bool,
) -> tuple[Float[Array, "d n"], Bool[Array, " n"]]:
    """(Pi, which of its columns are numbers). One that is not is filled with the first that is.

    So a primitive that fails leaves a problem that can be solved, if it gets no weight in it.
    """
    if not by_axes:
        log_pi = [[p.log_prob(actions, observation, k)] for p in primitives]
        well = [~jnp.isnan(jnp.sum(column)) for (column,) in log_pi]
        filled = _filled(log_pi, well)
        return jnp.exp(jnp.stack([column for (column,) in filled], axis=-1)), jnp.stack(well)
    assert isinstance(actions, Grid)
    placed = [p.placed(actions, observation, k) for p in primitives if isinstance(p, Gaussian)]
    well = [jnp.isfinite(sum(anchor[i] + beyond[i] for i in range(len(actions.axes)))) for anchor, beyond, _ in placed]
    filled = _filled(placed, well)
    # all primitives at once: one pass over the matrix instead of one for each column and one to stack them
    along = [jnp.stack(axis, axis=-1) for axis in zip(*(factors(actions, *one) for one in filled), strict=True)]
    return product_of(along, actions), jnp.stack(well)


def _filled(columns: list[list[Array]], well: list[Array]) -> list[list[Array]]:
    """Columns, each given by one or several vectors, with those that are not well like the first that is."""
    first = columns[-1]
    for column, fine in zip(columns[-2::-1], well[-2::-1], strict=True):
        first = [jnp.where(fine, own, other) for own, other in zip(column, first, strict=True)]
    return [
        [jnp.where(fine, own, other) for own, other in zip(column, first, strict=True)]
        for column, fine in zip(columns, well, strict=True)
    ]
