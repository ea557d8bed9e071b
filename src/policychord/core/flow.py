"""`flow`: the softmax gradient flow, whose equilibrium is the optimum and whose energy only falls."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._types import Array, Scalars, Weights, is_traced, namespace, require_float64
from ._checks import check_simplex
from .equilibrium import ConvergenceError
from .objective import Certificate, Problem, along_path, certificate_at, energy, gate, spread_over

# Theorems are checked on these paths, and loose tolerances violate the energy bound: the integrator is strict.
RTOL, ATOL = 1e-9, 1e-12
MAX_STEPS = 1 << 20


class Path(NamedTuple):
    """Weights along the flow, with what the theory says about them."""

    times: Float[Array, " times"]
    weights: Float[Array, "*batch times n"]
    energy: Float[Array, "*batch times"]  # V(w(t))
    dissipation: Float[Array, "*batch times"]  # dV/dt = -(eps/tau) ( KL(w||S) + KL(S||w) )
    certificate: Certificate


def flow(problem: Problem, t1: float = 20.0, start: Weights | None = None, tau: float = 1.0, save: int = 101) -> Path:
    """Integrate tau dw/dt = -w + S(w) from `start` (uniform unless given) to t1, keeping `save` moments.

    `start` may have batch axes of its own: many starts for one problem give many paths.
    """
    _check_times(t1, tau, save)
    n = problem.pi.shape[-1]
    first = np.full(n, 1.0 / n) if start is None else check_simplex("start", start, n)
    batch = _joint_batch(problem, first)
    xp = namespace(*problem, first)
    if is_traced(*problem, first):
        require_float64()
        return _flow(problem, first, t1, tau, save, batch)
    with jax.enable_x64(True):
        path = _flow(problem, first, t1, tau, save, batch)
        _raise_unless_finite(path, "flow", problem.eps)
        return path if xp is jnp else jax.tree.map(np.asarray, path)


def dissipation(problem: Problem, weights: Weights, tau: float = 1.0) -> Scalars:
    """dV/dt along the flow: -(eps/tau) ( KL(w || S(w)) + KL(S(w) || w) )."""
    xp = namespace(*problem, weights)
    response = gate(problem, weights)
    tiny = np.finfo(np.float64).tiny
    log_ratio = xp.log(xp.maximum(weights, tiny)) - xp.log(xp.maximum(response, tiny))
    return -problem.eps / tau * xp.sum((weights - response) * log_ratio, axis=-1)


def _check_times(t1: float, tau: float, save: int) -> None:
    for name, value in (("t1", t1), ("tau", tau)):
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{name} = {value}: a time must be positive and finite.")
    if not (isinstance(save, int | np.integer) and save >= 2):
        raise ValueError(f"save = {save!r}: at least the first and the last moment are kept, so pass an integer >= 2.")


def _joint_batch(problem: Problem, first: Weights) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(problem.eps.shape, first.shape[:-1])
    except ValueError:
        raise ValueError(
            f"start has batch axes {first.shape[:-1]}, which do not broadcast with the problem's {problem.eps.shape}."
        ) from None


def _raise_unless_finite(path, name: str, eps: Scalars) -> None:
    """The integrators leave infinity where they gave up."""
    reached = np.isfinite(np.asarray(path.weights)).all(axis=-1)
    if not reached.all():
        t = float(np.asarray(path.times)[reached.reshape(-1, reached.shape[-1]).all(axis=0)].max())
        raise ConvergenceError(
            f"the {name} could not be integrated beyond t = {t:.3g}: at eps = {float(np.min(eps)):.3g} it is too stiff. "
            "`solve` gives its equilibrium at any temperature; for a path, raise eps."
        )


@partial(jax.jit, static_argnames=("save", "batch"))
def _flow(problem: Problem, first: Weights, t1: float, tau: float, save: int, batch: tuple[int, ...]) -> Path:
    problem = spread_over(jax.tree.map(jnp.asarray, problem), batch)
    first = jnp.broadcast_to(first, (*batch, first.shape[-1]))
    times = jnp.linspace(0.0, t1, save)
    signature = "(d,n),(d),(),(n),(n),(m),()->(m,n)"
    weights = jnp.vectorize(_integrate, signature=signature)(*problem, first, times, tau)
    paths = along_path(problem)
    return Path(
        times, weights, energy(paths, weights), dissipation(paths, weights, tau), certificate_at(paths, weights)
    )


def _integrate(pi, action_cost, eps, log_prior, first, times, tau):
    import diffrax  # slow to import, and only the two integrators need it

    one = Problem(pi, action_cost, eps, log_prior)
    return diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, w, _: (gate(one, w) - w) / tau),
        diffrax.Tsit5(),
        t0=times[0],
        t1=times[-1],
        dt0=None,
        y0=first,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=RTOL, atol=ATOL),
        max_steps=MAX_STEPS,
        throw=False,
    ).ys
