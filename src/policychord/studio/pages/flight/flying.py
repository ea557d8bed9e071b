"""A flight of one drone, in bouts: the study's own controllers, world and random streams, and pushes on top.

A push is a jump of every drone's velocity by the same amount at the same moment. It is part of the flight.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...._types import Array
from ....loops import Carry, begin, step, streams_of
from ....worlds.quadrotor.agents import agent_and_world
from ....worlds.quadrotor.physics import Quadrotor, seen
from ....worlds.quadrotor.settings import CompositionSettings, Experiment, QuadrotorSettings

LONGEST = 1500  # decisions: the path's table is always this long, so that a longer flight is no new program
BOUT = 50  # decisions computed at once: a second, of which a push undoes at most one
FASTEST = 4.0  # m/s, of one push


class Push(NamedTuple):
    """A jump of the velocity, just before decision k."""

    k: int
    x: float  # m/s, to the right
    z: float  # m/s, upwards


class _Rows(NamedTuple):
    """What is seen of a flight, a row for each decision."""

    states: Float[Array, "step 6"]  # x, vx, z, vz, pitch, pitch rate; before the decision, after a push
    stabilising: Float[Array, " step"]  # weight of the stabilising primitive
    gap: Float[Array, " step"]  # the certificate: how far from the optimum the weights can be
    cost: Float[Array, " step"]  # of that decision


class Drone(NamedTuple):
    """Who flies, where, and what it did so far."""

    name: str
    how: CompositionSettings | None  # None: a controller alone or the fixed mixture
    agent: Any
    env: Quadrotor
    marks: tuple[Carry, ...]  # before each bout, and after the last one
    bouts: tuple[_Rows, ...]


def _kicks(pushes: Sequence[Push], steps: int) -> Float[np.ndarray, "step 2"]:
    """What is added to the velocity before each decision."""
    table = np.zeros((steps, 2))
    for push in pushes:
        if push.k < steps:
            table[push.k] += push.x, push.z
    return table


def launch(
    settings: QuadrotorSettings, experiment: Experiment, name: str, how: CompositionSettings | None, episode: int
) -> Drone:
    """A drone at its start."""
    agent, env = agent_and_world(settings.model_copy(update={"steps": LONGEST + BOUT}), experiment, name, how)
    # the study's impulse comes at some time of the episode, not of the longer table
    env = eqx.tree_at(lambda world: world.impulse_window, env, jnp.asarray([0, settings.steps]))
    start = begin(agent, env, streams_of(jax.random.key(settings.seed), episode))
    return Drone(name, how, agent, env, (start,), ())


@eqx.filter_jit
def _bout(
    agent: Any, env: Quadrotor, seed: jax.Array, episode: jax.Array, pushed: jax.Array, mark: Carry, k: jax.Array
) -> tuple[Carry, _Rows]:
    """`BOUT` steps with the random streams of `rollout`, each after a push: (mark after them, rows)."""
    streams = streams_of(jax.random.key(seed), episode)

    def advance(carry: Carry, now: jax.Array) -> tuple[Carry, _Rows]:
        pushed_on = carry.state._replace(velocity=carry.state.velocity + pushed[now])
        carry, record = step(agent, env, streams, carry._replace(state=pushed_on), now)
        return carry, _Rows(seen(record.state), record.weights[0], record.gap, -record.reward)

    return jax.lax.scan(advance, mark, k + jnp.arange(BOUT))


def fly_on(drone: Drone, seed: int, episode: int, pushes: Sequence[Push], steps: int) -> Drone:
    """The drone after at least so many decisions."""
    pushed = jnp.asarray(_kicks(pushes, LONGEST + BOUT))
    while len(drone.bouts) * BOUT < steps:
        # numbers as arrays: a new one needs no new program
        which, number, k = (jnp.asarray(number) for number in (seed, episode, len(drone.bouts) * BOUT))
        mark, rows = _bout(drone.agent, drone.env, which, number, pushed, drone.marks[-1], k)
        kept = _Rows(*(np.asarray(column) for column in rows))
        drone = drone._replace(marks=(*drone.marks, mark), bouts=(*drone.bouts, kept))
    return drone


def rewind(drone: Drone, k: int) -> Drone:
    """The drone before the bout of decision k, which is to be flown again."""
    kept = min(k // BOUT, len(drone.bouts))
    return drone._replace(marks=drone.marks[: kept + 1], bouts=drone.bouts[:kept])


def flight(drone: Drone, steps: int) -> _Rows:
    """Rows of the first `steps` decisions, and where the drone was after them; `fly_on` must have come so far."""
    last = np.asarray(seen(drone.marks[-1].state))[None]
    joined = [np.concatenate(columns) for columns in zip(*drone.bouts, strict=True)] if drone.bouts else [last[:0]]
    states = np.concatenate([joined[0], last])[: steps + 1]
    return _Rows(states, *(column[:steps] for column in joined[1:] or [np.zeros(0)] * 3))


def fly_pushed(
    settings: QuadrotorSettings,
    experiment: Experiment,
    name: str,
    how: CompositionSettings | None,
    episode: int,
    pushes: Sequence[Push] = (),
) -> _Rows:
    """A whole flight. Without pushes it is this episode of the study."""
    drone = launch(settings, experiment, name, how, episode)
    return flight(fly_on(drone, settings.seed, episode, pushes, settings.steps), settings.steps)
