"""Flights by number, for sweeps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from pydantic import BaseModel, ConfigDict

from ..episodes import PLANNED, Episodes, Measured, Setting, settings_of
from .agents import ALONE, FIXED, agent_and_world
from .experiments import fly_episodes
from .figures import draw_one_flight
from .report import dataset
from .settings import OWN, OWN_COMPOSITION, Composition, Experiment, QuadrotorSettings, own_settings

COMPOSED = "composed"
FLOWN = (COMPOSED, FIXED, *ALONE)
# settings that only the comparison of all controllers reads
STUDY_ONLY = ("control_seeds", "warm_eps", "wide_margin", "temperatures", "recovered", "resamples")


class FlightSettings(BaseModel):
    """An experiment, who flies it, and everything else."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    experiment: Experiment
    controller: str
    quadrotor: QuadrotorSettings


def settings(experiment: Experiment = "pd", controller: str = COMPOSED, **named: Any) -> FlightSettings:
    """Settings from names with values; those of the composition (eps, selection, horizon ...) need no prefix."""
    if controller not in FLOWN:
        raise ValueError(f"controller = {controller!r}: use one of {', '.join(FLOWN)}.")
    how = {name: named.pop(name) for name in list(named) if name in Composition.model_fields}
    return FlightSettings(experiment=experiment, controller=controller, quadrotor=own_settings(how, **named))


def run(told: FlightSettings, episodes: Sequence[int]) -> Measured:
    """Fly the episodes."""
    here = told.quadrotor
    how = here.composition if told.controller == COMPOSED else None
    agent, env = agent_and_world(here, told.experiment, told.controller, how)
    flight = fly_episodes(here, agent, env, episodes)

    def kept(places: Sequence[int]) -> xr.Dataset:
        one = type(flight)(*(field[list(places)] for field in flight))
        return dataset(here, {told.controller: one}).assign_coords(episode=np.asarray(episodes)[list(places)])

    return Measured(
        {
            "cost": flight.cost,
            "error": flight.distance.mean(axis=1),
            "largest_error": flight.distance.max(axis=1),
            "stabilising": flight.stabilising.mean(axis=1),
        },
        kept,
        draw=lambda place: draw_one_flight(here, told.experiment, kept([place])),
    )


EPISODES = Episodes(
    settings=settings,
    told=(
        Setting("experiment", "pd", "which pair of controllers; lqr is pushed once in every episode", ("pd", "lqr")),
        Setting("controller", COMPOSED, "who flies", FLOWN),
        *settings_of(Composition, OWN_COMPOSITION),
        *settings_of(QuadrotorSettings, OWN, without=(*PLANNED, "composition", *STUDY_ONLY)),
    ),
    metrics={
        "cost": "total cost",
        "error": "mean distance from the path (m)",
        "largest_error": "largest distance from the path (m)",
        "stabilising": "mean weight of the stabilising primitive",
    },
    run=run,
)
