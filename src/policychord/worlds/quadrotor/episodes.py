"""Flights by number, for sweeps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from pydantic import BaseModel, ConfigDict

from ..episodes import PLANNED, Episodes, EpisodeSetting, Measured, settings_of
from .agents import ALONE, FIXED, agent_and_world
from .figures import draw_one_flight
from .flights import dataset, fly_episodes
from .settings import OWN, OWN_COMPOSITION, CompositionSettings, Experiment, QuadrotorSettings, own_settings

COMPOSED = "composed"
FLOWN = (COMPOSED, FIXED, *ALONE)
# settings that only the comparison of all controllers reads
STUDY_ONLY = ("control_seeds", "warm_eps", "wide_margin", "temperatures", "recovered", "resamples")


class _FlightSettings(BaseModel):
    """An experiment, who flies it, and everything else."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    experiment: Experiment
    controller: str
    quadrotor: QuadrotorSettings


def _settings(experiment: Experiment = "pd", controller: str = COMPOSED, **named: Any) -> _FlightSettings:
    """Settings from names with values; those of the composition (eps, selection, horizon ...) need no prefix."""
    if controller not in FLOWN:
        raise ValueError(f"controller = {controller!r}: use one of {', '.join(FLOWN)}.")
    how = {name: named.pop(name) for name in list(named) if name in CompositionSettings.model_fields}
    return _FlightSettings(experiment=experiment, controller=controller, quadrotor=own_settings(how, **named))


def _run(settings: _FlightSettings, episodes: Sequence[int]) -> Measured:
    """Fly the episodes."""
    here = settings.quadrotor
    how = here.composition if settings.controller == COMPOSED else None
    agent, env = agent_and_world(here, settings.experiment, settings.controller, how)
    flight = fly_episodes(here, agent, env, episodes)

    def kept(places: Sequence[int]) -> xr.Dataset:
        chosen = type(flight)(*(field[list(places)] for field in flight))
        return dataset(here, {settings.controller: chosen}).assign_coords(episode=np.asarray(episodes)[list(places)])

    return Measured(
        {
            "cost": flight.cost,
            "error": flight.distance.mean(axis=1),
            "largest_error": flight.distance.max(axis=1),
            "stabilising": flight.stabilising.mean(axis=1),
        },
        kept,
        draw=lambda place: draw_one_flight(here, settings.experiment, kept([place])),
    )


EPISODES = Episodes(
    settings=_settings,
    known_settings=(
        EpisodeSetting(
            "experiment", "pd", "which pair of controllers; lqr is pushed once in every episode", ("pd", "lqr")
        ),
        EpisodeSetting("controller", COMPOSED, "who flies", FLOWN),
        *settings_of(CompositionSettings, OWN_COMPOSITION),
        *settings_of(QuadrotorSettings, OWN, without=(*PLANNED, "composition", *STUDY_ONLY)),
    ),
    metrics={
        "cost": "total cost",
        "error": "mean distance from the path (m)",
        "largest_error": "largest distance from the path (m)",
        "stabilising": "mean weight of the stabilising primitive",
    },
    run=_run,
)
