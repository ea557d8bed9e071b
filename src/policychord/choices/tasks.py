"""The task as it is: what each arm's value and rewards are like, for all arms or each, for all conditions or each."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

NUMBERS = ("mean", "variance", "noise", "drift", "decay")  # what a task says of its arms
USUAL: Mapping[str, float] = MappingProxyType({"mean": 0.0, "noise": 10.0, "drift": 0.0, "decay": 1.0})
# of one number of a task: for all arms, for each arm, and either of them by the values of the column `condition`
Numbers = float | Sequence[float] | Mapping[str, float | Sequence[float]]


class Arms(NamedTuple):
    """What a task says of every arm, arrays of (..., arms) each."""

    mean: Any  # of an arm's value at the start of a block
    variance: Any  # of this value; 0: it is known
    noise: Any  # variance of a reward around its arm's value
    drift: Any  # variance that a value gains from trial to trial
    decay: Any  # what is left of a value's distance from its mean after a trial


class Task(NamedTuple):
    """What participants knew of the arms, or what can be measured of them (Table S2 for the paper's).

    Values start from N(mean, variance) in every block, a reward is N(value, noise), and from trial to trial a value
    moves: mean + decay (value - mean) + N(0, drift). Each number is one for all arms, or one for each arm.
    """

    name: str
    variance: tuple[float, ...]  # one for each arm
    noise: float | tuple[float, ...] = USUAL["noise"]
    mean: float | tuple[float, ...] = USUAL["mean"]
    drift: float | tuple[float, ...] = USUAL["drift"]
    decay: float | tuple[float, ...] = USUAL["decay"]
    conditions: tuple["Task", ...] = ()  # other tasks, named by the values of the column `condition`
    measured: tuple[str, ...] = ()  # which of the numbers are from the rewards

    @property
    def arms(self) -> int:
        """How many there are."""
        return len(self.variance)

    @property
    def numbers(self) -> Arms:
        """The same for every arm, (arms) each; `conditions` aside."""
        return Arms(*(np.broadcast_to(np.asarray(getattr(self, name), dtype=float), (self.arms,)) for name in NUMBERS))

    def under(self, condition: str) -> "Task":
        """The task of a condition."""
        return next((task for task in self.conditions if task.name == condition), self)


TASKS = {
    "1": Task("Experiment 1", (10.0, 0.0)),  # the second arm always pays zero
    "2": Task("Experiment 2", (100.0, 100.0)),
}


def set_numbers(task: Task, given: Mapping[str, Numbers]) -> Task:
    """The same task with other numbers, such as `{"noise": {"risky": (36, 0), "safe": (0, 0)}}`; errors name them."""
    if odd := [name for name in given if name not in NUMBERS]:
        raise ValueError(f"{odd[0]} is no number of a task: there are {', '.join(NUMBERS)}.")
    words = list(dict.fromkeys(word for value in given.values() if isinstance(value, Mapping) for word in value))
    if words and (missing := {part.name for part in task.conditions} - set(words)):
        raise ValueError(f"numbers are given for the conditions {', '.join(words)}: give them for "
                         f"{', '.join(sorted(missing))}, too.")  # fmt: skip
    plain: dict[str, Any] = {name: value for name, value in given.items() if not isinstance(value, Mapping)}
    base = _with(task, plain)
    parts = []
    for word in words or [part.name for part in task.conditions]:
        own = plain.copy()
        for name, value in given.items():
            if isinstance(value, Mapping):
                if word not in value:
                    raise ValueError(f"{name} is given for {', '.join(value)}: give it for the condition {word}, too.")
                own[name] = value[word]
        parts.append(_with(task.under(word)._replace(name=word, conditions=(), measured=()), own))
    measured = tuple(name for name in task.measured if name not in given)
    return base._replace(conditions=tuple(parts), measured=measured)


def _with(task: Task, given: Mapping[str, Any]) -> Task:
    checked: dict[str, Any] = {name: _checked(name, value, task.arms) for name, value in given.items()}
    return task._replace(**checked)


def make_task(name: str, given: Mapping[str, Numbers]) -> Task:
    """A task from its numbers alone; those that are not given are usual. The variance says how many arms there are."""
    variance: Any = given.get("variance", ())
    first = next(iter(variance.values()), ()) if isinstance(variance, Mapping) else variance
    arms = int(np.size(first)) if np.ndim(first) else 0
    if arms < 2:
        raise ValueError(f"variance = {variance!r}: name a number of at least 0 for each of two or more arms, such as "
                         "100,100.")  # fmt: skip
    return set_numbers(Task(name, (0.0,) * arms), given)


def _checked(name: str, value: Any, arms: int) -> float | tuple[float, ...]:
    """One number for all arms, or one for each (always so for the variance), within what it may be."""
    try:
        values = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        values = np.zeros((0, 0))
    least, most = {"mean": (-np.inf, np.inf), "decay": (0.0, 1.0)}.get(name, (0.0, np.inf))
    if values.shape not in ((), (arms,)):
        raise ValueError(f"{name} = {str(value)[:80]}: pass one number, or one for each of {arms} arms.")
    if not (np.isfinite(values).all() and (values >= least).all() and (values <= most).all()):
        must = {"mean": "must be a number", "decay": "must lie between 0 and 1"}.get(name, "must be at least 0")
        raise ValueError(f"{name} = {value}: {must}.")
    if name == "noise" and values.ndim == 0 and values == 0:
        raise ValueError(f"{name} = {value}: must be more than 0 for some arm.")
    if name == "variance":
        return tuple(np.broadcast_to(values, (arms,)).tolist())
    return float(values) if values.ndim == 0 else tuple(values.tolist())


def each_of(value: Numbers) -> list[float | Sequence[float]]:
    """A number of every condition, or the one for all."""
    return list(value.values()) if isinstance(value, Mapping) else [value]


def parse_numbers(name: str, text: str) -> Numbers | None:
    """`10`, `36,0` for each arm, `risky:36,0;safe:0` by condition; None where there is nothing."""
    if not text.strip():
        return None
    remedy = "write a number, one for each arm (36,0), or either by condition (risky:36,0;safe:0)"
    found: dict[str, float | tuple[float, ...]] = {}
    for part in text.split(";"):
        word, colon, listed = part.rpartition(":")
        try:
            numbers = tuple(float(number) for number in listed.split(","))
        except ValueError:
            raise ValueError(f"{name} {text!r}: {remedy}.") from None
        if word.strip() in found or bool(colon) != bool(word.strip()):
            raise ValueError(f"{name} {text!r}: {remedy}.")
        found[word.strip()] = numbers if len(numbers) > 1 else numbers[0]
    if "" in found and len(found) > 1:
        raise ValueError(f"{name} {text!r}: {remedy}.")
    return found.get("", found)


def describe_task(task: Task) -> str:
    """What people know of the arms, in a sentence."""
    mean, variance, noise, drift, decay = (_by_condition(task, name) for name in NUMBERS)
    words = (
        f"Task: {task.name}, {task.arms} arms, whose values have a mean of {mean} and a variance of {variance}; "
        f"variance of a reward around its arm's value: {noise}"
    )
    if _moves(task):
        words += f"; variance that a value gains from trial to trial (drift): {drift}; what is left of its distance "
        words += f"from the mean (decay): {decay}"
    return f"{words}." + (f" Measured from the rewards: {', '.join(task.measured)}." if task.measured else "")


def _moves(task: Task) -> bool:
    """Whether values change between trials somewhere."""
    parts = [part.numbers for part in (task, *task.conditions)]
    return any((part.drift != USUAL["drift"]).any() or (part.decay != USUAL["decay"]).any() for part in parts)


def _by_condition(task: Task, name: str) -> str:
    """`10`, `36, 0`, or `risky: 36, 0; safe: 0`."""
    digits = 4 if name in task.measured else 6
    texts = {part.name: _listed(getattr(part, name), digits) for part in task.conditions}
    if len(set(texts.values())) < 2:
        return next(iter(texts.values()), _listed(getattr(task, name), digits))
    return "; ".join(f"{word}: {text}" for word, text in texts.items())


def _listed(value: float | tuple[float, ...], digits: int) -> str:
    texts = [f"{each:.{digits}g}" for each in np.atleast_1d(value)]
    return texts[0] if len(set(texts)) == 1 else ", ".join(texts)
