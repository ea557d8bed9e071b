"""A plan of a sweep: which study, which settings vary and how, how many episodes, what to keep."""

import itertools
import math
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError
from scipy.stats import qmc

from ..wording import in_words
from .store import read_settings

MOST_POINTS = 1_000_000  # of a plan, and batches: all are listed in memory
MOST_EPISODES = 100_000_000
Value = bool | int | float | str
Point = dict[str, Value]


class _Checked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Range(_Checked):
    """Numbers from `low` to `high`: `points` of them in a grid, drawn at random otherwise."""

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
    """What may stand behind a name in [grid]; told here, because a union of types would speak of types."""
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
        points = self.random.points if self.random else math.prod(map(_length, self.grid.values()))
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


def _length(axis: Range | list[Value]) -> int:
    return len(axis) if isinstance(axis, list) else axis.points or 2


def _values(axis: Range | list[Value]) -> list[Value]:
    if isinstance(axis, list):
        return axis
    values = axis.at(np.linspace(0.0, 1.0, axis.points or 2))
    # ten digits: a grid through 0.1 has 0.1 in it, and not its neighbour
    return [float(f"{value:.10g}") for value in values]


def read_sweep_plan(path: str | Path) -> SweepPlan:
    """A plan from a TOML (or JSON) file; what is wrong with it is said by name."""
    path = Path(path)
    contents = read_settings(path)
    try:
        return SweepPlan.model_validate(contents)
    except ValidationError as error:
        raise ValueError(f"{path}: {in_words(error, SweepPlan, part_of='part of a plan')}") from None
