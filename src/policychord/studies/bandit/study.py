"""The bandit study as data: what to compute, judge and draw."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from ..study import Study
from .analysis import analyse
from .beliefs import Trials, believe
from .claims import LEDGER
from .cohort import synthetic
from .data import Choices, read_choices
from .datasets import datasets
from .fetch import find_data
from .plates import PLATES
from .recovery import recover
from .rivals import rivals
from .settings import TASKS, BanditSettings
from .validation import controls, cross_validate, rare_choices, rounding, sweep
from .words import LEAD, TITLE, found


def _settings(*, quick: bool = True, seed: int = 0, data: Path | None = None) -> BanditSettings:
    """Quick and full differ in the recovery only, which is what takes time; the rules need all 20 splits."""
    return BanditSettings(seed=seed, data=find_data(data), recovery_cohorts=1 if quick else 6, own_likelihood=not quick)


@cache
def choices_of(settings: BanditSettings, experiment: str) -> Choices:
    """The choices of one experiment: people's if there are data, else simulated."""
    if settings.data is None:
        return synthetic(experiment, settings)
    return read_choices(settings.data / f"data{experiment}.csv", TASKS[experiment], settings.source)


@cache
def _trials(settings: BanditSettings, experiment: str) -> Trials:
    return believe(choices_of(settings, experiment))


def work(settings: BanditSettings) -> Mapping[str, Callable[[], Any]]:
    """Every step by the name under which claims and figures find its result."""
    # the longest first: two workers then end at about the same time
    steps: dict[str, Callable[[], Any]] = {f"recovery {e}": partial(recover, e, settings) for e in settings.experiments}
    for e in settings.experiments:
        for link in settings.links:
            # trials are read inside the step, so that naming the steps costs nothing
            def on(act, *given, e=e, link=link, **more):
                return partial(lambda: act(_trials(settings, e), link, *given, **more))

            own = settings.own_likelihood and link == "probit"
            steps[f"controls {e} {link}"] = on(controls, settings.eps, own=own)
            steps[f"fit {e} {link}"] = partial(_fit, settings, e, link)
            steps[f"cross-validation {e} {link}"] = on(
                cross_validate, eps=settings.eps, folds=settings.folds, splits=settings.splits, seed=settings.seed
            )
            if link == "probit":
                steps[f"cross-validation as released {e}"] = on(
                    cross_validate, eps=settings.eps, folds=settings.folds, splits=settings.splits, seed=settings.seed,
                    only_first=True,
                )  # fmt: skip
                steps[f"rounding {e}"] = partial(_rounding, settings, e)
            steps[f"temperature {e} {link}"] = on(sweep, settings.temperatures)
            steps[f"rare choices {e} {link}"] = on(rare_choices, settings.eps)
    return steps


def _fit(settings: BanditSettings, experiment: str, link):
    return analyse(choices_of(settings, experiment), link, settings.eps)


def _rounding(settings: BanditSettings, experiment: str):
    return rounding(choices_of(settings, experiment), "probit", settings.eps)


STUDY = Study(
    name="bandit",
    settings=_settings,
    work=work,
    ledger=LEDGER,
    plates=PLATES,
    datasets=datasets,
    title=TITLE,
    lead=LEAD,
    controls=rivals,
    found=found,
)
