"""From a file to cells: what can go wrong before a single number is read."""

import csv
import io
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pandas as pd

REQUIRED = ("subject", "block", "trial", "choice", "reward")
OPTIONAL = ("rt", "source")
_SHOWN = 5  # rows named for each kind of problem; the rest are counted


class DataError(ValueError):
    """A table of choices cannot be used; the message lists every problem with its rows."""


class Problem(NamedTuple):
    """One kind of thing that is wrong, and where: the line in the file (the header is line 1) and what stands there."""

    words: str
    rows: tuple[tuple[int, str], ...] = ()


def complain(name: str, problems: list[Problem]) -> DataError:
    """All problems as one message."""
    lines = [f"  - {problem.words}{_places(problem.rows)}" for problem in problems]
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} kinds of problems"
    return DataError(
        f"{name} cannot be used, {count} (row 1 is the header):\n" + "\n".join(lines) + "\n"
        "Correct the file and run again; nothing was written. Needed are the columns subject, block, trial, choice, "
        "reward, and RT in ms if slow trials are to be left out."
    )


def _places(rows: tuple[tuple[int, str], ...]) -> str:
    if not rows:
        return ""
    shown = ", ".join(f"row {row}" + (f" ({text})" if text else "") for row, text in rows[:_SHOWN])
    return f": {shown}" + (f" and {len(rows) - _SHOWN} more rows." if len(rows) > _SHOWN else ".")


def read_file(path: Path) -> bytes:
    """What a file holds, or why it cannot be opened."""
    if not path.exists():
        raise DataError(
            f"{path} does not exist: check the path; the public data come with  policychord bandit data fetch"
        )
    if path.is_dir():
        raise DataError(f"{path} is a folder: pass the CSV file itself.")
    return path.read_bytes()


def read_cells(raw: bytes, name: str) -> tuple[pd.DataFrame, list[Problem]]:
    """The columns we know, as text, indexed by line number; and what is wrong with the table's shape."""
    records = list(_records(_text(raw, name)))
    if not records:
        raise complain(name, [Problem("the file is empty")])
    header = [cell.strip().lower() for cell in records[0][1]]
    if len(header) == 1:
        for mark, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if mark in header[0]:
                words = f"cells are separated by {word}: save the table with commas, and points in decimal numbers"
                raise complain(name, [Problem(words)])
    problems = _header_problems(header)
    body = [(line, cells) for line, cells in records[1:] if any(cell.strip() for cell in cells)]
    blank = tuple((line, "") for line, cells in records[1:] if cells and not any(cell.strip() for cell in cells))
    if blank:
        problems.append(Problem("rows have commas but no values: delete them", blank))
    uneven = tuple((line, f"{len(cells)} cells") for line, cells in body if len(cells) != len(header))
    if uneven:
        problems.append(Problem(f"rows do not have the {len(header)} cells of the header", uneven))
    if not body:
        problems.append(Problem("there is a header but no trials"))
    whole = [(line, cells) for line, cells in body if len(cells) == len(header)]
    known = {name: header.index(name) for name in (*REQUIRED, *OPTIONAL) if name in header}
    columns = {name: [cells[at].strip() for _, cells in whole] for name, at in known.items()}
    return pd.DataFrame(columns, index=pd.Index([line for line, _ in whole], dtype=int), dtype=str), problems


def _header_problems(header: list[str]) -> list[Problem]:
    problems = []
    missing = [name for name in REQUIRED if name not in header]
    if missing:
        there = ", ".join(repr(name) for name in header[:12])
        problems.append(Problem(f"missing column{'s' * (len(missing) > 1)} {', '.join(missing)}; there are {there}"))
    if "" in header:
        at = header.index("") + 1
        problems.append(Problem(f"column {at} has no name: delete it, or the comma at the end of the rows"))
    twice = [name for name, count in Counter(header).items() if count > 1 and name]
    if twice:
        problems.append(Problem(f"columns occur twice: {', '.join(map(repr, twice))}"))
    return problems


def _records(text: str):
    """(line number, cells) of every record."""
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        for cells in reader:
            if cells:
                yield reader.line_num, cells
    except csv.Error as error:
        raise DataError(f"row {reader.line_num} cannot be split into cells ({error}): check its quotes.") from None


def _text(raw: bytes, name: str) -> str:
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise complain(name, [Problem("the text is in UTF-16: save it as CSV in UTF-8")])
    if raw[:4] == b"PK\x03\x04" or b"\0" in raw:
        raise complain(name, [Problem("this is not text (a spreadsheet or another binary file?): save it as CSV")])
    try:
        return raw.decode("utf-8-sig")  # the mark that some spreadsheets put first is harmless
    except UnicodeDecodeError as error:
        row = raw[: error.start].count(b"\n") + 1
        words = f"row {row} has a byte that is not UTF-8 ({raw[error.start]:#04x}): save the table as CSV in UTF-8"
        raise complain(name, [Problem(words)]) from None
