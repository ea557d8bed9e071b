"""Action sets: what an agent can do, as points. A list, a grid on a box or a ball, or points that primitives draw."""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from ._types import ArrayLike, in_native_order

MANY = 16  # points from which on they come in four scrambles: each then has four
MOST_CELLS = 10_000_000  # 80 MB for one primitive; beyond it a grid is a typing error more often than a wish


class AbstractActions(eqx.Module):
    """d points. An index gives one of them, a distribution over them gives a mean, and a mean an action."""

    points: eqx.AbstractVar[Shaped[Array, "d ..."]]

    @property
    def size(self) -> int:
        """d, the number of actions."""
        return self.points.shape[0]

    @property
    def labels(self) -> bool:
        """Whether the actions are names rather than quantities."""
        return jnp.issubdtype(self.points.dtype, jnp.integer)

    def at(self, index: Int[Array, ""] | int) -> Shaped[Array, "..."]:
        """The action with this index."""
        return self.points[index]

    @abstractmethod
    def mean(self, prob: Float[Array, " d"]) -> Shaped[Array, "..."]:
        """The action that stands for the mean of a distribution over the points."""

    @abstractmethod
    def inside(self, action: Float[Array, "..."]) -> Float[Array, "..."]:
        """The nearest action that is allowed: what a saturating actuator makes of a command."""


class Finite(AbstractActions):
    """A list of actions: `Finite(3)` are the labels 0, 1, 2; `Finite([[0, 1], [1, 0]])` are two vectors.

    A plain list of whole numbers are labels, `Finite([0.0, 1.0])` are quantities. The mean of labels is not an action,
    so `selection="mean"` refuses them; the mean of vectors becomes the nearest vector of the list.
    """

    points: Shaped[Array, "d ..."]

    def __init__(self, points: ArrayLike):
        if isinstance(points, int | np.integer):
            points = np.arange(points)
        points = np.asarray(points)
        if points.ndim == 0 or points.shape[0] == 0:
            raise ValueError(f"points has shape {points.shape}: a finite action set needs at least one action.")
        if points.dtype.kind not in "iuf" or not np.all(np.isfinite(points)):
            raise ValueError("points must be finite numbers, one row for each action, or the number of labels.")
        self.points = jnp.asarray(in_native_order(points) if points.ndim == 1 else points.astype(float))

    def mean(self, prob: Float[Array, " d"]) -> Shaped[Array, "..."]:
        if self.labels:
            raise ValueError(
                "the actions are labels, and the mean of labels is not an action: use selection='sample' or 'dither', "
                "or give the actions as vectors, Finite([[0.0, 1.0], [1.0, 0.0]])."
            )
        return self.inside(jnp.tensordot(prob, self.points, axes=1))

    def inside(self, action: Float[Array, "..."]) -> Shaped[Array, "..."]:
        offsets = (self.points - action).reshape(self.size, -1)
        return self.points[jnp.argmin(jnp.sum(offsets**2, axis=-1))]


class Grid(AbstractActions):
    """A uniform grid on the box [low, high], optionally only the points within `radius` of the box's centre.

    `count` is the number of points along each axis, ends included; a single number serves all axes. `saturates` says
    that the ends are limits of what can be done, so that primitives may want more: no warning says that they are cut.
    """

    points: Float[Array, "d dim"]
    axes: tuple[Float[Array, " _"], ...]
    kept: Int[Array, " d"] | None  # positions within the full grid, in row-major order; None for all of it
    mask: Float[Array, "..."] | None  # the same as ones and zeros over the full grid
    radius: float | None = eqx.field(static=True)
    saturates: bool = eqx.field(static=True)
    cut: bool = eqx.field(static=True)  # whether the ball reaches past the box

    def __init__(
        self, low: ArrayLike, high: ArrayLike, count: ArrayLike, radius: float | None = None, *, saturates: bool = False
    ):
        low, high, count = _box(low, high, count)
        axes = [np.linspace(a, b, c) for a, b, c in zip(low, high, count, strict=True)]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        kept = None
        if radius is not None:
            if not (np.isfinite(radius) and radius > 0):
                raise ValueError(f"radius = {radius!r}: pass a positive number, or None for the whole box.")
            # the points that lie on the sphere up to rounding belong to the ball
            distance = np.linalg.norm(points - (low + high) / 2, axis=-1)
            kept = np.flatnonzero(distance <= radius * (1 + 1e-12))
            if len(kept) == 0:
                raise ValueError(
                    f"radius = {radius!r} keeps none of the {len(points)} grid points: use more points or a larger one."
                )
            points = points[kept]
        self.points = jnp.asarray(points)
        self.axes = tuple(jnp.asarray(axis) for axis in axes)
        self.kept = None if kept is None else jnp.asarray(kept)
        self.mask = None if kept is None else jnp.zeros(count.prod()).at[self.kept].set(1.0).reshape(count)
        self.radius, self.saturates = None if radius is None else float(radius), saturates
        self.cut = radius is not None and bool(np.any(radius > (high - low) / 2))

    @property
    def low(self) -> Float[Array, " dim"]:
        """The lower corner of the box."""
        return jnp.stack([axis[0] for axis in self.axes])

    @property
    def high(self) -> Float[Array, " dim"]:
        """The upper corner of the box."""
        return jnp.stack([axis[-1] for axis in self.axes])

    @property
    def spacing(self) -> Float[Array, " dim"]:
        """The distance of neighbouring points along each axis."""
        return jnp.stack([axis[1] - axis[0] for axis in self.axes])

    def mean(self, prob: Float[Array, " d"]) -> Float[Array, "..."]:
        return prob @ self.points

    def inside(self, action: Float[Array, "..."]) -> Float[Array, "..."]:
        if self.radius is None:
            return jnp.clip(action, self.low, self.high)
        centre, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        offset = action - centre
        largest = jnp.max(jnp.abs(offset))
        direction = offset / jnp.where(largest > 0, largest, 1.0)  # so that no square overflows
        # Where the ball reaches past the box, the axes that meet the box's side stop there and the others go on to
        # the sphere, which may let another one meet its side.
        stopped = jnp.zeros(offset.shape, bool)
        for _ in self.axes if self.cut else (0,):
            left = self.radius**2 - jnp.sum(jnp.where(stopped, half**2, 0.0))
            free = jnp.sum(jnp.where(stopped, 0.0, direction**2))
            reach = jnp.sqrt(jnp.maximum(left, 1e-300) / jnp.where(free > 0, free, 1.0))
            scaled = jnp.where(largest <= reach, offset, reach * direction)
            stopped = stopped | (jnp.abs(scaled) > half)
        return centre + jnp.clip(scaled, -half, half)


class Sampled(AbstractActions):
    """Actions in any dimension, drawn from the primitives themselves at every decision.

    `Sampled(low, high)` are the actions of a box, `Sampled(dim=6)` all vectors. Of `count` points each primitive gives
    an equal share, by the quantiles of scrambled Sobol points; primitives need `sample` and `log_density`, as Gaussian
    has. The points come in `scrambles` independent sets (4, and 2 if there are fewer than 16 points), and what these
    disagree about is the `standard_error` of a decision; `agent.interval(decision)` makes intervals of it. It is
    statistical and apart from the certificate, which is of the problem on the points. `benchmarks/sampled.py`
    measures both. In a box a Gaussian is cut at the sides; with `squash` its axes are squeezed into the box by tanh
    instead, u = g(y), and primitives speak of y.
    """

    points: Float[Array, "d dim"]  # the middle, until an observation says where the primitives are
    uniforms: Float[Array, "scrambles share dim"]
    low: Float[Array, " dim"]
    high: Float[Array, " dim"]
    squash: bool = eqx.field(static=True)
    cut: bool = eqx.field(static=True)  # whether primitives are cut at a side of the box

    def __init__(
        self,
        low: ArrayLike = -np.inf,
        high: ArrayLike = np.inf,
        *,
        dim: int | None = None,
        count: int = 256,
        scrambles: int | None = None,
        squash: bool = False,
        seed: int = 0,
    ):
        low, high = (np.atleast_1d(np.asarray(side, dtype=float)) for side in (low, high))
        shape = np.broadcast_shapes(low.shape, high.shape, (dim or 1,))
        low, high = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
        if len(shape) != 1 or not np.all(low < high) or (dim is not None and shape != (dim,)):
            raise ValueError(
                f"low = {low.tolist()}, high = {high.tolist()}: one number for each axis, with low < high."
            )
        if squash and not np.all(np.isfinite(low) & np.isfinite(high)):
            raise ValueError("squash needs a box: pass finite low and high.")
        scrambles = (4 if count >= MANY else 2) if scrambles is None else scrambles
        if not (scrambles >= 2 and count >= 2 * scrambles):
            raise ValueError(
                f"count = {count}, scrambles = {scrambles}: at least 2 scrambles, and 2 points for each of them."
            )
        share = count // scrambles
        self.uniforms = jnp.asarray(np.stack([_sobol_points(share, *shape, seed, i) for i in range(scrambles)]))
        self.low, self.high, self.squash = jnp.asarray(low), jnp.asarray(high), squash
        self.cut = not squash and bool(np.any(np.isfinite(low) | np.isfinite(high)))
        bounded = np.isfinite(low) & np.isfinite(high)
        middle = np.clip(0.0, low, high)
        middle[bounded] = (low[bounded] + high[bounded]) / 2
        self.points = jnp.asarray(np.broadcast_to(middle, (share * scrambles, *shape)))

    @property
    def sides(self) -> tuple[Array, Array]:
        """Where the primitives' own numbers end: the box, or nowhere if they are squashed into it."""
        far = jnp.full_like(self.low, jnp.inf)
        return (-far, far) if self.squash else (self.low, self.high)

    def at_points(self, own: Float[Array, "d dim"]) -> "Sampled":
        """The set with these points, given in the primitives' own numbers."""
        half = (self.high - self.low) / 2
        points = self.low + half * (1 + jnp.tanh(own)) if self.squash else own
        return eqx.tree_at(lambda grid: grid.points, self, points)

    def log_stretch(self, own: Float[Array, "d dim"]) -> Float[Array, " d"]:
        """ln |det du/dy| at each point y: zero unless squashed."""
        if not self.squash:
            return jnp.zeros(own.shape[0])
        # ln(1 - tanh^2 y) without cancellation
        slope = 2 * (np.log(2) - own - jnp.logaddexp(0.0, -2 * own))
        return jnp.sum(slope + jnp.log((self.high - self.low) / 2), axis=-1)

    def mean(self, prob: Float[Array, " d"]) -> Float[Array, "..."]:
        return prob @ self.points

    def inside(self, action: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.clip(action, self.low, self.high)


def _sobol_points(count: int, dim: int, seed: int, scramble: int) -> np.ndarray:
    from scipy.stats import qmc  # slow to import, and only this set needs it

    rng = np.random.default_rng([seed, scramble])
    points = qmc.Sobol(dim, scramble=True, rng=rng).random_base2(int(np.ceil(np.log2(count))))[:count]
    return np.clip(points, 2.0**-40, 1 - 2.0**-40)


def _box(low: ArrayLike, high: ArrayLike, count: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The box's corners and counts as vectors of one length, or what is wrong with them."""
    low, high, count = (np.atleast_1d(np.asarray(value)) for value in (low, high, count))
    try:
        low, high, count = np.broadcast_arrays(low.astype(float), high.astype(float), count)
    except ValueError:
        raise ValueError(
            f"low {low.shape}, high {high.shape} and count {count.shape} do not agree: one entry for each axis, "
            "or a single number for all."
        ) from None
    if low.ndim != 1:
        raise ValueError(f"low and high have shape {low.shape}: pass one number for each axis.")
    if not np.all(np.isfinite(low) & np.isfinite(high) & (low < high)):
        raise ValueError(f"low = {low.tolist()}, high = {high.tolist()}: the box needs finite corners with low < high.")
    if count.dtype.kind not in "iu" or np.any(count < 2):
        raise ValueError(f"count = {count.tolist()}: a grid needs a whole number of at least 2 points along each axis.")
    if (cells := int(np.prod(count, dtype=np.float64))) > MOST_CELLS:
        raise ValueError(
            f"count = {count.tolist()} makes {cells:.3g} points (limit {MOST_CELLS:.0e}): use fewer along each axis."
        )
    return low, high, count
