"""The paper's dynamics for a given time, inside compiled loops: `follow_flow` and `follow_circuit`.

`flow` and `circuit` give whole paths with strict integrators. An agent needs where they end, thousands of times, so
both are integrated by one Rosenbrock method, which takes a Jacobian and no iterations, and is stable however stiff.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from .._types import Array
from ..core.circuit import TimeScales, _reduced_circuit
from ..core.objective import Problem, gate

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


class Signals(NamedTuple):
    """What a circuit carries from one decision to the next: its layers that do not depend on the action set."""

    y: Float[Array, " n"]
    log_m: Float[Array, ""]
    r: Float[Array, " n"]
    w: Float[Array, " n"]


def follow_flow(problem: Problem, weights: Float[Array, " n"], time: Float[Array, ""]) -> Float[Array, " n"]:
    """The weights after `time`, in units of tau, along tau dw/dt = -w + S(w)."""
    return _integrate(lambda w: gate(problem, w) - w, weights, time)


def follow_circuit(problem: Problem, scales: TimeScales, begin: Signals, time: Float[Array, ""]) -> Signals:
    """The circuit after `time`, in the unit of its time scales. Layers a and b begin at Pi w and ln(Pi w).

    The exact reduction to 5n + 1 states holds while Pi is fixed, and Pi changes from decision to decision.
    """
    velocity, (v, beta, *_) = _reduced_circuit(problem, scales, begin.w)
    end = _integrate(lambda layers: velocity(None, layers, None), (v, beta, *begin), time)
    return Signals(*end[2:])


def at_rest(problem: Problem, scales: TimeScales, weights: Float[Array, " n"]) -> Signals:
    """The layers as they are when the weights have been these for ever."""
    _, (_, _, *layers) = _reduced_circuit(problem, scales, weights)
    return Signals(*layers)


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
