"""The flock study as data: which experiments it needs, what is claimed of them, what is drawn and kept."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ...loops import to_dataset
from ..study import Evidence, Plate, Study
from .claims import LEDGER
from .figures import FIGURES
from .scenarios import TEMPERATURES, scenario
from .settings import FlockStudySettings
from .simulate import Experiment, experiment

SHARES = {"0%": 0, "10%": 4, "20%": 8, "100%": 40}  # leaders of 40 boids


def _settings(*, quick: bool = True, seed: int = 0) -> FlockStudySettings:
    if not quick:
        return FlockStudySettings(seed=seed)
    return FlockStudySettings(seed=seed, goal_seeds=3, temperature_seeds=2)


def work(settings: FlockStudySettings) -> Mapping[str, Callable[[], Experiment]]:
    """Every experiment by name, each from the same random starts as those it is compared with."""

    def run(name: str, seeds: int, **changes: Any) -> Callable[[], Experiment]:
        chosen = scenario(name, seeds=seeds, seed=settings.seed, **changes)
        steps = max(int(chosen.steps * settings.shorten), 2)
        return partial(experiment, chosen.model_copy(update={"steps": steps}))

    few, many = settings.goal_seeds, settings.temperature_seeds
    runs = {
        "polarization": run("polarization", settings.seeds),
        "polarization, fixed weights": run("polarization", settings.seeds, ablation="fixed-weights"),
        "milling": run("milling", few),
        "milling, no collision term": run("milling", few, ablation="no-collision-term"),
        "milling, random start": run("milling", few, start="square"),
    }
    runs |= {f"leaders {share}": run("leaders", few, leaders=count) for share, count in SHARES.items()}
    runs |= {f"temperature {eps:g}": run("temperature", many, eps=eps) for eps in TEMPERATURES}
    for followers in ("couzin", "cucker-smale", "vicsek"):
        for form in ("released", "original"):
            name = f"{followers}, {form}"
            runs |= {name: run(followers, few, form=form)}
            runs |= {f"{name}, no leaders": run(followers, few, form=form, leaders=0)}
    return runs


def _datasets(settings: FlockStudySettings, evidence: Evidence) -> Mapping[str, Any]:
    """One seed of every experiment in full."""
    return {
        name.replace(", ", "-").replace(" ", "-").replace("%", ""): to_dataset(
            found.shown, **found.settings.model_dump()
        )
        for name, found in evidence.items()
    }


STUDY = Study(
    name="flock",
    settings=_settings,
    work=work,
    ledger=LEDGER,
    plates={name: Plate(draw) for name, draw in FIGURES.items()},
    datasets=_datasets,
)
