"""Which flocks the study flies, in groups that share a compiled program, and how they are found again by name."""

from collections.abc import Mapping
from typing import Any

from ..study import Evidence
from .scenarios import TEMPERATURES, scenario
from .settings import FlockSettings, FlockStudySettings
from .simulate import Experiment

SHARES = {"0%": 0, "10%": 4, "20%": 8, "100%": 40}  # leaders of 40 boids
MODELS = {"couzin": "Couzin", "cucker-smale": "Cucker-Smale", "vicsek": "Vicsek"}
FORMS = ("released", "original")
AT_ONCE = 10  # seeds of three temperatures that fit into one batch

Flights = dict[str, Experiment]


def groups(settings: FlockStudySettings) -> Mapping[str, Mapping[str, FlockSettings]]:
    """Every experiment by name, each from the same random starts as those it is compared with."""

    def one(name: str, seeds: int, **changes: Any) -> FlockSettings:
        chosen = scenario(name, seeds=seeds, seed=settings.seed, **changes)
        return chosen.model_copy(update={"steps": max(int(chosen.steps * settings.shorten), 2)})

    few, many = settings.goal_seeds, settings.temperature_seeds
    heats = {f"temperature {eps:g}": one("temperature", many, eps=eps) for eps in TEMPERATURES}
    grouped: dict[str, dict[str, FlockSettings]] = {
        "flocks with leaders": {f"leaders {s}": one("leaders", few, leaders=n) for s, n in SHARES.items()},
        "leaderless flocks": {
            "polarization": one("polarization", settings.seeds),
            "polarization, fixed weights": one("polarization", few, ablation="fixed-weights"),
        },
        "milling flocks": {
            "milling": one("milling", few),
            "milling, no collision term": one("milling", few, ablation="no-collision-term"),
            "milling, random start": one("milling", few, start="square"),
        },
    }
    grouped |= {"temperatures": heats} if many <= AT_ONCE else {name: {name: heat} for name, heat in heats.items()}
    for model, called in MODELS.items():
        grouped[f"{called} followers"] = {
            f"{model}, {form}{alone}": one(model, few, form=form, **changes)
            for form in FORMS
            for alone, changes in (("", {}), (", no leaders", {"leaders": 0}))
        }
    return grouped


def flown(evidence: Evidence) -> Flights:
    """All experiments by name."""
    return {name: found for group in evidence.values() for name, found in group.items()}
