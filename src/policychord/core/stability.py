"""`circuit_stability`: whether the circuit settles at the optimum, from its linearisation there."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Complex

from .._types import Flags, Scalars
from ._method import LOG_FLOOR, MIXTURE_FLOOR
from .circuit import TimeScales, check_scales
from .circuit import time_scales as ladder
from .equilibrium import solve
from .objective import Problem, require_problem

__all__ = ["Stability", "circuit_stability", "curvatures"]

# Integrating an oscillation that dies out this slowly would look unstable as well.
_MARGIN = 1e-9


class Stability(NamedTuple):
    """The verdict on a circuit, the growth rate of its slowest mode and all its modes."""

    stable: Flags
    growth: Scalars  # largest real part of the spectrum
    spectrum: Complex[np.ndarray, "*batch modes"]  # 5n + 1 modes; the full circuit adds some at -1/tau_g


def circuit_stability(problem: Problem, time_scales: TimeScales | None = None) -> Stability:
    """Linearise the circuit at the optimum.

    The curvature seen by the weights, D H with D = diag(w*) and H = Pi^T diag(1/Pi w*) Pi, has the eigenvalue 1 (the
    total mass) and n - 1 others mu in [0, 1]. Each mode is a root L of one of

        (1 + tau L)(1 + tau_s L)(1 + tau_g L)^2 (eps + tau~_g L) + mu = 0
        (1 + tau L)(1 + tau_s L)^2 (1 + tau_g L)^2 (eps + tau~_g L) + tau_s L = 0        (mass)
    """
    problem = require_problem(problem, "circuit_stability")
    scales = ladder(np.asarray(problem.eps)) if time_scales is None else time_scales
    scales = check_scales(scales)
    batch = np.broadcast_shapes(np.shape(problem.eps), *(np.shape(t) for t in scales))
    mu = np.broadcast_to(curvatures(problem), (*batch, problem.pi.shape[-1] - 1))
    eps = np.broadcast_to(np.asarray(problem.eps, float), batch)
    scales = TimeScales(*(np.broadcast_to(np.asarray(t, float), batch) for t in scales))
    modes = _roots(_loop(eps[..., None], TimeScales(*(t[..., None] for t in scales)), mu))
    mass = _roots(_mass_loop(eps, scales))
    spectrum = np.concatenate([modes.reshape((*batch, 5 * mu.shape[-1])), mass], axis=-1)
    growth = spectrum.real.max(axis=-1)
    return Stability(np.asarray(growth < -_MARGIN), growth, spectrum)


def curvatures(problem: Problem) -> np.ndarray:
    """The eigenvalues mu of D H at the optimum, largest first, without the 1 that belongs to the mass."""
    log_weights = np.asarray(solve(problem).log_weights)
    pi = np.asarray(problem.pi)
    scaled = pi * np.exp(0.5 * np.maximum(log_weights, LOG_FLOOR))[..., None, :]
    mixture = np.maximum(pi @ np.exp(log_weights)[..., None], MIXTURE_FLOOR)
    symmetric = np.swapaxes(scaled, -1, -2) @ (scaled / mixture)
    return np.clip(np.linalg.eigvalsh(symmetric)[..., -2::-1], 0.0, 1.0)


# The roots are found as eigenvalues of the small linear system each polynomial belongs to: the time constants
# span many orders of magnitude, which expanded coefficients do not survive.


def _loop(eps: np.ndarray, scales: TimeScales, mu: np.ndarray) -> np.ndarray:
    """v, beta, y, r, w of one mode: a ring in which each layer hears the one before."""
    eps, hidden, gradient, softmax, tau, mu = np.broadcast_arrays(eps, *scales, mu)
    ring = np.zeros((*mu.shape, 5, 5))
    ring[..., 0, 0], ring[..., 0, 4] = -1 / hidden, 1 / hidden
    ring[..., 1, 1], ring[..., 1, 0] = -1 / hidden, mu / hidden
    ring[..., 2, 2], ring[..., 2, 1] = -eps / gradient, -1 / gradient
    ring[..., 3, 3], ring[..., 3, 2] = -1 / softmax, 1 / softmax
    ring[..., 4, 4], ring[..., 4, 3] = -1 / tau, 1 / tau
    return ring


def _mass_loop(eps: np.ndarray, scales: TimeScales) -> np.ndarray:
    """v, beta, y, ln m, r, w when all weights grow alike: ln m takes away what y adds."""
    ring = np.zeros((*np.shape(eps), 6, 6))
    hidden, gradient, softmax, tau = scales
    ring[..., 0, 0], ring[..., 0, 5] = -1 / hidden, 1 / hidden
    ring[..., 1, 1], ring[..., 1, 0] = -1 / hidden, 1 / hidden
    ring[..., 2, 2], ring[..., 2, 1] = -eps / gradient, -1 / gradient
    ring[..., 3, 3], ring[..., 3, 2] = -1 / softmax, 1 / softmax
    ring[..., 4, 4], ring[..., 4, 2], ring[..., 4, 3] = -1 / softmax, 1 / softmax, -1 / softmax
    ring[..., 5, 5], ring[..., 5, 4] = -1 / tau, 1 / tau
    return ring


def _roots(matrices: np.ndarray) -> np.ndarray:
    return np.linalg.eigvals(matrices).astype(complex)
