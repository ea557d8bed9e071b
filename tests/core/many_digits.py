"""The same objective in fifty digits, to judge certificates that float64 wrote.

The problem is the one that is stored, with columns and weights rescaled exactly: a float64 vector sums to one only up
to rounding, and that rounding is not what a certificate speaks about.
"""

from typing import NamedTuple

import mpmath
import numpy as np
from mpmath import mpf

DIGITS = mpmath.MPContext()
DIGITS.dps = 50
_FLAT = DIGITS.mpf(10) ** -40  # the optimum is known to this gap, relative to eps


class Exact(NamedTuple):
    pi: list  # rows of Pi
    cost: list
    eps: mpf
    log_prior: list


class Point(NamedTuple):
    log_weights: list
    weights: list
    mixture: list
    slope: list  # h + eps (ln w - ln w_hat)
    energy: mpf


def exact(pi, cost, eps, log_prior) -> Exact:
    """One problem of float64 arrays, read digit by digit."""
    columns = [normalised([DIGITS.mpf(float(v)) for v in column]) for column in np.asarray(pi).T]
    return Exact(
        pi=[list(row) for row in zip(*columns, strict=True)],
        cost=[DIGITS.mpf(float(v)) for v in cost],
        eps=DIGITS.mpf(float(eps)),
        log_prior=_log_normalised([DIGITS.mpf(float(v)) for v in log_prior]),
    )


def normalised(values):
    total = DIGITS.fsum(values)
    return [v / total for v in values]


def energy(problem: Exact, weights):
    value = DIGITS.mpf(0)
    for row, cost in zip(problem.pi, problem.cost, strict=True):
        p = DIGITS.fdot(row, weights)
        value += p * (DIGITS.log(p) + cost) if p else 0
    for w, log_prior in zip(weights, problem.log_prior, strict=True):
        value += problem.eps * w * (DIGITS.log(w) - log_prior) if w else 0
    return value


def optimum(problem: Exact, log_start):
    """The optimal weights, by Newton's method in ln w from a good start."""
    point = _at(problem, _log_normalised([DIGITS.mpf(float(v)) for v in log_start]))
    for _ in range(100):
        if _gap(problem, point) <= problem.eps * _FLAT:
            return point.weights
        step, length = _newton(problem, point), DIGITS.mpf(1)
        while True:
            moved = [z + length * y for z, y in zip(point.log_weights, step, strict=True)]
            trial = _at(problem, _log_normalised(moved))
            if trial.energy <= point.energy + abs(point.energy) * DIGITS.eps * 100:
                break
            length /= 4
        point = trial
    raise AssertionError("the reference did not converge")


def excess_and_distance(problem: Exact, best, weights):
    """V(w) - V* and ||w - w*||_1."""
    w = normalised([DIGITS.mpf(float(v)) for v in weights])
    distance = DIGITS.fsum(abs(a - b) for a, b in zip(w, best, strict=True))
    return energy(problem, w) - energy(problem, best), distance


def _at(problem: Exact, z) -> Point:
    w = [DIGITS.exp(v) for v in z]
    mixture = [DIGITS.fdot(row, w) for row in problem.pi]
    surprise = [(DIGITS.log(p) if p else 0) + cost for p, cost in zip(mixture, problem.cost, strict=True)]
    columns = zip(*problem.pi, strict=True)
    slope = [
        DIGITS.fdot(column, surprise) + problem.eps * (v - log_prior)
        for column, v, log_prior in zip(columns, z, problem.log_prior, strict=True)
    ]
    return Point(z, w, mixture, slope, DIGITS.fdot(w, slope))


def _gap(problem: Exact, point: Point):
    x = [(point.energy - g) / problem.eps for g in point.slope]
    top = max(x)
    terms = [w * DIGITS.exp(v - top) for w, v in zip(point.weights, x, strict=True)]
    return abs(problem.eps * (top + DIGITS.log(DIGITS.fsum(terms))))


def _newton(problem: Exact, point: Point):
    roots = [DIGITS.sqrt(w) for w in point.weights]
    n = len(roots)
    system = DIGITS.matrix(n, n)
    for a in range(n):
        for b in range(n):
            terms = (row[a] * row[b] / p for row, p in zip(problem.pi, point.mixture, strict=True) if p)
            system[a, b] = roots[a] * roots[b] * DIGITS.fsum(terms) + (problem.eps if a == b else 0)
    force = [root * (point.energy - g) for root, g in zip(roots, point.slope, strict=True)]
    return [y / root for y, root in zip(DIGITS.lu_solve(system, DIGITS.matrix(force)), roots, strict=True)]


def _log_normalised(z):
    top = max(z)
    shift = top + DIGITS.log(DIGITS.fsum(DIGITS.exp(v - top) for v in z))
    return [v - shift for v in z]
