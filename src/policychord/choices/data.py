"""Choices as a checked table: every rule of the format, and everything that breaks one said at once."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd

from .tables import (
    LONGEST_QUOTE,
    MISSING,
    NO_ANSWER,
    DataError,
    Problem,
    Table,
    bare,
    complaint,
    content,
    places,
    printable,
    quote,
    read_sidecar,
    read_table,
)

__all__ = ["TASKS", "Choices", "DataError", "Reading", "Task", "as_csv", "as_table", "measure_task", "parse_choices",
           "read_choices"]  # fmt: skip

LONGEST_RT = 20_000.0  # ms; slower trials are doubtful, as in the original analysis
LEAST_TRIALS = 10  # a person with fewer cannot be fitted
MOST_ARMS = 50  # more different choices are taken for something else
LARGEST = 2**53  # beyond it numbers that a table distinguishes are the same
LARGEST_REWARD = 1e12  # beyond it beliefs lose the digits that tell arms apart
MOST_SOURCES, LONGEST_SOURCE = 20, 160  # they are named in every output
LONGEST_LABEL = 40  # characters of a person's or an arm's name
SECONDS = 50.0  # a median response time below this is in seconds, not in ms
_RARE = 3  # an arm number that occurs less often than this in a table with others is taken for a mistake
Doubtful = Literal["learn", "drop", "keep"]


class Task(NamedTuple):
    """What participants were told of the arms: mean and variance of each arm's value, variance of a reward (Table S2).

    `conditions` has other variances for blocks of another kind, by the words of the column `condition`.
    """

    name: str
    variance: tuple[float, ...]
    noise: float = 10.0
    mean: float | tuple[float, ...] = 0.0
    conditions: tuple[tuple[str, tuple[float, ...]], ...] = ()

    @property
    def arms(self) -> int:
        return len(self.variance)

    @property
    def means(self) -> np.ndarray:
        """The mean of each arm's value, (arms)."""
        return np.broadcast_to(np.asarray(self.mean, dtype=float), (self.arms,))


TASKS = {
    "1": Task("Experiment 1", (10.0, 0.0)),  # the second arm always pays zero
    "2": Task("Experiment 2", (100.0, 100.0)),
}


class Reading(NamedTuple):
    """How a table is to be read, where a guess will not do."""

    columns: Mapping[str, str] = MappingProxyType({})  # what the file calls our columns: {"reward": "gain+loss"}
    arms: tuple[str, ...] = ()  # what the file calls the arms, in order; else those that occur
    missed: tuple[str, ...] = ()  # words for a missed trial, besides an empty cell and NA
    longest_rt: float = LONGEST_RT  # ms
    doubtful: Doubtful = "learn"  # slow trials and those without RT: learn but do not score, drop, or keep


class Choices(NamedTuple):
    """What people chose and got, ordered by subject, block and trial. Arms are numbered from 0 here."""

    subject: np.ndarray  # whole numbers, or text
    block: np.ndarray
    trial: np.ndarray
    choice: np.ndarray
    reward: np.ndarray
    task: Task
    source: str  # where they came from, for every output: printable, one line
    left_out: int = 0  # trials slower than the limit that are not scored
    notes: tuple[str, ...] = ()  # what a reader of the results should know about the table
    scored: np.ndarray | None = None  # (trials) whether a choice counts in likelihoods; all where None
    offered: np.ndarray | None = None  # (trials, arms) whether an arm could be taken; all where None
    condition: np.ndarray | None = None  # (trials) text
    group: np.ndarray | None = None  # (trials) text: what kind of person made the choice
    arms: tuple[str, ...] = ()  # what the file calls them
    said: tuple[str, ...] = ()  # how the table was read, in sentences


def read_choices(
    path: str | Path, task: Task | None = None, source: str | None = None, how: Reading | None = None
) -> Choices:
    """Read a table, check it, and say in `notes` and `said` what was made of it; a `DataError` lists every problem.

    Separators and names of columns are guessed (see `Reading`), a JSON file beside the table is used. Without a task
    it is measured from the rewards (`measure_task`). A column `source` is carried along to every output.
    """
    path = Path(path)
    raw = content(path)
    return parse_choices(raw, path.name, task, source, how, read_sidecar(path))


def parse_choices(
    raw: bytes,
    name: str,
    task: Task | None = None,
    source: str | None = None,
    how: Reading | None = None,
    sidecar: Mapping[str, Any] | None = None,
) -> Choices:
    """The same for the content of a file that is in memory; `name` stands in every message."""
    how = Reading() if how is None else how
    if how.doubtful not in get_args(Doubtful):
        raise ValueError(f"doubtful = {how.doubtful!r}: use one of {', '.join(get_args(Doubtful))}.")
    name = printable(name, LONGEST_QUOTE)
    table = read_table(raw, name, how.columns, sidecar)
    cells, problems, said = table.cells, [*table.problems], [*table.said]
    notes: list[str] = []
    if problems and (not len(cells) or not {"subject", "choice"} <= set(cells)):
        raise complaint(name, problems)
    sources = cells["source"].unique().tolist() if "source" in cells else []
    if len(sources) > MOST_SOURCES:
        problems.append(Problem(f"source has {len(sources)} different values, at most {MOST_SOURCES} are allowed"))
    missed = _missed(cells, how, said)
    rows = pd.DataFrame(index=cells.index)
    rows["subject"] = _labels(cells["subject"], "subject", problems)
    rows["choice"], arms = _arms(cells["choice"], missed, task, how, table, problems, said)
    rows["reward"] = _rewards(table, missed, problems, said)
    rt = _times(table, problems, said)
    rows["block"], rows["trial"] = _order(cells, rows["subject"], problems, said, notes)
    offered = _offered(cells, arms, rows["choice"], problems)
    if "condition" in cells:
        rows["condition"] = cells["condition"].map(lambda text: printable(text, LONGEST_LABEL))
        if task is not None and task.conditions and (odd := ~rows["condition"].isin(list(dict(task.conditions)))).any():
            where = [(int(at), quote(rows.at[at, "condition"])) for at in rows.index[odd]]
            problems.append(Problem(f"condition must be one of {', '.join(dict(task.conditions))}", where))
    elif task is not None and task.conditions:
        problems.append(Problem("variances by condition need a column condition; name it with --columns condition=..."))
    if "group" in cells:
        rows["group"] = cells["group"].map(lambda text: printable(text, LONGEST_LABEL))
        both = rows.drop_duplicates(["subject", "group"])
        if (twice := both["subject"].duplicated()).any():
            where = [(int(at), f"subject {both.at[at, 'subject']}") for at in both.index[twice]]
            problems.append(Problem("a person belongs to one group", where))
    if problems:
        raise complaint(name, problems)
    slow = rt >= how.longest_rt if rt is not None else pd.Series(False, index=rows.index)
    timeless = rt.isna() & ~missed if rt is not None else slow & False
    doubtful = (slow | timeless) & ~missed
    kept = rows[~missed & ~(doubtful & (how.doubtful == "drop"))]
    kept = kept.sort_values(["subject", "block", "trial"], kind="stable")
    scored = ~doubtful[kept.index].to_numpy() | (how.doubtful == "keep")
    _enough(name, kept["subject"][scored], rows["subject"].unique(), how)
    notes += _notes(missed, slow, timeless, how)
    told = printable(source or ", ".join([name, *sources]), LONGEST_SOURCE)
    choices = Choices(
        _plain(kept["subject"]), kept["block"].to_numpy(int), kept["trial"].to_numpy(int),
        kept["choice"].to_numpy(int), kept["reward"].to_numpy(float), task or TASKS["2"], told,
        0 if how.doubtful == "keep" else int((slow & ~missed).sum()), tuple(notes),
        None if scored.all() else scored,
        None if offered is None else offered[rows.index.get_indexer(kept.index)],
        kept["condition"].to_numpy(str) if "condition" in kept else None,
        kept["group"].to_numpy(str) if "group" in kept else None, arms, tuple(said),
    )  # fmt: skip
    return choices if task is not None else choices._replace(task=measure_task(choices))


def measure_task(choices: Choices, name: str = "own data", **known: Any) -> Task:
    """Mean and variance of the arms' values and the noise of rewards, from the rewards themselves (moments).

    What an arm pays in a block varies around its value by the noise; the values vary around the mean by the variance.
    An arm whose reward never changes has no variance. Numbers that are known (`mean`, `variance`, `noise`) stay.
    """
    arms = max(len(choices.arms), int(choices.choice.max()) + 1, 2)
    frame = pd.DataFrame({"s": choices.subject, "b": choices.block, "arm": choices.choice, "r": choices.reward})
    spread = frame.groupby("arm")["r"].agg(["var", "mean"]).reindex(range(arms))
    constant = (spread["var"].fillna(0.0) <= 0).to_numpy()
    if constant.all():
        raise DataError("reward never changes, so that there is nothing to learn: check the column, or name the right "
                        "one with --columns reward=...")  # fmt: skip
    moving = frame[~constant[frame["arm"]]]
    total = float(moving["r"].var())
    cell = moving.groupby(["s", "b", "arm"])["r"].agg(["size", "mean", "var"])
    # each arm of a block counts once: people take good arms more often, so a mean over trials is too high
    centre = float(cell["mean"].mean())
    more = cell[cell["size"] > 1]
    within = float((more["var"] * (more["size"] - 1)).sum() / max((more["size"] - 1).sum(), 1))
    noise = max(within, 1e-3 * total)
    between = float(cell["mean"].var()) - noise * float((1 / cell["size"]).mean())
    variance = max(between if np.isfinite(between) else total, 1e-2 * total)
    # all digits are kept: rounding would depend on the unit and the zero of the rewards
    values = tuple(0.0 if c else variance for c in constant)
    mean: float | tuple[float, ...] = centre
    if constant.any():
        mean = tuple(float(m) if c else centre for c, m in zip(constant, spread["mean"].fillna(centre), strict=True))
    measured: dict[str, Any] = {"variance": values, "noise": noise, "mean": mean}
    return Task(name, **(measured | known))


def as_table(choices: Choices) -> pd.DataFrame:
    """The same as the table a file would hold, arms numbered from 1."""
    columns = {name: getattr(choices, name) for name in ("subject", "block", "trial", "choice", "reward")}
    table = pd.DataFrame(columns | {"choice": choices.choice + 1})
    return table if choices.condition is None else table.assign(condition=choices.condition)


def as_csv(table: pd.DataFrame | Sequence[Mapping[str, Any]]) -> str:
    """A table, or its rows, as CSV that a spreadsheet opens as data: text like a formula gets an apostrophe."""
    safe = pd.DataFrame(table).rename(columns=_harmless)
    for at, kind in enumerate(safe.dtypes):
        if kind.kind not in "iufb":
            safe.isetitem(at, safe.iloc[:, at].map(_harmless))
    return safe.to_csv(index=False)


def _harmless(value: Any) -> Any:
    """Text that no spreadsheet computes. Some read full-width signs (U+FF1D) and their kin like the plain ones."""
    if not isinstance(value, str) or not value:
        return value
    begins = unicodedata.normalize("NFKC", value.lstrip()[:1])
    return f"'{value}" if value[0] in "\t\r\n" or begins.startswith(("=", "+", "-", "@", "\u2212")) else value


# --------------------------------------------------------------------- columns, one after the other


def _numbers(cells: pd.Series, decimal_comma: bool = False) -> pd.Series:
    return pd.to_numeric(cells.str.replace(",", ".") if decimal_comma else cells, errors="coerce")


def _whole(numbers: pd.Series) -> pd.Series:
    """Which are whole numbers that a table can tell apart."""
    return (numbers % 1 == 0) & (numbers.abs() < LARGEST)


def _plain(labels: pd.Series) -> np.ndarray:
    """Whole numbers, or text of NumPy's own kind."""
    return labels.to_numpy(int if labels.dtype.kind in "iu" else str)


def _refuse(cells: pd.Series, problems: list[Problem], broken: Mapping[str, pd.Series]) -> bool:
    """Note each kind of broken cells, by what is wrong with them, with their rows; whether there are any."""
    for text, which in broken.items():
        if which.any():
            lines = cells.index[which.to_numpy()]
            problems.append(Problem(text, [(int(line), quote(cells[line])) for line in lines]))
    return any(which.any() for which in broken.values())


def _labels(cells: pd.Series, name: str, problems: list[Problem]) -> pd.Series:
    """Whole numbers where all are, else text."""
    _refuse(cells, problems, {f"{name} is empty": cells.str.lower().isin(MISSING)})
    if _whole(numbers := _numbers(cells)).all():
        return numbers.astype(int)
    return cells.map(lambda text: printable(text, LONGEST_LABEL))


def _missed(cells: pd.DataFrame, how: Reading, said: list[str]) -> pd.Series:
    """Trials without a choice: what was said, the usual words, and any word beside which no reward ever stands."""
    choice = cells["choice"]
    missed = choice.str.lower().isin(MISSING | {word.lower() for word in how.missed})
    usual = choice.map(bare).isin(NO_ANSWER)
    paid = [cells[name] for name in ("reward", "gain", "plus", "minus", "loss") if name in cells]
    unpaid = np.logical_and.reduce([column.str.lower().isin(MISSING) for column in paid]) if paid else usual & False
    never = pd.Series(unpaid, index=cells.index).groupby(choice).transform("all")
    guessed = (usual | never) & ~missed & ~choice.isin(how.arms)
    if guessed.any() and not (missed | guessed).all():
        words = ", ".join(quote(word) for word in choice[guessed].unique()[:_RARE])
        said.append(f"Read {words} in the column choice as a missed trial (--arms names arms).")
        return missed | guessed
    return missed


def _arms(
    cells: pd.Series, missed: pd.Series, task: Task | None, how: Reading, table: Table, problems: list[Problem],
    said: list[str],
) -> tuple[pd.Series, tuple[str, ...]]:  # fmt: skip
    """Choices as numbers from 0 (-1 for a missed trial), and what the file calls the arms."""
    made = cells[~missed]
    if _whole(numbers := _numbers(made)).all():
        made = numbers.astype(int).astype(str)
    whole = pd.to_numeric(made, errors="coerce").mod(1).eq(0)
    wanted = task.arms if task is not None else 0
    levels = table.sidecar.get("choice", {}).get("Levels")
    known = tuple(how.arms) or (tuple(map(str, levels)) if isinstance(levels, dict) else ())
    if not known and whole.mean() > 0.5:  # numbers, from 1 or from 0
        values = pd.to_numeric(made[whole]).astype(int)
        first = 0 if (values == 0).sum() >= _RARE and (not wanted or values.max() < wanted) else 1
        known = tuple(str(k) for k in range(first, first + (wanted or _largest(values, first) - first + 1)))
    elif not known:
        often = made.value_counts()
        known = tuple(sorted(often.index[often >= min(_RARE, often.max())]))
    if (wanted and len(known) > wanted) or len(known) > MOST_ARMS:
        problems.append(Problem(f"choice has {len(known)} different values ({printable(', '.join(known), 60)}), "
                                "and the "
                                f"task has {wanted or MOST_ARMS} arms: name the arms with --arms"))  # fmt: skip
        return pd.Series(-1, index=cells.index), known
    named = f"{known[0]} or {known[1]}" if len(known) == 2 else printable(", ".join(known), 60)
    hint = "; name the arms with --arms, and what stands for a missed trial with --missed"
    text = f"choice must be {named}, an arm that occurs often{hint}"
    _refuse(cells[made.index], problems, {text: ~made.isin(known)})
    if known[:2] != ("1", "2"):
        pairs = ", ".join(f"{k} = {printable(name, LONGEST_LABEL)}" for k, name in enumerate(known, 1))
        said.append(f"Arms: {pairs}.")
    codes = made.map({name: k for k, name in enumerate(known)}).reindex(cells.index)
    return codes.fillna(-1).astype(int), known


def _largest(values: pd.Series, first: int) -> int:
    """The largest number that is not a rare mistake; at least two arms."""
    often = values.value_counts()
    usual = often.index[(often >= min(_RARE, often.max())) & (often.index >= first)]
    return max(int(usual.max()) if len(usual) else first + 1, first + 1)


def _rewards(table: Table, missed: pd.Series, problems: list[Problem], said: list[str]) -> pd.Series:
    """A column, or gains and losses added; a loss that is written without its sign counts against."""
    parts = []
    for name in ("reward", "gain", "plus", "minus", "loss"):
        if name not in table.cells:
            continue
        cells = table.cells[name]
        numbers = _numbers(cells, table.decimal_comma).where(~missed, 0.0)
        shown = "reward" if name in ("plus", "minus") else name
        far = np.isfinite(numbers) & (numbers.abs() > LARGEST_REWARD)
        _refuse(cells, problems, {
            f"{shown} must be a number": numbers.isna(), f"{shown} must be a finite number": np.isinf(numbers),
            f"{shown} lies beyond {LARGEST_REWARD:g}: rescale it": far,
        })  # fmt: skip
        unsigned = name == "loss" and (numbers >= 0).all() and (numbers > 0).any()
        if unsigned:
            said.append("Losses have no sign and count against the gains.")
        parts.append(-numbers if unsigned or name == "minus" else numbers)
    if not parts:
        return pd.Series(0.0, index=table.cells.index)
    if len(parts) > 1 and "loss" in table.cells:
        said.append("The reward is gain and loss together.")
    return pd.Series(np.sum(parts, axis=0), index=table.cells.index)


def _times(table: Table, problems: list[Problem], said: list[str]) -> pd.Series | None:
    """Response times in ms; None if there are none."""
    if "rt" not in table.cells:
        return None
    cells = table.cells["rt"]
    empty = cells.str.lower().isin(MISSING)
    if empty.all():
        said.append("The column of response times is empty and not used.")
        return None
    numbers = _numbers(cells, table.decimal_comma)
    _refuse(
        cells,
        problems,
        {
            "RT must be a number": numbers.isna() & ~empty,
            "RT must be a finite number": np.isinf(numbers),
            "RT cannot be negative": numbers < 0,
        },
    )
    about = table.sidecar.get("rt", {})
    unit = str(about.get("Units", about.get("unitText", ""))).lower()
    if unit in ("s", "sec", "second", "seconds"):
        said.append("RT is in seconds, says the sidecar.")
        return numbers * 1000
    if not unit and 0 < numbers.median() < SECONDS:
        said.append(f"RT is read as seconds: its median is {numbers.median():.3g}.")
        return numbers * 1000
    return numbers


def _order(
    cells: pd.DataFrame, subject: pd.Series, problems: list[Problem], said: list[str], notes: list[str]
) -> tuple[pd.Series, pd.Series]:
    """Block and place in the block of every row; without columns for them, by the order of the rows."""
    trial = None
    if "trial" in cells:
        trial = _numbers(cells["trial"])
        if _refuse(cells["trial"], problems, {"trial must be a whole number": ~_whole(trial)}):
            trial = None
    if "block" in cells:
        block = _labels(cells["block"], "block", problems)
        if block.dtype.kind not in "iu":  # words: in the order in which a person meets them
            block = block.groupby(subject, sort=False).transform(lambda names: pd.factorize(names)[0] + 1)
    else:
        block = pd.Series(1, index=cells.index)
        if trial is not None and pd.DataFrame({"s": subject, "t": trial}).duplicated().any():
            # trials that count from the start again, person by person, are blocks
            again = trial.groupby(subject).transform(lambda numbers: (numbers.diff() < 0).cumsum())
            if not pd.DataFrame({"s": subject, "b": again, "t": trial}).duplicated().any():
                block = again.astype(int) + 1
                said.append("There is no column for blocks: a new one begins where the trials count from the start "
                            "again.")  # fmt: skip
        if (block == 1).all():
            said.append("There is no column for blocks: each person has one.")
    place = pd.DataFrame({"s": subject, "b": block}).groupby(["s", "b"]).cumcount() + 1
    if trial is None:
        if "trial" not in cells:
            said.append("There is no column for trials: rows are taken in their order.")
        return block, place
    table = pd.DataFrame({"s": subject, "b": block, "t": trial})
    if (twice := table.duplicated()).any():
        where = [(int(row.Index), f"subject {row.s}, block {row.b}, trial {row.t:g}")
                 for row in table[twice].itertuples()]  # fmt: skip
        problems.append(Problem("the same subject, block and trial occur twice", where))
        return block, place
    first, last = (table.groupby(["s", "b"])["t"].transform(kind) for kind in ("min", "max"))
    size = table.groupby(["s", "b"])["t"].transform("size")
    gaps = table[(last - first + 1 > size)].drop_duplicates(["s", "b"])
    if len(gaps):
        where = [(int(row.Index), f"subject {row.s}, block {row.b}") for row in gaps.itertuples()]
        notes.append("Trial numbers have gaps in the blocks that begin at" + places(where)[1:]
                     + " What happened in between is not known, and not learned from.")  # fmt: skip
    if not (first == 1).all():  # they count on through the blocks, or from 0
        trial = trial - first + 1
    return block, trial.astype(int)


def _offered(
    cells: pd.DataFrame, arms: tuple[str, ...], choice: pd.Series, problems: list[Problem]
) -> np.ndarray | None:
    """(rows, arms): cells such as `1|3` or `left right` name the arms that could be taken; an empty cell: all."""
    if "offered" not in cells:
        return None
    column = cells["offered"]
    offered = np.ones((len(cells), len(arms)), dtype=bool)
    odd = pd.Series(False, index=cells.index)
    for row, (text, taken) in enumerate(zip(column, choice, strict=True)):
        if text.lower() not in MISSING:
            names = [part for part in re.split(r"[|/ ;,+&]+", text) if part]
            offered[row] = [arm in names for arm in arms]
            odd.iloc[row] = bool(set(names) - set(arms)) or (taken >= 0 and not offered[row, taken])
    _refuse(column, problems, {"offered must name arms, that of the choice among them, such as 1|3": odd})
    return None if offered.all() else offered


def _enough(name: str, scored: pd.Series, everybody: np.ndarray, how: Reading) -> None:
    """Refuse people with hardly any trials."""
    count = scored.value_counts().reindex(everybody, fill_value=0)
    few = count.index[count < LEAST_TRIALS]
    if len(few):
        who = ", ".join(str(subject) for subject in few[:5]) + (f" and {len(few) - 5} more" if len(few) > 5 else "")
        why = f" (without missed trials and those of {how.longest_rt:g} ms or more, or without RT)"
        raise complaint(
            name, [Problem(f"fewer than {LEAST_TRIALS} trials to score{why}, too few to fit: subject {who}")]
        )


def _notes(missed: pd.Series, slow: pd.Series, timeless: pd.Series, how: Reading) -> list[str]:
    """What happens to missed, slow and untimed trials."""
    fate = {"learn": "learned from but not scored", "drop": "left out before learning", "keep": "scored like all"}
    notes = []
    if missed.any():
        notes.append(f"Missed trials: {int(missed.sum())}, neither learned from nor scored.")
    if (slow & ~missed).any():
        notes.append(f"Trials of {how.longest_rt:g} ms or more: {int((slow & ~missed).sum())}, {fate[how.doubtful]}.")
    if timeless.any():
        where = places([(int(row), "") for row in timeless.index[timeless]])
        notes.append(f"RT is missing{where} These trials are {fate[how.doubtful]}.")
    return notes
