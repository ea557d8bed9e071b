"""`flow`: the softmax gradient flow, whose equilibrium is the optimum and whose energy only falls."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._types import Array, ArrayLike, Scalars, Weights, is_traced, namespace
from ._checks import as_floats, joint_batch, shown
from ._paths import check_times, first_weights, follow, integrated
from .objective import (
    AnyProblem,
    Certificate,
    Problem,
    along_path,
    certificate_at,
    checked_any,
    energy,
    gate,
    primitive_cost,
    spread_over,
    verb,
)

if TYPE_CHECKING:
    from .convex import ConvexProblem
else:  # loaded when it is first needed
    ConvexProblem = Any

# Theorems are checked on these paths, and loose tolerances violate the energy bound: the integrator is strict.
_TOLERANCES = 1e-10, 1e-13  # relative and absolute
_MAX_STEPS = 1 << 20
_MAX_STEPS_GENERAL = 1 << 16  # at a kink every step is tiny: it should be said before long


class Path(NamedTuple):
    """Weights along the flow, with what the theory says about them."""

    times: Float[Array, " times"]
    weights: Float[Array, "*batch times n"]
    energy: Float[Array, "*batch times"]  # V(w(t))
    dissipation: Float[Array, "*batch times"]  # dV/dt = -(eps/tau) ( KL(w||S) + KL(S||w) )
    certificate: Certificate


def flow(
    problem: AnyProblem,
    t1: float = 20.0,
    start: ArrayLike | None = None,
    tau: float = 1.0,
    save: int = 101,
) -> Path:
    """Integrate tau dw/dt = -w + S(w) from `start` (uniform unless given) to t1, keeping `save` moments.

    `start` may have batch axes of its own: many starts for one problem give many paths.
    """
    check_times(t1, tau, save)
    posed = checked_any(problem)
    first = first_weights(start, posed.log_prior)
    batch = joint_batch("start", first, posed.log_prior)
    if isinstance(posed, Problem):
        return integrated("flow", lambda: _flow(posed, first, t1, tau, save, batch), posed, first)
    _require_convexity(posed)
    return integrated("flow", lambda: _general_flow(posed, first, t1, tau, save), posed, first)


def dissipation(problem: AnyProblem, weights: ArrayLike, tau: ArrayLike = 1.0) -> Scalars:
    """dV/dt along the flow: -(eps/tau) ( KL(w || S(w)) + KL(S(w) || w) ); with the entropy -inf where a weight is zero.

    `tau` is a number, or an array that broadcasts with the batch axes.
    """
    return _dissipation(problem, weights) / _check_tau(tau)


@verb("dissipation")
def _dissipation(problem: Problem, weights: Weights) -> Scalars:
    """The same for tau = 1."""
    y = problem.log_prior - primitive_cost(problem, weights) / problem.eps[..., None]
    xp = namespace(y)
    y = y - xp.max(y, axis=-1, keepdims=True)
    log_response = y - xp.log(xp.sum(xp.exp(y), axis=-1, keepdims=True))  # a number where S itself underflows
    # S is positive everywhere, so that KL(S || w) is infinite where a weight is zero
    alive = weights > 0
    log_ratio = xp.log(xp.where(alive, weights, 1.0)) - log_response
    apart = xp.where(alive, (weights - xp.exp(log_response)) * log_ratio, np.inf)
    return -problem.eps * xp.sum(apart, axis=-1)


def _check_tau(tau: Any) -> Any:
    """Positive, finite time constants: a number, or arrays that broadcast with the problems."""
    values = as_floats("tau", tau)
    if not is_traced(values) and not np.all(np.isfinite(values) & (np.asarray(values) > 0)):
        raise ValueError(f"tau = {shown(tau)}: pass a positive, finite number.")
    return values


def _require_convexity(problem: ConvexProblem) -> None:
    """Refuse a problem whose flow need not go where the theory says."""
    if not problem.complexity.convex:
        raise ValueError(
            'the flow has a theory for convex complexities, and that of combine="local product" is not convex: use '
            '`solve` for a local answer, or combine="product".'
        )


@partial(jax.jit, static_argnames="save")
def _general_flow(problems: Any, first: Weights, t1: Any, tau: Any, save: int) -> Path:
    from ._convex_verbs import certificate_of, dissipation_of, energy_of, gate_of, over_batch

    times = jnp.linspace(0.0, t1, save)

    def path_of(problem: Any, begin: jax.Array) -> Any:
        weights = _follow(lambda w: gate_of(problem, w), begin, times, tau, _MAX_STEPS_GENERAL)

        def look(w: jax.Array) -> Any:
            return energy_of(problem, w), dissipation_of(problem, w) / tau, certificate_of(problem, w)

        return weights, *jax.vmap(look)(weights)

    return Path(times, *over_batch(path_of, problems, first))


@partial(jax.jit, static_argnames=("save", "batch"))
def _flow(problem: Problem, first: Weights, t1: Any, tau: Any, save: int, batch: tuple[int, ...]) -> Path:
    problem = spread_over(jax.tree.map(jnp.asarray, problem), batch)
    first = jnp.broadcast_to(first, (*batch, first.shape[-1]))
    times = jnp.linspace(0.0, t1, save)
    signature = "(d,n),(d),(),(n),(n),(m),()->(m,n)"
    weights = jnp.vectorize(_integrate, signature=signature)(*problem, first, times, tau)
    paths = along_path(problem)
    return Path(
        times, weights, energy(paths, weights), dissipation(paths, weights, tau), certificate_at(paths, weights)
    )


def _integrate(*operands: jax.Array) -> jax.Array:
    *fields, first, times, tau = operands
    problem = Problem(*fields)
    return _follow(lambda w: gate(problem, w), first, times, tau, _MAX_STEPS)


def _follow(respond: Callable[[Any], Any], first: jax.Array, times: jax.Array, tau: Any, max_steps: int) -> jax.Array:
    import diffrax  # slow to import

    path = follow(lambda t, w, _: (respond(w) - w) / tau, diffrax.Tsit5(), first, times, _TOLERANCES, max_steps)
    # the flow stays on the simplex; an integrator steps below zero by as much as its tolerance
    inside = jnp.maximum(path, 0.0)
    return inside / jnp.sum(inside, axis=-1, keepdims=True)
