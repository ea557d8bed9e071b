"""Choices as a checked table: every rule of the schema, and all that breaks them said at once."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from .reading import REQUIRED, DataError, Problem, complain, read_cells, read_file
from .settings import LONGEST_RT, Task

LEAST_TRIALS = 10  # a person with fewer cannot be fitted
LARGEST = 2**53  # beyond it numbers that a table distinguishes are the same
MOST_SOURCES = 20  # they are named in every output

__all__ = ["Choices", "DataError", "as_table", "parse_choices", "read_choices"]


class Choices(NamedTuple):
    """What people chose and got, ordered by subject, block and trial. Arms are numbered from 0 here."""

    subject: np.ndarray
    block: np.ndarray
    trial: np.ndarray
    choice: np.ndarray
    reward: np.ndarray
    task: Task
    source: str  # where they came from, for every output
    left_out: int = 0  # trials dropped for being slower than LONGEST_RT


def read_choices(path: str | Path, task: Task, source: str | None = None) -> Choices:
    """Read a CSV file, check it, and leave out slow trials; a `DataError` lists every problem with its rows.

    A column `source`, such as simulated choices have, is carried along to every output.
    """
    path = Path(path)
    return parse_choices(read_file(path), path.name, task, source)


def parse_choices(raw: bytes, name: str, task: Task, source: str | None = None) -> Choices:
    """The same for the content of a file that is in memory; `name` stands in every message."""
    cells, problems = read_cells(raw, name)
    said = cells.pop("source").unique().tolist() if "source" in cells else []
    if len(said) > MOST_SOURCES:
        problems.append(Problem(f"source has {len(said)} different values, at most {MOST_SOURCES} can be told apart"))
    numbers = cells.apply(pd.to_numeric, errors="coerce")
    if len(numbers):
        problems += _broken_cells(numbers, cells, task) + _broken_order(numbers)
    if problems:
        raise complain(name, problems)
    slow = numbers["rt"] >= LONGEST_RT if "rt" in numbers else pd.Series(False, index=numbers.index)
    kept = numbers[~slow].sort_values(["subject", "block", "trial"], kind="stable")
    few = kept.groupby("subject").size().reindex(numbers["subject"].unique(), fill_value=0) < LEAST_TRIALS
    if few.any():
        who = ", ".join(f"{subject:g}" for subject in few.index[few][:5])
        words = f"fewer than {LEAST_TRIALS} trials are left without those of {LONGEST_RT:g} ms or more: subject {who}"
        raise complain(name, [Problem(words)])
    whole = {name: kept[name].to_numpy(dtype=int) for name in ("subject", "block", "trial", "choice")}
    whole["choice"] = whole["choice"] - 1
    reward = kept["reward"].to_numpy(float)
    return Choices(**whole, reward=reward, task=task, source=source or ", ".join([name, *said]),
                   left_out=int(slow.sum()))  # fmt: skip


def as_table(choices: Choices) -> pd.DataFrame:
    """The same as the table a file would hold, arms numbered from 1."""
    columns = {name: getattr(choices, name) for name in REQUIRED}
    return pd.DataFrame(columns | {"choice": choices.choice + 1})


def _broken_cells(numbers: pd.DataFrame, cells: pd.DataFrame, task: Task) -> list[Problem]:
    import pandera.errors
    import pandera.pandas as pa

    whole = pa.Check(lambda s: (s % 1 == 0) & (s.abs() < LARGEST), error="must be a whole number")
    counted = [whole, pa.Check.ge(1, error="counts from 1")]
    finite = pa.Check(np.isfinite, error="must be a finite number")
    arms = list(range(1, task.arms + 1))
    numbered = " or ".join(map(str, arms)) if task.arms == 2 else f"a whole number from 1 to {task.arms}"
    checks = {
        "subject": [whole],
        "block": counted,
        "trial": counted,
        "choice": [pa.Check.isin(arms, error=f"must be {numbered}, the number of an arm")],
        "reward": [finite],
        "rt": [finite, pa.Check.ge(0, error="cannot be negative")],
    }
    schema = pa.DataFrameSchema({name: pa.Column(checks=checks[name], coerce=False) for name in numbers})
    try:
        schema.validate(numbers, lazy=True)
    except pandera.errors.SchemaErrors as found:
        problems: dict[str, dict[int, str]] = {}
        for case in found.failure_cases.itertuples():
            words = "must be a number" if case.check == "not_nullable" else case.check
            name = "RT" if case.column == "rt" else case.column
            text = cells.at[case.index, case.column]
            problems.setdefault(f"{name} {words}", {})[int(case.index)] = repr(text) if text else "empty"
        return [Problem(words, tuple(sorted(rows.items()))) for words, rows in problems.items()]
    return []


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
    size = table.groupby("subject")["trial"].transform("size")
    few = size < LEAST_TRIALS
    few &= ~table["subject"].duplicated()
    found = (
        ("the same subject, block and trial occur twice", table[twice]),
        ("trials of a block count 1, 2, 3, ... and some are missing before", ordered[trial_gap]),
        ("blocks of a subject count 1, 2, 3, ... and some are missing before", ordered[block_gap]),
        (f"a subject has fewer than {LEAST_TRIALS} trials, too few to fit", table[few]),
    )
    return [Problem(words, _where(rows)) for words, rows in found if len(rows)]


def _where(rows: pd.DataFrame) -> tuple[tuple[int, str], ...]:
    rows = rows.sort_index()
    return tuple(
        (int(line), f"subject {row.subject:g}, block {row.block:g}, trial {row.trial:g}")
        for line, row in zip(rows.index, rows.itertuples(), strict=True)
    )
