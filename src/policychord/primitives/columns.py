"""`columns`: all primitives for one observation, as the matrix that a gating problem needs."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._types import Observation, Time
from ..actions import AbstractActions, Grid
from .base import AbstractPrimitive
from .gaussian import Gaussian, product_of


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
    """(Pi, which of its columns are numbers). One that is not is filled with the first that is, else uniformly.

    So a primitive that fails leaves a problem that can be solved, if it gets no weight in it.
    """
    if not by_axes:
        log_pi = jnp.stack([p.log_prob(actions, observation, k) for p in primitives], axis=-1)
        well = ~jnp.isnan(jnp.sum(log_pi, axis=0))
        return jnp.exp(_filled(log_pi, well, -np.log(actions.size))), well
    assert isinstance(actions, Grid)
    factors = [p.factors(actions, observation, k) for p in primitives if isinstance(p, Gaussian)]
    # all primitives at once: one pass over the matrix instead of one for each column and one to stack them
    along = [jnp.stack(axis, axis=-1) for axis in zip(*factors, strict=True)]
    well = jnp.isfinite(sum(jnp.sum(axis, axis=0) for axis in along))
    uniform = [1.0 / actions.size] + [1.0] * (len(along) - 1)
    return product_of([_filled(axis, well, one) for axis, one in zip(along, uniform, strict=True)], actions), well


def _filled(columns: Float[Array, "d n"], well: Bool[Array, " n"], otherwise: float) -> Float[Array, "d n"]:
    first = jnp.where(jnp.any(well), columns[:, jnp.argmax(well)], otherwise)
    return jnp.where(well, columns, first[:, None])
