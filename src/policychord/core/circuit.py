"""`circuit`: the neural circuit whose steady state is the optimum, whatever its time constants.

`circuit_stability` says whether it settles there, from its linearisation.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Complex, Float

from .._types import Array, ArrayLike, Flags, Scalars, Weights, is_traced, namespace
from ._checks import as_floats, joint_axes, joint_batch
from ._method import LOG_FLOOR, MIXTURE_FLOOR, UNIT_ROUNDOFF
from .equilibrium import solve
from .flow import check_times, first_weights, follow, integrated
from .objective import Certificate, Problem, certificate_at, primitive_cost, require_problem

__all__ = [
    "CircuitPath", "Layers", "Stability", "TimeScales", "circuit", "circuit_stability", "curvatures", "time_scales",
]  # fmt: skip

_TOLERANCES = 1e-6, 1e-9  # relative and absolute
# Full Newton steps converge quadratically, so a loose test leaves an exact answer; a tight one trips over rounding,
# which the fastest layer magnifies by t1/tau_g, and sends the step size to zero.
_NEWTON_RTOL, _NEWTON_ATOL = 1e-3, 1e-5
_MAX_STEPS = 1 << 16
# Integrating an oscillation that dies out this slowly would look unstable as well.
_MARGIN = 1e-9

_Velocity = Callable[[Any, Any, Any], tuple[Any, ...]]  # of (time, layers, nothing)


class TimeScales(NamedTuple):
    """Time constants of the layers, fastest first."""

    hidden: Scalars  # tau_g: layers a and b
    gradient: Scalars  # tau~_g: layer y
    softmax: Scalars  # tau_s: layers m and r
    weights: Scalars  # tau: layer w


class Layers(NamedTuple):
    """Activity of the six layers in time.

    tau_g  da/dt = -a + Pi w                 tau_s dm/dt = -m + sum_a exp(y_a)
    tau_g  db/dt = -b + ln a                 tau_s dr/dt = -r + y - ln m
    tau~_g dy/dt = -eps y - Pi^T (b + s) + eps ln w_hat     tau dw/dt = -w + exp(r)

    m is carried as its logarithm, tau_s d(ln m)/dt = expm1(logsumexp(y) - ln m): the same trajectory, and it
    cannot overflow. In the reduced circuit b is its projection Pi^T b, the only part of it that y hears.
    """

    a: Float[Array, "*batch times d"]
    b: Float[Array, "*batch times d_or_n"]
    y: Float[Array, "*batch times n"]
    log_m: Float[Array, "*batch times"]
    r: Float[Array, "*batch times n"]
    w: Float[Array, "*batch times n"]


class CircuitPath(NamedTuple):
    """The circuit in time: its output as weights (w normalised; w itself sums to one only in the end)."""

    times: Float[Array, " times"]
    weights: Float[Array, "*batch times n"]
    layers: Layers
    certificate: Certificate


class Stability(NamedTuple):
    """The verdict on a circuit, the growth rate of its slowest mode and all its modes."""

    stable: Flags
    growth: Scalars  # largest real part of the spectrum
    spectrum: Complex[np.ndarray, "*batch modes"]  # 5n + 1 modes; the full circuit adds some at -1/tau_g


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


def circuit(
    problem: Problem,
    t1: float = 20.0,
    time_scales: TimeScales | None = None,
    reduced: bool = True,
    start: ArrayLike | None = None,
    save: int = 101,
) -> CircuitPath:
    """Integrate the circuit from the weights `start` (uniform unless given) to t1, keeping `save` moments.

    Without `time_scales` the stable ladder for the problem's temperature is used. `reduced` integrates an exact
    reduction with 5n + 1 states: once a = Pi v holds it holds for ever, so v and Pi^T b say everything. With
    reduced=False all 2d + 3n + 1 neurons are integrated, which is slow for many actions.
    """
    problem = require_problem(problem, "circuit")
    check_times(t1, 1.0, save)
    scales = _ladder(problem.eps) if time_scales is None else time_scales
    scales = check_scales(scales)
    first = first_weights(start, problem.log_prior)
    axes = {"the problem": joint_batch("start", first, problem.log_prior)}
    joint_axes(axes | {f"time_scales.{name}": t.shape for name, t in scales._asdict().items()})
    if not is_traced(*problem, *scales):
        _refuse_if_too_stiff(scales, t1)
        if time_scales is not None:
            _warn_if_unstable(problem, scales)
    return integrated("circuit", lambda: _circuit(problem, scales, first, t1, reduced, save), problem, first, *scales)


_ladder = time_scales  # `circuit` has an argument of that name


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


def _refuse_if_too_stiff(scales: TimeScales, t1: float) -> None:
    """Rounding is magnified by t1/tau_g; beyond what Newton's method tolerates, the step size would go to zero."""
    fastest, shortest = float(np.min(scales.hidden, initial=np.inf)), t1 * UNIT_ROUNDOFF / _NEWTON_ATOL
    if fastest < shortest:
        raise ValueError(
            f"time_scales.hidden = {fastest:.3g} is too short to be integrated to t1 = {t1:g} (limit {shortest:.1e}): "
            "raise eps (to 1e-3 with the default ladder), or take the equilibrium from `solve`."
        )


def _warn_if_unstable(problem: Problem, scales: TimeScales) -> None:
    verdict = circuit_stability(problem, scales)
    if not np.all(verdict.stable):
        worst = float(np.max(verdict.growth))
        warnings.warn(
            f"with these time scales the optimum is unstable for {int(np.sum(~np.asarray(verdict.stable)))} of "
            f"{np.size(verdict.stable)} problems (growth rate {worst:+.3g}): the circuit will oscillate instead of "
            "settling. Use time_scales(problem.eps), or shorten `softmax` and `gradient` in proportion to eps.",
            stacklevel=3,
        )


@partial(jax.jit, static_argnames=("reduced", "save"))
def _circuit(problems: Problem, scales: TimeScales, first: Weights, t1: Any, reduced: bool, save: int) -> CircuitPath:
    import diffrax  # slow to import, and only the two integrators need it
    import optimistix

    from .convex import over_batch

    times = jnp.linspace(0.0, t1, save)
    method = diffrax.Kvaerno5(root_finder=optimistix.Newton(rtol=_NEWTON_RTOL, atol=_NEWTON_ATOL))
    build = _reduced_circuit if reduced else _full_circuit

    def path_of(problem: Problem, constants: jax.Array, begin: jax.Array) -> Any:
        velocity, layers = build(problem, TimeScales(*constants), begin)
        layers = Layers(*follow(velocity, method, layers, times, _TOLERANCES, _MAX_STEPS))
        if reduced:
            layers = layers._replace(a=layers.a @ problem.pi.T)
        weights = layers.w / jnp.sum(layers.w, axis=-1, keepdims=True)
        return weights, layers, jax.vmap(partial(certificate_at, problem))(weights)

    constants = jnp.stack(jnp.broadcast_arrays(*scales), axis=-1)
    return CircuitPath(times, *over_batch(path_of, problems, constants, first))


def _log(a: jax.Array) -> jax.Array:
    return jnp.log(jnp.maximum(a, MIXTURE_FLOOR))


def _slow_layers(scales: TimeScales, y: Any, log_m: Any, r: Any, w: Any) -> tuple[Any, ...]:
    """The softmax unit: (d ln m, dr, dw)/dt."""
    return (
        jnp.expm1(logsumexp(y) - log_m) / scales.softmax,
        (y - log_m - r) / scales.softmax,
        (jnp.exp(r) - w) / scales.weights,
    )


def _at_rest(problem: Problem, first: Any) -> tuple[Any, ...]:
    """Layers y, ln m, r and w as they are when the weights have been `first` for ever."""
    y = problem.log_prior - primitive_cost(problem, first) / problem.eps
    return y, logsumexp(y), y - logsumexp(y), first


def _full_circuit(problem: Problem, scales: TimeScales, first: Any) -> tuple[_Velocity, tuple[Any, ...]]:
    pi, s, eps, log_prior = problem

    def velocity(t: Any, layers: Any, _: Any) -> tuple[Any, ...]:
        a, b, y, log_m, r, w = layers
        dy = (-eps * y - (b + s) @ pi + eps * log_prior) / scales.gradient
        fast = ((pi @ w - a) / scales.hidden, (_log(a) - b) / scales.hidden, dy)
        return (*fast, *_slow_layers(scales, y, log_m, r, w))

    a = pi @ first
    return velocity, (a, _log(a), *_at_rest(problem, first))


def _reduced_circuit(problem: Problem, scales: TimeScales, first: Any) -> tuple[_Velocity, tuple[Any, ...]]:
    """With a = Pi v: tau_g dv/dt = w - v, and beta = Pi^T b obeys tau_g dbeta/dt = -beta + Pi^T ln(Pi v)."""
    pi, s, eps, log_prior = problem
    drive = s @ pi - eps * log_prior

    def velocity(t: Any, layers: Any, _: Any) -> tuple[Any, ...]:
        v, beta, y, log_m, r, w = layers
        dbeta = (_log(pi @ v) @ pi - beta) / scales.hidden
        fast = ((w - v) / scales.hidden, dbeta, (-eps * y - beta - drive) / scales.gradient)
        return (*fast, *_slow_layers(scales, y, log_m, r, w))

    return velocity, (first, _log(pi @ first) @ pi, *_at_rest(problem, first))


# ----------------------------------------------------------------------------------- stability


def circuit_stability(problem: Problem, time_scales: TimeScales | None = None) -> Stability:
    """Linearise the circuit at the optimum.

    The curvature seen by the weights, D H with D = diag(w*) and H = Pi^T diag(1/Pi w*) Pi, has the eigenvalue 1 (the
    total mass) and n - 1 others mu in [0, 1]. Each mode is a root L of one of

        (1 + tau L)(1 + tau_s L)(1 + tau_g L)^2 (eps + tau~_g L) + mu = 0
        (1 + tau L)(1 + tau_s L)^2 (1 + tau_g L)^2 (eps + tau~_g L) + tau_s L = 0        (mass)
    """
    problem = require_problem(problem, "circuit_stability")
    scales = _ladder(np.asarray(problem.eps)) if time_scales is None else time_scales
    scales = check_scales(scales)
    batch = np.broadcast_shapes(np.shape(problem.eps), *(np.shape(t) for t in scales))
    mu = np.broadcast_to(curvatures(problem), (*batch, problem.pi.shape[-1] - 1))
    eps = np.broadcast_to(np.asarray(problem.eps, float), batch)
    scales = TimeScales(*(np.broadcast_to(np.asarray(t, float), batch) for t in scales))
    modes = _roots_of_modes(eps[..., None], TimeScales(*(t[..., None] for t in scales)), mu)
    mass = _roots_of_mass(eps, scales)
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


def _roots_of_modes(eps: np.ndarray, scales: TimeScales, mu: np.ndarray) -> np.ndarray:
    """v, beta, y, r, w of one mode: a ring in which each layer hears the one before."""
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


def _eigenvalues(size: int, entries: dict[tuple[int, int], Any]) -> np.ndarray:
    matrices = np.zeros((*np.broadcast_shapes(*map(np.shape, entries.values())), size, size))
    for (row, column), entry in entries.items():
        matrices[..., row, column] = entry
    return np.linalg.eigvals(matrices).astype(complex)
