"""The truth about a certificate, in seventy digits: the one judge of tests and of `python -m benchmarks.stress`.

The problem is the one that is stored: pi, s, eps, ln w_hat (and alpha, caps) are read digit by digit, and weights are
divided by their exact sum. With 0 ln 0 = 0, up to a constant,

    V(w) = F(w) + eps D(w, w_hat),   D = sum_a w_a (ln w_a - ln w_hat_a), or the Bregman divergence of Tsallis' entropy
    mixture:  F(w) = sum_i p_i (ln p_i + s_i),  p = Pi w
    product:  F(w) = KL(q || p_w),  q ~ exp(-s) over the actions that a primitive takes,  p_w ~ prod_a pi_a^w_a, 0^0 = 1

A certificate is dishonest if gap < V(w) - V(w') for any w' below the caps, or distance < ||w - w*||_1. Neither needs
w*: a search finds a good w', and V is convex, so that

    V(w') - V* <= max_s <grad V(w'), w' - s> =: G,   ||w - w*||_1 >= ||w - w'||_1 - sqrt(2 n^(alpha-1) G/eps).

Where V(w) is infinite, no finite gap is honest. A search that ends early finds less but accuses nobody wrongly. Columns
of pi miss one by rounding, and two readings of them exist: as they are stored, which is the definition, and divided by
their exact sums. A certificate has to hold for both.

All numbers are balls (python-flint) that contain the exact value. Beyond `LARGEST` entries, after equal rows have been
counted once, products with Pi are computed in double-double: 16 m u^2 sum |x_i y_i| is the radius of a sum of m terms.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

import numba
import numpy as np
from flint import arb, arb_mat, ctx

from policychord.core.complexities import COMBINE

DIGITS = 70
SHARP = 1e-40  # the search ends at this gap, relative to eps
TURNS = 80
LOWEST = -3000.0  # weights below exp of this change no energy
LARGEST = 200_000
MERGE_FROM = 500
FAINT = 1e-9  # without the entropy, weights below this that should fall are squared
UNIT = 2.0**-53
FEASIBLE = 1e-60  # by which weights of a point that is compared with may miss one
NOTHING = 1e-250  # a double-double below this has lost digits to underflow


class Objective(NamedTuple):
    """One problem as it is stored, in float64."""

    pi: np.ndarray
    cost: np.ndarray
    eps: float
    log_prior: np.ndarray
    product: bool = False
    alpha: float = 1.0
    caps: np.ndarray | None = None
    log_pi: np.ndarray | None = None  # what a product stores


class Point(NamedTuple):
    """Feasible weights with their energy and their distance from optimal, G."""

    weights: list
    energy: arb
    gap: arb


class Verdict(NamedTuple):
    """What was claimed of weights beside what is true, at the reading that is worse for the claim."""

    honest: bool
    gap: float  # claimed
    excess: float  # V(w) - V(w'), at most the true one
    distance: float  # claimed
    way: float  # at most the true distance
    slack: float  # G of w': by how much the excess may be too small
    stored: bool = True  # whether it is honest for columns as they are stored
    rescaled: bool = True  # and for columns divided by their sums


def precise(function: Callable) -> Callable:
    """Run with `DIGITS` digits, whatever others have set."""

    @wraps(function)
    def inner(*given: Any, **named: Any) -> Any:
        with ctx.workdps(DIGITS):
            return function(*given, **named)

    return inner


def objective_of(problem: Any, k: int | None = None) -> Objective:
    """Problem number k of a batch with one axis, or the only problem; a `Problem` or a `ConvexProblem`."""
    at = () if k is None else (k,)
    alpha, caps = (getattr(problem, name, None) for name in ("alpha", "caps"))
    product = getattr(problem, "complexity", None) == COMBINE["product"]
    return Objective(
        pi=np.asarray(problem.pi[at]), cost=np.asarray(problem.action_cost[at]), eps=float(problem.eps[at]),
        log_prior=np.asarray(problem.log_prior[at]),
        product=product, log_pi=np.asarray(problem.parameters[0][at]) if product else None,
        alpha=1.0 if alpha is None else float(alpha[at]), caps=None if caps is None else np.asarray(caps[at]),
    )  # fmt: skip


@precise
def judge(objective: Objective, weights: Any, gap: Any, distance: Any, starts: Sequence[Any] = ()) -> Verdict:
    """Whether V(w) - V* <= gap and ||w - w*||_1 <= distance, without any tolerance, at both readings of the columns.

    `starts` are more weights from which the search for something better may begin.
    """
    columns = _columns_of(objective)
    readings = (False,) if objective.product else (False, True)
    found = [
        _judge_reading(_pose(objective, columns, r), weights, float(gap), float(distance), starts) for r in readings
    ]
    worst = min(found, key=lambda verdict: (verdict.honest, verdict.gap - verdict.excess))
    return worst._replace(stored=found[0].honest, rescaled=found[-1].honest)


@precise
def excess_and_distance(objective: Objective, weights: Any, starts: Sequence[Any] = ()) -> tuple[float, float]:
    """V(w) - V* and ||w - w*||_1 of the problem as it is stored, both from below, rounded to float64."""
    verdict = _judge_reading(_pose(objective, _columns_of(objective), False), weights, 0.0, 0.0, starts)
    return verdict.excess, verdict.way


def _judge_reading(posed: "_Posed", weights: Any, gap: float, distance: float, starts: Sequence[Any]) -> Verdict:
    w = _normalised([arb(v) for v in np.asarray(weights, float).tolist()])
    energy = posed.energy(w)
    if energy is None:  # infinite: no finite number bounds its distance from a finite one
        return Verdict(gap == np.inf, gap, np.inf, distance, 0.0, 0.0)
    best = search(posed, [np.asarray(start, float) for start in (weights, *starts)])
    if best is None:
        return Verdict(True, gap, 0.0, distance, 0.0, np.inf)
    excess = energy - best.energy
    far = _sum(abs(a - b) for a, b in zip(w, best.weights, strict=True))
    near = best.gap.upper().max(arb(0)) * 2 * arb(len(w)) ** (arb(posed.given.alpha) - 1) / posed.eps
    way = (far - near.sqrt()).lower() if near.is_finite() else arb(0)
    # `<` of balls says yes only if it is certain; NaN is not a bound at all
    honest = bool(gap == gap and distance == distance and not arb(gap) < excess and not arb(distance) < way)
    return Verdict(honest, gap, float(excess.lower()), distance, max(float(way), 0.0), float(best.gap.upper()))


# ------------------------------------------------------------------------- products with Pi


class _Balls:
    """Pi as a matrix of balls without radius."""

    def __init__(self, pi: np.ndarray) -> None:
        self.matrix = arb_mat(*pi.shape, pi.ravel().tolist())
        self.transposed = self.matrix.transpose()

    def times(self, weights: list) -> list:
        """Pi w."""
        return (self.matrix * arb_mat(len(weights), 1, weights)).entries()

    def across(self, values: list) -> list:
        """Pi^T v."""
        return (self.transposed * arb_mat(len(values), 1, values)).entries()


class _DoubleDouble:
    """Pi in float64, its products in double-double with a stated radius."""

    def __init__(self, pi: np.ndarray) -> None:
        self.pi = np.ascontiguousarray(pi)

    def times(self, weights: list) -> list:
        """Pi w."""
        return _with_radius(*_times(self.pi, *_split(weights)), self.pi.shape[1])

    def across(self, values: list) -> list:
        """Pi^T v."""
        return _with_radius(*_across(self.pi, *_split(values)), self.pi.shape[0])


def _split(values: list) -> tuple[np.ndarray, np.ndarray]:
    high = np.array([float(v.mid()) for v in values])
    return high, np.array([float((v - h).mid()) for v, h in zip(values, high.tolist(), strict=True)])


def _with_radius(high: np.ndarray, low: np.ndarray, size: np.ndarray, terms: int) -> list:
    radius = (16.0 * terms * UNIT**2 * size + 1e-300).tolist()
    return [arb(h, r) + low for h, low, r in zip(high.tolist(), low.tolist(), radius, strict=True)]


@numba.njit(cache=True)
def _two_product(a: float, b: float) -> tuple[float, float]:
    product = a * b
    t = 134217729.0 * a
    a_high = t - (t - a)
    t = 134217729.0 * b
    b_high = t - (t - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@numba.njit(cache=True)
def _add_product(high: float, low: float, a: float, b: float, b_low: float) -> tuple[float, float]:
    """(high + low) + a (b + b_low)."""
    p, e = _two_product(a, b)
    e += a * b_low
    s = high + p
    t = s - high
    e += ((high - (s - t)) + (p - t)) + low
    total = s + e
    return total, e - (total - s)


@numba.njit(cache=True)
def _times(pi: np.ndarray, w: np.ndarray, w_low: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    d, n = pi.shape
    high, low, size = np.zeros(d), np.zeros(d), np.zeros(d)
    for i in range(d):
        for a in range(n):
            high[i], low[i] = _add_product(high[i], low[i], pi[i, a], w[a], w_low[a])
            size[i] += abs(pi[i, a] * w[a])
    return high, low, size


@numba.njit(cache=True)
def _across(pi: np.ndarray, v: np.ndarray, v_low: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    d, n = pi.shape
    high, low, size = np.zeros(n), np.zeros(n), np.zeros(n)
    for i in range(d):
        for a in range(n):
            high[a], low[a] = _add_product(high[a], low[a], pi[i, a], v[i], v_low[i])
            size[a] += abs(pi[i, a] * v[i])
    return high, low, size


class _Rows(NamedTuple):
    """The rows of Pi that a primitive takes, each once, with its cost and how often it occurs."""

    pi: np.ndarray
    cost: np.ndarray
    counts: np.ndarray
    products: Any
    log_pi: np.ndarray | None


def _columns_of(objective: Objective) -> _Rows:
    pi, cost, log_pi = np.asarray(objective.pi, float), np.asarray(objective.cost, float), objective.log_pi
    taken = (pi > 0.0 if log_pi is None else np.isfinite(log_pi)).any(axis=1)
    pi, cost, log_pi = pi[taken], cost[taken], None if log_pi is None else log_pi[taken]
    counts = np.ones(len(cost), int)
    if pi.size > MERGE_FROM and not objective.product:
        pi, cost, counts = _merged(pi, cost)
    products = None if objective.product else (_Balls if pi.size <= LARGEST else _DoubleDouble)(pi)
    return _Rows(pi, cost, counts, products, log_pi)


def _merged(pi: np.ndarray, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows that occur several times, counted; nothing happens where the hash would join two that differ."""
    whole = np.ascontiguousarray(np.column_stack([pi, cost])) + 0.0
    odd = np.random.default_rng(0).integers(2**63, size=whole.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    bits = whole.view(np.uint64)
    mixed = ((bits ^ (bits >> np.uint64(29))) * odd).sum(axis=1, dtype=np.uint64)
    _, first, inverse, counts = np.unique(mixed, return_index=True, return_inverse=True, return_counts=True)
    if not np.array_equal(whole[first][inverse], whole):
        return pi, cost, np.ones(len(cost), int)
    return pi[first], cost[first], counts


# ------------------------------------------------------------------------------- objectives


class _Posed:
    """An objective with V, its slope and a model of its curvature."""

    given: Objective
    eps: arb
    allowed: np.ndarray  # primitives on which the energy is finite

    def complexity(self, weights: list, slope: bool) -> tuple[Any, list]:
        """F and its gradient; F is None where it is infinite."""
        raise NotImplementedError

    def curvature(self, weights: np.ndarray, log_weights: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """H diag(spread) in float64."""
        raise NotImplementedError

    def energy(self, weights: list) -> Any:
        """V(w), or None."""
        value, _ = self.complexity(weights, slope=False)
        return None if value is None else value + self.eps * _sum(self._potentials(weights))

    def look(self, weights: list) -> tuple[arb, list]:
        """V(w) and its gradient."""
        value, gradient = self.complexity(weights, slope=True)
        links = [self._link(w) for w in weights]
        slope = [g + self.eps * (own - t) for g, own, t in zip(gradient, links, self.tilt, strict=True)]
        return value + self.eps * _sum(self._potentials(weights)), slope

    def prepare(self, given: Objective) -> None:
        """What all objectives need."""
        self.given, self.eps, self.order = given, arb(given.eps), arb(given.alpha) - 1
        prior = [arb(v) for v in given.log_prior.tolist()]
        self.tilt = prior if given.alpha == 1.0 else [(self.order * v).expm1() / self.order for v in prior]
        self.caps = np.ones(len(prior)) if given.caps is None else np.asarray(given.caps, float)

    def _link(self, w: arb) -> arb:
        if given_is_zero(w):  # only above order one: there the link of zero is finite
            return -1 / self.order if self.given.alpha > 1.0 else arb(-(10**6))
        return w.log() if self.given.alpha == 1.0 else (self.order * w.log()).expm1() / self.order

    def _potentials(self, weights: list) -> list:
        """r(w) - l(w_hat) w for each weight, r(w) = w (l(w) - 1)/alpha."""
        alpha = arb(self.given.alpha)
        return [
            arb(0) if given_is_zero(w) else w * ((self._link(w) - 1) / alpha - t)
            for w, t in zip(weights, self.tilt, strict=True)
        ]


class _Mixture(_Posed):
    def __init__(self, given: Objective, rows: _Rows, rescaled: bool) -> None:
        self.prepare(given)
        self.allowed = np.ones(len(given.log_prior), bool)
        self.rows, self.cost = rows, [arb(v) for v in rows.cost.tolist()]
        self.counts = [arb(int(c)) for c in rows.counts]
        # dividing a column is dividing its weight inside p, and its entry of the gradient
        self.sums = rows.products.across(self.counts) if rescaled else None

    def complexity(self, weights: list, slope: bool) -> tuple[Any, list]:
        """sum_i p_i (ln p_i + s_i) and Pi^T (ln p + s + 1), which is not a constant beyond h as columns are stored."""
        inside = weights if self.sums is None else [w / t for w, t in zip(weights, self.sums, strict=True)]
        value, inner = arb(0), []
        for p, s, count in zip(self.rows.products.times(inside), self.cost, self.counts, strict=True):
            if given_is_zero(p):
                inner.append(arb(-(10**6)))
                continue
            if p > NOTHING or not p.contains(0):
                surprise = p.log() + s
                value += count * p * surprise
            else:  # only where double-double underflows
                surprise = arb(-600, 1e6) + s
                value += count * arb(0, 1e-240)
            inner.append(count * (surprise + 1))
        if not slope:
            return value, []
        gradient = self.rows.products.across(inner)
        return value, gradient if self.sums is None else [g / t for g, t in zip(gradient, self.sums, strict=True)]

    def curvature(self, weights: np.ndarray, log_weights: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """Pi^T diag(1/p) Pi diag(spread)."""
        pi, p = self.rows.pi, self.rows.pi @ weights
        faint = p < 1e-280
        shares = pi * (spread / np.maximum(p, 1e-280)[:, None])
        if faint.any():
            with np.errstate(divide="ignore"):
                logs = np.log(pi[faint]) + log_weights
            parts = np.exp(logs - logs.max(axis=1, keepdims=True))
            shares[faint] = parts / parts.sum(axis=1, keepdims=True)
        return pi.T @ (self.rows.counts[:, None] * shares)


class _Product(_Posed):
    def __init__(self, given: Objective, rows: _Rows) -> None:
        self.prepare(given)
        self.allowed = ((rows.pi > 0.0) if rows.log_pi is None else np.isfinite(rows.log_pi)).all(axis=0)
        kept = (rows.pi if rows.log_pi is None else rows.log_pi)[:, self.allowed]
        logs = [arb(v).log() if rows.log_pi is None else arb(v) for v in kept.ravel().tolist()]
        self.logs, self.float_logs = arb_mat(*kept.shape, logs), np.log(kept) if rows.log_pi is None else kept
        self.transposed = self.logs.transpose()
        self.log_q = _log_softmax([-arb(v) for v in rows.cost.tolist()])
        self.q = [v.exp() for v in self.log_q]

    def complexity(self, weights: list, slope: bool) -> tuple[Any, list]:
        """KL(q || p_w) and E_p T - E_q T; infinite where a weight rests on a primitive that leaves an action out."""
        inside = [w for w, good in zip(weights, self.allowed, strict=True) if good]
        if any(not good and not given_is_zero(w) for w, good in zip(weights, self.allowed, strict=True)):
            return None, []
        log_p = _log_softmax((self.logs * arb_mat(len(inside), 1, inside)).entries())
        value = _sum(q * (a - b) for q, a, b in zip(self.q, self.log_q, log_p, strict=True))
        if not slope:
            return value, []
        off = [v.exp() - q for v, q in zip(log_p, self.q, strict=True)]
        found = iter((self.transposed * arb_mat(len(off), 1, off)).entries())
        return value, [next(found) if good else arb(0) for good in self.allowed]

    def curvature(self, weights: np.ndarray, log_weights: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """Cov_p(T) diag(spread)."""
        t = self.float_logs
        y = t @ weights[self.allowed]
        p = np.exp(y - y.max())
        p /= p.sum()
        centred = t - p @ t
        whole = np.zeros((len(weights), len(weights)))
        whole[np.ix_(self.allowed, self.allowed)] = centred.T @ (p[:, None] * centred)
        return whole * spread


def _pose(objective: Objective, rows: _Rows, rescaled: bool) -> _Posed:
    return _Product(objective, rows) if objective.product else _Mixture(objective, rows, rescaled)


# ----------------------------------------------------------------------------------- search


def search(posed: _Posed, starts: list[np.ndarray]) -> Point | None:
    """Good weights by Newton's method: the slope in many digits, the curvature in float64; None if V is infinite.

    With the entropy a step is taken in ln w, otherwise in w. Weights at a bound are held there, and released when the
    slope pulls them off it. The energy never rises.
    """
    if not posed.allowed.any():
        return None
    walk = _Walk(posed, starts)
    best = walk.point
    for _ in range(TURNS):
        if _is_sharp(best, posed) or not walk.turn():
            break
        best = walk.point if walk.point.energy.mid() <= best.energy.mid() else best
    if _is_sharp(best, posed):
        return best
    vertex = _best_vertex(posed)
    return vertex if vertex is not None and vertex.energy.mid() < best.energy.mid() else best


def _is_sharp(point: Point, posed: _Posed) -> bool:
    """Whether nothing can be gained, or nothing that could be told from the rounding of double-double."""
    return bool(point.gap.mid() <= SHARP * posed.eps or point.gap.mid() <= 1000 * point.gap.rad())


def _best_vertex(posed: _Posed) -> Point | None:
    """The best of the vertices: near ties of large costs are decided there."""
    n = len(posed.tilt)
    if n * posed.given.pi.size > LARGEST or (posed.caps < 1.0).any():
        return None
    found = []
    for a in np.flatnonzero(posed.allowed):
        weights = [arb(int(a == b)) for b in range(n)]
        found.append(Point(weights, posed.energy(weights), arb("inf")))
    return min(found, key=lambda point: float((point.energy - found[0].energy).mid()))


class _Walk:
    """A descent: where it is and which weights are held at a bound."""

    def __init__(self, posed: _Posed, starts: list[np.ndarray]) -> None:
        self.posed, self.entropic, self.n = posed, posed.given.alpha == 1.0, len(posed.tilt)
        even = np.where(posed.allowed, 1.0, 0.0) / posed.allowed.sum()
        candidates = [self._feasible(v, even) for v in (*starts, even) for v in (v, 0.9 * v + 0.1 * even)]
        vertex = _best_vertex(posed)
        if vertex is not None:
            candidates.append(self._feasible(np.array([float(w) for w in vertex.weights]), even, 0.1))
        looks = [(self._see(w), w) for w in candidates]
        self.point, self.slope = min((seen for seen, _ in looks), key=lambda s: s[0].energy.mid())
        self.held = self.full = np.zeros(self.n, bool)

    def _feasible(self, start: np.ndarray, even: np.ndarray, share: float = 1e-12) -> list:
        """Positive weights below the caps that sum to one, near `start`."""
        start = np.where(self.posed.allowed, np.maximum(start, 0.0), 0.0)
        start = (1.0 - share) * start / max(start.sum(), 1e-300) + share * even
        return self._fill([arb(v) for v in start.tolist()], np.zeros(self.n, bool))

    def _fill(self, weights: list, capped: np.ndarray) -> list:
        """Divide by the sum, below the caps: what is above one is set to it, and the others share the rest."""
        caps = self.posed.caps
        capped = capped.copy()
        while True:
            rest = 1 - _sum(arb(c) for c in caps[capped].tolist())
            total = _sum(w for w, full in zip(weights, capped, strict=True) if not full)
            if not total > 0:
                total = arb(1)
            scaled = [
                arb(c) if full else (w * rest / total).mid()
                for w, c, full in zip(weights, caps.tolist(), capped, strict=True)
            ]
            over = np.array([bool(w > c) for w, c in zip(scaled, caps.tolist(), strict=True)])
            if not over.any():
                return scaled
            capped |= over

    def _see(self, weights: list) -> tuple[Point, list]:
        exact = _normalised(weights) if (self.posed.caps >= 1.0).all() else weights
        energy, slope = self.posed.look(exact)
        if not abs(_sum(exact) - 1) < FEASIBLE:  # rounding of the caps left a hole: such a point accuses nobody
            return Point(exact, arb("inf"), arb("inf")), slope
        return Point(exact, energy, self._gap(exact, slope)), slope

    def _gap(self, weights: list, slope: list) -> arb:
        """max_s <slope, w - s> over the weights below the caps: fill up where the slope is least."""
        order = sorted(np.flatnonzero(self.posed.allowed).tolist(), key=lambda a: _Key(slope[a].mid()))
        room, lowest = arb(1), slope[order[0]]
        total = _sum(w * (slope[a] - lowest) for a, w in enumerate(weights) if not given_is_zero(w))
        for a in order:
            cap = arb(float(self.posed.caps[a]))
            if not room > cap:
                return total - room * (slope[a] - lowest)
            total, room = total - cap * (slope[a] - lowest), room - cap
        return total

    def turn(self) -> bool:
        """One Newton step, shortened until the energy does not rise; whether there was one."""
        weights, slope = self.point.weights, self.slope
        self._release(weights, slope)
        step = self._direction(weights, slope)
        for length in (1.0, 0.25, 0.06, 0.015, 4e-3, 1e-3, 2e-4, 1e-5, 1e-7, 1e-10):
            trial = self._moved(weights, step, length)
            seen, its_slope = self._see(trial)
            if seen.energy.mid() <= self.point.energy.mid() and not _same(trial, weights):
                self.point, self.slope = seen, its_slope
                return True
            if length == 1.0 and seen.gap.mid() < self.point.gap.mid() and seen.energy.overlaps(self.point.energy):
                self.point, self.slope = seen, its_slope
                return True
        return self._mirror()

    def _mirror(self) -> bool:
        """The step that cannot fail for a mixture with the entropy: ln w - slope/(1 + eps)."""
        if not self.entropic:
            return False
        mean = _sum(w * g for w, g in zip(self.point.weights, self.slope, strict=True))
        step = np.array([float((mean - g).mid() / (1 + self.posed.eps)) for g in self.slope])
        seen, slope = self._see(self._moved(self.point.weights, np.where(self.held, 0.0, step), 1.0))
        if seen.energy.mid() < self.point.energy.mid():
            self.point, self.slope = seen, slope
            return True
        return False

    def _release(self, weights: list, slope: list) -> None:
        """Hold what is at a bound, unless the slope pulls it off, by more than the free weights still disagree."""
        caps = self.posed.caps
        full = np.array([bool(w >= c) and c < 1.0 for w, c in zip(weights, caps.tolist(), strict=True)])
        empty = np.array([given_is_zero(w) for w in weights])
        inside = np.flatnonzero(~full & ~empty & self.posed.allowed).tolist()
        pulled = shrinking = np.zeros(self.n, bool)
        if inside:
            mass = _sum(weights[a] for a in inside)
            level = (_sum(weights[a] * slope[a] for a in inside) / mass).mid()
            unrest = 10 * _sum(weights[a] * abs(slope[a] - level) for a in inside).mid() / mass.mid()
            above = np.array([bool(g.mid() > level + unrest) for g in slope])
            below = np.array([bool(g.mid() < level - unrest) for g in slope])
            pulled = ((full & above) | (empty & below)) & self.posed.allowed
            if not self.entropic:  # nearly nothing, and too much: no part of the system, or it would spoil the step
                faint = np.array([bool(w < FAINT) for w in weights])
                shrinking = faint & above & ~empty & self.posed.allowed
        self.full = full & ~pulled
        self.held = ((full | empty | ~self.posed.allowed) & ~pulled) | shrinking
        for a in np.flatnonzero(shrinking):
            weights[a] = (weights[a] ** 2).mid() if weights[a] ** 2 > arb(LOWEST).exp() else arb(0)
        for a in np.flatnonzero(pulled):
            weights[a] = arb(1e-25) if empty[a] else weights[a] * (1 - arb(1e-12))

    def _direction(self, weights: list, slope: list) -> np.ndarray:
        """x with (H C + eps) x = level - slope and sum_a C_a x_a = 0, C = w^(2 - alpha): C x is Newton's step."""
        free = ~self.held
        w = np.array([float(v) for v in weights])
        log_w = np.array([LOWEST if given_is_zero(v) else max(float(v.log().mid()), LOWEST) for v in weights])
        spread = np.where(free, np.exp((2.0 - self.posed.given.alpha) * log_w), 0.0)
        moving = np.flatnonzero(free).tolist()
        if not moving:
            return np.zeros(self.n)
        # relative to the free weights, or what they differ by would be lost when it becomes float64
        mean = _sum(weights[a] * slope[a] for a in moving) / _sum(weights[a] for a in moving)
        pull = np.array([float((mean - g).mid()) for g in slope])
        matrix = self.posed.curvature(w, log_w, spread)
        matrix = np.where(free[:, None] & free, matrix, 0.0) + self.posed.given.eps * np.eye(self.n)
        try:
            x, ones = np.linalg.solve(matrix, np.stack([np.where(free, pull, 0.0), np.where(free, 1.0, 0.0)], -1)).T
        except np.linalg.LinAlgError:
            return np.where(free, pull, 0.0)
        level = (spread @ x) / (spread @ ones) if spread @ ones else 0.0
        return np.nan_to_num(x - level * ones)

    def _moved(self, weights: list, step: np.ndarray, length: float) -> list:
        if self.entropic:
            z = [arb(LOWEST) if given_is_zero(w) else w.log() for w in weights]
            limit = [max(1.0, -1.0 - float(v.mid())) for v in z]
            moved = [
                w if held else (v + min(length * x, top)).max(arb(LOWEST)).exp().mid()
                for w, v, x, top, held in zip(weights, z, step.tolist(), limit, self.held, strict=True)
            ]
            return self._fill(moved, self.full)
        change = [
            arb(0) if held else length * x * (w.log() * (2 - arb(self.posed.given.alpha))).exp()
            for w, x, held in zip(weights, step.tolist(), self.held, strict=True)
        ]
        # a weight that would turn negative shrinks by a factor instead: it may belong to an action of its own, where it
        # must not vanish; where it may, the next factors are far smaller
        moved = [
            w if held else (w * (c / w).exp() if -2 * c > w else w + c).mid()
            for w, c, held in zip(weights, change, self.held, strict=True)
        ]
        least = arb(LOWEST).exp()
        return self._fill([arb(0) if v < least else v for v in moved], self.full)


class _Key:
    """Sorts midpoints, which float64 could not tell apart."""

    def __init__(self, value: arb) -> None:
        self.value = value

    def __lt__(self, other: "_Key") -> bool:
        return bool(self.value < other.value)

    def __gt__(self, other: "_Key") -> bool:
        return bool(self.value > other.value)


def given_is_zero(value: arb) -> bool:
    """Whether it is exactly zero."""
    return bool(value == 0)


def _same(some: list, others: list) -> bool:
    return all(bool(a.mid() == b.mid()) for a, b in zip(some, others, strict=True))


def _sum(values: Any) -> arb:
    total = arb(0)
    for value in values:
        total += value
    return total


def _normalised(values: list) -> list:
    total = _sum(values)
    return [v / total for v in values]


def _log_softmax(values: list) -> list:
    top = max(values, key=lambda v: _Key(v.mid())).mid()
    total = top + _sum((v - top).exp() for v in values).log()
    return [v - total for v in values]
