"""The likelihood of many units under parameters that all share, or that each group has for itself.

A unit is what `log_prob(theta, unit)` explains: one decision, or one block of decisions whose beliefs follow from each
other. One compiled program serves every question. It takes a row of z for each unit and gives the log-likelihood and
its gradient (the score) unit by unit: sums of them are the gradient of one theta, of every group's theta, and of
clusters for the sandwich. Units go through it in chunks, so memory does not grow with their number.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, Shaped

from .._types import ArrayLike, require_float64
from .parameters import Parameter, affine_of, natural, size

LogProb = Callable[[Any, Any], Any]  # of (theta, unit): a number, or a vector for a unit of several decisions
AT_ONCE = 64  # units that are worked on together inside the program: what fits into a processor's cache
CALL = 4  # so many times these in one call of it


class Model(NamedTuple):
    """One explanation of behaviour: its parameters, and ln p of a unit under natural values of them.

    A model that `borrows` has the estimates of another one, which has the same parameters, and none of its own: as the
    paper's mixtures, whose coefficients are those of the regression that they come close to. `family` has all numbers
    that `log_prob` may read, these among them; those that the model lacks are 0. Models of one family share programs.
    """

    name: str
    parameters: tuple[Parameter, ...]
    log_prob: LogProb
    description: str = ""
    borrows: "Model | None" = None
    family: tuple[Parameter, ...] = ()


class Data(NamedTuple):
    """Units of behaviour, with the person (or group, or trial) that each belongs to and its block."""

    units: Any  # a pytree of NumPy arrays with a leading unit axis
    subject: Shaped[np.ndarray, " units"]
    block: Shaped[np.ndarray, " units"]


class Likelihood(NamedTuple):
    """A model with the data it explains. Made by `likelihood`."""

    model: Model
    data: Any  # a pytree of NumPy arrays with a leading unit axis
    group: Int[np.ndarray, " units"]  # from 0: whose unit it is
    weight: Float[np.ndarray, "units ..."]  # of each unit, or of each decision of a unit: 0 where it does not count
    at_once: int
    programs: Any  # compiled once for each kind of question

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The model's."""
        return self.model.parameters

    @property
    def units(self) -> int:
        """How many there are."""
        return len(self.group)

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return int(self.group.max()) + 1 if len(self.group) else 0


class Scores(NamedTuple):
    """Log-likelihood and gradient of each unit, and the sum of the outer products of its decisions' gradients."""

    log_likelihood: Float[np.ndarray, "units ..."]
    gradient: Float[np.ndarray, "units K"]
    products: Float[np.ndarray, "units K K"] | None  # None where a unit is one decision: the gradient's own product


def likelihood(
    model: Model,
    units: Any,
    *,
    groups: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    at_once: int = AT_ONCE,
) -> Likelihood:
    """ln L(theta) = sum_u weight_u ln p(u | theta) of units, a pytree of arrays with a leading unit axis.

    `model.log_prob(theta, unit)` is written in JAX for one unit: a number, or a vector for a unit of several decisions.
    `groups` labels the units. `weight` (units), or (units, decisions), is one unless given.
    """
    require_float64()
    units = jax.tree_util.tree_map(np.asarray, units)
    lengths = {leaf.shape[:1] for leaf in jax.tree_util.tree_leaves(units)}
    if len(lengths) != 1 or () in lengths:
        raise ValueError(f"data has arrays with leading axes {sorted(lengths)}: all need the same unit axis.")
    count = lengths.pop()[0]
    if count == 0:
        raise ValueError("data has no units: pass at least one decision.")
    if groups is None:
        index = np.zeros(count, dtype=int)
    else:
        index = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
        if index.shape != (count,):
            raise ValueError(f"groups has {index.size} labels for {count} units: pass one for each.")
    each = np.ones(count) if weight is None else np.asarray(weight, dtype=float)
    if each.shape[:1] != (count,):
        raise ValueError(f"weight has shape {each.shape} for {count} units: pass a row for each.")
    at_once = min(at_once, -(-count // CALL))  # one call of the program is no longer than what there is
    names = [parameter.name for parameter in model.parameters]
    if len(set(names)) < len(names):
        raise ValueError(f"parameters are called {', '.join(names)}: every name once.")
    return Likelihood(
        model,
        units,
        index,
        each,
        at_once,
        _programs(model.log_prob, _scales_of(model.family or model.parameters), at_once),
    )


def restrict(given: Likelihood, rows: ArrayLike) -> Likelihood:
    """The likelihood of some units, by index or mask; groups keep their numbers, programs are shared."""
    rows = np.asarray(rows)
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows
    data = jax.tree_util.tree_map(lambda leaf: leaf[rows], given.data)
    return given._replace(data=data, group=given.group[rows], weight=given.weight[rows])


def pointwise(given: Likelihood, z: ArrayLike) -> Float[np.ndarray, "units ..."]:
    """ln p of each unit, or of each of its decisions, whatever their weight; z is (K) for all or (groups, K)."""
    parts = [np.asarray(value)[:count] for value, count in _run(given, z, "value")]
    return np.concatenate(parts)


def scores(given: Likelihood, z: ArrayLike) -> Scores:
    """ln p and its gradient in z, unit by unit."""
    parts = [[np.asarray(part)[:count] for part in answer] for answer, count in _run(given, z, "both")]
    value, slope, *products = (np.concatenate(part) for part in zip(*parts, strict=True))
    (at, _), scale = _places(given.model), affine_of(given.parameters)[1]
    outer = products[0][:, at[:, None], at] * np.outer(scale, scale) if products else None
    return Scores(value, slope[:, at] * scale, outer)


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
    order = np.argsort(given.group, kind="stable")
    ends = np.cumsum(np.bincount(given.group, minlength=len(z)))[:-1]
    if found.products is None:
        return value, gradient, np.stack([rows.T @ rows for rows in np.split(found.gradient[order], ends)])
    return value, gradient, np.stack([rows.sum(axis=0) for rows in np.split(found.products[order], ends)])


def sums_of(rows: np.ndarray, index: np.ndarray, count: int) -> np.ndarray:
    """Sums of rows (units, K) over the units of each group, (count, K)."""
    columns = [np.bincount(index, column, minlength=count) for column in rows.T]
    return np.stack(columns, axis=1) if columns else np.zeros((count, 0))


def standardise(values: ArrayLike) -> Float[np.ndarray, "units F"]:
    """Features of units with mean zero and standard deviation one; one that does not vary is zero."""
    values = np.asarray(values, dtype=float)
    spread = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _run(given: Likelihood, z: ArrayLike, which: str) -> Any:
    """Chunk by chunk: what the program gives, and how many of its rows count."""
    z = np.asarray(z, dtype=float)
    wanted = size(given.parameters)
    if z.shape[-1:] != (wanted,) or z.ndim not in (1, 2):
        raise ValueError(f"z has shape {z.shape}: pass ({wanted},) or (groups, {wanted}).")
    centre, scale = affine_of(given.parameters)
    z = centre + scale * z
    at, width = _places(given.model)
    rows = np.zeros((given.units, width))
    rows[:, at] = z if z.ndim == 1 else z[given.group]
    program = given.programs[which]
    begin, length = 0, given.at_once * CALL
    while begin < given.units:
        here, count = slice(begin, begin + length), min(given.units - begin, length)
        unit = jax.tree_util.tree_map(partial(_chunk, here=here, length=length), given.data)
        yield program(_chunk(rows, here, length), unit, _chunk(given.weight, here, length)), count
        begin += length


def _places(model: Model) -> tuple[np.ndarray, int]:
    """Where the model's numbers stand among those that its program takes, and how many these are."""
    if not model.family:
        count = size(model.parameters)
        return np.arange(count), max(count, 1)  # batches of nothing cannot be cut
    names = [parameter.name for parameter in model.family]
    return np.array([names.index(parameter.name) for parameter in model.parameters], dtype=int), len(names)


def _chunk(rows: np.ndarray, here: slice, length: int) -> np.ndarray:
    """Some rows up to a length, the last one again and again, so that one compiled program serves all chunks."""
    rows = rows[here]
    missing = length - len(rows)
    return rows if missing == 0 else np.concatenate([rows, np.repeat(rows[-1:], missing, axis=0)])


def _scales_of(parameters: tuple[Parameter, ...]) -> tuple[Any, ...]:
    """What programs depend on: not where a search begins, nor the priors, nor the units."""
    return tuple(one._replace(start=0.0, prior=None, centre=0.0, scale=1.0) for one in parameters)


# Compiling takes longer than running: cohorts, folds and comparisons of the same model share its programs.
@lru_cache(maxsize=32)
def _programs(log_prob: LogProb, parameters: tuple[Parameter, ...], at_once: int) -> dict[str, Any]:
    def value(z: jax.Array, unit: Any, weight: jax.Array) -> jax.Array:
        return jnp.asarray(log_prob(natural(parameters, z), unit))

    def weighted(z: jax.Array, unit: Any, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
        each = value(z, unit, weight)
        each = jnp.where(weight > 0, weight * each, 0.0)
        return each, each

    def both(z: jax.Array, unit: Any, weight: jax.Array) -> tuple[jax.Array, ...]:
        if jax.eval_shape(value, z, unit, weight).ndim == 0:
            slope, each = jax.grad(weighted, has_aux=True)(z, unit, weight)
            return each, slope
        # Decisions of one unit: their gradients one by one, because a block alone says little about the curvature.
        slopes, each = jax.jacfwd(weighted, has_aux=True)(z, unit, weight)
        return each, slopes.sum(axis=0), slopes.T @ slopes

    def in_batches(one: Any, z: jax.Array, data: Any, weight: jax.Array) -> Any:
        return jax.lax.map(lambda row: one(*row), (z, data, weight), batch_size=at_once)

    return {"value": jax.jit(partial(in_batches, value)), "both": jax.jit(partial(in_batches, both))}
