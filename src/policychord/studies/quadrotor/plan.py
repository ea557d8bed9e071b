"""What the study flies: which controllers where, cut into steps of similar length, and how to find it again."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, get_args

from ...envs.quadrotor import MASS, Disturbance
from ..study import Evidence
from .parts import FIXED
from .settings import Composition, Experiment, QuadrotorSettings
from .simulate import Flight, fly, programs, roster

SWEEP = "temperatures"
# What text and scripts of the paper disagree on, flown the other way: forces that are accelerations, as the text has
# them, and the second weight of the stabilising LQR, as the script has it.
ACCELERATIONS, SCRIPT_WEIGHT = "pd, accelerations", "lqr, script's weight"
SCRIPT_VALUE = 0.05
DISPUTED = ("baseline", "one-step gate", "equilibrium, sample", FIXED)
# Decisions in one step. The one-step gate costs three times as much as the optimum: it has a floor under every action.
LONGEST, DEAR = 1_000_000, 3
HORIZONS = ("one-step", "cost-to-go")


class Leg(NamedTuple):
    """One controller in all episodes of one place."""

    place: str
    settings: QuadrotorSettings
    experiment: Experiment
    name: str
    how: Composition | None

    @property
    def decisions(self) -> int:
        dear = self.how is not None and self.how.gate == "one-step"
        return self.settings.seeds * self.settings.steps * (DEAR if dear else 1)


class Sweep(NamedTuple):
    """Flights of the mean action at several temperatures, for both horizons."""

    one_step: dict[float, Flight]
    cost_to_go: dict[float, Flight]


def place(experiment: str, world: str) -> str:
    """An experiment in a world, in words."""
    return f"{experiment}, {world}"


def work(settings: QuadrotorSettings) -> Mapping[str, Callable[[], Any]]:
    """Both experiments in both worlds, and temperatures in the first; what shares a program flies in one step."""
    legs = [*_everybody(settings), *_temperatures(settings), *_disputed(settings)]
    shared = programs({f"{leg.place}: {leg.name}": leg.how for leg in legs})
    by_name = {f"{leg.place}: {leg.name}": leg for leg in legs}
    groups = {program: [by_name[name] for name in names] for program, names in shared.items()}
    steps: dict[str, Callable[[], Any]] = {}
    # the longest first: two workers then end at about the same time
    for program in sorted(groups, key=lambda p: -sum(leg.decisions for leg in groups[p] if leg.how is not None)):
        parts = _cut(groups[program])
        for k, part in enumerate(parts):
            steps[f"{program}, {k + 1} of {len(parts)}" if len(parts) > 1 else program] = partial(_fly, part)
    return steps


def flights_at(settings: QuadrotorSettings, evidence: Evidence, experiment: str, world: str) -> dict[str, Flight]:
    """All controllers of an experiment in a world, in the order of the roster."""
    found = _gathered(evidence, place(experiment, world))
    return {name: found[name] for name in roster(settings)}


def disputed_at(evidence: Evidence, where: str) -> dict[str, Flight]:
    """The few that were flown the other way, where text and scripts disagree."""
    found = _gathered(evidence, where)
    return {name: found[name] for name in DISPUTED}


def sweep_of(settings: QuadrotorSettings, evidence: Evidence) -> Sweep:
    """The flights at all temperatures."""
    found = _gathered(evidence, SWEEP)
    return Sweep(*({eps: found[f"{horizon}, {eps:g}"] for eps in settings.temperatures} for horizon in HORIZONS))


def _fly(legs: list[Leg]) -> dict[str, dict[str, Flight]]:
    """Flights by place and name."""
    found: dict[str, dict[str, Flight]] = {}
    for leg in legs:
        found.setdefault(leg.place, {})[leg.name] = fly(leg.settings, leg.experiment, leg.name, leg.how)
    return found


def _gathered(evidence: Evidence, where: str) -> dict[str, Flight]:
    return {name: flight for found in evidence.values() for name, flight in found.get(where, {}).items()}


def _everybody(settings: QuadrotorSettings) -> Iterator[Leg]:
    for world in get_args(Disturbance)[::-1]:
        there = settings.model_copy(update={"disturbance": world})
        there = _fewer(there) if world == "centre" else there
        for experiment in get_args(Experiment):
            for name, how in roster(settings).items():
                yield Leg(place(experiment, world), there, experiment, name, how)


def _temperatures(settings: QuadrotorSettings) -> Iterator[Leg]:
    """The mean action of the equilibrium at each temperature, for the PD pair."""
    for horizon in HORIZONS:
        change = {"selection": "mean", "horizon": horizon, "margin": settings.wide_margin}
        for eps in settings.temperatures:
            how = settings.composition.model_copy(update=change | {"eps": eps})
            yield Leg(SWEEP, _fewer(settings), "pd", f"{horizon}, {eps:g}", how)


def _disputed(settings: QuadrotorSettings) -> Iterator[Leg]:
    fewer, lineup = _fewer(settings), roster(settings)
    weak = fewer.model_copy(update={"force_sd": settings.force_sd * MASS, "disturbance": "centre"})
    weights = list(settings.lqr_stabilise.state)
    weights[1] = SCRIPT_VALUE
    stabilise = settings.lqr_stabilise.model_copy(update={"state": tuple(weights)})
    for name in DISPUTED:
        yield Leg(ACCELERATIONS, weak, "pd", name, lineup[name])
        yield Leg(SCRIPT_WEIGHT, fewer.model_copy(update={"lqr_stabilise": stabilise}), "lqr", name, lineup[name])


def _fewer(settings: QuadrotorSettings) -> QuadrotorSettings:
    return settings.model_copy(update={"seeds": min(settings.seeds, settings.control_seeds)})


def _cut(legs: list[Leg]) -> list[list[Leg]]:
    """In order, as many to a part as the longest step allows."""
    parts: list[list[Leg]] = [[]]
    for leg in legs:
        if parts[-1] and sum(one.decisions for one in parts[-1]) + leg.decisions > LONGEST:
            parts.append([])
        parts[-1].append(leg)
    return parts
