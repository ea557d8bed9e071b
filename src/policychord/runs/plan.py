"""A plan of a sweep: which study, which settings vary; its points, and the batches that are computed together."""

import hashlib
import itertools
import json
import math
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError
from scipy.stats import qmc

from .._plugins import EPISODES, installed
from ..wording import cut, nearest
from ..worlds.episodes import Episodes, Measured
from .store import read_plan
from .versions import code_version

MOST_POINTS = 1_000_000  # of a plan, and batches: all are listed in memory
MOST_EPISODES = 100_000_000
Value = bool | int | float | str
Point = dict[str, Value]
# settings of a study for which a plan has a word of its own
_PLANNED = {"seed": "seed", "seeds": "episodes"}


class _Checked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Range(_Checked):
    """Values from `low` to `high`: `points` of them in a grid, drawn at random otherwise."""

    low: float
    high: float
    points: Annotated[int, Field(ge=2)] | None = None
    scale: Literal["linear", "log"] = "linear"

    @model_validator(mode="after")
    def _in_order(self) -> "Range":
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"low = {self.low}, high = {self.high}: pass two numbers, the lower one first.")
        if self.scale == "log" and self.low <= 0:
            raise ValueError(f"low = {self.low} on a log scale: pass a positive number, or scale = 'linear'.")
        return self

    def at(self, share: Any) -> Any:
        """The number at a share of the way from low to high."""
        if self.scale == "log":
            return np.exp(np.log(self.low) + share * (np.log(self.high) - np.log(self.low)))
        return self.low + share * (self.high - self.low)


def _axis(axis: Any) -> Range | list[Value]:
    """What may stand behind a name in [grid]; checked here, because a union of types would speak of types."""
    if isinstance(axis, dict | Range):
        return Range.model_validate(axis)
    if not isinstance(axis, list) or not axis:
        raise PydanticCustomError(
            "axis",
            "pass a list of values, such as [0.1, 1.0], or a range, such as { low = 0.1, high = 1.0, points = 5 }",
        )
    for value in axis:
        if not isinstance(value, Value):
            raise PydanticCustomError("axis", "in a list, every value must be a number, a text, true or false")
    return axis


Axis = Annotated[Range | list[Value], BeforeValidator(_axis)]


class RandomDesign(_Checked):
    """Points drawn over ranges, evenly spread (Latin hypercube, Sobol) or independent (uniform)."""

    points: int = Field(ge=1, le=MOST_POINTS)
    over: dict[str, Range] = Field(min_length=1)
    design: Literal["latin-hypercube", "sobol", "uniform"] = "latin-hypercube"


class SweepPlan(_Checked):
    """A sweep. Settings that vary are named in `grid` or in `random`, those that do not in `settings`."""

    study: str
    settings: dict[str, Any] = {}
    grid: dict[str, Axis] = {}
    random: RandomDesign | None = None
    episodes: int = Field(ge=1, le=MOST_EPISODES, description="of every point")
    seed: int = Field(default=0, ge=0, lt=2**63)
    batch: int = Field(default=1000, ge=1, le=10_000, description="episodes that are computed, and kept, together")
    metrics: tuple[str, ...] = Field(default=(), description="to keep; all of them unless named")
    trajectories: int = Field(default=0, ge=0, description="episodes of every point that are kept in full")

    @model_validator(mode="after")
    def _one_design(self) -> "SweepPlan":
        if bool(self.grid) == bool(self.random):
            raise ValueError("a plan has either a [grid] or a [random] design: name what varies in one of them.")
        for name, axis in self.grid.items():
            if isinstance(axis, Range) and axis.points is None:
                raise ValueError(f"grid.{name} has a range without points: say how many, such as points = 9.")
            if isinstance(axis, list) and len(set(axis)) < len(axis):
                raise ValueError(f"grid.{name} = {axis}: a value is there twice.")
        points = (
            self.random.points
            if self.random
            else math.prod(len(axis) if isinstance(axis, list) else axis.points or 2 for axis in self.grid.values())
        )
        for number, what, most in (
            (points, "points", MOST_POINTS),
            (points * self.episodes, "episodes", MOST_EPISODES),
            (points * math.ceil(self.episodes / self.batch), "batches", MOST_POINTS),
        ):
            if number > most:
                size = f"{number:,}" if number < 1e15 else "more than 10^15"
                raise ValueError(f"this plan has {size} {what}: at most {most:,}; cut it into several plans.")
        fixed = sorted(set(self.settings) & set(self.axes))
        if fixed:
            raise ValueError(f"{', '.join(fixed)} is both fixed in [settings] and varied: name it once.")
        return self

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of what varies."""
        return tuple(self.grid) if self.random is None else tuple(self.random.over)


def points_of(plan: SweepPlan) -> list[Point]:
    """Every point of the design, in an order that depends on the plan alone."""
    if plan.random is None:
        values = [_values(axis) for axis in plan.grid.values()]
        return [dict(zip(plan.grid, point, strict=True)) for point in itertools.product(*values)]
    ranges = plan.random.over
    rng = np.random.default_rng([plan.seed, plan.random.points])
    if plan.random.design == "uniform":
        shares = rng.random((plan.random.points, len(ranges)))
    else:
        sampler = qmc.LatinHypercube if plan.random.design == "latin-hypercube" else qmc.Sobol
        shares = sampler(len(ranges), rng=rng).random(plan.random.points)
    return [
        {name: float(axis.at(share)) for (name, axis), share in zip(ranges.items(), row, strict=True)} for row in shares
    ]


def _values(axis: Range | list[Value]) -> list[Value]:
    if isinstance(axis, list):
        return axis
    values = axis.at(np.linspace(0.0, 1.0, axis.points or 2))
    # ten digits: a grid through 0.1 has 0.1 in it, and not its neighbour
    return [float(f"{value:.10g}") for value in values]


def read_sweep_plan(path: str | Path) -> SweepPlan:
    """A plan from a TOML (or JSON) file; what is wrong with it is named."""
    return read_plan(Path(path), SweepPlan)


def episodes_of(study: str) -> Episodes:
    """What a study offers to sweeps."""
    if study not in (known := installed(EPISODES)):
        raise ValueError(f"study = {cut(repr(study))}: sweeps are for {' and '.join(known)}.")
    return known[study].load()


def check_plan(plan: SweepPlan) -> None:
    """Say what is wrong with a plan before anything is computed: its study, metrics, and settings at every point."""
    offered = episodes_of(plan.study)
    for name in plan.metrics:
        if name not in offered.metrics:
            raise ValueError(
                f"metrics: {cut(repr(name))} is none of {plan.study}: {nearest(cut(name), list(offered.metrics))}"
            )
    for name in (*plan.settings, *plan.axes):
        if name in _PLANNED:
            raise ValueError(f"{name} is no setting of a sweep: a plan has its own {_PLANNED[name]}, at its top.")
        if name not in offered.names:
            raise ValueError(f"{cut(name)} is no setting of the {plan.study}: {nearest(cut(name), offered.names)}")
    for point in points_of(plan):
        offered.settings(**_settings_at(plan, point))


def _settings_at(plan: SweepPlan, point: Point) -> dict[str, Any]:
    return plan.settings | point | {"seed": plan.seed}


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


def modules_of(plan: SweepPlan) -> tuple[str, ...]:
    """The modules that the episodes of a plan depend on."""
    return __name__, installed(EPISODES)[plan.study].module


def batches_of(plan: SweepPlan, version: str = "") -> list[Batch]:
    """All units of work, in an order and with ids that depend on the plan and the code alone (this, or `version`)."""
    points, version = points_of(plan), version or code_version(*modules_of(plan))
    groups: list[list[_Span]] = []
    for number in range(len(points)):
        for first in range(0, plan.episodes, plan.batch):
            span = _Span(number, first, min(plan.batch, plan.episodes - first))
            if groups and sum(other.size for other in groups[-1]) + span.size <= plan.batch:
                groups[-1].append(span)
            else:
                groups.append([span])

    def identity(spans: list[_Span]) -> str:
        work = [[_settings_at(plan, points[span.point]), span.first, span.size] for span in spans]
        whole = [version, plan.study, plan.seed, sorted(plan.metrics), plan.trajectories, work]
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:16]

    return [Batch(identity(group), tuple(group)) for group in groups]


class Computed(NamedTuple):
    """A batch that is done: a line for each episode, and datasets of the points of which some are kept in full."""

    table: pd.DataFrame
    trajectories: dict[str, Any]


def compute(plan: SweepPlan, batch: Batch) -> Computed:
    """Every episode of a batch."""
    points, wanted = points_of(plan), plan.metrics or tuple(episodes_of(plan.study).metrics)
    tables, trajectories = [], {}
    for span in batch.spans:
        _, measured = run_span(plan, points, span)
        numbers = np.arange(span.first, span.first + span.size)
        columns = {"point": span.point, "episode": numbers} | points[span.point]
        tables.append(pd.DataFrame(columns | {name: np.asarray(measured.metrics[name]) for name in wanted}))
        if kept := [place for place, number in enumerate(numbers) if number < plan.trajectories]:
            trajectories[f"point-{span.point}"] = measured.dataset(kept)
    return Computed(pd.concat(tables, ignore_index=True), trajectories)


def run_span(plan: SweepPlan, points: list[Point], span: _Span) -> tuple[Any, Measured]:
    """(the settings of a point, its episodes)."""
    offered = episodes_of(plan.study)
    settings = offered.settings(**_settings_at(plan, points[span.point]))
    return settings, offered.run(settings, list(range(span.first, span.first + span.size)))
