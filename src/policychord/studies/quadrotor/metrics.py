"""What is measured of flights: spread of the cost, differences from the baseline, recovery from the impulse."""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.stats import wilcoxon

from ...stats.effect_size import EffectSize, Spread, effect_size, spread
from .controllers import DT
from .settings import QuadrotorSettings
from .simulate import Flight

LOOK_FOR_PEAK = 50  # steps after the impulse within which the excursion peaks
FOLLOW_FOR = 100  # steps after the impulse over which the error is summed up; later impulses are left out


class Row(NamedTuple):
    """One line of the table."""

    name: str
    cost: Spread
    against: EffectSize  # Cliff's delta of its cost against the baseline's
    difference: float  # median of (its cost - the baseline's cost) over seeds
    better: float  # share of seeds in which it is cheaper than the baseline
    stabilising: float  # mean weight of the stabilising primitive
    paired_p: float  # of Wilcoxon's signed-rank test on the differences seed by seed


class Recovery(NamedTuple):
    """How flights came back after the impulse."""

    time: Float[np.ndarray, " episode"]  # seconds until within the radius again; 0: never left, inf: stayed away
    error: Float[np.ndarray, " episode"]  # distance summed over the two seconds that follow, in m s
    peak: Float[np.ndarray, " episode"]  # largest distance in the first second, in m


def table(settings: QuadrotorSettings, flights: Mapping[str, Flight], baseline: str = "baseline") -> list[Row]:
    """Every controller beside the baseline, seed by seed."""
    base = flights[baseline].cost
    return [
        Row(
            name,
            spread(flight.cost),
            _against(flight.cost.tobytes(), base.tobytes(), settings.resamples, settings.seed),
            float(np.median(flight.cost - base)),
            float(np.mean(flight.cost < base)),
            float(np.mean(flight.stabilising)),
            signed_rank(flight.cost, base),
        )
        for name, flight in flights.items()
    ]


def signed_rank(a: Float[np.ndarray, " seed"], b: Float[np.ndarray, " seed"]) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test.

    Flights with the same seed meet the same disturbances, which the Mann-Whitney test of the paper does not know: it
    compares everybody with everybody, and what the weather does to both counts as noise.
    """
    return 1.0 if np.array_equal(a, b) else float(wilcoxon(a, b).pvalue)


@lru_cache(maxsize=1024)
def _against(costs: bytes, base: bytes, resamples: int, seed: int) -> EffectSize:
    """Claims, controls and words ask for the same comparisons, and at 1000 seeds each takes a quarter of a second."""
    return effect_size(np.frombuffer(costs), np.frombuffer(base), paired=True, resamples=resamples, seed=seed)


def recovery(settings: QuadrotorSettings, flight: Flight) -> Recovery:
    """Time from the impulse until the drone, past the peak of its excursion, is within the radius again."""
    chosen = np.flatnonzero(flight.impulse_time + FOLLOW_FOR <= settings.steps)
    times, errors, peaks = [], [], []
    for episode in chosen:
        after = flight.distance[episode, flight.impulse_time[episode] :]
        peak = int(np.argmax(after[: LOOK_FOR_PEAK + 1]))
        back = np.flatnonzero(after[peak:] <= settings.recovered)
        returned = DT * (peak + back[0]) if back.size else np.inf
        times.append(0.0 if after[peak] <= settings.recovered else returned)
        errors.append(DT * after[: FOLLOW_FOR + 1].sum())
        peaks.append(after[peak])
    return Recovery(np.array(times), np.array(errors), np.array(peaks))


def alternation(flight: Flight) -> float:
    """The share of steps at which the leading primitive changes."""
    leads = flight.stabilising > 0.5
    return float(np.mean(leads[:, 1:] != leads[:, :-1]))
