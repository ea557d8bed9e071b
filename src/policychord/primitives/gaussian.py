"""`Gaussian`: a command with a spread around it."""

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import log_ndtr, logsumexp, ndtr, ndtri
from jaxtyping import Array, Bool, Float

from .._calls import call_at, check_hashable
from .._types import ArrayLike, Observation, Time, is_traced
from ..actions import AbstractActions, Grid, Sampled
from .base import AbstractPrimitive, Moments

# On a ball the best point of each axis need not belong to the ball, and the product of the axes loses
# exp( (distance/sd)^2 / 2 ) against it. From a mean in the ball to the nearest of its points it is never farther than
# the diagonal of one cell, so with this bound the loss stays below 1e266, far from underflow.
LARGEST_DIAGONAL_IN_SD = 35.0
MOVED, LOST = 0.25, 0.2  # a grid is too coarse if it moves means by so many sd, too small if it misses so much mass


class Gaussian(AbstractPrimitive):
    """pi(u | x) proportional to exp( -(u - m)^T C^-1 (u - m) / 2 ) on the points of the action set.

    m = mean(observation, k), or mean(observation). Give the spread as `sd` (a number, one for each axis, or a function
    of the same that gives either) or as `covariance` (a matrix). A mean outside the set is moved to the nearest action
    that is allowed, as a saturating actuator would (`outside="clip"`), or kept where it is, so that the points carry
    the Gaussian's tail (`outside="tail"`; far out, the nearest point takes it all).
    Both are computed in log space and never underflow to nothing. Near the border either is narrower than a Gaussian
    and has less entropy, which by itself moves the weights: extend the grid past the limits if that matters.
    """

    mean: Callable[[Observation, Time], ArrayLike]
    sd: Callable[[Observation, Time], ArrayLike] | Float[Array, "..."] | None
    cholesky: Float[Array, "dim dim"] | None
    outside: Literal["clip", "tail"] = eqx.field(static=True)

    def __init__(
        self,
        mean: Callable[[Observation, Time], ArrayLike] | ArrayLike,
        sd: Callable[[Observation, Time], ArrayLike] | ArrayLike | None = None,
        *,
        covariance: ArrayLike | None = None,
        outside: Literal["clip", "tail"] = "clip",
    ):
        if (sd is None) == (covariance is None):
            raise ValueError("pass exactly one of sd (a standard deviation for each axis) and covariance (a matrix).")
        if outside not in ("clip", "tail"):
            raise ValueError(f"outside = {outside!r}: use 'clip' (move the mean to the border) or 'tail' (leave it).")
        self.mean = mean if callable(mean) else _constant(mean)
        self.sd, self.cholesky = (sd, None) if callable(sd) else _spread(sd, covariance)
        self.outside = outside
        check_hashable("mean", self.mean)
        check_hashable("sd", self.sd)

    def at(self, observation: Observation, k: Time) -> "Gaussian":
        """The same primitive with the spread that it has for this observation; one that is not positive is NaN."""
        if not callable(self.sd):
            return self
        sd = jnp.asarray(call_at("sd", self.sd, observation, k), dtype=float)
        whole = jnp.where(jnp.all(jnp.isfinite(sd) & (sd > 0)), sd, jnp.nan)
        return eqx.tree_at(lambda gaussian: gaussian.sd, self, whole)

    def centre(self, actions: AbstractActions, observation: Observation, k: Time) -> Float[Array, "..."]:
        """The mean for this observation, where it will be used: of squashed actions before they are squashed."""
        dim = actions.points.shape[1:]
        mean = jnp.asarray(call_at("mean", self.mean, observation, k), dtype=float)
        if mean.size == 1 and mean.ndim <= 1 and dim in ((), (1,)):
            mean = mean.reshape(dim)  # one number is one number
        if mean.shape != dim:
            raise ValueError(f"mean(observation, k) has shape {mean.shape}, but an action has shape {dim}.")
        self._fits(actions)
        squashed = isinstance(actions, Sampled) and actions.squash
        return _inside(actions, mean) if self.outside == "clip" and not squashed else mean

    def log_prob(self, actions: AbstractActions, observation: Observation, k: Time) -> Float[Array, " d"]:
        if callable(self.sd):
            return self.at(observation, k).log_prob(actions, observation, k)
        if self.sd is not None and isinstance(actions, Grid) and actions.kept is None:
            axes = [_normalised(z) for z in _along_axes(actions, *self.placed(actions, observation, k))]
            return _outer(axes, jnp.add)
        anchor, beyond = self._anchored(actions, observation, k)
        offsets = (actions.points - anchor).reshape(actions.size, -1)
        scaled, beyond = self._scaled(offsets), self._scaled(beyond.reshape(1, -1))
        return _normalised(-jnp.sum((0.5 * scaled + beyond) * scaled, axis=-1))

    def sample(
        self, uniforms: Float[Array, "m dim"], actions: Sampled, observation: Observation, k: Time
    ) -> Float[Array, "m dim"]:
        """The points at which uniform numbers are its quantiles: axis by axis, then through the Cholesky factor."""
        here, centre = self._for_sampling(actions, observation, k)
        if here.cholesky is not None:
            return centre + ndtri(uniforms) @ here.cholesky.T
        if not actions.cut:  # the same quantiles for all observations
            return centre + jnp.asarray(here.sd) * ndtri(uniforms)
        sd, low, high = here._in_sd(actions, centre)
        # from the side with the smaller numbers, which have more digits
        flip = low > 0
        low, high = jnp.where(flip, -high, low), jnp.where(flip, -low, high)
        level = ndtr(low) + uniforms * (ndtr(high) - ndtr(low))
        z = jnp.clip(ndtri(jnp.clip(level, 1e-300, 1 - 2.0**-53)), low, high)
        return centre + sd * jnp.where(flip, -z, z)

    def log_density(
        self, points: Float[Array, "d dim"], actions: Sampled, observation: Observation, k: Time
    ) -> Float[Array, " d"]:
        """ln of the normal density, cut at the sides of the box."""
        here, centre = self._for_sampling(actions, observation, k)
        z = here._scaled(points - centre)
        return -0.5 * jnp.sum(z**2, axis=-1) - here._log_volume(actions, centre)

    def moments(self, actions: Sampled, observation: Observation, k: Time) -> Moments:
        """Of z, cut at a and b: E[z] = (phi(a) - phi(b))/mass and E[z^2] = 1 + (a phi(a) - b phi(b))/mass."""
        here, centre = self._for_sampling(actions, observation, k)
        volume = here._log_volume(actions, centre)
        if here.cholesky is not None:
            covariance = here.cholesky @ here.cholesky.T
            return Moments(jnp.asarray(-0.5 * len(centre) - volume), centre, jnp.outer(centre, centre) + covariance)
        if not actions.cut:
            variance = jnp.broadcast_to(jnp.asarray(here.sd) ** 2, centre.shape)
            return Moments(-0.5 * len(centre) - volume, centre, jnp.outer(centre, centre) + jnp.diag(variance))
        sd, low, high = here._in_sd(actions, centre)
        heights = [jnp.exp(-0.5 * z**2 - log_mass(low, high)) / np.sqrt(2 * np.pi) for z in (low, high)]
        edges = [jnp.where(jnp.isfinite(z), z, 0.0) * height for z, height in zip((low, high), heights, strict=True)]
        first, second = heights[0] - heights[1], 1.0 + edges[0] - edges[1]
        mean = centre + sd * first
        variance = sd**2 * jnp.maximum(second - first**2, 0.0)
        return Moments(-0.5 * jnp.sum(second) - volume, mean, jnp.outer(mean, mean) + jnp.diag(variance))

    def _for_sampling(
        self, actions: Sampled, observation: Observation, k: Time
    ) -> tuple["Gaussian", Float[Array, " dim"]]:
        here = self.at(observation, k)
        if here.cholesky is not None and not actions.squash and bool(np.any(np.isfinite(actions.low + actions.high))):
            raise ValueError(
                "a covariance that couples the axes cannot be cut at the sides of a box: give sd, or use "
                "Sampled(low, high, squash=True)."
            )
        return here, here.centre(actions, observation, k)

    def _in_sd(self, actions: Sampled, centre: Array) -> tuple[Array, Array, Array]:
        """(sd of each axis, the sides of the box in sd from the mean)."""
        sd = jnp.broadcast_to(jnp.asarray(self.sd), centre.shape)
        low, high = actions.sides
        return sd, (low - centre) / sd, (high - centre) / sd

    def _log_volume(self, actions: Sampled, centre: Array) -> Array:
        """ln of the integral of exp(-z.z/2) over the set."""
        normal = 0.5 * len(centre) * np.log(2 * np.pi)
        if self.cholesky is not None:
            return normal + jnp.sum(jnp.log(jnp.diag(self.cholesky)))
        sd, low, high = self._in_sd(actions, centre)
        return normal + jnp.sum(jnp.log(sd) + (log_mass(low, high) if actions.cut else 0.0))

    def _fits(self, actions: AbstractActions) -> None:
        dim = int(np.prod(actions.points.shape[1:]))
        if self.sd is not None and not callable(self.sd) and self.sd.shape not in ((), (1,), (dim,)):
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
        if self.outside == "tail" or callable(self.sd) or is_traced(self.sd, actions.points):
            return False
        cell = [np.diff(np.asarray(axis)[:2]) for axis in actions.axes]  # NumPy, so that it has a value in a trace too
        return bool(np.linalg.norm(cell) <= LARGEST_DIAGONAL_IN_SD * np.min(np.asarray(self.sd)))

    def placed(self, actions: Grid, observation: Observation, k: Time) -> list[Float[Array, " dim"]]:
        """[a, a - m, sd] for each axis, a the allowed action next to the mean."""
        here = self.at(observation, k)
        anchor, beyond = here._anchored(actions, observation, k)
        sd = jnp.broadcast_to(jnp.asarray(here.sd), anchor.shape)
        # a spread that is not a number takes the place along, which is what is looked at
        return [jnp.where(jnp.isfinite(sd), anchor, jnp.nan) if callable(self.sd) else anchor, beyond, sd]

    def mass_on(self, actions: Grid, observation: Observation, k: Time) -> Float[Array, ""]:
        """Its mass on the cells of the points, which should be one: less where it is cut off."""
        here = self.at(observation, k)
        if here.sd is not None:
            return factors(actions, *here.placed(actions, observation, k))[1]
        offsets = here._scaled(actions.points - here.centre(actions, observation, k))
        cell = jnp.prod(actions.spacing) / jnp.prod(jnp.diag(jnp.asarray(here.cholesky)))
        return jnp.sum(jnp.exp(-0.5 * jnp.sum(offsets**2, axis=-1))) * cell / (2 * np.pi) ** (len(actions.axes) / 2)

    def spoiled_by(self, actions: Grid, observation: Observation, k: Time) -> Bool[Array, ""]:
        """Whether the grid cuts it off for this observation, or is too coarse for it."""
        here = self.at(observation, k)
        return here.spoiled(actions, here.mass_on(actions, observation, k))

    def spoiled(self, actions: Grid, mass: Float[Array, ""]) -> Bool[Array, ""]:
        """The same, if its mass on the grid is known."""
        return (jnp.abs(mass - 1) > LOST) | (self.coarseness(actions) > MOVED)

    def coarseness(self, actions: Grid) -> Float[Array, ""]:
        """By how many sd the points can move its mean far from borders: (4 pi/r) exp(-2 pi^2/r^2), r = cell/sd.

        Of a spread that does not follow the observation: `at` gives it.
        """
        narrow = 1.0 / jnp.linalg.norm(self._scaled(jnp.eye(len(actions.axes))), axis=-1)
        ratio = jnp.max(actions.spacing / narrow)
        return jnp.where(ratio > 4, ratio / 4, 4 * np.pi / ratio * jnp.exp(-2 * np.pi**2 / ratio**2))

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
) -> tuple[list[Float[Array, " _"]], Float[Array, ""]]:
    """(one vector for each axis, the mass on the grid) of a `placed` Gaussian.

    The outer product of the vectors, cut to the set, is its distribution. A full exponential costs one exp for each
    point, this one for each point of each axis. The sum that makes them a distribution also tells what the grid misses.
    """
    exponents = _along_axes(actions, anchor, beyond, sd)
    tops = [jnp.max(z) for z in exponents]
    axes = [jnp.exp(z - top) for z, top in zip(exponents, tops, strict=True)]
    if actions.kept is None:
        sums = [jnp.sum(axis) for axis in axes]
        along, total = [axis / norm for axis, norm in zip(axes, sums, strict=True)], jnp.prod(jnp.stack(sums))
    else:
        total = jnp.asarray(actions.mask)
        for axis in reversed(axes):
            total = total @ axis
        along = [axes[0] / total, *axes[1:]]
    cells = actions.spacing / (sd * np.sqrt(2 * np.pi))
    return along, total * jnp.prod(cells) * jnp.exp(sum(tops) - 0.5 * jnp.sum((beyond / sd) ** 2))


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


def log_mass(low: Array, high: Array) -> Array:
    """ln( Phi(high) - Phi(low) ), with its digits in either tail."""
    low, high = jnp.where(low > 0, -high, low), jnp.where(low > 0, -low, high)
    return log_ndtr(high) + jnp.log1p(-jnp.exp(log_ndtr(low) - log_ndtr(high)))


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
