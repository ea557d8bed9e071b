"""`step`: one decision and one move. Every closed loop repeats it."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, Shaped

from .._types import ArrayLike, Observation, Time, namespace
from ..agent import Agent, Decides, Decision

Stream = Any  # a random key, from which each step makes its own; None where nothing is drawn


class Streams(NamedTuple):
    """The random keys of one episode, one for each role, so that two agents meet the same starts and disturbances."""

    start: Stream
    environment: Stream
    agent: Stream


NO_STREAMS = Streams(None, None, None)


class Carry(NamedTuple):
    """What the next step needs."""

    state: Any
    memory: Any
    alive: Bool[Any, "*episode"]


class Record(NamedTuple):
    """What a step leaves. A population adds an agent axis to what is decided."""

    state: Any  # before the decision
    action: Shaped[Any, "..."] | Any
    weights: Float[Any, "*agent n"]
    gap: Float[Any, "*agent"]
    distance: Float[Any, "*agent"]
    outcome: Int[Any, "*agent"]  # an `Outcome`
    cut: Bool[Any, "*agent n"] | None  # primitives that the grid cuts off, or is too coarse for
    reward: Float[Any, "*episode"]
    alive: Bool[Any, "*episode"]


def streams_of(root: Key[Array, ""], episode: ArrayLike) -> Streams:
    """The random keys of the episode with this number: they depend on nothing else."""
    own = jax.random.fold_in(root, episode)
    return Streams(*(jax.random.fold_in(own, role) for role in range(3)))


def begin(agent: Agent, env: Any, streams: Streams) -> Carry:
    """An episode at its start."""
    return Carry(env.reset(streams.start), agent.start(), jnp.asarray(True))


def step(agent: Decides, env: Any, streams: Streams, carry: Carry, k: Time) -> tuple[Carry, Record]:
    """The agent decides on what it sees, and the environment moves: `partial(step, agent, env, streams)` for a scan.

    Of the environment it needs `observe(state)` and `step(key, state, action, k)`. An episode that is over stands
    still, and pays nothing.
    """
    state, memory, alive = carry
    decision = agent.decide(_key(streams.agent, k), env.observe(state), k, memory)
    moved = env.step(_key(streams.environment, k), state, decision.action, k)
    xp = namespace(alive)

    def where_alive(new: Any, old: Any) -> Any:
        return xp.where(alive.reshape(alive.shape + (1,) * (xp.ndim(new) - alive.ndim)), new, old)

    following = jax.tree_util.tree_map(where_alive, moved.state, state)
    record = Record(
        state, decision.action, decision.weights, *decision.certificate, decision.outcome, decision.cut,
        where_alive(moved.reward, 0.0), alive,
    )  # fmt: skip
    return Carry(following, decision.memory, alive & ~moved.terminated), record


def _key(stream: Any, k: Time) -> Any:
    return None if stream is None else jax.random.fold_in(stream, k)


class _Member(eqx.Module):
    """Agent i of a population, with the random numbers that it has there."""

    agents: Any
    i: jax.Array

    def decide(self, key: jax.Array, observation: Observation, k: Time, memory: Any) -> Decision:
        return self.agents.member(self.i).decide(jax.random.fold_in(key, self.i), observation, k, memory)


def step_in_turn(agents: Any, env: Any, streams: Streams, carry: Carry, k: Time) -> tuple[Carry, Record]:
    """`step` for a population whose members decide and move in turn, followed by all others of the environment.

    `agents.member(i)` is one of them, and `env.only(i)` the environment as far as member i sees and moves it, for i
    below `env.boids`, of which the first `env.agents` decide. The episode is over once it is over for a member.
    """

    def move_member(state: Any, turn: tuple[jax.Array, Any]) -> tuple[Any, tuple[Any, jax.Array, Record]]:
        i, memory = turn
        after, record = step(_Member(agents, i), env.only(i), streams, Carry(state, memory, carry.alive), k)
        return after.state, (after.memory, after.alive, record._replace(state=None))

    def other(state: Any, i: jax.Array) -> tuple[Any, None]:
        return env.only(i).step(jax.random.fold_in(streams.environment, k), state, None, k).state, None

    state, (memory, alive, records) = jax.lax.scan(move_member, carry.state, (jnp.arange(env.agents), carry.memory))
    if env.agents < env.boids:
        state, _ = jax.lax.scan(other, state, jnp.arange(env.agents, env.boids))
    record = records._replace(state=carry.state, reward=jnp.sum(records.reward), alive=carry.alive)
    return Carry(state, memory, jnp.all(alive)), record
