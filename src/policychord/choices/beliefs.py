"""What people believe before each choice: a learner along everybody's rewards at once."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..worlds.bandit import Belief, update_belief
from .data import Choices, Task
from .learners import AbstractLearner, with_parameters


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
    reward: np.ndarray | None = None  # (trials); learners of their own need it
    prior: Belief | None = None  # (trials, arms) the task's, at the start of the trial's block
    scored: np.ndarray | None = None  # (trials) whether a choice counts in likelihoods; all where None
    offered: np.ndarray | None = None  # (trials, arms) whether an arm could be taken; all where None

    @property
    def arms(self) -> int:
        return self.mean.shape[1]

    @property
    def counts(self) -> np.ndarray:
        """Whether each choice counts in likelihoods, (trials)."""
        return np.ones(len(self.choice), dtype=bool) if self.scored is None else self.scored


def believe(choices: Choices, learner: AbstractLearner | Callable[..., Belief] = update_belief) -> Trials:
    """Beliefs before each choice, from scratch in every block, by a learner of `learners`.

    The default is the Kalman filter with the task's numbers; `update(belief, choice, reward, noise)` will do too.
    Rewards are recorded, so this is `loops.replay` without an agent: in NumPy, over all blocks at once.
    """
    prior, previous = prior_of(choices), np.full(len(choices.choice), -1)
    same = (choices.subject[1:] == choices.subject[:-1]) & (choices.block[1:] == choices.block[:-1])
    previous[1:][same] = choices.choice[:-1][same]
    trials = Trials(
        choices.subject, choices.block, choices.trial, choices.choice, previous, np.asarray(prior.mean),
        np.asarray(prior.variance),
        choices.source, choices.reward, prior, choices.scored, choices.offered,
    )  # fmt: skip
    if not isinstance(learner, AbstractLearner):
        return trials._replace(**_along(trials, prior, lambda *now: learner(*now, choices.task.noise))._asdict())
    return relearn(trials, learner)


def relearn(trials: Trials, learner: AbstractLearner, rows: dict[str, np.ndarray] | None = None) -> Trials:
    """The same trials with the beliefs of another learner; `rows` has parameters for every trial, (trials, 1)."""
    if trials.prior is None or trials.reward is None:
        raise ValueError("trials have no rewards and no prior, so that nothing can be learned: make them by `believe`.")
    values = rows or {}
    start = with_parameters(learner, values).start(*trials.prior)

    def step(belief: Belief, choice: np.ndarray, reward: np.ndarray, now: np.ndarray) -> Belief:
        one = with_parameters(learner, {name: value[now] for name, value in values.items()})
        return one.update(belief, choice, reward, Belief(start.mean[now], start.variance[now]))

    found = _along(trials, Belief(*map(np.asarray, start)), step, numbered=True)
    return trials._replace(mean=np.asarray(found.mean), variance=np.asarray(found.variance))


def _along(trials: Trials, start: Belief, update: Callable[..., Belief], numbered: bool = False) -> Belief:
    """Beliefs before each choice: `start` at the first trial of a block, then one update after another."""
    new = np.ones(len(trials.choice), dtype=bool)
    new[1:] = (trials.subject[1:] != trials.subject[:-1]) | (trials.block[1:] != trials.block[:-1])
    episode = np.cumsum(new) - 1
    place = np.arange(len(episode)) - np.flatnonzero(new)[episode]  # of a trial within its block
    mean, variance = np.array(start.mean, dtype=float), np.array(start.variance, dtype=float)
    order = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[order], np.arange(1, place.max() + 2))
    for k in range(1, place.max() + 1):
        now = order[bounds[k - 1] : bounds[k]]
        before = now - 1
        given = Belief(mean[before], variance[before]), trials.choice[before], np.asarray(trials.reward)[before]
        mean[now], variance[now] = update(*given, before) if numbered else update(*given)
    return Belief(mean, variance)


def prior_of(choices: Choices) -> Belief:
    """The task's mean and variance of every arm at every trial, (trials, arms); a condition may have its own."""
    task, count = choices.task, len(choices.choice)
    variance = np.tile(np.asarray(task.variance, dtype=float), (count, 1))
    if task.conditions and choices.condition is not None:
        for name, values in task.conditions:
            variance[choices.condition == name] = values
    return Belief(np.tile(task.means, (count, 1)), variance)


def prior_belief(task: Task, count: int) -> Belief:
    """Mean and variance of every arm before anything is known, for `count` people or blocks."""
    return Belief(np.tile(task.means, (count, 1)), np.tile(np.asarray(task.variance, dtype=float), (count, 1)))


def take(trials: Trials, which: np.ndarray) -> Trials:
    """Some of the trials, by index or mask."""

    def some(value: Any) -> Any:
        if isinstance(value, Belief):
            return Belief(value.mean[which], value.variance[which])
        return value[which] if isinstance(value, np.ndarray) else value

    return Trials(*map(some, trials))
