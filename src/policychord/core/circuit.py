"""`circuit`: the neural circuit whose steady state is the optimum, whatever its time constants.

`stability.py` says whether it settles there, from its linearisation.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Float

from .._types import Array, ArrayLike, Weights, is_traced
from ._checks import joint_axes, joint_batch
from ._method import MIXTURE_FLOOR, UNIT_ROUNDOFF
from .flow import check_times, first_weights, follow, integrated
from .objective import AnyProblem, Certificate, Problem, certificate_at, checked_any, primitive_cost
from .stability import TimeScales, check_scales, circuit_stability, require_convexity, time_scales

__all__ = ["CircuitPath", "Layers", "TimeScales", "check_scales", "circuit", "time_scales"]

_TOLERANCES = 1e-6, 1e-9  # relative and absolute
# Full Newton steps converge quadratically, so a loose test leaves an exact answer; a tight one trips over rounding,
# which the fastest layer magnifies by t1/tau_g, and sends the step size to zero.
_NEWTON_RTOL, _NEWTON_ATOL = 1e-3, 1e-5
_MAX_STEPS = 1 << 16
_Velocity = Callable[[Any, Any, Any], tuple[Any, ...]]  # of (time, layers, nothing)


class Layers(NamedTuple):
    """Activity of the six layers in time.

    tau_g  da/dt = -a + Pi w                 tau_s dm/dt = -m + sum_a exp(y_a)
    tau_g  db/dt = -b + ln a                 tau_s dr/dt = -r + y - ln m
    tau~_g dy/dt = -eps y - Pi^T (b + s) + eps ln w_hat     tau dw/dt = -w + exp(r)

    m is carried as its logarithm, tau_s d(ln m)/dt = expm1(logsumexp(y) - ln m): the same trajectory, and it
    cannot overflow. In the reduced circuit b is its projection Pi^T b, the only part of it that y receives.

    Any other problem has the same layers with a threshold in place of the softmax. With ln m the threshold and phi the
    transfer function of the regulariser, exp for the entropy, (1 + (alpha - 1) u)_+^(1/(alpha - 1)) for Tsallis, and
    at most the cap,

    tau_s d(ln m)/dt = sum_a phi(y_a - ln m) - 1      r = y - ln m, without a lag     tau dw/dt = -w + phi(r)

    and layers a and b, with y, give the gradient of its complexity: of a product a holds sum_a w_a ln pi_a and b the
    product itself, of a function of the user's a holds w and b the gradient.
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


def circuit(
    problem: AnyProblem,
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
    problem = checked_any(problem)
    if not isinstance(problem, Problem):
        require_convexity(problem, "circuit")
    check_times(t1, 1.0, save)
    scales = _ladder(problem.eps) if time_scales is None else time_scales
    scales = check_scales(scales)
    first = first_weights(start, problem)
    axes = {"the problem": joint_batch("start", first, problem.log_prior)}
    joint_axes(axes | {f"time_scales.{name}": t.shape for name, t in scales._asdict().items()})
    if not is_traced(*jax.tree.leaves(problem), *scales):
        _refuse_if_too_stiff(scales, t1)
        if time_scales is not None:
            _warn_if_unstable(problem, scales)
    return integrated("circuit", lambda: _circuit(problem, scales, first, t1, reduced, save), problem, first, *scales)


_ladder = time_scales  # `circuit` has an argument of that name


def _refuse_if_too_stiff(scales: TimeScales, t1: float) -> None:
    """Rounding is magnified by t1/tau_g; beyond what Newton's method tolerates, the step size would go to zero."""
    fastest, shortest = float(np.min(scales.hidden, initial=np.inf)), t1 * UNIT_ROUNDOFF / _NEWTON_ATOL
    if fastest < shortest:
        raise ValueError(
            f"time_scales.hidden = {fastest:.3g} is too short to be integrated to t1 = {t1:g} (limit {shortest:.1e}): "
            "raise eps (to 1e-3 with the default ladder), or take the equilibrium from `solve`."
        )


def _warn_if_unstable(problem: AnyProblem, scales: TimeScales) -> None:
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
def _circuit(problems: Any, scales: TimeScales, first: Weights, t1: Any, reduced: bool, save: int) -> CircuitPath:
    import diffrax  # slow to import, and only the two integrators need it
    import optimistix

    from .convex import certificate_of, nearest, over_batch

    times = jnp.linspace(0.0, t1, save)
    method = diffrax.Kvaerno5(root_finder=optimistix.Newton(rtol=_NEWTON_RTOL, atol=_NEWTON_ATOL))
    build = _reduced_circuit if reduced else _full_circuit

    def path_of(problem: Any, constants: jax.Array, begin: jax.Array) -> Any:
        velocity, layers = build(problem, TimeScales(*constants), begin)
        layers = Layers(*follow(velocity, method, layers, times, _TOLERANCES, _MAX_STEPS))
        if reduced:
            layers = layers._replace(a=layers.a @ _hidden(problem).encode.T)
        if isinstance(problem, Problem):
            weights = layers.w / jnp.sum(layers.w, axis=-1, keepdims=True)
            return weights, layers, jax.vmap(partial(certificate_at, problem))(weights)
        weights = jax.vmap(partial(nearest, problem))(layers.w)
        return weights, layers, jax.vmap(partial(certificate_of, problem))(weights)

    constants = jnp.stack(jnp.broadcast_arrays(*scales), axis=-1)
    return CircuitPath(times, *over_batch(path_of, problems, constants, first))


def _log(a: jax.Array) -> jax.Array:
    return jnp.log(jnp.maximum(a, MIXTURE_FLOOR))


def _hidden(problem: AnyProblem) -> Any:
    """What layers a and b compute: grad F(v) = transfer(v encode^T) encode + drive."""
    if isinstance(problem, Problem):
        from .complexities import GradientLayers

        return GradientLayers(problem.pi, _log, problem.action_cost @ problem.pi)
    return problem.complexity.layers(problem.parameters, problem.log_prior.shape[-1])


def _slow_layers(scales: TimeScales, y: Any, log_m: Any, r: Any, w: Any) -> tuple[Any, ...]:
    """The softmax unit: (d ln m, dr, dw)/dt."""
    return (
        jnp.expm1(logsumexp(y) - log_m) / scales.softmax,
        (y - log_m - r) / scales.softmax,
        (jnp.exp(r) - w) / scales.weights,
    )


def _threshold_layers(problem: Any, scales: TimeScales, dy: Any, log_m: Any, r: Any, w: Any) -> tuple[Any, ...]:
    """Units above a threshold that they inhibit together: (d ln m, dr, dw)/dt."""
    from .regularisers import unlink

    units, _ = unlink(r, 1.0 if problem.alpha is None else problem.alpha)
    if problem.caps is not None:
        units = jnp.minimum(units, jnp.where(problem.caps < 1.0, problem.caps, jnp.inf))
    dm = (jnp.sum(units) - 1.0) / scales.softmax
    return dm, dy - dm, (units - w) / scales.weights


def _outer_layers(problem: AnyProblem, scales: TimeScales, beta: Any, outer: tuple[Any, ...]) -> tuple[Any, ...]:
    """(dy, d ln m, dr, dw)/dt, if beta is the gradient of F."""
    y, log_m, r, w = outer
    if isinstance(problem, Problem):
        dy = (-problem.eps * y - beta + problem.eps * problem.log_prior) / scales.gradient
        return dy, *_slow_layers(scales, y, log_m, r, w)
    from .regularisers import link

    dy = (problem.eps * (link(problem.log_prior, problem.alpha) - y) - beta) / scales.gradient
    return dy, *_threshold_layers(problem, scales, dy, log_m, r, w)


def _at_rest(problem: AnyProblem, first: Any) -> tuple[Any, ...]:
    """Layers y, ln m, r and w as they are when the weights have been `first` for ever."""
    if isinstance(problem, Problem):
        y = problem.log_prior - primitive_cost(problem, first) / problem.eps
        return y, logsumexp(y), y - logsumexp(y), first
    from .regularisers import link, respond

    encode, transfer, drive = _hidden(problem)
    y = link(problem.log_prior, problem.alpha) - (transfer(encode @ first) @ encode + drive) / problem.eps
    _, level = respond(y, problem.caps, problem.alpha)
    return y, level, y - level, first


def _full_circuit(problem: AnyProblem, scales: TimeScales, first: Any) -> tuple[_Velocity, tuple[Any, ...]]:
    encode, transfer, drive = _hidden(problem)

    def velocity(t: Any, layers: Any, _: Any) -> tuple[Any, ...]:
        a, b, *outer = layers
        inner = (encode @ outer[-1] - a) / scales.hidden, (transfer(a) - b) / scales.hidden
        return *inner, *_outer_layers(problem, scales, b @ encode + drive, tuple(outer))

    a = encode @ first
    return velocity, (a, transfer(a), *_at_rest(problem, first))


def _reduced_circuit(problem: AnyProblem, scales: TimeScales, first: Any) -> tuple[_Velocity, tuple[Any, ...]]:
    """With a = Pi v: tau_g dv/dt = w - v, and beta = Pi^T b obeys tau_g dbeta/dt = -beta + Pi^T ln(Pi v)."""
    encode, transfer, drive = _hidden(problem)

    def velocity(t: Any, layers: Any, _: Any) -> tuple[Any, ...]:
        v, beta, *outer = layers
        inner = (outer[-1] - v) / scales.hidden, (transfer(encode @ v) @ encode - beta) / scales.hidden
        return *inner, *_outer_layers(problem, scales, beta + drive, tuple(outer))

    return velocity, (first, transfer(encode @ first) @ encode, *_at_rest(problem, first))
