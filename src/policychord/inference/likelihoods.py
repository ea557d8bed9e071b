"""The likelihood of many units under parameters that all share, or that each group has for itself.

A unit is what `log_prob(theta, unit)` explains: one decision, or one block of decisions whose beliefs follow from each
other. One compiled program serves every question. It takes a row of z for each unit and gives the log-likelihood and
its gradient (the score) unit by unit: sums of them are the gradient of one theta, of every group's theta, and of
clusters for the sandwich. Units go through it in chunks, so memory does not grow with their number.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from .._types import ArrayLike, require_float64
from .parameters import Parameter, natural, size

LogProb = Callable[[Any, Any], Any]  # of (theta, unit): a number, or a vector for a unit of several decisions
AT_ONCE = 64  # units that are worked on together inside the program: what fits into a processor's cache
CALL = 4  # so many times these in one call of it


class Likelihood(NamedTuple):
    """`log_prob` with the data it explains. Made by `likelihood`."""

    log_prob: LogProb
    parameters: tuple[Parameter, ...]
    data: Any  # a pytree of NumPy arrays with a leading unit axis
    group: Int[np.ndarray, " units"]  # from 0: whose unit it is
    at_once: int
    programs: Any  # compiled once for each kind of question

    @property
    def units(self) -> int:
        """How many there are."""
        return len(self.group)

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return int(self.group.max()) + 1 if len(self.group) else 0


class Scores(NamedTuple):
    """Log-likelihood and gradient of each unit."""

    log_likelihood: Float[np.ndarray, "units ..."]
    gradient: Float[np.ndarray, "units K"]


def likelihood(
    log_prob: LogProb,
    data: Any,
    parameters: Sequence[Parameter],
    *,
    groups: ArrayLike | None = None,
    at_once: int = AT_ONCE,
) -> Likelihood:
    """The likelihood of `data`, a pytree of arrays with a leading unit axis, under `parameters`.

    `log_prob(theta, unit)` is written in JAX for one unit and natural values by name. `groups` labels the units.
    """
    require_float64()
    data = jax.tree_util.tree_map(np.asarray, data)
    lengths = {leaf.shape[:1] for leaf in jax.tree_util.tree_leaves(data)}
    if len(lengths) != 1 or () in lengths:
        raise ValueError(f"data has arrays with leading axes {sorted(lengths)}: all need the same unit axis.")
    units = lengths.pop()[0]
    if units == 0:
        raise ValueError("data has no units: pass at least one decision.")
    if groups is None:
        index = np.zeros(units, dtype=int)
    else:
        index = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
        if index.shape != (units,):
            raise ValueError(f"groups has {index.size} labels for {units} units: pass one for each.")
    parameters = tuple(parameters)
    names = [parameter.name for parameter in parameters]
    if len(set(names)) < len(names):
        raise ValueError(f"parameters are called {', '.join(names)}: every name once.")
    return Likelihood(log_prob, parameters, data, index, at_once, _programs(log_prob, parameters, at_once))


def restrict(given: Likelihood, rows: ArrayLike) -> Likelihood:
    """The likelihood of some units, by index or mask; groups keep their numbers, programs are shared."""
    rows = np.asarray(rows)
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows
    data = jax.tree_util.tree_map(lambda leaf: leaf[rows], given.data)
    return given._replace(data=data, group=given.group[rows])


def pointwise(given: Likelihood, z: ArrayLike) -> Float[np.ndarray, "units ..."]:
    """ln p of each unit (or of each of its decisions); z is (K) for all or (groups, K)."""
    parts = [np.asarray(value)[:count] for value, count in _run(given, z, "value")]
    return np.concatenate(parts)


def scores(given: Likelihood, z: ArrayLike) -> Scores:
    """ln p and its gradient in z, unit by unit."""
    parts = [(np.asarray(value)[:count], np.asarray(slope)[:count]) for (value, slope), count in _run(given, z, "both")]
    return Scores(np.concatenate([value for value, _ in parts]), np.concatenate([slope for _, slope in parts]))


def value_and_gradient(given: Likelihood, z: ArrayLike) -> tuple[float, Float[np.ndarray, " K"]]:
    """The log-likelihood of all units and its gradient."""
    found = scores(given, z)
    return float(found.log_likelihood.sum()), found.gradient.sum(axis=0)


def by_group(given: Likelihood, z: Float[np.ndarray, "groups K"], products: bool = False) -> tuple[np.ndarray, ...]:
    """The log-likelihood of each group under its own z (groups), and its gradient (groups, K).

    With `products` also the sum of the outer products of its scores (groups, K, K), which costs next to nothing.
    """
    found = scores(given, z)
    totals = found.log_likelihood.reshape(given.units, -1).sum(axis=1)
    value = np.bincount(given.group, totals, minlength=len(z))
    gradient = sums_of(found.gradient, given.group, len(z))
    if not products:
        return value, gradient
    pairs = (found.gradient[:, :, None] * found.gradient[:, None, :]).reshape(given.units, -1)
    return value, gradient, sums_of(pairs, given.group, len(z)).reshape(len(z), *z.shape[1:], *z.shape[1:])


def sums_of(rows: np.ndarray, index: np.ndarray, count: int) -> np.ndarray:
    """Sums of rows (units, K) over the units of each group, (count, K)."""
    columns = [np.bincount(index, column, minlength=count) for column in rows.T]
    return np.stack(columns, axis=1) if columns else np.zeros((count, 0))


def _run(given: Likelihood, z: ArrayLike, which: str) -> Any:
    """Chunk by chunk: what the program gives, and how many of its rows count."""
    z = np.asarray(z, dtype=float)
    wanted = size(given.parameters)
    if z.shape[-1:] != (wanted,) or z.ndim not in (1, 2):
        raise ValueError(f"z has shape {z.shape}: pass ({wanted},) or (groups, {wanted}).")
    rows = np.broadcast_to(z, (given.units, wanted)) if z.ndim == 1 else z[given.group]
    program = given.programs[which]
    begin, length = 0, given.at_once * CALL
    while begin < given.units:
        here, count = slice(begin, begin + length), min(given.units - begin, length)
        unit = jax.tree_util.tree_map(partial(_chunk, here=here, length=length), given.data)
        yield program(_chunk(rows, here, length), unit), count
        begin += length


def _chunk(rows: np.ndarray, here: slice, length: int) -> np.ndarray:
    """Some rows up to a length, the last one again and again, so that one compiled program serves all chunks."""
    rows = rows[here]
    missing = length - len(rows)
    return rows if missing == 0 else np.concatenate([rows, np.repeat(rows[-1:], missing, axis=0)])


def _programs(log_prob: LogProb, parameters: tuple[Parameter, ...], at_once: int) -> dict[str, Any]:
    def of_unit(z: jax.Array, unit: Any) -> tuple[jax.Array, jax.Array]:
        value = jnp.asarray(log_prob(natural(parameters, z), unit))
        return jnp.sum(value), value

    def value(z: jax.Array, unit: Any) -> jax.Array:
        return of_unit(z, unit)[1]

    def both(z: jax.Array, unit: Any) -> tuple[jax.Array, jax.Array]:
        slope, found = jax.grad(of_unit, has_aux=True)(z, unit)
        return found, slope

    def in_batches(one: Any, z: jax.Array, data: Any) -> Any:
        return jax.lax.map(lambda pair: one(*pair), (z, data), batch_size=at_once)

    return {"value": jax.jit(partial(in_batches, value)), "both": jax.jit(partial(in_batches, both))}
