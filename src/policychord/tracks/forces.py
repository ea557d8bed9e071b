"""Social forces in body coordinates: what an individual sees of its group, and where each force would push it.

Neighbours, zones, separation, alignment and cohesion are those of the flock (`worlds/flock/neighbours.py`). One thing
differs: a flock's speed limit takes away what alignment adds along the own heading, and tracks have no such limit, so
the own heading is taken off. Forces have no unit; lengths are in those of the file.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from .._calls import call
from .._types import Array
from ..worlds.flock.neighbours import View, Zones, look, unit
from .settings import NEEDS, USUAL, ForceSettings  # noqa: F401

CROWD = 6  # closest neighbours in the separation zone that the collision term counts
FAR = 1e9  # where those who are not there are put: outside of every zone
RATIOS = (1.0, 3.0, 12.0)  # radii of the flock's zones, here in median distances to the nearest neighbour


class Layout(NamedTuple):
    """All that stays the same while a group moves."""

    zones: Zones
    nearest: int | None
    speed: float  # the usual speed, length a second
    change: float  # the usual change of velocity from one decision to the next, length a second
    every: float  # s
    arena: tuple[float, ...]
    goal: tuple[float, float] | None
    reach: float


class World(NamedTuple):
    """A group at one moment. Those who are not there are at `FAR`."""

    position: Float[Array, "id 2"]
    velocity: Float[Array, "id 2"]
    predator: Float[Array, " 2"]
    leader: Float[Array, " 2"]


class Seen(NamedTuple):
    """What one individual decides on, in body coordinates: the first axis points ahead, the second to the left."""

    force: Float[Array, "*decision n 2"]
    speed: Float[Array, "*decision"]  # in usual speeds
    wanted: Float[Array, "*decision 2"]  # change of velocity to the neighbours' mean velocity, in usual changes
    closeness: Float[Array, "*decision crowd 2"]  # direction over distance, in separation radii


class Sight(NamedTuple):
    """What a force is computed from. `sight.view.position` and `sight.view.velocity` are the individual's own."""

    layout: Layout  # radii, usual speed and change of velocity, arena, goal
    world: World  # positions and velocities of all, predator and leader
    view: View  # what the individual sees of its neighbours, as a boid does
    heading: Float[Array, " 2"]  # zero while it stands


Force = Callable[[Sight], Any]  # in the coordinates of the file, (2)
NamedForces = tuple[tuple[str, Force], ...]  # an argument of compiled functions, which would sort a dict by its names


def _persist(sight: Sight) -> Any:
    """Go on, at the usual speed."""
    return sight.heading * (1.0 - _length(sight.view.velocity) / sight.layout.speed)


def _wall(sight: Sight) -> Any:
    """Away from walls nearer than the alignment radius."""
    place, arena, near = sight.view.position, sight.layout.arena, sight.layout.zones.alignment
    if len(arena) == 3:
        outward = place - jnp.asarray(arena[:2])
        return -unit(outward) * jnp.clip(1.0 - (arena[2] - _length(outward)) / near, 0.0, 1.0)
    low, high = jnp.asarray(arena[:2]), jnp.asarray(arena[2:])
    return jnp.clip(1.0 - (place - low) / near, 0.0, 1.0) - jnp.clip(1.0 - (high - place) / near, 0.0, 1.0)


def _leader(sight: Sight) -> Any:
    offset = sight.world.leader - sight.view.position
    return jnp.where(_length(offset) < FAR / 2, unit(offset) - sight.heading, 0.0)


def _predator(sight: Sight) -> Any:
    offset = sight.world.predator - sight.view.position
    return -unit(offset) * jnp.clip(1.0 - _length(offset) / sight.layout.reach, 0.0, 1.0)


FORCES: Mapping[str, Force] = {
    "persist": _persist,
    "drag": lambda sight: -sight.view.velocity / sight.layout.speed,
    "separation": lambda sight: sight.view.separation,
    "alignment": lambda sight: sight.view.alignment - sight.heading,
    "cohesion": lambda sight: sight.view.cohesion,
    "wall": _wall,
    "goal": lambda sight: unit(jnp.asarray(sight.layout.goal) - sight.view.position) - sight.heading,
    "predator": _predator,
    "leader": _leader,
}


def forces_of(settings: ForceSettings, own: Mapping[str, Force] | None = None) -> dict[str, Force]:
    """The functions of the forces by name; `own` adds to those that are known, written with `jax.numpy`."""
    known = {**FORCES, **(own or {})}
    if idle := [name for name in own or {} if name not in settings.forces]:
        raise ValueError(f"own has {', '.join(idle)}, which settings.forces does not name: add it there.")
    if unknown := [name for name in settings.forces if name not in known]:
        raise ValueError(f"forces have {', '.join(unknown)}: use {', '.join(known)}, or pass own functions.")
    return {name: known[name] for name in settings.forces}


def see(layout: Layout, forces: Mapping[str, Force], world: World, i: Int[Array, ""] | int) -> Seen:
    """What individual i decides on."""
    position = world.position if layout.nearest is None else _nearest(world.position, i, layout.nearest)
    view = look(layout.zones, position, world.velocity, i)
    heading = unit(view.velocity)
    sight = Sight(layout, world, view, heading)
    body = to_body(heading)
    pushes = jnp.stack([_push(name, force, sight) for name, force in forces.items()])
    order = jnp.argsort(-jnp.sum(view.closeness**2, axis=-1))[:CROWD]
    close = jnp.pad(view.closeness[order] * layout.zones.separation, ((0, CROWD - len(order)), (0, 0)))
    wanted = (view.mean_velocity - view.velocity) / layout.change
    return Seen(pushes @ body.T, _length(view.velocity) / layout.speed, body @ wanted, close @ body.T)


def _push(name: str, force: Force, sight: Sight) -> Float[Array, " 2"]:
    push = jnp.asarray(call(f"force {name!r}", force, sight), dtype=float)
    if push.shape != (2,):
        raise ValueError(
            f"force {name!r} has shape {push.shape}: return a vector (x, y) in the coordinates of the file."
        )
    return push


def to_body(heading: Float[Array, " 2"]) -> Float[Array, "2 2"]:
    """The matrix from the coordinates of the file to those of a body; the file's own for one that stands."""
    ahead = jnp.where(_length(heading) > 0, heading, jnp.array([1.0, 0.0]))
    return jnp.stack([ahead, jnp.stack([-ahead[1], ahead[0]])])


def _nearest(position: Any, i: Any, count: int) -> Any:
    """Positions with all but i and its nearest neighbours far away."""
    distance = _length(position - position[i]).at[i].set(jnp.inf)
    if count >= len(distance) - 1:
        return position
    limit = jnp.sort(distance)[count - 1]
    stays = (distance <= limit) | (jnp.arange(len(distance)) == i)
    return jnp.where(stays[:, None], position, FAR)


def _length(vector: Any) -> Any:
    return jnp.sqrt(vector[..., 0] ** 2 + vector[..., 1] ** 2)


def absent_far(place: np.ndarray) -> np.ndarray:
    """Places with numbers for those who are not there."""
    return np.where(np.isfinite(place), place, FAR)


def far_apart(count: int) -> np.ndarray:
    """Places outside of every zone of the others, and of each other's: for those who are not there, (count, 2)."""
    return np.stack([FAR * (1.0 + np.arange(count)), np.full(count, FAR)], axis=-1)
