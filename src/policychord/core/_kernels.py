"""The equilibrium solver in compiled form, for batches on a CPU.

The algorithm is told in `equilibrium.py`; this file says it once more in loops that a compiler can
vectorise. Nobody else imports numba.
"""

import math
from functools import cache
from inspect import unwrap

import numpy as np
from llvmlite import ir
from numba import float64, int64, types, uint64
from numba.extending import intrinsic

from ._compile import compile_entry, compiled
from ._method import (
    ARMIJO,
    BACKTRACK,
    CG_FORCING,
    COOLING,
    DENSE_UP_TO,
    FINISHING_PASSES,
    GAP_ROUNDING,
    LOG_FLOOR,
    MIXTURE_FLOOR,
    REJECTIONS_BEFORE_MIRROR,
    RESTING,
    SETTLED,
    UNIT_ROUNDOFF,
    rounding_factor,
)

_rounding_factor = compiled()(unwrap(rounding_factor))  # a type checker may have wrapped it

# ------------------------------------------------------------------------------ logarithm

_ROOT_HALF = np.uint64(0x3FE6A09E667F3BCD)  # bits of sqrt(1/2)
_TO_ROOT_HALF = np.uint64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
_MANTISSA = np.uint64(0x000FFFFFFFFFFFFF)
_TWO_52 = np.uint64(0x4330000000000000)  # bits of 2**52: an integer or-ed in becomes 2**52 + integer
_EXPONENT_OFFSET = float(2**52 + 1023)
_SHIFT = np.uint64(52)
_LN2 = math.log(2.0)


@intrinsic
def _bits(_context, _x):
    def generate(_ctx, builder, _signature, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return uint64(float64), generate


@intrinsic
def _float(_context, _x):
    def generate(_ctx, builder, _signature, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return float64(uint64), generate


# No reassociation here: it would fold the exponent offset into the product with ln 2.
@compiled(reassociate=False)
def _log(p):
    """ln p for normal p > 0, to about one unit in the last place; branch-free, so it vectorises.

    p = 2^k m with m in [sqrt 1/2, sqrt 2), and ln m = 2 artanh(t), t = (m - 1)/(m + 1).
    """
    shifted = _bits(p) + _TO_ROOT_HALF
    k = _float((shifted >> _SHIFT) | _TWO_52) - _EXPONENT_OFFSET
    f = _float((shifted & _MANTISSA) + _ROOT_HALF) - 1.0
    t = f / (2.0 + f)
    q = t * t
    # |t| <= 0.1716: ten terms of the artanh series reach 2e-17; paired up to shorten the chain
    q2 = q * q
    low = (1 / 3 + q / 5) + q2 * (1 / 7 + q / 9)
    high = (1 / 11 + q / 13) + q2 * ((1 / 15 + q / 17) + q2 * (1 / 19 + q / 21))
    return k * _LN2 + 2.0 * (t + t * (q * (low + (q2 * q2) * high)))


# --------------------------------------------------------------------------------- sweeps
# A sweep reads the primitives once and leaves entropy_a = sum_i Pi_ia ln p_i and, where the Newton
# system is dense, the lower triangle of curvature = Pi^T diag(1/p) Pi.


@compiled()
def _sweep_two(columns, w, entropy, curvature, ln_p, over_p):
    x, y = columns[0], columns[1]
    w0, w1 = w[0], w[1]
    for i in range(x.size):
        p = max(w0 * x[i] + w1 * y[i], MIXTURE_FLOOR)
        ln_p[i], over_p[i] = _log(p), 1.0 / p
    e0 = e1 = c00 = c10 = c11 = 0.0
    for i in range(x.size):
        e0 += x[i] * ln_p[i]
        e1 += y[i] * ln_p[i]
        x_over_p = x[i] * over_p[i]
        c00 += x[i] * x_over_p
        c10 += y[i] * x_over_p
        c11 += y[i] * (y[i] * over_p[i])
    entropy[0], entropy[1] = e0, e1
    curvature[0, 0], curvature[1, 0], curvature[1, 1] = c00, c10, c11


@compiled()
def _sweep_three(columns, w, entropy, curvature, ln_p, over_p):
    x, y, z = columns[0], columns[1], columns[2]
    w0, w1, w2 = w[0], w[1], w[2]
    for i in range(x.size):
        p = max(w0 * x[i] + w1 * y[i] + w2 * z[i], MIXTURE_FLOOR)
        ln_p[i], over_p[i] = _log(p), 1.0 / p
    e0 = e1 = e2 = c00 = c10 = c20 = c11 = c21 = c22 = 0.0
    for i in range(x.size):
        e0 += x[i] * ln_p[i]
        e1 += y[i] * ln_p[i]
        e2 += z[i] * ln_p[i]
        x_over_p, y_over_p = x[i] * over_p[i], y[i] * over_p[i]
        c00 += x[i] * x_over_p
        c10 += y[i] * x_over_p
        c20 += z[i] * x_over_p
        c11 += y[i] * y_over_p
        c21 += z[i] * y_over_p
        c22 += z[i] * (z[i] * over_p[i])
    entropy[0], entropy[1], entropy[2] = e0, e1, e2
    curvature[0, 0], curvature[1, 0], curvature[2, 0] = c00, c10, c20
    curvature[1, 1], curvature[2, 1], curvature[2, 2] = c11, c21, c22


@compiled()
def _sweep_columns(columns, w, entropy, curvature, ln_p, over_p, scaled):
    n, d = columns.shape
    ln_p[:] = 0.0
    a = 0
    while a + 4 <= n:  # four columns at a time: fewer trips through the mixture
        w0, w1, w2, w3 = w[a], w[a + 1], w[a + 2], w[a + 3]
        for i in range(d):
            ln_p[i] += w0 * columns[a, i] + w1 * columns[a + 1, i] + w2 * columns[a + 2, i] + w3 * columns[a + 3, i]
        a += 4
    while a < n:
        for i in range(d):
            ln_p[i] += w[a] * columns[a, i]
        a += 1
    for i in range(d):
        p = max(ln_p[i], MIXTURE_FLOOR)
        ln_p[i], over_p[i] = _log(p), 1.0 / p
    # two by two entries of the curvature at a time: half the loads; an odd last one is done twice
    for a in range(0, n, 2):
        a1 = min(a + 1, n - 1)
        e0 = e1 = 0.0
        for i in range(d):
            e0 += columns[a, i] * ln_p[i]
            e1 += columns[a1, i] * ln_p[i]
            scaled[0, i] = columns[a, i] * over_p[i]
            scaled[1, i] = columns[a1, i] * over_p[i]
        entropy[a], entropy[a1] = e0, e1
        for b in range(0, a1 + 1, 2):
            b1 = min(b + 1, n - 1)
            c00 = c01 = c10 = c11 = 0.0
            for i in range(d):
                c00 += scaled[0, i] * columns[b, i]
                c01 += scaled[0, i] * columns[b1, i]
                c10 += scaled[1, i] * columns[b, i]
                c11 += scaled[1, i] * columns[b1, i]
            curvature[a, b], curvature[a, b1] = c00, c01
            curvature[a1, b], curvature[a1, b1] = c10, c11


@compiled()
def _sweep_dense(columns, w, entropy, curvature, ln_p, over_p, scaled):
    n = columns.shape[0]
    if n == 2:
        _sweep_two(columns, w, entropy, curvature, ln_p, over_p)
    elif n == 3:
        _sweep_three(columns, w, entropy, curvature, ln_p, over_p)
    else:
        _sweep_columns(columns, w, entropy, curvature, ln_p, over_p, scaled)


_ROWS_PER_BLOCK = 32  # with n = 128 a block of rows is 32 KiB: read twice, fetched once


@compiled()
def _sweep_rows(rows, w, entropy, ln_p, over_p):
    d, n = rows.shape
    entropy[:] = 0.0
    for first in range(0, d, _ROWS_PER_BLOCK):
        last = min(first + _ROWS_PER_BLOCK, d)
        for i in range(first, last):
            total = 0.0
            for a in range(n):
                total += rows[i, a] * w[a]
            p = max(total, MIXTURE_FLOOR)
            ln_p[i], over_p[i] = _log(p), 1.0 / p
        for i in range(first, last):
            for a in range(n):
                entropy[a] += rows[i, a] * ln_p[i]


@compiled()
def _curvature_times(rows, over_p, v, out):
    """out = Pi^T diag(1/p) Pi v, without ever forming the matrix."""
    d, n = rows.shape
    out[:] = 0.0
    for i in range(d):
        total = 0.0
        for a in range(n):
            total += rows[i, a] * v[a]
        total *= over_p[i]
        for a in range(n):
            out[a] += rows[i, a] * total


# ----------------------------------------------------------------------- Newton directions


@compiled()
def _direction_cholesky(curvature, root_w, force, temperature, factor, y):
    """Solve (S K S + T I) y = force, S = diag(root_w)."""
    n = y.size
    for a in range(n):
        total = force[a]
        for b in range(a + 1):
            entry = root_w[a] * curvature[a, b] * root_w[b]
            if a == b:
                entry += temperature
            for c in range(b):
                entry -= factor[a, c] * factor[b, c]
            if a == b:
                factor[a, a] = math.sqrt(entry)
            else:
                factor[a, b] = entry / factor[b, b]
                total -= factor[a, b] * y[b]
        y[a] = total / factor[a, a]
    for a in range(n - 1, -1, -1):
        total = y[a]
        for b in range(a + 1, n):
            total -= factor[b, a] * y[b]
        y[a] = total / factor[a, a]


@compiled()
def _direction_cg(rows, over_p, root_w, force, temperature, reduction, work, y):
    """The same system by conjugate gradients; S K S has its spectrum in [0, 1]."""
    n = y.size
    residual, search, product, scaled = work[0], work[1], work[2], work[3]
    # Start at force/(1 + T), which is the mirror step, so that one iteration already improves on it.
    y[:] = 0.0
    norm = 0.0
    for a in range(n):
        residual[a] = force[a]
        search[a] = force[a]
        norm += force[a] * force[a]
    target = norm * reduction * reduction
    for _ in range(4 * n):
        if not norm > target:
            break
        for a in range(n):
            scaled[a] = root_w[a] * search[a]
        _curvature_times(rows, over_p, scaled, product)
        bend = 0.0
        for a in range(n):
            product[a] = root_w[a] * product[a] + temperature * search[a]
            bend += search[a] * product[a]
        if not bend > 0.0:
            break  # the search direction has underflowed: nothing is left to gain
        length = norm / bend
        fresh = 0.0
        for a in range(n):
            y[a] += length * search[a]
            residual[a] -= length * product[a]
            fresh += residual[a] * residual[a]
        turn = fresh / norm
        norm = fresh
        for a in range(n):
            search[a] = residual[a] + turn * search[a]


# ------------------------------------------------------------------------------- the descent


@compiled()
def _normalise(z, w):
    """Floor the log-weights, normalise them, and leave w = exp(z)."""
    n = z.size
    top = z[0]
    for a in range(1, n):
        top = max(top, z[a])
    mass = 0.0
    for a in range(n):
        z[a] = max(z[a] - top, LOG_FLOOR)
        w[a] = math.exp(z[a])
        mass += w[a]
    shift = math.log(mass)
    for a in range(n):
        z[a] -= shift
        w[a] /= mass


@compiled()
def _gap(w, g, mean, temperature, noise):
    """The certificate T KL(w || S(w)) with its rounding floor, and the largest |ln S/w|.

    x = -(g - w.g)/T has mean zero under w, so KL = log1p(sum w (expm1 x - x)): no cancellation.
    """
    n = w.size
    top = 0.0
    widest = 0.0
    for a in range(n):
        x = (mean - g[a]) / temperature
        top = max(top, x)
        if w[a] > RESTING:
            widest = max(widest, abs(x))
    excess = mismatch = heaviest = 0.0
    if top <= 30.0:
        for a in range(n):
            x = (mean - g[a]) / temperature
            excess += w[a] * max(math.expm1(x) - x, 0.0)
            mismatch += w[a] * abs(math.expm1(x))
            heaviest = max(heaviest, w[a])
        gap = temperature * math.log1p(excess)
    else:
        for a in range(n):
            x = (mean - g[a]) / temperature
            excess += w[a] * math.exp(x - top)
            heaviest = max(heaviest, w[a])
        gap = temperature * (top + math.log(excess))
        mismatch = 2.0
    floor = noise * (mismatch + UNIT_ROUNDOFF) + 2.0 * noise * noise * (1.0 - heaviest) / temperature
    return gap * GAP_ROUNDING + floor, widest


@compiled()
def _descend(
    matrix, wide, linear, magnitude, eps, log_prior, z, warm, tol, max_passes, vectors, squares, ln_p, over_p, scaled
):
    """Minimise the energy of one problem from log-weights z; see `equilibrium.py` for the method.

    Leaves the log-weights in z and returns (gap, passes, converged).
    """
    n = z.size
    w, entropy, g, root_w = vectors[0], vectors[1], vectors[2], vectors[3]
    force, y, step, kept_z = vectors[4], vectors[5], vectors[6], vectors[7]
    kept_g, work = vectors[8], vectors[9:]
    curvature, factor = squares[0], squares[1]
    d = ln_p.size
    factor_of_rounding = _rounding_factor(d)

    temperature = eps
    homotopy = False
    length = 1.0
    rejections = 0
    kept_energy = math.inf
    slope = 0.0
    gap = trial_gap = widest = math.inf
    finishing = 0
    unconditional = True  # first point, restart or mirror step: nothing to compare with
    if not warm:
        z[:] = log_prior
    _normalise(z, w)

    for passes in range(1, max_passes + 1):
        if wide:
            _sweep_rows(matrix, w, entropy, ln_p, over_p)
        else:
            _sweep_dense(matrix, w, entropy, curvature, ln_p, over_p, scaled)
        energy = 0.0
        noise = 0.0
        for a in range(n):
            g[a] = linear[a] + entropy[a] + temperature * (z[a] - log_prior[a])
            energy += w[a] * g[a]
            # what `gradient_size` of objective.py says
            regulariser = temperature * (1.0 + abs(z[a]) + abs(log_prior[a]))
            noise = max(noise, magnitude[a] - min(entropy[a], 0.0) + 1.0 + regulariser)
        noise *= factor_of_rounding
        if energy != energy:
            z[:] = math.nan
            return math.inf, passes, False

        # where rounding hides whether the energy fell, the gap decides: else two points could swap for ever
        enough = kept_energy + ARMIJO * length * slope
        accepted = unconditional or energy < enough
        if accepted or energy <= enough + noise:
            trial_gap, widest = _gap(w, g, energy, temperature, noise)
            accepted = accepted or trial_gap < gap
        if accepted:
            unconditional = False
            rejections = 0
            gap = trial_gap
            if temperature <= eps and gap <= tol:
                finishing += 1
                if widest <= SETTLED or finishing > FINISHING_PASSES:
                    _extend_log_weights(matrix, wide, z, w, g, energy, temperature, over_p)
                    return gap, passes, True
            while temperature > eps and gap <= 0.1 * temperature:
                cooler = max(eps, COOLING * temperature)
                energy = 0.0
                for a in range(n):
                    g[a] += (cooler - temperature) * (z[a] - log_prior[a])
                    energy += w[a] * g[a]
                temperature = cooler
                gap, widest = _gap(w, g, energy, temperature, noise)
            for a in range(n):
                # a primitive on the floor that wants to fall further is held: its step would mean nothing
                held = w[a] <= RESTING and g[a] >= energy
                root_w[a] = 0.0 if held else math.sqrt(w[a])
                force[a] = root_w[a] * (energy - g[a])
                kept_z[a] = z[a]
                kept_g[a] = g[a]
            if wide:
                reduction = min(CG_FORCING, math.sqrt(gap / temperature))
                _direction_cg(matrix, over_p, root_w, force, temperature, reduction, work, y)
            else:
                _direction_cholesky(curvature, root_w, force, temperature, factor, y)
            slope = 0.0
            for a in range(n):
                step[a] = y[a] / root_w[a] if root_w[a] > 0.0 else 0.0
                slope -= force[a] * y[a]
            kept_energy = energy
            length = 1.0
        elif not homotopy and eps < 1.0:
            homotopy = True
            temperature = 1.0
            z[:] = log_prior
            unconditional = True
            _normalise(z, w)
            continue
        else:
            rejections += 1
            length *= BACKTRACK

        if rejections >= REJECTIONS_BEFORE_MIRROR:
            for a in range(n):
                z[a] = kept_z[a] - kept_g[a] / (1.0 + temperature)
            unconditional = True
            rejections = 0
        else:
            for a in range(n):
                z[a] = kept_z[a] + length * step[a]
        _normalise(z, w)
    return gap, max_passes, False


@compiled()
def _extend_log_weights(matrix, wide, z, w, g, mean, temperature, over_p):
    """Give primitives resting on the floor their log-weight, by the diagonal of a Newton step."""
    for a in range(z.size):
        if w[a] <= RESTING:
            own = 0.0
            for i in range(over_p.size):
                entry = matrix[i, a] if wide else matrix[a, i]
                own += entry * (entry * over_p[i])
            z[a] = min(z[a] + (mean - g[a]) / (w[a] * own + temperature), z[a])


# ---------------------------------------------------------------------------------- batches


@compiled()
def _gather_columns(pi, columns):
    d, n = pi.shape
    for a in range(n):
        for i in range(d):
            columns[a, i] = pi[i, a]


@compiled()
def _centre_cost_columns(columns, cost, linear, magnitude):
    """linear = Pi^T (s - centre), magnitude = Pi^T |s - centre|, with the centre of `centred_cost` in objective.py."""
    n, d = columns.shape
    first = 0
    while first < d - 1 and columns[0, first] == 0.0:
        first += 1
    centre = 0.0
    for i in range(d):
        centre += columns[0, i] * (cost[i] - cost[first])
    centre += cost[first]
    for a in range(n):
        total = size = 0.0
        for i in range(d):
            total += columns[a, i] * (cost[i] - centre)
            size += columns[a, i] * abs(cost[i] - centre)
        linear[a], magnitude[a] = total, size


@compiled()
def _centre_cost_rows(rows, cost, linear, magnitude):
    d, n = rows.shape
    first = 0
    while first < d - 1 and rows[first, 0] == 0.0:
        first += 1
    centre = 0.0
    for i in range(d):
        centre += rows[i, 0] * (cost[i] - cost[first])
    centre += cost[first]
    linear[:] = 0.0
    magnitude[:] = 0.0
    for i in range(d):
        for a in range(n):
            linear[a] += rows[i, a] * (cost[i] - centre)
            magnitude[a] += rows[i, a] * abs(cost[i] - centre)


# Whoever asks for `kept_ln_p` (it then has a row for each problem) gets the mixture and the curvature at the
# optimum as well, which is all that the implicit derivative needs.


def _solve_dense(
    pi, pi_step, cost, eps, log_prior, start, warm, tol, max_passes,
    log_weights, gap, passes, converged, kept_ln_p, kept_over_p, kept_curvature,
):  # fmt: skip
    batch, d, n = eps.size, pi.shape[1], pi.shape[2]
    columns = np.empty((n, d))
    vectors, squares = np.empty((9, n)), np.empty((2, n, n))
    linear, magnitude = np.empty(n), np.empty(n)
    ln_p, over_p, scaled = np.empty(d), np.empty(d), np.empty((2, d))
    for k in range(batch):
        _gather_columns(pi[k * pi_step], columns)
        _centre_cost_columns(columns, cost[k], linear, magnitude)
        z = log_weights[k]
        if warm:
            z[:] = start[k]
        gap[k], passes[k], converged[k] = _descend(
            columns, False, linear, magnitude, eps[k], log_prior[k], z, warm, tol, max_passes,
            vectors, squares, ln_p, over_p, scaled,
        )  # fmt: skip
        if kept_ln_p.shape[0] > 0:
            kept_ln_p[k], kept_over_p[k] = ln_p, over_p
            for a in range(n):
                for b in range(a + 1):
                    kept_curvature[k, a, b] = kept_curvature[k, b, a] = squares[0, a, b]


def _solve_wide(
    pi, pi_step, cost, eps, log_prior, start, warm, tol, max_passes,
    log_weights, gap, passes, converged, kept_ln_p, kept_over_p, kept_curvature,
):  # fmt: skip
    batch, d, n = eps.size, pi.shape[1], pi.shape[2]
    vectors, squares = np.empty((13, n)), np.empty((2, 0, 0))
    linear, magnitude = np.empty(n), np.empty(n)
    ln_p, over_p, scaled = np.empty(d), np.empty(d), np.empty((2, 0))
    for k in range(batch):
        _centre_cost_rows(pi[k * pi_step], cost[k], linear, magnitude)
        z = log_weights[k]
        if warm:
            z[:] = start[k]
        gap[k], passes[k], converged[k] = _descend(
            pi[k * pi_step], True, linear, magnitude, eps[k], log_prior[k], z, warm, tol, max_passes,
            vectors, squares, ln_p, over_p, scaled,
        )  # fmt: skip
        if kept_ln_p.shape[0] > 0:
            kept_ln_p[k], kept_over_p[k] = ln_p, over_p


# --------------------------------------------------------------------------------- entries
# One fixed signature each, so that nothing compiles twice. Everything is contiguous; primitives shared by a
# whole batch are read with pi_step = 0 instead of being copied.


def _given(rank: int):
    return types.Array(float64, rank, "C", readonly=True)


def _filled(rank: int, dtype=float64):
    return types.Array(dtype, rank, "C")


@cache
def _kernel_for(wide: bool):
    signature = types.void(
        _given(3), int64, _given(2), _given(1), _given(2), _given(2), types.boolean, float64, int64,
        _filled(2), _filled(1), _filled(1, int64), _filled(1, types.boolean), _filled(2), _filled(2), _filled(3),
    )  # fmt: skip
    return compile_entry(signature, _solve_wide if wide else _solve_dense)


def _flat(array, core: int, batch: tuple[int, ...]):
    """`array` as contiguous float64 with its batch axes broadcast and joined into one."""
    array = np.asarray(array, dtype=np.float64)
    tail = array.shape[array.ndim - core :]
    if array.shape != batch + tail:
        array = np.broadcast_to(array, batch + tail)
    return np.ascontiguousarray(array.reshape((-1, *tail)))


def _flat_pi(pi, batch: tuple[int, ...]):
    """The primitives and their step through the batch: 0 where all problems share one matrix."""
    pi = np.asarray(pi, dtype=np.float64)
    if pi.shape[:-2] != batch:
        pi = np.broadcast_to(pi, batch + pi.shape[-2:])
    if batch and pi.size and not any(pi.strides[:-2]):
        return np.ascontiguousarray(pi[(0,) * len(batch)])[None], 0
    return _flat(pi, 2, batch), 1


def solve_batch(pi, cost, eps, log_prior, start, tol: float, max_passes: int, keep: bool = False):
    """Solve every problem of a batch; `start` holds log-weights, or None for the prior.

    Returns NumPy arrays (log_weights, gap, passes, converged) and, to `keep` for a derivative, ln p and 1/p of the
    mixture and the curvature Pi^T diag(1/p) Pi (of size zero where it is never formed).
    """
    (d, n), vectors = np.shape(pi)[-2:], (cost, log_prior, log_prior if start is None else start)
    batch = np.broadcast_shapes(np.shape(pi)[:-2], np.shape(eps), *(np.shape(v)[:-1] for v in vectors))
    pi, pi_step = _flat_pi(pi, batch)
    eps = _flat(eps, 0, batch)
    cost, log_prior, initial = (_flat(v, 1, batch) for v in vectors)
    log_weights, gap = np.empty((eps.size, n)), np.empty(eps.size)
    passes, converged = np.empty(eps.size, np.int64), np.empty(eps.size, np.bool_)
    side = n if n <= DENSE_UP_TO else 0
    rows = eps.size if keep else 0
    kept = np.empty((rows, d)), np.empty((rows, d)), np.empty((rows, side, side))
    _kernel_for(n > DENSE_UP_TO)(
        pi, pi_step, cost, eps, log_prior, initial, start is not None, tol, max_passes,
        log_weights, gap, passes, converged, *kept,
    )  # fmt: skip
    found = log_weights, gap, passes, converged, *(kept if keep else ())
    return tuple(array.reshape(batch + array.shape[1:]) for array in found)
