"""What a study is to the rest of the house: settings, work to do, claims to judge, figures to draw."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .claim import Entry

# What the work found, by the name of its step. Claims and figures read it and compute little themselves.
Evidence = Mapping[str, Any]


class Study(NamedTuple):
    """One part of the paper, as data.

    `settings(quick=..., seed=...)` builds the study's settings. `work(settings)` names the steps that cost time; each
    is a function without arguments, independent of the others, and its result becomes the evidence under that name.
    Claims are measured, and figures drawn, from (settings, evidence).
    """

    name: str
    settings: Callable[..., Any]
    work: Callable[[Any], Mapping[str, Callable[[], Any]]]
    ledger: Sequence[Entry]
    figures: Mapping[str, Callable[[Any, Evidence], Any]]
    datasets: Callable[[Any, Evidence], Mapping[str, Any]]  # what is kept as labelled data, by name
    notes: Callable[[Any, Evidence], str] | None = None  # what it all means, in plain words (Markdown)
