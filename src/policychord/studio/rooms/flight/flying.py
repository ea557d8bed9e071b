"""A flight of one drone, in bouts: the study's own controllers, world and random streams, and pushes on top."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ....envs.quadrotor import Quadrotor, seen
from ....loops import Carry, begin, step, streams_of
from ....studies.quadrotor.settings import Composition, Experiment, QuadrotorSettings
from ....studies.quadrotor.simulate import ready
from .pushes import Push, kicks

LONGEST = 1500  # decisions: the path's table is always this long, so that a longer flight is no new program
BOUT = 50  # decisions computed at once: a second, of which a push undoes at most one


class Rows(NamedTuple):
    """What is seen of a flight, a row for each decision."""

    states: Float[np.ndarray, "step 6"]  # x, vx, z, vz, pitch, pitch rate; before the decision, after a push
    stabilising: Float[np.ndarray, " step"]  # weight of the stabilising primitive
    gap: Float[np.ndarray, " step"]  # the certificate: how far from the optimum the weights can be
    cost: Float[np.ndarray, " step"]  # of that decision


class Drone(NamedTuple):
    """Who flies, where, and what it did so far."""

    name: str
    how: Composition | None  # None: a controller alone or the fixed mixture
    agent: Any
    env: Quadrotor
    marks: tuple[Carry, ...]  # before each bout, and after the last one
    bouts: tuple[Rows, ...]


def launched(
    settings: QuadrotorSettings, experiment: Experiment, name: str, how: Composition | None, episode: int
) -> Drone:
    """A drone at its start."""
    agent, env = ready(settings.model_copy(update={"steps": LONGEST + BOUT}), experiment, name, how)
    # the study's impulse comes at some time of the episode, not of the longer table
    env = eqx.tree_at(lambda one: one.impulse_window, env, jnp.asarray([0, settings.steps]))
    start = begin(agent, env, streams_of(jax.random.key(settings.seed), episode))
    return Drone(name, how, agent, env, (start,), ())


@eqx.filter_jit
def bout(agent, env: Quadrotor, seed, episode, pushed, mark: Carry, k):
    """`BOUT` steps with the random streams of `rollout`, each after a push: (mark after them, rows)."""
    streams = streams_of(jax.random.key(seed), episode)

    def advance(carry: Carry, now):
        pushed_on = carry.state._replace(velocity=carry.state.velocity + pushed[now])
        carry, record = step(agent, env, streams, carry._replace(state=pushed_on), now)
        return carry, Rows(seen(record.state), record.weights[0], record.gap, -record.reward)

    return jax.lax.scan(advance, mark, k + jnp.arange(BOUT))


def flown(drone: Drone, seed: int, episode: int, pushes: Sequence[Push], steps: int) -> Drone:
    """The drone after at least so many decisions."""
    pushed = jnp.asarray(kicks(pushes, LONGEST + BOUT))
    while len(drone.bouts) * BOUT < steps:
        # numbers as arrays: a new one needs no new program
        which, number, k = (jnp.asarray(one) for one in (seed, episode, len(drone.bouts) * BOUT))
        mark, rows = bout(drone.agent, drone.env, which, number, pushed, drone.marks[-1], k)
        kept = Rows(*(np.asarray(column) for column in rows))
        drone = drone._replace(marks=(*drone.marks, mark), bouts=(*drone.bouts, kept))
    return drone


def rewound(drone: Drone, k: int) -> Drone:
    """The drone before the bout of decision k, which is to be flown again."""
    kept = min(k // BOUT, len(drone.bouts))
    return drone._replace(marks=drone.marks[: kept + 1], bouts=drone.bouts[:kept])


def flight(drone: Drone, steps: int) -> Rows:
    """Rows of the first `steps` decisions, and where the drone was after them; `flown` must have come so far."""
    last = np.asarray(seen(drone.marks[-1].state))[None]
    joined = [np.concatenate(columns) for columns in zip(*drone.bouts, strict=True)] if drone.bouts else [last[:0]]
    states = np.concatenate([joined[0], last])[: steps + 1]
    return Rows(states, *(column[:steps] for column in joined[1:] or [np.zeros(0)] * 3))


def fly(
    settings: QuadrotorSettings,
    experiment: Experiment,
    name: str,
    how: Composition | None,
    episode: int,
    pushes: Sequence[Push] = (),
) -> Rows:
    """A whole flight. Without pushes it is this episode of the study."""
    drone = launched(settings, experiment, name, how, episode)
    return flight(flown(drone, settings.seed, episode, pushes, settings.steps), settings.steps)


@eqx.filter_jit
def gusts(env: Quadrotor, seed, episode) -> Float[jax.Array, "step 2"]:
    """The force of the wind at every decision: the same for all, whatever they do."""
    streams = streams_of(jax.random.key(seed), episode)
    when = env.reset(streams.start).impulse_time
    force = lambda k: env.disturb(jax.random.fold_in(streams.environment, k), k, when)[1]  # noqa: E731
    return jax.lax.map(force, jnp.arange(LONGEST))
