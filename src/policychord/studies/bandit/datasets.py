"""What the bandit study keeps as labelled data: weights trial by trial, and what every subject's fits were worth."""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from ..study import Evidence
from .analysis import Analysis
from .settings import BanditSettings


def datasets(settings: BanditSettings, evidence: Evidence) -> Mapping[str, xr.Dataset]:
    """One dataset for each experiment and link, and one of recovery tables for each experiment."""
    kept = {f"{e}_{link}": e + " " + link for e in settings.experiments for link in settings.links}
    found = {f"experiment_{name}": _fits(evidence[f"fit {key}"], settings) for name, key in kept.items()}
    return found | {f"recovery_{e}": _recovery(evidence[f"recovery {e}"]) for e in settings.experiments}


def _fits(fit: Analysis, settings: BanditSettings) -> xr.Dataset:
    models = list(fit.models)
    stack = {name: np.stack([getattr(m, name) for m in fit.models.values()], -1)
             for name in ("log_likelihood_", "bic_", "log_evidence_")}  # fmt: skip
    variables = {
        "weights": (("row", "primitive"), fit.composition.weights, {"long_name": "mixture weights", "units": "1"}),
        "distance": (("row",), fit.composition.distance, {"long_name": "certificate: |w - w*|_1 is at most this"}),
        "log_prob": (("row", "arm"), fit.composition.log_prob, {"long_name": "ln p of the composed model"}),
        "choice": (("row",), fit.trials.choice + 1),
        "mean": (("row", "arm"), fit.trials.mean, {"long_name": "belief before the choice"}),
        "variance": (("row", "arm"), fit.trials.variance),
        "pxp": (("model",), fit.everything.selection.pxp),
    } | {name.rstrip("_"): (("participant", "model"), values) for name, values in stack.items()}
    coordinates = {
        "primitive": list(fit.primitives), "model": models, "participant": fit.models[models[0]].subjects_,
        "arm": np.arange(1, fit.trials.arms + 1),
        "subject": ("row", fit.trials.subject), "block": ("row", fit.trials.block), "trial": ("row", fit.trials.trial),
    }  # fmt: skip
    attributes = {"data": settings.source, "task": fit.task_name, "link": fit.link, "eps": fit.eps}
    return xr.Dataset(variables, coords=coordinates, attrs=attributes)


def _recovery(found) -> xr.Dataset:
    tables = {name: (("simulated", "fitted"), getattr(found, name)) for name in ("best", "frequency", "won")}
    figures = {name: (("coefficient",), [getattr(p, name) for p in found.parameters])
               for name in ("correlation", "bias", "rmse")}  # fmt: skip
    labels = [f"{p.model} {p.coefficient}" for p in found.parameters]
    models = list(found.models)
    coordinates = {"simulated": models, "fitted": models, "coefficient": labels}
    return xr.Dataset(tables | figures, coords=coordinates, attrs={"data": "simulated cohorts"})
