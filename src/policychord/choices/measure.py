"""What the rewards say of the task: mean and variance of the arms' values, noise, drift and decay, and mismatches."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from .places import places_of
from .tables import DataError
from .tasks import Arms, Numbers, Task, each_of, set_numbers

if TYPE_CHECKING:
    from .data import Choices

OWN = "own data"
FACTOR = 4.0  # between variances that still belong together
SHIFT = 0.5  # deviations of a reward between means that still belong together
LEAST_CELL = 30  # degrees of freedom, or blocks, from which an arm or a condition has a number of its own
SURE = 4.0  # standard errors by which successive rewards of an arm must be more alike than any two of a block
LEAST_DRIFT = 1e-4  # of the noise: below it values stay


def measure_task(choices: "Choices", **known: Numbers) -> Task:
    """Mean and variance of the arms' values, and the noise of rewards, from the rewards themselves.

    What an arm pays in a block varies around its value by the noise, the values vary around the mean by the variance
    (moments). Where successive rewards of an arm are more alike than others of the same block, values drift: noise,
    drift and decay are then separated by the likelihood of a Kalman filter. Numbers that differ by more than a factor
    of 4 between arms or conditions are measured for each. An arm whose reward never changes is known. Numbers that are
    given (`mean`, `variance`, `noise`, `drift`, `decay`; by arm, by condition) stay.
    """
    cells = _cells(choices)
    task = _still(cells)
    if not _said_to_stay(known) and _is_smooth(cells.frame):
        task = _moving(choices, cells, task)
    return set_numbers(task, known)


def _said_to_stay(known: Mapping[str, Numbers]) -> bool:
    """Whether values do not move, whatever the rewards look like: a drift of 0 is given, and no decay."""
    drift, decay = (each_of(known[name]) if name in known else [] for name in ("drift", "decay"))
    stays = all(np.all(np.asarray(value) == 0) for value in drift) and all(
        np.all(np.asarray(value) == 1) for value in decay)  # fmt: skip
    return bool(drift) and stays


class _Cells(NamedTuple):
    """Rewards of arms that are not constant, and their moments in each block: condition, arm, size, mean, variance."""

    frame: pd.DataFrame
    table: pd.DataFrame
    constant: dict[int, float]  # what an arm always pays
    arms: int
    total: float  # variance of all rewards


def _cells(choices: "Choices") -> _Cells:
    arms = max(len(choices.arms), int(choices.choice.max()) + 1, 2)
    condition = "" if choices.condition is None or not one_for_each_block(choices) else choices.condition
    frame = pd.DataFrame({"s": choices.subject, "b": choices.block, "c": condition, "arm": choices.choice,
                          "r": choices.reward})  # fmt: skip
    spread = frame.groupby("arm")["r"].agg(["var", "mean"])
    constant = spread["mean"][spread["var"].fillna(0.0) <= 0].to_dict()
    frame = frame[~frame["arm"].isin(list(constant))]
    if frame.empty:
        raise DataError("reward never changes, so that there is nothing to learn: check the column, or name the right "
                        "one with --columns reward=...")  # fmt: skip
    grouped = frame.groupby(["c", "s", "b", "arm"], as_index=False)
    table = grouped.agg(size=("r", "size"), mean=("r", "mean"), var=("r", "var"), low=("r", "min"), high=("r", "max"))
    return _Cells(frame, table, constant, arms, float(frame["r"].var()))


def one_for_each_block(choices: "Choices") -> bool:
    """Whether a condition stays within a block: only then can beliefs begin with its numbers."""
    condition, at = np.asarray(choices.condition), places_of(choices)
    return bool((condition == condition[at.first][at.block]).all())


def _still(cells: _Cells) -> Task:
    """The task with values that stay within a block, by moments."""
    table = cells.table
    noise, by_cell = _noises(cells)
    table = table.assign(noise=by_cell.reindex(pd.MultiIndex.from_frame(table[["c", "arm"]])).to_numpy())
    # each arm of a block counts once: people take good arms more often, so a mean over trials is too high
    centre, variance = float(table["mean"].mean()), _variance_of_values(table, cells.total)
    enough = {str(word): part for word, part in table.groupby("c") if len(part) >= LEAST_CELL}
    variances = {word: _variance_of_values(part, cells.total) for word, part in enough.items()}
    centres = {word: float(part["mean"].mean()) for word, part in enough.items()}
    if not _apart(list(variances.values())):
        variances = {}
    if not centres or np.ptp(list(centres.values())) <= SHIFT * np.sqrt(variance + noise):
        centres = {}
    split = by_cell.unstack("arm").reindex(columns=range(cells.arms)).fillna(noise)

    def numbers(word: str) -> dict[str, Any]:
        mean, spread = centres.get(word, centre), variances.get(word, variance)
        values = tuple(0.0 if arm in cells.constant else spread for arm in range(cells.arms))
        means = tuple(float(cells.constant.get(arm, mean)) for arm in range(cells.arms))
        own = tuple(map(float, split.loc[word])) if word in split.index else (noise,) * cells.arms
        return {"variance": values, "mean": means if cells.constant else mean,
                "noise": own if len(set(own)) > 1 else own[0]}  # fmt: skip

    words = [str(word) for word in by_cell.index.unique("c")]
    if len(words) < 2:
        return Task(OWN, **numbers(words[0]), measured=("mean", "variance", "noise"))
    parts = {word: numbers(word) for word in words}
    if all(part == parts[words[0]] for part in parts.values()):
        return Task(OWN, **parts[words[0]], measured=("mean", "variance", "noise"))
    whole = numbers("") | {"noise": noise}
    return Task(OWN, **whole, conditions=tuple(Task(word, **part) for word, part in parts.items()),
                measured=("mean", "variance", "noise"))  # fmt: skip


def _noises(cells: _Cells) -> tuple[float, pd.Series]:
    """The variance within a block for all arms, and for each condition and arm: its own where they are apart."""
    more = cells.table[cells.table["size"] > 1]
    freedom = more["size"] - 1
    pooled = max(float((more["var"] * freedom).sum() / max(freedom.sum(), 1)), 1e-3 * cells.total)
    sums = pd.DataFrame({"square": more["var"] * freedom, "freedom": freedom, "same": more["high"] == more["low"],
                         "c": more["c"], "arm": more["arm"]}).groupby(["c", "arm"])  # fmt: skip
    parts = sums.agg({"square": "sum", "freedom": "sum", "same": "all"})
    # an arm that pays the same throughout every block has none, but for rounding
    own = (parts["square"] / parts["freedom"]).where(~parts["same"], 0.0)
    known = own[parts["freedom"] >= LEAST_CELL]
    index = pd.MultiIndex.from_product([cells.table["c"].unique(), sorted(cells.table["arm"].unique())],
                                       names=["c", "arm"])  # fmt: skip
    by_cell = pd.Series(pooled, index=index)
    if not _apart(known.tolist()) or not (known > 0).any():
        return pooled, by_cell
    for level in (["c"], ["arm"], ["c", "arm"]):  # the fewest numbers within which nothing is apart
        groups = known.groupby(level)
        if len(level) == 2 or not groups.agg(lambda values: _apart(values.tolist())).any():
            weight = parts["freedom"].reindex(known.index)
            mean = (known * weight).groupby(level).sum() / weight.groupby(level).sum()
            keys = index if len(level) == 2 else index.get_level_values(level[0])
            return pooled, pd.Series(mean.reindex(keys).to_numpy(), index=index).fillna(pooled)
    raise AssertionError  # pragma: no cover


def _apart(values: list[float]) -> bool:
    return len(values) > 1 and max(values) > FACTOR * min(values)


def _variance_of_values(table: pd.DataFrame, total: float) -> float:
    between = float(table["mean"].var()) - float((table["noise"] / table["size"]).mean())
    return max(between if np.isfinite(between) else total, 1e-2 * total)


# --------------------------------------------------------------------------------------- values that move


def _is_smooth(frame: pd.DataFrame) -> bool:
    """Whether successive rewards of an arm in a block are more alike than any two of them."""
    cell = frame.groupby(["s", "b", "arm"])["r"]
    step, size = cell.diff().dropna(), cell.transform("size")
    within = float(((frame["r"] - cell.transform("mean")) ** 2).sum()) / max(len(step), 1)
    if len(step) < LEAST_CELL or within <= 0:
        return False
    ratio = float((step**2).mean()) / 2 / within
    return ratio < 1.0 - SURE / np.sqrt(len(step)) and bool(size.max() > 2)


def _moving(choices: "Choices", cells: _Cells, still: Task) -> Task:
    """Noise, drift, decay and variance by maximum likelihood, for each condition where they are apart."""
    from .drift import Walk, fit_walks  # JAX, which most tables do not need

    at = places_of(choices)
    unit = float(np.sqrt(cells.total))
    moving = np.array([arm not in cells.constant for arm in range(cells.arms)])
    centre = float(np.mean(still.numbers.mean[moving]))
    walk = Walk(at.spread(choices.choice), at.spread((choices.reward - centre) / unit),
                 np.tile(1.0 * moving, (len(at.first), 1)))  # fmt: skip
    weight = at.spread(1.0 * moving[choices.choice])
    words = np.full(len(at.first), "")
    if choices.condition is not None and one_for_each_block(choices):
        words = np.asarray(choices.condition)[at.first]
    whole = fit_walks(walk, weight, np.zeros(len(words)))[0]
    if whole["drift"] <= LEAST_DRIFT * whole["noise"]:
        return still

    def part(name: str, found: dict[str, float]) -> Task:
        noise, drift = (found[key] * unit**2 for key in ("noise", "drift"))
        variance = tuple(found["variance"] * unit**2 if moves else 0.0 for moves in moving)
        mean = tuple(np.where(moving, centre, still.numbers.mean).tolist()) if not moving.all() else centre
        return Task(name, variance, noise, mean, drift, found["decay"])

    names = np.unique(words)
    each = fit_walks(walk, weight, words) if len(names) > 1 else []
    apart = any(_apart([found[key] for found in each]) for key in ("noise", "drift")) if each else False
    parts = tuple(part(str(name), found) for name, found in zip(names, each, strict=True)) if apart else ()
    return part(still.name, whole)._replace(conditions=parts, measured=Arms._fields)


# -------------------------------------------------------------------------------------------- mismatches


def mismatches(choices: "Choices") -> list[str]:
    """Where the rewards are not those of the task that the beliefs were made for."""
    task = choices.task
    if set(task.measured) >= {"mean", "variance", "noise"}:
        return []
    if task.name != OWN:
        for arm in np.flatnonzero(np.asarray(task.variance) == 0):
            paid = choices.reward[(choices.choice == arm) & np.isfinite(choices.reward)]
            if len(paid) and np.ptp(paid) > 0:
                return [f"The task says that arm {arm + 1} always pays the same, and it paid {paid.min():g} to "
                        f"{paid.max():g}: name the arms in the task's order with --arms, or let --experiment auto "
                        "measure the task. Beliefs, and what follows from them, are wrong as it is."]  # fmt: skip
    seen = measure_task(choices)
    words = list(dict.fromkeys(part.name for part in (*task.conditions, *seen.conditions))) or [task.name]
    lines = [line for word in words for line in _compare(task.under(word), seen.under(word), task.measured)]
    return [f"The task does not fit the data: {'; '.join(dict.fromkeys(lines))}. Beliefs, and what follows from them, "
            "depend on these numbers; --experiment auto measures them."] if lines else []  # fmt: skip


def _compare(task: Task, seen: Task, measured_already: tuple[str, ...]) -> list[str]:
    """Of one condition; an arm that is known has no noise that matters."""
    declared, measured = task.numbers, seen.numbers
    moving = np.asarray(declared.variance) > 0
    lines = []
    mean, found = (float(np.mean(np.asarray(part.mean)[moving])) for part in (declared, measured))
    if abs(found - mean) > SHIFT * np.sqrt(np.mean((np.asarray(declared.variance) + declared.noise)[moving])):
        lines.append(f"rewards have a mean of {found:.3g}, and the task says {mean:.3g} (--prior-mean)")
    if np.any(measured.drift) and not np.any(declared.drift) and not np.any(np.asarray(declared.decay) < 1):
        lines.append(f"values drift (a variance of about {np.mean(measured.drift):.3g} from trial to trial, a decay of "
                     f"{np.mean(measured.decay):.3g}), and in the task they stay (--drift, --decay)")  # fmt: skip
        return lines  # what else is measured belongs to values that drift
    for what, option in (("variance", "--variance"), ("noise", "--noise")):
        one, other = (np.asarray(getattr(part, what))[moving] for part in (declared, measured))
        if what not in measured_already and any(_apart(list(pair)) for pair in zip(one, other, strict=True)):
            words = "variance of values" if what == "variance" else "noise of the rewards"
            lines.append(f"the {words} is about {_text(other)}, and the task says {_text(one)} ({option})")
    return lines


def _text(values: np.ndarray) -> str:
    shown = [f"{value:.3g}" for value in values]
    return shown[0] if len(set(shown)) == 1 else ", ".join(shown)
