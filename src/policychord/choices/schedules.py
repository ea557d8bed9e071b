"""What arms pay to simulated people on the user's own task."""

import numpy as np

from .data import Choices, measure_task
from .learners import arms_under
from .places import places_of
from .simulate import Design, design_of
from .tasks import Task


def schedule_of(choices: Choices, seed: tuple[int, int]) -> Design:
    """What arms pay to a planted cohort: as `design_of`, and drawn again where values stay within blocks.

    Then an arm's value is drawn from what its recorded rewards say of it, and its rewards around that, with the mean,
    variance and noise that are measured from the data: people may believe others. Recorded rewards alone would be
    those of arms that people liked, and would be biased upwards.
    """
    design, task = design_of(choices, seed), measure_task(choices)
    if moves(task):
        return design
    rng, at = np.random.default_rng((*seed, 11)), places_of(choices)
    shape = (len(at.first), task.arms)
    condition = np.full(shape[0], "") if choices.condition is None else np.asarray(choices.condition)[at.first]
    arms = arms_under(task, condition)
    mean, variance = np.asarray(arms.mean), np.asarray(arms.variance)
    noise = np.maximum(np.asarray(arms.noise), 1e-12)
    cell = at.block * task.arms + choices.choice
    count = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
    total = np.bincount(cell, choices.reward, minlength=shape[0] * shape[1]).reshape(shape)
    share = variance / (variance + noise / np.maximum(count, 1e-12))  # of what was seen; an arm without variance has 0
    centre = mean + share * (total / np.maximum(count, 1) - mean)
    value = centre + np.sqrt(variance * (1.0 - share)) * rng.normal(size=shape)
    around = (np.sqrt(noise) * (variance > 0))[:, None] * rng.normal(size=design.payoff.shape)
    return design._replace(payoff=value[:, None] + around)


def moves(task: Task) -> bool:
    """Whether an arm's value changes within a block."""
    tasks = (task, *task.conditions)
    return any(np.any(np.asarray(part.drift) > 0) or np.any(np.asarray(part.decay) < 1) for part in tasks)
