"""May weights be read as attitudes? People whose attitude to uncertainty is planted, on the user's own task.

They have the coefficients that were fitted to real people, but for the bonus for uncertainty: none, a positive and a
negative one. The reference is fitted to their choices, the composed model comes close to it, and its weights stand
compared with those of real people. What people without any attitude show, too, is no evidence for one.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from ..inference.optimise import Progress, report
from .compare import Analysis, Plan, believe_by, compare_all, play_by, weights_within_block
from .data import Choices
from .estimate import Fitted, fit
from .schedules import schedule_of

BONUS = "RU"  # the coefficient that is an attitude to uncertainty
STRONG = 90  # percentile over people of its size: an attitude that is strong, and occurs
REPEATS, FEWER = 8, 4  # cohorts without an attitude, and with one
WIDTH = 0.95
NONE, POSITIVE, NEGATIVE = "no attitude", "uncertainty-seeking", "uncertainty-averse"


class Halves(NamedTuple):
    """Mean weights in the first and in the second half of a block, (..., primitives)."""

    early: np.ndarray
    late: np.ndarray

    @property
    def change(self) -> np.ndarray:
        """From the first half to the second."""
        return self.late - self.early


class Attitude(NamedTuple):
    """Cohorts with one planted attitude."""

    name: str
    bonus: float  # the planted coefficient
    halves: Halves  # (cohorts, primitives) each


class Attitudes(NamedTuple):
    """Weights of real people, and those of people whose attitude to uncertainty is known."""

    primitives: tuple[str, ...]
    real: Halves  # (primitives) each
    planted: tuple[Attitude, ...]  # the first has none

    def interval(self, which: str, attitude: int = 0) -> np.ndarray:
        """Where the mean of one more such cohort lies with a probability of .95, (2, primitives).

        `which` is `early`, `late` or `change`.
        """
        values = getattr(self.planted[attitude].halves, which)
        count = len(values)
        wide = stdtrit(count - 1, 0.5 + WIDTH / 2) * values.std(axis=0, ddof=1) * np.sqrt(1.0 + 1.0 / count)
        return values.mean(axis=0) + np.array([[-1.0], [1.0]]) * wide

    def explained(self, which: str) -> np.ndarray:
        """Whether people without any attitude show the same, (primitives)."""
        low, high = self.interval(which)
        value = getattr(self.real, which)
        return (low <= value) & (value <= high)


def plant_attitudes(
    choices: Choices,
    plan: Plan,
    analysis: Analysis,
    *,
    repeats: int = REPEATS,
    seed: int = 0,
    progress: Progress | None = None,
) -> Attitudes | None:
    """The control, where the composed model's reference has a bonus for uncertainty; None elsewhere.

    `repeats` cohorts have no attitude; half as many are strongly attracted by uncertainty, and half as many averse.
    """
    if analysis.composed is None or BONUS not in analysis.models[plan.reference].names:
        return None
    if repeats < 2:
        raise ValueError(f"repeats = {repeats}: pass at least 2, of which an interval can be made.")
    fitted = analysis.models[plan.reference]
    size, some = _strong(fitted), max(2, repeats // 2)
    wanted = ((NONE, 0.0, repeats), (POSITIVE, size, some), (NEGATIVE, -size, some))
    planted, done, total = [], 0, repeats + 2 * some
    for name, bonus, count in wanted:
        rows = []
        for number in range(count):
            report(progress, "planting attitudes to uncertainty", done, total)
            rows.append(_replanted(choices, plan, fitted, bonus, (seed, number)))
            done += 1
        halves = Halves(*(np.stack(part) for part in zip(*rows, strict=True)))
        planted.append(Attitude(name, bonus, halves))
    return Attitudes(tuple(plan.primitives), halves_of(analysis), tuple(planted))


def halves_of(analysis: Analysis) -> Halves:
    """Means over the trials of both halves of a block, of means over people."""
    mean = weights_within_block(analysis).mean
    half = max(1, len(mean) // 2)
    return Halves(mean[:half].mean(axis=0), mean[half:].mean(axis=0))


def _strong(fitted: Fitted) -> float:
    """A bonus that is strong for these people: a high percentile of its size, of those who have a standard error."""
    column = fitted.names.index(BONUS)
    sizes = np.abs(fitted.coef[:, column])
    known = np.ones(len(sizes), bool) if fitted.error is None else np.isfinite(fitted.error[:, column])
    return float(np.percentile(sizes[known] if known.any() else sizes, STRONG))


def _replanted(choices: Choices, plan: Plan, fitted: Fitted, bonus: float, seed: tuple[int, int]) -> Halves:
    """One cohort, fitted and weighed as real people are."""
    coef = np.array(np.broadcast_to(fitted.coef, (len(fitted.subjects), fitted.coef.shape[1])))
    coef[:, fitted.names.index(BONUS)] = bonus
    model, rng = plan.models[plan.reference], np.random.default_rng((*seed, 7))
    again = play_by(plan, model, choices, schedule_of(choices, seed), coef, rng)
    alone = plan._replace(models={plan.reference: model})
    trials = believe_by(alone, again)
    return halves_of(compare_all(again, trials, {plan.reference: fit(model, trials)}, alone))


# ------------------------------------------------------------------------------------------- sentences


def describe_attitudes(found: Attitudes) -> tuple[str, ...]:
    """What follows from the weights, and what does not: of their change along a block, and of their halves."""
    lines = []
    for k, name in enumerate(found.primitives):
        low, high = found.interval("change")[:, k]
        change = float(found.real.change[k])
        too = ""
        if low > 0.0 < change or high < 0.0 > change:
            too = f" It {'rises' if change > 0 else 'falls'} without any attitude as well."
        lines.append(
            f"From the first half of a block to the second the weight of {name} changes by {change:+.3f}, and by "
            f"{low:+.3f} to {high:+.3f} in people without an attitude to uncertainty: {_follows(found, 'change', k)}."
            f"{too}"
        )
    apart = [f"{name} {half} ({getattr(found.real, half)[k]:.3f}; {found.interval(half)[0, k]:.3f} to "
             f"{found.interval(half)[1, k]:.3f}), {_follows(found, half, k)}"
             for half in ("early", "late") for k, name in enumerate(found.primitives)
             if not found.explained(half)[k]]  # fmt: skip
    if not apart:
        return (*lines, "No weight of either half differs from those of people without an attitude to uncertainty: on "
                        "this task they show none.")  # fmt: skip
    return (*lines, f"Halves that differ from those of people without an attitude: {'; '.join(apart)}.")


def attitude_table(found: Attitudes) -> pd.DataFrame:
    """One row for real people and for each planted attitude: weights in both halves, means over cohorts."""
    rows = [{"people": "real", "bonus": np.nan} | _columns(found.primitives, found.real)]
    for part in found.planted:
        means = Halves(*(values.mean(axis=0) for values in part.halves))
        rows.append({"people": part.name, "bonus": part.bonus} | _columns(found.primitives, means))
    return pd.DataFrame(rows)


def _columns(primitives: tuple[str, ...], halves: Halves) -> dict[str, float]:
    return {f"{half} {name}": float(getattr(halves, half)[k]) for half in ("early", "late")
            for k, name in enumerate(primitives)}  # fmt: skip


def _follows(found: Attitudes, which: str, k: int) -> str:
    """What a number of real people says, against those of people whose attitude is known."""
    if found.explained(which)[k]:
        return "no attitude follows from it"
    none, seeking, averse = (float(getattr(part.halves, which)[:, k].mean()) for part in found.planted)
    sign = np.sign(float(getattr(found.real, which)[k]) - none)
    towards = [name for name, value in ((POSITIVE, seeking), (NEGATIVE, averse)) if np.sign(value - none) == sign]
    if len(towards) == 1:
        return f"it differs in the direction of {towards[0]} people"
    return "it differs, in the direction of neither attitude alone"
