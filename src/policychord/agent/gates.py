"""Gates: where the weights come from. Each is a part, and `GATES` is the table of those that have a name."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.special import logsumexp
from jaxtyping import Bool, Float, Int

from .._names import DURATION, Gate, Selection
from .._types import Array, ArrayLike, is_traced
from ..actions import AbstractActions, Sampled
from ..core._checks import check_number, shown
from ..core._method import LOG_FLOOR, MIXTURE_FLOOR, UNIT_ROUNDOFF, Outcome
from ..core.circuit import TimeScales, _reduced_circuit, check_scales, time_scales
from ..core.complexities import COMBINE, Mixture
from ..core.convex import certificate_of, gate_of, nearest
from ..core.equilibrium import Route, solve
from ..core.flow import one_step
from ..core.objective import AnyProblem, Certificate, Problem, certificate_at, gate
from ..primitives.columns import Drawn
from .decision import TILTED, Memory


class Options(NamedTuple):
    """What a composer tells its gate about how the weights are to be found."""

    tol: float
    route: Route
    # with `Sampled` actions, what the model and the prior say: the problem's own hold more
    cost: Float[Array, " d"] | None = None
    log_prior: Float[Array, " n"] | None = None


class Gated(NamedTuple):
    """What a gate answers."""

    weights: Float[Array, " n"]  # with the entropy never exactly zero
    certificate: Certificate
    outcome: Int[Array, ""]  # an `Outcome`
    carried: Any = ()  # what it needs at the next decision, besides the weights


class AbstractGate(eqx.Module):
    """From a gating problem and what is remembered to weights, with their certificate."""

    @abstractmethod
    def start(self, n: int) -> Any:
        """What a gate for n primitives carries before its first decision: a tree of arrays, () for nothing."""

    @abstractmethod
    def weigh(self, problem: AnyProblem, valid: Bool[Array, " n"], memory: Memory, options: Options) -> Gated:
        """The weights. Primitives that are not `valid` have next to no prior weight in the problem."""


class AtEquilibrium(AbstractGate):
    """The optimal weights: the minimum of V(w) = F(w) + eps KL(w || w_hat)."""

    def start(self, n: int) -> tuple[()]:
        return ()

    def weigh(self, problem: AnyProblem, valid: Bool[Array, " n"], memory: Memory, options: Options) -> Gated:
        weights, _, certificate, _, outcome = solve(problem, tol=options.tol, start=memory.weights, route=options.route)
        return Gated(weights, certificate, outcome)


class Posterior(AbstractGate):
    """The weights that are optimal for the selections "posterior" and "posterior mean".

    They minimise -ln sum_a w_a z_a + eps KL(w || w_hat), z = Pi^T exp(-beta s).
    """

    def start(self, n: int) -> tuple[()]:
        return ()

    def weigh(self, problem: AnyProblem, valid: Bool[Array, " n"], memory: Memory, options: Options) -> Gated:
        # from the prior, where the gradient is at most one over a prior weight
        weights, _, certificate, _, outcome = solve(problem, tol=options.tol, throw=False)
        return Gated(weights, certificate, outcome)


class Flow(AbstractGate):
    """The flow tau dw/dt = -w + S(w), a softmax with the entropy, followed for `duration` from the previous weights.

    `duration` and `tau` have the same unit, only their ratio counts; 20 tau unless given, which is as good as for ever.
    A short duration lets the weights lag behind the situation. Derivatives are of forward mode only.
    """

    duration: Float[Array, ""]
    tau: Float[Array, ""]

    def __init__(self, duration: ArrayLike | None = None, tau: ArrayLike = 1.0):
        self.tau = _positive("tau", tau)
        self.duration = DURATION * self.tau if duration is None else _positive("duration", duration)

    def start(self, n: int) -> tuple[()]:
        return ()

    def weigh(self, problem: AnyProblem, valid: Bool[Array, " n"], memory: Memory, options: Options) -> Gated:
        problem = jax.tree.map(jnp.asarray, problem)
        respond: Any = gate if isinstance(problem, Problem) else gate_of
        begin = _within(problem, memory.weights, valid)
        weights = _integrate(lambda w: respond(problem, w) - w, begin, self.duration / self.tau)
        return _judge(problem, _within(problem, weights, valid))


class _Signals(NamedTuple):
    """What a circuit carries from one decision to the next: its layers that do not depend on the action set."""

    y: Float[Array, " n"]
    log_m: Float[Array, ""]
    r: Float[Array, " n"]
    w: Float[Array, " n"]


class Circuit(AbstractGate):
    """The six layers of the paper's circuit, integrated for `duration`, 20 tau unless given.

    With another regulariser, or a product, the softmax unit gives way to a threshold (`core.circuit.Layers`).

    Layers y, ln m, r and w go on where the last decision left them; a and b begin at Pi w and ln(Pi w), because Pi is
    new at every decision. What it receives of the cost is s = -ln q with q summing to one, so a constant added to all
    actions changes nothing. Without `scales` the time constants are the ladder `time_scales(eps, tau)`, which is stable
    at any temperature; with other ones the weights may oscillate for ever (`circuit_stability` knows). Derivatives are
    of forward mode only.
    """

    duration: Float[Array, ""]
    tau: Float[Array, ""]
    scales: TimeScales | None

    def __init__(self, duration: ArrayLike | None = None, tau: ArrayLike = 1.0, scales: TimeScales | None = None):
        if scales is not None:
            check_scales(scales)
            if not is_traced(tau, scales.weights) and np.any(np.asarray(tau) != 1.0) and tau != scales.weights:
                raise ValueError(f"tau = {tau} and scales.weights = {scales.weights} differ: pass one of them.")
            tau, scales = scales.weights, TimeScales(*(jnp.asarray(t, dtype=float) for t in scales))
        self.tau, self.scales = _positive("tau", tau), scales
        self.duration = DURATION * self.tau if duration is None else _positive("duration", duration)

    def start(self, n: int) -> _Signals:
        unknown = jnp.full(n, jnp.nan)
        return _Signals(unknown, jnp.asarray(jnp.nan), unknown, unknown)

    def weigh(self, problem: AnyProblem, valid: Bool[Array, " n"], memory: Memory, options: Options) -> Gated:
        problem = _normalised(jax.tree.map(jnp.asarray, problem))
        scales = time_scales(problem.eps, self.tau) if self.scales is None else self.scales
        # the layers as they are when the weights have been these for ever
        _, (_, _, *layers) = _reduced_circuit(problem, scales, _within(problem, memory.weights, valid))
        rest = _Signals(*layers)
        # before the first decision, and for a primitive that is left out, there is nothing to go on from
        known = valid & ~jnp.isnan(memory.carried.log_m)
        begin = _Signals(
            jnp.where(known, memory.carried.y, rest.y), jnp.where(jnp.any(known), memory.carried.log_m, rest.log_m),
            jnp.where(known, memory.carried.r, rest.r), jnp.where(known, memory.carried.w, rest.w),
        )  # fmt: skip
        if not isinstance(problem, Problem):  # with a threshold r has no lag
            begin = begin._replace(r=begin.y - begin.log_m)
        # the exact reduction to 5n + 1 states holds while Pi is fixed, and Pi changes from decision to decision
        velocity, (v, beta, *_) = _reduced_circuit(problem, scales, begin.w)
        path_end = _integrate(lambda layers: velocity(None, layers, None), (v, beta, *begin), self.duration)
        end = _Signals(*path_end[2:])
        return _judge(problem, _within(problem, end.w / jnp.sum(end.w), valid), end)


class OneStep(AbstractGate):
    """A single undamped relaxation from the previous weights, as in the paper's released control scripts."""

    def start(self, n: int) -> tuple[()]:
        return ()

    def weigh(self, problem: AnyProblem, valid: Bool[Array, " n"], memory: Memory, options: Options) -> Gated:
        assert isinstance(problem, Problem)  # a composer refuses other ones
        return _judge(problem, one_step(problem, share(memory.weights, valid)))


class Prior(AbstractGate):
    """The prior's weights, whatever the cost: a fixed mixture to compare with."""

    def start(self, n: int) -> tuple[()]:
        return ()

    def weigh(self, problem: AnyProblem, valid: Bool[Array, " n"], memory: Memory, options: Options) -> Gated:
        log_prior = problem.log_prior if options.log_prior is None else options.log_prior
        return _judge(problem, share(jnp.exp(log_prior), valid))


class Cheapest(AbstractGate):
    """All weight on the primitive with the lowest expected cost, sum_u pi_a(u) s(u): a switch to compare with."""

    def start(self, n: int) -> tuple[()]:
        return ()

    def weigh(self, problem: AnyProblem, valid: Bool[Array, " n"], memory: Memory, options: Options) -> Gated:
        assert isinstance(problem, Problem)  # a composer refuses other ones
        cost = problem.action_cost if options.cost is None else options.cost
        expected = jnp.where(valid, cost @ problem.pi, jnp.inf)
        return _judge(problem, jnp.zeros(expected.shape).at[jnp.argmin(expected)].set(1.0))


GATES: dict[str, type[AbstractGate]] = {
    "equilibrium": AtEquilibrium, "flow": Flow, "circuit": Circuit, "one-step": OneStep, "prior": Prior,
    "cheapest": Cheapest, "posterior": Posterior,
}  # fmt: skip


def named_gate(gate: "Gate | AbstractGate") -> AbstractGate:
    """A gate by its name, or as it is."""
    if isinstance(gate, AbstractGate):
        return gate
    if not isinstance(gate, str) or gate not in GATES:
        raise ValueError(
            f"gate = {shown(gate)}: use one of {', '.join(map(repr, GATES))}, or a gate of policychord.agent."
        )
    return GATES[gate]()


def words_of(gate: AbstractGate) -> str:
    """A gate as users write it: its name, and how long it runs if that is not the usual time."""
    name = next((name for name, kind in GATES.items() if type(gate) is kind), type(gate).__name__)
    if not isinstance(gate, Flow | Circuit) or is_traced(gate.duration, gate.tau):
        return name
    ratio = np.asarray(gate.duration) / np.asarray(gate.tau)
    return name if np.all(ratio == DURATION) else f"{name} for {', '.join(f'{r:g}' for r in ratio.ravel())} tau"


def gate_in_time(name: Gate, duration: float, tau: float) -> AbstractGate:
    """A gate by its name, with these two for the gates that have them: what settings say."""
    kind = GATES[name]
    return kind(duration=duration, tau=tau) if kind in (Flow, Circuit) else kind()


def bias(prior: Sequence[float]) -> np.ndarray | None:
    """Settings' shares as a prior that sums to one; None where they are even."""
    return None if len(set(prior)) == 1 else np.asarray(prior) / np.sum(prior)


def check_general(
    regulariser: Any, combine: str, gate: AbstractGate, selection: Selection, actions: AbstractActions
) -> None:
    """Other regularisers and products have an optimum and a prior; the other gates and taking turns are a mixture's."""
    if combine == "posterior" or (isinstance(gate, Posterior) and combine != "mixture"):
        raise ValueError(
            f'combine = "{combine}", gate = "{words_of(gate)}": the gate "posterior" weighs a mixture whose posterior '
            'acts. Use gate="posterior" with combine="mixture".'
        )
    if isinstance(gate, Posterior) and selection not in TILTED:
        raise ValueError(
            f'gate = "posterior" weighs primitives for their posterior, but selection = "{selection}" acts by their '
            'mixture: use selection="posterior" or "posterior mean".'
        )
    if regulariser is None and combine == "mixture":
        return
    obstacles = [] if combine == "mixture" else [f'combine="{combine}"']
    obstacle = " and ".join(obstacles + ([] if regulariser is None else ["a regulariser"]))
    if not isinstance(gate, AtEquilibrium | Posterior | Prior | Flow | Circuit):
        raise ValueError(
            f'gate = "{words_of(gate)}" is made for a mixture with the entropy, but this agent has {obstacle}: leave '
            'that out, or use another gate, such as "equilibrium".'
        )
    if isinstance(gate, Flow | Circuit) and not COMBINE[combine].convex:
        raise ValueError(
            f'gate = "{words_of(gate)}" leads to the optimum of a convex complexity, and that of combine="{combine}" '
            'is not convex: use gate="equilibrium", whose answer is local, or combine="product".'
        )
    if isinstance(actions, Sampled):
        raise ValueError(
            f"Sampled actions serve a mixture with the entropy, but this agent has {obstacle}: leave that out, or use "
            "Finite or Grid."
        )
    if combine != "mixture" and selection == "dither":
        raise ValueError('selection = "dither" lets primitives take turns, but in a product all act as one.')


def _positive(name: str, value: ArrayLike) -> jax.Array:
    return jnp.asarray(value if is_traced(value) else check_number(name, value), dtype=float)


def _normalised(problem: AnyProblem) -> AnyProblem:
    """A mixture with s = -ln q, q summing to one, as in the paper: layers y and m see a constant in s, w* does not."""
    if isinstance(problem, Problem):
        return problem._replace(action_cost=problem.action_cost + logsumexp(-problem.action_cost))
    if isinstance(problem.complexity, Mixture):
        pi, cost = problem.parameters
        return problem._replace(parameters=(pi, cost + logsumexp(-cost)))
    return problem


def _within(problem: AnyProblem, weights: Array, valid: Array) -> Array:
    """The weights with nothing for primitives that are not valid, and below the caps."""
    return share(weights, valid) if isinstance(problem, Problem) else nearest(problem, weights)


def _judge(problem: AnyProblem, weights: Float[Array, " n"], carried: Any = ()) -> Gated:
    """Weights that another rule than the optimum gave, with the certificate that says how far from it they are."""
    if isinstance(problem, Problem):
        weights = jnp.maximum(weights, np.exp(LOG_FLOOR))  # zero is for those left out
        certificate = certificate_at(problem, weights)
    else:
        certificate = certificate_of(problem, jnp.asarray(weights))
    parts = [jnp.asarray(part) for part in jax.tree_util.tree_leaves(problem)]
    # a product may have -inf among its logarithms, and then an infinite energy at some weights
    known = jnp.isfinite if isinstance(problem, Problem) else lambda part: ~jnp.isnan(part)
    good = jnp.all(jnp.asarray([jnp.all(known(part)) for part in parts]))
    lost = good & jnp.any(jnp.isnan(weights))  # the problem is numbers, and yet no weights came of it
    why = jnp.where(lost, int(Outcome.NOT_INTEGRATED), int(Outcome.BAD_INPUT))
    outcome = jnp.where(good & ~lost, int(Outcome.NOT_OPTIMISED), why).astype("int8")
    return Gated(weights, certificate, outcome, carried)


def standard_error(problem: Problem, drawn: Drawn, weights: Float[Array, " n"]) -> Float[Array, " n"]:
    """The standard error of optimal weights that were found on sampled actions.

    Each scramble of the points gives its own gradient h at the weights, by what the control variates leave, and by what
    the sums of its columns still do. Cov(w) = G Cov(h) G^T, with G the inverse of K + eps diag(1/w) on the simplex,
    K = Pi^T diag(1/Pi w) Pi; intervals take the t distribution with scrambles - 1 degrees of freedom.
    """
    pi, _, eps, _ = problem
    scrambles, n = drawn.actions.uniforms.shape[0], pi.shape[1]
    mixture = jnp.maximum(pi @ weights, MIXTURE_FLOOR)
    kernel = pi.T @ (pi / mixture[:, None])
    # ln of the mixture's density against ln pi_a, which is known on average
    value = (jnp.log(mixture) + drawn.log_q)[:, None] - drawn.log_pi + drawn.residual
    value = value - jnp.sum(pi * value, axis=0)
    h = scrambles * jnp.sum((pi * value).reshape(scrambles, -1, n), axis=1)
    sums = scrambles * jnp.sum(pi.reshape(scrambles, -1, n), axis=1) - 1.0
    h = h + sums @ (drawn.blame - kernel * weights).T
    root = jnp.sqrt(weights)
    system = root[:, None] * kernel * root + eps * jnp.eye(n)
    moves = jnp.linalg.solve(system, jnp.concatenate([root[:, None] * (h - jnp.mean(h, axis=0)).T, root[:, None]], 1))
    change, along = moves[:, :-1], moves[:, -1]
    change = change - along[:, None] * (root @ change) / (root @ along)
    # changes of weights sum to zero: that of the largest, which is all rounding where the rest is tiny, follows from it
    largest = jnp.arange(n)[:, None] == jnp.argmax(root)
    change = jnp.where(largest, -(root @ jnp.where(largest, 0.0, change)) / jnp.max(root), change)
    # of ln w, whose squares are numbers however small a weight is; zero for primitives that are left out
    relative = change / jnp.where(root > 0, root, jnp.inf)[:, None]
    return weights * jnp.sqrt(jnp.sum(relative**2, axis=1) / (scrambles * (scrambles - 1)))


def interval(weights: Array, error: Array, scrambles: int, level: float) -> tuple[jax.Array, jax.Array]:
    """(low, high) of weights with these standard errors: l -+ t se / (w (1 - w)), with l = ln w/(1 - w) the log-odds.

    A small weight is w = exp(-h/eps) up to a factor, so what is normal is the error of its logarithm, not its own:
    w -+ t se would leave [0, 1] and miss more often. It never is narrower than the rounding of float64.
    """
    from scipy.special import stdtrit  # slow to import, and only this needs it

    weights, error = jnp.asarray(weights), jnp.asarray(error)
    n = weights.shape[-1]
    rest = weights @ (1.0 - jnp.eye(n))  # 1 - w, with its digits where w is nearly one
    both = weights * rest
    half = stdtrit(scrambles - 1, (1 + level) / 2) * error / jnp.where(both > 0, both, jnp.inf)
    low, high = (weights / jnp.where(weights > 0, weights + rest * jnp.exp(side), 1.0) for side in (half, -half))
    rounding = (8 + n) * UNIT_ROUNDOFF
    return low * (1 - rounding), jnp.minimum(high * (1 + rounding), 1.0)


def share(weights: Array, valid: Array) -> Array:
    """The weights with those of primitives that are not valid given to the others."""
    rest = jnp.where(valid, weights, 0.0)
    return jnp.where(jnp.all(valid) | ~jnp.any(valid), weights, rest / jnp.sum(rest))


# Agents need to know where flow and circuit end, thousands of times: a Rosenbrock method takes a Jacobian and no
# iterations, and is stable however stiff.
RTOL, ATOL = 1e-6, 1e-8  # of each step; paths then end within 1e-6 of those of `flow` and `circuit`
MAX_STEPS = 20_000
FIRST_STEP = 1e-4  # share of the duration
SAFETY, SHRINK, GROW = 0.9, 0.2, 5.0
# RODAS of Hairer and Wanner (Solving Ordinary Differential Equations II, IV.7): order 4, L-stable, six stages.
GAMMA = 0.25
STAGES = (
    (),
    (1.544,),
    (0.9466785280815826, 0.2557011698983284),
    (3.314825187068521, 2.896124015972201, 0.9986419139977817),
    (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.687886036105895),
    (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.687886036105895, 1.0),
)
COUPLING = (
    (),
    (-5.6688,),
    (-2.430093356833875, -0.2063599157091915),
    (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
    (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.7089089320616),
    (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054),
)


def _integrate(velocity: Callable[[Any], Any], start: Any, time: Float[Array, ""]) -> Any:
    """Where dx/dt = velocity(x) leads from `start` in this time; NaN if it takes more than `MAX_STEPS` steps."""
    first, unravel = ravel_pytree(start)
    time = jnp.asarray(time, first.dtype)

    def flat(x: jax.Array) -> jax.Array:
        return ravel_pytree(velocity(unravel(x)))[0]

    def not_there(at: tuple[Any, ...]) -> Any:
        t, _, _, steps = at
        return (t < time) & (steps < MAX_STEPS)

    def advance(at: tuple[Any, ...]) -> tuple[Any, ...]:
        t, x, step, steps = at
        step = jnp.minimum(step, time - t)
        new, error = _rosenbrock(flat, x, step)
        size = jnp.max(jnp.abs(error) / (ATOL + RTOL * jnp.maximum(jnp.abs(x), jnp.abs(new))))
        size = jnp.where(jnp.isfinite(size), size, jnp.inf)
        good = size <= 1.0
        factor = jnp.clip(SAFETY * jnp.maximum(size, 1e-12) ** -0.25, SHRINK, GROW)
        t = jnp.where(good, jnp.where(step >= time - t, time, t + step), t)
        return t, jnp.where(good, new, x), step * factor, steps + 1

    t, x, _, _ = jax.lax.while_loop(not_there, advance, (jnp.zeros_like(time), first, FIRST_STEP * time, 0))
    return unravel(jnp.where(t < time, jnp.nan, x))


def _rosenbrock(velocity: Callable[[jax.Array], jax.Array], x: jax.Array, step: jax.Array) -> tuple[Any, Any]:
    """One step and its error: (I/(h gamma) - J) u_i = f(x + sum_j a_ij u_j) + sum_j c_ij u_j / h."""
    rate, push = jax.linearize(velocity, x)
    basis = jnp.eye(x.shape[0], dtype=x.dtype)
    jacobian = jax.vmap(push, out_axes=1)(basis)
    solver = jnp.linalg.inv(basis / (step * GAMMA) - jacobian)
    at: Any = x
    stages: list[Any] = []
    for i, (a, c) in enumerate(zip(STAGES, COUPLING, strict=True)):
        if i:
            at = x + sum(weight * u for weight, u in zip(a, stages, strict=True))
            rate = velocity(at)
        coupled = sum((weight / step * u for weight, u in zip(c, stages, strict=True)), jnp.zeros_like(x))
        stages.append(solver @ (rate + coupled))
    return at + stages[-1], stages[-1]
