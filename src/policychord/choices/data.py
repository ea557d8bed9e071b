"""Choices as a checked table: every rule of the format, and everything that breaks one said at once."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

REQUIRED = ("subject", "block", "trial", "choice", "reward")
OPTIONAL = ("rt", "source")
LONGEST_RT = 20_000.0  # ms; slower trials are left out, as in the original analysis
LEAST_TRIALS = 10  # a person with fewer cannot be fitted
LARGEST = 2**53  # beyond it numbers that a table distinguishes are the same
LARGEST_REWARD = 1e12  # beyond it beliefs lose the digits that tell arms apart
MOST_SOURCES, LONGEST_SOURCE = 20, 160  # they are named in every output
LONGEST_QUOTE = 80  # characters of a file that a message repeats
_SHOWN = 5  # rows named for each kind of problem; the rest are counted
_MISSING = {"", "na", "nan"}  # how tables say that a response time is not known

Rows = Sequence[tuple[int, str]]  # the line in the file (the header is line 1) and what stands there


class Task(NamedTuple):
    """What participants were told of the arms: the variance of each arm's value, and that of a reward (Table S2)."""

    name: str
    variance: tuple[float, ...]
    noise: float = 10.0

    @property
    def arms(self) -> int:
        return len(self.variance)


TASKS = {
    "1": Task("Experiment 1", (10.0, 0.0)),  # the second arm always pays zero
    "2": Task("Experiment 2", (100.0, 100.0)),
}


class Choices(NamedTuple):
    """What people chose and got, ordered by subject, block and trial. Arms are numbered from 0 here."""

    subject: np.ndarray
    block: np.ndarray
    trial: np.ndarray
    choice: np.ndarray
    reward: np.ndarray
    task: Task
    source: str  # where they came from, for every output: printable, one line
    left_out: int = 0  # trials dropped for being slower than LONGEST_RT
    notes: tuple[str, ...] = ()  # what a reader of the results should know about the table


class DataError(ValueError):
    """A table of choices cannot be used; the message lists every problem with its rows."""


class Problem(NamedTuple):
    """One kind of thing that is wrong, and where."""

    text: str
    rows: Rows = ()


def read_choices(path: str | Path, task: Task, source: str | None = None) -> Choices:
    """Read a CSV file, check it, and leave out slow trials; a `DataError` lists every problem with its rows.

    A column `source`, such as simulated choices have, is carried along to every output. An empty RT is a missing one:
    the trial is kept, and `notes` says so.
    """
    path = Path(path)
    return parse_choices(_content(path), path.name, task, source)


def parse_choices(raw: bytes, name: str, task: Task, source: str | None = None) -> Choices:
    """The same for the content of a file that is in memory; `name` stands in every message."""
    name = printable(name, LONGEST_QUOTE)
    cells, problems = _read_cells(raw, name)
    sources = cells.pop("source").unique().tolist() if "source" in cells else []
    if len(sources) > MOST_SOURCES:
        problems.append(Problem(f"source has {len(sources)} different values, at most {MOST_SOURCES} are allowed"))
    without_rt = cells.index[cells["rt"].str.lower().isin(_MISSING)] if "rt" in cells else []
    numbers = cells.apply(pd.to_numeric, errors="coerce")
    if len(numbers):
        problems += _broken_cells(numbers, cells, task, set(without_rt)) + _broken_order(numbers)
    if problems:
        raise _complaint(name, problems)
    slow = numbers["rt"] >= LONGEST_RT if "rt" in numbers else pd.Series(False, index=numbers.index)
    kept = numbers[~slow].sort_values(["subject", "block", "trial"], kind="stable")
    few = kept.groupby("subject").size().reindex(numbers["subject"].unique(), fill_value=0) < LEAST_TRIALS
    if few.any():
        who = ", ".join(f"{subject:g}" for subject in few.index[few][:5])
        text = f"fewer than {LEAST_TRIALS} trials are left without those of {LONGEST_RT:g} ms or more: subject {who}"
        raise _complaint(name, [Problem(text)])
    subject, block, trial, choice = (kept[column].to_numpy(dtype=int) for column in REQUIRED[:4])
    told = printable(source or ", ".join([name, *sources]), LONGEST_SOURCE)
    notes = (f"RT is missing{_places([(int(row), '') for row in without_rt])} These trials are kept.",)
    return Choices(
        subject, block, trial, choice - 1, kept["reward"].to_numpy(float), task, told, int(slow.sum()),
        notes if len(without_rt) else (),
    )  # fmt: skip


def as_table(choices: Choices) -> pd.DataFrame:
    """The same as the table a file would hold, arms numbered from 1."""
    columns = {name: getattr(choices, name) for name in REQUIRED}
    return pd.DataFrame(columns | {"choice": choices.choice + 1})


def as_csv(table: pd.DataFrame) -> str:
    """A table as CSV that a spreadsheet opens as data: text that begins like a formula gets an apostrophe before it."""
    formula = ("=", "+", "-", "@", "\t", "\r")
    safe = table.map(lambda value: f"'{value}" if isinstance(value, str) and value.startswith(formula) else value)
    return safe.to_csv(index=False)


def printable(text: str, longest: int) -> str:
    """Text from outside, fit for a line of ours: without control characters, and cut where it is too long."""
    seen = "".join(c if c.isprintable() else " " for c in text)
    return seen if len(seen) <= longest else seen[: longest - 1] + "…"


def _quote(text: str) -> str:
    return printable(repr(text), LONGEST_QUOTE) if text else "empty"


def _complaint(name: str, problems: list[Problem]) -> DataError:
    """All problems as one message."""
    lines = [f"  - {problem.text}{_places(problem.rows)}" for problem in problems]
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} kinds of problems"
    return DataError(
        f"{name} cannot be used, {count} (row 1 is the header):\n" + "\n".join(lines) + "\n"
        "Correct the file and run again; nothing was written. Needed are the columns subject, block, trial, choice, "
        "reward, and RT in ms if slow trials are to be left out."
    )


def _places(rows: Rows) -> str:
    if not rows:
        return ""
    shown = ", ".join(f"row {row}" + (f" ({text})" if text else "") for row, text in rows[:_SHOWN])
    return f": {shown}" + (f" and {len(rows) - _SHOWN} more rows." if len(rows) > _SHOWN else ".")


# ------------------------------------------------------------------------------- from a file to cells


def _content(path: Path) -> bytes:
    """What a file holds, or why it cannot be opened. A pipe or a device is refused before anything is read from it."""
    shown = printable(str(path), 1000)
    if not path.exists():
        raise DataError(
            f"{shown} does not exist: check the path; the public data come with  policychord bandit data fetch"
        )
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "a pipe or a device, not a file"
        raise DataError(f"{shown} is {kind}: pass the CSV file itself.")
    return path.read_bytes()


def _read_cells(raw: bytes, name: str) -> tuple[pd.DataFrame, list[Problem]]:
    """The columns we know, as text, indexed by line number; and what is wrong with the table's shape."""
    records = list(_records(_text(raw, name), name))
    if not records:
        raise _complaint(name, [Problem("the file is empty")])
    header = [cell.strip().lower() for cell in records[0][1]]
    if len(header) == 1:
        for mark, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if mark in header[0]:
                text = f"cells are separated by {word}: save the table with commas, and points in decimal numbers"
                raise _complaint(name, [Problem(text)])
    problems = _header_problems(header)
    body = [(line, cells) for line, cells in records[1:] if any(cell.strip() for cell in cells)]
    blank = [(line, "") for line, cells in records[1:] if not any(cell.strip() for cell in cells)]
    if blank:
        problems.append(Problem("rows have commas but no values: delete them", blank))
    uneven = [(line, f"{len(cells)} cells") for line, cells in body if len(cells) != len(header)]
    if uneven:
        problems.append(Problem(f"rows do not have the {len(header)} cells of the header", uneven))
    if not body:
        problems.append(Problem("there is a header but no trials"))
    whole = [(line, cells) for line, cells in body if len(cells) == len(header)]
    known = {name: header.index(name) for name in (*REQUIRED, *OPTIONAL) if name in header}
    columns = {name: [cells[at].strip() for _, cells in whole] for name, at in known.items()}
    return pd.DataFrame(columns, index=pd.Index([line for line, _ in whole], dtype=int), dtype=str), problems


def _header_problems(header: list[str]) -> list[Problem]:
    def quoted(names: Sequence[str]) -> str:
        return printable(", ".join(map(repr, names)), LONGEST_QUOTE)

    problems = []
    missing = [name for name in REQUIRED if name not in header]
    if missing:
        there = quoted(header[:12])
        problems.append(Problem(f"missing column{'s' * (len(missing) > 1)} {', '.join(missing)}; there are {there}"))
    if "" in header:
        at = header.index("") + 1
        problems.append(Problem(f"column {at} has no name: delete it, or the comma at the end of the rows"))
    twice = [name for name, count in Counter(header).items() if count > 1 and name]
    if twice:
        problems.append(Problem(f"columns occur twice: {quoted(twice)}"))
    return problems


def _records(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """(line number, cells) of every record."""
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        yield from ((reader.line_num, cells) for cells in reader if cells)
    except csv.Error as error:
        text = f"row {reader.line_num} cannot be split into cells ({error}): check its quotes"
        raise _complaint(name, [Problem(text)]) from None


def _text(raw: bytes, name: str) -> str:
    try:
        if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
            text = "the text is in UTF-16: save it as CSV in UTF-8"
        elif raw[:4] == b"PK\x03\x04" or b"\0" in raw:
            text = "this is not text (a spreadsheet or another binary file?): save it as CSV"
        else:
            return raw.decode("utf-8-sig")  # the mark that some spreadsheets put first is harmless
    except UnicodeDecodeError as error:
        row = raw[: error.start].count(b"\n") + 1
        text = f"row {row} has a byte that is not UTF-8 ({raw[error.start]:#04x}): save the table as CSV in UTF-8"
    raise _complaint(name, [Problem(text)])


# ------------------------------------------------------------------------------------ rules of the cells


def _broken_cells(numbers: pd.DataFrame, cells: pd.DataFrame, task: Task, without_rt: set[int]) -> list[Problem]:
    import pandera.errors
    import pandera.pandas as pa

    whole = pa.Check(lambda s: (s % 1 == 0) & (s.abs() < LARGEST), error="must be a whole number")
    counted = [whole, pa.Check.ge(1, error="counts from 1")]
    finite = pa.Check(np.isfinite, error="must be a finite number")
    small = pa.Check.in_range(-LARGEST_REWARD, LARGEST_REWARD, error=f"lies beyond {LARGEST_REWARD:g}: rescale it")
    arms = list(range(1, task.arms + 1))
    numbered = " or ".join(map(str, arms)) if task.arms == 2 else f"a whole number from 1 to {task.arms}"
    checks = {
        "subject": [whole],
        "block": counted,
        "trial": counted,
        "choice": [pa.Check.isin(arms, error=f"must be {numbered}, the number of an arm")],
        "reward": [finite, small],
        "rt": [finite, pa.Check.ge(0, error="cannot be negative")],
    }
    schema = pa.DataFrameSchema({name: pa.Column(checks=checks[name], coerce=False) for name in numbers})
    problems: dict[str, dict[int, str]] = {}
    try:
        schema.validate(numbers, lazy=True)
    except pandera.errors.SchemaErrors as found:
        for case in found.failure_cases.itertuples():
            if case.column == "rt" and case.index in without_rt:
                continue
            rule = "must be a number" if case.check == "not_nullable" else case.check
            name = "RT" if case.column == "rt" else case.column
            problems.setdefault(f"{name} {rule}", {})[int(case.index)] = _quote(cells.at[case.index, case.column])
    return [Problem(text, sorted(rows.items())) for text, rows in problems.items()]


def _broken_order(numbers: pd.DataFrame) -> list[Problem]:
    """Duplicates, gaps and people with hardly any trials, among the rows whose numbers can be read."""
    keys = ["subject", "block", "trial"]
    if not set(keys) <= set(numbers):
        return []
    table = numbers[keys].dropna()
    table = table[np.isfinite(table).all(axis=1)]
    twice = table.duplicated(keys)
    ordered = table[~twice].sort_values(keys)
    new_subject = ordered["subject"].ne(ordered["subject"].shift())
    new_block = new_subject | ordered["block"].ne(ordered["block"].shift())
    trial_gap = ordered["trial"].ne(ordered["trial"].shift().where(~new_block, 0) + 1)
    block_gap = new_block & ordered["block"].ne(ordered["block"].shift().where(~new_subject, 0) + 1)
    few = table.groupby("subject")["trial"].transform("size") < LEAST_TRIALS
    few &= ~table["subject"].duplicated()
    found = (
        ("the same subject, block and trial occur twice", table[twice]),
        ("trials of a block count 1, 2, 3, ... and some are missing before", ordered[trial_gap]),
        ("blocks of a subject count 1, 2, 3, ... and some are missing before", ordered[block_gap]),
        (f"a subject has fewer than {LEAST_TRIALS} trials, too few to fit", table[few]),
    )
    return [Problem(text, _where(rows.sort_index())) for text, rows in found if len(rows)]


def _where(rows: pd.DataFrame) -> Rows:
    return [
        (int(line), f"subject {row.subject:g}, block {row.block:g}, trial {row.trial:g}")
        for line, row in zip(rows.index, rows.itertuples(), strict=True)
    ]
