"""Choices as a checked table: every rule of the format, and everything that breaks one reported at once."""

import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd

from .measure import measure_task, one_for_each_block
from .offers import name_arms, offered_arms
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
    refuse,
)
from .tasks import NUMBERS, TASKS, Numbers, Task, each_of

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
_MOST_PEOPLE = 8  # who are left out by name
_NEW = ("game", "round", "episode")  # names of blocks that begin from nothing
Doubtful = Literal["learn", "drop", "keep"]


class Reading(NamedTuple):
    """How a table is to be read, where a guess will not do."""

    columns: Mapping[str, str] = MappingProxyType({})  # what the file calls our columns: {"reward": "gain+loss"}
    arms: tuple[str, ...] = ()  # what the file calls the arms, in order; else those that occur
    missed: tuple[str, ...] = ()  # words for a missed trial, besides an empty cell and NA
    longest_rt: float = LONGEST_RT  # ms
    doubtful: Doubtful = "learn"  # slow trials and those without RT: learn but do not score, drop, or keep
    sides: tuple[str, ...] = ()  # what the choice calls the left and the right arm; ("arms",) if it names the arm
    task: Mapping[str, Numbers] = MappingProxyType({})  # what is known of the task: the rest is measured


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
    loss: np.ndarray | None = None  # (trials) what was lost, at most 0, where the table has it apart from what was won


def read_choices(
    path: str | Path, task: Task | None = None, source: str | None = None, how: Reading | None = None
) -> Choices:
    """Read a table, check it, and say in `notes` and `said` what was made of it; a `DataError` lists every problem.

    Separators and names of columns are guessed (see `Reading`), a JSON or TOML file next to the table is used. Without
    a task it is measured from the rewards (`measure_task`), but for what the reading or that file knows. A column
    `source` is carried along to every output.
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
    if task is not None and how.task:
        raise ValueError(f"how.task = {dict(how.task)}: belongs to a task that is measured; leave out task.")
    name = printable(name, LONGEST_QUOTE)
    table = read_table(raw, name, how.columns, sidecar)
    problems, said = [*table.problems], [*table.said]
    notes: list[str] = []
    if problems and (not len(table.cells) or not {"subject", "choice"} <= set(table.cells)):
        raise complaint(name, problems)
    missed = _missed(table.cells, how, said)
    cells, arms = name_arms(table, ~missed, how.sides, problems, said)
    table = table._replace(cells=cells)
    known = _known(task, how, sidecar or {}, said)
    rows = pd.DataFrame(index=cells.index)
    rows["subject"] = _labels(cells["subject"], "subject", problems)
    rows["reward"], loss = _rewards(table, missed, problems, said)
    rows["choice"], arms = _arms(table, missed, rows["reward"], _named(table, task, how, arms), _count(task, known),
                                 problems, said)  # fmt: skip
    rt = _times(table, problems, said)
    rows["block"], rows["trial"] = _order(table, rows["subject"], how, problems, said, notes)
    offered = offered_arms(cells, arms, rows["choice"], problems)
    _labelled(cells, rows, _words(task, known), problems)
    taken = sorted(set(rows["choice"][rows["choice"] >= 0]))
    if len(taken) == 1 and len(rows) >= LEAST_TRIALS and not problems:
        problems.append(Problem(f"choice is always {printable(arms[taken[0]], LONGEST_LABEL)}, so that there is "
                                "nothing to explain: name another column with --columns choice=..."))  # fmt: skip
    if problems:
        raise complaint(name, problems)
    if len(taken) < len(arms) and offered is None:
        unused = ", ".join(arm for k, arm in enumerate(arms) if k not in taken)
        said.append(f"Never taken: arm {printable(unused, LONGEST_LABEL)}. If it does not exist, leave it out of "
                    "--arm-names and of the task's numbers: it changes chance, the link and the models.")  # fmt: skip
    slow = rt >= how.longest_rt if rt is not None else pd.Series(False, index=rows.index)
    timeless = rt.isna() & ~missed if rt is not None else slow & False
    doubtful = (slow | timeless) & ~missed
    kept = rows[~missed & ~(doubtful & (how.doubtful == "drop"))]
    kept = kept.sort_values(["subject", "block", "trial"], kind="stable")
    kept = kept[_enough(name, kept["subject"], doubtful, rows["subject"].unique(), how, notes)]
    scored = ~doubtful[kept.index].to_numpy() | (how.doubtful == "keep")
    notes += _notes(missed, slow, timeless, how)
    sources = cells["source"].unique().tolist() if "source" in cells else []
    told = printable(source or ", ".join([name, *sources]), LONGEST_SOURCE)
    choices = Choices(
        _plain(kept["subject"]), kept["block"].to_numpy(int), kept["trial"].to_numpy(int),
        kept["choice"].to_numpy(int), kept["reward"].to_numpy(float), task or TASKS["2"], told,
        0 if how.doubtful == "keep" else int((slow & ~missed).sum()), tuple(notes),
        None if scored.all() else scored,
        None if offered is None else offered[rows.index.get_indexer(kept.index)],
        kept["condition"].to_numpy(str) if "condition" in kept else None,
        kept["group"].to_numpy(str) if "group" in kept else None, arms,
        loss=None if loss is None else loss[kept.index].to_numpy(float),
    )  # fmt: skip
    if task is None:
        choices = choices._replace(task=measure_task(choices, **known))
    return choices._replace(said=(*said, *_about_conditions(choices)))


def _known(
    task: Task | None, how: Reading, sidecar: Mapping[str, Any], said: list[str]
) -> dict[str, Numbers]:  # fmt: skip
    """What is known of a task that is measured: the sidecar's numbers, and those of the reading before them."""
    beside = sidecar.get("task", {})
    if not isinstance(beside, dict) or set(beside) - set(NUMBERS):
        raise DataError(f"task in the file next to the table is {printable(str(beside), LONGEST_QUOTE)}: it may have "
                        f"{', '.join(NUMBERS)}.")  # fmt: skip
    if beside and task is not None:
        said.append("The task in the file next to the table is not used: another one is given.")
        return {}
    if used := [key for key in beside if key not in how.task]:
        said.append(f"From the file next to the table: {', '.join(used)} of the task.")
    return {} if task is not None else {**beside, **how.task}


def _words(task: Task | None, known: Mapping[str, Numbers]) -> list[str]:
    """The conditions that the task has numbers for."""
    given = [part.name for part in task.conditions] if task is not None else []
    return list(dict.fromkeys([*given, *(word for value in known.values() if isinstance(value, Mapping)
                                         for word in value)]))  # fmt: skip


def _count(task: Task | None, known: Mapping[str, Numbers]) -> int:
    """How many arms the task has; 0 if that is not known."""
    if task is not None:
        return task.arms
    parts = [part for value in known.values() for part in each_of(value)]
    return max((len(part) for part in parts if isinstance(part, (list, tuple))), default=0)


def _labelled(cells: pd.DataFrame, rows: pd.DataFrame, words: list[str], problems: list[Problem]) -> None:
    """The columns condition and group, if there are some."""
    for name in ("condition", "group"):
        if name in cells:
            rows[name] = cells[name].map(lambda text: printable(text, LONGEST_LABEL))
    if words and "condition" not in cells:
        problems.append(Problem("numbers by condition need a column condition; name it with --columns condition=..."))
    elif words:
        odd = ~rows["condition"].isin(words)
        refuse(cells["condition"], problems, {f"condition must be one of {', '.join(words)}": odd})
        if unused := sorted(set(words) - set(rows["condition"])):
            problems.append(Problem(f"no trial has the condition {', '.join(unused)}, for which the task has numbers"))
        inside = rows["condition"].groupby([rows["subject"], rows["block"]]).transform("nunique") > 1
        refuse(
            cells["condition"],
            problems,
            {
                "condition changes within a block, and beliefs begin with a block: "
                "numbers by condition need blocks of one condition each": inside
            },
        )
    if "group" in rows:
        both = rows.drop_duplicates(["subject", "group"])
        if (twice := both["subject"].duplicated()).any():
            where = [(int(at), f"subject {both.at[at, 'subject']}") for at in both.index[twice]]
            problems.append(Problem("a person belongs to one group", where))
    if "source" in cells and (count := cells["source"].nunique()) > MOST_SOURCES:
        problems.append(Problem(f"source has {count} different values, at most {MOST_SOURCES} are allowed"))


def _about_conditions(choices: Choices) -> tuple[str, ...]:
    """Whether the column condition has an effect."""
    if choices.condition is None or len(set(choices.condition)) < 2 or choices.task.conditions:
        return ()
    how = "--noise, --variance, --prior-mean, --drift and --decay give numbers by condition (--noise risky:36,0;safe:0)"
    if not choices.task.measured:
        return (f"The column condition changes nothing: the task is the same in all of them. {how}.",)
    if not one_for_each_block(choices):
        return ("The column condition changes nothing: conditions change within blocks, and beliefs begin with a "
                "block.",)  # fmt: skip
    return (f"The column condition changes nothing: rewards are alike in all of them (within a factor of 4). {how}.",)


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


def _labels(cells: pd.Series, name: str, problems: list[Problem]) -> pd.Series:
    """Whole numbers where all are, else text."""
    refuse(cells, problems, {f"{name} is empty": cells.str.lower().isin(MISSING)})
    if _whole(numbers := _numbers(cells)).all():
        return numbers.astype(int)
    return cells.map(lambda text: printable(text, LONGEST_LABEL))


def _missed(cells: pd.DataFrame, how: Reading, said: list[str]) -> pd.Series:
    """Trials without a choice: what was named, the usual words, and any word that never comes with a reward."""
    choice = cells["choice"]
    missed = choice.str.lower().isin(MISSING | {word.lower() for word in how.missed})
    usual = choice.map(bare).isin(NO_ANSWER)
    paid = [cells[name] for name in ("reward", "gain", "plus", "minus", "loss") if name in cells]
    unpaid = np.logical_and.reduce([column.str.lower().isin(MISSING) for column in paid]) if paid else usual & False
    never = pd.Series(unpaid, index=cells.index).groupby(choice).transform("all")
    guessed = (usual | never) & ~missed & ~choice.isin(how.arms)
    if guessed.any() and not (missed | guessed).all():
        words = ", ".join(quote(word) for word in choice[guessed].unique()[:_RARE])
        said.append(f"Read {words} in the column choice as a missed trial (--arm-names names arms).")
        return missed | guessed
    return missed


def _named(table: Table, task: Task | None, how: Reading, offered: tuple[str, ...]) -> tuple[str, ...]:
    """What the arms are called, if somebody says so: the reading, the sidecar, or the sets that were on offer."""
    levels = table.sidecar.get("choice", {}).get("Levels")
    return tuple(how.arms) or (tuple(map(str, levels)) if isinstance(levels, dict) else ()) or offered


def _arms(
    table: Table, missed: pd.Series, reward: pd.Series, known: tuple[str, ...], wanted: int, problems: list[Problem],
    said: list[str],
) -> tuple[pd.Series, tuple[str, ...]]:  # fmt: skip
    """Choices as numbers from 0 (-1 for a missed trial), and what the file calls the arms: `known`, or guessed."""
    cells = table.cells["choice"]
    made = cells[~missed]
    if _whole(numbers := _numbers(made)).all():
        made = numbers.astype(int).astype(str)
    whole = pd.to_numeric(made, errors="coerce").mod(1).eq(0)
    if not known and whole.mean() > 0.5:  # numbers, from 1 or from 0
        values = pd.to_numeric(made[whole]).astype(int)
        first = 0 if (values == 0).sum() >= _RARE and (not wanted or values.max() < wanted) else 1
        if not wanted and (asked := _missed_code(values, first, reward)):
            problems.append(Problem(asked))
        known = tuple(str(k) for k in range(first, first + (wanted or _largest(values, first) - first + 1)))
    elif not known:
        often = made.value_counts()
        known = tuple(sorted(often.index[often >= min(_RARE, often.max())]))
    if (wanted and len(known) > wanted) or len(known) > MOST_ARMS:
        problems.append(Problem(f"choice has {len(known)} different values ({printable(', '.join(known), 60)}), "
                                "and the "
                                f"task has {wanted or MOST_ARMS} arms: name the arms with --arm-names"))  # fmt: skip
        return pd.Series(-1, index=cells.index), known
    named = f"{known[0]} or {known[1]}" if len(known) == 2 else printable(", ".join(known), 60)
    hint = "; name the arms with --arm-names, and what stands for a missed trial with --missed"
    text = f"choice must be {named}, an arm that occurs often{hint}"
    refuse(cells[made.index], problems, {text: ~made.isin(known)})
    if known[:2] != ("1", "2"):
        pairs = ", ".join(f"{k} = {printable(name, LONGEST_LABEL)}" for k, name in enumerate(known, 1))
        said.append(f"Arms: {pairs}.")
    codes = made.map({name: k for k, name in enumerate(known)}).reindex(cells.index)
    return codes.fillna(-1).astype(int), known


def _missed_code(values: pd.Series, first: int, reward: pd.Series) -> str:
    """A question where a number looks like an arm and may be a missed trial: 0 that always pays the same, or 99."""
    often = values.value_counts()
    codes = sorted(often.index[(often >= min(_RARE, often.max())) & (often.index >= first)])
    last = next(code for code in range(first, first + len(codes) + 1) if code + 1 not in codes)
    beyond = [code for code in codes if code > last]
    listed = ", ".join(map(str, codes))
    if beyond and len(codes) > 2:
        code, others = beyond[0], [code for code in codes if code not in beyond]
        arms = ",".join(map(str, codes))
        return (f"choice has {code} and {', '.join(map(str, others))}: is it a missed trial (--missed "
                f"{','.join(map(str, beyond))}) or an arm (--arm-names {arms}, with all arms in order)?")  # fmt: skip
    paid = reward[values.index]
    if first == 0 and len(codes) > 2 and paid[values == 0].nunique() == 1 and paid[values != 0].nunique() > 1:
        return (f"choice has {listed}, and 0 always pays {paid[values == 0].iloc[0]:g}: is it a missed trial "
                f"(--missed 0) or an arm (--arm-names {','.join(map(str, codes))})?")  # fmt: skip
    return ""


def _largest(values: pd.Series, first: int) -> int:
    """The largest number that is not a rare mistake; at least two arms."""
    often = values.value_counts()
    usual = often.index[(often >= min(_RARE, often.max())) & (often.index >= first)]
    return max(int(usual.max()) if len(usual) else first + 1, first + 1)


def _rewards(
    table: Table, missed: pd.Series, problems: list[Problem], said: list[str]
) -> tuple[pd.Series, pd.Series | None]:
    """A column, or gains and losses added, and the losses apart; a loss without its sign counts against."""
    parts, loss = [], None
    for name in ("reward", "gain", "plus", "minus", "loss"):
        if name not in table.cells:
            continue
        cells = table.cells[name]
        numbers = _numbers(cells, table.decimal_comma).where(~missed, 0.0)
        shown = "reward" if name in ("plus", "minus") else name
        far = np.isfinite(numbers) & (numbers.abs() > LARGEST_REWARD)
        refuse(cells, problems, {
            f"{shown} must be a number": numbers.isna(), f"{shown} must be a finite number": np.isinf(numbers),
            f"{shown} lies beyond {LARGEST_REWARD:g}: rescale it": far,
        })  # fmt: skip
        unsigned = name == "loss" and (numbers >= 0).all() and (numbers > 0).any()
        if unsigned:
            said.append("Losses have no sign and count against the gains.")
        parts.append(-numbers if unsigned or name == "minus" else numbers)
        loss = parts[-1] if name in ("minus", "loss") else loss
    if not parts:
        return pd.Series(0.0, index=table.cells.index), None
    if len(parts) > 1 and "loss" in table.cells:
        said.append("The reward is gain and loss together; --learner gain-loss weighs them apart.")
    return pd.Series(np.sum(parts, axis=0), index=table.cells.index), loss


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
    refuse(
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
    source: Table, subject: pd.Series, how: Reading, problems: list[Problem], said: list[str], notes: list[str]
) -> tuple[pd.Series, pd.Series]:
    """Block and place in the block of every row; without columns for them, by the order of the rows."""
    cells, trial = source.cells, None
    if "trial" in cells:
        trial = _numbers(cells["trial"])
        if refuse(cells["trial"], problems, {"trial must be a whole number": ~_whole(trial)}):
            trial = None
    if "block" in cells:
        block = _labels(cells["block"], "block", problems)
        if block.dtype.kind not in "iu":  # words: in the order in which a person meets them
            block = block.groupby(subject, sort=False).transform(lambda names: pd.factorize(names)[0] + 1)
        theirs = source.names["block"]
        if "block" not in how.columns and trial is not None and _runs_on(subject, block, trial, theirs):
            said.append(f"Trial numbers run on through {theirs}: arms are not new in it, and it is not used (--columns "
                        f"block={theirs} if they are new).")  # fmt: skip
            block = pd.Series(1, index=cells.index)
        elif block.groupby(subject).nunique().max() > 1:
            said.append(f"Arms are new in every {theirs} (--columns block=none if they are not).")
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
        problems.append(Problem("the same subject, block and trial occur twice (if another column tells people apart: "
                                "--columns subject=...)", where))  # fmt: skip
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


def _runs_on(subject: pd.Series, block: pd.Series, trial: pd.Series, name: str) -> bool:
    """Whether the trials of every person count on from one block to the next; a game is new whatever its trials are."""
    if bare(name).startswith(_NEW):
        return False
    ends = trial.groupby([subject, block]).agg(["min", "max"])
    before = ends["max"].groupby(level=0).shift()
    later = before.notna()
    return bool(later.any() and (ends["min"] > before)[later].all())


def _enough(
    name: str, subject: pd.Series, doubtful: pd.Series, everybody: np.ndarray, how: Reading, notes: list[str]
) -> np.ndarray:
    """Whose trials are kept: people with hardly any are left out, by name; if nobody is left the table is refused."""
    scored = ~doubtful[subject.index] | (how.doubtful == "keep")
    count = subject[scored].value_counts().reindex(everybody, fill_value=0)
    few = count.index[count < LEAST_TRIALS]
    if len(few):
        who = ", ".join(str(person) for person in few[:_MOST_PEOPLE])
        who += f" and {len(few) - _MOST_PEOPLE} more" if len(few) > _MOST_PEOPLE else ""
        why = (f"fewer than {LEAST_TRIALS} trials to score (without missed trials and those of {how.longest_rt:g} ms "
               "or more, or without RT), too few to fit")  # fmt: skip
        if len(few) == len(everybody):
            raise complaint(name, [Problem(f"{why}: subject {who}")])
        notes.append(f"Left out: subject {who}, with {why}.")
    return ~subject.isin(few).to_numpy()


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
