"""Units of work of a sweep: which episodes of which points are computed together, under which name."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .._plugins import EPISODES, installed
from ..wording import cut, nearest
from ..worlds.episodes import Episodes, Measured
from .plan import Point, SweepPlan, points_of
from .versions import code_version

# settings of a study for which a plan has a word of its own
PLANNED = {"seed": "seed", "seeds": "episodes"}


class _Span(NamedTuple):
    """Episodes first, ..., first + size - 1 of one point."""

    point: int
    first: int
    size: int


class Batch(NamedTuple):
    """A few spans with about as many episodes as the plan wants in one go. The id says all that results depend on."""

    id: str
    spans: tuple[_Span, ...]

    @property
    def episodes(self) -> int:
        return sum(span.size for span in self.spans)


def episodes_of(study: str) -> Episodes:
    """What a study offers to sweeps."""
    if study not in (known := installed(EPISODES)):
        raise ValueError(f"study = {cut(repr(study))}: sweeps are for {' and '.join(known)}.")
    return known[study].load()


def version_of(plan: SweepPlan) -> str:
    """The version of the code that the episodes of a plan depend on."""
    return code_version(__name__, installed(EPISODES)[plan.study].module)


def check_plan(plan: SweepPlan) -> None:
    """Say what is wrong with a plan before anything is computed: its study, metrics, and settings at every point."""
    offered = episodes_of(plan.study)
    for name in plan.metrics:
        if name not in offered.metrics:
            raise ValueError(
                f"metrics: {cut(repr(name))} is none of {plan.study}: {nearest(cut(name), list(offered.metrics))}"
            )
    for name in (*plan.settings, *plan.axes):
        if name in PLANNED:
            raise ValueError(f"{name} is no setting of a sweep: a plan has its own {PLANNED[name]}, at its top.")
        if name not in offered.names:
            raise ValueError(f"{cut(name)} is no setting of the {plan.study}: {nearest(cut(name), offered.names)}")
    for point in points_of(plan):
        offered.settings(**_settings_at(plan, point))


def batches_of(plan: SweepPlan, version: str = "") -> list[Batch]:
    """All units of work, in an order and with ids that depend on the plan and the code alone (this, or `version`)."""
    points, version = points_of(plan), version or version_of(plan)
    spans = [
        _Span(number, first, min(plan.batch, plan.episodes - first))
        for number in range(len(points))
        for first in range(0, plan.episodes, plan.batch)
    ]
    groups: list[list[_Span]] = []
    for span in spans:
        if groups and sum(other.size for other in groups[-1]) + span.size <= plan.batch:
            groups[-1].append(span)
        else:
            groups.append([span])
    return [Batch(_identity(plan, points, group, version), tuple(group)) for group in groups]


def _identity(plan: SweepPlan, points: Sequence[Point], spans: Sequence[_Span], version: str) -> str:
    work = [[_settings_at(plan, points[span.point]), span.first, span.size] for span in spans]
    whole = [version, plan.study, plan.seed, sorted(plan.metrics), plan.trajectories, work]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:16]


def _settings_at(plan: SweepPlan, point: Point) -> dict[str, Any]:
    return plan.settings | point | {"seed": plan.seed}


class Computed(NamedTuple):
    """A batch that is done: a line for each episode, and datasets of the points of which some are kept in full."""

    table: pd.DataFrame
    trajectories: dict[str, Any]


def compute(plan: SweepPlan, batch: Batch) -> Computed:
    """Every episode of a batch."""
    offered, points = episodes_of(plan.study), points_of(plan)
    tables, trajectories = [], {}
    for span in batch.spans:
        point = points[span.point]
        numbers = np.arange(span.first, span.first + span.size)
        measured = offered.run(offered.settings(**_settings_at(plan, point)), numbers.tolist())
        columns = {"point": span.point, "episode": numbers} | point
        wanted = plan.metrics or tuple(offered.metrics)
        tables.append(pd.DataFrame(columns | {name: np.asarray(measured.metrics[name]) for name in wanted}))
        kept = [i for i, number in enumerate(numbers) if number < plan.trajectories]
        if kept:
            trajectories[f"point-{span.point}"] = measured.dataset(kept)
    return Computed(pd.concat(tables, ignore_index=True), trajectories)


class _Again(NamedTuple):
    """A single episode, in its batch."""

    settings: Any
    measured: Measured
    place: int

    @property
    def metrics(self) -> dict[str, float]:
        return {name: float(np.asarray(values)[self.place]) for name, values in self.measured.metrics.items()}


def again(plan: SweepPlan, point: int, episode: int) -> _Again:
    """Compute an episode once more, bit for bit as in the sweep: its neighbours are computed too.

    Sums are taken in another order in a batch of another size, and a flock is chaotic: alone, it would fly elsewhere.
    """
    offered, points = episodes_of(plan.study), points_of(plan)
    if not (0 <= point < len(points) and 0 <= episode < plan.episodes):
        raise ValueError(
            f"episode {point}/{episode}: points are 0 to {len(points) - 1}, episodes 0 to {plan.episodes - 1}."
        )
    span = next(
        span for batch in batches_of(plan) for span in batch.spans
        if span.point == point and span.first <= episode < span.first + span.size
    )  # fmt: skip
    settings = offered.settings(**_settings_at(plan, points[point]))
    measured = offered.run(settings, list(range(span.first, span.first + span.size)))
    return _Again(settings, measured, episode - span.first)
