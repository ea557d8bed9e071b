"""Paths of flow and circuit as labelled data."""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from ..study import Evidence
from .circuits import CIRCUITS, Oscillation, Side
from .paths import FLOWS, Paths
from .settings import TheorySettings

TIME = {"long_name": "time", "units": "tau"}
EVERY = 10  # moments; all of them would only be larger


def datasets(settings: TheorySettings, evidence: Evidence) -> Mapping[str, xr.Dataset]:
    """The random problems with their flow paths, a problem of each study beside the flow, and the counter-example."""
    attributes = settings.model_dump()
    kept = {
        f"flow-{d}x{n}": _flow(paths).assign_attrs(attributes)
        for step in FLOWS
        for (d, n), paths in evidence[step].paths.items()
    }
    sides = {name: found.shown for step in CIRCUITS for name, found in evidence[step].items()}
    kept |= {f"circuit-{name}": _side(side).assign_attrs(attributes) for name, side in sides.items()}
    return kept | {"oscillation": _oscillation(evidence["oscillation"]).assign_attrs(attributes)}


def _flow(paths: Paths) -> xr.Dataset:
    along = ("problem", "time")
    return xr.Dataset(
        {
            "pi": (("problem", "action", "primitive"), np.asarray(paths.problems.pi)),
            "action_cost": (("problem", "action"), np.asarray(paths.problems.action_cost), {"units": "nat"}),
            "eps": ("problem", np.asarray(paths.problems.eps)),
            "log_prior": (("problem", "primitive"), np.asarray(paths.problems.log_prior)),
            "weights": ((*along, "primitive"), paths.weights[:, ::EVERY]),
            "energy": (along, paths.energy[:, ::EVERY], {"units": "nat"}),
            "optimum": (("problem", "primitive"), paths.optimum),
            "least_energy": ("problem", paths.least, {"units": "nat"}),
            "slowest_rate": ("problem", paths.slowest, {"units": "1/tau"}),
        },
        coords={"time": ("time", paths.times[::EVERY], TIME)},
    )


def _side(side: Side) -> xr.Dataset:
    along = ("time", "primitive")
    return xr.Dataset(
        {"circuit": (along, side.circuit), "flow": (along, side.flow), "eps": side.eps},
        coords={"time": ("time", side.times, TIME)},
    )


def _oscillation(shown: Oscillation) -> xr.Dataset:
    along = ("time", "primitive")
    return xr.Dataset(
        {
            "stated": (along, shown.stated),
            "corrected": (along, shown.corrected),
            "optimum": ("primitive", shown.optimum),
        },
        coords={"time": ("time", shown.times, TIME)},
    )
