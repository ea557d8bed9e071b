"""What arms pay to simulated people on the user's own task."""

import numpy as np

from .data import Choices, measure_task
from .learners import places_of
from .simulate import Design, design_of

STILL = 0.8  # of the variance of an arm's rewards in a block: without drift, steps from one to the next are as large


def schedule_of(choices: Choices, seed: tuple[int, int]) -> Design:
    """What arms pay to a planted cohort: as `design_of`, and drawn anew where values stay within blocks.

    Then an arm's value is drawn from what its recorded rewards say of it, and its rewards around that, with the mean,
    variance and noise that are measured from the data: people may believe others. Recorded rewards alone would be
    those of arms that people liked, and would come back.
    """
    design = design_of(choices, seed)
    if drifts(choices):
        return design
    task = measure_task(choices)
    rng, at = np.random.default_rng((*seed, 11)), places_of(choices)
    noise = np.broadcast_to(np.asarray(task.noise, dtype=float), (task.arms,))
    cell, shape = at.block * task.arms + choices.choice, (len(at.first), task.arms)
    count = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
    total = np.bincount(cell, choices.reward, minlength=shape[0] * shape[1]).reshape(shape)
    variance, noise = np.asarray(task.variance, dtype=float), np.maximum(noise, 1e-12)
    share = variance / (variance + noise / np.maximum(count, 1e-12))  # of what was seen; an arm without variance has 0
    mean = task.means + share * (total / np.maximum(count, 1) - task.means)
    value = mean + np.sqrt(variance * (1.0 - share)) * rng.normal(size=shape)
    around = np.sqrt(noise) * (variance > 0) * rng.normal(size=design.payoff.shape)
    return design._replace(payoff=value[:, None] + around)


def drifts(choices: Choices) -> bool:
    """Whether values move within blocks: successive rewards of an arm are closer than rewards far apart."""
    at = places_of(choices)
    order = np.lexsort((at.place, choices.choice, at.block))
    cell, reward = (at.block * choices.task.arms + choices.choice)[order], np.asarray(choices.reward, float)[order]
    _, index, count = np.unique(cell, return_inverse=True, return_counts=True)
    off = reward - (np.bincount(index, reward) / count)[index]
    enough = count > 2
    freedom = (count - 1)[enough].sum()
    if not freedom:
        return False
    inside = (off**2)[enough[index]].sum() / freedom
    pairs = (index[1:] == index[:-1]) & enough[index[1:]]
    return bool(0.5 * np.mean(np.diff(reward)[pairs] ** 2) < STILL * inside)
