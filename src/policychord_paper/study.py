"""A study (settings, experiments, evidence, claims, figures, findings), and what a run of it leaves for the report."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple

from policychord import Problem
from policychord.runs import PageFigure

from .claim import Claim, E, Expected, JudgedClaim, Measured, S

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


# The panels of the paper's figures that show results; the others (1, 2a, 3a, 4a, 5a) are drawings of a set-up.
PANELS = (
    "2b", "2c", "3b", "3c", "3d", "4b", "4c", "5b", "5c", "S1", "S2a", "S2b", "S2c", "S3a", "S3b", "S3c",
    "S4a", "S4b", "S4c", "S5a", "S5b", "S6a", "S6b", "S6c", "S6d", "S7a", "S7b",
)  # fmt: skip


class StudyFigure(NamedTuple, Generic[S, E]):
    """A figure: how it is drawn from settings and evidence, what is seen on it, and which claims it bears on."""

    draw: "Callable[[S, E], Figure]"
    caption: str = ""  # Markdown
    claims: tuple[str, ...] = ()
    panels: Mapping[str, tuple[str, ...]] = MappingProxyType({})  # of the paper, each with the claims about it


class Control(NamedTuple):
    """A measurement that says how much a claim is worth: what was changed, what came out, what that means."""

    name: str
    question: str
    measured: Measured
    answer: str


class World(NamedTuple, Generic[S, E]):
    """Evidence for which it is known what rules must say: they reject a null, and accept an alternative.

    `evidence(settings, evidence)` is the study's own evidence with the parts replaced that the named claims read, and
    the settings that go with it. What costs time to simulate is a step of the study.
    """

    name: str
    what: str  # how it is made
    expected: Expected
    claims: tuple[str, ...]
    evidence: Callable[[S, E], tuple[S, E]]


class Finding(NamedTuple):
    """A paragraph or two of what was found, in plain words (Markdown), with the numbers that were measured."""

    title: str
    text: str


class Objection(NamedTuple):
    """What a reader of the page would say against a verdict, and what on the page answers it."""

    claims: tuple[str, ...]
    reader: Literal["author", "reviewer"]  # of the paper
    says: str
    answer: str


# Gating problems as they occurred in runs of the studies, by study and experiment.
Recorded = Mapping[str, Problem]


class Recording(NamedTuple, Generic[S]):
    """Which steps of a study its own gating problems can be read from, and how they are read."""

    steps: Callable[[S], Sequence[str]]
    problems: Callable[[S, Mapping[str, Any]], Recorded]


class Study(NamedTuple, Generic[S, E]):
    """One part of the paper, as data.

    `settings(quick=..., seed=...)` builds the settings. `experiments(settings)` names the steps that cost time. Each
    step is a function without arguments that does not depend on the others. It returns plain data: records
    (NamedTuple), dictionaries, lists, arrays, numbers, text. `evidence(settings, results by step)` makes the study's
    own record of them, which claims, figures, controls, findings and datasets read. They compute little themselves.

    A study may be about the gating problems of others: `on_recorded(settings)` names further steps, functions of what
    the others' `recording` gives. Who runs studies hands it over; no study knows another.
    """

    name: str
    title: str
    introduction: str  # what the paper did and how it is measured here (Markdown)
    settings: Callable[..., S]
    experiments: Callable[[S], Mapping[str, Callable[[], Any]]]
    evidence: Callable[[S, Mapping[str, Any]], E]
    claims: Sequence[Claim[S, E]]
    figures: Mapping[str, StudyFigure[S, E]]
    datasets: "Callable[[S, E], Mapping[str, xr.Dataset]]"  # what is stored as labelled data, by name
    summary: Callable[[S, E], str] = lambda settings, evidence: ""  # the result in a paragraph (Markdown)
    shown: str = ""  # the figure that is printed with the summary
    controls: Callable[[S, E], Sequence[Control]] = lambda settings, evidence: ()
    worlds: Sequence[World[S, E]] = ()  # nulls and alternatives; every claim has at least one of each
    findings: Callable[[S, E], Sequence[Finding]] = lambda settings, evidence: ()
    objections: Callable[[S, E], Sequence[Objection]] = lambda settings, evidence: ()
    recording: Recording[S] | None = None
    on_recorded: Callable[[S], Mapping[str, Callable[[Recorded], Any]]] = lambda settings: MappingProxyType({})
    # (settings, evidence, number of the draw) -> the same with seeds or people resampled with replacement
    redraw: Callable[[S, E, int], tuple[S, E]] | None = None
    priority: int = 0  # studies with a larger one begin first: those that leave most to do at the end


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
    summary: str = ""  # Markdown
    shown: str = ""  # the name of the figure that is printed with it


def simulated(chapter: Chapter) -> bool:
    """Whether a study about people had none: its verdicts are not counted."""
    return "simulated" in chapter.source or "synthetic" in chapter.source


# Where people's choices were found: as `choices data fetch` leaves them, in a folder that was named, or nowhere.
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
