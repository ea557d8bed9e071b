"""The page that results end in: one file, nothing fetched, with figures inside it and paragraphs in Markdown."""

import base64
import math
import os
import re
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import ChoiceLoader, PackageLoader, StrictUndefined
from jinja2 import Environment as Templates
from markdown_it import MarkdownIt
from markupsafe import Markup

from .. import __version__
from .doctor import BROWSERS, find_program
from .store import save_figure, write_bytes, write_text

Picture = tuple[Callable[..., Any], tuple[Any, ...], str]  # a drawing function, its arguments, the caption


class PageFigure(NamedTuple):
    """A figure on disk; paths are relative to the run's folder."""

    name: str
    svg: str
    png: str
    caption: str  # Markdown
    claims: tuple[str, ...]
    panels: dict[str, list[str]] = {}  # noqa: RUF012  of the paper's figures, each with the claims about it


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


def render_page(title: str, words: list[tuple[str, str]], figures: list[PageFigure], folder: Path) -> str:
    """One self-contained page of sections (heading and Markdown) and figures."""
    templates = page_templates()
    templates.filters |= {"markdown": markdown}
    shown = [
        {"name": figure.name.replace("_", " "), "image": image, "caption": figure.caption}
        for figure, image in zip(figures, embedded(figures, folder), strict=True)
    ]
    return templates.get_template("page.html.j2").render(
        title=title, words=words, figures=shown, version=__version__, style=page_style()
    )


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


def write_page(out: Path, title: str, words: list[tuple[str, str]], pictures: Mapping[str, Picture]) -> list[Path]:
    """Results in a folder: `report.html`, the same words as `summary.md`, and figures in the order of `pictures`."""
    from ..drawing import styled  # whoever only reads Markdown needs no matplotlib

    files, drawn = [], []
    for name, (draw, arguments, caption) in pictures.items():
        files += save_figure(out / "figures" / name, styled(draw, *arguments))
        drawn.append(PageFigure(name, f"figures/{name}.svg", f"figures/{name}.png", caption, ()))
    text = "\n\n".join([f"# {title}", *(f"## {heading}\n\n{body}" for heading, body in words)])
    page = write_text(out / "report.html", render_page(title, words, drawn, out))
    return [page, write_text(out / "summary.md", f"{text}\n"), *files]
