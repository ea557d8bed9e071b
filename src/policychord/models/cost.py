"""`Cost`: good behaviour is cheap behaviour, in worlds with a formula, with chance, in a table or in a simulator."""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._calls import PartError, call, check_hashable
from .._types import Action, ArrayLike, Observation, Time, is_traced
from ..actions import AbstractActions
from .base import AbstractModel, Terms


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
    """Any simulator as `predict`, and any price in ordinary Python, over NumPy batches (MuJoCo, a look-up, torch).

    The function is given what the part in its place is given, as arrays with a leading axis, one row for each action
    or state that is tried: `predict` and `action_cost` (observations, actions, k), `state_cost` and `cost_to_go`
    (states, k), with the step of each row in k. As `predict` it answers with the next observations, in the form of
    those it was given; where a price is expected, with a number for each row. In a function of your own that calls it
    say which: `number=True` is a price. It cannot be differentiated.
    """

    function: Callable[..., Any] = eqx.field(static=True)
    number: bool = eqx.field(static=True)

    def __init__(self, function: Callable[..., Any], *, number: bool = False):
        if not callable(function):
            raise ValueError(f"function is a {type(function).__name__}: pass a function of (observations, actions, k).")
        self.function, self.number = function, number

    def __call__(self, observation: Any, *rest: Any) -> Any:
        arguments = jax.tree_util.tree_map(jnp.asarray, (observation, *rest))
        like = jnp.zeros(()) if self.number else jax.tree_util.tree_map(lambda a: a.astype(float), arguments[0])
        shape = jax.tree_util.tree_map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), like)
        ask = partial(_in_rows, self, jax.tree_util.tree_map(jnp.ndim, arguments), shape)
        return jax.pure_callback(ask, shape, *arguments, vmap_method="broadcast_all")

    def answer(self, *rows: Any) -> Any:
        """What the function says of NumPy rows, or which function failed."""
        try:
            return self.function(*rows)
        except Exception as error:  # other people's code may raise anything
            raise self._failed(rows, error) from error

    def _failed(self, rows: Any, error: Exception) -> PartError:
        given = "(observations, actions, k)" if len(rows) == 3 else "(states, k)"
        return PartError(
            f"the function of BlackBox failed on {len(jax.tree_util.tree_leaves(rows)[0])} rows "
            f"({type(error).__name__}: {error}): it is given {given}, each with a leading axis, and answers with "
            f"{'a number' if self.number else 'an observation'} for each row."
        )


def _in_rows(box: BlackBox, ndim: Any, shape: Any, *batch: Any) -> Any:
    """The answers to a batch with any number of leading axes, which the function sees as one."""
    arrays = jax.tree_util.tree_map(np.asarray, batch)
    first, axes = (jax.tree_util.tree_leaves(tree)[0] for tree in (arrays, ndim))
    lead = first.shape[: first.ndim - axes]
    rows = jax.tree_util.tree_map(lambda a, n: a.reshape(-1, *a.shape[a.ndim - n :]), arrays, ndim)
    answer = box.answer(*rows)
    try:
        return jax.tree_util.tree_map(
            lambda a, s: np.asarray(a, dtype=s.dtype).reshape((*lead, *s.shape)), answer, shape
        )
    except (TypeError, ValueError) as error:
        raise box._failed(rows, error) from error


def as_price(cost: Any) -> Any:
    """A `BlackBox` where a price is expected answers with numbers; anything else is as it is."""
    return BlackBox(cost.function, number=True) if isinstance(cost, BlackBox) else cost


class Cost(AbstractModel):
    """q proportional to q~ exp(-c), so s(u) = c_action(x, u) + c_state(x'), x' = predict(x, u), up to a constant.

    - `action_cost`: a number for each action of the set, or a function of (observation, action, k).
    - `predict`: a function of (observation, action, k) that gives the next one; `Random` or `Tabular` for chance (the
      cost is then the expected one), `BlackBox` for a simulator.
    - `state_cost`: a function of (next state, its time k + 1).
    - `cost_to_go`: in its place, what the state will cost from there on: a receding horizon in one term; `Value` makes
      it of a critic.
    - Any of them in NumPy or other Python: `BlackBox(function)`.

    State costs may be square matrices M instead of functions: (x' - r)^T M (x' - r), with r = target(k + 1) (zero
    unless given); a state of several fields is one vector then, in the order of its fields. The terms are `action`, and
    `state` or `cost_to_go`.
    """

    action_cost: Callable[[Observation, Action, Time], ArrayLike] | Float[Array, " d"] | None
    predict: Callable[[Observation, Action, Time], Observation] | AbstractOutcomes | None
    state_cost: Callable[[Observation, Time], ArrayLike] | Float[Array, "dim dim"] | None
    cost_to_go: Callable[[Observation, Time], ArrayLike] | Float[Array, "dim dim"] | None
    target: Callable[[Time], ArrayLike] | Float[Array, " dim"] | None

    def __init__(
        self,
        action_cost: Callable[[Observation, Action, Time], ArrayLike] | ArrayLike | None = None,
        *,
        predict: Callable[[Observation, Action, Time], Observation] | AbstractOutcomes | None = None,
        state_cost: Callable[[Observation, Time], ArrayLike] | ArrayLike | None = None,
        cost_to_go: Callable[[Observation, Time], ArrayLike] | ArrayLike | None = None,
        target: Callable[[Time], ArrayLike] | ArrayLike | None = None,
    ):
        if state_cost is not None and cost_to_go is not None:
            raise ValueError("cost_to_go already counts the next state: pass it or state_cost, not both.")
        pricing = state_cost if cost_to_go is None else cost_to_go
        if pricing is not None and predict is None:
            raise ValueError("a cost of the next state needs predict, a function of (observation, action, k).")
        if pricing is None and predict is not None:
            raise ValueError("predict is given but nothing prices the next state: pass state_cost or cost_to_go.")
        if pricing is None and action_cost is None:
            raise ValueError("nothing has a price: pass action_cost, state_cost or cost_to_go.")
        if target is not None and (pricing is None or callable(pricing)):
            raise ValueError("target is used with a matrix as state_cost or cost_to_go; a function knows its own.")
        self.action_cost = _function_or("action_cost", action_cost, 1)
        self.predict = predict
        self.state_cost = _function_or("state_cost", state_cost, 2)
        self.cost_to_go = _function_or("cost_to_go", cost_to_go, 2)
        self.target = _function_or("target", target, 1)

    def terms(self, actions: AbstractActions, observation: Observation, k: Time) -> Terms:
        here = jax.tree_util.tree_leaves((self, actions, observation, k))
        if isinstance(self.cost_to_go, eqx.Module) and not is_traced(*here):
            check_hashable("a part of the model", self)
            return _compiled_terms(self, actions, *jax.tree_util.tree_map(jnp.asarray, (observation, k)))
        return self._terms(actions, observation, k)

    def _terms(self, actions: AbstractActions, observation: Observation, k: Time) -> Terms:
        terms = {}
        price, predict = self.action_cost, self.predict
        if callable(price):
            terms["action"] = jax.vmap(lambda action: call("action_cost", price, observation, action, k))(
                actions.points
            )
        elif price is not None:
            if price.shape != (actions.size,):
                raise ValueError(f"action_cost has shape {price.shape}: one number for each of {actions.size} actions.")
            terms["action"] = price
        name, pricing = ("state", self.state_cost) if self.cost_to_go is None else ("cost_to_go", self.cost_to_go)
        if predict is not None and pricing is not None:
            if isinstance(predict, AbstractOutcomes):
                possible, prob = jax.vmap(lambda action: predict.outcomes(observation, action, k))(actions.points)
                prices = jax.vmap(lambda states: self._price(name, pricing, states, k))(possible)
                # what cannot happen costs nothing, whatever its price
                terms[name] = jnp.sum(jnp.where(prob > 0, prob * prices, 0.0), axis=-1)
            else:
                following = jax.vmap(lambda action: call("predict", predict, observation, action, k))(actions.points)
                terms[name] = self._price(name, pricing, following, k)
        for name, term in terms.items():
            if jnp.shape(term) != (actions.size,):
                raise ValueError(
                    f"the {name} cost of one action has shape {jnp.shape(term)[1:]}: it must be one number."
                )
        return {name: jnp.asarray(term, dtype=float) for name, term in terms.items()}

    def _price(self, name: str, pricing: Any, states: Observation, k: Time) -> Array:
        """What each of these next states costs."""
        if callable(pricing):
            part = "state_cost" if name == "state" else name
            return jax.vmap(lambda x: call(part, pricing, x, k + 1))(states)
        states = jax.vmap(lambda x: ravel_pytree(x)[0])(states)
        if states.shape[1:] != (len(pricing),):
            raise ValueError(
                f"predict gives a state of {states.shape[1]} numbers, but {name} is priced by a matrix of shape "
                f"{pricing.shape}: pass one row for each number of the state, or a function."
            )
        target = call("target", self.target, k + 1) if callable(self.target) else self.target
        offset = states if target is None else states - target
        return jnp.sum((offset @ pricing) * offset, axis=-1)


@eqx.filter_jit
def _compiled_terms(cost: Cost, actions: AbstractActions, observation: Observation, k: Time) -> Terms:
    """The same for decisions outside compiled programs: rollouts would be compiled again for each of them."""
    return cost._terms(actions, observation, k)


def _function_or(name: str, value: Any, ndim: int) -> Any:
    """A function as it is, numbers as an array with this many axes."""
    if value is None or callable(value):
        return as_price(value)
    array = jnp.asarray(value, dtype=float)
    if array.ndim != ndim or (ndim == 2 and array.shape[0] != array.shape[1]):
        wanted = "a square matrix" if ndim == 2 else "a vector"
        raise ValueError(f"{name} has shape {array.shape}: pass {wanted} or a function.")
    return array
