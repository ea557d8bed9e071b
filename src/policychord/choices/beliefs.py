"""What people believe before each choice: the Kalman filter of the environment along everybody's rewards at once."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..envs.bandit import Belief, learn
from .data import Choices, Task


class Trials(NamedTuple):
    """Choices and the beliefs they were made with, one row a trial. This is what models are fitted to."""

    subject: np.ndarray  # (trials)
    block: np.ndarray
    trial: np.ndarray
    choice: np.ndarray  # arms are numbered from 0
    previous: np.ndarray  # the choice before in the same block, -1 if there is none
    mean: np.ndarray  # (trials, arms), before the choice
    variance: np.ndarray  # (trials, arms)
    source: str

    @property
    def arms(self) -> int:
        return self.mean.shape[1]


def believe(choices: Choices, update: Callable[..., Belief] = learn) -> Trials:
    """Beliefs before each choice, from scratch in every block; `update(belief, choice, reward, noise)` moves them on.

    Rewards are recorded, so this is `loops.replay` without an agent: in NumPy, over all blocks at once.
    """
    _, episode = np.unique(np.stack([choices.subject, choices.block]), axis=1, return_inverse=True)
    starts = np.flatnonzero(np.diff(episode, prepend=-1))
    place = np.arange(len(episode)) - starts[episode]  # of a trial within its block
    belief = prior_belief(choices.task, len(starts))
    shape = (len(episode), choices.task.arms)
    mean, variance, previous = np.empty(shape), np.empty(shape), np.full(len(episode), -1)
    for k in range(place.max() + 1):
        now = np.flatnonzero(place == k)
        who = episode[now]
        before = Belief(belief.mean[who], belief.variance[who])
        mean[now], variance[now] = before
        if k:
            previous[now] = choices.choice[now - 1]
        after = update(before, choices.choice[now], choices.reward[now], choices.task.noise)
        belief.mean[who], belief.variance[who] = after
    return Trials(choices.subject, choices.block, choices.trial, choices.choice, previous, mean, variance,
                  choices.source)  # fmt: skip


def prior_belief(task: Task, count: int) -> Belief:
    """Mean and variance of every arm before anything is known, for `count` people or blocks."""
    return Belief(np.zeros((count, task.arms)), np.tile(np.asarray(task.variance, dtype=float), (count, 1)))


def take(trials: Trials, which: np.ndarray) -> Trials:
    """Some of the trials, by index or mask."""
    arrays: dict[str, Any] = {name: value[which] for name, value in trials._asdict().items() if name != "source"}
    return Trials(**arrays, source=trials.source)
