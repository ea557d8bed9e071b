"""What a primitive is, and two that state their probabilities: `Table` as numbers, `Categorical` as a function."""

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._calls import call_at
from .._types import ArrayLike, Observation, Time
from ..actions import AbstractActions, Sampled


class AbstractPrimitive(eqx.Module):
    """One reusable behaviour. A new one is a final class with this one method."""

    @abstractmethod
    def log_prob(self, actions: AbstractActions, observation: Observation, k: Time) -> Float[Array, " d"]:
        """ln pi(u | x) for every action of the set at step k; its exponentials sum to one."""


class Moments(NamedTuple):
    """Expectations under a primitive, in closed form: they take away most of the error of sampling."""

    log_density: Float[Array, ""]  # E[ln pi], minus the entropy
    first: Float[Array, " dim"]  # E[y]
    second: Float[Array, "dim dim"]  # E[y y^T]


@runtime_checkable
class Draws(Protocol):
    """A primitive that `Sampled` actions can be drawn from, besides its `log_prob`."""

    def sample(
        self, uniforms: Float[Array, "m dim"], actions: Sampled, observation: Observation, k: Time
    ) -> Float[Array, "m dim"]:
        """The points at which uniform numbers are its quantiles."""

    def log_density(
        self, points: Float[Array, "d dim"], actions: Sampled, observation: Observation, k: Time
    ) -> Float[Array, " d"]:
        """ln pi(u | x) at any points, as a density."""

    def moments(self, actions: Sampled, observation: Observation, k: Time) -> Moments | None:
        """What is known about it in closed form; None if nothing is."""


class Table(AbstractPrimitive):
    """pi(u | x) read from a table: one distribution, or a row for each discrete state.

    `row(observation, k)` says which row; without it the observation itself is the row's number.
    """

    log_rows: Float[Array, "rows d"]
    row: Callable[[Observation, Time], ArrayLike] | None

    def __init__(self, probabilities: ArrayLike, row: Callable[[Observation, Time], ArrayLike] | None = None):
        if callable(probabilities):
            raise ValueError(
                "probabilities is a function: a Table holds numbers, and `row` says which of its rows a state has. "
                "For a function of (observation, k) use Categorical, which takes log-probabilities."
            )
        rows = np.atleast_2d(np.asarray(probabilities, dtype=float))
        if rows.ndim != 2 or rows.size == 0:
            raise ValueError(f"probabilities has shape {rows.shape}: pass (actions,) or (states, actions).")
        bad = ~(np.isfinite(rows) & (rows >= 0))
        if np.any(bad):
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            raise ValueError(f"probabilities[{where[0]}, {where[1]}] = {rows[where]:g}: probabilities lie in [0, 1].")
        total = rows.sum(axis=1)
        off = np.abs(total - 1) > 1e-6
        if np.any(off):
            first = int(np.argmax(off))
            raise ValueError(
                f"probabilities[{first}] sums to {total[first]:.9g}: divide every row by its sum "
                "(a row for each state, a column for each action)."
            )
        with np.errstate(divide="ignore"):
            self.log_rows = jnp.asarray(np.log(rows / total[:, None]))
        self.row = row

    def log_prob(self, actions: AbstractActions, observation: Observation, k: Time) -> Float[Array, " d"]:
        if self.log_rows.shape[1] != actions.size:
            raise ValueError(f"the table has {self.log_rows.shape[1]} actions, the action set {actions.size}.")
        if self.log_rows.shape[0] == 1:
            return self.log_rows[0]
        row = observation if self.row is None else self.row(observation, k)
        # a row that is not there gives NaN, which no certificate survives, instead of its neighbour
        return self.log_rows.at[row].get(mode="fill", fill_value=jnp.nan, wrap_negative_indices=False)


class Categorical(AbstractPrimitive):
    """pi(u | x) = softmax(logits(observation, k)), or of logits(observation); -inf forbids an action."""

    logits: Callable[[Observation, Time], ArrayLike]

    def __check_init__(self) -> None:
        if not callable(self.logits):
            raise ValueError(
                f"logits is a {type(self.logits).__name__}: pass a function of (observation, k); Table takes numbers."
            )

    def log_prob(self, actions: AbstractActions, observation: Observation, k: Time) -> Float[Array, " d"]:
        logits = jnp.asarray(call_at("logits", self.logits, observation, k), dtype=float)
        if logits.shape != (actions.size,):
            raise ValueError(
                f"logits(observation, k) has shape {logits.shape}: one for each of the {actions.size} actions."
            )
        return jax.nn.log_softmax(logits)
