"""`circuit`: the neural circuit whose steady state is the optimum, whatever its time constants."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Float

from .._types import Array, ArrayLike, Scalars, Weights, is_traced, namespace
from ._checks import as_floats, joint_axes, joint_batch
from ._method import MIXTURE_FLOOR, UNIT_ROUNDOFF
from ._paths import check_times, first_weights, follow, integrated
from .objective import Certificate, Problem, along_path, certificate_at, primitive_cost, require_problem, spread_over

_TOLERANCES = 1e-6, 1e-9  # relative and absolute
# Full Newton steps converge quadratically, so a loose test leaves an exact answer; a tight one trips over rounding,
# which the fastest layer magnifies by t1/tau_g, and sends the step size to zero.
_NEWTON_RTOL, _NEWTON_ATOL = 1e-3, 1e-5
_MAX_STEPS = 1 << 16

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
    batch = joint_axes(axes | {f"time_scales.{name}": t.shape for name, t in zip(scales._fields, scales, strict=True)})
    if not is_traced(*problem, *scales):
        _refuse_if_too_stiff(scales, t1)
        if time_scales is not None:
            _warn_if_unstable(problem, scales)
    return integrated(
        "circuit", lambda: _circuit(problem, scales, first, t1, reduced, save, batch), problem, first, *scales
    )


_ladder = time_scales  # `circuit` has an argument of that name


def check_scales(scales: TimeScales) -> TimeScales:
    """Four positive, finite time constants as arrays, or a complaint."""
    if not isinstance(scales, TimeScales):
        raise ValueError(f"time_scales = {scales!r}: pass TimeScales(hidden, gradient, softmax, weights).")
    scales = TimeScales(*(as_floats(f"time_scales.{name}", t) for name, t in zip(scales._fields, scales, strict=True)))
    for name, value in zip(TimeScales._fields, scales, strict=True):
        if not is_traced(value) and not np.all(np.isfinite(value) & (np.asarray(value) > 0)):
            raise ValueError(f"time_scales.{name} = {value}: time constants must be positive and finite.")
    joint_axes({f"time_scales.{name}": t.shape for name, t in zip(scales._fields, scales, strict=True)})
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
    from .stability import circuit_stability  # asks `solve`, which the integration does not need

    verdict = circuit_stability(problem, scales)
    if not np.all(verdict.stable):
        worst = float(np.max(verdict.growth))
        warnings.warn(
            f"with these time scales the optimum is unstable for {int(np.sum(~np.asarray(verdict.stable)))} of "
            f"{np.size(verdict.stable)} problems (growth rate {worst:+.3g}): the circuit will oscillate instead of "
            "settling. Use time_scales(problem.eps), or shorten `softmax` and `gradient` in proportion to eps.",
            stacklevel=3,
        )


@partial(jax.jit, static_argnames=("reduced", "save", "batch"))
def _circuit(
    problem: Problem, scales: TimeScales, first: Weights, t1: Any, reduced: bool, save: int, batch: tuple[int, ...]
) -> CircuitPath:
    problem = spread_over(jax.tree.map(jnp.asarray, problem), batch)
    first = jnp.broadcast_to(first, (*batch, first.shape[-1]))
    constants = [jnp.broadcast_to(jnp.asarray(t, jnp.float64), batch) for t in scales]
    times = jnp.linspace(0.0, t1, save)
    integrate = partial(_integrate, _reduced_circuit if reduced else _full_circuit)
    a_out, b_out = ("(m,n)", "(m,n)") if reduced else ("(m,d)", "(m,d)")
    signature = f"(d,n),(d),(),(n),(),(),(),(),(n),(m)->{a_out},{b_out},(m,n),(m),(m,n),(m,n)"
    layers = Layers(*jnp.vectorize(integrate, signature=signature)(*problem, *constants, first, times))
    paths = along_path(problem)
    if reduced:
        layers = layers._replace(a=jnp.einsum("...dn,...mn->...md", problem.pi, layers.a))
    weights = layers.w / jnp.sum(layers.w, axis=-1, keepdims=True)
    return CircuitPath(times, weights, layers, certificate_at(paths, weights))


def _integrate(build: Callable[..., Any], *operands: jax.Array) -> Any:
    import diffrax  # slow to import, and only the two integrators need it
    import optimistix

    *problem, hidden, gradient, softmax, tau, first, times = operands
    velocity, begin = build(Problem(*problem), TimeScales(hidden, gradient, softmax, tau), first)
    method = diffrax.Kvaerno5(root_finder=optimistix.Newton(rtol=_NEWTON_RTOL, atol=_NEWTON_ATOL))
    return follow(velocity, method, begin, times, _TOLERANCES, _MAX_STEPS)


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
