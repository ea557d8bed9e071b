"""What a boid sees of the others: three zones around it, cut to its field of view."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Float, Int

from ..._types import Array, namespace

Boid = Int[Array, ""] | int  # the number of one

SOFTENING = 1e-6  # m, keeps the closeness of touching boids finite


class Zones(NamedTuple):
    """Annuli of distance, (0, separation], (separation, alignment], (alignment, cohesion], within the vision angle."""

    separation: Float[Array, ""] | float = 1.0  # m
    alignment: Float[Array, ""] | float = 3.0  # m
    cohesion: Float[Array, ""] | float = 12.0  # m
    vision_angle: Float[Array, ""] | float = 320.0  # degrees


class View(NamedTuple):
    """A boid's own motion and the means over its zones; an empty zone gives zero, or what the boid does itself."""

    position: Float[Array, "*boid 2"]
    velocity: Float[Array, "*boid 2"]
    separation: Float[Array, "*boid 2"]  # mean of (1 - d/r) times the direction away
    alignment: Float[Array, "*boid 2"]  # mean heading of the neighbours, or its own
    cohesion: Float[Array, "*boid 2"]  # mean of (r - d)/(r - r_alignment) times the direction towards
    mean_velocity: Float[Array, "*boid 2"]  # over the alignment zone, or its own
    mean_position: Float[Array, "*boid 2"]  # over the cohesion zone, or its own
    closeness: Float[Array, "*boid other 2"]  # in the separation zone: direction towards over distance; else zero


def unit(vector: Float[Array, "*any 2"]) -> Float[Array, "*any 2"]:
    """v/|v|, and zero for zero."""
    xp = namespace(vector)
    length = _length(vector)[..., None]
    return vector / xp.where(length > 0, length, 1.0)


def _length(vector: Array) -> Any:
    xp = namespace(vector)
    return xp.sqrt(vector[..., 0] ** 2 + vector[..., 1] ** 2)


def is_seen(zones: Zones, offset: Any, distance: Float[Array, " n"], velocity: Float[Array, " 2"]) -> Any:
    """Whether the angle between velocity and offset, as (x, y), is at most half the vision angle.

    A boid that stands still looks all around, and no boid sees one in the same place, itself included.
    """
    widest = jnp.cos(jnp.deg2rad(zones.vision_angle) / 2)
    ahead = offset[0] * velocity[0] + offset[1] * velocity[1]
    return (ahead >= widest * _length(velocity) * distance) & (distance > 0)


def look(zones: Zones, position: Float[Array, "n 2"], velocity: Float[Array, "n 2"], i: Boid) -> View:
    """What boid i sees, by looking at every other one.

    Axis by axis: a compiler makes one quick loop of rows of numbers, and a slow one of rows of pairs.
    """
    own, moving, heading = position[i], velocity[i], unit(velocity)
    offset = position[:, 0] - own[0], position[:, 1] - own[1]
    distance = jnp.sqrt(offset[0] ** 2 + offset[1] ** 2)
    apart = jnp.where(distance > 0, distance, 1.0)
    towards = offset[0] / apart, offset[1] / apart
    seen = is_seen(zones, offset, distance, moving)
    near, middle, far = (seen & inside for inside in zones_of(zones, distance))
    # the nearest push and the farthest pull most: both fade out with distance
    push, pull = 1.0 - distance / zones.separation, (zones.cohesion - distance) / (zones.cohesion - zones.alignment)
    nothing = jnp.zeros(2)
    return View(
        position=own,
        velocity=moving,
        separation=_mean(near, (-push * towards[0], -push * towards[1]), nothing),
        alignment=_mean(middle, heading.T, heading[i]),
        cohesion=_mean(far, (pull * towards[0], pull * towards[1]), nothing),
        mean_velocity=_mean(middle, velocity.T, moving),
        mean_position=_mean(far, position.T, own),
        closeness=jnp.stack([jnp.where(near, part / (distance + SOFTENING), 0.0) for part in towards], axis=-1),
    )


def zones_of(zones: Zones, distance: Array) -> tuple[Any, Any, Any]:
    """Which distances lie in the zones of separation, alignment and cohesion."""
    near = distance <= zones.separation
    middle = (distance > zones.separation) & (distance <= zones.alignment)
    return near, middle, (distance > zones.alignment) & (distance <= zones.cohesion)


def _mean(members: Any, values: Any, otherwise: Any) -> Any:
    """Of (x, y) over the members."""
    count = jnp.sum(members)
    total = jnp.stack([jnp.sum(jnp.where(members, axis, 0.0)) for axis in values])
    return jnp.where(count > 0, total / jnp.maximum(count, 1), otherwise)
