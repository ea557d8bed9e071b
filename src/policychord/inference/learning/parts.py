"""The numbers of an agent's parts, by name: what of it can be learned, and the agent that any numbers give.

A row of a `Table` is a point of the simplex, an sd is positive, any other number of a primitive is free. Parts of your
own are learned by the arrays that they hold; numbers that shall stay are Python floats, or are not named in `free`. The
primitives of an agent that is a primitive itself are learned as its own.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...agent import Composer
from ...primitives import Gaussian, Table
from ..decisions import Family
from ..parameters import Parameter, Theta, positive, real, simplex

ALL = "primitives"  # in `free`: every number of every primitive
LEAST = 1e-6  # probability at which a zero of a table begins


class _Place(NamedTuple):
    """An array somewhere in an agent: its number among the leaves, its parameters, and how they become it."""

    leaf: int
    parameters: tuple[Parameter, ...]
    logs: bool  # of probabilities: the rows of a table, the prior
    shape: tuple[int, ...]


def family_of_agent(agent: Composer, free: Sequence[str] = (ALL,)) -> Family:
    """The family of all agents that differ from this one in the numbers that are free.

    `free` has "primitives" (all their numbers), "eps", "prior", or names of fields that hold arrays, of a primitive or
    of the model: `("log_rows",)`, `("mean", "sd")`, `("gain", "coef", "prior")`.
    """
    if not isinstance(agent, Composer):
        raise ValueError(f"agent is a {type(agent).__name__}: pass a Composer, whose primitives are to be learned.")
    free = (free,) if isinstance(free, str) else tuple(free)
    places: list[_Place] = []
    known: list[str] = []
    used: set[str] = set()
    for number, (path, leaf) in enumerate(jax.tree_util.tree_leaves_with_path(agent)):
        owner, prefix, path = _innermost(agent, path)
        words = [word for word in map(_word, path) if word]
        field = words[0] if words else ""
        if field not in ("primitives", "model", "eps", "log_prior") or not _is_numbers(leaf):
            continue
        own = {"eps", "log_prior"} & {field} or set(words[1:])
        own = {"prior"} if field == "log_prior" else own
        known += sorted(own - set(known))
        hit = own & set(free) or ({ALL} & set(free) if field == "primitives" and _by_default(owner, path) else set())
        used |= hit
        if hit and not (field == "log_prior" and len(owner.names) == 1):  # one primitive always has the weight one
            places.append(_place(owner, prefix, number, path, np.asarray(leaf, dtype=float)))
    if missing := [word for word in free if word not in used]:
        raise ValueError(
            f"free has {', '.join(map(repr, missing))}, which is no array of this agent: use {ALL!r}, or names of "
            f"fields that hold arrays ({', '.join(known) or 'there are none'})."
        )
    parameters = tuple(parameter for place in places for parameter in place.parameters)
    return Family(
        "learned", partial(_build, agent, tuple(places)), parameters, tuple(parameter.name for parameter in parameters)
    )


def of_primitives(agent: Composer, free: Sequence[str]) -> tuple[str, ...]:
    """Those of the names in `free` that belong to primitives: what is left to learn where there is no gate."""

    def belongs(word: str) -> bool:
        names = [parameter.name for parameter in family_of_agent(agent, (word,)).parameters]
        return any(name not in ("eps", "prior") and not name.startswith("model.") for name in names)

    return tuple(filter(belongs, (free,) if isinstance(free, str) else free))


def _build(agent: Composer, places: tuple[_Place, ...], theta: Theta) -> Composer:
    leaves, structure = jax.tree_util.tree_flatten(agent)
    for place in places:
        values = [jnp.asarray(theta[parameter.name]) for parameter in place.parameters]
        whole = jnp.stack(values) if len(values) > 1 else values[0]
        leaves[place.leaf] = jnp.reshape(jnp.log(whole) if place.logs else whole, place.shape)
    rebuilt: Composer = jax.tree_util.tree_unflatten(structure, leaves)
    return rebuilt


def rebuild(agent: Composer, family: Family, theta: Theta) -> Composer:
    """The agent with the family's numbers of theta, checked like one that was made by hand."""
    made: Composer = family.build(theta)
    changes: dict[str, Any] = {"primitives": dict(zip(made.names, made.primitives, strict=True)), "model": made.model}
    if "eps" in theta:
        changes["eps"] = made.eps
    if "prior" in theta:
        changes["prior"] = jnp.exp(jnp.asarray(made.log_prior))
    return agent.replace(**changes)


def _innermost(agent: Composer, path: Any) -> tuple[Composer, str, Any]:
    """(the agent of a hierarchy to which an array belongs, the prefix of its names, the path from there)."""
    prefix = ""
    while _word(path[0]) == ALL and isinstance(inner := agent.primitives[path[1].idx], Composer):
        agent, prefix, path = inner, f"{prefix}{agent.names[path[1].idx]}.", path[2:]
    return agent, prefix, path


def _by_default(agent: Composer, path: Any) -> bool:
    """Whether "primitives" means this array: of a Gaussian all but a covariance that couples the axes."""
    primitive = agent.primitives[path[1].idx]
    return not (isinstance(primitive, Gaussian) and _word(path[2]) == "cholesky")


def _place(agent: Composer, prefix: str, number: int, path: Any, leaf: np.ndarray) -> _Place:
    field = _word(path[0])
    if field == "eps":
        return _Place(number, (positive(f"{prefix}eps", leaf),), False, leaf.shape)
    if field == "log_prior":
        return _Place(number, (simplex(f"{prefix}prior", agent.names, np.exp(leaf)),), True, leaf.shape)
    primitive = agent.primitives[path[1].idx] if field == "primitives" else None
    owner = prefix + (agent.names[path[1].idx] if field == "primitives" else "model")
    name = owner + jax.tree_util.keystr(path[2 if field == "primitives" else 1 :])
    if isinstance(primitive, Table):
        rows = np.maximum(np.exp(leaf), LEAST)
        rows /= rows.sum(axis=1, keepdims=True)
        labels = tuple(str(i) for i in range(leaf.shape[1]))
        many = tuple(simplex(f"{owner}[{r}]", labels, row) for r, row in enumerate(rows))
        return _Place(number, many, True, leaf.shape)
    labels = tuple(",".join(map(str, index)) for index in np.ndindex(leaf.shape)) if leaf.ndim else ()
    start = leaf.reshape(-1) if leaf.ndim else leaf
    scaled = positive if isinstance(primitive, Gaussian) and _word(path[2]) == "sd" else real
    return _Place(number, (scaled(name, start, labels=labels),), False, leaf.shape)


def _is_numbers(leaf: Any) -> bool:
    return eqx.is_inexact_array(leaf) or (isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f")


def _word(key: Any) -> str:
    """The name of a field or of a keyword; nothing for a place in a tuple."""
    return str(getattr(key, "name", getattr(key, "key", "")))
