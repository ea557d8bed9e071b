"""Nulls and alternatives of the quadrotor study: other flights, or planted costs, in the place of the composed ones."""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.optimize import brentq

from policychord.effect_size import cliffs_delta
from policychord.worlds.quadrotor import Flight, Flights, QuadrotorSettings

from ..study import World
from .ablation import Clamped
from .claims import GATES, PAPERS_SEEDS, REPORTED, TEXT
from .experiments import Evidence, Pairs
from .measures import can_be_followed

Told = tuple[QuadrotorSettings, Evidence]
# from the world's name, the pair's, and its flights to those that take the composed flights' places, by controller
Change = Callable[[Evidence, str, str, Flights], Flights]


def _in_place(change: Change, settings: QuadrotorSettings, evidence: Evidence) -> Told:
    """The evidence with changed flights in every reading."""

    def pairs(world: str, flown: Pairs) -> Pairs:
        return Pairs(**{pair: {**flights, **change(evidence, world, pair, flights)}
                        for pair, flights in flown._asdict().items()})  # fmt: skip

    stale, text = pairs("", evidence.stale_point), pairs(TEXT, evidence.accelerations)
    beside = {name: stale.pd[name] for name in evidence.beside}
    return settings, evidence._replace(stale_point=stale, accelerations=text, beside=beside)


def _both(flight: Flight) -> Flights:
    return dict.fromkeys(GATES, flight)


def _other_weather(evidence: Evidence, world: str, pair: str, flights: Flights) -> Flights:
    """The baseline under other random numbers: any difference is random."""
    return _both(getattr(evidence.other_weather[world], pair)["baseline"])


def _other_impulses(settings: QuadrotorSettings) -> Change:
    """The same where flights are paired by their impulse: as many of each as can be followed."""

    def change(evidence: Evidence, world: str, pair: str, flights: Flights) -> Flights:
        both = [flights["baseline"], getattr(evidence.other_weather[world], pair)["baseline"]]
        rows = [can_be_followed(settings, flight) for flight in both]
        count = min(map(len, rows))
        own, other = (
            Flight._make([*(field[kept[:count]] for field in flight[:-1]), flight.states])
            for flight, kept in zip(both, rows, strict=True)
        )
        return {"baseline": own, **_both(other)}

    return change


def _planted_delta(evidence: Evidence, world: str, pair: str, flights: Flights) -> Flights:
    """A thousand costs drawn from the baseline's, times the factor that makes the delta 1.1 of the paper's."""
    rng, own = np.random.default_rng((len(pair), 61)), flights["baseline"]
    base, ours = (rng.choice(own.cost, PAPERS_SEEDS) for _ in range(2))
    wanted = 1.1 * REPORTED[pair]  # type: ignore[index]
    factor = brentq(lambda f: cliffs_delta(f * ours, base) - wanted, 1e-3, 2.0, xtol=1e-6)
    dear = own._replace(cost=2.0 * base)
    return {
        "baseline": own._replace(cost=base),
        "stabilise": dear,
        "track": dear,
        **_both(own._replace(cost=factor * ours)),
    }


def _narrower(evidence: Evidence, world: str, pair: str, flights: Flights) -> Flights:
    """The baseline's costs, a third as far from their median."""
    cost = flights["baseline"].cost
    middle = np.median(cost)
    return _both(flights["baseline"]._replace(cost=middle + (cost - middle) / 3))


def _half_as_far(evidence: Evidence, world: str, pair: str, flights: Flights) -> Flights:
    """The baseline's flights at half their distance from the path."""
    return _both(flights["baseline"]._replace(distance=0.5 * flights["baseline"].distance))


def _clamped_in_other_seeds(settings: QuadrotorSettings, evidence: Evidence) -> Told:
    """Flights of the free gate, dealt to other seeds, in the place of those with a clamped weight."""

    def dealt(flight: Flight, seed: int) -> Flight:
        rows = np.random.default_rng((settings.seed, seed)).permutation(len(flight.cost))
        return Flight._make([*(field[rows] for field in flight[:-1]), flight.states])

    clamped = {
        reading: Clamped(free, dealt(free, 62), dealt(free, 63)) for reading, (free, _, _) in evidence.clamped.items()
    }
    return settings, evidence._replace(clamped=clamped)


def _needed(settings: QuadrotorSettings, evidence: Evidence) -> Told:
    """LQR's flights as free ones, and the stabilising primitive alone, which goes nowhere, as clamped ones."""
    clamped = {}
    for reading in evidence.clamped:
        flights = (evidence.accelerations if reading.startswith(TEXT) else evidence.stale_point).lqr
        clamped[reading] = Clamped(flights["baseline"], flights["stabilise"], flights["stabilise"])
    return settings, evidence._replace(clamped=clamped)


WORLDS: tuple[World[QuadrotorSettings, Evidence], ...] = (
    World("the baseline in other weather", "PID and LQR under other random numbers in the place of the composed pair",
          "rejected", ("Q2", "Q3", "Q4"), partial(_in_place, _other_weather)),
    World("LQR after other impulses", "LQR under other random numbers in the place of the composed pair",
          "rejected", ("Q5", "Q7"),
          lambda settings, evidence: _in_place(_other_impulses(settings), settings, evidence)),
    World("a primitive alone", "the tracking primitive in the place of the composed pair, flown", "rejected",
          ("Q1", "Q2", "Q4"), partial(_in_place, lambda evidence, world, pair, flights: _both(flights["track"]))),
    World("a clamp that clamps nothing", "the gate's own flights dealt to other seeds in the place of the clamped ones",
          "rejected", ("Q6",), _clamped_in_other_seeds),
    World("the baseline itself", "PID in the place of the composed pair, against the primitives, flown", "accepted",
          ("Q1",), partial(_in_place, lambda evidence, world, pair, flights: _both(flights["baseline"]))),
    World("a planted delta", "1000 costs drawn from the baseline's, scaled to 1.1 of the paper's delta", "accepted",
          ("Q2", "Q4"), partial(_in_place, _planted_delta)),
    World("narrower costs", "the baseline's costs a third as far from their median", "accepted", ("Q3",),
          partial(_in_place, _narrower)),
    World("half as far", "the baseline's flights at half their distance from the path", "accepted", ("Q5", "Q7"),
          partial(_in_place, _half_as_far)),
    World("a primitive that is needed", "LQR free, the stabilising primitive alone in the place of the clamped, flown",
          "accepted", ("Q6",), _needed),
)  # fmt: skip
