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


class _Scores(NamedTuple):
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
    index = np.unique(np.zeros(count) if groups is None else np.asarray(groups), return_inverse=True)[1].reshape(-1)
    if index.shape != (count,):
        raise ValueError(f"groups has {index.size} labels for {count} units: pass one for each.")
    each = np.ones(count) if weight is None else np.asarray(weight, dtype=float)
    if each.shape[:1] != (count,):
        raise ValueError(f"weight has shape {each.shape} for {count} units: pass a row for each.")
    at_once = min(at_once, -(-count // CALL))  # one call of the program is no longer than what there is
    names = [parameter.name for parameter in model.parameters]
    if len(set(names)) < len(names):
        raise ValueError(f"parameters are called {', '.join(names)}: every name once.")
    # what programs depend on: not where a search begins, nor the priors, nor the units
    numbers = model.family or model.parameters
    scales = tuple(each._replace(start=0.0, prior=None, centre=0.0, scale=1.0) for each in numbers)
    return Likelihood(model, units, index, each, at_once, _programs(model.log_prob, scales, at_once))


def restrict(given: Likelihood, rows: ArrayLike) -> Likelihood:
    """The likelihood of some units, by index or mask; groups keep their numbers, programs are shared."""
    rows = np.asarray(rows)
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows
    data = jax.tree_util.tree_map(lambda leaf: leaf[rows], given.data)
    return given._replace(data=data, group=given.group[rows], weight=given.weight[rows])


def pooled(given: Likelihood) -> Likelihood:
    """The likelihood of all units under one z, as that of a single group."""
    return given._replace(group=np.zeros(given.units, int))


def pointwise(given: Likelihood, z: ArrayLike) -> Float[np.ndarray, "units ..."]:
    """ln p of each unit, or of each of its decisions, whatever their weight; z is (K) for all or (groups, K)."""
    return np.asarray(_run(given, z, "value"))


def scores(given: Likelihood, z: ArrayLike) -> _Scores:
    """ln p and its gradient in z, unit by unit."""
    value, slope, *products = _run(given, z, "both")
    (at, _), scale = _places(given.model), affine_of(given.parameters)[1]
    outer = products[0][:, at[:, None], at] * np.outer(scale, scale) if products else None
    return _Scores(value, slope[:, at] * scale, outer)


def by_group(given: Likelihood, z: Float[np.ndarray, "groups K"], products: bool = False) -> tuple[np.ndarray, ...]:
    """The log-likelihood of each group under its own z (groups), and its gradient (groups, K).

    With `products` also the sum of the outer products of its scores (groups, K, K), which costs next to nothing.
    """
    log_p, slope, outer = scores(given, z)
    value = np.bincount(given.group, log_p.reshape(given.units, -1).sum(axis=1), minlength=len(z))
    gradient = sums_of(slope, given.group, len(z))
    if not products:
        return value, gradient
    order = np.argsort(given.group, kind="stable")
    ends = np.cumsum(np.bincount(given.group, minlength=len(z)))[:-1]
    parts = np.split((slope if outer is None else outer)[order], ends)
    return value, gradient, np.stack([part.T @ part if outer is None else part.sum(axis=0) for part in parts])


def sums_of(rows: np.ndarray, index: np.ndarray, count: int) -> np.ndarray:
    """Sums of rows (units, K) over the units of each group, (count, K)."""
    columns = [np.bincount(index, column, minlength=count) for column in rows.T]
    return np.stack(columns, axis=1) if columns else np.zeros((count, 0))


def standardise(values: ArrayLike) -> Float[np.ndarray, "units F"]:
    """Features of units with mean zero and standard deviation one; one that does not vary is zero."""
    values = np.asarray(values, dtype=float)
    spread = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def in_chunks(program: Callable[[Any], Any], units: Any, length: int) -> Any:
    """program(units) for any number of units, so many at once, as one pytree of arrays.

    The last chunk repeats its last unit, so that one compiled program serves all chunks.
    """
    count = len(jax.tree_util.tree_leaves(units)[0])
    parts = []
    for begin in range(0, count, length):
        rows = np.minimum(np.arange(begin, begin + length), count - 1)
        answer = program(jax.tree_util.tree_map(lambda leaf, rows=rows: leaf[rows], units))
        parts.append(jax.tree_util.tree_map(lambda leaf, most=count - begin: np.asarray(leaf)[:most], answer))
    return jax.tree_util.tree_map(lambda *leaves: np.concatenate(leaves), *parts)


def by_unit(given: Likelihood, z: np.ndarray) -> np.ndarray:
    """The row of z (K), or of (groups, K), for each unit."""
    return np.broadcast_to(z, (given.units, z.shape[-1])) if z.ndim == 1 else z[given.group]


def _run(given: Likelihood, z: ArrayLike, which: str) -> Any:
    """What a program gives, unit by unit."""
    z = np.asarray(z, dtype=float)
    wanted = size(given.parameters)
    if z.shape[-1:] != (wanted,) or z.ndim not in (1, 2):
        raise ValueError(f"z has shape {z.shape}: pass ({wanted},) or (groups, {wanted}).")
    centre, scale = affine_of(given.parameters)
    at, width = _places(given.model)
    rows = np.zeros((given.units, width))
    rows[:, at] = by_unit(given, centre + scale * z)
    program = given.programs[which]
    return in_chunks(lambda chunk: program(*chunk), (rows, given.data, given.weight), given.at_once * CALL)


def _places(model: Model) -> tuple[np.ndarray, int]:
    """Where the model's numbers stand among those that its program takes, and how many these are."""
    if not model.family:
        count = size(model.parameters)
        return np.arange(count), max(count, 1)  # batches of nothing cannot be cut
    names = [parameter.name for parameter in model.family]
    return np.array([names.index(parameter.name) for parameter in model.parameters], dtype=int), len(names)


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

    def in_batches(of_unit: Any, z: jax.Array, data: Any, weight: jax.Array) -> Any:
        return jax.lax.map(lambda row: of_unit(*row), (z, data, weight), batch_size=at_once)

    return {"value": jax.jit(partial(in_batches, value)), "both": jax.jit(partial(in_batches, both))}
