"""`step`: one decision and one move. Every closed loop is a scan, or a Python loop, over it."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, Shaped

from .._types import ArrayLike, Observation, Time, namespace
from ..agent import Agent, Decides
from .environment import Step

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


@runtime_checkable
class _Moves(Protocol):
    """What a closed loop needs of an environment that has begun."""

    def observe(self, state: Any, /) -> Observation:
        """What the agent sees."""

    def step(self, key: Any, state: Any, action: Any, k: Time, /) -> Step:
        """What the action brings about."""


def step(agent: Decides, env: _Moves, streams: Streams, carry: Carry, k: Time) -> tuple[Carry, Record]:
    """The agent decides on what it sees, and the environment moves: `partial(step, agent, env, streams)` for a scan.

    An episode that is over stands still, and pays nothing.
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
