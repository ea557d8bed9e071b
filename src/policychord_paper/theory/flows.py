"""Paths of the flow from everywhere, certificates of weights, and what other ways to the weights give."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

from policychord import Problem, certify, energy, flow, gate, problem
from policychord.core.stability import curvatures

from .problems import SHAPES, TheorySettings, exact, join, per_shape, pick, random_problems, random_weights

EVERYWHERE = 4  # problems of each shape whose flow starts everywhere
LONG = 40.0  # tau, after which it is looked at


class Paths(NamedTuple):
    """Problems of one shape, their optima, and the flow from a start of each."""

    problems: Problem
    times: np.ndarray  # in units of tau
    weights: np.ndarray  # (problem, time, primitive)
    energy: np.ndarray  # (problem, time)
    optimum: np.ndarray  # (problem, primitive)
    least: np.ndarray  # V*
    slowest: np.ndarray  # least rate of the flow at the optimum, (1 + mu/eps)/tau over its modes


# times until the horizon; a positive series of each problem and its bound, (problem, time)
Bounded = tuple[np.ndarray, np.ndarray, np.ndarray]


def gaps(paths: Paths) -> np.ndarray:
    """V(w(t)) - V*, (problem, time)."""
    return paths.energy - paths.least[:, None]


def distances(paths: Paths) -> np.ndarray:
    """|w(t) - w*|, (problem, time)."""
    return np.linalg.norm(paths.weights - paths.optimum[:, None], axis=-1)


def within_horizon(settings: TheorySettings, paths: Paths) -> np.ndarray:
    """Which moments belong to the first horizon."""
    return paths.times <= settings.horizon * (1 + 1e-12)


def bounded_gaps(settings: TheorySettings, paths: Paths) -> Bounded:
    """V(w(t)) - V* <= exp(-t/tau) (V(w(0)) - V*)."""
    now = within_horizon(settings, paths)
    gap, times = gaps(paths)[:, now], paths.times[now]
    return times, gap, np.exp(-times) * gap[:, :1]


def bounded_distances(settings: TheorySettings, paths: Paths) -> Bounded:
    """|w(t) - w*| <= sqrt(2/eps (V(w(0)) - V*)) exp(-t/(2 tau))."""
    now = within_horizon(settings, paths)
    times = paths.times[now]
    first = np.sqrt(2.0 / np.asarray(paths.problems.eps) * gaps(paths)[:, 0])[:, None]
    return times, distances(paths)[:, now], first * np.exp(-times / 2)


def decay_rate(times: np.ndarray, series: np.ndarray, high: float, low: float) -> np.ndarray:
    """The slope of -ln of each series between the moments at which it has fallen to `high` and `low` of its start.

    NaN for a series that has not fallen that far.
    """
    fallen = series / series[:, :1]
    rates = np.full(len(series), np.nan)
    for i, course in enumerate(fallen):
        if (course <= low).any():
            first, last = int(np.argmax(course <= high)), int(np.argmax(course <= low))
            if last > first and course[last] > 0:
                rates[i] = np.log(course[first] / course[last]) / (times[last] - times[first])
    return rates


class Starts(NamedTuple):
    """Flows from every vertex and from points inside and on the border, long after: 40 tau."""

    distance: np.ndarray  # |w - w*| of each path
    vertices: int  # paths that began at one


class _Followed(NamedTuple):
    """What one step of the study follows: problems with equally many primitives."""

    paths: list[Paths]
    starts: Starts


class Certificates(NamedTuple):
    """Weights near and far from the optimum: their distance from it in energy, and its bounds from both sides."""

    suboptimality: np.ndarray  # V - V*
    above: np.ndarray  # eps KL(w, S(w)), the certificate
    below: np.ndarray  # eps KL(w, w*)
    fall: np.ndarray  # -dV/dt = eps (KL(w, S) + KL(S, w)), in units of 1/tau
    rest: np.ndarray  # the same at the optimum of each problem


class Variants(NamedTuple):
    """What comes out if the damping or the integrator is changed."""

    stuck: int  # problems on which w <- S(w) does not settle
    predicted: int  # problems on which the linearisation says so: mu > eps
    tried: int
    excess_default: np.ndarray  # largest gap - bound of a path of RK45, at its default tolerances
    excess_strict: np.ndarray  # the same at strict tolerances


def follow(settings: TheorySettings, primitives: int) -> _Followed:
    """The paths of all random problems with so many primitives, then of the illustration if it has as many.

    They are followed for three horizons, after which an end point is as good as an equilibrium. Some problems start
    everywhere in the same batch, so that one program serves all.
    """
    drawn = [
        (k, batch) for k, batch in enumerate(random_problems(settings.seed, settings.problems))
        if SHAPES[k][1] == primitives
    ]  # fmt: skip
    parts = [(batch, random_weights(settings.seed + k, batch)) for k, batch in drawn]
    shown, ring = _illustration(), _ring_of_starts()
    if shown.log_prior.size == primitives:
        parts.append((Problem(*(np.broadcast_to(field, (len(ring), *field.shape)) for field in shown)), ring))
    some = [_everywhere(settings.seed, pick(batch, np.s_[:EVERYWHERE]), settings.starts) for _, batch in drawn]
    batches, starts = zip(*parts, *some, strict=True)
    path = flow(join(batches), t1=3 * settings.horizon, start=np.concatenate(starts), save=3 * 200 + 1)
    times, ends = np.asarray(path.times), np.cumsum([len(start) for start in starts])[:-1]
    weights, heights = np.split(np.asarray(path.weights), ends), np.split(np.asarray(path.energy), ends)
    paths = [_with_optimum(batch, times, w, v) for batch, w, v in zip(batches, weights, heights, strict=True)]
    late = int(np.argmin(np.abs(times - LONG)))
    away = [np.abs(p.weights[:, late] - p.optimum).max(-1) for p in paths[len(parts) :]]
    vertices = sum(min(EVERYWHERE, batch.eps.size) * primitives for _, batch in drawn)
    return _Followed(paths[: len(parts)], Starts(np.concatenate(away), vertices))


def _with_optimum(batch: Problem, times: np.ndarray, weights: np.ndarray, heights: np.ndarray) -> Paths:
    best, slowest = exact(batch), 1.0 + curvatures(batch)[:, -1] / batch.eps
    return Paths(batch, times, weights, heights, best, np.asarray(energy(batch, best)), slowest)


def _illustration() -> Problem:
    """Three overlapping primitives on a line of 12 actions (one of SHAPES), none of which fits the cost alone."""
    actions = np.linspace(-1.0, 1.0, 12)
    log_pi = -((actions[:, None] - np.array([-0.65, 0.1, 0.6])) ** 2) / (2 * 0.3**2)
    pi = np.exp(log_pi)
    return problem(pi=pi / pi.sum(0), action_cost=4.0 * (np.abs(actions) - 0.35) ** 2 + 0.8 * actions, eps=0.3)


def _everywhere(seed: int, batch: Problem, points: int) -> tuple[Problem, np.ndarray]:
    """Each problem of a batch once for every start: all vertices, then random points, half of them on the border."""
    n = batch.log_prior.shape[-1]
    rng = np.random.default_rng(seed)
    inside = rng.dirichlet(np.ones(n), (batch.eps.size, points))
    inside[:, ::2] *= np.arange(n) != rng.integers(n, size=(batch.eps.size, (points + 1) // 2, 1))
    vertices = np.broadcast_to(np.eye(n), (batch.eps.size, n, n))
    starts = np.concatenate([vertices, inside / inside.sum(-1, keepdims=True)], axis=1)
    return pick(batch, np.repeat(np.arange(batch.eps.size), n + points)), starts.reshape(-1, n)


def simplex_grid(steps: int) -> np.ndarray:
    """Points of the simplex of three, evenly spread."""
    i, j = np.meshgrid(np.arange(steps + 1), np.arange(steps + 1), indexing="ij")
    inside = i + j <= steps
    return np.stack([i[inside], j[inside], steps - i[inside] - j[inside]], -1) / steps


def _ring_of_starts() -> np.ndarray:
    """Just inside the border, so that no path hides another."""
    grid = simplex_grid(8)
    return grid[np.isclose(grid.min(-1), 0.0)] * 0.94 + 0.02


def certify_weights(settings: TheorySettings) -> Certificates:
    """Random weights, and weights near the optimum, with the bounds on their suboptimality."""
    rows, rest = [], []
    for k, batch in enumerate(random_problems(settings.seed, settings.problems)):
        best = exact(batch)
        for w in (random_weights(settings.seed + k, batch), 0.999 * best + 0.001 * random_weights(k, batch)):
            rows.append((*certify_at(batch, best, w), fall(batch, w)))
        rest.append(fall(batch, best))
    off, above, below, falls = (np.concatenate(column) for column in zip(*rows, strict=True))
    return Certificates(off, above, below, falls, np.concatenate(rest))


def fall(batch: Problem, w: np.ndarray) -> np.ndarray:
    """How fast the energy falls along the flow: eps (KL(w, S) + KL(S, w)) = eps sum_a (w - S)_a ln(w/S)_a."""
    response = np.asarray(gate(batch, w))
    rates: np.ndarray = np.asarray(batch.eps) * np.sum((w - response) * np.log(w / response), axis=-1)
    return rates


def certify_at(batch: Any, best: np.ndarray, w: np.ndarray) -> tuple[Any, ...]:
    """V - V*, eps KL(w, S(w)) and eps KL(w, w*) of weights of each problem of a batch."""
    off = energy(batch, w) - energy(batch, best)
    return off, certify(batch, w).gap, batch.eps * (w * np.log(w / best)).sum(-1)


def try_variants(settings: TheorySettings) -> Variants:
    """A gate that is iterated, and an integrator with its default tolerances."""
    batches = random_problems(settings.seed, settings.problems)
    stuck, predicted = (np.concatenate(c) for c in zip(*(_iterate_gate(batch) for batch in batches), strict=True))
    few = [pick(batch, np.s_[: per_shape(settings.judged)]) for batch in batches]
    starts = [random_weights(settings.seed + k, batch) for k, batch in enumerate(batches)]
    return Variants(
        stuck=int(stuck.sum()),
        predicted=int(predicted.sum()),
        tried=len(stuck),
        excess_default=np.concatenate(list(map(_exceed_bound, few, starts))),
        excess_strict=np.concatenate(list(map(partial(_exceed_bound, rtol=1e-10, atol=1e-13), few, starts))),
    )


def _iterate_gate(batch: Problem) -> tuple[np.ndarray, np.ndarray]:
    """(which problems are not settled after many undamped steps, for which the linearisation says so)."""
    w = np.exp(batch.log_prior)
    for _ in range(2000):
        w = np.asarray(gate(batch, w))
    off = np.abs(w - exact(batch)).max(-1)
    return off > 1e-6, curvatures(batch)[:, 0] > batch.eps


def _exceed_bound(batch: Problem, starts: np.ndarray, **tolerances: float) -> np.ndarray:
    """For each problem, the largest excess of the energy over its bound along a path of SciPy's RK45."""
    times, best, excess = np.linspace(0.0, 20.0, 101), energy(batch, exact(batch)), []
    for i in range(batch.eps.size):
        posed = pick(batch, i)
        path = _integrate_flow(posed, starts[i], times, **tolerances)
        gap = energy(pick(posed, None), np.maximum(path, 1e-300)) - best[i]
        excess.append((gap - np.exp(-times) * gap[0]).max())
    return np.array(excess)


def _integrate_flow(posed: Problem, start: np.ndarray, times: np.ndarray, **options: Any) -> np.ndarray:
    """The flow of one problem by `solve_ivp` with its options: (time, primitive)."""
    path = solve_ivp(lambda t, w: gate(posed, w) - w, (times[0], times[-1]), start, t_eval=times, **options)
    return path.y.T
