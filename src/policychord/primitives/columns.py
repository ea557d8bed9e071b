"""`columns`: all primitives for one observation, as the matrix that a gating problem needs."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float

from .._types import Observation, Time
from ..actions import AbstractActions, Grid, Sampled
from .base import AbstractPrimitive, Draws
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


class Drawn(NamedTuple):
    """Points that the primitives drew, and what makes a gating problem on them stand for that of all actions."""

    actions: Sampled  # with the points
    own: Float[Array, "d dim"]  # the same in the primitives' own numbers, before they are squashed
    offset: Float[Array, " d"]  # added to the cost of each: ln(N q), q the equal mixture, minus ln |du/dy|
    control: Float[Array, "d n"]  # a function of the point, for each primitive, whose expectation is known
    correction: Float[Array, " n"]  # that expectation minus the mean over the points: a linear term of the objective


def draw_columns(
    primitives: tuple[AbstractPrimitive, ...], actions: Sampled, observation: Observation, k: Time
) -> tuple[Float[Array, "d n"], Bool[Array, " n"], Drawn]:
    """(Pi, which columns are numbers, the points): Pi_ia = pi_a(u_i) / (N q(u_i)), every column with the sum one.

    sum_i (Pi w)_i [ ln (Pi w)_i + s_i + ln N q(u_i) ] is then the complexity of the mixture of densities, on N points.
    """
    n, (scrambles, share, dim) = len(primitives), actions.uniforms.shape
    each = share // n
    if each < 1:
        raise ValueError(f"{scrambles} scrambles of {share} points do not suffice for {n} primitives: raise count.")
    blocks = [actions.uniforms[:, i * each : (i + 1) * each].reshape(-1, dim) for i in range(n)]
    parts = [p for p in primitives if isinstance(p, Draws)]
    own = [[p.sample(u, actions, observation, k)] for p, u in zip(parts, blocks, strict=True)]
    well = [jnp.all(jnp.isfinite(points)) for (points,) in own]
    # the points of one scramble stay together: (scramble, primitive, point)
    apart = [points.reshape(scrambles, each, dim) for (points,) in _filled(own, well)]
    together = jnp.stack(apart, axis=1).reshape(-1, dim)
    densities = [[p.log_density(together, actions, observation, k)] for p in parts]
    log_pi = jnp.stack([column for (column,) in _filled(densities, well)], axis=-1)
    log_q = logsumexp(log_pi, axis=-1) - np.log(n)
    pi = jnp.exp(log_pi - log_q[:, None])
    offset = log_q + np.log(len(log_q)) - actions.log_stretch(together)
    none = jnp.zeros(n)
    return pi / jnp.sum(pi, axis=0), jnp.stack(well), Drawn(actions.at_points(together), together, offset, log_pi, none)


def control(
    primitives: tuple[AbstractPrimitive, ...], pi: Float[Array, "d n"], cost: Float[Array, " d"], drawn: Drawn,
    observation: Observation, k: Time,
) -> Drawn:  # fmt: skip
    """The points with the control variates of the cost that it has there.

    For each primitive: ln pi_a, and the quadratic in the axes that fits cost minus ln |du/dy| best. Their expectations
    are known for a primitive with `moments`; a quadratic cost then has no error left.
    """
    actions, own = drawn.actions, drawn.own
    target = cost - actions.log_stretch(own)
    features = jnp.concatenate([own, own**2], axis=1)
    middle, width = jnp.mean(features, axis=0), jnp.std(features, axis=0) + 1e-300
    scaled = (features - middle) / width
    ridge = 1e-10 * len(own) * jnp.eye(scaled.shape[1])
    slope = jnp.linalg.solve(scaled.T @ scaled + ridge, scaled.T @ (target - jnp.mean(target)))
    slope = jnp.where(jnp.all(jnp.isfinite(slope)), slope, 0.0)  # an infinite cost has no quadratic
    fitted, values, expected = scaled @ slope, [], []
    for i, primitive in enumerate(primitives):
        known = primitive.moments(actions, observation, k) if isinstance(primitive, Draws) else None
        if known is None:
            values.append(jnp.zeros(len(own)))
            expected.append(jnp.zeros(()))
            continue
        moments = (jnp.concatenate([known.first, known.second]) - middle) / width
        values.append(drawn.control[:, i] + fitted)
        expected.append(known.log_density + moments @ slope)
    together = jnp.stack(values, axis=-1)
    correction = jnp.stack(expected) - jnp.sum(pi * together, axis=0)
    return drawn._replace(control=together, correction=jnp.where(jnp.isfinite(correction), correction, 0.0))
