"""The flock study as data: which experiments it needs, what is claimed of them, what is drawn, kept and said."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..study import Plate, Study
from .claims import LEDGER
from .controls import controls
from .datasets import datasets
from .experiments import Flights, flown, groups
from .figures import FIGURES
from .found import found
from .settings import FlockStudySettings
from .simulate import summarise
from .together import fly_together
from .words import CAPTIONS, LEAD, SHOWS, TITLE


def _settings(*, quick: bool = True, seed: int = 0) -> FlockStudySettings:
    if not quick:
        return FlockStudySettings(seed=seed)
    return FlockStudySettings(seed=seed, goal_seeds=3, temperature_seeds=2, keep_every=20)


def work(settings: FlockStudySettings) -> Mapping[str, Callable[[], Flights]]:
    """The experiments in groups, each of which is one compiled program; the longest first."""
    return {name: partial(_fly, flights) for name, flights in groups(settings).items()}


def _fly(flights: Mapping[str, Any]) -> Flights:
    traces = fly_together(list(flights.values()))
    return {name: summarise(flight, trace) for (name, flight), trace in zip(flights.items(), traces, strict=True)}


def _reading(function: Callable[..., Any]) -> Callable[..., Any]:
    """What reads experiments by name, given evidence in groups."""
    return partial(_read, function)


def _read(function: Callable[..., Any], settings: FlockStudySettings, evidence) -> Any:
    return function(settings, flown(evidence))


STUDY = Study(
    name="flock",
    settings=_settings,
    work=work,
    ledger=tuple(entry._replace(measure=_reading(entry.measure)) for entry in LEDGER),
    plates={name: Plate(_reading(draw), CAPTIONS[name], SHOWS[name]) for name, draw in FIGURES.items()},
    datasets=_reading(datasets),
    title=TITLE,
    lead=LEAD,
    controls=_reading(controls),
    found=_reading(found),
)
