"""The circuit on recorded problems: where it settles, its two units, and the time scales that it needs.

Units and counter-examples are integrated by generic methods, neuron by neuron: they share nothing with `circuit`.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import softmax

from policychord import Problem, TimeScales, circuit, circuit_stability, energy, primitive_cost, problem, time_scales

from ..study import Recorded
from .flows import _integrate_flow, decay_rate
from .problems import TheorySettings, exact, join, pick, random_weights

STATED = 10.0  # "faster" in the paper's ordering of the circuit's layers is measured at this ratio
PER_TAU = 10  # moments of the circuit that are stored
SPANS = 40.0  # time constants for which one unit of a circuit is followed
MOVED = 0.1  # of a weight: more is another composition
AT_REST = 1e-4  # a distance of which a millionth is below the integrator's error


class Settling(NamedTuple):
    """The circuit on problems of one study: how far from the optimum it ends, and one problem with its flow."""

    furthest: float
    problems: int
    eps: float
    times: np.ndarray
    circuit: np.ndarray  # weights, (time, primitive)
    flow: np.ndarray


class _Unit(NamedTuple):
    """One unit of a circuit in time while the other is held: its distance from where it should go."""

    times: np.ndarray
    distance: np.ndarray


class HeldUnits(NamedTuple):
    """Both units of the circuits of one study, each with the other held."""

    fast_end: float  # largest |y - target| at the end
    slow_end: float  # largest |w - softmax(y)|
    fast_rate: float  # least fitted rate, in units of eps / tau~_g
    slow_rate: float  # the same, in units of 1 / tau
    problems: int


class Frozen(NamedTuple):
    """Circuits of one study whose synapses stay at their mean over all contexts, against those that follow these."""

    moved: int  # problems of which a weight is off by more than MOVED
    median: float  # of the largest |w - w*| of each problem
    excess: float  # energy that it costs: V - V*, median, nat
    problems: int


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


def settle(settings: TheorySettings, primitives: int, recorded: Recorded) -> dict[str, Settling]:
    """Run the circuits of recorded problems with so many primitives, in one batch."""
    batches = {
        name: _take_evenly(batch, settings.circuits)
        for name, batch in recorded.items()
        if batch.log_prior.shape[-1] == primitives
    }
    if not batches:
        return {}
    save = round(settings.horizon * PER_TAU) + 1
    path = circuit(join(list(batches.values())), t1=settings.horizon, save=save)
    ends = np.cumsum([batch.eps.size for batch in batches.values()])[:-1]
    times, each = np.asarray(path.times), np.split(np.asarray(path.layers.w), ends)
    return {name: _settled(batch, times, w) for (name, batch), w in zip(batches.items(), each, strict=True)}


def _settled(batch: Problem, times: np.ndarray, weights: np.ndarray) -> Settling:
    best = exact(batch)
    # the problem to show: its optimum is away from the start, but no primitive has it all
    shown = int(np.argmax(np.sort(best, axis=-1)[:, -2] * np.abs(best - 1.0 / best.shape[-1]).max(-1)))
    early = times <= 6.0 * (1 + 1e-12)  # by then the weights of the figure have settled
    posed, now = pick(batch, shown), times[early]
    start = np.full(best.shape[-1], 1.0 / best.shape[-1])
    beside = _integrate_flow(posed, start, now, method="LSODA", rtol=1e-8, atol=1e-10)
    furthest = float(np.abs(weights[:, -1] - best).max())
    return Settling(furthest, len(best), float(posed.eps), now, weights[shown][early], beside)


def hold_units(settings: TheorySettings, recorded: Recorded) -> dict[str, HeldUnits]:
    """Each unit of recorded circuits with the other held: where it goes, and how fast."""
    return {name: units(_take_evenly(batch, settings.circuits), settings.seed) for name, batch in recorded.items()}


def units(batch: Problem, seed: int, swapped: bool = False) -> HeldUnits:
    """Both units of these problems; `swapped` expects each where the next problem's weights would send it."""
    held, rows = random_weights(seed, batch), []
    aims = np.roll(held, 1, axis=0) if swapped else held
    for i, (weights, aim) in enumerate(zip(held, aims, strict=True)):
        posed = pick(batch, i)
        scales = time_scales(posed.eps)
        leak = float(scales.gradient / posed.eps)
        y, aimed = (np.asarray(posed.log_prior - primitive_cost(posed, w) / posed.eps) for w in (weights, aim))
        fast = _integrate_fast_unit(posed, scales, weights, aimed, SPANS * leak)
        slow = _integrate_slow_unit(posed, scales, y, softmax(aimed), SPANS * float(scales.weights))
        rates = (_fall(unit, constant) for unit, constant in ((fast, leak), (slow, float(scales.weights))))
        rows.append((fast.distance[-1], slow.distance[-1], *rates))
    fast_end, slow_end, fast_rate, slow_rate = (np.array(column) for column in zip(*rows, strict=True))
    ends = float(fast_end.max()), float(slow_end.max())
    return HeldUnits(*ends, float(fast_rate.min()), float(slow_rate.min()), len(rows))


def _fall(unit: _Unit, constant: float) -> float:
    """The fitted rate in units of 1/constant; infinite for a unit that begins at its target and has nothing to fall."""
    if unit.distance[0] < AT_REST:
        return np.inf
    rate = decay_rate(unit.times, unit.distance[None], 1e-2, 1e-6)[0]
    return float(np.nan_to_num(rate, nan=0.0)) * constant  # what does not fall has no rate


def _integrate_fast_unit(
    posed: Problem, scales: TimeScales, held: np.ndarray, target: np.ndarray, span: float
) -> _Unit:
    """Layers a, b and y with the weights held, from rest at uniform weights: does y go to -grad F/eps + ln prior?

    a = Pi v and y receives b through Pi^T b alone, so v and Pi^T b stand for both (an exact reduction).
    """
    pi, s, eps, log_prior = (np.asarray(field) for field in posed)
    n, hidden, gradient = log_prior.size, float(scales.hidden), float(scales.gradient)

    def heard(v: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(pi @ v, 1e-300)) @ pi

    def velocity(t: float, x: np.ndarray) -> np.ndarray:
        v, b, y = x.reshape(3, n)
        return np.concatenate([
            (held - v) / hidden, (heard(v) - b) / hidden, (eps * (log_prior - y) - b - s @ pi) / gradient,
        ])  # fmt: skip

    even = np.full(n, 1.0 / n)
    first = np.concatenate([even, heard(even), log_prior - (heard(even) + s @ pi) / eps])
    return _approach(velocity, first, target, span)


def _integrate_slow_unit(
    posed: Problem, scales: TimeScales, held: np.ndarray, target: np.ndarray, span: float
) -> _Unit:
    """Layers m, r and w with y held, from rest at uniform weights: does w go to softmax(y)?

    m is taken in units of exp(max y), since y does not change.
    """
    n, middle, tau = held.size, float(scales.softmax), float(scales.weights)
    y = held - held.max()

    def velocity(t: float, x: np.ndarray) -> np.ndarray:
        m, r, w = x[0], x[1 : n + 1], x[n + 1 :]
        return np.concatenate([
            [(np.exp(y).sum() - m) / middle], (y - np.log(max(m, 1e-300)) - r) / middle, (np.exp(r) - w) / tau,
        ])  # fmt: skip

    first = np.concatenate([[float(n)], np.full(n, -np.log(n)), np.full(n, 1.0 / n)])
    return _approach(velocity, first, target, span)


def _approach(velocity: Callable[..., np.ndarray], first: np.ndarray, target: np.ndarray, span: float) -> _Unit:
    """The distance of the last layer from its target in time."""
    times = np.linspace(0.0, span, 401)
    path = solve_ivp(velocity, (0.0, span), first, "LSODA", t_eval=times, rtol=1e-11, atol=1e-12)
    return _Unit(times, np.abs(path.y[-target.size :].T - target).max(-1))


def freeze_synapses(settings: TheorySettings, recorded: Recorded) -> dict[str, Frozen]:
    """Each study's circuits with the synapses of an average context; the input s still follows the context."""
    return {name: frozen(batch) for name, batch in recorded.items()}


def frozen(batch: Problem) -> Frozen:
    """The steady state of a circuit is the optimum of its problem (T11), so it is solved for."""
    best = exact(batch)
    kept = exact(batch._replace(pi=np.broadcast_to(batch.pi.mean(axis=0), batch.pi.shape)))
    off, excess = np.abs(kept - best).max(-1), energy(batch, kept) - energy(batch, best)
    return Frozen(int((off > MOVED).sum()), float(np.median(off)), float(np.median(excess)), off.size)


def oscillate(settings: TheorySettings, recorded: Recorded) -> Oscillation:
    """The recorded problem that grows fastest as stated, integrated neuron by neuron: it shares nothing with `circuit`.

    100 tau are long enough to tell a slow start from an oscillation that stays.
    """
    growth = {name: circuit_stability(batch, _geometric_ladder(STATED)).growth for name, batch in recorded.items()}
    worst = max(growth, key=lambda name: growth[name].max())
    posed = pick(recorded[worst], int(np.argmax(growth[worst])))
    times = np.linspace(0.0, 100.0, 100 * PER_TAU + 1)
    stated, corrected = (
        integrate_circuit(posed, scales, times) for scales in (_geometric_ladder(STATED), time_scales(posed.eps))
    )
    return Oscillation(worst, exact(posed), times, stated, corrected)


def integrate_circuit(posed: Problem, scales: TimeScales, times: np.ndarray) -> np.ndarray:
    """Weights of the circuit, all 2d + 3n + 1 neurons as the paper writes them (m as its logarithm)."""
    pi, s, eps, log_prior = (np.asarray(field) for field in posed)
    d, n = pi.shape
    hidden, gradient, middle, tau = (float(t) for t in scales)
    layers = [slice(low, high) for low, high in pairwise(np.cumsum([0, d, d, n, 1, n, n]).tolist())]

    def log_sum(y: np.ndarray) -> Any:  # ln sum exp, without the checks that would take most of the time here
        top = y.max()
        return top + np.log(np.exp(y - top).sum())

    def velocity(t: float, x: np.ndarray) -> np.ndarray:
        a, b, y, log_m, r, w = (x[layer] for layer in layers)
        return np.concatenate([
            (pi @ w - a) / hidden,
            (np.log(np.maximum(a, 1e-300)) - b) / hidden,
            (eps * (log_prior - y) - (b + s) @ pi) / gradient,
            np.expm1(log_sum(y) - log_m) / middle,
            (y - log_m - r) / middle,
            (np.exp(r) - w) / tau,
        ])  # fmt: skip

    w = np.full(n, 1.0 / n)
    a = pi @ w
    y = log_prior - (np.log(a) + s) @ pi / eps
    start = np.concatenate([a, np.log(a), y, [log_sum(y)], y - log_sum(y), w])
    path = solve_ivp(velocity, (times[0], times[-1]), start, "LSODA", t_eval=times, rtol=1e-7, atol=1e-10)
    return path.y[-n:].T


def compare_ladders(settings: TheorySettings, recorded: Recorded) -> Ladders:
    """Count the circuits that settle, without integrating anything."""
    stated = {name: circuit_stability(batch, _geometric_ladder(STATED)) for name, batch in recorded.items()}
    circuits = random_circuits(settings.seed, settings.stability_draws)
    eps, ratio = np.logspace(-3, 1, 81), np.logspace(0.3, 3, 73)
    coldest = min(recorded, key=lambda name: recorded[name].eps.min())
    few = _take_evenly(recorded[coldest], 8)
    return Ladders(
        eps={name: float(np.median(batch.eps)) for name, batch in recorded.items()},
        tried={name: batch.eps.size for name, batch in recorded.items()},
        unstable={name: int((~stability.stable).sum()) for name, stability in stated.items()},
        ratio={name: ratio_that_settles(batch) for name, batch in recorded.items()},
        growth=max(float(stability.growth.max()) for stability in stated.values()),
        corrected={name: int((~circuit_stability(batch).stable).sum()) for name, batch in recorded.items()},
        failures=int((~circuit_stability(circuits, time_scales(circuits.eps)).stable).sum()),
        map_eps=eps,
        map_ratio=ratio,
        map_stated=np.stack([_worst_growth(few, e, ratio, corrected=False) for e in eps], axis=-1),
        map_corrected=np.stack([_worst_growth(few, e, ratio, corrected=True) for e in eps], axis=-1),
    )


def _geometric_ladder(ratio: float | np.ndarray, tau: float = 1.0) -> TimeScales:
    """The ordering as the paper states it: each layer `ratio` times faster than the next, whatever eps."""
    ratio = np.asarray(ratio, dtype=float)
    return TimeScales(tau / ratio**3, tau / ratio**2, tau / ratio, np.full_like(ratio, tau))


def random_circuits(seed: int, count: int) -> Problem:
    """Problems for the stability of the circuit: nearly deterministic to flat primitives, eps from .001 to 10."""
    rng = np.random.default_rng(seed)
    pi = rng.gamma(10 ** rng.uniform(-1, 1, (count, 1, 1)), size=(count, 8, 4)) + 1e-9
    return problem(
        pi=pi / pi.sum(1, keepdims=True),
        action_cost=rng.normal(scale=2.0, size=(count, 8)),
        eps=10 ** rng.uniform(-3, 1, count),
    )


def ratio_that_settles(batch: Problem) -> float:
    """The ratio of time scales beyond which the stated ordering is stable for every problem of a batch."""
    ratios = np.logspace(0.05, 4, 159)
    stable = circuit_stability(pick(batch, np.s_[:, None]), _geometric_ladder(ratios)).stable
    fails = np.flatnonzero(~stable.all(axis=0))
    return float(ratios[fails.max(initial=-1) + 1])


def _worst_growth(base: Problem, eps: float, ratio: np.ndarray, *, corrected: bool) -> np.ndarray:
    """For each ratio, the largest growth rate over a few problems at one temperature."""
    batch = pick(base._replace(eps=np.full_like(base.eps, eps)), np.s_[:, None])
    scales = time_scales(np.full_like(ratio, eps), 1.0, ratio) if corrected else _geometric_ladder(ratio)
    return np.asarray(circuit_stability(batch, scales).growth).max(axis=0)


def _take_evenly(batch: Problem, count: int) -> Problem:
    """At most so many of a batch, evenly over it."""
    size = batch.eps.size
    return pick(batch, np.linspace(0, size - 1, min(count, size)).astype(int))
