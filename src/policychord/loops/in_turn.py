"""`step_in_turn`: agents that move one after another, each seeing what those before it did."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Observation, Time
from ..agent import Decision
from .step import Carry, Record, Streams, step


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
