"""What a study is to the rest of the house: settings, work to do, claims to judge, figures to draw, words to say."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .claim import Entry

# What the work found, by the name of its step. Claims and figures read it and compute little themselves.
Evidence = Mapping[str, Any]


class Plate(NamedTuple):
    """A figure: how it is drawn from (settings, evidence), what is seen on it, and which claims it bears on."""

    draw: Callable[[Any, Evidence], Any]
    caption: str = ""  # Markdown
    claims: tuple[str, ...] = ()


class Control(NamedTuple):
    """A measurement that says how much a claim is worth: what was changed, what came out, what that means."""

    name: str
    question: str
    measured: dict[str, Any]
    answer: str


class Passage(NamedTuple):
    """A paragraph or two of what was found, in plain words (Markdown), with the figures that were measured."""

    title: str
    text: str


class Study(NamedTuple):
    """One part of the paper, as data.

    `settings(quick=..., seed=...)` builds the study's settings. `work(settings)` names the steps that cost time; each
    is a function without arguments, independent of the others, and its result becomes the evidence under that name.
    Claims are measured, figures drawn and words found from (settings, evidence).
    """

    name: str
    settings: Callable[..., Any]
    work: Callable[[Any], Mapping[str, Callable[[], Any]]]
    ledger: Sequence[Entry]
    plates: Mapping[str, Plate]
    datasets: Callable[[Any, Evidence], Mapping[str, Any]]  # what is kept as labelled data, by name
    title: str = ""
    lead: str = ""  # what the paper did and how it is measured here (Markdown)
    controls: Callable[[Any, Evidence], Sequence[Control]] = lambda settings, evidence: ()
    found: Callable[[Any, Evidence], Sequence[Passage]] = lambda settings, evidence: ()
