"""The page that a run ends with: one file, nothing fetched, to be read, printed and sent to a colleague."""

import base64
import json
import re
import struct
from collections.abc import Iterable
from datetime import datetime
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment as Templates
from jinja2 import PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup
from pydantic import BaseModel

from ..studies.claim import VERDICTS, Claim
from .numbers import duration, exact, number, plain
from .records import Chapter, Drawn, Report
from .store import write_text

LARGEST_SVG = 400_000  # bytes; a drawing of more strokes than this is lighter as pixels
LARGEST_PAGE = 7_500_000  # bytes for all figures, as they stand in the page
SHOWN = 3  # measured figures in the table; the others are folded away
PANORAMA = 1.9  # figures wider than this times their height have their caption below,
BROAD = 720  # and so have those that were drawn wider than this, in CSS pixels

# as in CITATION.cff, which a test compares
PAPER = "An Energy-Based Mechanism for Compositional Behavior"
AUTHORS = ("Francesca Rossi", "Veronica Centorrino", "Francesco Bullo", "Giovanni Russo")
SOFTWARE = "Policychord: composing reusable behaviours with certified weights"
MAKERS = "The Policychord developers"

RESERVED = ("top", "summary", "claims", "run", "again", "cite", "record", "zoom")


class Picture(NamedTuple):
    """A figure as the page holds it."""

    anchor: str
    number: int
    title: str
    source: str  # data URI
    width: int
    height: int
    wide: bool
    caption: str
    claims: list[tuple[str, Claim | None]]  # anchor and claim; no claim where the run does not have it


class Line(NamedTuple):
    """A claim as a line of the table."""

    anchor: str
    order: int
    chapter: Chapter
    claim: Claim
    measured: dict[str, Any]
    pictures: list[Picture]


class Setting(NamedTuple):
    name: str
    value: Any
    meaning: str


class Section(NamedTuple):
    """A chapter as the page shows it."""

    anchor: str
    chapter: Chapter
    lines: list[Line]
    pictures: list[Picture]
    settings: list[Setting]


def write_report(report: Report, folder: Path) -> Path:
    """The page beside the files that it was made from."""
    return write_text(folder / "report.html", render(report, folder))


def render(report: Report, folder: Path) -> str:
    """One self-contained HTML page."""
    sections = _sections(report, folder)
    lines = [line for section in sections for line in section.lines]
    templates = Templates(
        loader=PackageLoader("policychord.runs"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    templates.filters |= {
        "number": number, "exact": exact, "duration": duration, "markdown": markdown, "plain": plain,
        "day": _day, "kind": _kind,
    }  # fmt: skip
    source = Path(__file__).parent / "templates"
    return templates.get_template("report.html.j2").render(
        sections=sections,
        lines=lines,
        counts={verdict: sum(line.claim.verdict == verdict for line in lines) for verdict in VERDICTS},
        verdicts=VERDICTS,
        environment=report.environment,
        simulated=_simulated(report),
        commands=_commands(report),
        steps=sorted(report.environment.steps.items(), key=lambda step: -step[1]),
        shown=SHOWN,
        paper=PAPER,
        authors=AUTHORS,
        citation=_citation(report.environment.policychord, report.environment.started[:4]),
        style=Markup((source / "report.css").read_text(encoding="utf-8")),
        script=Markup((source / "report.js").read_text(encoding="utf-8")),
        record=_record(report),
    )


def markdown(text: str) -> Markup:
    """Markdown as HTML. Tags in it are shown, not obeyed; pictures are refused, since they would be fetched."""
    reader = MarkdownIt("commonmark", {"html": False, "typographer": False}).enable("table").disable("image")
    tokens = reader.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):  # below the headings that the page has itself
            token.tag = f"h{min(6, int(token.tag[1]) + 4)}"
    return Markup(reader.renderer.render(tokens, reader.options, {}))


def _sections(report: Report, folder: Path) -> list[Section]:
    taken = set(RESERVED)
    studies = [_anchor(chapter.study, taken) for chapter in report.chapters]
    claims = {claim.id: claim for chapter in report.chapters for claim in chapter.claims}
    anchors = [[_anchor(claim.id, taken) for claim in chapter.claims] for chapter in report.chapters]
    known = {c.id: a for chapter, at in zip(report.chapters, anchors, strict=True)
             for c, a in zip(chapter.claims, at, strict=True)}  # fmt: skip
    drawn = [(chapter, figure) for chapter in report.chapters for figure in chapter.figures]
    sources = dict(zip(map(id, (figure for _, figure in drawn)), _embedded([f for _, f in drawn], folder), strict=True))
    figures, order = count(1), count()
    sections = []
    for chapter, study, places in zip(report.chapters, studies, anchors, strict=True):
        pictures = []
        for figure in chapter.figures:
            source, width, height = sources[id(figure)]
            on_it = [(known.get(name, name), claims.get(name)) for name in figure.claims]
            pictures.append(Picture(
                anchor=_anchor(f"figure-{chapter.study}-{figure.name}", taken), number=next(figures),
                title=_title(figure.name), source=source, width=width, height=height,
                wide=width > min(BROAD, PANORAMA * height) or not figure.caption, caption=figure.caption, claims=on_it,
            ))  # fmt: skip
        sections.append(Section(study, chapter, [], pictures, _settings(chapter)))
        for claim, place in zip(chapter.claims, places, strict=True):
            sections[-1].lines.append(Line(place, next(order), chapter, claim, plain(claim.measured), []))
    for section in sections:  # a figure of one study may bear on a claim of another
        for line in section.lines:
            line.pictures.extend(
                p for other in sections for p in other.pictures if any(c is line.claim for _, c in p.claims)
            )
    return sections


def _anchor(name: str, taken: set[str]) -> str:
    """An id for a place in the page that no other place has."""
    base = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-") or "place"
    unique = next(n for n in (base, *(f"{base}-{k}" for k in range(2, len(taken) + 3))) if n not in taken)
    taken.add(unique)
    return unique


def _title(name: str) -> str:
    words = name.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]


def _embedded(figures: Iterable[Drawn], folder: Path) -> list[tuple[str, int, int]]:
    """Each figure as a data URI with its size: sharp SVG while that is affordable, else PNG."""
    chosen = []
    for figure in figures:
        there = [path for path in (folder / figure.svg, folder / figure.png) if path.is_file()]
        if not there:
            raise ValueError(f"{folder / figure.png} is missing: draw figure {figure.name!r} before the report.")
        files = [path.read_bytes() for path in there]
        light = min(range(len(files)), key=lambda k: len(files[k]))
        fine = 0 if there[0].suffix != ".svg" or len(files[0]) <= LARGEST_SVG else light
        chosen.append([files[fine], files[light]])
    spent = sum(len(fine) for fine, _ in chosen) * 4 // 3  # in base64
    for both in sorted(chosen, key=lambda both: len(both[1]) - len(both[0])):  # the largest saving first
        if spent > LARGEST_PAGE:
            spent -= (len(both[0]) - len(both[1])) * 4 // 3
            both[0] = both[1]
    return [_uri(fine) for fine, _ in chosen]


def _uri(image: bytes) -> tuple[str, int, int]:
    if image.startswith(b"\x89PNG"):
        kind = "png"
        width, height = (round(side * 96 / 200) for side in struct.unpack(">II", image[16:24]))  # drawn at 200 dpi
    else:
        kind = "svg+xml"
        found = re.search(rb'viewBox="[-\d.]+[ ,]+[-\d.]+[ ,]+([\d.]+)[ ,]+([\d.]+)"', image)
        width, height = (round(float(side) * 96 / 72) for side in found.groups()) if found else (640, 480)
    return f"data:image/{kind};base64,{base64.b64encode(image).decode('ascii')}", width, height


def _settings(chapter: Chapter) -> list[Setting]:
    """Settings line by line, with what they mean where the study's settings say so."""
    try:
        module = import_module(f"..studies.{chapter.study}.settings", __package__)
        models = [m for m in vars(module).values() if isinstance(m, type) and issubclass(m, BaseModel)]
    except ModuleNotFoundError:
        models = []

    def walk(values: dict[str, Any], above: str) -> Iterable[Setting]:
        fields = next((m.model_fields for m in models if set(m.model_fields) == set(values)), {})
        for name, value in values.items():
            if isinstance(value, dict) and value:
                yield from walk(value, f"{above}{name}.")
            else:
                meaning = fields[name].description if name in fields else None
                yield Setting(above + name, value, meaning or "")

    return list(walk(plain(chapter.settings), ""))


def _simulated(report: Report) -> str:
    """Whose choices were explained, if they are nobody's."""
    data = report.environment.data
    there = any(chapter.study == "bandit" for chapter in report.chapters)
    return data if there and re.search("simulated|synthetic", data, re.IGNORECASE) else ""


def _commands(report: Report) -> list[str]:
    """What to type to get this page again."""
    environment = report.environment
    options = f"--{'quick' if environment.quick else 'full'} --seed {environment.seed}"
    studies = [chapter.study for chapter in report.chapters]
    wanted = ["all"] if len(studies) == 4 else studies
    data = "" if _simulated(report) or "bandit" not in studies else ["policychord bandit data fetch"]
    return [*data, *(f"policychord reproduce {study} {options}" for study in wanted)]


def _citation(version: str, year: str) -> str:
    """BibTeX entries of the software and of the paper."""
    names = " and ".join(f"{last}, {first}" for first, last in (name.split() for name in AUTHORS))
    return (
        f"@software{{policychord,\n  title = {{{SOFTWARE}}},\n  author = {{{{{MAKERS}}}}},\n"
        f"  version = {{{version}}},\n  year = {{{year}}}\n}}\n\n"
        f"@article{{compositional-behavior,\n  title = {{{PAPER}}},\n  author = {{{names}}}\n}}"
    )


def _record(report: Report) -> Markup:
    """Claims and environment as JSON inside the page, so that a page alone can be compared with another."""
    claims = [claim._asdict() | {"study": chapter.study} for chapter in report.chapters for claim in chapter.claims]
    text = json.dumps(plain({"claims": claims, "environment": report.environment._asdict()}), ensure_ascii=False)
    return Markup(text.replace("<", "\\u003c"))  # no tag can end the element that holds it


def _day(when: str) -> str:
    try:
        moment = datetime.fromisoformat(when)
    except ValueError:
        return when
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def _kind(value: Any) -> str:
    """How a measured value is laid out."""
    if isinstance(value, dict) and value:
        parts = value.values()
        rows = all(isinstance(part, list) and part for part in parts) and len({len(part) for part in parts}) == 1
        return "table" if rows and not any(isinstance(x, list | dict) for part in parts for x in part) else "names"
    return "list" if isinstance(value, list) and value else "words" if isinstance(value, str) else "number"
