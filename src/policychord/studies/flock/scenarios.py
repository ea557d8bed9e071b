"""The paper's experiments by name, and what may be taken away from them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from .settings import FlockSettings

# What each scenario changes of Table S1. Step counts are those of the paper's figures.
SCENARIOS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "polarization": {"steps": 440},
        "milling": {"boids": 60, "steps": 440, "start": "ring", "start_size": 5.0, "collision_term": True},
        "leaders": {"leaders": 4, "steps": 1220},
        "temperature": {"leaders": 4, "steps": 1500},
        "couzin": {"followers": "couzin", "leaders": 6, "steps": 800, "update": "sequential"},
        "cucker-smale": {
            "followers": "cucker-smale", "leaders": 6, "steps": 1560, "start_pace": 0.5, "update": "sequential",
        },
        "vicsek": {
            "followers": "vicsek", "leaders": 6, "steps": 1000, "start_size": 1.5, "update": "sequential",
        },
    }
)  # fmt: skip

ABLATIONS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {"fixed-weights": {"fixed_weights": True}, "no-collision-term": {"collision_term": False}}
)

TEMPERATURES = (0.1, 1.0, 10.0)  # Fig. S3c


def scenario(name: str, ablation: str | None = None, **changes: Any) -> FlockSettings:
    """The settings of a scenario, with changes; a misspelt name or setting is an error."""
    if name not in SCENARIOS:
        raise ValueError(f"scenario = {name!r}: use one of {', '.join(SCENARIOS)}.")
    if ablation is not None and ablation not in ABLATIONS:
        raise ValueError(f"ablation = {ablation!r}: use one of {', '.join(ABLATIONS)}.")
    removed = {} if ablation is None else ABLATIONS[ablation]
    if ablation == "no-collision-term" and not SCENARIOS[name].get("collision_term"):
        raise ValueError(f"ablation = {ablation!r}: {name} has no collision term to remove; milling has.")
    return FlockSettings(**{**SCENARIOS[name], **removed, **changes})
