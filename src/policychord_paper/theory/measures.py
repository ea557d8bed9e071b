"""Paths of the flow, and the numbers that are read off them."""

from typing import NamedTuple

import numpy as np

from policychord import Problem

from .settings import TheorySettings


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
