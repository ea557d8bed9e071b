"""`rollout`: the closed loop of an agent and an environment, many episodes in one compiled call."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..agent import Agent
from .environment import AbstractEnv
from .in_turn import step_in_turn
from .step import Record, begin, step, streams_of
from .trace import Labels, Trace, trace_of


def rollout(
    agent: Agent,
    env: AbstractEnv,
    *,
    steps: int,
    episodes: int | Iterable[int] = 1,
    seed: int | jax.Array = 0,
    in_turn: bool = False,
) -> Trace:
    """Let the agent act in the environment for `steps` steps, in all episodes at once.

    `episodes` is how many, or which: an episode's random numbers depend on `seed` and its own number only, so
    the first ten of a thousand are (to rounding) the same ten alone, and every agent meets the same starts and
    disturbances. An agent is a Composer, a Population, or anything with `names`, `start()` and
    `decide(key, observation, k, memory)`. With `in_turn` the members of a population move one after another, in an
    environment with `only(i)`.
    """
    if not isinstance(env, AbstractEnv):
        raise ValueError(
            f"env is a {type(env).__name__}: rollout compiles one of policychord.worlds; for a Gymnasium environment "
            "use policychord.gym.play."
        )
    numbers = episode_numbers(episodes)
    if not (isinstance(steps, int | np.integer) and steps >= 1):
        raise ValueError(f"steps = {steps!r}: pass a whole number of at least 1.")
    record, final = _rollout(agent, env, jax.random.key(seed), jnp.asarray(numbers), int(steps), in_turn)
    return trace_of(record, final, Labels(tuple(agent.names), tuple(numbers.tolist()), dict(env.variables)))


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


@eqx.filter_jit
def _rollout(
    agent: Agent, env: AbstractEnv, root: jax.Array, numbers: jax.Array, steps: int, in_turn: bool
) -> tuple[Record, Any]:
    def episode(number: jax.Array) -> tuple[Record, Any]:
        streams = streams_of(root, number)
        advance = partial(step_in_turn if in_turn else step, agent, env, streams)
        last, record = jax.lax.scan(advance, begin(agent, env, streams), jnp.arange(steps))
        return record, last.state

    return jax.vmap(episode)(numbers)
