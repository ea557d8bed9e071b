"""A boid as an agent: three social forces as primitives, a model of good motion, and the world they live in."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._types import Array, Time
from ...actions import Grid
from ...agent import Composer, gate_in_time
from ...agent.gates import bias
from ...models import GaussianTarget, Reference, Sum
from ...models.base import AbstractModel
from ...population import Passive, Population
from ...primitives import Categorical, Gaussian
from .neighbours import View, Zones, unit
from .physics import AbstractFollower, Couzin, CuckerSmale, Flock, Vicsek, in_ring, in_square
from .settings import FlockSettings

FORCES = ("separation", "alignment", "cohesion")
CHUNK = 125  # boids of a large flock that decide at once: more do not fit into a processor's cache


def flock_world(settings: FlockSettings) -> Flock:
    """The flock as an environment. Boids of the literature move by themselves, all others are agents."""
    composed, search = settings.followers == "composed", settings.search
    radii = settings.separation_radius, settings.alignment_radius, settings.cohesion_radius
    zones = Zones(*radii, settings.vision_angle)
    if search == "auto":
        search = "cells" if composed and settings.update == "synchronous" else "pairs"
    start = in_square(settings.start_size, settings.start_pace)
    all_lead = settings.leaders == settings.boids
    return Flock(
        settings.boids,
        agents=settings.boids if composed else settings.leaders,
        follower=None if composed or all_lead else _follower(settings, zones),
        start=in_ring(settings.start_size) if settings.start == "ring" else start,
        zones=zones,
        dt=settings.dt,
        max_speed=settings.max_speed,
        max_acceleration=settings.max_acceleration,
        search=search,
        crowd=128 if settings.collision_term else 0,  # only that term asks who is near
    )


def _follower(settings: FlockSettings, zones: Zones) -> AbstractFollower:
    """A rule of the literature: with the constants of the released scripts, or in its authors' form.

    Couzin et al. 2002 and the constants with which their boids can be guided; Cucker and Smale 2007, who sum over
    everybody; Vicsek et al. 1995, whose radius is the unit of length.
    """
    original, speed = jnp.asarray(settings.form == "original"), settings.max_speed
    if settings.followers == "couzin":
        own = Zones(0.5, 6.0, 12.0, settings.vision_angle) if original else zones
        own = Zones(*(jnp.asarray(z, dtype=float) for z in own))
        return Couzin(own, turning=120.0, noise=0.05, speed=speed, original=original)
    if settings.followers == "cucker-smale":
        return CuckerSmale(strength=1.0, decay=0.4, radius=5.0, speed=speed, original=original)
    return Vicsek(radius=jnp.asarray(1.0 if original else 5.0), noise=0.5, speed=speed)


def boid(settings: FlockSettings, env: Flock, informed: bool) -> Composer:
    """One boid. Who knows the goal differs from who does not in a number, not in kind."""
    actions = actions_of(settings)
    strength = jnp.asarray(settings.max_acceleration)
    return Composer(
        {
            name: Gaussian(eqx.Partial(force, strength, name), float(np.sqrt(getattr(settings, f"{name}_variance"))))
            for name in FORCES
        },
        _model(settings, env, actions, informed),
        actions,
        settings.eps,
        bias(settings.prior),
        selection=settings.selection,
        gate=gate_in_time("prior" if settings.fixed_weights else settings.gate, settings.duration, settings.tau),
        tol=settings.tol,
    )


def flock_agents(settings: FlockSettings, env: Flock) -> Population | Passive:
    """All agents of the flock, leaders first; none where all boids follow a rule of the literature."""
    if not env.agents:
        return Passive(FORCES, (2,))
    leader, other = (boid(settings, env, informed) for informed in (True, False))
    chunk = CHUNK if env.agents > CHUNK else None
    return Population([leader] * settings.leaders + [other] * (env.agents - settings.leaders), chunk=chunk)


def actions_of(settings: FlockSettings) -> Grid:
    """Accelerations: a grid on the disc of those allowed (648 of the 30^2 cells), or the square around it.

    Accelerations in the corners of the square are limited to the disc when they are carried out.
    """
    most = settings.max_acceleration
    radius = most if settings.cells == "disc" else None
    return Grid([-most, -most], [most, most], settings.grid, radius=radius, saturates=True)


def _model(settings: FlockSettings, env: Flock, actions: Grid, informed: bool) -> AbstractModel:
    """s(u) = |v'(u) - v_bar|^2/2 var + |p' - p_bar|^2/2 var - ln q(u), var that of the desired state.

    Position moves with the old velocity, so its term is the same for all u: it belongs to the energy, and can never
    change a weight. A uniform q(u) is left out for the same reason.
    """
    aim = jnp.asarray([*settings.goal, float(informed)])
    variances = settings.predicted_variance, settings.desired_variance
    wanted = {"velocity": (1, wanted_velocity), "position": (0, _wanted_position)}
    demands: dict[str, AbstractModel] = {
        name: GaussianTarget(eqx.Partial(next_of, env, which), eqx.Partial(target, aim), *variances)
        for name, (which, target) in wanted.items()
    }
    if settings.collision_term:
        strength = jnp.asarray(settings.collision_strength)
        careful = Categorical(eqx.Partial(collisions, actions.points, strength))
        demands["collision"] = Reference(careful, floor=settings.collision_floor)
    return Sum(**demands)


def force(strength: Array, name: str, view: View, k: Time) -> Array:
    """u_max times the mean over the zone."""
    return strength * getattr(view, name)


def next_of(env: Flock, which: int, view: View, action: Array, k: Time) -> Array:
    """Position (0) or velocity (1) one time step later."""
    return env.move(view.position, view.velocity, action)[which]


def wanted_velocity(aim: Array, view: View, k: Time) -> Array:
    """Like the neighbours', or straight to the goal."""
    goal, informed = aim[:2], aim[2]
    return jnp.where(informed > 0, unit(goal - view.position), view.mean_velocity)


def _wanted_position(aim: Array, view: View, k: Time) -> Array:
    """Amid the neighbours, or the goal."""
    return jnp.where(aim[2] > 0, aim[:2], view.mean_position)


def collisions(points: Array, strength: Array, view: View, k: Time) -> Array:
    """ln q(u) = - sum over the separation zone of strength max(0, u.n)/d, up to a constant."""

    def add(total: jax.Array, close: Any) -> tuple[jax.Array, None]:
        return total + jnp.maximum(points[:, 0] * close[0] + points[:, 1] * close[1], 0.0), None

    # neighbour by neighbour: all at once would be a matrix for every boid, and thirty times slower
    total, _ = jax.lax.scan(add, jnp.zeros(len(points)), view.closeness, unroll=4)
    return -strength * total
