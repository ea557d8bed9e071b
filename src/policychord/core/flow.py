"""`flow`: the softmax gradient flow, whose equilibrium is the optimum and whose energy only falls; `one_step` of it.

What the two integrations, flow and circuit, have in common stands here too.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._types import Array, ArrayLike, Scalars, Weights, in_kind, is_traced, namespace
from ._checks import as_floats, check_number, check_simplex, check_weights, joint_batch, shown
from .equilibrium import ConvergenceError
from .objective import (
    AnyProblem,
    Certificate,
    Problem,
    certificate_at,
    checked_any,
    energy,
    gate,
    primitive_cost,
    require_problem,
    verb,
)

_Record = TypeVar("_Record")

# Theorems are checked on these paths, and loose tolerances violate the energy bound: the integrator is strict.
_TOLERANCES = 1e-10, 1e-13  # relative and absolute
_MAX_STEPS = 1 << 20
_MAX_STEPS_GENERAL = 1 << 16  # at a kink every step is tiny: it should be reported soon

_RELAXATION = (
    10.0  # time, in units of tau, for which the released scripts integrate towards a gate that they hold fixed
)
_FLOOR = 1e-8  # added to q = exp(-s) and to the mixture


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
    if not isinstance(posed, Problem):
        from .stability import require_convexity

        require_convexity(posed, "flow")
    first = first_weights(start, posed)
    joint_batch("start", first, posed.log_prior)
    return integrated("flow", lambda: _flow(posed, first, t1, tau, save), posed, first)


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


def one_step(problem: Problem, weights: Weights) -> Weights:
    """A single relaxation towards the gate, as the paper's released control scripts do it:

        w+ = S + e^-10 (w - S), S = softmax( -Pi^T ( ln(Pi w + 1e-8) - ln q ) / eps + ln w_hat ), q = exp(-s) + 1e-8.

    It is not the optimum, and repeated it need not converge: where the gate is steep it swings between two answers. It
    is here so that the difference can be measured.
    """
    pi, s, eps, log_prior = problem = require_problem(problem, "one_step")
    weights = check_weights("weights", weights, log_prior)
    xp = namespace(*problem, weights)
    mixture = (pi @ weights[..., None])[..., 0]
    surprise = xp.log(mixture + _FLOOR) - xp.logaddexp(-s, np.log(_FLOOR))  # exp(-s) may be too large to write down
    y = log_prior - (surprise[..., None, :] @ pi)[..., 0, :] / eps[..., None]
    response = xp.exp(y - xp.max(y, axis=-1, keepdims=True))
    response = response / xp.sum(response, axis=-1, keepdims=True)
    return response + np.exp(-_RELAXATION) * (weights - response)


def _check_tau(tau: Any) -> Any:
    """Positive, finite time constants: a number, or arrays that broadcast with the problems."""
    values = as_floats("tau", tau)
    if not is_traced(values) and not np.all(np.isfinite(values) & (np.asarray(values) > 0)):
        raise ValueError(f"tau = {shown(tau)}: pass a positive, finite number.")
    return values


@partial(jax.jit, static_argnames="save")
def _flow(problems: Any, first: Weights, t1: Any, tau: Any, save: int) -> Path:
    import diffrax  # slow to import

    from .convex import certificate_of, dissipation_of, energy_of, gate_of, over_batch

    verbs: Any = gate_of, energy_of, dissipation_of, certificate_of
    max_steps = _MAX_STEPS_GENERAL
    if isinstance(problems, Problem):
        verbs, max_steps = (gate, energy, _dissipation, certificate_at), _MAX_STEPS
    respond, *looks = verbs
    times = jnp.linspace(0.0, t1, save)

    def path_of(problem: Any, begin: jax.Array) -> Any:
        path = follow(
            lambda t, w, _: (respond(problem, w) - w) / tau, diffrax.Tsit5(), begin, times, _TOLERANCES, max_steps
        )
        # the flow stays on the simplex; an integrator steps below zero by as much as its tolerance
        inside = jnp.maximum(path, 0.0)
        weights = inside / jnp.sum(inside, axis=-1, keepdims=True)
        energies, rates, certificates = jax.vmap(lambda w: tuple(look(problem, w) for look in looks))(weights)
        return weights, energies, rates / tau, certificates

    return Path(times, *over_batch(path_of, problems, first))


# ------------------------------------------------------------------------------ both integrations


def check_times(t1: float, tau: float, save: int) -> None:
    check_number("t1", t1)
    check_number("tau", tau)
    if not (isinstance(save, int | np.integer) and save >= 2):
        raise ValueError(f"save = {save!r}: at least the first and the last moment are kept, so pass an integer >= 2.")


def first_weights(start: ArrayLike | None, problem: AnyProblem) -> Weights:
    """Where a path begins unless `start` says where: uniform, or as near to it as caps allow."""
    if start is not None:
        return check_simplex("start", start, problem.log_prior)
    n = problem.log_prior.shape[-1]
    uniform = np.full(n, 1.0 / n)
    if isinstance(problem, Problem) or problem.caps is None:
        return uniform
    from .convex import nearest, over_batch

    return in_kind(lambda: over_batch(nearest, problem, uniform), problem)


def follow(velocity: Callable[..., Any], method: Any, begin: Any, times: Any, tolerances: Any, max_steps: int) -> Any:
    """The states at `times` of dx/dt = velocity(t, x, nothing); infinity from where the integrator gave up."""
    import diffrax

    rtol, atol = tolerances
    return diffrax.diffeqsolve(
        diffrax.ODETerm(velocity), method, t0=times[0], t1=times[-1], dt0=None, y0=begin,
        saveat=diffrax.SaveAt(ts=times), stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
        max_steps=max_steps, throw=False,
    ).ys  # fmt: skip


def integrated(name: str, integrate: Callable[[], _Record], problem: Any, *others: Any) -> _Record:
    """Run an integration in float64 and return it in kind, or say how far it came."""

    def run() -> _Record:
        path: Any = integrate()
        if not is_traced(path.weights):
            _raise_unless_finite(path, name, problem.eps)
        return path

    return in_kind(run, problem, *others)


def _raise_unless_finite(path: Any, name: str, eps: Scalars) -> None:
    """The integrators leave infinity where they gave up."""
    reached = np.isfinite(np.asarray(path.weights)).all(axis=-1)
    if not reached.all():
        t = float(np.asarray(path.times)[reached.reshape(-1, reached.shape[-1]).all(axis=0)].max())
        raise ConvergenceError(
            f"the {name} could not be integrated beyond t = {t:.3g}: at eps = {float(np.min(eps)):.3g} it is too "
            "stiff, or the complexity has a kink. `solve` gives its equilibrium at any temperature; for a path, raise "
            "eps or round the kink off."
        )
