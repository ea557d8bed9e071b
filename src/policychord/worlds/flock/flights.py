"""Flights of flocks: one experiment, or several in one compiled program."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...loops import Carry, Labels, Record, Trace, rollout, step, step_in_turn, streams_of
from ...loops.trace import trace_of
from ...population import Passive, Population, Stack, stack
from .agents import FORCES, boid, flock_agents, flock_world
from .measures import Measures, Numbers, measure
from .physics import Flock, FlockState, Start, in_square
from .settings import FlockSettings

UNIFORM = 1e9  # the temperature at which weights are 1/3 to six digits or more: fixed weights without another program


class FlockFlight(NamedTuple):
    """One experiment: its settings, the measures of all seeds, and the first seed in full."""

    settings: FlockSettings
    measured: Measures
    shown: Trace


def simulate_flock(settings: FlockSettings, episodes: Sequence[int] | None = None) -> Trace:
    """Let the flock fly: all seeds, or the episodes that are named, at once; every weight with its certificate."""
    env = flock_world(settings)
    trace = rollout(
        flock_agents(settings, env), env, steps=settings.steps,
        episodes=settings.seeds if episodes is None else episodes, seed=settings.seed,
        in_turn=settings.update == "sequential",
    )  # fmt: skip
    labels = trace.labels._replace(action_unit="m/s^2")
    return jax.tree_util.tree_map(np.asarray, trace)._replace(labels=labels)


def choose_episodes(trace: Trace, places: Sequence[int]) -> Trace:
    """The trace of a few episodes, without holding on to the others."""
    labels = trace.labels._replace(episodes=tuple(trace.labels.episodes[place] for place in places))
    return jax.tree_util.tree_map(lambda array: array[list(places)], trace)._replace(labels=labels)


def measure_flight(settings: FlockSettings, trace: Trace) -> FlockFlight:
    """The measures of a trace, and its first episode."""
    return FlockFlight(settings, measure(settings, trace), choose_episodes(trace, [0]))


def fly_together(flights: Sequence[FlockSettings]) -> list[Trace]:
    """The traces of several experiments: boids, update and kind of followers agree, any number may differ.

    A compilation takes longer than most flights, so all seeds of all flights run in one compiled program.
    """
    if len({(flight.update, flight.seed) for flight in flights}) > 1:
        raise ValueError("these flights differ in update or seed: fly them one by one.")
    try:
        stacked = stack([_build(_align(flight, flights), flight) for flight in flights], "flights")
    except ValueError as error:
        raise ValueError(f"these flights differ in more than numbers, so fly them one by one: {error}") from None
    row = np.repeat(np.arange(len(flights)), [flight.seeds for flight in flights])
    root = jax.random.key(flights[0].seed)
    numbers = np.concatenate([np.arange(flight.seeds) for flight in flights])
    starts = [_starts(flock_world(flight).start, flight.boids, root, jnp.arange(flight.seeds)) for flight in flights]
    start = jax.tree_util.tree_map(lambda *parts: jnp.concatenate(parts), *starts)
    move = step_in_turn if flights[0].update == "sequential" else step
    longest = max(flight.steps for flight in flights)
    flown = _fly(stacked.take(row), root, jnp.asarray(numbers), start, longest, move)
    record, final = jax.tree_util.tree_map(np.asarray, flown)
    return [_trace(record, final, flight, np.flatnonzero(row == k)) for k, flight in enumerate(flights)]


def _align(flight: FlockSettings, flights: Sequence[FlockSettings]) -> FlockSettings:
    """The flight in the terms of a program that serves all of them: what it lacks is there with no strength."""
    changes: dict[str, Any] = {}
    if any(other.collision_term for other in flights):
        strength = flight.collision_strength if flight.collision_term else 0.0
        changes |= {"collision_term": True, "collision_strength": strength}
    if flight.fixed_weights:
        changes |= {"fixed_weights": False, "eps": UNIFORM}
    if flight.followers != "composed":
        changes |= {"leaders": max(other.leaders for other in flights)}
    return flight.model_copy(update=changes)


def _build(settings: FlockSettings, own: FlockSettings) -> tuple[Population | Passive, Flock]:
    """Agents and world. Where boids might lead, each has a number of its own that says whether it does."""
    env = eqx.tree_at(lambda e: e.start, flock_world(settings), in_square())  # starts are handed in
    if settings.followers != "composed":
        # an agent of the program that is no agent of its own flight follows the rule
        env = eqx.tree_at(lambda e: e.deciding, env, jnp.asarray(own.leaders), is_leaf=lambda leaf: leaf is None)
    if settings.followers != "composed" or env.agents < 2:
        return flock_agents(settings, env), env
    leader, other = (boid(settings, env, informed) for informed in (True, False))
    both = Population([leader] + [other] * (env.agents - 1))
    leads = np.where(np.arange(env.agents) < settings.leaders, 0, 1)
    return eqx.tree_at(lambda p: p.members, both, both.members.take(leads)), env


@eqx.filter_jit
def _starts(start: Start, boids: int, root: jax.Array, numbers: jax.Array) -> FlockState:
    return jax.vmap(lambda number: start(streams_of(root, number).start, boids))(numbers)


@eqx.filter_jit
def _fly(
    flights: Stack, root: jax.Array, numbers: jax.Array, start: FlockState, steps: int, move: Callable[..., Any]
) -> tuple[Record, FlockState]:
    def episode(flight: tuple[Any, Flock], number: jax.Array, begin: FlockState) -> tuple[Record, FlockState]:
        agents, env = flight
        carry = Carry(begin, agents.start(), jnp.asarray(True))
        last, record = jax.lax.scan(partial(move, agents, env, streams_of(root, number)), carry, jnp.arange(steps))
        return record, last.state

    return flights.for_each(episode, numbers, start)


def _trace(record: Record, final: FlockState, settings: FlockSettings, rows: Numbers) -> Trace:
    """The rows of one experiment, as long and with as many agents as it has."""
    steps, env = settings.steps, flock_world(settings)
    if steps < record.state.position.shape[1]:
        final = FlockState(*(field[:, steps] for field in record.state))

    def cut(name: str) -> Any:
        own = (rows, slice(steps)) if name in ("state", "reward", "alive") else (rows, slice(steps), slice(env.agents))
        return jax.tree_util.tree_map(lambda array: array[own].copy(), getattr(record, name))

    labels = Labels(FORCES, tuple(range(len(rows))), dict(env.variables), action_unit="m/s^2")
    return trace_of(Record(*map(cut, Record._fields)), FlockState(*(field[rows].copy() for field in final)), labels)
