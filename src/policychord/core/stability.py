"""`circuit_stability`: whether a circuit settles, from its linearisation; `time_scales` with which it does."""

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Complex

from .._types import Flags, Scalars, in_kind, is_traced, namespace
from ._checks import as_floats, joint_axes
from ._method import LOG_FLOOR, MIXTURE_FLOOR
from .equilibrium import solve
from .objective import AnyProblem, Problem, checked_any

__all__ = ["Stability", "TimeScales", "check_scales", "circuit_stability", "curvatures", "time_scales"]

if TYPE_CHECKING:
    from .convex import ConvexProblem
else:  # loaded when it is first needed
    ConvexProblem = Any

# Integrating an oscillation that dies out this slowly would look unstable as well.
_MARGIN = 1e-9


class TimeScales(NamedTuple):
    """Time constants of the layers, fastest first."""

    hidden: Scalars  # tau_g: layers a and b
    gradient: Scalars  # tau~_g: layer y
    softmax: Scalars  # tau_s: layers m and r
    weights: Scalars  # tau: layer w


class Stability(NamedTuple):
    """The verdict on a circuit, the growth rate of its slowest mode and all its modes."""

    stable: Flags
    growth: Scalars  # largest real part of the spectrum
    spectrum: Complex[
        np.ndarray, "*batch modes"
    ]  # 5n + 1 modes, with a threshold 4n + 1; the full circuit adds some at -1/tau_g


def time_scales(eps: Scalars | float, tau: Scalars | float = 1.0, ratio: Scalars | float = 10.0) -> TimeScales:
    """A ladder of time constants that is stable at any temperature.

    Layer y really has the time constant tau~_g/eps and the loop a gain of up to 1/eps, so each of its two slower
    steps is shortened by min(eps, 1); `ratio` alone is not enough.
    """
    for name, value, least in (("eps", eps, 0.0), ("tau", tau, 0.0), ("ratio", ratio, 1.0)):
        if not is_traced(value) and not np.all(np.asarray(as_floats(name, value)) > least):
            raise ValueError(f"{name} = {value}: pass numbers above {least:g}.")
    xp = namespace(eps, tau)
    slack = xp.minimum(eps, 1.0)
    softmax = slack * tau / ratio
    gradient = slack * softmax / ratio
    return TimeScales(gradient / ratio, gradient, softmax, tau * xp.ones_like(softmax))


def check_scales(scales: TimeScales) -> TimeScales:
    """Four positive, finite time constants as arrays, or a complaint."""
    if not isinstance(scales, TimeScales):
        raise ValueError(f"time_scales = {scales!r}: pass TimeScales(hidden, gradient, softmax, weights).")
    scales = TimeScales(*(as_floats(f"time_scales.{name}", t) for name, t in scales._asdict().items()))
    for name, value in scales._asdict().items():
        if not is_traced(value) and not np.all(np.isfinite(value) & (np.asarray(value) > 0)):
            raise ValueError(f"time_scales.{name} = {value}: time constants must be positive and finite.")
    joint_axes({f"time_scales.{name}": t.shape for name, t in scales._asdict().items()})
    return scales


_ladder = time_scales  # `circuit_stability` has an argument of that name


def circuit_stability(problem: AnyProblem, time_scales: TimeScales | None = None) -> Stability:
    """Linearise the circuit at the optimum.

    In the paper's circuit the curvature seen by the weights, D H with D = diag(w*) and H = Pi^T diag(1/Pi w*) Pi, has
    the eigenvalue 1 (the total mass) and n - 1 others mu in [0, 1]. Each mode is a root L of one of

        (1 + tau L)(1 + tau_s L)(1 + tau_g L)^2 (eps + tau~_g L) + mu = 0
        (1 + tau L)(1 + tau_s L)^2 (1 + tau_g L)^2 (eps + tau~_g L) + tau_s L = 0        (mass)

    For any other problem the modes are those of the circuit with a threshold, from the curvature of F and the slopes of
    its units.
    """
    problem = checked_any(problem)
    scales = check_scales(_ladder(np.asarray(problem.eps)) if time_scales is None else time_scales)
    batch = np.broadcast_shapes(np.shape(problem.eps), *(np.shape(t) for t in scales))
    eps = np.broadcast_to(np.asarray(problem.eps, float), batch)
    scales = TimeScales(*(np.broadcast_to(np.asarray(t, float), batch) for t in scales))
    if isinstance(problem, Problem):
        mu = np.broadcast_to(curvatures(problem), (*batch, problem.pi.shape[-1] - 1))
        modes = _roots_of_modes(eps[..., None], TimeScales(*(t[..., None] for t in scales)), mu)
        spectrum = np.concatenate([modes.reshape((*batch, 5 * mu.shape[-1])), _roots_of_mass(eps, scales)], axis=-1)
    else:
        require_convexity(problem, "circuit_stability")
        spectrum = _roots_with_threshold(eps, scales, *_slopes_and_curvature(problem))
    growth = spectrum.real.max(axis=-1)
    return Stability(np.asarray(growth < -_MARGIN), growth, spectrum)


def require_convexity(problem: ConvexProblem, verb: str) -> None:
    """Refuse a problem whose dynamics need not go where the theory says."""
    if not problem.complexity.convex:
        raise ValueError(
            f'{verb} leads to the optimum of a convex complexity. That of combine="local product" is not convex: there '
            "may be several minima, and nothing says which one is reached. Use `solve` for a local answer, or "
            'combine="product".'
        )


def curvatures(problem: Problem) -> np.ndarray:
    """The eigenvalues mu of D H at the optimum, largest first, without the 1 that belongs to the mass."""
    log_weights = np.asarray(solve(problem).log_weights)
    pi = np.asarray(problem.pi)
    scaled = pi * np.exp(0.5 * np.maximum(log_weights, LOG_FLOOR))[..., None, :]
    mixture = np.maximum(pi @ np.exp(log_weights)[..., None], MIXTURE_FLOOR)
    symmetric = np.swapaxes(scaled, -1, -2) @ (scaled / mixture)
    return np.clip(np.linalg.eigvalsh(symmetric)[..., -2::-1], 0.0, 1.0)


def _slopes_and_curvature(problem: ConvexProblem) -> tuple[np.ndarray, np.ndarray]:
    """At the optimum: the slopes w^(2-alpha) of the units, zero for silent and saturated ones, and the Hessian of F."""
    best = solve(problem).weights
    return jax.tree.map(np.asarray, in_kind(lambda: _look(problem, best), problem))


@jax.jit
def _look(problems: Any, weights: Any) -> Any:
    from .convex import gate_of, over_batch
    from .regularisers import below_caps, curvature_inverse

    def look(problem: Any, weights: Any) -> Any:
        response = gate_of(problem, weights)  # a cap is met exactly
        slopes = jnp.where(below_caps(response, problem.caps), curvature_inverse(response, problem.alpha), 0.0)
        return slopes, problem.complexity.curvature(problem.parameters, weights)

    return over_batch(look, problems, weights)


# The roots are found as eigenvalues of the small linear system each polynomial belongs to: the time constants
# span many orders of magnitude, which expanded coefficients do not survive.


def _roots_of_modes(eps: np.ndarray, scales: TimeScales, mu: np.ndarray) -> np.ndarray:
    """v, beta, y, r, w of one mode: a ring in which each layer receives the one before."""
    hidden, gradient, softmax, tau = scales
    return _eigenvalues(5, {
        (0, 0): -1 / hidden, (0, 4): 1 / hidden,
        (1, 1): -1 / hidden, (1, 0): mu / hidden,
        (2, 2): -eps / gradient, (2, 1): -1 / gradient,
        (3, 3): -1 / softmax, (3, 2): 1 / softmax,
        (4, 4): -1 / tau, (4, 3): 1 / tau,
    })  # fmt: skip


def _roots_of_mass(eps: np.ndarray, scales: TimeScales) -> np.ndarray:
    """v, beta, y, ln m, r, w when all weights grow alike: ln m takes away what y adds."""
    hidden, gradient, softmax, tau = scales
    return _eigenvalues(6, {
        (0, 0): -1 / hidden, (0, 5): 1 / hidden,
        (1, 1): -1 / hidden, (1, 0): 1 / hidden,
        (2, 2): -eps / gradient, (2, 1): -1 / gradient,
        (3, 3): -1 / softmax, (3, 2): 1 / softmax,
        (4, 4): -1 / softmax, (4, 2): 1 / softmax, (4, 3): -1 / softmax,
        (5, 5): -1 / tau, (5, 4): 1 / tau,
    })  # fmt: skip


def _roots_with_threshold(eps: np.ndarray, scales: TimeScales, slopes: np.ndarray, curvature: np.ndarray) -> Any:
    """v, beta, y, w and the level of the reduced circuit with a threshold."""
    hidden, gradient, softmax, tau = (t[..., None, None] for t in scales)
    n, one = slopes.shape[-1], np.eye(slopes.shape[-1])
    v, beta, y, w = (slice(k * n, (k + 1) * n) for k in range(4))
    level = slice(4 * n, None)
    matrix = np.zeros((*eps.shape, 4 * n + 1, 4 * n + 1))
    matrix[..., v, v], matrix[..., v, w] = -one / hidden, one / hidden
    matrix[..., beta, beta], matrix[..., beta, v] = -one / hidden, curvature / hidden
    matrix[..., y, y], matrix[..., y, beta] = -eps[..., None, None] * one / gradient, -one / gradient
    matrix[..., w, w], matrix[..., w, y] = -one / tau, one * slopes[..., None] / tau
    matrix[..., w, level], matrix[..., level, y] = -slopes[..., None] / tau, slopes[..., None, :] / softmax
    # where every unit is silent or saturated the level moves none of them, and need not be at rest
    total = slopes.sum(-1)[..., None, None]
    matrix[..., level, level] = -np.where(total > 0.0, total, 1.0) / softmax
    return np.linalg.eigvals(matrix).astype(complex)


def _eigenvalues(size: int, entries: dict[tuple[int, int], Any]) -> np.ndarray:
    matrices = np.zeros((*np.broadcast_shapes(*map(np.shape, entries.values())), size, size))
    for (row, column), entry in entries.items():
        matrices[..., row, column] = entry
    return np.linalg.eigvals(matrices).astype(complex)
