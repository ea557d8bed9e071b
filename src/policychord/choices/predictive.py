"""Do fitted models behave as people do? One step ahead of what happened, and as whole sequences of choices.

`check_predictions` gives the probability of each choice after the recorded history, at the estimates: a model cannot go
astray, since history puts it right. `predict_sequences` is a posterior predictive check: parameters are drawn around
the estimates, people play the whole experiment again, and what they do leads to what they see. What arms pay is given:
it is drawn from what each arm paid to the same person in the same block (`schedule_of`).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..inference import Prediction
from ..inference.optimise import Progress, report
from ..inference.prediction import beside
from .compare import Plan, play_by
from .data import Choices
from .estimate import Fitted, coefficients_of, draw_coefficients
from .learners import Trials, believe
from .models import ChoiceModel, log_proba
from .places import places_of
from .schedules import schedule_of

STATISTICS = ("repeats", "stays after a win", "shifts after a loss", "takes the arm that paid best so far")
DRAWS = 40  # experiments of each model


class PredictiveCheck(NamedTuple):
    """What people did and what the fitted models expect, one step ahead of the recorded history."""

    models: tuple[str, ...]
    statistics: tuple[str, ...]
    observed: np.ndarray  # (people, statistics) shares of trials; NaN where a person has no such trial
    expected: np.ndarray  # (models, people, statistics)
    trial: np.ndarray  # of a block
    observed_course: np.ndarray  # (people, trials) share that takes the arm that paid best so far
    expected_course: np.ndarray  # (models, people, trials)


def check_predictions(specs: Mapping[str, ChoiceModel], fits: Mapping[str, Fitted], trials: Trials) -> PredictiveCheck:
    """Do fitted models repeat, stay, shift and find the best arm as often as people do?

    Probabilities given what really happened before, so no chance is added: a model that is right differs from people
    by their own randomness only.
    """
    people, who = np.unique(trials.subject, return_inverse=True)
    numbers, at = np.unique(trials.trial, return_inverse=True)
    masks = _statistics(trials, _threshold(trials))

    def shares(prob: np.ndarray, mask: tuple[np.ndarray, np.ndarray], index: np.ndarray, size: int) -> np.ndarray:
        wanted, asked = mask[0], mask[1] & trials.counts
        count = np.bincount(index[asked], minlength=size)
        total = np.bincount(index[asked], (prob * wanted).sum(1)[asked], minlength=size)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    def measure(prob: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        course = shares(prob, masks[-1], who * len(numbers) + at, len(people) * len(numbers))
        each = np.stack([shares(prob, mask, who, len(people)) for mask in masks], axis=1)
        return each, course.reshape(len(people), len(numbers))

    observed, course = measure(1.0 * (np.arange(trials.arms) == trials.choice[:, None]))
    expected = [measure(np.exp(log_proba(model, trials, coefficients_of(fits[name], trials))))
                for name, model in specs.items()]  # fmt: skip
    means, courses = map(np.stack, zip(*expected, strict=True))
    return PredictiveCheck(tuple(specs), STATISTICS, observed, means, numbers, course, courses)


class SequenceCheck(NamedTuple):
    """Shares of trials that people have, and those of whole experiments that the fitted models would make."""

    draws: int
    predictions: dict[str, tuple[Prediction, ...]]  # by model, one for each of STATISTICS and the mean reward


def predict_sequences(
    choices: Choices,
    plan: Plan,
    fits: Mapping[str, Fitted],
    trials: Trials,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    progress: Progress | None = None,
) -> SequenceCheck:
    """A posterior predictive check: experiments of every model with draws of everybody's parameters.

    All models meet the same rewards. Measures are means over people.
    """
    if draws < 2:
        raise ValueError(f"draws = {draws}: pass at least 2.")
    threshold, specs = _threshold(trials), plan.everything
    observed = _measures(trials, threshold)
    drawn = {name: draw_coefficients(model, fits[name], trials, draws, seed) for name, model in specs.items()
             if model.coefficients}  # fmt: skip
    simulated = {name: np.empty((draws, len(observed))) for name in specs}
    nobody = np.zeros((len(np.unique(trials.subject)), 0))
    for r in range(draws):
        report(progress, "simulating whole experiments", r, draws)
        design = schedule_of(choices, (seed, r))
        for k, (name, model) in enumerate(specs.items()):
            coef = drawn[name][r] if name in drawn else nobody
            again = play_by(plan, model, choices, design, coef, np.random.default_rng((seed, r, k)))
            simulated[name][r] = _measures(believe(again), threshold)
    names = (*STATISTICS, "mean reward")
    return SequenceCheck(draws, {name: beside(names, observed, values) for name, values in simulated.items()})


def sequence_table(check: SequenceCheck) -> pd.DataFrame:
    """One row for each model and measure."""
    return pd.DataFrame([
        {"model": model, "measure": row.name, "people": row.observed, "predicted": row.mean, "low": row.low,
         "high": row.high, "inside": row.inside}
        for model, rows in check.predictions.items() for row in rows
    ])  # fmt: skip


def _measures(trials: Trials, threshold: float) -> np.ndarray:
    """STATISTICS and the reward, each a mean over people of their mean over trials that are asked for."""
    people, who = np.unique(trials.subject, return_inverse=True)
    values = []
    for hit, asked in _statistics(trials, threshold):
        asked = asked & trials.counts
        count = np.bincount(who[asked], minlength=len(people))
        taken = np.bincount(who[asked], hit[np.arange(len(who)), trials.choice][asked], minlength=len(people))
        values.append(float(np.mean(taken[count > 0] / count[count > 0])) if count.any() else np.nan)
    reward = np.bincount(who, np.asarray(trials.reward, dtype=float)) / np.bincount(who)
    return np.array([*values, float(reward.mean())])


def _threshold(trials: Trials) -> float:
    """What a reward must exceed to be a win: the median, or what is just below the largest reward."""
    reward = np.asarray(trials.reward, dtype=float)
    median, most = float(np.median(reward)), float(reward.max())
    return median if median < most else float(np.nextafter(most, -np.inf))


def _statistics(trials: Trials, threshold: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """(arms that count as a hit, trials that are asked), for each of STATISTICS."""
    reward, at = np.asarray(trials.reward, dtype=float), places_of(trials)
    again = np.arange(trials.arms) == trials.previous[:, None]
    later = trials.previous >= 0
    before = np.concatenate([[0.0], reward[:-1]])  # only read where there is a trial before
    won = before > threshold
    taken = at.spread(1.0 * (np.arange(trials.arms) == trials.choice[:, None]))
    paid = taken * at.spread(reward)[..., None]
    # sums over the trials before
    count, total = (np.cumsum(part, axis=1)[at.block, at.place] - part[at.block, at.place] for part in (taken, paid))
    mean = np.where(count > 0, total / np.maximum(count, 1), -np.inf)
    best = (mean == mean.max(1, keepdims=True)) & (count > 0)
    return [(again, later), (again, later & won), (~again, later & ~won), (best, later)]
