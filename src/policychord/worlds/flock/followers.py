"""How boids of the literature move: Couzin's zones, Cucker and Smale's consensus, Vicsek's noisy average."""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from ..._types import ArrayLike
from .neighbours import Boid, Zones, is_seen, unit

Scalar = Float[Array, ""] | float
Boids = Float[Array, "boid 2"]


class AbstractFollower(eqx.Module):
    """A rule of motion. A new one is a final class with this one method."""

    @abstractmethod
    def velocity(
        self, key: Key[Array, ""], position: Boids, velocity: Boids, i: Boid, dt: Scalar
    ) -> Float[Array, " 2"]:
        """The next velocity of boid i, given where all boids are and how they move."""


class Couzin(AbstractFollower):
    """Flee whoever is too near; else follow the headings of the middle zone and approach the outer one.

    Turns by at most `turning` dt, at constant speed. In the released scripts the middle and the outer zone count
    equally (`balanced`) and repulsion, too, only sees what is ahead; in the original, neighbours count equally, and
    a boid flees from all sides.
    """

    zones: Zones
    turning: Float[Array, ""] | float  # degrees per second
    noise: Float[Array, ""] | float  # rad
    speed: Float[Array, ""] | float
    original: Bool[Array, ""] | bool

    def velocity(
        self, key: Key[Array, ""], position: Boids, velocity: Boids, i: Boid, dt: Scalar
    ) -> Float[Array, " 2"]:
        own, moving = position[i], velocity[i]
        offset = position - own
        distance = jnp.sqrt(jnp.sum(offset**2, axis=-1))
        towards = unit(offset)
        seen = is_seen(self.zones, offset, distance, moving)
        near = (distance > 0) & (distance <= self.zones.separation) & (seen | self.original)
        middle = seen & (distance > self.zones.separation) & (distance <= self.zones.alignment)
        far = seen & (distance > self.zones.alignment) & (distance <= self.zones.cohesion)
        away = -_total(near, towards)
        along, approach = _total(middle, unit(velocity)), _total(far, towards)
        onward = jnp.where(self.original, along + approach, unit(along) + unit(approach))
        wish = jnp.where(jnp.any(near), away, onward)
        return self.speed * _turned(key, moving, wish, self.noise, jnp.deg2rad(self.turning) * dt, self.original)


class CuckerSmale(AbstractFollower):
    """dv/dt = K sum_j (v_j - v)/(1 + d_j^2)^beta: over all boids (the original), or as a mean within a radius."""

    strength: Float[Array, ""] | float  # K, 1/s
    decay: Float[Array, ""] | float  # beta
    radius: Float[Array, ""] | float  # m
    speed: Float[Array, ""] | float  # the largest
    original: Bool[Array, ""] | bool

    def velocity(
        self, key: Key[Array, ""], position: Boids, velocity: Boids, i: Boid, dt: Scalar
    ) -> Float[Array, " 2"]:
        square = jnp.sum((position - position[i]) ** 2, axis=-1)
        others = jnp.arange(len(position)) != i
        heard = others & (self.original | (square <= self.radius**2))
        weight = jnp.where(heard, (1.0 + square) ** -self.decay, 0.0)
        pull = weight @ (velocity - velocity[i])
        share = jnp.where(self.original, 1, jnp.maximum(jnp.sum(heard), 1))
        moved = velocity[i] + dt * self.strength * pull / share
        length = jnp.sqrt(jnp.sum(moved**2))
        return jnp.where(length > self.speed, self.speed * unit(moved), moved)


class Vicsek(AbstractFollower):
    """The mean heading of all within a radius, itself included, turned by uniform noise in [-eta/2, eta/2]."""

    radius: Float[Array, ""] | float  # m
    noise: Float[Array, ""] | float  # eta, rad
    speed: Float[Array, ""] | float

    def velocity(
        self, key: Key[Array, ""], position: Boids, velocity: Boids, i: Boid, dt: Scalar
    ) -> Float[Array, " 2"]:
        heard = jnp.sum((position - position[i]) ** 2, axis=-1) <= self.radius**2
        mean = _total(heard, unit(velocity))
        heading = jnp.where(jnp.any(mean != 0), unit(mean), unit(velocity[i]))
        return self.speed * _rotated(heading, self.noise * jax.random.uniform(key, (), float, -0.5, 0.5))


def _total(members: ArrayLike, values: ArrayLike) -> Array:
    return jnp.sum(jnp.where(members[:, None], values, 0.0), axis=0)


def _turned(key: Array, moving: Array, wish: Array, noise: Scalar, most: Array, gaussian: Array | bool) -> Array:
    """The heading turned towards the wish, by at most `most`, after chance has moved the wish."""
    heading = unit(moving)
    wish = jnp.where(jnp.any(wish != 0), wish, heading)
    even = jax.random.uniform(key, (), float, -1.0, 1.0)
    chance = jnp.where(gaussian, jax.random.normal(key, dtype=float), even)
    wish = _rotated(wish, noise * chance)
    angle = jnp.arctan2(heading[0] * wish[1] - heading[1] * wish[0], heading @ wish)
    return _rotated(heading, jnp.clip(angle, -most, most))


def _rotated(vector: ArrayLike, angle: ArrayLike) -> Array:
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([cosine * vector[0] - sine * vector[1], sine * vector[0] + cosine * vector[1]])
