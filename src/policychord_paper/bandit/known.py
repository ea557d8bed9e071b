"""Simulated people of whom it is known what the rules must say."""

from typing import NamedTuple

import numpy as np

from policychord.choices import TASKS, ChoiceModel, Choices, classic, simulate_choices

PEOPLE = 32
SPLITS = 5  # of their cross-validation


class _Group(NamedTuple):
    """Normal distributions of coefficients over people."""

    mean: tuple[float, ...]
    sd: tuple[float, ...]


class Known(NamedTuple):
    """A kind of people: how they choose, their coefficients in each experiment, and whether all steps are done."""

    what: str
    model: ChoiceModel
    groups: dict[str, _Group]
    compared: bool  # whether models are compared on their choices, or weights alone are looked at


NOBODY = _Group((0.0, 0.0), (0.0, 0.0))
ALIKE = _Group((1.2, 0.0), (0.4, 0.0))
KNOWN = {
    "coin flippers": Known("every choice by a fair coin", classic("Hybrid"), {"1": NOBODY, "2": NOBODY}, True),
    "people alike": Known(
        "the same coefficients in both experiments, and no attitude to uncertainty", classic("Hybrid"),
        {"1": ALIKE, "2": ALIKE}, False,
    ),
    "uncertainty seekers": Known(
        "the Hybrid with a coefficient of RU of 1.0 and 0.3", classic("Hybrid"),
        {"1": _Group((2.0, 1.0), (0.5, 0.2)), "2": _Group((1.0, 0.3), (0.3, 0.05))}, False,
    ),
    "contrarians": Known(
        "the Hybrid with negative coefficients of V/TU: they take the worse arm", classic("Hybrid"),
        {"1": _Group((-1.5, 0.0), (0.2, 0.05)), "2": _Group((-1.0, 0.0), (0.2, 0.05))}, True,
    ),
    "people who lapse": Known(
        "the Hybrid, and 4% or 6% of the choices by a coin: a floor explains it, and the Hybrid has none",
        classic("Hybrid", lapse=True),
        {"1": _Group((3.0, 2.0, 0.04), (0.3, 0.05, 0.0)), "2": _Group((1.8, 0.3, 0.06), (0.2, 0.03, 0.0))}, True,
    ),
}  # fmt: skip


def known_choices(name: str, experiment: str, blocks: int, trials: int, seed: int) -> Choices:
    """The choices of a cohort of such people."""
    known, number = KNOWN[name], int(experiment)
    group, rng = known.groups[experiment], np.random.default_rng((seed, number, 43, list(KNOWN).index(name)))
    people = np.asarray(group.mean) + np.asarray(group.sd) * rng.normal(size=(PEOPLE, len(group.mean)))
    return simulate_choices(
        TASKS[experiment], known.model, people, blocks=blocks, trials=trials, seed=(seed, number, 44)
    )
