"""What weights say of people beyond the task: the same trials without an attitude to uncertainty, with other people's
coefficients, and people whose attitudes were planted."""

from typing import NamedTuple

import numpy as np

from policychord.choices import (
    PAPER,
    TASKS,
    Analysis,
    Link,
    Trials,
    analyse,
    classic,
    coefficients_of,
    composed,
    fit,
    simulate_choices,
    take,
    weigh,
)

COMMON = 300  # trials of each experiment on which everybody's weights are compared
PLANTED = 60  # people
# uniform ranges of the planted coefficients of V/TU and RU, about what people's fits cover
RANGES = {"1": ((1.0, 3.0), (-1.0, 1.0)), "2": ((0.5, 1.5), (-0.3, 0.3))}


class Planted(NamedTuple):
    """People with planted coefficients of V/TU and RU, and the mean weights that the analysis gives them."""

    coefficients: np.ndarray  # (people, 2)
    weights: np.ndarray  # (people, primitives)


class OnSameTrials(NamedTuple):
    """Mean weights of everybody on the same trials: with each person's own fit, whoever made the choices."""

    first: np.ndarray  # people of Experiment 1: (people, experiment of the trials, primitives)
    second: np.ndarray


def neutral_weights(fitted: Analysis) -> np.ndarray:
    """The weights at every trial if each person's coefficient of RU, the attitude to uncertainty, were zero."""
    trials = fitted.trials
    coef = coefficients_of(fitted.models["Hybrid"], trials) * np.array([1.0, 0.0])
    return weigh(composed(PAPER, link=fitted.link, eps=fitted.eps), trials, coef).weights


def weigh_on_same_trials(both: tuple[Trials, Trials], link: Link, eps: float) -> OnSameTrials:
    """Fit the Hybrid to each person of both experiments, and weigh some trials of both with everybody's fit."""
    coefs = [fit(classic("Hybrid", link), trials).coef for trials in both]
    model, groups = composed(PAPER, link=link, eps=eps), []
    for coef in coefs:
        per_task = []
        for trials in both:
            size = len(trials.choice)
            kept = np.zeros(size, dtype=bool)
            kept[np.linspace(0, size - 1, min(COMMON, size)).astype(int)] = True
            seen = take(trials, kept)
            rows = len(seen.choice)
            per_task.append([weigh(model, seen, np.tile(own, (rows, 1))).weights.mean(axis=0) for own in coef])
        groups.append(np.stack(per_task, axis=1))
    return OnSameTrials(*groups)


def plant_attitudes(experiment: str, eps: float, seed: int) -> Planted:
    """People who choose by the Hybrid with coefficients from `RANGES`, analysed as people are (probit)."""
    rng = np.random.default_rng((seed, int(experiment), 21))
    coefficients = np.stack([rng.uniform(low, high, PLANTED) for low, high in RANGES[experiment]], axis=1)
    choices = simulate_choices(TASKS[experiment], classic("Hybrid"), coefficients, seed=(seed, int(experiment), 22))
    fitted = analyse(choices, "probit", eps)
    weights, subject = fitted.ours.composition.weights, fitted.trials.subject
    return Planted(coefficients, np.stack([weights[subject == person].mean(axis=0) for person in np.unique(subject)]))
