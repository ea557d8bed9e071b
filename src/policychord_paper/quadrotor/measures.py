"""What is measured of flights: differences in cost, seed by seed, recovery from the impulse, changes of the lead."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.stats import iqr, norm, wilcoxon

from policychord.effect_size import EffectSize, Spread, effect_size, spread
from policychord.worlds.quadrotor import Experiment, Flight, Flights, QuadrotorSettings

from ..claim import Quantity, count
from .experiments import Pairs

LEAST_EVIDENCE = 0.05  # a p-value above it is no difference
LOOK_FOR_PEAK = 1.0  # s after the impulse within which the excursion peaks
BESIDE = 1.0  # s before and after the impulse over which weights are compared
LEAST_RISE = 1e-3  # of a weight: two controllers that take turns have equal means before and after, up to rounding
FOLLOW_FOR = 2.0  # s after the impulse over which the error is summed up; later impulses are left out


class CostComparison(NamedTuple):
    """Costs of one controller and of another under the same disturbances."""

    name: str
    cost: Spread
    against: EffectSize  # Cliff's delta of its cost against the other's
    difference: float  # median of (its cost - the other's cost) over seeds
    better: float  # share of seeds in which it is cheaper than the other
    stabilising: float  # mean weight of the stabilising primitive
    paired_p: float  # of Wilcoxon's signed-rank test on the differences seed by seed
    other: float  # the other's median cost

    @property
    def cheaper(self) -> bool:
        """Whether it costs less by the paper's test."""
        return self.against.delta < 0 and self.against.p < LEAST_EVIDENCE

    @property
    def dearer(self) -> bool:
        return self.against.delta > 0 and self.against.p < LEAST_EVIDENCE

    @property
    def verb(self) -> str:
        """Its verdict: that it costs less or more, or that these seeds do not tell."""
        if self.cheaper or self.dearer:
            return "costs less than" if self.cheaper else "costs more than"
        if self.paired_p < LEAST_EVIDENCE:  # what the judging test misses, and the test for pairs sees
            return f"costs {'less' if self.difference < 0 else 'more'}, seed by seed only, than"
        return "is not distinguished from"


Both = dict[Experiment, CostComparison]  # the same comparison for both pairs of primitives


def compare_costs(settings: QuadrotorSettings, flights: Flights, name: str, other: str = "baseline") -> CostComparison:
    """One controller against another, seed by seed."""
    flight = flights[name]
    base = flights[other].cost[: len(flight.cost)]  # where a control has fewer seeds, they are the first ones
    return CostComparison(
        name,
        spread(flight.cost),
        _against(flight.cost.tobytes(), base.tobytes(), settings.resamples, settings.seed),
        float(np.median(flight.cost - base)),
        float(np.mean(flight.cost < base)),
        float(np.mean(flight.stabilising)),
        # flights with the same seed meet the same disturbances; the paper's Mann-Whitney test compares each flight with
        # every other, and counts what the disturbances do to both as noise
        1.0 if np.array_equal(flight.cost, base) else float(wilcoxon(flight.cost, base).pvalue),
        spread(base).median,
    )


@lru_cache(maxsize=1024)
def _against(costs: bytes, base: bytes, resamples: int, seed: int) -> EffectSize:
    """Claims, controls and findings ask for the same comparisons; at 1000 seeds each takes a quarter of a second."""
    return effect_size(np.frombuffer(costs), np.frombuffer(base), paired=True, resamples=resamples, seed=seed)


class _AfterImpulse(NamedTuple):
    """How flights came back after the impulse; those whose impulse came too late to be followed are left out."""

    time: Float[np.ndarray, " episode"]  # seconds until within the radius again; 0: never left, inf: stayed away
    error: Float[np.ndarray, " episode"]  # distance summed over the two seconds that follow, in m s
    peak: Float[np.ndarray, " episode"]  # largest distance in the first second, in m


def compare_both(settings: QuadrotorSettings, pairs: Pairs, name: str, other: str = "baseline") -> Both:
    pd, lqr = (compare_costs(settings, flights, name, other) for flights in pairs)
    return {"pd": pd, "lqr": lqr}


def quantities(label: str, comparison: CostComparison) -> dict[str, Quantity]:
    """A comparison as measured numbers, with `label` saying of what."""
    effect = comparison.against
    return {
        f"delta, {label}": Quantity(effect.delta, interval=(effect.low, effect.high)),
        f"p, {label}": Quantity(effect.p),
        f"paired p, {label}": Quantity(comparison.paired_p),
        f"median cost, {label}": Quantity(comparison.cost.median),
        f"the other's median cost, {label}": Quantity(comparison.other),
    }


def standard_error(count: int) -> float:
    """Of a delta between two samples of this size where there is no difference: sqrt((2n + 1)/(3 n^2))."""
    return float(np.sqrt((2 * count + 1) / (3 * count**2)))


def expected_p(delta: float, count: int) -> float:
    """The Mann-Whitney p-value of a delta between two samples of this size."""
    return float(2 * norm.sf(abs(delta) / standard_error(count)))


def p_of_more(differences: np.ndarray) -> float:
    """Of Wilcoxon's signed-rank test that paired differences are not positive; 1 where all are zero."""
    return float(wilcoxon(differences, alternative="greater").pvalue) if np.any(differences) else 1.0


def range_above(settings: QuadrotorSettings, cost: np.ndarray, base: np.ndarray) -> tuple[float, float]:
    """By how much an inter-quartile range exceeds another, and the upper end of 95% over seeds resampled in pairs."""
    rows = np.random.default_rng((settings.seed, 17)).integers(len(cost), size=(settings.resamples, len(cost)))
    drawn = iqr(cost[rows], axis=1) - iqr(base[: len(cost)][rows], axis=1)
    return spread(cost).range - spread(base).range, float(np.quantile(drawn, 0.975))


def decisions_in(settings: QuadrotorSettings, seconds: float) -> int:
    """How many decisions are made in this time."""
    return round(seconds / settings.dt)


def recovery(settings: QuadrotorSettings, flight: Flight) -> _AfterImpulse:
    """Time from the impulse until the drone, past the peak of its excursion, is within the radius again."""
    dt, (look, follow) = settings.dt, (decisions_in(settings, time) for time in (LOOK_FOR_PEAK, FOLLOW_FOR))
    times, errors, peaks = [], [], []
    for episode in can_be_followed(settings, flight):
        after = flight.distance[episode, flight.impulse_time[episode] :]
        peak = int(np.argmax(after[: look + 1]))
        back = np.flatnonzero(after[peak:] <= settings.recovered)
        returned = dt * (peak + back[0]) if back.size else np.inf
        times.append(0.0 if after[peak] <= settings.recovered else returned)
        errors.append(dt * after[: follow + 1].sum())
        peaks.append(after[peak])
    return _AfterImpulse(np.array(times), np.array(errors), np.array(peaks))


def can_be_followed(settings: QuadrotorSettings, flight: Flight) -> np.ndarray:
    """The episodes whose impulse leaves the time over which the error is summed up."""
    return np.flatnonzero(flight.impulse_time + decisions_in(settings, FOLLOW_FOR) <= settings.steps)


def share_near(settings: QuadrotorSettings, flight: Flight) -> Quantity:
    """In how many episodes the drone keeps, on average, within the radius around the path."""
    return count(flight.distance.mean(axis=1) < settings.recovered)


def rise_of_stabilising(
    settings: QuadrotorSettings, flight: Flight, seconds: float = BESIDE
) -> Float[np.ndarray, " flight"]:
    """By how much the stabilising primitive weighs more after the impulse than before it, in means over this time.

    Flights whose impulse leaves less time on one side are left out.
    """
    weight, impulse, span = flight.stabilising, flight.impulse_time, decisions_in(settings, seconds)
    inside = np.flatnonzero((impulse >= span) & (impulse + span <= weight.shape[1]))
    return np.array([weight[i, (k := impulse[i]) :][:span].mean() - weight[i, k - span : k].mean() for i in inside])


def stabilising_rises(settings: QuadrotorSettings, flight: Flight, seconds: float = BESIDE) -> Quantity:
    """In how many flights it weighs more after the impulse, by more than nothing."""
    return count(rise_of_stabilising(settings, flight, seconds) >= LEAST_RISE)


def alternation(flight: Flight) -> float:
    """The share of steps at which the leading primitive changes."""
    leads = flight.stabilising > 0.5
    changes = leads[:, 1:] != leads[:, :-1]
    return float(np.mean(changes)) if changes.size else 0.0
