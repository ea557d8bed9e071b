"""Simulated participants: people whose model is known, to stand in for data and to try the analysis on."""

from typing import NamedTuple

import numpy as np

from ..envs.bandit import learn
from .beliefs import Trials, prior_belief
from .data import TASKS, Choices, Task
from .models import ChoiceModel, classic, log_proba

SYNTHETIC = "synthetic cohort"
SUBJECTS = {"1": 45, "2": 44}  # of the public data
Seed = int | tuple[int, ...]


class Group(NamedTuple):
    """Normal distributions of a model's coefficients over people."""

    mean: tuple[float, ...]
    sd: tuple[float, ...]


# Means over participants of the probit fits to the public data, rounded. The sds are somewhat smaller than those of the
# fits, which hold estimation noise too; how much smaller is a choice. A composed cohort has the Hybrid's.
GROUPS = {
    "1": {
        "UCB": Group((1.3, 0.6), (0.8, 0.5)),
        "Thompson": Group((1.5,), (0.9,)),
        "Hybrid": Group((2.1, 0.5), (1.2, 0.45)),
        "Value": Group((0.9,), (0.5,)),
    },
    "2": {
        "UCB": Group((0.25, 0.25), (0.1, 0.2)),
        "Thompson": Group((0.86,), (0.35,)),
        "Hybrid": Group((1.0, 0.16), (0.45, 0.2)),
        "Value": Group((0.17,), (0.06,)),
    },
}


def draw_people(group: Group, count: int, seed: Seed = 0) -> np.ndarray:
    """Coefficients of `count` people, (people, coefficients)."""
    rng = np.random.default_rng(seed)
    return np.asarray(group.mean) + np.asarray(group.sd) * rng.normal(size=(count, len(group.mean)))


def simulate(
    task: Task, model: ChoiceModel, coef: np.ndarray, *, blocks: int = 20, trials: int = 10, seed: Seed = 0
) -> Choices:
    """Let people with these coefficients (subjects, coefficients) play: they believe, choose by the model, and learn.

    Values come from N(0, variance) in every block and rewards from N(value, noise); an arm without variance pays
    zero. All arms pay at every trial, though one is seen, so that cohorts that choose differently meet the same noise.
    """
    subjects = len(coef)
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.asarray(coef, dtype=float), blocks, axis=0)
    deviation = np.sqrt(np.asarray(task.variance))
    value = deviation * rng.normal(size=(len(rows), 1, task.arms))
    noise = np.sqrt(task.noise) * (deviation > 0) * rng.normal(size=(len(rows), trials, task.arms))
    uniform = rng.random((len(rows), trials))
    reward_of = value + noise
    belief = prior_belief(task, len(rows))
    subject, block = np.repeat(np.arange(1, subjects + 1), blocks), np.tile(np.arange(1, blocks + 1), subjects)
    choice, reward = np.zeros((len(rows), trials), dtype=int), np.zeros((len(rows), trials))
    previous = np.full(len(rows), -1)
    for k in range(trials):
        mean, variance = map(np.asarray, belief)
        number = np.full(len(rows), k + 1)
        now = Trials(subject, block, number, choice[:, k], previous, mean, variance, SYNTHETIC)
        prob = np.exp(log_proba(model, now, rows))
        below = np.cumsum(prob, axis=1) <= uniform[:, k, None] * prob.sum(1, keepdims=True)
        choice[:, k] = previous = np.minimum(below.sum(1), task.arms - 1)
        reward[:, k] = reward_of[np.arange(len(rows)), k, previous]
        belief = learn(belief, previous, reward[:, k], task.noise)
    trial = np.tile(np.arange(1, trials + 1), len(rows))
    return Choices(np.repeat(subject, trials), np.repeat(block, trials), trial, choice.ravel(), reward.ravel(), task,
                   SYNTHETIC)  # fmt: skip


def synthetic(
    experiment: str, subjects: int | None = None, *, blocks: int = 20, trials: int = 10, seed: int = 0
) -> Choices:
    """A cohort that plays by the Hybrid model, with coefficients like those of the people in the public data.

    `subjects` are as many as in the data unless given.
    """
    count = SUBJECTS[experiment] if subjects is None else subjects
    people = draw_people(GROUPS[experiment]["Hybrid"], count, (seed, int(experiment), 0))
    size = {"blocks": blocks, "trials": trials}
    return simulate(TASKS[experiment], classic("Hybrid", "probit"), people, **size, seed=(seed, int(experiment), 1))
