"""Boids one after another: each moves before the next one looks, as in the paper's released scripts."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ...envs.flock import Flock, FlockState
from ...loops.rollout import AGENT, START, WEATHER, stream
from ...population import Population
from .nobody import Nobody


@eqx.filter_jit
def rollout_in_turn(agents: Population | Nobody, env: Flock, root, numbers, steps: int) -> dict[str, Any]:
    """What `rollout` records, of the same episodes and the same chance, with boids moved in turn."""

    def episode(number):
        weather, luck = stream(root, number, WEATHER), stream(root, number, AGENT)

        def turn(carry, k):
            state, memory = carry
            moved, decisions = decide_in_turn(agents, env, jax.random.fold_in(luck, k), state, k, memory)
            moved = follow_in_turn(env, jax.random.fold_in(weather, k), moved)
            record = {
                "state": state,
                "action": decisions.action,
                "weights": decisions.weights,
                "gap": decisions.certificate.gap,
                "distance": decisions.certificate.distance,
                "converged": decisions.converged,
                "reward": jnp.zeros(()),
                "alive": jnp.asarray(True),
            }
            return (moved, decisions.memory), record

        begin = (env.reset(stream(root, number, START)), agents.start())
        (final, _), record = jax.lax.scan(turn, begin, jnp.arange(steps))
        return record | {"final_state": final}

    return jax.vmap(episode)(numbers)


def decide_in_turn(agents, env: Flock, key, state: FlockState, k, memory):
    if isinstance(agents, Nobody):
        return state, agents.decide(key, None, k, memory)

    def one(state, given):
        i, memory = given
        decision = agents.member(i).decide(jax.random.fold_in(key, i), env.view(state, i), k, memory)
        velocity = env.move(state.position[i], state.velocity[i], decision.action)[1]
        return moved(env, state, i, velocity), decision

    return jax.lax.scan(one, state, (jnp.arange(env.agents), memory))


def follow_in_turn(env: Flock, key, state: FlockState) -> FlockState:
    if env.agents == env.boids:
        return state

    def one(state, i):
        return moved(env, state, i, env.follow(key, state, i)), None

    return jax.lax.scan(one, state, jnp.arange(env.agents, env.boids))[0]


def moved(env: Flock, state: FlockState, i, velocity) -> FlockState:
    """Boid i moves on with its old velocity and takes the new one."""
    position = state.position.at[i].add(state.velocity[i] * env.dt)
    return FlockState(position, state.velocity.at[i].set(velocity))
