"""`Composer`: an agent that weighs its primitives for every observation, and acts by their mixture."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Key

from .._calls import call
from .._types import Array, ArrayLike, Observation, Time, in_native_order, is_traced, require_float64
from ..actions import AbstractActions, Grid, Sampled
from ..core._checks import as_floats, check_eps, check_number, normalised_prior, shown
from ..core._method import Outcome
from ..core.complexities import COMBINE, is_partial, pool, tilt
from ..core.convex import ConvexProblem
from ..core.equilibrium import Route
from ..core.objective import AnyProblem, Certificate, Combine, Problem, problem
from ..core.regularisers import Entropy, Tsallis, alpha_and_caps, is_plain
from ..models.base import AbstractModel, Terms, action_cost
from ..primitives.base import AbstractPrimitive, Draws, Table
from ..primitives.columns import Drawn, control, draw_columns, drawable, filled_columns, separable
from ..primitives.gaussian import MOVED, Gaussian
from ..primitives.policy import Policy
from .decision import (
    MOVES,
    REMEDY,
    TILTED,
    Decision,
    Memory,
    Selection,
    Weighing,
    failed,
    remember,
    select,
    warn_of_grid,
)
from .gates import (
    AbstractGate,
    AtEquilibrium,
    Gate,
    Options,
    Posterior,
    check_general,
    interval,
    named_gate,
    share,
    standard_error,
    words_of,
)

Fallback = Literal["previous", "prior"]

NEGLIGIBLE = -69.0  # ln of the prior weight of a primitive that is left out of a decision


class _Posed(NamedTuple):
    """What an observation asks, before it is generalised."""

    problem: Problem
    valid: Bool[Array, " n"]  # which primitives are numbers
    cut: Bool[Array, " n"] | None  # which of them the grid cuts
    options: Options  # how to solve it
    drawn: Drawn | None  # the points of `Sampled` actions
    log_pi: Float[Array, "d n"] | None  # of a product


class Composer(AbstractPrimitive):
    """An agent that composes primitives: for every observation it acts by the mixture that fits its model best.

    It is a primitive itself: what it would do is a distribution over actions, which another composer may weigh.

    - `primitives`: a dict of names to primitives, or a list.
    - `eps`, `prior`: numbers, or functions of (observation, k): temperature and habits may follow the situation.
    - `selection`: `sample` draws the action from the mixture, as the paper does; `mean` takes its mean and `mode` its
      most probable action; `dither` lets the primitives take turns, each as often as its weight says, and acts by
      the mean of the one whose turn it is. `posterior` draws from p ~ (Pi w) exp(-beta s), the mixture tilted towards
      actions that the model finds cheap, and `posterior mean` takes its mean. Both can leave the hull of the
      primitives and trust the model: check it first, as `models.diagnose` does.
    - `beta`: the strength of the posterior, 1 unless given; 0 is the mixture.
    - `gate`: `equilibrium` are the optimal weights. `flow` and `circuit` are the paper's mechanism: the softmax flow,
      or the neural circuit, goes on from the last decision for 20 tau (`agent.Flow(duration=0.5)`: other times).
      `one-step` is a single undamped relaxation from the previous weights, as in the paper's released control scripts.
      To compare with: `prior` keeps the weights at the prior, a fixed mixture, and `cheapest` puts all weight on the
      primitive with the lowest expected cost. `posterior` are the weights that are optimal for the posterior: they
      minimise -ln sum_a w_a z_a + eps KL(w || w_hat), z = Pi^T exp(-beta s).
    - `regulariser`: `Tsallis(1.5)` for sparse weights, `Entropy(caps=0.5)` for weights up to a half.
    - `combine`: `mixture` acts by sum_a w_a pi_a; `product` by the product of experts p_w ~ prod_a pi_a^w_a, whose
      weights minimise KL(q || p_w) with q ~ exp(-cost); `local product` minimises KL(p_w || q), locally.
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
    gate: AbstractGate
    regulariser: Entropy | Tsallis | None
    names: tuple[str, ...] = eqx.field(static=True)
    selection: Selection = eqx.field(static=True)
    tol: float = eqx.field(static=True)
    route: Route = eqx.field(static=True)
    fallback: Fallback = eqx.field(static=True)
    by_axes: bool = eqx.field(static=True)
    combine: Combine = eqx.field(static=True)
    beta: Float[Array, ""]

    def __init__(
        self,
        primitives: Mapping[str, AbstractPrimitive] | Sequence[AbstractPrimitive],
        model: AbstractModel,
        actions: AbstractActions,
        eps: Callable[[Observation, Time], ArrayLike] | ArrayLike,
        prior: Callable[[Observation, Time], ArrayLike] | ArrayLike | None = None,
        *,
        selection: Selection = "sample",
        gate: Gate | AbstractGate = "equilibrium",
        tol: float = 1e-10,
        route: Route = "auto",
        fallback: Fallback = "previous",
        regulariser: Entropy | Tsallis | None = None,
        combine: Combine = "mixture",
        beta: ArrayLike | None = None,
    ):
        require_float64()
        self.names, self.primitives = _name_all(primitives)
        self.model = _check_kind("model", model, AbstractModel)
        self.actions = _check_kind("actions", actions, AbstractActions)
        self.eps = _as_temperature(eps)
        self.log_prior = _as_log_prior(prior, self.names)
        self.selection = _check_choice("selection", selection, Selection)
        self.gate = named_gate(gate)
        self.tol = check_number("tol", tol)
        self.route = _check_choice("route", route, Route)
        self.fallback = _check_choice("fallback", fallback, Fallback)
        self.regulariser = _regularise(regulariser, len(self.names))
        self.combine = _check_choice("combine", combine, Combine)
        self.beta = _as_strength(beta, self.selection)
        self.by_axes = self._by_axes(actions)
        _check_together(self.names, self.primitives, actions, selection)
        check_general(self.regulariser, self.combine, self.gate, selection, actions)

    def __str__(self) -> str:
        """The agent as a card: a line for each of its parts."""
        prior = self.log_prior
        weights = [""] * len(self.names) if callable(prior) else [f", prior {w:.3g}" for w in np.exp(prior)]
        parts = zip(self.names, self.primitives, weights, strict=True)
        return "\n".join([
            f"Composer of {len(self.names)} primitives",
            *(f"  {name}: {type(primitive).__name__}{weight}" for name, primitive, weight in parts),
            *(["  prior: follows the observation"] if callable(prior) else []),
            f"  model: {type(self.model).__name__}",
            f"  actions: {type(self.actions).__name__}, {self.actions.size} of shape {self.actions.points.shape[1:]}",
            f"  eps: {'follows the observation' if callable(self.eps) else format(float(self.eps), 'g')}",
            f"  gate: {words_of(self.gate)}, selection: {self.selection}, fallback: {self.fallback}",
        ])  # fmt: skip

    def replace(self, **changes: Any) -> "Composer":
        """The same agent with other arguments: `composer.replace(gate="prior")`.

        A prior belongs to its primitives: with new ones under other names it is uniform again, unless it is given too.
        The strength `beta` belongs to the selections of the posterior, and is forgotten with them.
        """
        prior = _as_prior(self.log_prior)
        if "primitives" in changes and _name_all(changes["primitives"])[0] != self.names:
            prior = None
        arguments: dict[str, Any] = {
            "primitives": dict(zip(self.names, self.primitives, strict=True)), "model": self.model,
            "actions": self.actions, "eps": self.eps, "prior": prior,
            "selection": self.selection, "gate": self.gate, "tol": self.tol, "route": self.route,
            "fallback": self.fallback, "regulariser": self.regulariser, "combine": self.combine,
            "beta": self.beta if changes.get("selection", self.selection) in TILTED else None,
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
        labels = self.actions.labels
        middle = self.actions.at(0) if labels else self.actions.inside(jnp.mean(self.actions.points, axis=0))
        return Memory(weights, jnp.zeros(n), middle, self.gate.start(n))

    def terms(self, observation: Observation, k: Time = 0) -> Terms:
        """The terms of the model's cost of every action, for diagnosis."""
        return self.model.terms(self.actions, observation, k)

    def problem(self, observation: Observation, k: Time = 0) -> AnyProblem:
        """The gating problem of this observation. Outside jit it says what is wrong with it."""
        posed = self._pose(observation, k)
        problem, valid = posed.problem, posed.valid
        if not is_traced(*problem) and not np.all(valid):
            raise ValueError(
                f"{self._named(valid)} not a number in {observation}: a mean, logits or an answer is not finite there."
            )
        return self._generalise(problem if _is_finite(problem) else _checked(problem), valid, posed.log_pi)

    def _generalise(self, problem: Problem, valid: Bool[Array, " n"], log_pi: Array | None) -> AnyProblem:
        """The problem with this agent's regulariser and way to combine; primitives left out are capped at zero."""
        kind = "posterior" if isinstance(self.gate, Posterior) else self.combine
        if self.regulariser is None and kind == "mixture":
            return problem
        pi, cost, eps, log_prior = problem
        cost = self.beta * cost if kind == "posterior" else cost
        if self.regulariser is None and kind == "posterior":
            return ConvexProblem(COMBINE[kind], (pi, cost), eps, log_prior, None, None)
        alpha, caps = alpha_and_caps(self.regulariser, len(self.names))
        columns = pi if log_pi is None else log_pi
        takes_all = ~is_partial(columns) if kind == "product" else True
        room = jnp.where(valid & takes_all, caps, 0.0)
        caps = jnp.where(jnp.sum(room) >= 1.0, room, jnp.where(jnp.any(valid), valid, 1.0))
        return ConvexProblem(COMBINE[kind], (columns, cost), eps, log_prior, jnp.asarray(alpha), caps)

    def _by_axes(self, actions: AbstractActions) -> bool:
        """Whether columns are built from probabilities along the axes; a product takes their logarithms."""
        return self.combine == "mixture" and separable(self.primitives, actions)

    def log_prob(self, actions: AbstractActions, observation: Observation, k: Time) -> Float[jax.Array, " d"]:
        """ln of what it would do, at weights that start from its prior; not a number where it cannot decide."""
        weights = self.weigh(observation, k).weights
        filled = filled_columns(self.primitives, actions, observation, k, self._by_axes(actions))
        # log_pi is there: a product does not take its columns by axes
        prob = filled.pi @ weights if self.combine == "mixture" else pool(jnp.asarray(filled.log_pi), weights)
        cost = action_cost(self.model, actions, observation, k) if self.selection in TILTED else jnp.zeros(len(prob))
        return tilt(jnp.log(prob), cost, self.beta)

    def _pose(self, observation: Observation, k: Time) -> _Posed:
        """The gating problem as a mixture; primitives that are not numbers have next to no prior weight in it."""
        observation = jax.tree_util.tree_map(
            lambda a: jnp.asarray(a) if isinstance(a, np.ndarray) else a, in_native_order(observation)
        )
        actions, drawn, options = self.actions, None, Options(self.tol, self.route)
        try:
            if isinstance(actions, Sampled):
                parts = drawable(self.primitives, actions, observation, k)
                pi, valid, drawn = draw_columns(parts, actions, observation, k)
                actions, cut, log_pi = drawn.actions, None, None
            else:
                pi, valid, cut, log_pi = filled_columns(self.primitives, actions, observation, k, self.by_axes)
        except ValueError:
            self._name_culprit(observation, k)
            raise
        cost = action_cost(self.model, actions, observation, k)
        eps = jnp.asarray(call("eps", self.eps, observation, k) if callable(self.eps) else self.eps, dtype=float)
        log_prior = self.log_prior(observation, k) if callable(self.log_prior) else self.log_prior
        if eps.shape != () or log_prior.shape != (len(self.names),):
            raise ValueError(
                f"for this observation eps has shape {eps.shape} and the prior {log_prior.shape}: one temperature, and "
                f"one entry for each of the {len(self.names)} primitives."
            )
        if drawn is not None:
            # any term that is linear in the weights is a part of the prior: w.L = -eps w.ln(exp(-L/eps))
            options = options._replace(cost=cost, log_prior=log_prior)
            drawn = control(parts, pi, cost, drawn, observation, k)
            if not isinstance(self.gate, Posterior):  # z is a mean over the points, and its objective is not linear
                cost, log_prior = cost + drawn.offset, jax.nn.log_softmax(log_prior - drawn.correction / eps)
        problem = Problem(pi, cost, eps, log_prior)
        trusted = self.by_axes and is_traced(pi, cost) and not callable(self.eps) and not callable(self.log_prior)
        known = is_traced(valid) or bool(np.any(valid))  # else the fallback acts, and there is nothing to check
        if known and _is_finite(problem) and not trusted:  # else the parts were checked when they were made
            problem = _checked(problem)
        problem = problem._replace(log_prior=jnp.where(valid, problem.log_prior, NEGLIGIBLE))
        return _Posed(problem, valid, cut, options, drawn, None if self.combine == "mixture" else log_pi)

    def _name_culprit(self, observation: Observation, k: Time) -> None:
        """Ask each primitive alone, so that an error says which of them it is."""
        for name, primitive in zip(self.names, self.primitives, strict=True):
            try:
                if isinstance(self.actions, Sampled):
                    draw_columns(drawable((primitive,), self.actions, observation, k), self.actions, observation, k)
                else:
                    primitive.log_prob(self.actions, observation, k)
            except ValueError as error:
                raise type(error)(f"primitives[{name!r}]: {error}") from error.__cause__

    def _named(self, valid: Array) -> str:
        bad = [name for name, fine in zip(self.names, np.asarray(valid), strict=True) if not fine]
        return f"primitives[{', '.join(map(repr, bad))}] {'is' if len(bad) == 1 else 'are'}"

    def weigh(self, observation: Observation, k: Time = 0, memory: Memory | None = None) -> Weighing:
        """The weights for this observation, by the gate chosen, with their certificate."""
        problem, valid, cut, options, drawn, log_pi = self._pose(observation, k)
        # the barrier keeps XLA from building the columns again wherever they are used
        problem = jax.lax.optimization_barrier(problem)
        cost = problem.action_cost if options.cost is None else options.cost
        posed = self._generalise(problem, valid, log_pi)
        memory = self.start() if memory is None else in_native_order(memory)
        nothing = jnp.asarray(jnp.inf)
        if not is_traced(*problem):
            if not np.all(valid):
                warnings.warn(f"{self._named(valid)} not a number here, and left out of the decision.", stacklevel=3)
            if cut is not None:
                warn_of_grid(self.names, cut)
            if not (np.any(valid) and _is_finite(problem)):  # solve would raise an error
                sentence = "these weights are not numbers, and a decision takes its fallback."
                warnings.warn(f"{_missing(problem, valid)}: {sentence}", stacklevel=3)
                unknown, bad = jnp.full(len(self.names), jnp.nan), jnp.asarray(int(Outcome.BAD_INPUT), "int8")
                none = Certificate(nothing, nothing)
                return Weighing(posed, unknown, none, bad, valid, memory.carried, drawn, cut=cut, cost=cost)
        weights, certificate, outcome, carried = self.gate.weigh(posed, valid, memory, options)
        nowhere = failed(outcome)
        weights = jnp.where(nowhere, jnp.nan, jnp.where(valid, weights, 0.0))
        certificate = Certificate(*(jnp.where(nowhere, nothing, bound) for bound in certificate))
        sampled = drawn is not None and isinstance(self.gate, AtEquilibrium)
        error = standard_error(problem, drawn, weights) if sampled and drawn is not None else None
        return Weighing(posed, weights, certificate, outcome, valid, carried, drawn, error, cut, cost)

    def decide(
        self, key: Key[Array, ""], observation: Observation, k: Time = 0, memory: Memory | None = None
    ) -> Decision:
        """Weigh the primitives and act. Pass the memory of the previous decision to the next one."""
        memory = self.start() if memory is None else in_native_order(memory)
        weighed = self.weigh(observation, k, memory)
        pi, nowhere = jnp.asarray(weighed.problem.pi), failed(weighed.outcome)
        weights = jnp.where(nowhere, self._instead(weighed, memory), weighed.weights)
        drawn = weighed.drawn
        actions = self.actions if drawn is None else drawn.actions
        if self.combine == "mixture" and self.selection not in TILTED:
            pi = self._or_any(pi, weighed)
            action, debt = select(self.selection, actions, key, pi, weights, memory.debt, drawn)
        else:  # all act as one
            prob = self._or_any(self.policy(weighed._replace(weights=weights), ~nowhere), weighed)
            action, debt = select(self.selection, actions, key, prob[:, None], jnp.ones(1), memory.debt)
        debt = jnp.where(nowhere, memory.debt, debt)
        if self.fallback == "previous":
            action = jnp.where(nowhere, memory.action, action)
        kept = remember(memory, weighed)._replace(debt=debt, action=action)
        rest = weighed.certificate, weighed.outcome, kept, weighed.standard_error, weighed.cut
        return Decision(action, weights, *rest)

    def policy(self, weighed: Weighing, tilted: Bool[Array, ""] | bool = True) -> Float[jax.Array, " d"]:
        """The probability of every action by which it acts: that of the mixture or product, or of its posterior."""
        prob = jnp.asarray(weighed.mixture)
        if self.selection not in TILTED:
            return prob
        cost = jnp.where(tilted, jnp.asarray(weighed.cost), 0.0)  # where it is not a number the fallback acts
        return jnp.exp(tilt(jnp.log(prob), cost, self.beta))

    def _or_any(self, prob: jax.Array, weighed: Weighing) -> jax.Array:
        """The probabilities, or equal ones if no primitive is a number and the fallback is the prior."""
        return jnp.where(jnp.any(weighed.valid), prob, 1.0 / prob.shape[0]) if self.fallback == "prior" else prob

    def interval(self, decision: Decision | Weighing, level: float = 0.95) -> tuple[jax.Array, jax.Array]:
        """(low, high) of the weights on `Sampled` actions: what sampling them leaves open, with this confidence.

        It is statistical, and says nothing about how exactly the weights on the points were found: the certificate
        does. Both ends have the shape of the weights.
        """
        if decision.standard_error is None or not isinstance(self.actions, Sampled):
            raise ValueError(
                "these weights have no standard error: it belongs to Sampled actions and the gate 'equilibrium'. On "
                "other actions decision.certificate.distance says how far from optimal they can be."
            )
        if not 0 < level < 1:
            raise ValueError(f"level = {level}: pass a probability between 0 and 1, such as 0.95.")
        return interval(decision.weights, decision.standard_error, self.actions.uniforms.shape[0], level)

    def compiled(self) -> Callable[..., Decision]:
        """`decide` as one compiled program, for decisions from Python one by one: the same arguments and answers.

        It compiles once for each kind of observation, and knows the agent as it is now.
        """
        decide = jax.jit(lambda key, observation, k, memory: self.decide(key, observation, k, memory))
        first = self.start()

        def call(key: Key[Array, ""], observation: Observation, k: Time = 0, memory: Memory | None = None) -> Decision:
            observation, k = in_native_order((observation, k))
            return decide(key, observation, k, first if memory is None else in_native_order(memory))

        return call

    def _instead(self, weighed: Weighing, memory: Memory) -> Array:
        """The weights of the fallback: the previous ones, or the prior's if it is known for this observation."""
        if self.fallback == "previous":
            return memory.weights
        prior = jnp.exp(weighed.problem.log_prior)
        known = jnp.any(weighed.valid) & jnp.all(jnp.isfinite(prior))
        return share(jnp.where(known, prior, self.start().weights), weighed.valid)


def _checked(unchecked: Problem) -> Problem:
    return problem(**unchecked._asdict())


def _missing(problem: Problem, valid: Array) -> str:
    """What there is no problem without."""
    if not np.any(valid):
        return "no primitive is a number here"
    values = zip(("the model's cost", "eps", "the prior"), problem[1:], strict=True)
    return next(f"{name} is not a number here" for name, value in values if not np.all(np.isfinite(value)))


def _is_finite(problem: Problem) -> bool:
    """Whether cost, temperature and prior are numbers, as far as they are known yet."""
    return is_traced(*problem) or all(np.all(np.isfinite(a)) for a in problem[1:])


def _name_all(primitives: Any) -> tuple[tuple[str, ...], tuple[AbstractPrimitive, ...]]:
    """(names, primitives) of a dict, or of a list without names."""
    if not isinstance(primitives, Mapping | Sequence):
        raise ValueError(f"primitives is a {type(primitives).__name__}: pass a dict of names to primitives, or a list.")
    if not isinstance(primitives, Mapping):
        primitives = {f"primitive {i}": primitive for i, primitive in enumerate(primitives)}
    if not primitives:
        raise ValueError("primitives is empty: an agent needs at least one.")
    for name, primitive in primitives.items():
        _check_kind(f"primitives[{name!r}]", primitive, AbstractPrimitive)
    return tuple(str(name) for name in primitives), tuple(primitives.values())


def _check_kind(name: str, value: Any, kind: type) -> Any:
    """The value, which must be an instance of this class."""
    if isinstance(value, kind):
        return value
    hint = (
        " (wrap a controller in Gaussian(controller, sd), a policy or a function in primitives.Policy)"
        if kind is AbstractPrimitive
        else ""
    )
    raise ValueError(f"{name} is a {type(value).__name__}: pass an instance of {kind.__name__}{hint}.")


def _check_choice(name: str, value: Any, choices: Any) -> Any:
    """The value, which must be one of the literals."""
    if not isinstance(value, str) or value not in choices.__args__:
        raise ValueError(f"{name} = {shown(value)}: use one of {', '.join(map(repr, choices.__args__))}.")
    return value


def _as_temperature(eps: Any) -> Any:
    """A function of (observation, k) as it is, or one positive number."""
    if callable(eps):
        return eps
    eps = as_floats("eps", eps)
    if eps.shape != ():
        raise ValueError(f"eps has shape {eps.shape}: one number (agents that differ in it make a Population).")
    check_eps(eps)
    return jnp.asarray(eps)


def _as_strength(beta: Any, selection: Selection) -> jax.Array:
    """The strength of the posterior, 1 unless given; an error if nobody reads it."""
    if beta is None:
        return jnp.ones(())
    if selection not in TILTED:
        raise ValueError(
            f'beta = {shown(beta)} is the strength of the posterior, but selection = "{selection}" acts without one: '
            'use selection="posterior" or "posterior mean", or leave beta out.'
        )
    beta = as_floats("beta", beta)
    if beta.shape != () or (not is_traced(beta) and not 0.0 <= float(beta) < np.inf):
        raise ValueError(f"beta = {shown(beta)}: pass one finite number of at least 0.")
    return jnp.asarray(beta)


def _as_log_prior(prior: Any, names: tuple[str, ...]) -> Any:
    """The logarithm of a prior, or the function of (observation, k) that gives it."""
    if callable(prior):
        return eqx.Partial(_log_of_habit, prior)
    if prior is None:
        return jnp.full(len(names), -np.log(len(names)))
    prior = as_floats("prior", prior)
    if prior.shape != (len(names),):
        raise ValueError(f"prior has shape {prior.shape}: one entry for each of the {len(names)} primitives.")
    return jnp.asarray(normalised_prior("prior", prior, 1e-6))


def _as_prior(log_prior: Any) -> Any:
    """What `log_prior` was made of."""
    return log_prior.args[0] if isinstance(log_prior, eqx.Partial) else jnp.exp(jnp.asarray(log_prior))


def _log_of_habit(prior: Callable[[Observation, Time], ArrayLike], observation: Observation, k: Time) -> jax.Array:
    """A prior that follows the situation, on the logarithmic scale."""
    return normalised_prior(
        "prior(observation, k)", jnp.asarray(call("prior", prior, observation, k), dtype=float), 1e-6
    )


def _check_together(
    names: tuple[str, ...], primitives: tuple[AbstractPrimitive, ...], actions: AbstractActions, selection: Selection
) -> None:
    """Complain about parts that are good by themselves and do not fit together."""
    for name, primitive in zip(names, primitives, strict=True):
        if isinstance(primitive, Table) and primitive.log_rows.shape[1] != actions.size:
            raise ValueError(
                f"primitives[{name!r}] is a table of {primitive.log_rows.shape[1]} actions, but the action set has "
                f"{actions.size}."
            )
        if isinstance(actions, Sampled) and isinstance(primitive, Policy):
            primitive.check_drawn(actions)
        elif isinstance(actions, Sampled) and not isinstance(primitive, Draws):
            raise ValueError(
                f"primitives[{name!r}] is a {type(primitive).__name__}, from which no actions can be drawn: Sampled "
                "actions need primitives with sample and log_density, such as Gaussian, or Policy; else use Finite or "
                "Grid."
            )
        if isinstance(primitive, Gaussian) and isinstance(actions, Grid) and _is_coarse(primitive, actions):
            warnings.warn(f"the grid is coarse for primitives[{name!r}]: {MOVES} {REMEDY}", stacklevel=3)
    if selection in ("mean", "posterior mean") and actions.labels:
        actions.mean(jnp.ones(actions.size))  # says why not


def _regularise(regulariser: Any, n: int) -> Entropy | Tsallis | None:
    """A regulariser that fits n primitives, as arrays; None for the entropy without caps."""
    alpha, caps = alpha_and_caps(regulariser, n)
    if is_plain(regulariser):
        return None
    if alpha.shape != () or caps.shape != (n,):
        raise ValueError(
            f"regulariser has alpha of shape {alpha.shape} and caps of shape {caps.shape}: one alpha, and a cap for "
            f"each of the {n} primitives (agents that differ in it make a Population)."
        )
    return Tsallis(jnp.asarray(alpha), jnp.asarray(caps))


def _is_coarse(primitive: Gaussian, grid: Grid) -> bool:
    """Whether the grid is too coarse, as far as the spread is known yet."""
    if callable(primitive.sd) or is_traced(primitive.sd, primitive.cholesky, grid.points):
        return False
    with jax.ensure_compile_time_eval():  # an agent that is made inside a trace, of parts that were made outside
        return bool(primitive.coarseness(grid) > MOVED)
