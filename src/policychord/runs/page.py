"""The page that results end in: one file, nothing fetched, with figures inside it and paragraphs in Markdown."""

import base64
import csv
import io
import math
import os
import platform
import re
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import ChoiceLoader, PackageLoader, StrictUndefined
from jinja2 import Environment as Templates
from markdown_it import MarkdownIt
from markupsafe import Markup

from .. import __version__
from ..inference import findings
from .doctor import BROWSERS, find_program
from .store import plain, save_figure, write_bytes, write_json, write_text

Picture = tuple[Callable[..., Any], tuple[Any, ...], str]  # a drawing function, its arguments, the caption


class PageFigure(NamedTuple):
    """A figure on disk; paths are relative to the run's folder."""

    name: str
    svg: str
    png: str
    caption: str  # Markdown
    claims: tuple[str, ...]
    panels: dict[str, list[str]] = {}  # noqa: RUF012  of the paper's figures, each with the claims about it


RECORD = "results.json"
FRONT = 2  # figures that stand next to the table
_NUMBER = re.compile(r"[-+]?[\d.,]+(?:[^a-z]*|e[-+]?\d+)$|$")
TEMPLATES = Path(__file__).parent / "templates"
LARGEST_SVG = 400_000  # bytes; a drawing of more strokes than this is lighter as pixels
LARGEST_PAGE = 7_500_000  # bytes for all figures, as they stand in the page
SECONDS_TO_PRINT = 120
SPACE = "\N{NO-BREAK SPACE}"


class Embedded(NamedTuple):
    """An image as a data URI, with the size at which it was drawn, in CSS pixels."""

    source: str
    width: int
    height: int


# tags in Markdown are shown, not obeyed; pictures are refused, since they would be fetched
_READER = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


def _table_open(*_: Any) -> str:
    # a wide table moves sideways: by touch, and by the keyboard once it is reached
    return '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>\n'


_READER.add_render_rule("table_open", _table_open)
_READER.add_render_rule("table_close", lambda *_: "</table></div>\n")


def markdown(text: str) -> Markup:
    """Paragraphs in Markdown as HTML, with headings below those that the page has itself."""
    tokens = _READER.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 4)}"
    return Markup(_READER.renderer.render(tokens, _READER.options, {}))


def duration(seconds: float) -> str:
    """0.4 s, 12 s, 2 min 41 s, 1 h 5 min."""
    if not math.isfinite(seconds) or seconds < 0:
        return "unknown"
    if seconds < 9.95:
        return f"{seconds:.1f}{SPACE}s"
    whole = round(seconds)
    hours, minutes, left = whole // 3600, whole % 3600 // 60, whole % 60
    if hours:
        return f"{hours}{SPACE}h {minutes}{SPACE}min"
    return f"{minutes}{SPACE}min {left}{SPACE}s" if minutes else f"{left}{SPACE}s"


def embedded(figures: Iterable[PageFigure], folder: Path) -> list[Embedded]:
    """Each figure inside the page: sharp SVG while that is affordable, else PNG."""
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


def _uri(image: bytes) -> Embedded:
    if image.startswith(b"\x89PNG"):
        kind = "png"
        width, height = (round(side * 96 / 200) for side in struct.unpack(">II", image[16:24]))  # drawn at 200 dpi
    else:
        kind = "svg+xml"
        box = re.search(rb'viewBox="[-\d.]+[ ,]+[-\d.]+[ ,]+([\d.]+)[ ,]+([\d.]+)"', image)
        width, height = (round(float(side) * 96 / 72) for side in box.groups()) if box else (640, 480)
    return Embedded(f"data:image/{kind};base64,{base64.b64encode(image).decode('ascii')}", width, height)


def page_templates(*packages: str) -> Templates:
    """Templates of our pages, and before them those of other packages (in their folder `templates`)."""
    return Templates(
        loader=ChoiceLoader([PackageLoader(name) for name in (*packages, __package__)]), autoescape=True,
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def page_style() -> Markup:
    """Colours, type and layout of every page."""
    return Markup("".join((TEMPLATES / name).read_text(encoding="utf-8") for name in ("tokens.css", "page.css")))


class Results(NamedTuple):
    """What a fit found: what stands on its page, and in its files."""

    kind: str  # the command, such as `tracks fit`
    source: str  # what was analysed
    verdict: str  # in one sentence
    columns: Sequence[str]  # of the table behind it
    rows: Sequence[Sequence[str]]
    sentences: Sequence[str]  # what else the table says
    warnings: Sequence[str]
    estimates: tuple[str, str]  # the model that was judged, and its numbers in Markdown
    card: str  # the data, in Markdown
    details: Sequence[tuple[str, str]]  # headings, and what stands below them in Markdown
    pictures: Mapping[str, Picture]  # the first two stand next to the table
    tables: Mapping[str, str]  # names of files, and their text
    record: Mapping[str, Any]  # all of it as data
    cited: Sequence[str] = ()  # besides the method


def render_results(results: Results, figures: Sequence[PageFigure], folder: Path, again: str = "") -> str:
    """The page of a fit: one file that fetches nothing. `again` is the command that runs it again."""
    templates = page_templates()
    templates.filters |= {"markdown": markdown}
    shown = [
        {"name": figure.name.replace("_", " "), "image": image, "caption": figure.caption}
        for figure, image in zip(figures, embedded(figures, folder), strict=True)
    ]
    numeric = [all(_NUMBER.match(cell) for cell in cells) for cells in zip(*results.rows, strict=True)]
    return templates.get_template("page.html.j2").render(
        results=results, numeric=numeric, front=shown[:FRONT], others=shown[FRONT:], again=again, version=__version__,
        versions=_versions(), style=page_style(),
    )  # fmt: skip


def _versions() -> str:
    names = ("numpy", "scipy", "jax")
    return ", ".join([f"Python {platform.python_version()}", *(f"{name} {metadata.version(name)}" for name in names)])


def summarise(results: Results, again: str = "") -> str:
    """The text of the page, as Markdown."""
    plain_text = findings.as_markdown
    parts = [
        f"# {plain_text(results.verdict)}", *(f"**Warning.** {plain_text(line)}" for line in results.warnings),
        findings.table(results.columns, results.rows), *map(plain_text, results.sentences),
        f"## Estimates: {results.estimates[0]}\n\n{results.estimates[1]}", f"## The data\n\n{results.card}",
        *(f"## {heading}\n\n{words}" for heading, words in results.details),
    ]  # fmt: skip
    parts += [f"## Run it again\n\n    {again}"] if again else []
    return "\n\n".join(parts) + "\n"


def csv_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Records of numbers and names as a table."""
    written = io.StringIO()
    table = csv.DictWriter(written, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return written.getvalue()


def write_results(out: Path, results: Results, again: str = "") -> list[Path]:
    """`report.html`, the same words as `summary.md`, the numbers as `results.json`, tables, and figures."""
    from ..drawing import styled  # whoever only reads Markdown needs no matplotlib

    files = [write_text(out / "summary.md", summarise(results, again))]
    files += [write_text(out / name, text) for name, text in results.tables.items()]
    drawn = []
    for name, (draw, arguments, caption) in results.pictures.items():
        files += save_figure(out / "figures" / name, styled(draw, *arguments))
        drawn.append(PageFigure(name, f"figures/{name}.svg", f"figures/{name}.png", caption, ()))
    shown = ("kind", "source", "verdict", "columns", "rows", "sentences", "warnings")
    record = {name: getattr(results, name) for name in shown} | {"again": again, **results.record}
    page = write_text(out / "report.html", render_results(results, drawn, out, again))
    return [page, write_json(out / RECORD, plain(record, finite=True)), *files]


def print_page(page: Path) -> Path | None:
    """The page as a PDF next to it, by a browser without a window; None where there is none, or it fails."""
    browser, printed = find_program(BROWSERS), page.with_suffix(".pdf")
    printed.unlink(missing_ok=True)  # one of an earlier run would be another page
    if browser is None:
        return None
    # a process of root has no sandbox; the page is our own, and fetches nothing
    options = ["--headless", "--disable-gpu", "--no-pdf-header-footer", *(["--no-sandbox"] if _is_root() else [])]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [browser, *options, f"--user-data-dir={profile}", f"--print-to-pdf={Path(profile) / printed.name}"]
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                [*command, page.resolve().as_uri()], capture_output=True, timeout=SECONDS_TO_PRINT, check=True
            )
            return write_bytes(printed, (Path(profile) / printed.name).read_bytes())
    return None


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0
