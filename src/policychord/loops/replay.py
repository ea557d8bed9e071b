"""`replay`: recorded choices, explained trial by trial. The agent weighs, the record acts."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Action, ArrayLike, State, Time
from ..agent import Composer
from ..envs.base import Variable
from .rollout import warn_if_not_converged
from .trace import Labels, Trace


def replay(
    composer: Composer,
    start: State,
    update: Callable[[State, Action, Any, Time], State],
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
    result = _replay(
        composer, start, update, jnp.asarray(np.where(recorded, choices, 0)), observed, jnp.asarray(recorded)
    )
    labels = Labels(composer.names, tuple(range(len(choices))), _labels_of(start))
    trace = Trace(**result, labels=labels)
    warn_if_not_converged(trace)
    return trace


@eqx.filter_jit
def _replay(
    composer: Composer, start: State, update: Any, choices: jax.Array, observed: Any, recorded: jax.Array
) -> dict[str, Any]:
    # beliefs are quantities: one that begins at the whole number 0 must not stay whole
    start = jax.tree_util.tree_map(lambda a: jnp.asarray(a, dtype=float), start)

    def episode(choices: jax.Array, observed: Any, recorded: jax.Array) -> dict[str, Any]:
        def turn(carry: tuple[Any, ...], trial: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
            belief, memory = carry
            k, choice, seen, here = trial
            weighed = composer.weigh(belief, k, memory)
            prob = weighed.problem.pi @ weighed.weights
            following = update(belief, choice, seen, k)
            keep = lambda new, old: jnp.where(here, new, old)  # noqa: E731
            record = {
                "state": belief,
                "action": composer.actions.at(choice),
                "weights": weighed.weights,
                "gap": weighed.certificate.gap,
                "distance": weighed.certificate.distance,
                "converged": weighed.converged,
                "reward": jnp.asarray(jnp.nan),  # what a record's reward is, only `update` knows
                "alive": here,
                "log_prob": jnp.where(here, jnp.log(prob[choice]), 0.0),
            }
            memory = memory._replace(weights=keep(weighed.weights, memory.weights))
            return (jax.tree_util.tree_map(keep, following, belief), memory), record

        trials = (jnp.arange(choices.shape[0]), choices, observed, recorded)
        (final, _), record = jax.lax.scan(turn, (start, composer.start()), trials)
        return record | {"final_state": final}

    return jax.vmap(episode)(choices, observed, recorded)


def _labels_of(start: State) -> dict[str, Variable]:
    """A belief that is a NamedTuple labels itself, a single array is called `belief`; their axes get names."""
    if isinstance(start, np.ndarray | jax.Array | float | list):
        return {"belief": Variable(tuple(f"belief_axis_{i}" for i in range(np.ndim(start))))}
    fields = getattr(start, "_fields", ())
    return {name: Variable(tuple(f"{name}_axis_{i}" for i in range(np.ndim(getattr(start, name))))) for name in fields}
