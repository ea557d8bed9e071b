"""A signal from the gate: primitives that drift by what their own synapses see, one situation after another.

With pi_a = softmax(l_a) and the surprise g = ln(Pi w) + s of each action, the envelope theorem gives

    dl_a/dt = -rate w_a pi_a o (g - pi_a^T g).

The synapse from primitive a to action i needs the weight w_a, the surprise g_i and pi_a^T g. In the circuit these are
its input (layer w), what its target signals (b + s), and the sum that layer y receives for primitive a: all are local.
Where the weights have settled in every situation this goes down the gradient of the mean optimal energy, one situation
at a time. Nothing is proved where they have not, nor for a step that is not small.

A synapse that adds up what it sees, and changes once all situations have been met, needs no small step:

    l_a <- l_a - rate sum_s w_a g / sum_s w_a,   0 < rate <= 1.

The mean energy then falls by at least sum_a mean_s(w_a) KL(pi_a || pi_a new)/rate, from every start: the divergence of
two mixtures is at most that of their primitives, so that F is 1-smooth relative to sum_a w_a pi_a . ln pi_a.
"""

from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Float

from ..._types import ArrayLike, require_float64
from ...core._method import MIXTURE_FLOOR
from ...core.circuit import _slow_layers
from ...core.equilibrium import solve
from ...core.objective import Problem, energy, gate
from ...core.stability import TimeScales, time_scales

Signal = Literal["settled", "sampled", "flow", "accumulated"]
IN_CIRCUIT = ("flow", "accumulated")  # the signals that layers can give
FINE = 0.5  # of eps: the time step of the flow in tau, half of what is stable
RTOL, ATOL = 1e-5, 1e-8


class Drift(NamedTuple):
    """Primitives that drifted from several starts."""

    logits: Float[np.ndarray, "starts d n"]  # in the end
    energy: Float[np.ndarray, "starts passes"]  # mean V* over the situations after each pass through them

    @property
    def pi(self) -> Float[np.ndarray, "starts d n"]:
        """The primitives in the end, as columns."""
        return np.asarray(jax.nn.softmax(jnp.asarray(self.logits), axis=1))


def drift(
    cost: ArrayLike,
    eps: float,
    logits: ArrayLike,
    *,
    signal: Signal = "settled",
    rate: float = 0.5,
    passes: int = 200,
    hold: float = 5.0,
    prior: ArrayLike | None = None,
    circuit: bool = False,
    scales: TimeScales | None = None,
    seed: int = 0,
) -> Drift:
    """Let primitives drift through situations with costs (situations, d), from logits (starts, d, n).

    Every pass meets each situation once, in random order.

    - `settled`: the weights are the optimum; one step of size `rate` for each situation.
    - `sampled`: the same, but one action is drawn and only its surprise is seen. Primitives share the blame by their
      responsibility, l_a -= rate r_a (g_u - mean g)(e_u - pi_a), which is the same step on average.
    - `flow`: weights follow the softmax flow for `hold` time constants in each situation, from where the last one left
      them, while the primitives drift at `rate` for each time constant.
    - `accumulated`: one step after each pass, by the mean surprise of each action, weighted by the primitive's weight.
      With a rate of at most one the energy never rises.

    With `circuit` the same in the paper's circuit, all six layers and its time `scales`, for `flow` and `accumulated`.
    Synapses drift by dl_ia/dt = -rate w_a pi_ia (b_i + s_i - sum_j pi_ja (b_j + s_j)) with the layers' own activity w
    and b, which need not have settled; accumulated steps use w and b at the end of every situation.
    """
    require_float64()
    known = IN_CIRCUIT if circuit else get_args(Signal)
    if signal not in known:
        raise ValueError(f"signal = {signal!r}: use {', '.join(map(repr, known))}.")
    if signal == "accumulated" and not 0.0 < rate <= 1.0:
        raise ValueError(f"rate = {rate}: accumulated steps lower the energy at rates above 0 and up to 1.")
    if scales is not None and not circuit:
        raise ValueError("scales are those of the circuit: pass circuit=True too.")
    cost, logits, log_prior = _checked(cost, logits, prior)
    keys = jax.random.split(jax.random.key(seed), len(logits))
    if circuit:
        own = time_scales(eps) if scales is None else scales
        ends = _in_circuit(logits, keys, cost, eps, log_prior, rate, hold, own, passes, signal == "accumulated")
    else:
        steps = max(1, int(np.ceil(hold / (FINE * min(eps, 1.0)))))
        ends = _drift(logits, keys, cost, eps, log_prior, rate, hold / steps, signal, passes, steps)
    return Drift(*map(np.asarray, ends))


@partial(jax.jit, static_argnames=("signal", "passes", "steps"))
def _drift(
    logits: Any, keys: Any, cost: Any, eps: Any, log_prior: Any, rate: Any, dt: Any, signal: str, passes: int,
    steps: int,
) -> Any:  # fmt: skip
    def meet(state: Any, situation: Any) -> Any:
        rows, w, usual, key = state
        s = cost[situation]
        if signal == "flow":
            rows, w = jax.lax.fori_loop(0, steps, lambda _, now: _flow(now, s, eps, log_prior, rate, dt), (rows, w))
            return (rows, w, usual, key), None
        pi = jax.nn.softmax(rows, axis=0)
        w = solve(Problem(pi, s, eps, log_prior)).weights
        p = jnp.maximum(pi @ w, MIXTURE_FLOOR)
        g = jnp.log(p) + s
        if signal == "settled":
            return (rows - rate * _signal(pi, w, g), w, usual, key), None
        key, draw = jax.random.split(key)
        u = jax.random.categorical(draw, jnp.log(p))
        blame = w * pi[u] / p[u] * (g[u] - usual)
        step = blame * (jax.nn.one_hot(u, len(s))[:, None] - pi)
        return (rows - rate * step, w, usual + 0.02 * (g[u] - usual), key), None

    def settle(state: Any, situation: Any) -> Any:
        pi = jax.nn.softmax(state[0], axis=0)
        w = solve(Problem(pi, cost[situation], eps, log_prior)).weights
        return state, (w, jnp.log(jnp.maximum(pi @ w, MIXTURE_FLOOR)) + cost[situation])

    def from_start(rows: Any, key: Any) -> Any:
        if signal == "accumulated":
            return _pass(settle, (rows,), 0, key, passes, cost, eps, log_prior, rate)
        begin = (rows, jnp.exp(log_prior), jnp.asarray(0.0), key)
        return _pass(meet, begin, 0, key, passes, cost, eps, log_prior)

    return jax.vmap(from_start)(logits, keys)


def _pass(
    meet: Any, begin: Any, logits: int, key: Any, passes: int, cost: Any, eps: Any, log_prior: Any, rate: Any = None
) -> tuple[Any, Any]:
    """Meet all situations in random order, `passes` times: part `logits` of the state in the end, and the energies.

    With a rate the logits change once for each pass, by the weights and surprises that `meet` gives.
    """

    def over(state: Any, key: Any) -> Any:
        state, seen = jax.lax.scan(meet, state, jax.random.permutation(key, len(cost)))
        if rate is not None:
            state = list(state)
            state[logits] = state[logits] - rate * _mean_surprise(*seen)
            state = tuple(state)
        return state, _mean_energy(state[logits], cost, eps, log_prior)

    end, path = jax.lax.scan(over, begin, jax.random.split(key, passes))
    return end[logits], path


def _mean_energy(logits: Any, cost: Any, eps: Any, log_prior: Any) -> Any:
    """The mean of V* over situations, for logits (d, n)."""
    pi = jax.nn.softmax(logits, axis=0)

    def of(s: Any) -> Any:
        problem = Problem(pi, s, jnp.asarray(eps), log_prior)
        return energy(problem, solve(problem).weights)

    return jnp.mean(jax.vmap(of)(cost))


def _signal(pi: Any, w: Any, g: Any) -> Any:
    return w * pi * (g[:, None] - g @ pi)


def _mean_surprise(w: Any, g: Any) -> Any:
    """sum_s w_a g_i / sum_s w_a (d, n), less its least entry, which moves no primitive; w (s, n), g (s, d)."""
    mean = g.T @ w / jnp.maximum(jnp.sum(w, axis=0), MIXTURE_FLOOR)
    return mean - jnp.min(mean, axis=0)


def _flow(now: Any, s: Any, eps: Any, log_prior: Any, rate: Any, dt: Any) -> Any:
    rows, w = now
    pi = jax.nn.softmax(rows, axis=0)
    g = jnp.log(jnp.maximum(pi @ w, MIXTURE_FLOOR)) + s
    response = gate(Problem(pi, s, jnp.asarray(eps), log_prior), w)
    return rows - dt * rate * _signal(pi, w, g), w + dt * (response - w)


# ------------------------------------------------------------------------------------------------ the circuit


@partial(jax.jit, static_argnames=("passes", "rests"))
def _in_circuit(
    logits: Any, keys: Any, cost: Any, eps: Any, log_prior: Any, rate: Any, hold: Any, scales: Any, passes: int,
    rests: bool,
) -> Any:  # fmt: skip
    import diffrax  # slow to import, and only this needs it
    import optimistix

    def velocity(t: Any, state: Any, s: Any) -> Any:
        a, b, y, log_m, r, w, rows = state
        pi = jax.nn.softmax(rows, axis=0)
        log_a = jnp.log(jnp.maximum(a, MIXTURE_FLOOR))
        heard = (b + s) @ pi
        dy = (-eps * y - heard + eps * log_prior) / scales.gradient
        fast = ((pi @ w - a) / scales.hidden, (log_a - b) / scales.hidden, dy)
        drifts = jnp.zeros_like(rows) if rests else -rate * w * pi * ((b + s)[:, None] - heard)
        return (*fast, *_slow_layers(scales, y, log_m, r, w), drifts)

    def meet(state: Any, situation: Any) -> Any:
        end = diffrax.diffeqsolve(
            diffrax.ODETerm(velocity),
            diffrax.Kvaerno5(root_finder=optimistix.Newton(rtol=1e-3, atol=1e-5)),
            t0=0.0, t1=hold, dt0=None, y0=state, args=cost[situation],
            stepsize_controller=diffrax.PIDController(rtol=RTOL, atol=ATOL), max_steps=4096, throw=False,
        )  # fmt: skip
        state = jax.tree_util.tree_map(lambda leaf: leaf[0], end.ys)
        return state, (state[5], state[1] + cost[situation])

    def from_start(rows: Any, key: Any) -> Any:
        pi, w = jax.nn.softmax(rows, axis=0), jnp.exp(log_prior)
        a = pi @ w
        y = log_prior - (jnp.log(a) @ pi) / eps
        begin = (a, jnp.log(a), y, logsumexp(y), y - logsumexp(y), w, rows)
        return _pass(meet, begin, -1, key, passes, cost, eps, log_prior, rate if rests else None)

    # one after another: together, every start would take as many steps as the one that needs most
    return jax.lax.map(lambda arguments: from_start(*arguments), (logits, keys))


def _checked(cost: ArrayLike, logits: ArrayLike, prior: ArrayLike | None) -> tuple[Any, Any, Any]:
    cost, logits = np.atleast_2d(np.asarray(cost, dtype=float)), np.asarray(logits, dtype=float)
    logits = logits[None] if logits.ndim == 2 else logits
    if logits.ndim != 3 or logits.shape[1] != cost.shape[1] or not np.isfinite(logits).all():
        raise ValueError(
            f"logits has shape {logits.shape}: pass finite numbers (starts, d, n) for the d = {cost.shape[1]} actions "
            "of cost (situations, d)."
        )
    n = logits.shape[2]
    weights = np.full(n, 1.0 / n) if prior is None else np.asarray(prior, dtype=float)
    if weights.shape != (n,) or np.any(weights <= 0) or abs(weights.sum() - 1.0) > 1e-6:
        raise ValueError(f"prior = {weights.tolist()}: {n} positive numbers that sum to one.")
    return jnp.asarray(cost), jnp.asarray(logits), jnp.log(jnp.asarray(weights))
