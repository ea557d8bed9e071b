"""Two controllers beside each other, in words that follow the figures."""

from collections.abc import Mapping
from typing import NamedTuple

from ...stats.effect_size import EffectSize, spread
from ..study import Evidence
from .claims import LEAST_EVIDENCE
from .metrics import table
from .plan import flights_at
from .settings import QuadrotorSettings
from .simulate import Flight

BASELINE = {"pd": "PID", "lqr": "LQR"}


class Beside(NamedTuple):
    """Costs of one controller and of another in the same weather."""

    median: float
    other: float
    effect: EffectSize  # of the first against the second
    difference: float  # median of (first - second) over seeds
    paired_p: float  # of the signed-rank test, seed by seed

    @property
    def verb(self) -> str:
        """What may be said of the first: that it costs less or more, or that these seeds do not tell."""
        if self.effect.p < LEAST_EVIDENCE:
            return "costs less than" if self.effect.delta < 0 else "costs more than"
        if self.paired_p < LEAST_EVIDENCE:  # what the judging test misses, and the test for pairs sees
            return f"costs {'less' if self.difference < 0 else 'more'}, seed by seed only, than"
        return "is not told apart from"

    @property
    def cheaper(self) -> bool:
        return self.effect.delta < 0 and self.effect.p < LEAST_EVIDENCE

    @property
    def dearer(self) -> bool:
        return self.effect.delta > 0 and self.effect.p < LEAST_EVIDENCE

    @property
    def figures(self) -> str:
        """Both medians and the effect, in brackets behind a sentence."""
        effect = self.effect
        tests = f"p {p_value(effect.p)}, paired p {p_value(self.paired_p)}"
        return f"{self.median:.0f} against {self.other:.0f}, delta {effect.delta:+.2f}, {tests}"


def beside(settings: QuadrotorSettings, flights: Mapping[str, Flight], name: str, other: str = "baseline") -> Beside:
    rows = table(settings, {other: flights[other], name: flights[name]}, other)
    mine, base = rows[1], rows[0]
    return Beside(mine.cost.median, base.cost.median, mine.against, mine.difference, mine.paired_p)


def in_both(
    settings: QuadrotorSettings, evidence: Evidence, name: str, other: str = "baseline", world: str = "stale-point"
) -> dict[str, Beside]:
    """The same comparison for both pairs of primitives."""
    return {e: beside(settings, flights_at(settings, evidence, e, world), name, other) for e in BASELINE}


def against_baseline(found: Mapping[str, Beside]) -> str:
    """'costs less than PID (82 against 95, ...) and costs more than LQR (...)'."""
    parts = [f"{one.verb} {BASELINE[e]} ({one.figures})" for e, one in found.items()]
    return " and ".join(parts)


def pairs(found: Mapping[str, Beside], other: str) -> str:
    """'With PD primitives it costs less than ... (...), with LQR primitives ...'."""
    parts = [f"with {e.upper()} primitives it {one.verb} {other} ({one.figures})" for e, one in found.items()]
    return ", ".join(parts)


def p_value(p: float) -> str:
    return f"{p:.1g}" if p < 0.001 else f"{p:.2g}"


def median(flight: Flight) -> float:
    return spread(flight.cost).median
