"""`flow`: the softmax gradient flow, whose equilibrium is the optimum and whose energy only falls."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._types import Array, ArrayLike, Scalars, Weights, namespace
from ._checks import check_simplex, joint_batch
from ._paths import check_times, integrated
from .objective import AnyProblem, Certificate, Problem, along_path, certificate_at, energy, gate, general, spread_over

# Theorems are checked on these paths, and loose tolerances violate the energy bound: the integrator is strict.
RTOL, ATOL = 1e-10, 1e-13
MAX_STEPS = 1 << 20
MAX_STEPS_GENERAL = 1 << 16  # at a kink every step is tiny: it should be said before long


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
    n = (problem if isinstance(problem, Problem) else _checked(problem)).log_prior.shape[-1]
    first = np.full(n, 1.0 / n) if start is None else check_simplex("start", start, problem.log_prior)
    batch = joint_batch("start", first, problem.log_prior)
    if not isinstance(problem, Problem):
        return integrated("flow", lambda: _general_flow(problem, first, t1, tau, save), problem, first)
    return integrated("flow", lambda: _flow(problem, first, t1, tau, save, batch), problem, first)


def dissipation(problem: AnyProblem, weights: Weights, tau: Scalars | float = 1.0) -> Scalars:
    """dV/dt along the flow: -(eps/tau) ( KL(w || S(w)) + KL(S(w) || w) )."""
    if not isinstance(problem, Problem):
        return general(problem).dissipation(problem, weights, tau)
    xp = namespace(*problem, weights)
    response = gate(problem, weights)
    tiny = np.finfo(np.float64).tiny
    log_ratio = xp.log(xp.maximum(weights, tiny)) - xp.log(xp.maximum(response, tiny))
    return -problem.eps / tau * xp.sum((weights - response) * log_ratio, axis=-1)


def _checked(problem: Any) -> Any:
    """The problem, if it is one and its flow goes where the theory says."""
    general(problem)
    if not problem.complexity.convex:
        raise ValueError("the flow of a complexity that is not convex has no theory: use solve for a local answer.")
    return problem


@partial(jax.jit, static_argnames="save")
def _general_flow(problem: Any, first: Weights, t1: Any, tau: Any, save: int) -> Path:
    from . import convex

    times = jnp.linspace(0.0, t1, save)

    def one_path(one: Any, begin: jax.Array) -> Any:
        weights = _follow(lambda w: convex.gate_of(one, w), begin, times, tau, MAX_STEPS_GENERAL)

        def look(w: jax.Array) -> Any:
            return convex.energy_of(one, w), convex.dissipation_of(one, w, tau), convex.certificate_of(one, w)

        return weights, *jax.vmap(look)(weights)

    return Path(times, *convex.over_batch(one_path, problem, first))


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


def _integrate(*given: jax.Array) -> jax.Array:
    *problem, first, times, tau = given
    one = Problem(*problem)
    return _follow(lambda w: gate(one, w), first, times, tau, MAX_STEPS)


def _follow(respond: Callable[[Any], Any], first: jax.Array, times: jax.Array, tau: Any, max_steps: int) -> jax.Array:
    import diffrax  # slow to import, and only the two integrators need it

    return diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, w, _: (respond(w) - w) / tau),
        diffrax.Tsit5(),
        t0=times[0],
        t1=times[-1],
        dt0=None,
        y0=first,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=RTOL, atol=ATOL),
        max_steps=max_steps,
        throw=False,
    ).ys
