"""The study's evidence, and the numbers that are read off paths and problems."""

from collections.abc import Iterable
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


class Starts(NamedTuple):
    """Flows from every vertex and from points inside and on the border, long after: 40 tau."""

    distance: np.ndarray  # |w - w*| of each path
    vertices: int  # paths that began at one


class Followed(NamedTuple):
    """What one step of the study follows: problems with equally many primitives."""

    paths: list[Paths]
    starts: Starts


class Certificates(NamedTuple):
    """Weights near and far from the optimum: their distance from it in energy, and its bounds from both sides."""

    suboptimality: np.ndarray  # V - V*
    above: np.ndarray  # eps KL(w, S(w)), the certificate
    below: np.ndarray  # eps KL(w, w*)


class Identities(NamedTuple):
    """Statements that need no path: the largest error of each over random points or problems."""

    prox: float  # |prox - softmax|
    dissipation: float  # relative
    gradient: float
    smallest_eigenvalue: float  # of the Hessian of F
    largest_eigenvalue: float  # in units of L_F
    median_bound: float  # L_F
    hot: float  # |w - uniform|
    cold: float  # F - min F, the largest, in units of eps ln n
    least: float  # F - min F, the least, nat
    anywhere: float  # |w - argmin F|
    residual: float  # |w - S(w)|
    identical: float  # |w - prior| for identical primitives
    corner: float  # |S(w) - e_i| at a temperature of 1e-3 of the gap between the two lowest entries of the gradient
    blunt: float  # the same at that gap
    joint: float  # |joint KL - (F + ln Z)| of generative models with a cost


class OtherComplexity(NamedTuple):
    """The statements T1, T2 and T4 to T7 on problems with another complexity: the worst number of each."""

    problems: int
    sum_off: float  # |sum - 1| along the flow
    smallest: float  # weight along it
    end: float  # |w - optimum| at its end, the optimum by an independent method
    judge: float  # residual of that optimum
    dissipation: float  # relative
    energy: float  # gap - bound
    distance: float  # distance - bound
    above: float  # (V - V*) - eps KL(w, S)
    below: float  # eps KL(w, w*) - (V - V*)


class HeldUnits(NamedTuple):
    """Both units of the circuits of one study, each with the other held."""

    fast_end: float  # largest |y - target| at the end
    slow_end: float  # largest |w - softmax(y)|
    fast_rate: float  # least fitted rate, in units of eps / tau~_g
    slow_rate: float  # the same, in units of 1 / tau
    problems: int


class Settling(NamedTuple):
    """The circuit on problems of one study: how far from the optimum it ends, and one problem beside the flow."""

    furthest: float
    problems: int
    eps: float
    times: np.ndarray
    circuit: np.ndarray  # weights, (time, primitive)
    flow: np.ndarray


class Oscillation(NamedTuple):
    """The problem whose circuit grows fastest, with time scales as stated and as corrected."""

    study: str
    optimum: np.ndarray
    times: np.ndarray
    stated: np.ndarray  # (time, primitive)
    corrected: np.ndarray

    @property
    def tail(self) -> np.ndarray:
        """Weights with the stated time scales, long after any slow start: t in [80, 100]."""
        return self.stated[self.times >= 80.0]


class Ladders(NamedTuple):
    """Whether circuits settle: by study, by temperature and ratio, and with the corrected rule."""

    eps: dict[str, float]  # by study
    tried: dict[str, int]  # recorded problems of each study
    unstable: dict[str, int]  # of these, with the stated ordering at the stated ratio
    ratio: dict[str, float]  # from which all of them settle
    growth: float  # of the worst problem, 1/tau
    corrected: dict[str, int]  # unstable ones of each study with the corrected ladder
    failures: int  # of random circuits with the corrected ladder
    map_eps: np.ndarray
    map_ratio: np.ndarray
    map_stated: np.ndarray  # largest growth rate of a few problems, (ratio, eps)
    map_corrected: np.ndarray


class Variants(NamedTuple):
    """What comes out if the prior's place, the damping or the integrator is changed."""

    prior_as_input: dict[str, float]  # by shape: largest distance from the weights that the prior itself gives
    stuck: int  # problems on which w <- S(w) does not settle
    predicted: int  # problems on which the linearisation says so: mu > eps
    tried: int
    excess_default: np.ndarray  # largest gap - bound of a path of RK45, at its default tolerances
    excess_strict: np.ndarray  # the same at strict tolerances


class Evidence(NamedTuple):
    """What the experiments found."""

    paths: list[Paths]  # by shape
    ring: Paths  # the problem of the illustration, from a ring of starts
    judged_optima: list[np.ndarray]  # by shape: optima of the first problems, by an independent optimiser
    starts: list[Starts]  # by number of primitives
    others: dict[str, OtherComplexity]  # by complexity
    certificates: Certificates
    identities: Identities
    circuits: dict[str, Settling]  # by study
    units: dict[str, HeldUnits]  # by study
    ladders: Ladders
    oscillation: Oscillation
    support: dict[str, float]  # by study: least probability of an action under a primitive
    variants: Variants


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


def compare_with_bounds(all_bounded: Iterable[Bounded], first: int = 0) -> tuple[float, float]:
    """Largest series - bound, and largest series / bound in the first five tau, from moment `first` on."""
    rows = [((s - b)[:, first:].max(), (s / b)[:, first:][:, t[first:] <= 5.0].max()) for t, s, b in all_bounded]
    violation, tightest = np.max(rows, axis=0)
    return float(violation), float(tightest)


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
