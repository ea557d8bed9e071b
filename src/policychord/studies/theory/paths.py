"""Paths of the flow: random problems from random starts, followed until nothing moves."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.equilibrium import solve
from ...core.flow import flow
from ...core.objective import Problem, energy, problem
from ...core.stability import curvatures
from ..study import Evidence
from .problems import SHAPES, random_problems, random_weights
from .settings import TheorySettings

FLOWS = {"flow, three primitives": 3, "flow, six primitives": 6}  # steps of the work
EXACT = 1e-20  # a gap at which the optimum is known to all digits that matter here
LONG = 3  # paths end after this many horizons, where an end point is as good as an equilibrium
PER_HORIZON = 200  # moments kept in each of them
ILLUSTRATED = (12, 3)  # its shape is one of SHAPES, so that it costs no compilation of its own


class Paths(NamedTuple):
    """Problems of one shape, their optima, and the flow from a start of each."""

    problems: Problem
    times: np.ndarray  # in units of tau
    weights: np.ndarray  # (problem, time, primitive)
    energy: np.ndarray  # (problem, time)
    optimum: np.ndarray  # (problem, primitive)
    least: np.ndarray  # V*
    slowest: np.ndarray  # least rate of the flow at the optimum, (1 + mu/eps)/tau over its modes


class Illustration(NamedTuple):
    """One problem with three primitives, and the flow from a ring of starts."""

    problem: Problem
    optimum: np.ndarray
    times: np.ndarray
    weights: np.ndarray  # (start, time, primitive)


class Flows(NamedTuple):
    """What one compiled program gives: paths by shape, and the illustration if its primitives are as many."""

    paths: dict[tuple[int, int], Paths]
    shown: Illustration | None


def follow(settings: TheorySettings, primitives: int) -> Flows:
    """The paths of all random problems with so many primitives, in one batch."""
    drawn = random_problems(settings.seed, settings.problems)
    batches = {s: (k, b) for k, (s, b) in enumerate(zip(SHAPES, drawn, strict=True)) if s[1] == primitives}
    starts = [random_weights(settings.seed + k, batch) for k, batch in batches.values()]
    stacked = [batch for _, batch in batches.values()]
    one, ring = illustration(), ring_of_starts()
    if one.log_prior.size == primitives:
        stacked.append(Problem(*(np.broadcast_to(field, (len(ring), *field.shape)) for field in one)))
        starts.append(ring)
    together, start = joined(stacked), np.concatenate(starts)
    path = flow(together, t1=LONG * settings.horizon, start=start, save=LONG * PER_HORIZON + 1)
    times = np.asarray(path.times)
    ends = np.cumsum([len(part) for part in starts])
    weights = np.split(np.asarray(path.weights), ends[:-1])
    heights = np.split(np.asarray(path.energy), ends[:-1])
    paths = {
        shape: _with_optimum(batch, times, w, v)
        for (shape, (_, batch)), w, v in zip(batches.items(), weights, heights, strict=False)
    }
    if one.log_prior.size != primitives:
        return Flows(paths, None)
    return Flows(paths, Illustration(one, np.asarray(solve(one).weights), times, weights[-1]))


def _with_optimum(batch: Problem, times: np.ndarray, weights: np.ndarray, heights: np.ndarray) -> Paths:
    best = np.asarray(solve(batch, tol=EXACT).weights)
    slowest = 1.0 + curvatures(batch)[:, -1] / batch.eps
    return Paths(batch, times, weights, heights, best, np.asarray(energy(batch, best)), slowest)


def joined(batches: Sequence[Problem]) -> Problem:
    """Problems with as many primitives as one batch; actions that nobody ever takes fill them up to one shape."""
    most = max(batch.pi.shape[1] for batch in batches)
    filled = []
    for batch in batches:
        more = most - batch.pi.shape[1]
        pi = np.pad(batch.pi, ((0, 0), (0, more), (0, 0)))
        filled.append(batch._replace(pi=pi, action_cost=np.pad(batch.action_cost, ((0, 0), (0, more)))))
    return Problem(*(np.concatenate(fields) for fields in zip(*filled, strict=True)))


def everything(evidence: Evidence) -> list[Paths]:
    """The paths of all shapes."""
    return [paths for step in FLOWS for paths in evidence[step].paths.values()]


def within_horizon(settings: TheorySettings, paths: Paths) -> np.ndarray:
    """Which moments belong to the first horizon."""
    return paths.times <= settings.horizon * (1 + 1e-12)


def gaps(paths: Paths) -> np.ndarray:
    """V(w(t)) - V*, (problem, time)."""
    return paths.energy - paths.least[:, None]


def distances(paths: Paths) -> np.ndarray:
    """|w(t) - w*|, (problem, time)."""
    return np.linalg.norm(paths.weights - paths.optimum[:, None], axis=-1)


def decay_rate(times: np.ndarray, series: np.ndarray, high: float, low: float) -> np.ndarray:
    """The slope of -ln of each series between the moments at which it has fallen to `high` and `low` of its start.

    NaN for a series that has not fallen that far.
    """
    fallen = series / series[:, :1]
    rates = np.full(len(series), np.nan)
    for i, one in enumerate(fallen):
        if (one <= low).any():
            first, last = int(np.argmax(one <= high)), int(np.argmax(one <= low))
            if last > first and one[last] > 0:
                rates[i] = np.log(one[first] / one[last]) / (times[last] - times[first])
    return rates


def illustration() -> Problem:
    """Three overlapping primitives on a line of actions, none of which fits the cost alone."""
    actions = np.linspace(-1.0, 1.0, ILLUSTRATED[0])
    log_pi = -((actions[:, None] - np.array([-0.65, 0.1, 0.6])) ** 2) / (2 * 0.3**2)
    pi = np.exp(log_pi)
    return problem(pi=pi / pi.sum(0), action_cost=4.0 * (np.abs(actions) - 0.35) ** 2 + 0.8 * actions, eps=0.3)


def simplex_grid(steps: int) -> np.ndarray:
    """Points of the simplex of three, evenly spread."""
    i, j = np.meshgrid(np.arange(steps + 1), np.arange(steps + 1), indexing="ij")
    inside = i + j <= steps
    return np.stack([i[inside], j[inside], steps - i[inside] - j[inside]], -1) / steps


def ring_of_starts() -> np.ndarray:
    """Just inside the border, so that no path hides another."""
    grid = simplex_grid(8)
    return grid[np.isclose(grid.min(-1), 0.0)] * 0.94 + 0.02
