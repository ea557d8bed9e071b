"""Whose choices are explained, and by which models."""

from functools import cache

from policychord.choices import (
    CLASSIC,
    OURS,
    TASKS,
    Choices,
    Reading,
    Trials,
    believe,
    read_choices,
    synthetic,
)

from .settings import BanditSettings

MODELS = (*CLASSIC, OURS)


@cache
def choices_of(settings: BanditSettings, experiment: str) -> Choices:
    """The choices of one experiment: people's if there are data, else simulated."""
    if settings.data is None:
        size = {"blocks": settings.blocks, "trials": settings.trials, "seed": settings.seed}
        return synthetic(experiment, settings.cohort_size(experiment), **size)
    return read_choices(
        settings.data / f"data{experiment}.csv", TASKS[experiment], settings.source, Reading(doubtful="drop")
    )


@cache
def trials_of(settings: BanditSettings, experiment: str) -> Trials:
    """The same with the beliefs before each choice."""
    return believe(choices_of(settings, experiment))


def reference_of(name: str) -> str:
    """The classic model whose coefficients a model has."""
    return "Hybrid" if name == OURS else name
