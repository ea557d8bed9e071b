"""From the bytes of a file to columns under our names: separators, guessed names, sums of columns, the sidecar."""

import csv
import io
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

LARGEST_TABLE = 50_000_000  # bytes, some 3 million trials; in memory it takes twenty times as much
MOST_COLUMNS = 100_000
LONGEST_QUOTE = 80  # characters of a file that a message repeats
LARGEST_SIDECAR = 1_000_000  # bytes
MISSING = frozenset({"", "na", "n/a", "nan", "none", "null", "."})  # how tables say that there is nothing
NO_ANSWER = frozenset({"timeout", "timedout", "missed", "miss", "noresponse", "omission", "tooslow"})  # for a choice
_SHOWN = 5  # rows named for each kind of problem; the rest are counted
_MOST_NAMES = 24  # columns named in a message
_SEPARATORS = {"\t": "tabs", ";": "semicolons", ",": "commas", "|": "bars"}

# What other labs call our columns, without case and punctuation; the first that is there is taken.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "subject": ("subject", "subjid", "subjectid", "participant", "participantid", "ppt", "pptid", "subj", "sub", "pid",
                "subjectnumber", "workerid", "userid", "prolificid", "prolificpid", "person", "personid", "id"),
    "block": ("block", "blocknumber", "blockno", "blocknum", "blockid", "game", "gamenumber", "gameno", "run", "round"),
    "trial": ("trial", "trialnumber", "trialid", "trialinblock", "trialindex", "trialno", "trialnum", "t", "round",
              "roundnumber", "roundno", "turn"),
    "choice": ("choice", "chosen", "chosenarm", "arm", "action", "response", "resp", "choiceid", "option", "selected",
               "keypress", "keypressed", "key", "pressed", "button", "buttonpressed", "selection"),
    "reward": ("reward", "outcome", "payoff", "payout", "points", "pointswon", "feedback", "rewards", "r"),
    "gain": ("gain", "win", "gains"),
    "loss": ("loss", "losses", "lose"),
    "rt": ("rt", "choicert", "responsetime", "reactiontime", "latency", "rtms", "rts", "rtsec", "rtseconds"),
    "source": ("source",),
    "condition": ("condition", "cond", "blocktype"),
    "offered": ("offered", "available", "choiceset"),
    "left": ("left", "armleft", "leftarm", "optionleft", "leftoption", "stimleft", "leftstim", "stimulusleft",
             "leftstimulus"),
    "right": ("right", "armright", "rightarm", "optionright", "rightoption", "stimright", "rightstim", "stimulusright",
              "rightstimulus"),
    "pair": ("pair", "stimuluspair", "stimpair", "type"),
    "group": ("group", "diagnosis"),
}  # fmt: skip
# Those that --columns may name. A reward may be a sum: gain+loss, gain-loss.
NAMES = (
    "subject",
    "block",
    "trial",
    "choice",
    "reward",
    "rt",
    "source",
    "condition",
    "offered",
    "left",
    "right",
    "pair",
    "group",
)
NOTHING = "none"  # as the name of a column: there is none
NEEDED = ("subject", "choice", "reward")

Rows = Sequence[tuple[int, str]]  # the line in the file (the header is line 1) and what stands there


class DataError(ValueError):
    """A table of choices cannot be used; the message lists every problem with its rows."""


class Problem(NamedTuple):
    """One kind of thing that is wrong, and where."""

    text: str
    rows: Rows = ()


class Table(NamedTuple):
    """Text cells under our names, and how they were found."""

    cells: pd.DataFrame  # one column for each of `NAMES` that is there; the index is the line in the file
    said: tuple[str, ...]  # what was guessed, in sentences
    problems: list[Problem]
    decimal_comma: bool
    sidecar: Mapping[str, Mapping[str, Any]]  # what the sidecar says of our columns
    names: Mapping[str, str]  # what the file calls our columns


def content(path: Path) -> bytes:
    """What a file holds, or why it cannot be opened. A pipe or a device is refused before anything is read from it."""
    shown = printable(str(path), 1000)
    if not path.exists():
        raise DataError(
            f"{shown} does not exist: check the path, or get the public data by  policychord choices data fetch"
        )
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "a pipe or a device, not a file"
        raise DataError(f"{shown} is {kind}: pass the table itself.")
    if (size := path.stat().st_size) > LARGEST_TABLE:
        raise DataError(f"{shown} has {size:,} bytes: a table of choices may have {LARGEST_TABLE:,}. Split it into "
                        "files of some people each, or leave out columns that are not used.")  # fmt: skip
    return path.read_bytes()


def read_table(
    raw: bytes, name: str, columns: Mapping[str, str] | None = None, sidecar: Mapping[str, Any] | None = None
) -> Table:
    """Cells under our names. `columns` says what the file calls them; the rest is guessed from names and sidecar."""
    text = _text(raw, name)
    separator = _separator(text, name)
    records = _records(text, separator, name)
    _, first = next(records, (1, None))
    if first is None:
        raise complaint(name, [Problem("the file is empty")])
    header = [cell.strip() for cell in first]
    notes = _sidecar_columns(sidecar or {})
    plan, said, problems = _plan(header, dict(columns or {}), notes)
    # column by column, because a list for each row takes many times the size of the file
    lines: list[int] = []
    found: dict[str, list[str]] = {ours: [] for ours in plan}
    blank, uneven = [], []
    for line, cells in records:
        if not any(cell.strip() for cell in cells):
            blank.append((line, ""))
        elif len(cells) != len(header):
            uneven.append((line, f"{len(cells)} cells"))
        else:
            lines.append(line)
            for ours, at in plan.items():
                found[ours].append(cells[at].strip())
    if blank:
        problems.append(Problem("rows have separators but no values: delete them", blank))
    if uneven:
        problems.append(Problem(f"rows do not have the {len(header)} cells of the header", uneven))
    if not lines and not uneven:
        problems.append(Problem("there is a header but no trials"))
    index = pd.Index(lines, dtype=int)
    if separator != ",":
        said = [f"Cells are separated by {_SEPARATORS.get(separator, 'spaces')}.", *said]
    about = {ours: notes.get(header[at].lower(), {}) for ours, at in plan.items()}
    names = {ours: header[at] for ours, at in plan.items()}
    return Table(pd.DataFrame(found, index=index, dtype=str), tuple(said), problems, separator != ",", about, names)


def header_of(raw: bytes, name: str) -> list[str]:
    """The names of a table's columns, or a `DataError` if it is no text."""
    text = _text(raw, name)
    first = next(iter(_records(text, _separator(text, name), name)), (1, []))
    return [printable(cell.strip(), LONGEST_QUOTE) for cell in first[1]]


# ----------------------------------------------------------------------------------- which column is what


def parse_columns(given: str) -> dict[str, str]:
    """`subject=subjID,reward=gain+loss` as a dictionary; what is wrong with it is a `ValueError`."""
    found: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in given.split(","))):
        ours, equals, theirs = (piece.strip() for piece in part.partition("="))
        if not equals or not theirs or ours not in NAMES or ours in found:
            raise ValueError(
                f"--columns {part!r}: write OURS=THEIRS once for each column, such as subject=subjID,reward=outcome; "
                f"OURS is one of {', '.join(NAMES)}."
            )
        found[ours] = theirs
    return found


def guess_columns(header: Sequence[str], notes: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, str]:
    """What each of our columns seems to be called, by the usual names or by what a sidecar says of a column."""
    known = {bare(column): column for column in reversed(header) if column}
    for column in header:  # a long name in the sidecar counts like the column's own name
        about = (notes or {}).get(column.lower(), {})
        for key in ("LongName", "alternateName", "Description", "description"):
            known.setdefault(bare(str(about.get(key, ""))), column)
    found: dict[str, str] = {}
    for ours, aliases in ALIASES.items():
        theirs = next((known[alias] for alias in aliases if alias in known), None)
        if theirs is not None and theirs not in found.values():
            found[ours] = theirs
    return found


def _plan(
    header: list[str], given: Mapping[str, str], notes: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, int], list[str], list[Problem]]:
    """The place of each column we use, what was guessed, and what is wrong with the header."""
    places = {name.lower(): at for at, name in reversed(list(enumerate(header))) if name}
    guessed = guess_columns(header, notes)
    plan: dict[str, int] = {}
    said: list[str] = []
    problems: list[Problem] = []
    sum_of = re.fullmatch(r"(.+?)\s*([+-])\s*(.+)", given.get("reward", ""))
    if sum_of and given["reward"].lower() not in places:
        others = {ours: theirs for ours, theirs in given.items() if ours != "reward"}
        given = others | {"gain": sum_of[1], "loss": sum_of[3], "sign": sum_of[2]}
    for ours in (*NAMES, "gain", "loss"):
        theirs = given.get(ours, guessed.get(ours))
        if theirs is None or (ours in ("gain", "loss") and ("reward" in plan)):
            continue
        if ours == "reward" and "gain" in given:
            continue
        if theirs.lower() == NOTHING and ours not in NEEDED and NOTHING not in places:
            continue
        if theirs.lower() not in places:
            problems.append(Problem(f"--columns says {ours}={_quote(theirs)}, and there are {_listed(header)}"))
            continue
        plan[ours] = places[theirs.lower()]
        if ours not in given and theirs.lower() != ours and ours != "pair":  # a column `type` may be none
            said.append(f"Read {theirs} as {ours}.")
    if "sign" in given and "loss" in plan:
        plan["minus" if given["sign"] == "-" else "plus"] = plan.pop("loss")
    missing = [name for name in NEEDED if name not in plan and name not in given]
    if "gain" in plan or "gain" in given:
        missing = [name for name in missing if name != "reward"]
    if missing:
        those = f"missing column{'s' * (len(missing) > 1)} {', '.join(missing)}"
        name_them = ",".join(f"{name}=..." for name in missing)
        problems.append(Problem(f"{those}; there are {_listed(header)}. Name them with --columns {name_them}"))
    twice = [name for name, count in Counter(map(str.lower, header)).items() if count > 1 and name]
    used = {header[at].lower() for at in plan.values()}
    if used & set(twice):
        problems.append(Problem(f"columns occur twice: {_listed(sorted(used & set(twice)))}"))
    return plan, said, problems


def bare(name: str) -> str:
    """A word without case and punctuation."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


# -------------------------------------------------------------------------------------------- sidecar


def read_sidecar(path: Path) -> dict[str, Any]:
    """A table's sidecar: NAME.toml, NAME.json as in BIDS, or dataset_description.json as in Psych-DS. {} if none.

    Under `task` it may have the task's numbers, such as {"noise": {"risky": [36, 0], "safe": [0, 0]}, "mean": 0}.
    """
    for beside in (path.with_suffix(".toml"), path.with_suffix(".json"), path.parent / "dataset_description.json",
                   path.parent.parent / "dataset_description.json"):  # fmt: skip
        if beside == path or not beside.is_file() or beside.stat().st_size > LARGEST_SIDECAR:
            continue
        kind = beside.suffix[1:].upper()
        try:
            text = beside.read_text(encoding="utf-8-sig")
            found = tomllib.loads(text) if kind == "TOML" else json.loads(text)
        except (ValueError, OSError, RecursionError):
            raise DataError(f"{beside.name} next to the table is not valid {kind}: correct or move it.") from None
        if isinstance(found, dict):
            return found
    return {}


def _sidecar_columns(sidecar: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What a sidecar says of each column, by its name in small letters: BIDS has objects, Psych-DS a list."""
    listed = sidecar.get("variableMeasured", [])
    found: dict[str, Mapping[str, Any]] = {}
    found |= {str(one["name"]).lower(): one for one in listed if isinstance(one, dict) and "name" in one}
    for name, about in sidecar.items():
        if isinstance(about, dict):
            found[str(name).lower()] = about
    return found


# ------------------------------------------------------------------------------------- text and cells


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
    raise complaint(name, [Problem(text)])


def _separator(text: str, name: str) -> str:
    """What separates the cells of the header: tabs, semicolons, commas, bars, or else spaces."""
    header = next((line for line in io.StringIO(text, newline=None) if line.strip()), "")
    best = max(_SEPARATORS, key=header.count)
    if header.count(best) > MOST_COLUMNS or len(header.split()) > MOST_COLUMNS:
        raise complaint(name, [Problem(f"there are more than {MOST_COLUMNS:,} columns: leave out those not used")])
    return best if header.count(best) else " " if len(header.split()) >= len(NEEDED) else ","


def _records(text: str, separator: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """(line number, cells) of every record."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=separator == " ")
    try:
        yield from ((reader.line_num, cells) for cells in reader if cells)
    except csv.Error as error:
        text = f"row {reader.line_num} cannot be split into cells ({error}): check its quotes"
        raise complaint(name, [Problem(text)]) from None


# ------------------------------------------------------------------------------------------- messages


def complaint(name: str, problems: list[Problem]) -> DataError:
    """All problems as one message."""
    lines = [f"  - {problem.text}{places(problem.rows)}" for problem in problems]
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} kinds of problems"
    return DataError(
        f"{name} cannot be used, {count} (row 1 is the header):\n" + "\n".join(lines) + "\n"
        "Correct the file, or say how it is to be read, and run again; nothing was written. Needed are a person, a "
        "choice and a reward in every row; block, trial, RT, condition, offered and group are used where they "
        "are there."
    )


def places(rows: Rows) -> str:
    """`: row 3 ('x'), row 9.` of a few rows, the others counted."""
    if not rows:
        return ""
    shown = ", ".join(f"row {row}" + (f" ({text})" if text else "") for row, text in rows[:_SHOWN])
    return f": {shown}" + (f" and {len(rows) - _SHOWN} more rows." if len(rows) > _SHOWN else ".")


def refuse(cells: pd.Series, problems: list[Problem], broken: Mapping[str, pd.Series]) -> bool:
    """Note each kind of broken cells, by what is wrong with them, with their rows; whether there are any."""
    for text, which in broken.items():
        if which.any():
            lines = cells.index[which.to_numpy()]
            problems.append(Problem(text, [(int(line), quote(cells[line])) for line in lines]))
    return any(which.any() for which in broken.values())


def printable(text: str, longest: int) -> str:
    """Text from outside, fit for a line of ours: without control characters, and cut where it is too long."""
    seen = "".join(c if c.isprintable() else " " for c in text)
    return seen if len(seen) <= longest else seen[: longest - 1] + "…"


def quote(text: str) -> str:
    """What stands in a cell, for a message."""
    return _quote(text) if text else "empty"


def _quote(text: str) -> str:
    return printable(repr(text), LONGEST_QUOTE)


def _listed(names: Sequence[str]) -> str:
    """Names of columns, all of them unless they are many or long."""
    shown = ", ".join(printable(repr(name), LONGEST_QUOTE // 2) for name in names[:_MOST_NAMES])
    return shown + (f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else "")
