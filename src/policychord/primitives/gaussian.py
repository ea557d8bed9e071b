"""`Gaussian`: a command with a spread around it."""

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from .._types import ArrayLike, Observation, Time, is_traced
from ..actions import AbstractActions, Grid
from .base import AbstractPrimitive

# On a ball the best point of each axis need not belong to the ball, and the product of the axes loses
# exp( (distance/sd)^2 / 2 ) against it. From a mean in the ball to the nearest of its points it is never farther than
# the diagonal of one cell, so with this bound the loss stays below 1e266, far from underflow.
LARGEST_DIAGONAL_IN_SD = 35.0


class Gaussian(AbstractPrimitive):
    """pi(u | x) proportional to exp( -(u - m)^T C^-1 (u - m) / 2 ) on the points of the action set.

    m = mean(observation, k). Give the spread as `sd` (a number, or one for each axis) or as `covariance` (a matrix). A
    mean outside the set is moved to the nearest action that is allowed, as a saturating actuator would
    (`outside="clip"`), or kept where it is, so that the points carry the Gaussian's tail (`outside="tail"`; far out,
    the nearest point takes it all).
    Both are computed in log space and never underflow to nothing. Near the border either is narrower than a Gaussian
    and has less entropy, which by itself moves the weights: extend the grid past the limits if that matters.
    """

    mean: Callable[[Observation, Time], ArrayLike]
    sd: Float[Array, "..."] | None
    cholesky: Float[Array, "dim dim"] | None
    outside: Literal["clip", "tail"] = eqx.field(static=True)

    def __init__(
        self,
        mean: Callable[[Observation, Time], ArrayLike] | ArrayLike,
        sd: ArrayLike | None = None,
        *,
        covariance: ArrayLike | None = None,
        outside: Literal["clip", "tail"] = "clip",
    ):
        if (sd is None) == (covariance is None):
            raise ValueError("pass exactly one of sd (a standard deviation for each axis) and covariance (a matrix).")
        if outside not in ("clip", "tail"):
            raise ValueError(f"outside = {outside!r}: use 'clip' (move the mean to the border) or 'tail' (leave it).")
        self.mean = mean if callable(mean) else _constant(mean)
        self.sd, self.cholesky = _spread(sd, covariance)
        self.outside = outside

    def centre(self, actions: AbstractActions, observation: Observation, k: Time) -> Float[Array, "..."]:
        """The mean for this observation, where it will be used."""
        dim = actions.points.shape[1:]
        mean = jnp.asarray(self.mean(observation, k), dtype=float)
        if mean.size == 1 and mean.ndim <= 1 and dim in ((), (1,)):
            mean = mean.reshape(dim)  # one number is one number
        if mean.shape != dim:
            raise ValueError(f"mean(observation, k) has shape {mean.shape}, but an action has shape {dim}.")
        self._fits(actions)
        return _inside(actions, mean) if self.outside == "clip" else mean

    def log_prob(self, actions: AbstractActions, observation: Observation, k: Time) -> Float[Array, " d"]:
        if self.sd is not None and isinstance(actions, Grid) and actions.kept is None:
            axes = [_normalised(z) for z in _along_axes(actions, *self.placed(actions, observation, k))]
            return _outer(axes, jnp.add)
        anchor, beyond = self._anchored(actions, observation, k)
        offsets = (actions.points - anchor).reshape(actions.size, -1)
        scaled, beyond = self._scaled(offsets), self._scaled(beyond.reshape(1, -1))
        return _normalised(-jnp.sum((0.5 * scaled + beyond) * scaled, axis=-1))

    def _fits(self, actions: AbstractActions) -> None:
        dim = int(np.prod(actions.points.shape[1:]))
        if self.sd is not None and self.sd.shape not in ((), (1,), (dim,)):
            raise ValueError(f"sd has shape {self.sd.shape}: one number, or one for each of {dim} axes.")
        if self.cholesky is not None and self.cholesky.shape != (dim, dim):
            raise ValueError(f"covariance has shape {self.cholesky.shape}, but an action has {dim} axes.")

    def separable_on(self, actions: AbstractActions) -> bool:
        """Whether `factors` may be used: the axes are independent, and the set is a box or a ball not too coarse."""
        if self.sd is None or not isinstance(actions, Grid):
            return False
        self._fits(actions)
        if actions.kept is None:
            return True
        if self.outside == "tail" or is_traced(self.sd, actions.points):
            return False
        cell = [np.diff(np.asarray(axis)[:2]) for axis in actions.axes]  # NumPy, so that it has a value in a trace too
        return bool(np.linalg.norm(cell) <= LARGEST_DIAGONAL_IN_SD * np.min(np.asarray(self.sd)))

    def placed(self, actions: Grid, observation: Observation, k: Time) -> list[Float[Array, " dim"]]:
        """[a, a - m, sd] for each axis, a the allowed action next to the mean."""
        anchor, beyond = self._anchored(actions, observation, k)
        return [anchor, beyond, jnp.broadcast_to(jnp.asarray(self.sd), anchor.shape)]

    def on_grid(self, actions: Grid, observation: Observation, k: Time) -> tuple[float, float]:
        """(how far its mean on the points is from its own, in sd; its mass on their cells, which should be one)."""
        centre, prob = self.centre(actions, observation, k), jnp.exp(self.log_prob(actions, observation, k))
        scale = self._scaled(jnp.eye(len(centre)))  # of one unit along each axis, in sd
        off = self._scaled((prob @ actions.points - centre)[None])[0]
        density = jnp.exp(-0.5 * jnp.sum(self._scaled(actions.points - centre) ** 2, axis=-1))
        cell = jnp.prod(actions.spacing) * jnp.abs(jnp.linalg.det(scale)) / (2 * np.pi) ** (len(centre) / 2)
        return float(jnp.linalg.norm(off)), float(jnp.sum(density) * cell)

    def coarseness(self, actions: Grid) -> float:
        """By how many sd the points can move its mean far from borders: (4 pi/r) exp(-2 pi^2/r^2), r = cell/sd."""
        narrow = 1.0 / np.linalg.norm(np.asarray(self._scaled(jnp.eye(len(actions.axes)))), axis=-1)
        ratio = float(np.max(np.asarray(actions.spacing) / narrow))
        return ratio / 4 if ratio > 4 else float(4 * np.pi / ratio * np.exp(-2 * np.pi**2 / ratio**2))

    def _anchored(self, actions: AbstractActions, observation: Observation, k: Time) -> tuple[Array, Array]:
        """(a, a - m), a the allowed action next to the mean: the squares of a mean far out would leave no digits.

        (u - m)^2 = (u - a)^2 + 2 (u - a)(a - m) + the same for all u.
        """
        centre = self.centre(actions, observation, k)
        anchor = centre if self.outside == "clip" else _inside(actions, centre)
        return anchor, anchor - centre

    def _scaled(self, offsets: Float[Array, "d dim"]) -> Float[Array, "d dim"]:
        """In units of the spread."""
        if self.cholesky is None:
            return offsets / jnp.asarray(self.sd)
        return solve_triangular(self.cholesky, offsets.T, lower=True).T


def factors(
    actions: Grid, anchor: Float[Array, " dim"], beyond: Float[Array, " dim"], sd: Float[Array, " dim"]
) -> list[Float[Array, " _"]]:
    """One vector for each axis; their outer product, cut to the set, is the distribution of a `placed` Gaussian.

    A full exponential costs one exp for each point, this one for each point of each axis.
    """
    axes = [jnp.exp(z - jnp.max(z)) for z in _along_axes(actions, anchor, beyond, sd)]
    if actions.kept is None:
        return [axis / jnp.sum(axis) for axis in axes]
    total = jnp.asarray(actions.mask)
    for axis in reversed(axes):
        total = total @ axis
    return [axes[0] / total, *axes[1:]]


def _along_axes(actions: Grid, anchor: Array, beyond: Array, sd: Array) -> list[Array]:
    scaled = [(axis - a) / s for axis, a, s in zip(actions.axes, anchor, sd, strict=True)]
    return [-(0.5 * z + b) * z for z, b in zip(scaled, beyond / sd, strict=True)]


def product_of(factors: list[Float[Array, "_ n"]], actions: Grid) -> Float[Array, "d n"]:
    """The columns that the factors of n primitives stand for."""
    whole = _outer(factors, jnp.multiply)
    return whole if actions.kept is None else whole[actions.kept]


def _inside(actions: AbstractActions, mean: Array) -> Array:
    return actions.inside(mean).astype(float)  # a list may hold whole numbers


def _normalised(z: Array) -> Array:
    z = z - jnp.max(z)
    return z - logsumexp(z)


def _outer(axes: list[Array], combine: Callable[[Array, Array], Array]) -> Array:
    """Combine one array for each axis into one over the grid, in row-major order; trailing axes go along."""
    whole = axes[0]
    for axis in axes[1:]:
        whole = combine(whole[:, None], axis[None]).reshape(-1, *axis.shape[1:])
    return whole


def _constant(mean: ArrayLike) -> Callable[[Observation, Time], ArrayLike]:
    value = np.atleast_1d(np.asarray(mean, dtype=float))
    if not np.all(np.isfinite(value)):
        raise ValueError(f"mean = {value.tolist()}: pass finite numbers, or a function of (observation, k).")
    return jax.tree_util.Partial(_first, value)


def _first(value: Any, observation: Observation, k: Time) -> Any:
    return value


def _spread(sd: ArrayLike | None, covariance: ArrayLike | None) -> tuple[Array | None, Array | None]:
    """(sd, None) or (None, the Cholesky factor of a covariance that couples the axes)."""
    if sd is not None:
        if not is_traced(sd):
            values = np.asarray(sd, dtype=float)
            if values.ndim > 1 or not np.all(np.isfinite(values) & (values > 0)):
                raise ValueError(f"sd = {values.tolist()}: pass a positive number, or one for each axis.")
        return jnp.asarray(sd, dtype=float), None
    if is_traced(covariance):
        return None, jnp.linalg.cholesky(covariance)
    matrix = np.asarray(covariance, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T, rtol=1e-9, atol=0):
        raise ValueError(f"covariance has shape {matrix.shape}: pass a symmetric matrix; for independent axes pass sd.")
    try:
        cholesky = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        lowest = np.linalg.eigvalsh(matrix)[0] if np.all(np.isfinite(matrix)) else np.nan
        raise ValueError(
            f"covariance is not positive definite (smallest eigenvalue {lowest:.3g}): every direction needs a spread."
        ) from None
    if np.count_nonzero(matrix - np.diag(np.diag(matrix))) == 0:
        return jnp.sqrt(jnp.asarray(np.diag(matrix))), None
    return None, jnp.asarray(cholesky)
