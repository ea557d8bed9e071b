"""A flock: boids in the plane with limited speed and acceleration, and the rules of motion of the literature."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from ..._types import Action, ArrayLike, Time
from ...loops.environment import AbstractEnv, Box, Spaces, Step, Variable
from .neighbours import Boid, View, Zones, is_seen, look, unit, zones_of

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

    Turns by at most `turning` dt, at constant speed. In the released scripts both zones count equally and repulsion,
    too, only sees what is ahead; in the original, neighbours count equally, and a boid flees from all sides.
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
        seen = is_seen(self.zones, offset.T, distance, moving)
        near, middle, far = zones_of(self.zones, distance)
        near = near & (distance > 0) & (seen | self.original)
        away = -_total(near, towards)
        along, approach = _total(seen & middle, unit(velocity)), _total(seen & far, towards)
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


Search = Literal["pairs", "cells"]
PAIRS = 8192  # looked at together: what fits into a processor's cache, or a thousand boids take twenty times as long


class FlockState(NamedTuple):
    """Where the boids are and how they move."""

    position: Float[Array, "boid 2"]
    velocity: Float[Array, "boid 2"]


Start = Callable[..., FlockState]  # of (key, number of boids)


class Flock(AbstractEnv):
    """p' = p + v dt, v' = v + u dt, with |u| and |v| limited, for all boids at once.

    The first `agents` boids are moved by their accelerations, the others by the rule of `follower`. Neighbours are
    found by looking at all pairs, or by cells: compiled for the CPU, faster at every size, and listing only up to
    `crowd` neighbours of a separation zone, of whom there may not be more. Where cells are not available, pairs are
    used. Nothing is rewarded.
    """

    boids: int = eqx.field(static=True)
    agents: int = eqx.field(static=True)
    follower: AbstractFollower | None
    start: Start
    zones: Zones
    dt: Float[Array, ""]  # s
    max_speed: Float[Array, ""]  # m/s
    max_acceleration: Float[Array, ""]  # m/s^2
    search: Search = eqx.field(static=True)
    crowd: int = eqx.field(static=True)
    deciding: Int[Array, ""] | None  # if given, only so many of the agents are moved by their accelerations

    variables: ClassVar[Mapping[str, Variable]] = MappingProxyType(
        {"position": Variable(("boid", "axis"), "m"), "velocity": Variable(("boid", "axis"), "m/s")}
    )

    def __init__(
        self,
        boids: int = 40,
        *,
        agents: int | None = None,
        follower: AbstractFollower | None = None,
        start: Start | None = None,
        zones: Zones | None = None,
        dt: float = 0.05,
        max_speed: float = 1.0,
        max_acceleration: float = 3.0,
        search: Search = "pairs",
        crowd: int = 64,
    ):
        self.boids = boids
        self.agents = boids if agents is None else agents
        if not 0 <= self.agents <= boids or boids < 1:
            raise ValueError(f"agents = {agents}, boids = {boids}: at least one boid, and no more agents than boids.")
        if (follower is None) != (self.agents == boids):
            raise ValueError(
                f"{boids - self.agents} boids are no agents and follower is {follower!r}: a rule of motion is needed "
                "if and only if somebody follows it."
            )
        if search not in ("pairs", "cells"):
            raise ValueError(f"search = {search!r}: use 'pairs' (look at everybody) or 'cells' (compiled, on the CPU).")
        if search == "cells":
            from .cells import are_available  # loaded when it is needed, and with it what compiles it

            search = "cells" if are_available() else "pairs"
        self.search = search
        self.follower, self.crowd, self.deciding = follower, crowd, None
        self.start = in_square() if start is None else start
        self.zones = Zones(*(jnp.asarray(z, dtype=float) for z in (zones or Zones())))
        for name, value in (("dt", dt), ("max_speed", max_speed), ("max_acceleration", max_acceleration)):
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"{name} = {value!r}: pass a positive number.")
            setattr(self, name, jnp.asarray(value, dtype=float))

    def reset(self, key: Key[Array, ""]) -> FlockState:
        return self.start(key, self.boids)

    def move(
        self, position: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike
    ) -> tuple[Float[Array, "*any 2"], Float[Array, "*any 2"]]:
        """Position and velocity one time step later: what a model of a boid predicts."""
        return position + velocity * self.dt, _limited(velocity + acceleration * self.dt, self.max_speed)

    def follow(self, key: Key[Array, ""], state: FlockState, i: Boid) -> Float[Array, " 2"]:
        """The next velocity of follower i."""
        assert self.follower is not None
        return self.follower.velocity(jax.random.fold_in(key, i), state.position, state.velocity, i, self.dt)

    def step(self, key: Key[Array, ""], state: FlockState, action: Action, k: Time) -> Step:
        asked = _limited(action, self.max_acceleration)
        velocity = _limited(state.velocity[: self.agents] + asked * self.dt, self.max_speed)
        first = self.agents if self.deciding is None else 0
        if first < self.boids:
            rest = jax.vmap(lambda i: self.follow(key, state, i))(jnp.arange(first, self.boids))
            if self.deciding is not None:
                decides = jnp.arange(self.agents)[:, None] < self.deciding
                velocity, rest = jnp.where(decides, velocity, rest[: self.agents]), rest[self.agents :]
            velocity = jnp.concatenate([velocity, rest])
        following = FlockState(state.position + state.velocity * self.dt, velocity)
        return Step(following, jnp.zeros(()), jnp.asarray(False))

    def view(self, state: FlockState, i: Boid) -> View:
        """What boid i sees."""
        return look(self.zones, state.position, state.velocity, i)

    def only(self, i: Boid) -> "_OneBoid":
        """The flock as far as boid i sees and moves it, for boids that move in turn."""
        return _OneBoid(self, i)

    def observe(self, state: FlockState) -> View:
        if self.search == "pairs":
            at_once = max(1, PAIRS // self.boids)
            return jax.lax.map(lambda i: self.view(state, i), jnp.arange(self.agents), batch_size=at_once)
        from .cells import look_by_cells

        everybody, most = look_by_cells(self.zones, state.position, state.velocity, self.crowd)
        if self.crowd:
            sentence = f"a boid has more than crowd = {self.crowd} neighbours in its separation zone: raise crowd."
            everybody = eqx.error_if(everybody, most > self.crowd, sentence)
        return jax.tree_util.tree_map(lambda rows: rows[: self.agents], everybody)

    def signals(self, state: FlockState) -> Float[Array, " m"]:
        return jnp.concatenate([state.position.ravel(), state.velocity.ravel()])

    def spaces(self) -> Spaces:
        fastest, strongest = float(self.max_speed), float(self.max_acceleration)
        # limited speeds may exceed their limit in the last digit
        bounds = np.concatenate([np.full(2 * self.boids, np.inf), np.full(2 * self.boids, fastest * (1 + 1e-12))])
        action = np.full((self.agents, 2), strongest)
        return Spaces(Box(-bounds, bounds), Box(-action, action))


class _OneBoid(eqx.Module):
    """One boid of a flock in which all others stand still."""

    flock: Flock
    i: Boid

    def observe(self, state: FlockState) -> View:
        return self.flock.view(state, self.i)

    def step(self, key: Key[Array, ""], state: FlockState, action: Action | None, k: Time) -> Step:
        """It moves on with its old velocity and takes the new one: by its action, or by the rule of followers."""
        flock, i = self.flock, self.i
        if action is None:
            velocity = flock.follow(key, state, i)
        else:
            velocity = flock.move(state.position[i], state.velocity[i], action)[1]
            if flock.deciding is not None:
                velocity = jnp.where(i < flock.deciding, velocity, flock.follow(key, state, i))
        position = state.position.at[i].add(state.velocity[i] * flock.dt)
        return Step(FlockState(position, state.velocity.at[i].set(velocity)), jnp.zeros(()), jnp.asarray(False))


def _limited(vector: Float[Array, "*any 2"], longest: ArrayLike) -> Float[Array, "*any 2"]:
    """The vector, shortened to the greatest length allowed."""
    length = jnp.sqrt(vector[..., :1] ** 2 + vector[..., 1:] ** 2)
    return jnp.where(length > longest, vector * (longest / jnp.where(length > 0, length, 1.0)), vector)


def in_square(half_width: float = 2.5, pace: float = 1.0) -> Start:
    """Positions uniform in a square, velocities uniform in [-1, 1]^2, cut to unit speed and slowed to `pace`."""
    return eqx.Partial(_in_square, jnp.asarray(half_width, dtype=float), jnp.asarray(pace, dtype=float))


def _in_square(half_width: Array, pace: Array, key: Array, boids: int) -> FlockState:
    where, how = jax.random.split(key)
    position = half_width * jax.random.uniform(where, (boids, 2), float, -1.0, 1.0)
    velocity = _limited(jax.random.uniform(how, (boids, 2), float, -1.0, 1.0), 1.0)
    return FlockState(position, pace * velocity)


def in_ring(radius: float = 5.0, spread: float = 2.0, jitter: float = 0.4, noise: float = 0.4) -> Start:
    """Boids around a ring, radius +- spread, evenly but for an angle of +- jitter; unit speed along it, with noise."""
    return eqx.Partial(_in_ring, *(jnp.asarray(x, dtype=float) for x in (radius, spread, jitter, noise)))


def _in_ring(radius: Array, spread: Array, jitter: Array, noise: Array, key: Array, boids: int) -> FlockState:
    keys = jax.random.split(key, 3)
    even = 2 * jnp.pi * jnp.arange(boids) / boids
    angle = even + jitter * jax.random.uniform(keys[0], (boids,), float, -1.0, 1.0)
    outward = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)
    distance = radius + spread * jax.random.uniform(keys[1], (boids, 1), float, -1.0, 1.0)
    tangent = jnp.stack([-outward[:, 1], outward[:, 0]], axis=-1)
    velocity = jnp.asarray(unit(tangent + noise * jax.random.normal(keys[2], (boids, 2), float)))
    return FlockState(distance * outward, velocity)
