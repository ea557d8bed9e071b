"""What is kept of the flocks: one seed of every experiment, thinned, and the series of all seeds of all of them."""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from ...loops import to_dataset
from ..study import Evidence
from .settings import FlockStudySettings

SERIES = {"polarization": "1", "milling": "1", "goal_distance": "m", "pair_distance": "m", "spread": "m"}
CONSTANT = ["reward", "alive", "converged"]  # of a flock: nobody is rewarded, nothing ends, every weight is certified


def datasets(settings: FlockStudySettings, evidence: Evidence) -> Mapping[str, xr.Dataset]:
    """The first seed of every experiment, every so many steps, and `series` of every seed."""
    thinned = {"time": slice(None, None, settings.keep_every)}
    kept = {
        name.replace(", ", "-").replace(" ", "-").replace("%", ""): to_dataset(
            found.shown, **found.settings.model_dump()
        ).drop_vars(CONSTANT).isel(thinned)
        for name, found in evidence.items()
    }  # fmt: skip
    return kept | {"series": _series(evidence, settings.keep_every)}


def _series(evidence: Evidence, every: int) -> xr.Dataset:
    """Order parameters, distances and imbalance of the weights; NaN where an experiment has fewer seeds or steps."""
    seeds = max(len(found.imbalance) for found in evidence.values())
    steps = max(found.imbalance.shape[1] for found in evidence.values())
    dims = ("experiment", "seed", "time")

    def filled(pick) -> np.ndarray:
        values = np.full((len(evidence), seeds, steps), np.nan)
        for row, found in zip(values, evidence.values(), strict=True):
            one = pick(found)
            row[: one.shape[0], : one.shape[1]] = one
        return values[:, :, ::every]

    variables = {
        name: (dims, filled(lambda found, name=name: getattr(found.metrics, name)), {"units": unit})
        for name, unit in SERIES.items()
    }
    described = {"long_name": "max|w - 1/3|, mean over boids", "units": "1"}
    variables["imbalance"] = (dims, filled(lambda found: found.imbalance), described)
    return xr.Dataset(variables, coords={"experiment": list(evidence), "time": np.arange(steps)[::every]})
