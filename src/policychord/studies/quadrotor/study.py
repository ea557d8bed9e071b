"""The quadrotor study as data."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from ..study import Evidence, Passage, Plate, Study
from .claims import LEDGER
from .datasets import datasets
from .figures import FIGURES
from .mechanism import explain
from .settings import Experiment, QuadrotorSettings
from .simulate import Flight, fly_all

QUICK_SEEDS = 60
ENOUGH_SEEDS = 200  # for a median in a figure


class Sweep(NamedTuple):
    """Flights of the mean action at several temperatures, for both horizons."""

    one_step: dict[float, Flight]
    cost_to_go: dict[float, Flight]


def _settings(*, quick: bool = True, seed: int = 0) -> QuadrotorSettings:
    return QuadrotorSettings(seed=seed, seeds=QUICK_SEEDS) if quick else QuadrotorSettings(seed=seed)


def work(settings: QuadrotorSettings) -> Mapping[str, Callable[[], Any]]:
    """Both experiments in both worlds, and temperatures in the first."""
    steps: dict[str, Callable[[], Any]] = {}
    for world in ("stale-point", "centre"):
        there = settings.model_copy(update={"disturbance": world})
        for experiment in ("pd", "lqr"):
            steps[f"{experiment}, {world}"] = partial(fly_all, there, experiment)
    return steps | {"temperatures": partial(temperatures, settings)}


def temperatures(settings: QuadrotorSettings, experiment: Experiment = "pd") -> Sweep:
    """The mean action of the equilibrium at each temperature."""
    fewer = settings.model_copy(update={"seeds": min(settings.seeds, ENOUGH_SEEDS)})
    found = []
    for horizon in ("one-step", "cost-to-go"):
        mean = settings.composition.model_copy(update={"selection": "mean", "horizon": horizon})
        mean = mean.model_copy(update={"margin": settings.wide_margin})
        names = {f"{eps:g}": mean.model_copy(update={"eps": eps}) for eps in settings.temperatures}
        flights = fly_all(fewer, experiment, names)
        found.append({eps: flights[f"{eps:g}"] for eps in settings.temperatures})
    return Sweep(*found)


def _found(settings: QuadrotorSettings, evidence: Evidence) -> list[Passage]:
    return [Passage("Where the published result comes from", explain(settings, evidence))]


STUDY = Study(
    name="quadrotor",
    settings=_settings,
    work=work,
    ledger=LEDGER,
    plates={name: Plate(draw) for name, draw in FIGURES.items()},
    datasets=datasets,
    found=_found,
)
