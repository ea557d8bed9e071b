"""The page that a run ends with: one file, nothing fetched. Five pages of it are printed; the rest is its appendix."""

import json
import re
import sys
from collections.abc import Iterable
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup
from pydantic import BaseModel

from policychord.runs import (
    Embedded,
    PageFigure,
    duration,
    embedded,
    page_style,
    page_templates,
    plain,
    write_text,
)

from . import STUDIES, load_study
from .claim import (
    VERDICTS,
    Check,
    Expected,
    JudgedClaim,
    Quantity,
    firmness,
    number,
    robustness_text,
)
from .claim_view import SIGNS, Deciding, deciding, formula, limit_text, numbered, parts_of, rest, since, table_of
from .mathematics import prose, typeset
from .study import PANELS, Chapter, Report, claim_records, simulated

PANORAMA = 1.9  # figures wider than this times their height have their caption below,
FOLDER = "FOLDER"  # stands for a path in commands
BROAD = 720  # and so have those that were drawn wider than this, in CSS pixels
NO_NUMBER = "no number given"  # in `reported`, where the paper shows or says something only
# as in CITATION.cff, which a test compares
PAPER = "An Energy-Based Mechanism for Compositional Behavior"
AUTHORS = ("Francesca Rossi", "Veronica Centorrino", "Francesco Bullo", "Giovanni Russo")
# The manuscript names no year, journal or DOI. This preprint is an earlier one by its authors, on the same mechanism.
PREPRINT, PREPRINTS_YEAR = "Neural Policy Composition from Free Energy Minimization", 2025
PREPRINTS_LINK = "https://arxiv.org/abs/2512.04745"
PEOPLES_LINK = "https://doi.org/10.1016/j.cognition.2017.12.014"  # of the article with people's choices
SOFTWARE = "Policychord: composing reusable behaviours with certified weights"
MAKERS = "The Policychord developers"
RESERVED = (
    "top", "summary", "claims", "claims-title", "ledger", "studies", "studies-title", "method", "method-title", "cite",
    "cite-title", "appendix", "appendix-title", "panels", "changes", "run", "record", "zoom",
)  # fmt: skip


class _Picture(NamedTuple):
    """A figure as the page shows it."""

    anchor: str
    number: int
    title: str
    image: Embedded
    wide: bool  # with its caption below
    caption: str
    claims: list[tuple[str, JudgedClaim | None]]  # anchor and claim; no claim where the run does not have it


class _Line(NamedTuple):
    """A claim as a line of the table of verdicts."""

    anchor: str
    order: int
    chapter: Chapter
    claim: JudgedClaim
    pictures: list[_Picture]
    counted: bool  # claims about people are not counted where there were no people
    deciding: Deciding | None
    parts: str  # which parts of its rule hold, where not all do


class _Setting(NamedTuple):
    name: str
    value: Any
    meaning: str


class _Panel(NamedTuple):
    """A panel of the paper's figures, what of ours stands for it, and the claims about it."""

    name: str
    pictures: list[_Picture]
    claims: list[tuple[str, JudgedClaim]]  # anchor and claim


class _World(NamedTuple):
    """A null or an alternative, and what the rules say of it."""

    name: str
    what: str
    expected: Expected
    checks: list[tuple[_Line, Check]]


class _Section(NamedTuple):
    """A chapter as the page shows it."""

    anchor: str
    chapter: Chapter
    lines: list[_Line]
    pictures: list[_Picture]
    settings: list[_Setting]

    @property
    def worlds(self) -> list[_World]:
        """The nulls and alternatives that the rules of the study were applied to."""
        made: dict[tuple[str, str, Expected], _World] = {}
        for line in self.lines:
            for check in line.claim.checks:
                about = check.name, check.what, check.expected
                made.setdefault(about, _World(*about, [])).checks.append((line, check))
        return list(made.values())

    @property
    def shown(self) -> _Picture | None:
        """The figure that is printed."""
        drawn = zip(self.chapter.figures, self.pictures, strict=True)
        return next((picture for figure, picture in drawn if figure is _shown(self.chapter)), None)


def write_report(report: Report, folder: Path) -> Path:
    """The page, in the folder of the files that it was made from."""
    return write_text(folder / "report.html", _render(report, folder))


def _render(report: Report, folder: Path) -> str:
    """One self-contained HTML page."""
    sections = _sections(report, folder)
    lines = [line for section in sections for line in section.lines]
    judged = [line for line in lines if line.counted]
    templates = page_templates(__package__)
    templates.filters |= {
        "number": number, "exact": _all_digits, "robustness": robustness_text, "firmness": firmness,
        "duration": duration, "prose": prose, "typeset": typeset, "day": _day, "table": table_of, "rest": rest,
        "limit": limit_text, "numbered": numbered, "formula": formula,
    }  # fmt: skip
    return templates.get_template("report.html.j2").render(
        sections=sections,
        lines=lines,
        panels=_panels(report, sections),
        judged=judged,
        changed=[line for line in judged if line.claim.history],
        since=since([line.claim for line in judged if line.claim.history]),
        counts={verdict: sum(line.claim.verdict == verdict for line in judged) for verdict in VERDICTS},
        verdicts=VERDICTS,
        environment=report.environment,
        simulated=[chapter for chapter in report.chapters if simulated(chapter)],
        commands=_commands(report),
        folder=FOLDER if report.environment.choices == "folder" else "",
        steps=sorted(report.environment.steps.items(), key=lambda step: -step[1]),
        no_number=NO_NUMBER,
        signs=SIGNS,
        paper=PAPER,
        authors=AUTHORS,
        people=PEOPLES_LINK if any(c.source and not simulated(c) for c in report.chapters) else "",
        preprint=(PREPRINT, PREPRINTS_YEAR, PREPRINTS_LINK),
        citation=_citation(report.environment.policychord, report.environment.started[:4]),
        style=page_style() + _template("report.css"),
        script=_template("report.js"),
        version=report.environment.policychord,
        record=_record(report),
    )


def _template(name: str) -> Markup:
    return Markup((Path(__file__).parent / "templates" / name).read_text(encoding="utf-8"))


def _sections(report: Report, folder: Path) -> list[_Section]:
    taken = set(RESERVED)
    sections, order = [], count()
    for chapter in report.chapters:
        section = _Section(_anchor(chapter.study, taken), chapter, [], [], _settings(chapter))
        taken.add(f"{section.anchor}-title")
        for claim in chapter.claims:
            place = _anchor(claim.id, taken)
            line = _Line(
                place, next(order), chapter, claim, [], not simulated(chapter), deciding(claim), parts_of(claim)
            )
            section.lines.append(line)
        sections.append(section)
    lines = {line.claim.id: line for section in sections for line in section.lines}
    images = iter(embedded([figure for chapter in report.chapters for figure in chapter.figures], folder))
    printed, others = count(1), count(1 + sum(_shown(chapter) is not None for chapter in report.chapters))
    for section in sections:
        for figure in section.chapter.figures:
            place = _anchor(f"figure-{section.chapter.study}-{figure.name}", taken)
            number = next(printed if figure is _shown(section.chapter) else others)
            picture = _picture(figure, place, number, next(images), lines)
            section.pictures.append(picture)
            for name in figure.claims:  # a figure of one study may bear on a claim of another
                if name in lines:
                    lines[name].pictures.append(picture)
    return sections


def _shown(chapter: Chapter) -> PageFigure | None:
    """The figure of a study that is printed; these have the first numbers."""
    return next((figure for figure in chapter.figures if figure.name == chapter.shown), None)


def _picture(figure: PageFigure, anchor: str, number: int, image: Embedded, lines: dict[str, _Line]) -> _Picture:
    words = figure.name.replace("_", " ").replace("-", " ").strip()
    return _Picture(
        anchor=anchor,
        number=number,
        title=words[:1].upper() + words[1:],
        image=image,
        wide=image.width > min(BROAD, PANORAMA * image.height) or not figure.caption,
        caption=figure.caption,
        claims=[(lines[name].anchor, lines[name].claim) if name in lines else (name, None) for name in figure.claims],
    )


def _panels(report: Report, sections: list[_Section]) -> list[_Panel]:
    """The paper's panels with results, in its order; those of studies that did not run are left out."""
    lines = {line.claim.id: line for section in sections for line in section.lines}
    drawn = [
        (figure, picture)
        for section in sections
        for figure, picture in zip(section.chapter.figures, section.pictures, strict=True)
    ]
    rows = []
    for name in PANELS:
        ours = [picture for figure, picture in drawn if name in figure.panels]
        about = dict.fromkeys(claim for figure, _ in drawn for claim in figure.panels.get(name, ()) if claim in lines)
        rows.append(_Panel(name, ours, [(lines[claim].anchor, lines[claim].claim) for claim in about]))
    everything = {chapter.study for chapter in report.chapters} >= set(STUDIES)
    return [row for row in rows if row.pictures or everything]


def _anchor(name: str, taken: set[str]) -> str:
    """An id for a place in the page that no other place has."""
    base = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-") or "place"
    unique = next(n for n in (base, *(f"{base}-{k}" for k in range(2, len(taken) + 3))) if n not in taken)
    taken.add(unique)
    return unique


def _settings(chapter: Chapter) -> list[_Setting]:
    """Settings line by line, with what they mean where the study's settings say so."""
    try:
        module = sys.modules[load_study(chapter.study).settings.__module__]
        models = [m for m in vars(module).values() if isinstance(m, type) and issubclass(m, BaseModel)]
    except ModuleNotFoundError:
        models = []

    def walk(values: dict[str, Any], above: str) -> Iterable[_Setting]:
        fields = next((m.model_fields for m in models if set(m.model_fields) == set(values)), {})
        for name, value in values.items():
            if isinstance(value, dict) and value:
                yield from walk(value, f"{above}{name}.")
            else:
                meaning = fields[name].description if name in fields else None
                yield _Setting(above + name, value, meaning or "")

    return list(walk(plain(chapter.settings), ""))


def _commands(report: Report) -> list[str]:
    """What to type to get this page again."""
    environment = report.environment
    options = f"--{'quick' if environment.quick else 'full'} --seed {environment.seed}"
    studies = [chapter.study for chapter in report.chapters]
    wanted = ["all"] if set(studies) == set(STUDIES) else studies
    # a path of this machine says nothing elsewhere, so that it is not printed
    options += f" --data {FOLDER}" if environment.choices == "folder" else ""
    fetch = ["policychord choices data fetch"] if environment.choices == "fetched" else []
    return [*fetch, *(f"policychord reproduce {study} {options}" for study in wanted)]


def _citation(version: str, year: str) -> str:
    """BibTeX entries of the software and of the paper."""
    names = " and ".join(f"{last}, {first}" for first, last in (name.split() for name in AUTHORS))
    return (
        f"@software{{policychord,\n  title = {{{SOFTWARE}}},\n  author = {{{{{MAKERS}}}}},\n"
        f"  version = {{{version}}},\n  year = {{{year}}}\n}}\n\n"
        f"@unpublished{{compositional-behavior,\n  title = {{{PAPER}}},\n  author = {{{names}}},\n"
        f"  note = {{Manuscript. Earlier preprint: {PREPRINT} ({PREPRINTS_YEAR}), {PREPRINTS_LINK}}}\n}}"
    )


def _record(report: Report) -> Markup:
    """Claims and environment as JSON inside the page, so that a page alone can be compared with another."""
    record = {"claims": claim_records(report), "environment": report.environment}
    text = json.dumps(plain(record), ensure_ascii=False)
    return Markup(text.replace("<", "\\u003c"))  # no tag can end the element that holds it


def _day(when: str) -> str:
    try:
        moment = datetime.fromisoformat(when)
    except ValueError:
        return when
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def _all_digits(value: Any) -> str:
    """All digits, as in claims.json."""
    value = value.value if isinstance(value, Quantity) else value
    return value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
