"""`rollout`: the closed loop of an agent and an environment. `replay`: recorded choices, explained trial by trial."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Action, ArrayLike, Observation, Time, in_native_order
from ..agent import Agent, Composer, Decision, Memory, remember
from .environment import AbstractEnv, Step, Variable
from .step import NO_STREAMS, Carry, Record, begin, step, step_in_turn, streams_of
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


def replay(
    composer: Composer,
    start: Observation,
    update: Callable[[Observation, Action, Any, Time], Observation],
    *,
    choices: ArrayLike,
    observed: Any = None,
    recorded: ArrayLike | None = None,
) -> Trace:
    """The weights before each recorded choice, and how probable the composed policy found it.

    `choices` (episode, time) are indices into the action set. The belief begins at `start` (as floats) and moves on by
    `update(belief, choice, observed, k)`, where `observed` is what was seen at that trial: arrays with leading axes
    (episode, time). `recorded` is False where an episode has no trial: those are neither scored nor learned from.
    The trace's `log_prob` holds ln p(choice); its sum is the log-likelihood.
    """
    choices = np.asarray(choices)
    start, observed = in_native_order((start, observed))
    if choices.ndim != 2 or choices.dtype.kind not in "iu" or choices.size == 0:
        raise ValueError(
            f"choices has shape {choices.shape} and dtype {choices.dtype}: pass whole numbers (episode, time)."
        )
    recorded = np.ones(choices.shape, bool) if recorded is None else np.asarray(recorded, dtype=bool)
    if recorded.shape != choices.shape:
        raise ValueError(f"recorded has shape {recorded.shape}, choices {choices.shape}: they must agree.")
    wrong = recorded & ~((choices >= 0) & (choices < composer.actions.size))
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"choices[{where[0]}, {where[1]}] = {choices[where]}: an index from 0 to {composer.actions.size - 1} "
            "(subtract 1 if yours count from 1)."
        )
    for leaf in jax.tree_util.tree_leaves(observed):
        if np.shape(leaf)[:2] != choices.shape:
            raise ValueError(
                f"observed has an array of shape {np.shape(leaf)}: its first axes must be {choices.shape}."
            )
    record, final = _replay(
        composer, start, update, jnp.asarray(np.where(recorded, choices, 0)), observed, jnp.asarray(recorded)
    )
    labels = Labels(composer.names, tuple(range(len(choices))), _labels_of(start))
    # what a record's reward is, only `update` knows: the record pays the agent ln p(choice)
    paid = record._replace(action=record.action.action, reward=jnp.full_like(record.reward, jnp.nan), alive=recorded)
    return trace_of(paid, final, labels, log_prob=record.reward)


class _Taken(NamedTuple):
    """A recorded choice as an action of the agent who explains it."""

    action: Any
    log_prob: Any


class _Explaining(eqx.Module):
    """An agent that weighs, and then takes the recorded choice."""

    composer: Composer
    choices: jax.Array
    recorded: jax.Array

    def decide(self, key: None, belief: Observation, k: Time, memory: Memory) -> Decision:
        weighed, choice = self.composer.weigh(belief, k, memory), self.choices[k]
        log_prob = jnp.log(self.composer.policy(weighed)[choice])
        kept = remember(memory, weighed, self.recorded[k])
        action = _Taken(self.composer.actions.at(choice), log_prob)
        return Decision(action, weighed.weights, weighed.certificate, weighed.outcome, kept, cut=weighed.cut)


class _Past(eqx.Module):
    """A record as an environment: its state is the belief, which moves on where there is a trial."""

    update: Any
    choices: jax.Array
    observed: Any
    recorded: jax.Array

    def observe(self, belief: Any) -> Observation:
        return belief

    def step(self, key: None, belief: Any, taken: _Taken, k: Time) -> Step:
        here = self.recorded[k]
        following = self.update(belief, self.choices[k], jax.tree_util.tree_map(lambda a: a[k], self.observed), k)
        kept = jax.tree_util.tree_map(lambda new, old: jnp.where(here, new, old), following, belief)
        return Step(kept, jnp.where(here, taken.log_prob, 0.0), jnp.asarray(False))


@eqx.filter_jit
def _replay(
    composer: Composer, start: Any, update: Any, choices: jax.Array, observed: Any, recorded: jax.Array
) -> tuple[Record, Any]:
    # beliefs are quantities: one that begins at the whole number 0 must not stay whole
    start = jax.tree_util.tree_map(lambda a: jnp.asarray(a, dtype=float), start)
    observed = jax.tree_util.tree_map(jnp.asarray, observed)

    def episode(choices: jax.Array, observed: Any, recorded: jax.Array) -> tuple[Record, Any]:
        agent, env = _Explaining(composer, choices, recorded), _Past(update, choices, observed, recorded)
        carry = Carry(start, composer.start(), jnp.asarray(True))
        last, record = jax.lax.scan(partial(step, agent, env, NO_STREAMS), carry, jnp.arange(choices.shape[0]))
        return record, last.state

    return jax.vmap(episode)(choices, observed, recorded)


def _labels_of(start: Observation) -> dict[str, Variable]:
    """A belief that is a NamedTuple labels itself, a single array is called `belief`; their axes get names."""
    if isinstance(start, np.ndarray | jax.Array | float | list):
        return {"belief": Variable(tuple(f"belief_axis_{i}" for i in range(np.ndim(start))))}
    fields = getattr(start, "_fields", ())
    return {name: Variable(tuple(f"{name}_axis_{i}" for i in range(np.ndim(getattr(start, name))))) for name in fields}
