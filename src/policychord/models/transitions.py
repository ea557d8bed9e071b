"""Worlds that are not a formula: chance (`Random`), a finite table (`Tabular`), any simulator (`BlackBox`)."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._calls import PartError, call
from .._types import Action, ArrayLike, Observation, Time


class AbstractOutcomes(eqx.Module):
    """What may come of an action: `Cost(predict=...)` then counts the expected cost, not the cost of the mean."""

    @abstractmethod
    def outcomes(self, observation: Observation, action: Action, k: Time) -> tuple[Observation, Float[Array, " m"]]:
        """m next observations, along a leading axis, and the probability of each."""


class Random(AbstractOutcomes):
    """A world with chance: `predict(observation, action, k, key)` draws the next observation.

    `samples` of them stand for all. Every action meets the same random keys, so that what differs is the action.
    """

    predict: Callable[[Observation, Action, Time, Array], Observation]
    samples: int = eqx.field(static=True)
    seed: int = eqx.field(static=True)

    def __init__(self, predict: Callable[..., Observation], samples: int = 32, seed: int = 0):
        if not callable(predict):
            raise ValueError("predict must be a function of (observation, action, k, key).")
        if not (isinstance(samples, int | np.integer) and samples >= 1):
            raise ValueError(f"samples = {samples!r}: pass a whole number of at least 1.")
        self.predict, self.samples, self.seed = predict, int(samples), int(seed)

    def outcomes(self, observation: Observation, action: Action, k: Time) -> tuple[Observation, Float[Array, " m"]]:
        keys = jax.random.split(jax.random.fold_in(jax.random.key(self.seed), k), self.samples)
        drawn = jax.vmap(lambda key: call("predict", self.predict, observation, action, k, key))(keys)
        return drawn, jnp.full(self.samples, 1.0 / self.samples)


class Tabular(AbstractOutcomes):
    """A finite world: `table[x, u, x']` is p(x' | x, u), for states and actions that are whole numbers from 0 up."""

    table: Float[Array, "state action state"]

    def __init__(self, table: ArrayLike):
        values = np.asarray(table, dtype=float)
        if values.ndim != 3 or values.shape[0] != values.shape[2]:
            raise ValueError(f"table has shape {values.shape}: pass (states, actions, states), p(x' | x, u).")
        off = np.abs(values.sum(axis=-1) - 1.0)
        if not (np.all(np.isfinite(values)) and np.all(values >= 0) and np.max(off) < 1e-9):
            worst = np.unravel_index(np.argmax(np.nan_to_num(off, nan=np.inf)), off.shape)
            raise ValueError(
                f"table[{worst[0]}, {worst[1]}] is not a distribution over next states: its entries must be at least 0 "
                "and sum to 1."
            )
        self.table = jnp.asarray(values)

    def outcomes(self, observation: Observation, action: Action, k: Time) -> tuple[Observation, Float[Array, " m"]]:
        x, u = (jnp.asarray(index).reshape(()).astype(int) for index in (observation, action))
        return jnp.arange(self.table.shape[0]), self.table[x, u]


class BlackBox(eqx.Module):
    """Any simulator as `predict` or as a cost: `function(observations, actions, k)` over NumPy batches.

    It is given arrays with a leading axis, one row for each action that is tried, and k, the step of each row. It runs
    as ordinary Python (NumPy, MuJoCo, a look-up) and cannot be differentiated. As `predict` it answers with the next
    observations, in the form of those it was given; with `number=True` it answers with a number for each row.
    """

    function: Callable[..., Any] = eqx.field(static=True)
    number: bool = eqx.field(static=True)

    def __init__(self, function: Callable[..., Any], *, number: bool = False):
        if not callable(function):
            raise ValueError(f"function is a {type(function).__name__}: pass a function of (observations, actions, k).")
        self.function, self.number = function, number

    def __call__(self, observation: Observation, action: Action, k: Time) -> Any:
        arguments = jax.tree_util.tree_map(jnp.asarray, (observation, action, k))
        like = jnp.zeros(()) if self.number else jax.tree_util.tree_map(lambda a: a.astype(float), arguments[0])
        shape = jax.tree_util.tree_map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), like)
        ndim = jax.tree_util.tree_map(jnp.ndim, arguments)

        def ask(*batch: Any) -> Any:
            arrays = jax.tree_util.tree_map(np.asarray, batch)
            first, axes = (jax.tree_util.tree_leaves(tree)[0] for tree in (arrays, ndim))
            lead = first.shape[: first.ndim - axes]
            rows = jax.tree_util.tree_map(lambda a, n: a.reshape(-1, *a.shape[a.ndim - n :]), arrays, ndim)
            try:
                answer = self.function(*rows)
                return jax.tree_util.tree_map(
                    lambda a, s: np.asarray(a, dtype=s.dtype).reshape((*lead, *s.shape)), answer, shape
                )
            except Exception as error:  # other people's code may raise anything
                raise PartError(
                    f"the function of BlackBox failed on {len(jax.tree_util.tree_leaves(rows)[0])} rows "
                    f"({type(error).__name__}: {error}): it is given (observations, actions, k), each with a leading "
                    f"axis, and answers with {'a number' if self.number else 'an observation'} for each row."
                ) from error

        return jax.pure_callback(ask, shape, *arguments, vmap_method="broadcast_all")
