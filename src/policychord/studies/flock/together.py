"""`fly_together`: flocks that differ in numbers only, all seeds of all of them in one compiled program.

A compilation takes longer than most flights, so a study groups its flights by what has to be compiled.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...envs.flock import Flock, FlockState, Start, in_square
from ...loops import Carry, Labels, Record, Trace, step, step_in_turn, streams_of
from ...loops.trace import trace_of
from ...population import Population, Stack, stack
from .parts import FORCES, boid, flock, world
from .settings import FlockSettings

DECIDED = ("action", "weights", "gap", "distance", "converged")  # what has an agent axis
HOT = 1e9  # the temperature at which weights are uniform to six digits or more: fixed weights without another program


def fly_together(flights: Sequence[FlockSettings]) -> list[Trace]:
    """The traces of several experiments: boids, update and kind of followers agree, any number may differ."""
    if len({(flight.update, flight.seed) for flight in flights}) > 1:
        raise ValueError("these flights differ in update or seed: fly them one by one.")
    try:
        stacked = stack([_built(_alike(one, flights), one) for one in flights], "flights")
    except ValueError as error:
        raise ValueError(f"these flights differ in more than numbers, so fly them one by one: {error}") from None
    row = np.repeat(np.arange(len(flights)), [one.seeds for one in flights])
    root = jax.random.key(flights[0].seed)
    numbers = np.concatenate([np.arange(one.seeds) for one in flights])
    starts = [_starts(world(one).start, one.boids, root, jnp.arange(one.seeds)) for one in flights]
    start = jax.tree_util.tree_map(lambda *parts: jnp.concatenate(parts), *starts)
    move = step_in_turn if flights[0].update == "sequential" else step
    longest = max(one.steps for one in flights)
    flown = _fly(stacked.take(row), root, jnp.asarray(numbers), start, longest, move)
    record, final = jax.tree_util.tree_map(np.asarray, flown)
    return [_trace(record, final, one, np.flatnonzero(row == k)) for k, one in enumerate(flights)]


def _alike(flight: FlockSettings, flights: Sequence[FlockSettings]) -> FlockSettings:
    """The flight in the terms of a program that serves all of them: what it lacks is there with no strength."""
    changes: dict[str, Any] = {}
    if any(one.collision_term for one in flights):
        strength = flight.collision_strength if flight.collision_term else 0.0
        changes |= {"collision_term": True, "collision_strength": strength}
    if flight.fixed_weights:
        changes |= {"fixed_weights": False, "eps": HOT}
    if flight.followers != "composed":
        changes |= {"leaders": max(one.leaders for one in flights)}
    return flight.model_copy(update=changes)


def _built(settings: FlockSettings, own: FlockSettings) -> tuple[Population, Flock]:
    """Agents and world. Where somebody might lead, every boid has a number of its own that says whether it does."""
    env = eqx.tree_at(lambda e: e.start, world(settings), in_square())  # starts are handed in
    if settings.followers != "composed":
        # whoever is no agent of its own flight follows the rule
        env = eqx.tree_at(lambda e: e.deciding, env, jnp.asarray(own.leaders), is_leaf=lambda leaf: leaf is None)
    if settings.followers != "composed" or env.agents < 2:
        return flock(settings, env), env
    leader, other = (boid(settings, env, informed) for informed in (True, False))
    both = Population([leader] + [other] * (env.agents - 1))
    leads = np.where(np.arange(env.agents) < settings.leaders, 0, 1)
    return eqx.tree_at(lambda p: p.members, both, both.members.take(leads)), env


@eqx.filter_jit
def _starts(start: Start, boids: int, root, numbers) -> FlockState:
    return jax.vmap(lambda number: start(streams_of(root, number).start, boids))(numbers)


@eqx.filter_jit
def _fly(flights: Stack, root, numbers, start, steps: int, move) -> tuple[Record, FlockState]:
    def episode(flight, number, begin):
        agents, env = flight
        carry = Carry(begin, agents.start(), jnp.asarray(True))
        last, record = jax.lax.scan(partial(move, agents, env, streams_of(root, number)), carry, jnp.arange(steps))
        return record, last.state

    return flights.for_each(episode, numbers, start)


def _trace(record: Record, final: FlockState, settings: FlockSettings, rows: np.ndarray) -> Trace:
    """The rows of one experiment, as long and with as many agents as it has."""
    steps, env = settings.steps, world(settings)
    if steps < record.state.position.shape[1]:
        final = FlockState(*(field[:, steps] for field in record.state))
    cut = {name: getattr(record, name)[rows, :steps, : env.agents].copy() for name in DECIDED}
    state, reward, alive = jax.tree_util.tree_map(
        lambda array: array[rows, :steps].copy(), (record.state, record.reward, record.alive)
    )
    labels = Labels(FORCES, tuple(range(len(rows))), dict(env.variables), action_unit="m/s^2")
    whole = Record(state=state, reward=reward, alive=alive, **cut)
    return trace_of(whole, FlockState(*(field[rows].copy() for field in final)), labels)
