"""What a run leaves behind, as data: the report is written from it, and from nothing else."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from policychord.runs import PageFigure

from .claim import JudgedClaim
from .study import Control, Finding, Objection


class Chapter(NamedTuple):
    """Everything that one study found."""

    study: str
    title: str
    introduction: str  # Markdown
    settings: dict[str, Any]
    source: str  # where the study's data come from, if it reads any
    claims: list[JudgedClaim]
    figures: list[PageFigure]
    controls: list[Control]
    findings: list[Finding]
    data: list[str]  # Zarr folders, relative to the run's folder
    objections: Sequence[Objection] = ()


def simulated(chapter: Chapter) -> bool:
    """Whether a study about people had none: its verdicts are not counted."""
    return "simulated" in chapter.source or "synthetic" in chapter.source


# Where people's choices were found: as `bandit data fetch` leaves them, in a folder that was named, or nowhere.
Choices = Literal["", "fetched", "folder"]


class Environment(NamedTuple):
    """Where and how a run took place."""

    policychord: str
    python: str
    packages: dict[str, str]
    platform: str
    processor: str
    cores: int
    memory_gib: float
    devices: list[str]
    workers: int
    quick: bool
    seed: int
    data: str  # where the data come from, if a study reads any
    settings: dict[str, dict[str, Any]]
    started: str  # ISO 8601, UTC
    seconds: float  # of this run, by the clock on the wall
    steps: dict[str, float]  # "study: step" -> seconds it took when it was done, in this run or an earlier one
    reused: int  # steps that an earlier run had done
    choices: Choices = ""


class Report(NamedTuple):
    """A whole run."""

    chapters: list[Chapter]
    environment: Environment


def claim_records(report: Report) -> list[dict[str, Any]]:
    """What claims.json holds."""
    return [{"study": chapter.study} | claim._asdict() for chapter in report.chapters for claim in chapter.claims]
