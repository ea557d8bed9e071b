"""`columns`: all primitives for one observation, as the matrix that a gating problem needs."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve, solve_triangular
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float

from .._types import Observation, Time
from ..actions import AbstractActions, Grid, Sampled
from .base import AbstractPrimitive, Draws, Moments
from .gaussian import Gaussian, factors, product_of
from .policy import Policy

MOST_FEATURES = 0.75  # of a fit, for each point
FEW = 8  # features up to which every point has a leverage of its own, which takes as long as the fit
RIDGE = 1e-10


def separable(primitives: tuple[AbstractPrimitive, ...], actions: AbstractActions) -> bool:
    """Whether all primitives are products over the axes of the grid, so that `columns` need not take a full exp."""
    return all(isinstance(p, Gaussian) and p.separable_on(actions) for p in primitives)


class _Columns(NamedTuple):
    """All primitives on a fixed set of actions."""

    pi: Float[Array, "d n"]
    valid: Bool[Array, " n"]  # which are numbers; the others are filled with the first that is
    cut: Bool[Array, " n"] | None  # which the grid cuts off, or is too coarse for; None unless it should be reported
    log_pi: Float[Array, "d n"] | None = None  # goes on where probabilities underflow; None if taken by axes


def columns(
    primitives: tuple[AbstractPrimitive, ...],
    actions: AbstractActions,
    observation: Observation,
    k: Time,
    by_axes: bool,
) -> Float[Array, "d n"]:
    """Pi: a column of probabilities for each primitive. `by_axes` is what `separable` says, asked once."""
    filled = filled_columns(primitives, actions, observation, k, by_axes)
    return jnp.where(filled.valid, filled.pi, jnp.nan)


def filled_columns(
    primitives: tuple[AbstractPrimitive, ...],
    actions: AbstractActions,
    observation: Observation,
    k: Time,
    by_axes: bool,
) -> _Columns:
    """Pi, with every column that is not a number filled with the first that is.

    So a primitive that fails leaves a problem that can be solved, if it gets no weight in it.
    """
    if not by_axes:
        log_pi = [[p.log_prob(actions, observation, k)] for p in primitives]
        valid = [~jnp.isnan(jnp.sum(column)) for (column,) in log_pi]
        filled = _filled(log_pi, valid)
        stacked = jnp.stack([column for (column,) in filled], axis=-1)
        cut = None
        if isinstance(actions, Grid) and not actions.saturates:
            no = jnp.asarray(False)
            spoiled = [p.spoiled_by(actions, observation, k) if isinstance(p, Gaussian) else no for p in primitives]
            cut = jnp.stack(spoiled) & jnp.stack(valid)
        return _Columns(jnp.exp(stacked), jnp.stack(valid), cut, stacked)
    assert isinstance(actions, Grid)
    parts = [p for p in primitives if isinstance(p, Gaussian)]
    placed = [p.placed(actions, observation, k) for p in parts]
    valid = [jnp.isfinite(sum(anchor[i] + beyond[i] for i in range(len(actions.axes)))) for anchor, beyond, _ in placed]
    factored = [factors(actions, *place) for place in _filled(placed, valid)]
    # all primitives at once: one pass over the matrix instead of one for each column and one to stack them
    along = [jnp.stack(axis, axis=-1) for axis in zip(*(axes for axes, _ in factored), strict=True)]
    pi, cut = product_of(along, actions), None
    if not actions.saturates:
        spoiled = [p.at(observation, k).spoiled(actions, mass) for p, (_, mass) in zip(parts, factored, strict=True)]
        cut = jnp.stack(spoiled) & jnp.stack(valid)
    return _Columns(pi, jnp.stack(valid), cut)


def _filled(columns: list[list[Array]], valid: list[Array]) -> list[list[Array]]:
    """Columns, each given by one or several vectors, with those that are not valid like the first that is."""
    first = columns[-1]
    for column, fine in zip(columns[-2::-1], valid[-2::-1], strict=True):
        first = [jnp.where(fine, own, other) for own, other in zip(column, first, strict=True)]
    return [
        [jnp.where(fine, own, other) for own, other in zip(column, first, strict=True)]
        for column, fine in zip(columns, valid, strict=True)
    ]


class Drawn(NamedTuple):
    """Points that the primitives drew, and what makes a gating problem on them stand for that of all actions."""

    actions: Sampled  # with the points
    own: Float[Array, "d dim"]  # the same in the primitives' own numbers, before they are squashed
    log_pi: Float[Array, "d n"]  # ln of the densities of the primitives
    log_q: Float[Array, " d"]  # ln of that of their equal mixture
    offset: Float[Array, " d"]  # added to the cost of each: ln(N q), q the equal mixture, minus ln |du/dy|
    log_sums: Float[Array, " n"]  # ln of each column's sum before it was made one
    blame: Float[Array, "n n"]  # how much the sum of column b moves the gradient of primitive a, at equal weights
    means: Float[Array, "n dim"]  # the mean action of each primitive
    residual: Float[Array, "d n"]  # what the control variates leave of ln pi_a + cost: the error bars are made of it
    correction: Float[Array, " n"]  # what is known minus what the points say: a linear term of the objective


def drawable(
    primitives: tuple[AbstractPrimitive, ...], actions: Sampled, observation: Observation, k: Time
) -> tuple[AbstractPrimitive, ...]:
    """The primitives that actions are drawn from: a policy is asked once, and is then a Gaussian."""
    return tuple(p.gaussian(actions, observation, k) if isinstance(p, Policy) else p for p in primitives)


def draw_columns(
    primitives: tuple[AbstractPrimitive, ...], actions: Sampled, observation: Observation, k: Time
) -> tuple[Float[Array, "d n"], Bool[Array, " n"], Drawn]:
    """(Pi, which columns are numbers, the points): Pi_ia = pi_a(u_i) / (N q(u_i)), every column with the sum one.

    sum_i (Pi w)_i [ ln (Pi w)_i + s_i + ln N q(u_i) ] is then the complexity of the mixture of densities, on N points.
    """
    n, (scrambles, share, dim) = len(primitives), actions.uniforms.shape
    each = share // n
    if each < 1:
        raise ValueError(
            f"{scrambles} scrambles of {share} points do not suffice for {n} primitives: pass count={scrambles * n}."
        )
    blocks = [actions.uniforms[:, i * each : (i + 1) * each].reshape(-1, dim) for i in range(n)]
    parts = [p for p in primitives if isinstance(p, Draws)]
    own = [[p.sample(u, actions, observation, k)] for p, u in zip(parts, blocks, strict=True)]
    valid = [jnp.all(jnp.isfinite(points)) for (points,) in own]
    # the points of one scramble stay together: (scramble, primitive, point)
    apart = [points.reshape(scrambles, each, dim) for (points,) in _filled(own, valid)]
    together = jnp.stack(apart, axis=1).reshape(-1, dim)
    densities = [[p.log_density(together, actions, observation, k)] for p in parts]
    log_pi = jnp.stack([column for (column,) in _filled(densities, valid)], axis=-1)
    log_q = logsumexp(log_pi, axis=-1) - np.log(n)
    ratio = jnp.exp(log_pi - log_q[:, None])
    sums = jnp.mean(ratio, axis=0)
    pi, placed = ratio / (len(ratio) * sums), actions.at_points(together)
    nothing = jnp.zeros(n)
    drawn = Drawn(
        actions=placed,
        own=together,
        log_pi=log_pi,
        log_q=log_q,
        offset=log_q + np.log(len(log_q)) - actions.log_stretch(together),
        log_sums=jnp.log(sums),
        blame=pi.T @ ratio / n,
        means=pi.T @ placed.points,
        residual=jnp.zeros_like(pi),
        correction=nothing,
    )
    return pi, jnp.stack(valid), drawn


def control(
    primitives: tuple[AbstractPrimitive, ...], pi: Float[Array, "d n"], cost: Float[Array, " d"], drawn: Drawn,
    observation: Observation, k: Time,
) -> Drawn:  # fmt: skip
    """The points with the control variates of the cost that it has there.

    For each primitive: ln pi_a, and the quadratic that predicts cost minus ln |du/dy| best. Their expectations are
    known for a primitive with `moments`, and of a quadratic cost no error is left. Making the sum of a column one
    divides pi_a by it wherever the mixture's logarithm is taken: to first order that is taken back.
    """
    actions = drawn.actions
    target = cost - actions.log_stretch(drawn.own)
    known = [p.moments(actions, observation, k) if isinstance(p, Draws) else None for p in primitives]
    fitted, leverage, expect = _quadratic(drawn.own, target)
    left = target - fitted
    # what the fit leaves of a point that it has not seen, or error bars would take its freedom for precision
    unseen = (left - jnp.mean(left)) / (1.0 - leverage) + jnp.mean(left)
    residual, correction, means = [], [], []
    for i, moments in enumerate(known):
        if moments is None:
            residual.append(drawn.log_pi[:, i] + target)
            correction.append(jnp.zeros(()))
            means.append(drawn.means[i])
            continue
        residual.append(unseen)
        correction.append(moments.log_density + expect(moments) - pi[:, i] @ (drawn.log_pi[:, i] + fitted))
        means.append(drawn.means[i] if actions.squash else moments.first)
    corrected = jnp.stack(correction) + drawn.blame @ drawn.log_sums
    means = [jnp.where(jnp.all(jnp.isfinite(mean)), mean, drawn.means[i]) for i, mean in enumerate(means)]
    return drawn._replace(
        residual=jnp.stack(residual, axis=-1), correction=jnp.where(jnp.isfinite(corrected), corrected, 0.0),
        means=jnp.stack(means),
    )  # fmt: skip


def _quadratic(
    own: Float[Array, "d dim"], target: Float[Array, " d"]
) -> tuple[Float[Array, " d"], Float[Array, " d"], Callable[[Moments], Array]]:
    """(values, leverage of each point, expectation under a primitive) of the quadratic that predicts the target best.

    Of none, one without and one with products of axes, that with the least error on points left out of the fit: a
    residual over one minus the point's leverage. With many features all leverages are near their mean, which is used
    instead (generalised cross-validation).
    """
    count, dim = own.shape
    rows, columns = np.triu_indices(dim, 1)
    first, second = np.concatenate([np.arange(dim), rows]), np.concatenate([np.arange(dim), columns])
    # the smaller one's features are the first of the larger one's
    sizes = [size for size in {2 * dim, dim + len(first)} if (1 + size) / count <= MOST_FEATURES]
    last = max(sizes, default=dim) - dim
    first, second = first[:last], second[:last]
    features = jnp.concatenate([own, own[:, first] * own[:, second]], axis=1)
    middle, width = jnp.mean(features, axis=0), jnp.std(features, axis=0) + 1e-300
    # the barrier keeps XLA from building the features again in every product
    scaled, centred = jax.lax.optimization_barrier(((features - middle) / width, target - jnp.mean(target)))
    gram, moment = scaled.T @ scaled + RIDGE * count * jnp.eye(dim + last), scaled.T @ centred
    slope, leverage = jnp.zeros(dim + last), jnp.full(count, 1.0 / count)
    best_error = jnp.sum(centred**2) / (1 - 1 / count) ** 2
    for size in sorted(sizes):
        factor = cho_factor(gram[:size, :size], lower=True)
        tried = jnp.zeros(dim + last).at[:size].set(cho_solve(factor, moment[:size]))
        if size <= FEW:
            own_share = jnp.sum(solve_triangular(factor[0], scaled[:, :size].T, lower=True) ** 2, axis=0)
        else:
            own_share = jnp.full(count, size / count)
        error = jnp.sum(((centred - scaled @ tried) / (1 - 1 / count - own_share)) ** 2)
        better = error < best_error  # not where a cost is infinite
        slope, leverage = jnp.where(better, tried, slope), jnp.where(better, 1 / count + own_share, leverage)
        best_error = jnp.where(better, error, best_error)
    slope = slope / width

    def expect(moments: Moments) -> Array:
        return jnp.concatenate([moments.first, moments.second[first, second]]) @ slope

    return features @ slope, leverage, expect
