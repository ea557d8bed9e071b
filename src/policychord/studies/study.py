"""What a study is to the rest of the package: settings, experiments, evidence, claims, figures, findings."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from .claim import Claim, E, Measured, S

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


class StudyFigure(NamedTuple, Generic[S, E]):
    """A figure: how it is drawn from settings and evidence, what is seen on it, and which claims it bears on."""

    draw: "Callable[[S, E], Figure]"
    caption: str = ""  # Markdown
    claims: tuple[str, ...] = ()


class Control(NamedTuple):
    """A measurement that says how much a claim is worth: what was changed, what came out, what that means."""

    name: str
    question: str
    measured: Measured
    answer: str


class Finding(NamedTuple):
    """A paragraph or two of what was found, in plain words (Markdown), with the numbers that were measured."""

    title: str
    text: str


class Study(NamedTuple, Generic[S, E]):
    """One part of the paper, as data.

    `settings(quick=..., seed=...)` builds the settings. `experiments(settings)` names the steps that cost time. Each
    step is a function without arguments that does not depend on the others. It returns plain data: records
    (NamedTuple), dictionaries, lists, arrays, numbers, text. `evidence(settings, results by step)` makes the study's
    own record of them, which claims, figures, controls, findings and datasets read. They compute little themselves.
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
    controls: Callable[[S, E], Sequence[Control]] = lambda settings, evidence: ()
    findings: Callable[[S, E], Sequence[Finding]] = lambda settings, evidence: ()
    priority: int = 0  # studies with a larger one begin first: those that leave most to do at the end
