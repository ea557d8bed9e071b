"""Simulated participants: people whose model is known, to stand in for data and to try the analysis on."""

import numpy as np

from .beliefs import Trials, learn_all, prior_belief
from .data import Choices
from .models import ChoiceModel, Classic
from .settings import GROUPS, TASKS, BanditSettings, Group, Task

SYNTHETIC = "synthetic cohort"


def simulate(
    task: Task, model: ChoiceModel, coef: np.ndarray, *, blocks: int = 20, trials: int = 10, seed=0
) -> Choices:
    """Let people with these coefficients (subjects, coefficients) play: they believe, choose by the model, and learn.

    Values come from N(0, variance) in every block and rewards from N(value, noise); an arm without variance pays
    zero. All arms pay at every trial, though one is seen, so that cohorts that choose differently meet the same luck.
    """
    subjects = len(coef)
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.asarray(coef, dtype=float), blocks, axis=0)
    deviation = np.sqrt(np.asarray(task.variance))
    value = deviation * rng.normal(size=(len(rows), 1, task.arms))
    luck = np.sqrt(task.noise) * (deviation > 0) * rng.normal(size=(len(rows), trials, task.arms))
    dice = rng.random((len(rows), trials))
    reward_of = value + luck
    mean, variance = prior_belief(task, len(rows))
    subject, block = np.repeat(np.arange(1, subjects + 1), blocks), np.tile(np.arange(1, blocks + 1), subjects)
    choice, reward = np.zeros((len(rows), trials), dtype=int), np.zeros((len(rows), trials))
    previous = np.full(len(rows), -1)
    for k in range(trials):
        now = Trials(subject, block, np.full(len(rows), k + 1), choice[:, k], previous, mean, variance, SYNTHETIC)
        prob = np.exp(model.log_proba(now, rows))
        below = np.cumsum(prob, axis=1) <= dice[:, k, None] * prob.sum(1, keepdims=True)
        choice[:, k] = previous = np.minimum(below.sum(1), task.arms - 1)
        reward[:, k] = reward_of[np.arange(len(rows)), k, previous]
        mean, variance = learn_all(mean, variance, previous, reward[:, k], task.noise)
    trial = np.tile(np.arange(1, trials + 1), len(rows))
    return Choices(np.repeat(subject, trials), np.repeat(block, trials), trial, choice.ravel(), reward.ravel(), task,
                   SYNTHETIC)  # fmt: skip


def draw_people(group: Group, count: int, seed=0) -> np.ndarray:
    """Coefficients of `count` people, (people, coefficients)."""
    rng = np.random.default_rng(seed)
    return np.asarray(group.mean) + np.asarray(group.sd) * rng.normal(size=(count, len(group.mean)))


def synthetic(experiment: str, settings: BanditSettings, subjects: int | None = None) -> Choices:
    """A cohort that plays by the Hybrid model, with coefficients like those of the people in the public data."""
    count = settings.cohort_size(experiment) if subjects is None else subjects
    seed = (settings.seed, int(experiment))
    people = draw_people(GROUPS[experiment]["Hybrid"], count, (*seed, 0))
    size = {"blocks": settings.blocks, "trials": settings.trials}
    return simulate(TASKS[experiment], Classic("Hybrid", "probit"), people, **size, seed=(*seed, 1))
