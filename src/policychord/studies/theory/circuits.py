"""The neural circuit on problems of the three studies, and where its time scales let it settle."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

from ...core.circuit import TimeScales, circuit, time_scales
from ...core.equilibrium import solve
from ...core.objective import Problem, gate, problem
from ...core.stability import circuit_stability
from .paths import EXACT, joined
from .problems import STUDIES, bandit_problems
from .settings import TheorySettings

SHOWN = 6.0  # tau: by then the weights of the figure have settled
LONG = 100.0  # tau: long enough to tell a slow start from an oscillation that stays
PER_TAU = 10  # moments kept
CIRCUITS = {"circuit, flock and bandit": ("flock", "bandit"), "circuit, quadrotor": ("quadrotor",)}  # steps of the work
STATED = 10.0  # each layer this many times faster than the next
SEARCHED = 200  # problems among which a counter-example is looked for


class Side(NamedTuple):
    """One problem: the weights of the circuit and of the flow at the same moments."""

    eps: float
    times: np.ndarray
    circuit: np.ndarray  # (time, primitive)
    flow: np.ndarray


class Settling(NamedTuple):
    """The circuit on problems of one study: how far from the optimum it ends, and one problem beside the flow."""

    furthest: float
    shown: Side


class Oscillation(NamedTuple):
    """The worst problem found, with time scales as stated and as corrected."""

    optimum: np.ndarray
    times: np.ndarray
    stated: np.ndarray  # (time, primitive)
    corrected: np.ndarray


class Ladders(NamedTuple):
    """Whether circuits settle: by study, by temperature and ratio, and with the corrected rule."""

    unstable: dict[str, int]  # of SEARCHED problems of each study, with the stated ordering at ratio STATED
    ratio: dict[str, float]  # from which all of them settle
    growth: float  # of the worst bandit problem, 1/tau
    corrected: dict[str, int]  # unstable ones of each study with the corrected ladder
    failures: int  # of random circuits with the corrected ladder
    map_eps: np.ndarray
    map_ratio: np.ndarray
    map_stated: np.ndarray  # largest growth rate of a few problems, (ratio, eps)
    map_corrected: np.ndarray


def settle(settings: TheorySettings, studies: Sequence[str]) -> dict[str, Settling]:
    """Run the circuits of studies that have as many primitives, in one batch."""
    batches = {name: STUDIES[name](settings.seed, settings.circuits) for name in studies}
    path = circuit(joined(list(batches.values())), t1=settings.horizon, save=round(settings.horizon * PER_TAU) + 1)
    times, each = np.asarray(path.times), np.split(np.asarray(path.layers.w), len(batches))
    return {name: _settled(batch, times, w) for (name, batch), w in zip(batches.items(), each, strict=True)}


def oscillate(settings: TheorySettings) -> Oscillation:
    """The counter-example, integrated neuron by neuron with SciPy: it shares nothing with `circuit`."""
    one = worst(bandit_problems(settings.seed, SEARCHED))
    times = np.linspace(0.0, LONG, round(LONG * PER_TAU) + 1)
    stated, corrected = (
        plain_circuit(one, scales, times) for scales in (geometric_ladder(STATED), time_scales(one.eps))
    )
    return Oscillation(np.asarray(solve(one, tol=EXACT).weights), times, stated, corrected)


def plain_circuit(one: Problem, scales: TimeScales, times: np.ndarray) -> np.ndarray:
    """Weights of the circuit, all 2d + 3n + 1 neurons as the paper writes them (m as its logarithm)."""
    pi, s, eps, log_prior = (np.asarray(field) for field in one)
    d, n = pi.shape
    hidden, gradient, softmax, tau = (float(t) for t in scales)

    ends = np.cumsum([0, d, d, n, 1, n, n])
    parts = [slice(low, high) for low, high in pairwise(ends.tolist())]

    def velocity(t, x):
        a, b, y, log_m, r, w = (x[part] for part in parts)
        return np.concatenate([
            (pi @ w - a) / hidden,
            (np.log(np.maximum(a, 1e-300)) - b) / hidden,
            (eps * (log_prior - y) - (b + s) @ pi) / gradient,
            np.expm1(_log_sum(y) - log_m) / softmax,
            (y - log_m - r) / softmax,
            (np.exp(r) - w) / tau,
        ])  # fmt: skip

    w = np.full(n, 1.0 / n)
    a = pi @ w
    y = log_prior - (np.log(a) + s) @ pi / eps
    start = np.concatenate([a, np.log(a), y, [_log_sum(y)], y - _log_sum(y), w])
    path = solve_ivp(velocity, (times[0], times[-1]), start, "LSODA", t_eval=times, rtol=1e-7, atol=1e-10)
    return path.y[-n:].T


def _log_sum(y: np.ndarray) -> float:
    """ln sum exp, without the checks that would take most of the time here."""
    top = y.max()
    return top + np.log(np.exp(y - top).sum())


def _settled(batch: Problem, times: np.ndarray, weights: np.ndarray) -> Settling:
    best = np.asarray(solve(batch, tol=EXACT).weights)
    shown = _telling(best)
    early = times <= SHOWN * (1 + 1e-12)
    one = Problem(*(field[shown] for field in batch))
    side = Side(float(one.eps), times[early], weights[shown][early], plain_flow(one, times[early]))
    return Settling(float(np.abs(weights[:, -1] - best).max()), side)


def plain_flow(one: Problem, times: np.ndarray) -> np.ndarray:
    """The flow of one problem by SciPy, which needs no compilation: (time, primitive)."""
    n = one.log_prior.size
    span, start = (times[0], times[-1]), np.full(n, 1.0 / n)
    path = solve_ivp(lambda t, w: gate(one, w) - w, span, start, "LSODA", t_eval=times, rtol=1e-8, atol=1e-10)
    return path.y.T


def worst(batch: Problem) -> Problem:
    """The problem whose circuit grows fastest with the ordering as stated."""
    place = int(np.argmax(circuit_stability(batch, geometric_ladder(STATED)).growth))
    return Problem(*(field[place] for field in batch))


def compare_ladders(settings: TheorySettings) -> Ladders:
    """Count who settles, without integrating anything."""
    batches = {name: draw(settings.seed, SEARCHED) for name, draw in STUDIES.items()}
    stated = {name: circuit_stability(batch, geometric_ladder(STATED)) for name, batch in batches.items()}
    eps, ratio = np.logspace(-3, 1, 81), np.logspace(0.3, 3, 73)
    few = bandit_problems(settings.seed, 8)
    return Ladders(
        {name: int((~found.stable).sum()) for name, found in stated.items()},
        {name: ratio_that_settles(batch) for name, batch in batches.items()},
        float(stated["bandit"].growth.max()),
        {name: int((~circuit_stability(batch).stable).sum()) for name, batch in batches.items()},
        stable_rule_failures(settings), eps, ratio,
        *(np.stack([_worst_growth(few, e, ratio, corrected) for e in eps], axis=-1) for corrected in (False, True)),
    )  # fmt: skip


def geometric_ladder(ratio, tau: float = 1.0) -> TimeScales:
    """The ordering as the paper states it: each layer `ratio` times faster than the next, whatever eps."""
    ratio = np.asarray(ratio, dtype=float)
    return TimeScales(tau / ratio**3, tau / ratio**2, tau / ratio, np.full_like(ratio, tau))


def ratio_that_settles(batch: Problem) -> float:
    """The ratio of time scales beyond which the stated ordering is stable for every problem of a batch."""
    ratios = np.logspace(0.05, 4, 159)
    each = Problem(*(field[:, None] for field in batch))
    fails = np.flatnonzero(~circuit_stability(each, geometric_ladder(ratios)).stable.all(axis=0))
    return float(ratios[fails.max(initial=-1) + 1])


def stable_rule_failures(settings: TheorySettings) -> int:
    """How many random circuits with the eps-aware ladder are unstable."""
    rng = np.random.default_rng(settings.seed)
    draws = settings.stability_draws
    pi = rng.gamma(10 ** rng.uniform(-1, 1, (draws, 1, 1)), size=(draws, 8, 4)) + 1e-9
    batch = problem(
        pi=pi / pi.sum(1, keepdims=True),
        action_cost=rng.normal(scale=2.0, size=(draws, 8)),
        eps=10 ** rng.uniform(-3, 1, draws),
    )
    return int((~circuit_stability(batch, time_scales(batch.eps)).stable).sum())


def _worst_growth(base: Problem, eps: float, ratio: np.ndarray, corrected: bool) -> np.ndarray:
    """For each ratio, the largest growth rate over a few problems at one temperature."""
    batch = Problem(*(field[:, None] for field in base._replace(eps=np.full_like(base.eps, eps))))
    scales = time_scales(np.full_like(ratio, eps), 1.0, ratio) if corrected else geometric_ladder(ratio)
    return np.asarray(circuit_stability(batch, scales).growth).max(axis=0)


def _telling(best: np.ndarray) -> int:
    """A problem worth showing: its optimum is away from the start, but no primitive has it all."""
    telling = np.sort(best, axis=-1)[:, -2] * np.abs(best - 1.0 / best.shape[-1]).max(-1)
    return int(np.argmax(telling))
