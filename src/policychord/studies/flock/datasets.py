"""What is kept of the flocks: one seed of every experiment, thinned, and the series of all seeds."""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from ...loops import to_dataset
from ..study import Evidence
from .settings import FlockStudySettings
from .simulate import Experiment

SERIES = {"polarization": "1", "milling": "1", "goal_distance": "m", "pair_distance": "m", "spread": "m"}


def datasets(settings: FlockStudySettings, evidence: Evidence) -> Mapping[str, xr.Dataset]:
    """The first seed of every experiment, every so many steps, and beside it `series` of every seed."""
    kept = {}
    for name, found in evidence.items():
        plain = name.replace(", ", "-").replace(" ", "-").replace("%", "")
        kept[plain] = to_dataset(found.shown, **found.settings.model_dump()).isel(
            time=slice(None, None, settings.keep_every)
        )
        kept[f"{plain}-series"] = _series(found, settings.keep_every)
    return kept


def _series(found: Experiment, every: int) -> xr.Dataset:
    """Order parameters and distances of all seeds in time."""
    metrics = found.metrics._asdict()
    dims = ("episode", "time")
    variables = {name: (dims, metrics[name][:, ::every], {"units": unit}) for name, unit in SERIES.items()}
    variables["imbalance"] = (dims, found.imbalance[:, ::every], {"long_name": "mean of max|w - 1/3|", "units": "1"})
    steps = np.arange(found.metrics.polarization.shape[1])[::every]
    return xr.Dataset(variables, coords={"time": steps}, attrs={"dt": found.settings.dt})
