"""`rollout`: the closed loop of an agent and an environment, many episodes in one compiled call."""

import warnings
from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from .._types import ArrayLike
from ..agent import Agent
from ..envs.base import AbstractEnv
from ..population import Population
from .trace import Labels, Trace

# One random stream for each (episode, role), so that two agents meet the same weather.
START, WEATHER, AGENT = range(3)


def rollout(agent: Agent, env: AbstractEnv, *, steps: int, episodes: int | Iterable[int] = 1, seed: int = 0) -> Trace:
    """Let the agent act in the environment for `steps` steps, in all episodes at once.

    `episodes` is how many, or which: an episode's random numbers depend on `seed` and its own number only, so
    the first ten of a thousand are (to rounding) the same ten alone, and every agent meets the same starts and
    disturbances.
    An agent is a Composer, a Population, or anything with `names`, `start()` and `decide(key, view, k, memory)`.
    """
    numbers = episode_numbers(episodes)
    if not (isinstance(steps, int | np.integer) and steps >= 1):
        raise ValueError(f"steps = {steps!r}: pass a whole number of at least 1.")
    recorded = _rollout(agent, env, jax.random.key(seed), jnp.asarray(numbers), int(steps))
    labels = Labels(tuple(agent.names), tuple(numbers.tolist()), dict(env.variables), isinstance(agent, Population))
    trace = Trace(**recorded, log_prob=None, labels=labels)
    warn_if_not_converged(trace)
    return trace


def episode_numbers(episodes: int | Iterable[int], argument: str = "episodes") -> np.ndarray:
    """Which episodes: 0, ..., n - 1 for a number, else those named. `argument` is what the caller calls them."""
    if isinstance(episodes, int | np.integer):
        if episodes < 1:
            raise ValueError(f"{argument} = {episodes}: pass at least 1, or the numbers of the episodes.")
        return np.arange(episodes)
    numbers = np.asarray(list(episodes))
    if numbers.ndim != 1 or numbers.size == 0 or numbers.dtype.kind not in "iu" or np.any(numbers < 0):
        raise ValueError(f"{argument} = {episodes!r}: pass a positive number, or whole numbers from 0 up.")
    return numbers


def stream(root: Key[Array, ""], episode: ArrayLike, role: int) -> Key[Array, ""]:
    """The random stream of one role in one episode."""
    return jax.random.fold_in(jax.random.fold_in(root, episode), role)


@eqx.filter_jit
def _rollout(agent: Agent, env: AbstractEnv, root: jax.Array, numbers: jax.Array, steps: int) -> dict[str, Any]:
    def episode(number: jax.Array) -> dict[str, Any]:
        weather, luck = stream(root, number, WEATHER), stream(root, number, AGENT)

        def turn(carry: tuple[Any, ...], k: jax.Array) -> tuple[tuple[Any, ...], dict[str, Any]]:
            state, memory, alive = carry
            decision = agent.decide(jax.random.fold_in(luck, k), env.observe(state), k, memory)
            step = env.step(jax.random.fold_in(weather, k), state, decision.action, k)
            # an episode that is over stands still
            following = jax.tree_util.tree_map(lambda new, old: jnp.where(alive, new, old), step.state, state)
            record = {
                "state": state,
                "action": decision.action,
                "weights": decision.weights,
                "gap": decision.certificate.gap,
                "distance": decision.certificate.distance,
                "converged": decision.converged,
                "reward": jnp.where(alive, step.reward, 0.0),
                "alive": alive,
            }
            return (following, decision.memory, alive & ~step.terminated), record

        begin = (env.reset(stream(root, number, START)), agent.start(), jnp.asarray(True))
        (final, _, _), record = jax.lax.scan(turn, begin, jnp.arange(steps))
        return record | {"final_state": final}

    return jax.vmap(episode)(numbers)


def warn_if_not_converged(trace: Trace) -> None:
    """Say where weights came out without their certificate, which means that something was not a number."""
    alive = np.asarray(trace.alive)
    converged = np.asarray(trace.converged)
    missed = alive.reshape(alive.shape + (1,) * (converged.ndim - 2)) & ~converged
    if not missed.any():
        return
    first = np.argwhere(missed)[0]
    episode = trace.labels.episodes[first[0]]
    warnings.warn(
        f"{int(missed.sum())} of {missed.size} decisions have no certificate, the first in episode {episode} at time "
        f"{int(first[1])}: a state, a primitive or a cost was not a finite number there, or eps or the prior was out "
        "of range. Look at trace.state, or call agent.problem(state, k) outside jit, which says what is wrong.",
        stacklevel=3,
    )
