"""What stands in the pages: blocks of code with their language and place, and commands named within sentences."""

import re
import shlex
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
_BESIDE = ("README.md", "CONTRIBUTING.md", "benchmarks/RECORD.md")
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in _BESIDE)])
FENCE = re.compile(r"^( *)```(\S*)[^\n]*\n(.*?)^\1```\s*?$", re.DOTALL | re.MULTILINE)
NEEDS = "# needs "  # how a block of Python begins that asks for a package which is not ours


class Block(NamedTuple):
    page: Path
    language: str
    code: str
    printed: str | None  # the block of output right after it

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}: {self.code.splitlines()[0] if self.code else ''}"


def blocks(language: str) -> list[Block]:
    """All blocks of a language, page by page."""
    return [block for page in PAGES for block in _blocks_of(page) if block.language == language]


def _blocks_of(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    for fence, following in zip_longest(found, found[1:]):
        beside = following is not None and not text[fence.end() : following.start()].strip()
        shown = following[3] if beside and following[2] in ("", "text") else None
        yield Block(page, fence[2], _flush(fence), shown)


def _flush(fence: re.Match) -> str:
    return re.sub(rf"^{fence[1]}", "", fence[3], flags=re.MULTILINE)


class Line(NamedTuple):
    """A line for a shell: to be typed as it stands, or named within a sentence, where arguments may be left out."""

    place: str
    words: list[str]
    in_full: bool


def commands() -> list[Line]:
    """Every line in a block of shell, and every command that a sentence names."""
    typed = [(block.place, line, True) for block in blocks("sh") for line in _lines(block.code)]
    for page in PAGES:
        prose = FENCE.sub("", page.read_text(encoding="utf-8"))
        named = re.findall(r"`((?:policychord|make|python) [^`]+)`", prose)
        typed += [
            (f"{page.relative_to(ROOT)}: {line}", line, False) for line in named if not re.search(r"\[|\.{3}", line)
        ]
    found = [Line(place, shlex.split(line, comments=True), in_full) for place, line, in_full in typed]
    return [line for line in found if line.words]


def _lines(code: str) -> list[str]:
    return code.replace("\\\n", " ").splitlines()
