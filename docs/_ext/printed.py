"""What a cell prints stands in the page below it, so that a reader of the source sees it too; the build compares both.

A block of `text` right after a cell is what the cell printed when the page was written. Words must be the same, and
numbers to two percent or to the last digit that is shown, give or take two, because processors round differently; for
the same reason numbers of the size of rounding are equal. A cell with the tag `varies` prints what differs from machine
to machine and needs no block. `PRINTED=write make docs` writes the blocks.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

_log = logging.getLogger(__name__)
NUMBER = re.compile(r"(?<![\w.])[-+]?\d*\.?\d+(?:e[-+]?\d+)?(?![\w.]*\w)", re.IGNORECASE)
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"\A\n```text\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
UNITS = 2  # of the last digit shown
SHARE = 0.02  # of a number, by which it may differ
ROUNDING = 1e-6  # numbers below are gaps and errors, which are there or not
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def same(shown: str, printed: str) -> bool:
    """Whether two texts have the same words, and numbers that agree to the digits shown."""
    if NUMBER.sub("#", _squeezed(shown)) != NUMBER.sub("#", _squeezed(printed)):
        return False
    return all(map(_close, NUMBER.findall(shown), NUMBER.findall(printed)))


def _squeezed(text: str) -> str:
    """Without the spaces that align columns: one digit more moves them."""
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


def _close(one: str, other: str) -> bool:
    a, b = float(one), float(other)
    if max(abs(a), abs(b)) < ROUNDING:
        return True
    return abs(a - b) <= max(1.0001 * UNITS * max(_last_digit(one), _last_digit(other)), SHARE * max(abs(a), abs(b)))


def _last_digit(number: str) -> float:
    """What one more in the last digit is worth; whole numbers are counts."""
    mantissa, _, exponent = number.lower().partition("e")
    if "." not in mantissa:
        return 0.0 if not exponent else 10.0 ** int(exponent)
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def _cells(doctree: nodes.document) -> Iterator[nodes.container]:
    for node in doctree.findall(nodes.container):
        if node.get("nb_element") == "cell_code":
            yield node


def _printed(cell: nodes.container) -> str:
    """What the cell wrote to its standard output."""
    blocks = [node for node in cell.findall(nodes.literal_block) if "stream" in node["classes"]]
    return COLOUR.sub("", "".join(block.astext() + "\n" for block in blocks))


def compare(app: Sphinx, doctree: nodes.document) -> None:
    """Compare, and take the block of the page away: the site shows what was printed by this build."""
    page = app.env.docname
    found = []
    for cell in _cells(doctree):
        printed, tags = _printed(cell), cell.get("cell_metadata", {}).get("tags", ())
        following = cell.next_node(descend=False, siblings=True)
        beside = following if _is_text(following) else None
        if "varies" in tags or not printed.strip():
            found.append(None)
            continue
        found.append(printed)
        if beside is None:
            _complain(page, cell, "the page does not show what this cell prints; `PRINTED=write make docs` adds it")
        elif not same(beside.astext(), printed):
            _complain(page, cell, f"the page shows\n{beside.astext()}\nbut the cell prints\n{printed}")
        if beside is not None:
            beside.parent.remove(beside)
    if _writing() and found:
        _write(Path(app.env.doc2path(page)), found)


def _is_text(node: Any) -> bool:
    return isinstance(node, nodes.literal_block) and node.get("language") == "text"


def _writing() -> bool:
    return os.environ.get("PRINTED") == "write"


def _complain(page: str, cell: nodes.container, words: str) -> None:
    if not _writing():
        _log.warning("%s: %s", page, words, location=cell)


def _write(page: Path, printed: list[str | None]) -> None:
    """The source of a page with the output of every cell below it."""
    text, place, parts = page.read_text(encoding="utf-8"), 0, []
    for fence, output in zip(list(CELL.finditer(text)), printed, strict=True):
        parts.append(text[place : fence.end()])
        old = SHOWN.match(text[fence.end() :])
        place = fence.end() + (old.end() if old and output is not None else 0)
        if output is not None:
            lines = "\n".join(line.rstrip() for line in output.rstrip().splitlines())
            parts.append(f"\n```text\n{lines}\n```\n")
    page.write_text("".join([*parts, text[place:]]), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", compare)
    return {"parallel_read_safe": True}
