"""`fly_together`: flocks that differ in numbers only, all seeds of all of them in one compiled program.

A compilation takes longer than most flights, so a study groups its flights by what has to be compiled.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...envs.flock import Flock, FlockState, Start, in_square
from ...loops import Labels, Trace
from ...loops.rollout import AGENT, START, WEATHER, stream, warn_if_not_converged
from ...population import Population
from .parts import FORCES, boid, flock, world
from .sequential import moved
from .settings import FlockSettings

HOT = 1e9  # the temperature at which weights are uniform to six digits or more: fixed weights without another program


def fly_together(flights: Sequence[FlockSettings]) -> list[Trace]:
    """The traces of several experiments: boids, update and kind of followers agree, any number may differ."""
    built = [_built(_alike(one, flights)) for one in flights]
    arrays, kinds = zip(*(eqx.partition(one, eqx.is_array) for one in built), strict=True)
    if not all(eqx.tree_equal(kind, kinds[0]) for kind in kinds) or len({(f.update, f.seed) for f in flights}) > 1:
        raise ValueError("these flights differ in more than numbers, or in update or seed: fly them one by one.")
    leaves = list(zip(*(jax.tree_util.tree_leaves(one) for one in arrays), strict=True))
    differs = tuple(not all(np.array_equal(v, variants[0]) for v in variants) for variants in leaves)
    row = np.repeat(np.arange(len(flights)), [one.seeds for one in flights])
    own = [jnp.stack(variants)[row] for variants, differ in zip(leaves, differs, strict=True) if differ]
    root = jax.random.key(flights[0].seed)
    numbers = np.concatenate([np.arange(one.seeds) for one in flights])
    starts = [_starts(world(one).start, one.boids, root, jnp.arange(one.seeds)) for one in flights]
    start = jax.tree_util.tree_map(lambda *parts: jnp.concatenate(parts), *starts)
    # whoever is no agent of its own flight follows the rule
    deciding = np.array([one.leaders if one.followers != "composed" else one.boids for one in flights])[row]
    recorded = _fly(
        built[0], own, differs, root, jnp.asarray(numbers), start, jnp.asarray(deciding),
        max(one.steps for one in flights), flights[0].update == "sequential",
    )  # fmt: skip
    recorded = jax.tree_util.tree_map(np.asarray, recorded)
    return [_trace(recorded, one, np.flatnonzero(row == k)) for k, one in enumerate(flights)]


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


def _built(settings: FlockSettings) -> tuple[Population, Flock]:
    """Agents and world. Where somebody might lead, every boid has a number of its own that says whether it does."""
    env = eqx.tree_at(lambda e: e.start, world(settings), in_square())  # starts are handed in
    if settings.followers != "composed" or env.agents < 2:
        return flock(settings, env), env
    leader, other = (boid(settings, env, informed) for informed in (True, False))
    both = Population([leader] + [other] * (env.agents - 1))
    leads = np.where(np.arange(env.agents) < settings.leaders, 0, 1)
    arrays, rest = eqx.partition(both.stacked, eqx.is_array)
    leaves, structure = jax.tree_util.tree_flatten(arrays)
    chosen = [leaf[leads] if differ else leaf for leaf, differ in zip(leaves, both.differs, strict=True)]
    stacked = eqx.combine(jax.tree_util.tree_unflatten(structure, chosen), rest)
    return eqx.tree_at(lambda p: p.stacked, both, stacked), env


@eqx.filter_jit
def _starts(start: Start, boids: int, root, numbers) -> FlockState:
    return jax.vmap(lambda number: start(stream(root, number, START), boids))(numbers)


@eqx.filter_jit
def _fly(template, own, differs, root, numbers, start, deciding, steps: int, in_turn: bool) -> dict[str, Any]:
    arrays, rest = eqx.partition(template, eqx.is_array)
    leaves, structure = jax.tree_util.tree_flatten(arrays)

    def episode(number, begin, deciding, own):
        left = iter(own)
        filled = [next(left) if differ else leaf for leaf, differ in zip(leaves, differs, strict=True)]
        agents, env = eqx.combine(jax.tree_util.tree_unflatten(structure, filled), rest)
        weather, luck = stream(root, number, WEATHER), stream(root, number, AGENT)
        move = _move_in_turn if in_turn else _move_at_once

        def turn(carry, k):
            state, memory = carry
            keys = jax.random.fold_in(luck, k), jax.random.fold_in(weather, k)
            following, decided = move(agents, env, keys, state, k, memory, deciding)
            record = {
                "state": state,
                "action": decided.action,
                "weights": decided.weights,
                "gap": decided.certificate.gap,
                "distance": decided.certificate.distance,
                "converged": decided.converged,
            }
            return (following, decided.memory), record

        (final, _), record = jax.lax.scan(turn, (begin, agents.start()), jnp.arange(steps))
        return record | {"final_state": final}

    return jax.vmap(episode)(numbers, start, deciding, own)


def _move_at_once(agents, env: Flock, keys, state: FlockState, k, memory, deciding):
    decided = agents.decide(keys[0], env.observe(state), k, memory)
    return env.step(keys[1], state, decided.action, k).state, decided


def _move_in_turn(agents, env: Flock, keys, state: FlockState, k, memory, deciding):
    """As `rollout_in_turn` does, except that an agent beyond those who decide follows the rule."""

    def agent(state, given):
        i, memory = given
        decided = agents.member(i).decide(jax.random.fold_in(keys[0], i), env.view(state, i), k, memory)
        chosen = env.move(state.position[i], state.velocity[i], decided.action)[1]
        return moved(env, state, i, jnp.where(i < deciding, chosen, env.follow(keys[1], state, i))), decided

    def other(state, i):
        return moved(env, state, i, env.follow(keys[1], state, i)), None

    state, decided = jax.lax.scan(agent, state, (jnp.arange(env.agents), memory))
    return jax.lax.scan(other, state, jnp.arange(env.agents, env.boids))[0], decided


def _trace(recorded: dict[str, Any], settings: FlockSettings, rows: np.ndarray) -> Trace:
    """The rows of one experiment, as long and with as many agents as it has."""
    steps, env = settings.steps, world(settings)
    state = FlockState(*(field[rows] for field in recorded["state"]))
    final = FlockState(*(field[rows] for field in recorded["final_state"]))
    if steps < state.position.shape[1]:
        final = FlockState(*(field[:, steps].copy() for field in state))
    each = {
        name: recorded[name][rows, :steps, : env.agents].copy()
        for name in ("action", "weights", "gap", "distance", "converged")
    }
    trace = Trace(
        **each, state=FlockState(*(field[:, :steps].copy() for field in state)), final_state=final,
        reward=np.zeros((len(rows), steps)), alive=np.ones((len(rows), steps), bool), log_prob=None,
        labels=Labels(FORCES, tuple(range(len(rows))), dict(env.variables), population=True, action_unit="m/s^2"),
    )  # fmt: skip
    warn_if_not_converged(trace)
    return trace
