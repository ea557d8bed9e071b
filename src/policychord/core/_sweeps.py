"""Single passes over the primitives, compiled: mixture, entropy, curvature, cost.

Narrow problems are read column by column (a copy with the primitives as rows, so that loops run along the actions),
wide ones row by row, in place.
"""

import math

import numpy as np
from llvmlite import ir
from numba import float64, uint64
from numba.extending import intrinsic

from ._compile import compiled
from ._method import MIXTURE_FLOOR

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
# A sweep reads the primitives once and leaves entropy_a = sum_i Pi_ia ln p_i, ln p and 1/p. Of two and three primitives
# it also leaves the lower triangle of curvature = Pi^T diag(1/p) Pi, which costs little there. Of more it takes longer
# than the rest, so it is formed only where a Newton step follows: the last sweep, which proves the answer, needs none.


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
def _sweep_columns(columns, w, entropy, ln_p, over_p):
    n, d = columns.shape
    for i in range(d):
        ln_p[i] = 0.0
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
    for a in range(0, n, 2):  # two at a time: half the loads; an odd last one is done twice
        a1 = min(a + 1, n - 1)
        e0 = e1 = 0.0
        for i in range(d):
            e0 += columns[a, i] * ln_p[i]
            e1 += columns[a1, i] * ln_p[i]
        entropy[a], entropy[a1] = e0, e1


@compiled()
def sweep_dense(columns, w, entropy, curvature, ln_p, over_p):
    n = columns.shape[0]
    if n == 2:
        _sweep_two(columns, w, entropy, curvature, ln_p, over_p)
    elif n == 3:
        _sweep_three(columns, w, entropy, curvature, ln_p, over_p)
    else:
        _sweep_columns(columns, w, entropy, ln_p, over_p)


@compiled()
def form_curvature(columns, over_p, curvature, scaled):
    """Fill the lower triangle of the curvature, unless the sweep has done it."""
    n, d = columns.shape
    if n == 2 or n == 3:
        return
    for a in range(0, n, 2):  # two by two entries at a time
        a1 = min(a + 1, n - 1)
        for i in range(d):
            scaled[0, i] = columns[a, i] * over_p[i]
            scaled[1, i] = columns[a1, i] * over_p[i]
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


_ROWS_PER_BLOCK = 32  # with n = 128 a block of rows is 32 KiB: read twice, fetched once


@compiled()
def sweep_wide(rows, w, entropy, _curvature, ln_p, over_p):
    d, n = rows.shape
    for a in range(n):
        entropy[a] = 0.0
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
def curvature_times(rows, over_p, v, out, along):
    """out = Pi^T diag(1/p) Pi v, without ever forming the matrix; along = Pi v, unless its size is zero."""
    d, n = rows.shape
    keeps = along.size > 0
    for a in range(n):
        out[a] = 0.0
    for i in range(d):
        total = 0.0
        for a in range(n):
            total += rows[i, a] * v[a]
        if keeps:
            along[i] = total
        total *= over_p[i]
        for a in range(n):
            out[a] += rows[i, a] * total


# ---------------------------------------------------------------------- before the first sweep


@compiled()
def gather_columns(pi, columns):
    d, n = pi.shape
    for a in range(n):
        for i in range(d):
            columns[a, i] = pi[i, a]


# linear = Pi^T (s - centre), magnitude = Pi^T |s - centre|, with the centre of `objective.expected_cost`. Both return
# that centre and by how much a column misses one, which is infinite for a column with a negative entry.


@compiled()
def centre_cost_columns(columns, cost, linear, magnitude):
    n, d = columns.shape
    first = 0
    while first < d - 1 and columns[0, first] == 0.0:
        first += 1
    centre = 0.0
    for i in range(d):
        centre += columns[0, i] * (cost[i] - cost[first])
    centre += cost[first]
    amiss = 0.0
    for a in range(n):
        total = size = mass = 0.0
        for i in range(d):
            total += columns[a, i] * (cost[i] - centre)
            size += columns[a, i] * abs(cost[i] - centre)
            mass += columns[a, i] if columns[a, i] >= 0.0 else math.inf
        linear[a], magnitude[a] = total, size
        amiss = max(amiss, abs(mass - 1.0))
    return centre, amiss


@compiled()
def centre_cost_rows(rows, cost, linear, magnitude, mass):
    d, n = rows.shape
    first = 0
    while first < d - 1 and rows[first, 0] == 0.0:
        first += 1
    centre = 0.0
    for i in range(d):
        centre += rows[i, 0] * (cost[i] - cost[first])
    centre += cost[first]
    for a in range(n):
        linear[a] = magnitude[a] = mass[a] = 0.0
    for i in range(d):
        for a in range(n):
            linear[a] += rows[i, a] * (cost[i] - centre)
            magnitude[a] += rows[i, a] * abs(cost[i] - centre)
            mass[a] += rows[i, a] if rows[i, a] >= 0.0 else math.inf
    amiss = 0.0
    for a in range(n):
        amiss = max(amiss, abs(mass[a] - 1.0))
    return centre, amiss


# ------------------------------------------------------------------- after the last one: derivatives
# From u, with q = Pi u: ds = -q and dPi_ia = -[ u_a (ln p_i + s_i) + w_a q_i / p_i ]. Rows of two and three entries are
# written out, with their stride as a number, because only then do loops along the actions vectorise.


@compiled()
def pull_cost(rows, u, d_cost):
    d, n = rows.shape
    flat = rows.reshape(rows.size)
    if n == 2:
        for i in range(d):
            d_cost[i] = -(flat[2 * i] * u[0] + flat[2 * i + 1] * u[1])
    elif n == 3:
        for i in range(d):
            d_cost[i] = -(flat[3 * i] * u[0] + flat[3 * i + 1] * u[1] + flat[3 * i + 2] * u[2])
    else:
        for i in range(d):
            q = 0.0
            for a in range(n):
                q += rows[i, a] * u[a]
            d_cost[i] = -q


@compiled()
def pull_primitives(level, over_p, w, u, d_cost, d_rows):
    """After `pull_cost`, which has left -q in `d_cost`."""
    d, n = d_rows.shape
    flat = d_rows.reshape(d_rows.size)
    if n == 2:
        w0, w1, u0, u1 = w[0], w[1], u[0], u[1]
        for i in range(d):
            fall, pull = -level[i], d_cost[i] * over_p[i]
            flat[2 * i] = u0 * fall + w0 * pull
            flat[2 * i + 1] = u1 * fall + w1 * pull
    elif n == 3:
        w0, w1, w2, u0, u1, u2 = w[0], w[1], w[2], u[0], u[1], u[2]
        for i in range(d):
            fall, pull = -level[i], d_cost[i] * over_p[i]
            flat[3 * i] = u0 * fall + w0 * pull
            flat[3 * i + 1] = u1 * fall + w1 * pull
            flat[3 * i + 2] = u2 * fall + w2 * pull
    else:
        for i in range(d):
            fall, pull = -level[i], d_cost[i] * over_p[i]
            for a in range(n):
                d_rows[i, a] = u[a] * fall + w[a] * pull
