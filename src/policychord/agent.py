"""`Composer`: from an observation to a gating problem, to weights with their certificate, to an action."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int, Key

from ._types import Action, Array, ArrayLike, Observation, Time, is_traced, namespace, require_float64
from .actions import AbstractActions, Finite, Grid
from .core._checks import as_floats, check_eps, check_number, normalised_prior
from .core._method import LOG_FLOOR, Outcome
from .core.equilibrium import Route, solve
from .core.objective import Certificate, Problem, certificate_at, problem
from .core.one_step import one_step
from .models.base import AbstractModel, Terms, action_cost
from .primitives.base import AbstractPrimitive
from .primitives.columns import filled_columns, separable
from .primitives.gaussian import Gaussian
from .primitives.table import Table

Selection = Literal["sample", "mean", "mode", "dither"]
Gate = Literal["equilibrium", "one-step", "prior"]
Fallback = Literal["previous", "prior"]

FAILED = int(Outcome.BAD_INPUT)
NEGLIGIBLE = -69.0  # ln of the prior weight of a primitive that is left out of a decision
MOVED, LOST = 0.25, 0.2  # a grid says so if it moves a primitive's mean by so many sd, or loses so much of its mass
MOVES = f"it moves its mean by more than {MOVED} sd, or loses more than {LOST:.0%} of its mass."
REMEDY = "Use a finer grid, a wider one, or Finite actions sampled from the primitives."


class Memory(NamedTuple):
    """What the next decision needs from this one."""

    weights: Float[Array, " n"]  # the last good ones: where the solver starts, and what a one-step gate relaxes from
    debt: Float[Array, " n"]  # what each primitive has been promised by its weights and not yet been given
    action: Action  # the last one


class Weighing(NamedTuple):
    """The gating problem of one observation and its answer."""

    problem: Problem
    weights: Float[Array, " n"]  # zero for primitives that are left out; NaN if nothing could be weighed
    certificate: Certificate
    outcome: Int[Array, ""]  # an `Outcome`
    well: Bool[Array, " n"]  # False for primitives that are left out, because they are not numbers here

    @property
    def good(self) -> Bool[Array, ""]:
        """Whether the weights are numbers, and of all primitives: then the next decision may start from them."""
        return jnp.all(self.well) & (self.outcome != FAILED)


class Decision(NamedTuple):
    """An action, the weights behind it, and what is proved about them."""

    action: Action
    weights: Float[Array, " n"]
    certificate: Certificate
    outcome: Int[Array, ""]  # an `Outcome`
    memory: Memory

    @property
    def optimal(self) -> Bool[Array, "..."]:
        """Whether the weights are proved to be optimal, to the agent's tolerance."""
        return namespace(self.outcome).asarray(self.outcome == Outcome.CONVERGED)

    @property
    def certified(self) -> Bool[Array, "..."]:
        """Whether it is known how far from optimal the weights can be, whatever that is."""
        return namespace(self.certificate.gap).isfinite(self.certificate.gap)


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
    """An agent that composes primitives: for every observation it acts by the mixture that fits its model best.

    - `primitives`: a dict of names to primitives, or a list.
    - `eps`, `prior`: numbers, or functions of (observation, k): temperature and habits may follow the situation.
    - `selection`: `sample` draws the action from the mixture, as the paper does; `mean` takes its mean and `mode` its
      most probable action; `dither` lets the primitives take turns, each as often as its weight says, and acts by
      the mean of the one whose turn it is.
    - `gate`: `equilibrium` are the optimal weights; `one-step` is a single undamped relaxation from the previous
      weights, as in the paper's released control scripts; `prior` keeps the weights at the prior, a fixed mixture to
      compare with.
    - `fallback`: what to do where nothing can be decided, because all primitives or the cost are not numbers.
      `previous` takes the last action again (before the first one: the middle of the action set, or the first label),
      `prior` acts by the prior's mixture of the primitives that are numbers. A primitive that is not a number while
      others are is left out of the decision.
    - `tol`, `route`: as in `solve`. Inside a compiled loop "auto" calls the compiled solver, which pays for batches;
      `route="jax"` is faster for one agent in one episode, and gives forward derivatives.
    """

    primitives: tuple[AbstractPrimitive, ...]
    model: AbstractModel
    actions: AbstractActions
    eps: Callable[[Observation, Time], ArrayLike] | Float[Array, "..."]
    log_prior: Callable[[Observation, Time], ArrayLike] | Float[Array, "..."]
    names: tuple[str, ...] = eqx.field(static=True)
    selection: Selection = eqx.field(static=True)
    gate: Gate = eqx.field(static=True)
    tol: float = eqx.field(static=True)
    route: Route = eqx.field(static=True)
    fallback: Fallback = eqx.field(static=True)
    by_axes: bool = eqx.field(static=True)

    def __init__(
        self,
        primitives: Mapping[str, AbstractPrimitive] | Sequence[AbstractPrimitive],
        model: AbstractModel,
        actions: AbstractActions,
        eps: Callable[[Observation, Time], ArrayLike] | ArrayLike,
        prior: Callable[[Observation, Time], ArrayLike] | ArrayLike | None = None,
        *,
        selection: Selection = "sample",
        gate: Gate = "equilibrium",
        tol: float = 1e-10,
        route: Route = "auto",
        fallback: Fallback = "previous",
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
        self.fallback = _one_of("fallback", fallback, Fallback)
        self.by_axes = separable(self.primitives, actions)
        for name, primitive in zip(self.names, self.primitives, strict=True):
            if isinstance(primitive, Table) and primitive.log_rows.shape[1] != actions.size:
                raise ValueError(
                    f"primitives[{name!r}] is a table of {primitive.log_rows.shape[1]} actions, but the action set has "
                    f"{actions.size}."
                )
            if _is_coarse(primitive, actions):
                warnings.warn(f"the grid is coarse for primitives[{name!r}]: {MOVES} {REMEDY}", stacklevel=2)
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
            "fallback": self.fallback,
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
        labels = isinstance(self.actions, Finite) and self.actions.labels
        middle = self.actions.at(0) if labels else self.actions.inside(jnp.mean(self.actions.points, axis=0))
        return Memory(weights, jnp.zeros(n), middle)

    def terms(self, observation: Observation, k: Time = 0) -> Terms:
        """The terms of the model's cost of every action, for diagnosis."""
        return self.model.terms(self.actions, observation, k)

    def problem(self, observation: Observation, k: Time = 0) -> Problem:
        """The gating problem of this observation. Outside jit it says what is wrong with it."""
        given, well = self._pose(observation, k)
        if not is_traced(*given) and not np.all(well):
            raise ValueError(
                f"{self._named(well)} not a number in {observation}: a mean, logits or an answer is not finite there."
            )
        return given if _is_finite(given) else _checked(given)

    def _pose(self, observation: Observation, k: Time) -> tuple[Problem, Bool[Array, " n"]]:
        """The gating problem, and which primitives are numbers; the others have next to no prior weight in it."""
        observation = jax.tree_util.tree_map(lambda a: jnp.asarray(a) if isinstance(a, np.ndarray) else a, observation)
        pi, well = filled_columns(self.primitives, self.actions, observation, k, self.by_axes)
        cost = action_cost(self.model, self.actions, observation, k)
        eps = jnp.asarray(self.eps(observation, k) if callable(self.eps) else self.eps, dtype=float)
        log_prior = self.log_prior(observation, k) if callable(self.log_prior) else self.log_prior
        if eps.shape != () or log_prior.shape != (len(self.names),):
            raise ValueError(
                f"for this observation eps has shape {eps.shape} and the prior {log_prior.shape}: one temperature, and "
                f"one entry for each of the {len(self.names)} primitives."
            )
        given = Problem(pi, cost, eps, log_prior)
        trusted = self.by_axes and is_traced(pi, cost) and not callable(self.eps) and not callable(self.log_prior)
        if _is_finite(given) and not trusted:  # else the parts were checked when they were made, shapes and sums hold
            given = _checked(given)
        return given._replace(log_prior=jnp.where(well, given.log_prior, NEGLIGIBLE)), well

    def _named(self, well: Array) -> str:
        bad = [name for name, fine in zip(self.names, np.asarray(well), strict=True) if not fine]
        return f"primitives[{', '.join(map(repr, bad))}] {'is' if len(bad) == 1 else 'are'}"

    def weigh(self, observation: Observation, k: Time = 0, memory: Memory | None = None) -> Weighing:
        """The weights for this observation, by the gate chosen, with their certificate."""
        given, well = self._pose(observation, k)
        # the barrier keeps XLA from building the columns anew wherever they are used
        given = jax.lax.optimization_barrier(given)
        memory = self.start() if memory is None else memory
        nothing = jnp.asarray(jnp.inf)
        if not is_traced(*given):
            self._say(observation, k, well)
            if not (np.any(well) and _is_finite(given)):  # solve would raise an error
                unknown = jnp.full(len(self.names), jnp.nan)
                return Weighing(given, unknown, Certificate(nothing, nothing), jnp.asarray(FAILED, "int8"), well)
        if self.gate == "equilibrium":
            weights, _, certificate, _, outcome = solve(given, tol=self.tol, start=memory.weights, route=self.route)
        else:
            relaxed = (
                _share(jnp.exp(given.log_prior), well)
                if self.gate == "prior"
                else one_step(given, _share(memory.weights, well))
            )
            weights = jnp.maximum(relaxed, np.exp(LOG_FLOOR))  # zero is for those left out
            certificate = certificate_at(given, weights)
            outcome = jnp.where(jnp.isfinite(certificate.gap), int(Outcome.NOT_OPTIMISED), FAILED).astype("int8")
        failed = outcome == FAILED
        weights = jnp.where(failed, jnp.nan, jnp.where(well, weights, 0.0))
        certificate = Certificate(*(jnp.where(failed, nothing, bound) for bound in certificate))
        return Weighing(given, weights, certificate, outcome, well)

    def _say(self, observation: Observation, k: Time, well: Array) -> None:
        """Warnings of a decision outside jit: Python shows each of them once."""
        if not np.all(well):
            warnings.warn(f"{self._named(well)} not a number here, and left out of the decision.", stacklevel=4)
        if not isinstance(self.actions, Grid):
            return
        for name, primitive, fine in zip(self.names, self.primitives, np.asarray(well), strict=True):
            if isinstance(primitive, Gaussian) and fine:
                moved, mass = primitive.on_grid(self.actions, observation, k)
                if moved > MOVED or abs(mass - 1) > LOST:
                    warnings.warn(
                        f"the grid cuts primitives[{name!r}] off, or is coarse: {MOVES} {REMEDY}", stacklevel=4
                    )

    def decide(
        self, key: Key[Array, ""], observation: Observation, k: Time = 0, memory: Memory | None = None
    ) -> Decision:
        """Weigh the primitives and act. Pass the memory of the previous decision to the next one."""
        memory = self.start() if memory is None else memory
        weighed = self.weigh(observation, k, memory)
        pi, well, failed = jnp.asarray(weighed.problem.pi), weighed.well, weighed.outcome == FAILED
        weights = jnp.where(failed, self._instead(weighed, memory), weighed.weights)
        if self.fallback == "prior":
            pi = jnp.where(jnp.any(well), pi, 1.0 / self.actions.size)
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
            debt = jnp.where(failed, memory.debt, debt.at[turn].add(-1.0))
            action = self._act_by(key, pi[:, turn])
        if self.fallback == "previous":
            action = jnp.where(failed, memory.action, action)
        kept = Memory(jnp.where(weighed.good, weights, memory.weights), debt, action)
        return Decision(action, weights, weighed.certificate, weighed.outcome, kept)

    def _instead(self, weighed: Weighing, memory: Memory) -> Array:
        """The weights of the fallback: the previous ones, or the prior's if it is known for this observation."""
        if self.fallback == "previous":
            return memory.weights
        prior = jnp.exp(weighed.problem.log_prior)
        known = jnp.any(weighed.well) & jnp.all(jnp.isfinite(prior))
        return _share(jnp.where(known, prior, self.start().weights), weighed.well)

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
    # rounding may take the level just below zero, or above the sum
    level = jnp.clip(level, 0.0, jnp.nextafter(jnp.max(reached), 0.0))
    index = jnp.argmax(reached > level)
    return index, jnp.where(index > 0, up_to[index - 1], 0.0)


def _is_coarse(primitive: AbstractPrimitive, actions: AbstractActions) -> bool:
    if not (isinstance(primitive, Gaussian) and isinstance(actions, Grid)):
        return False
    return not is_traced(primitive.sd, primitive.cholesky, actions.points) and primitive.coarseness(actions) > MOVED


def _checked(given: Problem) -> Problem:
    pi, cost, eps, log_prior = given
    return problem(pi=pi, action_cost=cost, eps=eps, log_prior=log_prior)


def _is_finite(given: Problem) -> bool:
    """Whether cost, temperature and prior are numbers, as far as they are known yet."""
    return is_traced(*given) or all(np.all(np.isfinite(a)) for a in given[1:])


def _share(weights: Array, well: Array) -> Array:
    """The weights with those of primitives that are not well given to the others."""
    rest = jnp.where(well, weights, 0.0)
    return jnp.where(jnp.all(well) | ~jnp.any(well), weights, rest / jnp.sum(rest))


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


def _habit(prior: Callable[[Observation, Time], ArrayLike]) -> Callable[[Observation, Time], ArrayLike]:
    """A prior that follows the situation, on the logarithmic scale."""
    return eqx.Partial(_log_of_habit, prior)


def _log_of_habit(prior: Callable[[Observation, Time], ArrayLike], observation: Observation, k: Time) -> Any:
    return normalised_prior("prior(observation, k)", jnp.asarray(prior(observation, k), dtype=float), 1e-6)
