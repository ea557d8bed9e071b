"""The equilibrium solver in JAX: the method of `equilibrium.py` for any device, traceable throughout.

One turn of the loop is one evaluation at the trial point, then a decision: accept it and find the next
direction, or shorten the step, or restart hot, or take the mirror step.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import cho_factor, cho_solve
from jax.scipy.sparse.linalg import cg

from . import _method as method
from .objective import centred_cost

_UNROLLED = 4  # up to so many primitives sums and factors are written out term by term, which XLA vectorises


class _State(NamedTuple):
    z: jax.Array  # log-weights of the trial point
    kept_z: jax.Array  # the last accepted point, its gradient, energy and Newton step
    kept_g: jax.Array
    kept_energy: jax.Array
    step: jax.Array
    slope: jax.Array
    length: jax.Array
    temperature: jax.Array
    gap: jax.Array
    floor: jax.Array  # the part of the gap that rounding adds
    rejections: jax.Array
    finishing: jax.Array
    passes: jax.Array
    homotopy: jax.Array
    unconditional: jax.Array  # nothing to compare the trial point with
    converged: jax.Array
    failed: jax.Array
    hidden: jax.Array  # passes in a row in which rounding made up most of the gap


def descend(pi, cost, eps, log_prior, start, tol, max_passes: int):
    """Solve one problem from the log-weights `start`: (log_weights, gap, passes, outcome)."""
    linear, magnitude, offset, relative = centred_cost(pi, cost)
    columns = pi.T  # loops along the actions vectorise
    typical = method.typical_rounding(pi.shape[0])

    def turn(state: _State) -> _State:
        # the last pass certifies what was reached at the right temperature
        final = state.passes == max_passes - 1
        z, temperature = jnp.where(final, state.kept_z, state.z), jnp.where(final, eps, state.temperature)
        unconditional = state.unconditional | final
        w = jnp.exp(z)
        p = jnp.maximum(_mix(columns, w), method.MIXTURE_FLOOR)
        entropy = _on_columns(columns, _log(p))
        curvature = _curvature(columns, p)
        g = linear + entropy + temperature * (z - log_prior)
        energy = w @ g
        own = temperature * (1.0 + jnp.abs(z) + jnp.abs(log_prior))
        blur = typical * (1.0 + jnp.max(magnitude - jnp.minimum(entropy, 0.0) + own))

        def judge(g, temperature):
            error = method.gradient_rounding(relative, offset + magnitude, entropy, temperature, z, log_prior)
            return method.bounded_gap(w, z, g, error, temperature[None])

        gap, floor, log_ratio = judge(g, temperature)
        widest = jnp.max(jnp.where(w > method.RESTING, jnp.abs(log_ratio), 0.0))
        # where rounding hides whether the energy fell, gap or gradient decide: else two points could swap for ever
        enough = state.kept_energy + method.ARMIJO * state.length * state.slope
        # (at the end there is nothing left to fall: what is still certified is as good)
        better = (gap <= method.GAP_FALL * state.gap) | ((state.finishing > 0) & (gap <= tol))
        better = better | _came_downhill(w, g, state.kept_z)
        fell = (energy < enough - blur) | ((energy <= enough + blur) & better)
        accepted = unconditional | fell

        # accepted: judge it, cool down if it is good enough for this temperature, and aim again
        good = accepted & (temperature <= eps) & (gap <= tol)
        finishing = state.finishing + good
        converged = good & ((widest <= method.SETTLED) | (finishing > method.FINISHING_PASSES) | final)
        cooling = jnp.where(state.passes < method.RETRY_AFTER, method.COOLING, method.GENTLE_COOLING)
        cooled, cool_g, cool_energy, cool_gap, cool_floor = _cool(
            judge, w, g, energy, gap, floor, temperature, eps, cooling, z - log_prior
        )
        # a primitive on the floor that wants to fall further is held: its step would mean nothing
        held = (w <= method.RESTING) & (cool_g >= cool_energy)
        root_w = jnp.where(held, 0.0, jnp.exp(0.5 * z))
        force = root_w * (cool_energy - cool_g)
        y = _newton(pi, p, curvature, root_w, force, cooled, cool_gap)
        step = jnp.where(held, 0.0, y / jnp.where(held, 1.0, root_w))
        aimed = state._replace(
            z=_normalise(z + step), kept_z=z, kept_g=cool_g, kept_energy=cool_energy, step=step,
            slope=-jnp.sum(force * y), length=jnp.ones_like(energy), temperature=cooled,
            gap=cool_gap, floor=cool_floor, rejections=jnp.zeros_like(state.rejections), finishing=finishing,
            unconditional=jnp.zeros_like(accepted), converged=converged,
        )  # fmt: skip
        done = state._replace(
            z=_extend(z, w, g, energy, temperature, _diagonal(pi, p, curvature)),
            gap=gap,
            finishing=finishing,
            converged=converged,
        )
        # rejected: shorten the step, at last take the mirror step
        rejections, length = state.rejections + 1, method.BACKTRACK * state.length
        mirror = rejections >= method.REJECTIONS_BEFORE_MIRROR
        mirror_z = state.kept_z - state.kept_g / (1.0 + temperature)
        shorter = state._replace(
            z=_normalise(jnp.where(mirror, mirror_z, state.kept_z + length * state.step)),
            length=length, rejections=jnp.where(mirror, 0, rejections), unconditional=mirror,
        )  # fmt: skip

        # after the first rejection, and in the second attempt, restart hot from the prior
        moved, passes = _select(accepted, aimed, shorter), state.passes + 1
        retry = passes == method.RETRY_AFTER
        limited = (moved.temperature <= eps) & (moved.floor >= method.ROUNDING_SHARE * moved.gap)
        hidden = jnp.where(limited, state.hidden + 1, 0)
        restart = retry | (~accepted & ~state.homotopy & (eps < 1.0))
        yes = jnp.ones_like(accepted)
        hot = moved._replace(
            z=_normalise(log_prior), temperature=jnp.maximum(1.0, eps), homotopy=yes, unconditional=yes,
            rejections=jnp.zeros_like(rejections),
        )  # fmt: skip
        after = _select(converged, done, _select(restart, hot, moved))
        return after._replace(passes=passes, failed=jnp.isnan(energy), hidden=hidden)

    def running(state: _State):
        return ~(state.converged | state.failed | (state.hidden == method.HIDDEN_PASSES)) & (state.passes < max_passes)

    zero, no = jnp.zeros_like(eps), jnp.zeros(jnp.shape(eps), bool)
    # columns that do not sum to one were not made by `problem`, and nothing is known about them
    fine = (eps > 0.0) & (relative[0] <= method.COLUMN_TOLERANCE)
    z = jnp.where(fine, _normalise(start), jnp.nan)
    first = _State(
        z=z, kept_z=z, kept_g=jnp.zeros_like(z), kept_energy=zero + jnp.inf, step=jnp.zeros_like(z), slope=zero,
        length=zero + 1.0, temperature=eps, gap=zero + jnp.inf, floor=zero, rejections=zero.astype(int),
        finishing=zero.astype(int), passes=zero.astype(int), homotopy=no, unconditional=~no, converged=no,
        failed=~fine, hidden=zero.astype(int),
    )  # fmt: skip
    last = lax.while_loop(running, turn, first)
    # what was not reached is the last accepted point; its gap counts if it is that of the right temperature
    z = jnp.where(last.converged | last.failed, last.z, last.kept_z)
    known = last.converged | (~last.failed & (last.temperature <= eps))
    stopped = known & (last.floor >= method.ROUNDING_SHARE * last.gap)
    outcome = jnp.select(
        [last.converged, last.failed, stopped],
        [
            jnp.int8(method.Outcome.CONVERGED),
            jnp.int8(method.Outcome.BAD_INPUT),
            jnp.int8(method.Outcome.ROUNDING_LIMIT),
        ],
        jnp.int8(method.Outcome.NOT_CONVERGED),
    )
    return z, jnp.where(known, last.gap, jnp.inf), last.passes, outcome


def _log(p):
    """ln p for normal p > 0 in additions and products, which XLA vectorises; the formula of `_sweeps._log`."""

    def as_float(bits):
        return lax.bitcast_convert_type(bits, jnp.float64)

    root_half = 0x3FE6A09E667F3BCD  # bits of sqrt(1/2)
    shifted = lax.bitcast_convert_type(p, jnp.uint64) + np.uint64(0x3FF0000000000000 - root_half)
    k = as_float((shifted >> np.uint64(52)) | np.uint64(0x4330000000000000)) - float(2**52 + 1023)
    f = as_float((shifted & np.uint64(0x000FFFFFFFFFFFFF)) + np.uint64(root_half)) - 1.0
    t = f / (2.0 + f)
    q = t * t
    q2 = q * q
    # (1/5) q and not q/5: XLA divides where the program says so
    low = (1 / 3 + (1 / 5) * q) + q2 * (1 / 7 + (1 / 9) * q)
    high = (1 / 11 + (1 / 13) * q) + q2 * ((1 / 15 + (1 / 17) * q) + q2 * (1 / 19 + (1 / 21) * q))
    return k * math.log(2.0) + 2.0 * (t + t * (q * (low + (q2 * q2) * high)))


def _mix(columns, w):
    if w.size <= _UNROLLED:
        return sum(w[a] * columns[a] for a in range(w.size))
    return w @ columns


def _on_columns(columns, values):
    if len(columns) <= _UNROLLED:
        return jnp.stack([jnp.sum(column * values) for column in columns])
    return columns @ values


def _curvature(columns, p):
    """K, where it is formed at all."""
    n, over_p = len(columns), 1.0 / p
    if n > method.DENSE_UP_TO:
        return None
    if n > _UNROLLED:
        return (columns * over_p) @ columns.T
    over = [columns[a] * over_p for a in range(n)]
    half = {(a, b): jnp.sum(over[a] * columns[b]) for a in range(n) for b in range(a + 1)}
    return jnp.stack([jnp.stack([half[max(a, b), min(a, b)] for b in range(n)]) for a in range(n)])


def _newton(pi, p, curvature, root_w, force, temperature, gap):
    """Solve (S K S + T I) y = force, S = diag(root_w), K = Pi^T diag(1/p) Pi."""
    if force.size > method.DENSE_UP_TO:
        # conjugate gradients would not see a primitive of negligible weight that wants to grow; its diagonal is enough
        light = (root_w * root_w <= method.NEGLIGIBLE) & (force > temperature * root_w)
        heavy, heavy_force = jnp.where(light, 0.0, root_w), jnp.where(light, 0.0, force)
        y = _by_cg(pi, p, heavy, heavy_force, temperature, jnp.minimum(method.CG_FORCING, jnp.sqrt(gap / temperature)))
        return jnp.where(light, force / (root_w * root_w * _diagonal(pi, p, None) + temperature), y)
    system = root_w[:, None] * curvature * root_w + temperature * jnp.eye(force.size)
    return _cholesky_solve(system, force)


def _cholesky_solve(system, force):
    n = force.size
    if n > _UNROLLED:
        return cho_solve(cho_factor(system), force)
    factor, y = {}, []
    for a in range(n):
        total = force[a]
        for b in range(a + 1):
            entry = system[a, b] - sum(factor[a, c] * factor[b, c] for c in range(b))
            factor[a, b] = jnp.sqrt(entry) if a == b else entry / factor[b, b]
            total = total - factor[a, b] * y[b] if b < a else total
        y.append(total / factor[a, a])
    for a in range(n - 1, -1, -1):
        y[a] = (y[a] - sum(factor[b, a] * y[b] for b in range(a + 1, n))) / factor[a, a]
    return jnp.stack(y)


def _by_cg(pi, p, root_w, force, temperature, reduction):
    """The same by conjugate gradients: K is never formed."""

    def times(v):
        return root_w * (((pi @ (root_w * v)) / p) @ pi) + temperature * v

    return cg(times, force, tol=reduction, maxiter=4 * force.size)[0]


def _came_downhill(w, g, kept_z):
    """Whether g.(w - w_kept) <= 0: the energy is convex, so it fell. Tiny weights count, hence the heaviest's g."""
    return jnp.sum((g - g[jnp.argmax(w)]) * (w - jnp.exp(kept_z))) <= 0.0


def _cool(judge, w, g, energy, gap, floor, temperature, eps, cooling, log_ratio):
    """Lower the temperature of the homotopy while the point is good enough for it, or as good as rounding allows."""

    def warm(carry):
        temperature, _, _, gap, floor = carry
        return (temperature > eps) & ((gap <= 0.1 * temperature) | (floor >= method.ROUNDING_SHARE * gap))

    def cooler(carry):
        temperature, g, *_ = carry
        after = jnp.maximum(eps, cooling * temperature)
        g = g + (after - temperature) * log_ratio
        return after, g, w @ g, *judge(g, after)[:2]

    return lax.while_loop(warm, cooler, (temperature, g, energy, gap, floor))


def _extend(z, w, g, mean, temperature, diagonal):
    """Give primitives on the floor, and no others, their log-weight, by the diagonal of a Newton step."""
    own = w * diagonal
    return jnp.where(z <= method.LOG_FLOOR, jnp.minimum(z + (mean - g) / (own + temperature), z), z)


def _diagonal(pi, p, curvature):
    """The diagonal of the curvature K."""
    if curvature is not None:
        return jnp.diagonal(curvature)
    return jnp.sum(pi * (pi / p[:, None]), axis=0)


def _normalise(z):
    z = jnp.maximum(z - jnp.max(z), method.LOG_FLOOR)
    return z - jnp.log(jnp.sum(jnp.exp(z)))


def _select(condition, if_true: _State, if_false: _State) -> _State:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), if_true, if_false)
