"""Flights as labelled data."""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from ..study import Evidence
from .plan import flights_at
from .settings import QuadrotorSettings
from .simulate import Flight


def dataset(settings: QuadrotorSettings, flights: Mapping[str, Flight]) -> xr.Dataset:
    """Costs, distances and weights of all controllers, and whole states of the first episodes."""
    dims = ("controller", "episode")

    def stacked(field: str) -> np.ndarray:
        return np.stack([getattr(flight, field) for flight in flights.values()])

    states = stacked("states")
    variables = {
        "cost": (dims, stacked("cost"), {"long_name": "total cost of the episode", "units": "1"}),
        "distance": ((*dims, "sample"), stacked("distance").astype("float32"), {"units": "m"}),
        "stabilising": ((*dims, "time"), stacked("stabilising").astype("float32"), {"units": "1"}),
        "impulse_time": (("episode",), next(iter(flights.values())).impulse_time, {"units": "20 ms"}),
        "state": (("controller", "shown_episode", "sample", "component"), states, {"units": "m, m/s, rad, rad/s"}),
    }
    names = ["x", "vx", "z", "vz", "pitch", "pitch_rate"]
    coordinates = {"controller": list(flights), "component": names, "shown_episode": np.arange(states.shape[1])}
    return xr.Dataset(variables, coords=coordinates, attrs={"settings": settings.model_dump_json()})


def datasets(settings: QuadrotorSettings, evidence: Evidence) -> dict[str, xr.Dataset]:
    """One for each experiment and world."""
    return {
        f"{experiment}_{world.replace('-', '_')}": dataset(settings, flights_at(settings, evidence, experiment, world))
        for world in ("stale-point", "centre")
        for experiment in ("pd", "lqr")
    }
