"""`Composer`: from a state to a gating problem, to weights with their certificate, to an action."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Key

from ._types import Action, Array, ArrayLike, State, Time, is_traced, require_float64
from .actions import AbstractActions, Finite
from .core._checks import as_floats, check_eps, check_number, normalised_prior
from .core.equilibrium import Route, solve
from .core.objective import Certificate, Problem, certificate_at, problem
from .core.one_step import one_step
from .models.base import AbstractModel, Parts, action_cost
from .primitives.base import AbstractPrimitive
from .primitives.columns import columns, separable
from .primitives.table import Table

Selection = Literal["sample", "mean", "mode", "dither"]
Gate = Literal["equilibrium", "one-step", "prior"]


class Memory(NamedTuple):
    """What the next decision needs from this one."""

    weights: Float[Array, " n"]  # where the solver starts, and what a one-step gate relaxes from
    debt: Float[Array, " n"]  # what each primitive has been promised by its weights and not yet been given


class Weighing(NamedTuple):
    """The gating problem of one state and its answer."""

    problem: Problem
    weights: Float[Array, " n"]
    certificate: Certificate
    converged: Bool[Array, ""]


class Decision(NamedTuple):
    """An action, the weights behind it, and the proof that these are optimal."""

    action: Action
    weights: Float[Array, " n"]
    certificate: Certificate
    converged: Bool[Array, ""]
    memory: Memory


@runtime_checkable
class Decides(Protocol):
    """What a closed loop needs of an agent that has begun."""

    def decide(self, key: Any, observation: Any, k: Time, memory: Any, /) -> Decision:
        """An action for what it sees at step k, and the memory for the next decision."""


@runtime_checkable
class Agent(Decides, Protocol):
    """What can act in an environment: a Composer, a Population, or anything else with these three."""

    @property
    def names(self) -> tuple[str, ...]:
        """What each of its weights is the weight of."""

    def start(self) -> Any:
        """The memory of an agent that has not decided yet."""


class Composer(eqx.Module):
    """An agent that composes primitives: at every state it acts by the mixture that fits its model best.

    - `primitives`: a dict of names to primitives, or a list.
    - `eps`, `prior`: numbers, or functions of (state, k), so that temperature and habits may follow the situation.
    - `selection`: `sample` draws the action from the mixture, as the paper does; `mean` takes its mean and `mode` its
      most probable action; `dither` lets the primitives take turns, each as often as its weight says, and acts by
      the mean of the one whose turn it is.
    - `gate`: `equilibrium` are the optimal weights; `one-step` is a single undamped relaxation from the previous
      weights, as in the paper's released control scripts; `prior` keeps the weights at the prior, a fixed mixture to
      compare with.
    - `tol`, `route`: as in `solve`. Inside a compiled loop "auto" calls the compiled solver, which pays for batches;
      `route="jax"` is faster for one agent in one episode, and gives forward derivatives.
    """

    primitives: tuple[AbstractPrimitive, ...]
    model: AbstractModel
    actions: AbstractActions
    eps: Callable[[State, Time], ArrayLike] | Float[Array, "..."]
    log_prior: Callable[[State, Time], ArrayLike] | Float[Array, "..."]
    names: tuple[str, ...] = eqx.field(static=True)
    selection: Selection = eqx.field(static=True)
    gate: Gate = eqx.field(static=True)
    tol: float = eqx.field(static=True)
    route: Route = eqx.field(static=True)
    by_axes: bool = eqx.field(static=True)

    def __init__(
        self,
        primitives: Mapping[str, AbstractPrimitive] | Sequence[AbstractPrimitive],
        model: AbstractModel,
        actions: AbstractActions,
        eps: Callable[[State, Time], ArrayLike] | ArrayLike,
        prior: Callable[[State, Time], ArrayLike] | ArrayLike | None = None,
        *,
        selection: Selection = "sample",
        gate: Gate = "equilibrium",
        tol: float = 1e-10,
        route: Route = "auto",
    ):
        require_float64()
        self.names, self.primitives = _named(primitives)
        self.model = _is("model", model, AbstractModel)
        self.actions = _is("actions", actions, AbstractActions)
        self.eps = eps if callable(eps) else _temperature(eps)
        self.log_prior = _habit(prior) if callable(prior) else _log_prior(prior, self.names)
        self.selection = _one_of("selection", selection, Selection)
        self.gate = _one_of("gate", gate, Gate)
        self.tol = check_number("tol", tol)
        self.route = _one_of("route", route, Route)
        self.by_axes = separable(self.primitives, actions)
        for name, primitive in zip(self.names, self.primitives, strict=True):
            if isinstance(primitive, Table) and primitive.log_rows.shape[1] != actions.size:
                raise ValueError(
                    f"primitives[{name!r}] is a table of {primitive.log_rows.shape[1]} actions, but the action set has "
                    f"{actions.size}."
                )
        if selection == "mean" and isinstance(actions, Finite) and actions.labels:
            actions.mean(jnp.ones(actions.size))  # says why not

    def replace(self, **changes: Any) -> "Composer":
        """The same agent with other arguments: `composer.replace(gate="prior")`.

        A prior belongs to its primitives: with new ones under other names it is uniform again, unless it is given too.
        """
        log_prior = self.log_prior
        prior = log_prior.args[0] if isinstance(log_prior, eqx.Partial) else jnp.exp(jnp.asarray(log_prior))
        if "primitives" in changes and _named(changes["primitives"])[0] != self.names:
            prior = None
        arguments: dict[str, Any] = {
            "primitives": dict(zip(self.names, self.primitives, strict=True)), "model": self.model,
            "actions": self.actions, "eps": self.eps, "prior": prior,
            "selection": self.selection, "gate": self.gate, "tol": self.tol, "route": self.route,
        }  # fmt: skip
        if unknown := set(changes) - set(arguments):
            raise ValueError(f"a composer has no {', '.join(sorted(unknown))}: it has {', '.join(arguments)}.")
        return Composer(**(arguments | changes))

    def with_primitives(self, **more: AbstractPrimitive) -> "Composer":
        """The same agent with these primitives too: `composer.with_primitives(home=Gaussian(...))`.

        One of the same name takes the other's place. The prior is uniform again if there are new names.
        """
        return self.replace(primitives={**dict(zip(self.names, self.primitives, strict=True)), **more})

    def start(self) -> Memory:
        """The memory of an agent that has not decided yet: no debts, and weights at the prior if that is constant."""
        n = len(self.primitives)
        weights = jnp.full(n, 1.0 / n) if callable(self.log_prior) else jnp.exp(self.log_prior)
        return Memory(weights, jnp.zeros(n))

    def parts(self, state: State, k: Time = 0) -> Parts:
        """The terms of the model's cost of every action at this state, for diagnosis."""
        return self.model.parts(self.actions, state, k)

    def problem(self, state: State, k: Time = 0) -> Problem:
        """The gating problem at this state."""
        state = jax.tree_util.tree_map(lambda a: jnp.asarray(a) if isinstance(a, np.ndarray) else a, state)
        pi = columns(self.primitives, self.actions, state, k, self.by_axes)
        cost = action_cost(self.model, self.actions, state, k)
        eps = jnp.asarray(self.eps(state, k) if callable(self.eps) else self.eps, dtype=float)
        log_prior = self.log_prior(state, k) if callable(self.log_prior) else self.log_prior
        if eps.shape != () or log_prior.shape != (len(self.names),):
            raise ValueError(
                f"at this state eps has shape {eps.shape} and the prior {log_prior.shape}: one temperature, and one "
                f"entry for each of the {len(self.names)} primitives."
            )
        if self.by_axes and is_traced(pi, cost) and not callable(self.eps) and not callable(self.log_prior):
            return Problem(pi, cost, eps, log_prior)  # the parts were checked when they were made, shapes and sums hold
        if not is_traced(pi):
            self._name_the_undefined(pi, state)
        return problem(pi=pi, action_cost=cost, eps=eps, log_prior=log_prior)

    def _name_the_undefined(self, pi: Array, state: State) -> None:
        for name, column in zip(self.names, np.asarray(pi).T, strict=True):
            if np.isnan(column).any():
                raise ValueError(
                    f"primitives[{name!r}] is NaN at {int(np.isnan(column).sum())} of {len(column)} actions in state "
                    f"{state}: its mean, logits or answer is not a finite number there."
                )

    def weigh(self, state: State, k: Time = 0, memory: Memory | None = None) -> Weighing:
        """The weights at this state, by the gate chosen, with their certificate."""
        # the barrier keeps XLA from building the columns anew wherever they are used
        given = jax.lax.optimization_barrier(self.problem(state, k))
        memory = self.start() if memory is None else memory
        if self.gate == "equilibrium":
            found = solve(given, tol=self.tol, start=memory.weights, route=self.route)
            return Weighing(given, found.weights, found.certificate, found.converged)
        weights = jnp.exp(given.log_prior) if self.gate == "prior" else one_step(given, memory.weights)
        certificate = certificate_at(given, weights)
        return Weighing(given, weights, certificate, jnp.isfinite(certificate.gap))

    def decide(self, key: Key[Array, ""], state: State, k: Time = 0, memory: Memory | None = None) -> Decision:
        """Weigh the primitives at this state and act. Pass the memory of the previous decision to the next one."""
        memory = self.start() if memory is None else memory
        weighed = self.weigh(state, k, memory)
        pi, weights = jnp.asarray(weighed.problem.pi), jnp.asarray(weighed.weights)
        debt = memory.debt
        if self.selection == "mean":
            action = self.actions.mean(pi @ weights)
        elif self.selection == "mode":
            action = self.actions.at(jnp.argmax(pi @ weights))
        elif self.selection == "sample":
            action = self.actions.at(_draw(key, pi @ weights))
        else:
            debt = jnp.asarray(debt + weights)
            turn = jnp.argmax(debt)
            debt = debt.at[turn].add(-1.0)
            action = self._act_by(key, pi[:, turn])
        return Decision(action, weights, weighed.certificate, weighed.converged, Memory(weights, debt))

    def _act_by(self, key: Array, prob: jax.Array) -> jax.Array:
        """The mean of one primitive; labels have none, so one of them is drawn."""
        if isinstance(self.actions, Finite) and self.actions.labels:
            return self.actions.at(_draw(key, prob))
        return self.actions.mean(prob)


def _draw(key: Array, prob: jax.Array) -> jax.Array:
    """An index drawn by inverting the distribution function: one uniform number, the same for a paired comparison.

    First the block of actions that the number falls into, then the action: two short running sums cost a quarter of
    a long one. An action without probability is never drawn, whatever rounding does to the sums.
    """
    block = math.isqrt(prob.shape[0] - 1) + 1
    blocks = jnp.pad(prob, (0, -prob.shape[0] % block)).reshape(-1, block)
    share = jnp.sum(blocks, axis=1)
    level = jax.random.uniform(key, dtype=prob.dtype) * jnp.sum(share)
    row, below = _first_above(share, level)
    return row * block + _first_above(blocks[row], level - below)[0]


def _first_above(prob: jax.Array, level: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The first index, among those with a probability, at which the running sum exceeds the level; the sum before."""
    up_to = jnp.cumsum(prob)
    reached = jnp.where(prob > 0, up_to, 0.0)
    index = jnp.argmax(reached > jnp.minimum(level, jnp.nextafter(jnp.max(reached), 0.0)))
    return index, jnp.where(index > 0, up_to[index - 1], 0.0)


def _named(primitives: Any) -> tuple[tuple[str, ...], tuple[AbstractPrimitive, ...]]:
    if not isinstance(primitives, Mapping | Sequence):
        raise ValueError(f"primitives is a {type(primitives).__name__}: pass a dict of names to primitives, or a list.")
    if not isinstance(primitives, Mapping):
        primitives = {f"primitive {i}": primitive for i, primitive in enumerate(primitives)}
    if not primitives:
        raise ValueError("primitives is empty: an agent needs at least one.")
    for name, primitive in primitives.items():
        _is(f"primitives[{name!r}]", primitive, AbstractPrimitive)
    return tuple(str(name) for name in primitives), tuple(primitives.values())


def _is(name: str, value: Any, kind: type) -> Any:
    if isinstance(value, kind):
        return value
    hint = " (wrap a policy or a function in primitives.Policy)" if kind is AbstractPrimitive else ""
    raise ValueError(f"{name} is a {type(value).__name__}: pass an instance of {kind.__name__}{hint}.")


def _one_of(name: str, value: Any, kind: Any) -> Any:
    if value not in kind.__args__:
        raise ValueError(f"{name} = {value!r}: use one of {', '.join(map(repr, kind.__args__))}.")
    return value


def _temperature(eps: ArrayLike) -> jax.Array:
    eps = as_floats("eps", eps)
    if eps.shape != ():
        raise ValueError(f"eps has shape {eps.shape}: one number (agents that differ in it make a Population).")
    check_eps(eps)
    return jnp.asarray(eps)


def _log_prior(prior: ArrayLike | None, names: tuple[str, ...]) -> jax.Array:
    if prior is None:
        return jnp.full(len(names), -np.log(len(names)))
    prior = as_floats("prior", prior)
    if prior.shape != (len(names),):
        raise ValueError(f"prior has shape {prior.shape}: one entry for each of the {len(names)} primitives.")
    return jnp.asarray(normalised_prior("prior", prior, 1e-6))


def _habit(prior: Callable[[State, Time], ArrayLike]) -> Callable[[State, Time], ArrayLike]:
    """A prior that follows the situation, on the logarithmic scale."""
    return eqx.Partial(_log_of_habit, prior)


def _log_of_habit(prior: Callable[[State, Time], ArrayLike], state: State, k: Time) -> Any:
    return normalised_prior("prior(state, k)", jnp.asarray(prior(state, k), dtype=float), 1e-6)
