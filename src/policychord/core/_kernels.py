"""The equilibrium solver in compiled form, for batches on a CPU.

`equilibrium.py` describes the method; this file repeats it in loops that a compiler understands. The passes over the
primitives are in `_sweeps.py`.
"""

import math
from inspect import unwrap

import numpy as np
from numba import float64, int8, int64, types

from . import _method as method
from . import _sweeps as sweeps
from ._checks import joint_axes
from ._compile import compile_entry, compiled, interpreted, is_kept, once

_CONVERGED, NOT_CONVERGED = int(method.Outcome.CONVERGED), int(method.Outcome.NOT_CONVERGED)
_ROUNDING_LIMIT, _BAD_INPUT = int(method.Outcome.ROUNDING_LIMIT), int(method.Outcome.BAD_INPUT)

# a type checker may have wrapped them
_typical_rounding = compiled()(unwrap(method.typical_rounding))
_relative_rounding = compiled()(unwrap(method.relative_rounding))
_gap_rounding = compiled()(unwrap(method.gap_rounding))

_IN_PYTHON, _PATIENCE = 40_000, 200  # probabilities, of which each takes some ten microseconds; passes
_NEGLIGIBLE_SHARE = 1e-3  # of a bound
# the rounding of the largest |ln w| that a sum over primitives leaves
_MIXED = method.UNIT_ROUNDOFF * (40.0 - method.LOG_FLOOR)

# Loops stand where a slice could be assigned: numba compiles them in half the time.


@compiled()
def _copy(values, into):
    for a in range(into.size):
        into[a] = values[a]


@compiled()
def _fill(into, value):
    for a in range(into.size):
        into[a] = value


@compiled()
def _add(values, into):
    for a in range(into.size):
        into[a] += values[a]


# ----------------------------------------------------------------------- Newton directions


@compiled()
def _direction_cholesky(curvature, root_w, force, temperature, factor, y):
    """Solve (S K S + T I) y = force, S = diag(root_w), from the lower triangle of K.

    The diagonal of the factor is kept as its reciprocal: divisions take longer than all products.
    """
    n = y.size
    for a in range(n):
        total = force[a]
        for b in range(a):
            entry = root_w[a] * curvature[a, b] * root_w[b]
            for c in range(b):
                entry -= factor[a, c] * factor[b, c]
            entry *= factor[b, b]
            factor[a, b] = entry
            total -= entry * y[b]
        entry = root_w[a] * curvature[a, a] * root_w[a] + temperature
        for c in range(a):
            entry -= factor[a, c] * factor[a, c]
        factor[a, a] = 1.0 / math.sqrt(entry)
        y[a] = total * factor[a, a]
    for a in range(n - 1, -1, -1):
        total = y[a]
        for b in range(a + 1, n):
            total -= factor[b, a] * y[b]
        y[a] = total * factor[a, a]


@compiled()
def _direction_cg(rows, over_p, root_w, force, temperature, reduction, work, y, along, moved):
    """The same system by conjugate gradients; S K S has its spectrum in [0, 1].

    `moved` is filled with Pi S y, `along` is its scratch space; of size zero, both are left out.
    """
    n = y.size
    residual, search, product, scaled = work[0], work[1], work[2], work[3]
    _fill(moved, 0.0)
    norm = 0.0
    for a in range(n):
        y[a] = 0.0
        residual[a] = force[a]
        search[a] = force[a]
        norm += force[a] * force[a]
    target = norm * reduction * reduction
    for _ in range(4 * n):
        if not norm > target:
            break
        for a in range(n):
            scaled[a] = root_w[a] * search[a]
        sweeps.curvature_times(rows, over_p, scaled, product, along)
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
        for i in range(moved.size):
            moved[i] += length * along[i]


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
        z[a] = max(z[a] - top, method.LOG_FLOOR)
        w[a] = math.exp(z[a])
        mass += w[a]
    shift = math.log(mass)
    for a in range(n):
        z[a] -= shift
        w[a] /= mass


@compiled()
def _gap(w, g, mean, temperature, noise):
    """The gap with its floor, as in `method.bounded_gap`, that floor, and the largest |ln S/w|.

    This floor takes the largest rounding for all, |w - S| <= 4 w.|e^x - 1| and the largest variance.
    """
    n = w.size
    top = widest = top_weight = 0.0
    for a in range(n):
        x = (mean - g[a]) / temperature
        if x > top:
            top, top_weight = x, w[a]
        if w[a] > method.RESTING:
            widest = max(widest, abs(x))
    excess = mismatch = 0.0
    if top <= method.LARGEST_EXPONENT:
        for a in range(n):
            x = (mean - g[a]) / temperature
            grown = math.expm1(x)
            excess += w[a] * max(grown - x, 0.0)
            mismatch += w[a] * abs(grown)
        gap = temperature * math.log1p(excess)
        first = noise * (min(4.0 * mismatch, 2.0) + min(excess, 1.0) + _relative_rounding(0, n))
        floor = first + noise * noise / (2.0 * temperature)
    else:
        # x, computed again, may round to another number than `top`, and they differ by thousands where x is large
        for a in range(n):
            excess += w[a] * math.exp(min((mean - g[a]) / temperature - top, 0.0))
        gap, floor = temperature * (top + math.log(max(excess, top_weight))), 4.0 * noise
    floor += method.NEGLIGIBLE_ENERGY
    return gap * _gap_rounding(n) + floor, floor, widest


@compiled()
def _sharp_floor(z, w, g, entropy, mean, temperature, relative, offset, magnitude, log_prior, error):
    """The floor entry by entry, as in `method.bounded_gap`: no rounding is left at a clear vertex."""
    n, noise, top, heaviest, mixed = z.size, 0.0, -math.inf, 0, 0.0
    for a in range(n):
        mixed = max(mixed, method.UNIT_ROUNDOFF * abs(z[a]))
        y = z[a] + (mean - g[a]) / temperature
        if y > top:
            heaviest, top = a, y
    total = excess = 0.0
    for a in range(n):
        own = temperature * (1.0 + abs(z[a]) + abs(log_prior[a]))
        error[a] = relative * (offset + magnitude[a] + abs(entropy[a])) + _relative_rounding(0, n) * own + mixed
        noise = max(noise, error[a])
        x = (mean - g[a]) / temperature
        if x > method.LARGEST_EXPONENT:
            return math.inf
        total += math.exp(min(z[a] + x - top, 0.0))
        excess += w[a] * max(math.expm1(x) - x, 0.0)
    first, by_mean, variance = _relative_rounding(0, n) * noise, 0.0, 0.0
    for a in range(n):
        log_share = min(z[a] + (mean - g[a]) / temperature - top, 0.0)
        first += abs(w[a] - math.exp(log_share) / total) * error[a]
        by_mean += w[a] * error[a]
        if a != heaviest:
            apart = error[a] + error[heaviest]
            variance += math.exp(min(log_share + 2.0 * apart / temperature, 0.0)) * apart * apart
    second = min(noise * noise, variance) / (2.0 * temperature)
    return min(first + second, 2.0 * noise) + by_mean * min(excess, 1.0) + method.NEGLIGIBLE_ENERGY


@compiled()
def _gradient(linear, magnitude, entropy, temperature, z, w, log_prior, g):
    """Fill g with the gradient; return the energy w.g and the size of the numbers that it is made of."""
    energy = size = 0.0
    for a in range(z.size):
        g[a] = linear[a] + entropy[a] + temperature * (z[a] - log_prior[a])
        energy += w[a] * g[a]
        regulariser = temperature * (1.0 + abs(z[a]) + abs(log_prior[a]))
        size = max(size, magnitude[a] - min(entropy[a], 0.0) + 1.0 + regulariser)
    return energy, size


@compiled()
def _came_downhill(w, g, kept_z):
    """Whether g.(w - w_kept) <= 0, which proves that the energy fell, because it is convex.

    Differences from the heaviest weight keep their sign however small the others are.
    """
    top = 0
    for a in range(1, w.size):
        top = a if w[a] > w[top] else top
    along = 0.0
    for a in range(w.size):
        along += (g[a] - g[top]) * (w[a] - math.exp(kept_z[a]))
    return along <= 0.0


@compiled()
def _cool(z, w, log_prior, g, energy, gap, floor, temperature, eps, cooling, noise):
    """Lower the temperature while the point is good enough for it, or as good as rounding allows; g follows.

    Returns (temperature, energy, gap, floor).
    """
    while temperature > eps and (gap <= 0.1 * temperature or floor >= method.ROUNDING_SHARE * gap):
        cooler = max(eps, cooling * temperature)
        energy = 0.0
        for a in range(z.size):
            g[a] += (cooler - temperature) * (z[a] - log_prior[a])
            energy += w[a] * g[a]
        temperature = cooler
        gap, floor, _ = _gap(w, g, energy, temperature, noise)
    return temperature, energy, gap, floor


# What differs between few and many primitives: how they are read, the Newton direction, the diagonal of K.
# `squares` holds the curvature K and its factor, `vectors` scratch space; wide problems have no squares.


@compiled()
def _direction_dense(columns, over_p, squares, scaled, root_w, force, temperature, _gap, _vectors, y):
    sweeps.form_curvature(columns, over_p, squares[0], scaled)
    _direction_cholesky(squares[0], root_w, force, temperature, squares[1], y)


@compiled()
def _direction_wide(rows, over_p, _squares, _scaled, root_w, force, temperature, gap, vectors, y):
    """Conjugate gradients, but the step of its own diagonal for a primitive of negligible weight that wants to grow."""
    reduction = min(method.CG_FORCING, math.sqrt(gap / temperature))
    heavy, heavy_force = vectors[14], vectors[15]
    for a in range(y.size):
        light = root_w[a] * root_w[a] <= method.NEGLIGIBLE and force[a] > temperature * root_w[a]
        heavy[a] = 0.0 if light else root_w[a]
        heavy_force[a] = 0.0 if light else force[a]
    nothing = vectors[10, :0]
    _direction_cg(rows, over_p, heavy, heavy_force, temperature, reduction, vectors[10:], y, nothing, nothing)
    for a in range(y.size):
        if heavy[a] < root_w[a]:
            own = root_w[a] * root_w[a] * _diagonal_wide(rows, over_p, a)
            y[a] = force[a] / (own + temperature)


@compiled()
def _diagonal_dense(columns, over_p, a):
    total = 0.0
    for i in range(over_p.size):
        total += columns[a, i] * (columns[a, i] * over_p[i])
    return total


@compiled()
def _diagonal_wide(rows, over_p, a):
    total = 0.0
    for i in range(over_p.size):
        total += rows[i, a] * (rows[i, a] * over_p[i])
    return total


def _descent(sweep, direction, diagonal):
    """The descent that is made of these three functions."""

    @compiled()
    def aim(matrix, w, g, energy, gap, temperature, over_p, squares, scaled, vectors, step):
        """Fill `step` with the Newton step in ln w and return the slope of the energy along it."""
        root_w, force, y = vectors[7], vectors[8], vectors[9]
        for a in range(w.size):
            # a primitive on the floor that wants to fall further is held: its step would mean nothing
            held = w[a] <= method.RESTING and g[a] >= energy
            root_w[a] = 0.0 if held else math.sqrt(w[a])
            force[a] = root_w[a] * (energy - g[a])
        direction(matrix, over_p, squares, scaled, root_w, force, temperature, gap, vectors, y)
        slope = 0.0
        for a in range(w.size):
            step[a] = y[a] / root_w[a] if root_w[a] > 0.0 else 0.0
            slope -= force[a] * y[a]
        return slope

    @compiled()
    def extend(matrix, z, w, g, mean, temperature, over_p):
        """Give primitives on the floor their log-weight, by the diagonal of a Newton step.

        Nobody above it is moved: the weights that leave must be the ones that were certified.
        """
        for a in range(z.size):
            if z[a] <= method.LOG_FLOOR:
                own = w[a] * diagonal(matrix, over_p, a)
                z[a] = min(z[a] + (mean - g[a]) / (own + temperature), z[a])

    @compiled()
    def descend(
        matrix, linear, magnitude, centre, amiss, eps, log_prior, z, tol, max_passes,
        vectors, squares, ln_p, over_p, scaled,
    ):  # fmt: skip
        """Minimise the energy of one problem from log-weights z; see `equilibrium.py` for the method.

        Leaves the log-weights in z and returns (gap, passes, outcome).
        """
        w, entropy, g, step, kept_z, kept_g = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4], vectors[5]
        error, offset = vectors[6], 1.0 + abs(centre)
        typical, relative = _typical_rounding(ln_p.size), _relative_rounding(ln_p.size, z.size) + amiss
        temperature, homotopy, cooling = eps, False, method.COOLING
        length, slope, rejections, finishing, hidden = 1.0, 0.0, 0, 0, 0
        kept_energy = gap = trial_gap = widest = math.inf
        floor = trial_floor = 0.0
        unconditional = True  # first point, restart or mirror step: nothing to compare with
        if not (eps > 0.0 and amiss <= method.COLUMN_TOLERANCE):  # such columns were not made by `problem`
            _fill(z, math.nan)
            return math.inf, 0, _BAD_INPUT
        _normalise(z, w)

        for passes in range(1, max_passes + 1):
            final = passes == max_passes
            if final and passes > 1:  # certify what was reached, at the right temperature
                temperature, unconditional = eps, True
                _copy(kept_z, z)
                for a in range(z.size):
                    w[a] = math.exp(z[a])
            sweep(matrix, w, entropy, squares[0], ln_p, over_p)
            energy, size = _gradient(linear, magnitude, entropy, temperature, z, w, log_prior, g)
            blur, noise = typical * size, relative * (offset + size) + _MIXED
            if energy != energy:
                _fill(z, math.nan)
                return math.inf, passes, _BAD_INPUT

            # where rounding hides whether the energy fell, gap or gradient decide: else two points could swap for ever
            enough = kept_energy + method.ARMIJO * length * slope
            accepted = unconditional or energy < enough - blur
            if accepted or energy <= enough + blur:
                trial_gap, trial_floor, widest = _gap(w, g, energy, temperature, noise)
                if trial_gap > tol and temperature <= eps and trial_floor > _NEGLIGIBLE_SHARE * trial_gap:
                    sharp = _sharp_floor(
                        z, w, g, entropy, energy, temperature, relative, offset, magnitude, log_prior, error
                    )
                    if sharp < trial_floor:
                        # less the old floor, plus what this difference rounds away
                        trial_gap += (sharp - trial_floor) + 4.0 * method.UNIT_ROUNDOFF * trial_gap
                # at the end there is nothing left to fall: what is still certified is as good
                accepted = accepted or trial_gap <= method.GAP_FALL * gap or (finishing > 0 and trial_gap <= tol)
                accepted = accepted or _came_downhill(w, g, kept_z)
            if accepted:
                if temperature <= eps and 0.0 <= trial_gap <= tol:
                    finishing += 1
                    if widest <= method.SETTLED or finishing > method.FINISHING_PASSES or final:
                        extend(matrix, z, w, g, energy, temperature, over_p)
                        return trial_gap, passes, _CONVERGED
                temperature, energy, gap, floor = _cool(
                    z, w, log_prior, g, energy, trial_gap, trial_floor, temperature, eps, cooling, noise
                )
                slope = aim(matrix, w, g, energy, gap, temperature, over_p, squares, scaled, vectors, step)
                _copy(z, kept_z)
                _copy(g, kept_g)
                kept_energy, length, rejections, unconditional = energy, 1.0, 0, False
            else:
                rejections += 1
                length *= method.BACKTRACK

            hidden = hidden + 1 if temperature <= eps and floor >= method.ROUNDING_SHARE * gap else 0
            if hidden == method.HIDDEN_PASSES:
                break
            retry = passes == method.RETRY_AFTER
            if retry or (not accepted and not homotopy and eps < 1.0):
                temperature, homotopy, unconditional, rejections = max(1.0, eps), True, True, 0
                cooling = method.GENTLE_COOLING if retry else method.COOLING
                _copy(log_prior, z)
                _normalise(z, w)
                continue
            unconditional = rejections >= method.REJECTIONS_BEFORE_MIRROR
            if unconditional:
                rejections = 0
                for a in range(z.size):
                    z[a] = kept_z[a] - kept_g[a] / (1.0 + temperature)
            else:
                for a in range(z.size):
                    z[a] = kept_z[a] + length * step[a]
            _normalise(z, w)
        _copy(kept_z, z)
        return gap, passes, _ROUNDING_LIMIT if floor >= method.ROUNDING_SHARE * gap else NOT_CONVERGED

    return descend


_descend_dense = _descent(sweeps.sweep_dense, _direction_dense, _diagonal_dense)
_descend_wide = _descent(sweeps.sweep_wide, _direction_wide, _diagonal_wide)


# ---------------------------------------------------------------------------------- batches
# What the implicit derivative needs of the optimum is left in `level` (ln p + s), `over_p` (1/p) and `curvature`, for
# every problem where the last has a row for each. Otherwise the first two are scratch space of one row.


def _solve_dense(
    pi, pi_step, cost, eps, log_prior, start, tol, max_passes,
    log_weights, gap, passes, outcome, level, over_p, curvature,
):  # fmt: skip
    batch, d, n = eps.size, pi.shape[1], pi.shape[2]
    columns, scaled = np.empty((n, d)), np.empty((2, d))
    vectors, squares = np.empty((10, n)), np.empty((2, n, n))
    linear, magnitude = np.empty(n), np.empty(n)
    step = 1 if level.shape[0] == batch else 0
    for k in range(batch):
        z = log_weights[k]
        _copy(start[k], z)
        sweeps.gather_columns(pi[k * pi_step], columns)
        centre, amiss = sweeps.centre_cost_columns(columns, cost[k], linear, magnitude)
        gap[k], passes[k], outcome[k] = _descend_dense(
            columns, linear, magnitude, centre, amiss, eps[k], log_prior[k], z, tol, max_passes,
            vectors, squares, level[k * step], over_p[k * step], scaled,
        )  # fmt: skip
        if curvature.shape[0] == batch:
            _add(cost[k], level[k])
            sweeps.form_curvature(columns, over_p[k], squares[0], scaled)
            for a in range(n):
                for b in range(a + 1):
                    curvature[k, a, b] = curvature[k, b, a] = squares[0, a, b]


def _solve_wide(
    pi, pi_step, cost, eps, log_prior, start, tol, max_passes,
    log_weights, gap, passes, outcome, level, over_p, curvature,
):  # fmt: skip
    batch, n = eps.size, pi.shape[2]
    vectors, nothing, unused = np.empty((16, n)), np.empty((2, 0, 0)), np.empty((2, 0))
    linear, magnitude = np.empty(n), np.empty(n)
    step = 1 if level.shape[0] == batch else 0
    for k in range(batch):
        z = log_weights[k]
        _copy(start[k], z)
        centre, amiss = sweeps.centre_cost_rows(pi[k * pi_step], cost[k], linear, magnitude, vectors[0])
        gap[k], passes[k], outcome[k] = _descend_wide(
            pi[k * pi_step], linear, magnitude, centre, amiss, eps[k], log_prior[k], z, tol, max_passes,
            vectors, nothing, level[k * step], over_p[k * step], unused,
        )  # fmt: skip
        if curvature.shape[0] == batch:
            _add(cost[k], level[k])


# ------------------------------------------------------------------- the implicit derivative
# The transpose of the rule in `_implicit.py`: from a cotangent of ln w to those of pi, cost, eps and log_prior,
# (S K S + eps I) y = cotangent/S - S sum(cotangent), u = S y, q = Pi u; then ds = -q, d ln w_hat = eps u,
# d eps = -u . (ln w - ln w_hat) and dPi_ia = -[ u_a (ln p_i + s_i) + w_a q_i / p_i ].
# Cotangents of the primitives are filled where there is a row for each problem: often nobody asks for them.


@compiled()
def _turn_dense(rows, _over_p, curvature, root_w, force, eps, squares, _vectors, u, _along, d_cost):
    _direction_cholesky(curvature, root_w, force, eps, squares[0], u)
    for a in range(u.size):
        u[a] *= root_w[a]
    sweeps.pull_cost(rows, u, d_cost)


@compiled()
def _turn_wide(rows, over_p, _curvature, root_w, force, eps, _squares, vectors, u, along, d_cost):
    """The search has seen Pi of every direction that it went, which saves a pass over the primitives."""
    _direction_cg(rows, over_p, root_w, force, eps, method.CG_REDUCTION, vectors[4:], u, along, d_cost)
    for a in range(u.size):
        u[a] *= root_w[a]
    for i in range(d_cost.size):
        d_cost[i] = -d_cost[i]


def _pulling(turn):
    """The derivative of which `turn` solves (S K S + eps I) y = force, and leaves u = S y and ds = -Pi u."""

    @compiled()
    def pull(
        pi, pi_step, eps, log_prior, log_weights, level, over_p, curvature, cotangent,
        d_pi, d_cost, d_eps, d_log_prior,
    ):  # fmt: skip
        batch, d, n = eps.size, pi.shape[1], pi.shape[2]
        vectors, squares = np.empty((8, n)), np.empty((1, curvature.shape[1], curvature.shape[1]))
        along = np.empty(d)
        w, root_w, force, u = vectors[0], vectors[1], vectors[2], vectors[3]
        for k in range(batch):
            rows, z, total = pi[k * pi_step], log_weights[k], 0.0
            for a in range(n):
                total += cotangent[k, a]
            for a in range(n):
                w[a] = math.exp(max(z[a], method.LOG_FLOOR))
                root_w[a] = math.sqrt(w[a])
                force[a] = cotangent[k, a] / root_w[a] - root_w[a] * total
            turn(rows, over_p[k], curvature[k], root_w, force, eps[k], squares, vectors, u, along, d_cost[k])
            total = 0.0
            for a in range(n):
                total -= u[a] * (z[a] - log_prior[k, a])
                d_log_prior[k, a] = eps[k] * u[a]
            d_eps[k] = total
            if d_pi.shape[0] == batch:
                sweeps.pull_primitives(level[k], over_p[k], w, u, d_cost[k], d_pi[k])

    return pull


pull_dense, pull_wide = _pulling(_turn_dense), _pulling(_turn_wide)


# --------------------------------------------------------------------------------- entries
# One fixed signature each, so that nothing compiles twice. Everything is contiguous; primitives shared by a
# whole batch are read with pi_step = 0 instead of being copied.


def _read_only(rank: int):
    return types.Array(float64, rank, "C", readonly=True)


def _writable(rank: int, dtype=float64):
    return types.Array(dtype, rank, "C")


@once
def _kernel_for(wide: bool):
    signature = types.void(
        _read_only(3), int64, _read_only(2), _read_only(1), _read_only(2), _read_only(2), float64, int64,
        _writable(2), _writable(1), _writable(1, int64), _writable(1, int8), _writable(2), _writable(2), _writable(3),
    )  # fmt: skip
    return compile_entry(signature, _solve_wide if wide else _solve_dense)


@once
def _in_python(wide: bool):
    """The kernel as Python, and how many probabilities it is still used for: none if a compiled one is kept."""
    entry = _solve_wide if wide else _solve_dense
    bits, number = (lambda x: np.float64(x).view(np.uint64)), (lambda x: np.uint64(x).view(np.float64))
    kept = is_kept(entry)
    return None if kept else interpreted(entry, _bits=bits, _float=number), [0 if kept else _IN_PYTHON]


def _solve_in_python(wide: bool, given, max_passes: int, results) -> bool:
    """Whether these problems, the first and small ones on a machine, were solved without waiting for a compiler."""
    (kernel, left), work = _in_python(wide), given[0].shape[1] * results[0].size
    if work > min(left[0], _IN_PYTHON // 4) or kernel is None or is_kept(_solve_wide if wide else _solve_dense):
        left[0] = min(left[0], work - 1)  # from now on the compiled one
        return False
    left[0] -= work
    patience = min(max_passes, _PATIENCE)
    try:
        with np.errstate(all="ignore"):
            kernel(*given, patience, *results)
    except (ArithmeticError, ValueError):  # where compiled code goes on with infinity or NaN
        return False
    return bool(np.all(results[2] < patience))


def _flat(array, core: int, batch: tuple[int, ...]):
    """`array` as contiguous float64 with its batch axes broadcast and joined into one."""
    array = np.asarray(array, dtype=np.float64)
    tail = array.shape[array.ndim - core :]
    if array.shape != batch + tail:
        array = np.broadcast_to(array, batch + tail)
    return np.ascontiguousarray(array.reshape(-1, *tail))


def _flat_pi(pi, batch: tuple[int, ...]):
    """The primitives and their step through the batch: 0 where all problems share one matrix."""
    pi = np.asarray(pi, dtype=np.float64)
    if pi.shape[:-2] != batch:
        pi = np.broadcast_to(pi, batch + pi.shape[-2:])
    if batch and pi.size and not any(pi.strides[:-2]):
        return np.ascontiguousarray(pi[(0,) * len(batch)])[None], 0
    return _flat(pi, 2, batch), 1


def solve_batch(
    pi, cost, eps, log_prior, start, tol: float, max_passes: int, keep: bool = False, *, wait: bool = True
):  # fmt: skip
    """Solve every problem of a batch; `start` holds log-weights, or None for the prior.

    Without `wait`, small problems are solved in Python until the kernel has been compiled on this machine.

    Returns NumPy arrays (log_weights, gap, passes, outcome) and, to `keep` for a derivative, ln p + s and 1/p of
    the mixture p and the curvature Pi^T diag(1/p) Pi (of size zero where it is never formed).
    """
    d, n = pi.shape[-2:]
    start = log_prior if start is None else start
    if not (d and n and cost.shape[-1:] == (d,) and log_prior.shape[-1:] == (n,) and start.shape[-1:] == (n,)):
        raise ValueError(
            f"pi has shape {pi.shape}, action_cost {cost.shape}, log_prior {log_prior.shape} and start {start.shape}: "
            "each action needs a cost, each primitive a log-prior and a start, and there must be one of each at least."
        )
    leads = pi.shape[:-2], eps.shape, cost.shape[:-1], log_prior.shape[:-1], start.shape[:-1]
    batch = joint_axes(dict(zip(("pi", "eps", "action_cost", "log_prior", "start"), leads, strict=True)))
    pi, pi_step = _flat_pi(pi, batch)
    start = _flat(start, 1, batch)
    cost, eps, log_prior = _flat(cost, 1, batch), _flat(eps, 0, batch), _flat(log_prior, 1, batch)
    count, wide = eps.size, n > method.DENSE_UP_TO
    log_weights, gap = np.empty((count, n)), np.empty(count)
    passes, outcome = np.empty(count, np.int64), np.empty(count, np.int8)
    rows, side = count if keep else 1, 0 if wide else n
    level, over_p, curvature = np.empty((rows, d)), np.empty((rows, d)), np.empty((count if keep else 0, side, side))
    given = pi, pi_step, cost, eps, log_prior, start, tol
    results = log_weights, gap, passes, outcome, level, over_p, curvature
    if wait or not _solve_in_python(wide, given, max_passes, results):
        _kernel_for(wide)(*given, max_passes, *results)
    answers = (log_weights, gap, passes, outcome) + ((level, over_p, curvature) if keep else ())
    return tuple([array.reshape(batch + array.shape[1:]) for array in answers])
