"""How people learn from rewards, and what everybody believes before each choice.

A parameter of a learner is a number for everybody or a column (people, 1); names in `free` are fitted person by person
and counted. Beliefs are `Belief(mean, variance)` of (people, arms), in NumPy or JAX.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import numpy as np

from .._types import ArrayLike, namespace
from ..worlds.bandit import Belief, update_belief
from .data import Choices, Task

Scale = Literal["unit", "positive", "real"]  # what values a parameter may have: (0, 1), above 0, any


class AbstractLearner(eqx.Module):
    """From a belief, a choice and its reward to the next belief."""

    free: eqx.AbstractVar[tuple[str, ...]]
    scales: ClassVar[Mapping[str, Scale]]  # every parameter that may be fitted

    @abstractmethod
    def start(self, mean: ArrayLike, variance: ArrayLike) -> Belief:
        """The belief at the start of a block, from the task's mean and variance of every arm."""

    @abstractmethod
    def update(self, belief: Belief, choice: ArrayLike, reward: ArrayLike, start: Belief) -> Belief:
        """The belief after a reward; `start` is that at the start of the block."""


class Kalman(AbstractLearner):
    """The optimal learner of values that move: `update_belief`, then m -> m0 + decay (m - m0), v -> decay^2 v + drift.

    With `decay = 1` and `drift = 0` values stay, as in the paper. `mean` and `variance` are the task's where None.
    """

    noise: Any = 10.0
    drift: Any = 0.0
    decay: Any = 1.0
    mean: Any = None
    variance: Any = None
    free: tuple[str, ...] = eqx.field(default=(), static=True)

    scales: ClassVar[Mapping[str, Scale]] = MappingProxyType(
        {"noise": "positive", "drift": "positive", "decay": "unit", "mean": "real", "variance": "positive"}
    )

    def start(self, mean: ArrayLike, variance: ArrayLike) -> Belief:
        xp = namespace(mean, variance, self.mean, self.variance)
        centre = mean if self.mean is None else xp.zeros_like(xp.asarray(mean)) + self.mean
        spread = variance if self.variance is None else xp.where(xp.asarray(variance) > 0, self.variance, 0.0)
        return Belief(xp.asarray(centre) * xp.ones_like(xp.asarray(spread)), xp.asarray(spread))

    def update(self, belief: Belief, choice: ArrayLike, reward: ArrayLike, start: Belief) -> Belief:
        after = update_belief(belief, choice, reward, self.noise)
        if self._still():
            return after
        xp = namespace(*after)
        mean = start.mean + self.decay * (after.mean - start.mean)
        # an arm that the task holds for known stays known
        variance = xp.where(start.variance == 0, 0.0, self.decay**2 * after.variance + self.drift)
        return Belief(mean, variance)

    def _still(self) -> bool:
        """Whether values stay between trials, so that not even rounding may move them."""
        return not {"drift", "decay"} & set(self.free) and bool(np.all(self.drift == 0) and np.all(self.decay == 1))


class DeltaRule(AbstractLearner):
    """m + rate (reward - m) for the chosen arm. It knows no uncertainty: the variance stays the task's.

    `start_value` is the task's mean where None.
    """

    rate: Any = 0.3
    start_value: Any = None
    free: tuple[str, ...] = eqx.field(default=("rate",), static=True)

    scales: ClassVar[Mapping[str, Scale]] = MappingProxyType({"rate": "unit", "start_value": "real"})

    def start(self, mean: ArrayLike, variance: ArrayLike) -> Belief:
        return _from_value(self.start_value, mean, variance)

    def update(self, belief: Belief, choice: ArrayLike, reward: ArrayLike, start: Belief) -> Belief:
        return _delta(belief, choice, reward, lambda error, reward: self.rate)


class TwoRates(AbstractLearner):
    """The delta rule with one rate for gains and one for losses.

    `by = "error"`: a gain is more than was expected; `"outcome"`: a gain is a reward above zero.
    """

    rate_gain: Any = 0.3
    rate_loss: Any = 0.3
    start_value: Any = None
    by: Literal["error", "outcome"] = eqx.field(default="error", static=True)
    free: tuple[str, ...] = eqx.field(default=("rate_gain", "rate_loss"), static=True)

    scales: ClassVar[Mapping[str, Scale]] = MappingProxyType(
        {"rate_gain": "unit", "rate_loss": "unit", "start_value": "real"}
    )

    def start(self, mean: ArrayLike, variance: ArrayLike) -> Belief:
        return _from_value(self.start_value, mean, variance)

    def update(self, belief: Belief, choice: ArrayLike, reward: ArrayLike, start: Belief) -> Belief:
        xp = namespace(*belief, reward, self.rate_gain, self.rate_loss)

        def rate(error: Any, reward: Any) -> Any:
            return xp.where((error if self.by == "error" else reward) >= 0, self.rate_gain, self.rate_loss)

        return _delta(belief, choice, reward, rate)


class BetaBernoulli(AbstractLearner):
    """Counts of wins and losses: a reward above `threshold` wins. Mean and variance of the Beta distribution.

    `wins` and `losses` are the counts before anything was seen; `memory` < 1 lets old counts fade.
    """

    wins: Any = 1.0
    losses: Any = 1.0
    memory: Any = 1.0
    threshold: float = eqx.field(default=0.0, static=True)
    free: tuple[str, ...] = eqx.field(default=(), static=True)

    scales: ClassVar[Mapping[str, Scale]] = MappingProxyType(
        {"wins": "positive", "losses": "positive", "memory": "unit"}
    )

    def start(self, mean: ArrayLike, variance: ArrayLike) -> Belief:
        xp = namespace(mean, variance, self.wins, self.losses)
        flat = xp.zeros_like(xp.asarray(mean) * xp.asarray(variance))
        return _beta(flat + self.wins, flat + self.losses)

    def update(self, belief: Belief, choice: ArrayLike, reward: ArrayLike, start: Belief) -> Belief:
        xp = namespace(*belief, choice, reward)
        mean, variance = belief
        total = mean * (1.0 - mean) / variance - 1.0  # of the counts
        chosen = xp.arange(mean.shape[-1]) == xp.asarray(choice)[..., None]
        won = xp.where(xp.asarray(reward)[..., None] > self.threshold, 1.0, 0.0)
        wins = mean * total * xp.where(chosen, self.memory, 1.0) + xp.where(chosen, won, 0.0)
        losses = (1.0 - mean) * total * xp.where(chosen, self.memory, 1.0) + xp.where(chosen, 1.0 - won, 0.0)
        return _beta(wins, losses)


class NoLearning(AbstractLearner):
    """Beliefs stay as they are at the start: what is left is habit and chance."""

    free: tuple[str, ...] = eqx.field(default=(), static=True)

    scales: ClassVar[Mapping[str, Scale]] = MappingProxyType({})

    def start(self, mean: ArrayLike, variance: ArrayLike) -> Belief:
        return _from_value(None, mean, variance)

    def update(self, belief: Belief, choice: ArrayLike, reward: ArrayLike, start: Belief) -> Belief:
        return belief


LEARNERS: Mapping[str, type[AbstractLearner]] = MappingProxyType(
    {"kalman": Kalman, "delta": DeltaRule, "two-rates": TwoRates, "bernoulli": BetaBernoulli, "none": NoLearning}
)


def learner_of(name: str, task: Task, free: tuple[str, ...] | None = None, **values: Any) -> AbstractLearner:
    """A learner by name for a task, with the parameters in `free` fitted to each person (its own default if None)."""
    if name not in LEARNERS:
        raise ValueError(f"learner = {name!r}: there are {', '.join(LEARNERS)}.")
    kind = LEARNERS[name]
    known = ({"noise": task.noise} if kind is Kalman else {}) | values
    if odd := [key for key in (*known, *(free or ())) if key not in (*kind.scales, "by", "threshold")]:
        has = ", ".join(kind.scales) or "no parameters"
        raise ValueError(f"{odd[0]} is no parameter of the learner {name}: it has {has}.")
    return kind(**known) if free is None else kind(**known, free=tuple(free))


def with_parameters(learner: AbstractLearner, values: Mapping[str, Any]) -> AbstractLearner:
    """The same learner with other values, such as one column for each person."""
    if not (names := list(values)):
        return learner
    old = [getattr(learner, name) for name in names]
    return eqx.tree_at(
        lambda part: [getattr(part, name) for name in names], learner, [values[name] for name in names],
        is_leaf=lambda leaf: leaf is None or any(leaf is value for value in old),
    )  # fmt: skip


def _from_value(value: Any, mean: ArrayLike, variance: ArrayLike) -> Belief:
    xp = namespace(mean, variance, value)
    flat = xp.zeros_like(xp.asarray(mean) * xp.asarray(variance))
    return Belief(flat + (xp.asarray(mean) if value is None else value), flat + xp.asarray(variance))


def _delta(belief: Belief, choice: ArrayLike, reward: ArrayLike, rate: Any) -> Belief:
    xp = namespace(*belief, choice, reward)
    chosen = xp.arange(belief.mean.shape[-1]) == xp.asarray(choice)[..., None]
    reward = xp.asarray(reward)[..., None]
    error = reward - belief.mean
    return Belief(belief.mean + xp.where(chosen, rate(error, reward) * error, 0.0), belief.variance)


def _beta(wins: Any, losses: Any) -> Belief:
    total = wins + losses
    return Belief(wins / total, wins * losses / (total**2 * (total + 1.0)))


# ------------------------------------------------------------------------------------ beliefs of everybody


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


class Places(NamedTuple):
    """Where each trial stands among the blocks of people."""

    block: np.ndarray  # (trials)
    place: np.ndarray  # (trials)
    first: np.ndarray  # (blocks) its first trial

    def spread(self, values: Any, fill: float = 0) -> np.ndarray:
        """From trials to (blocks, longest block, ...)."""
        values = np.asarray(values)
        table = np.full((len(self.first), self.place.max() + 1, *values.shape[1:]), fill, dtype=values.dtype)
        table[self.block, self.place] = values
        return table


def places_of(trials: Trials | Choices) -> Places:
    """The consecutive trials of one person and one block are a block."""
    new = np.ones(len(trials.choice), dtype=bool)
    new[1:] = (trials.subject[1:] != trials.subject[:-1]) | (trials.block[1:] != trials.block[:-1])
    block, first = np.cumsum(new) - 1, np.flatnonzero(new)
    return Places(block, np.arange(len(block)) - first[block], first)


def believe(choices: Choices, learner: AbstractLearner | Callable[..., Belief] = update_belief) -> Trials:
    """Beliefs before each choice, from scratch in every block, by a learner.

    The default is the Kalman filter with the task's numbers; `update(belief, choice, reward, noise)` will do too.
    Rewards are recorded, so this is `loops.replay` without an agent: in NumPy, over all blocks at once.
    """
    prior = prior_of(choices)
    previous = np.where(places_of(choices).place > 0, np.roll(choices.choice, 1), -1)
    trials = Trials(
        choices.subject, choices.block, choices.trial, choices.choice, previous, np.asarray(prior.mean),
        np.asarray(prior.variance), choices.source, choices.reward, prior, choices.scored, choices.offered,
    )  # fmt: skip
    if isinstance(learner, AbstractLearner):
        return relearn(trials, learner)
    return _along(trials, prior, lambda belief, row: learner(belief, *_seen(trials, row), choices.task.noise))


def relearn(trials: Trials, learner: AbstractLearner, rows: Mapping[str, np.ndarray] | None = None) -> Trials:
    """The same trials with the beliefs of another learner; `rows` has parameters for every trial, (trials, 1)."""
    if trials.prior is None or trials.reward is None:
        raise ValueError("trials have no rewards and no prior, so that nothing can be learned: make them by `believe`.")
    values = rows or {}
    start = Belief(*map(np.asarray, with_parameters(learner, values).start(*trials.prior)))

    def update(belief: Belief, row: np.ndarray) -> Belief:
        here = with_parameters(learner, {name: value[row] for name, value in values.items()})
        return here.update(belief, *_seen(trials, row), Belief(start.mean[row], start.variance[row]))

    return _along(trials, start, update)


def _seen(trials: Trials, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return trials.choice[row], np.asarray(trials.reward)[row]


def _along(trials: Trials, start: Belief, update: Callable[[Belief, np.ndarray], Belief]) -> Trials:
    """Beliefs before each choice: `start` at the first trial of a block, then one `update` after another."""
    place = places_of(trials).place
    mean, variance = np.array(start.mean, dtype=float), np.array(start.variance, dtype=float)
    order = np.argsort(place, kind="stable")
    for now in np.split(order, np.searchsorted(place[order], np.arange(1, place.max() + 1)))[1:]:
        mean[now], variance[now] = update(Belief(mean[now - 1], variance[now - 1]), now - 1)
    return trials._replace(mean=mean, variance=variance)


def prior_of(choices: Choices) -> Belief:
    """The task's mean and variance of every arm at every trial, (trials, arms); a condition may have its own."""
    prior = prior_belief(choices.task, len(choices.choice))
    if choices.condition is not None:
        for name, values in choices.task.conditions:
            prior.variance[choices.condition == name] = values
    return prior


def prior_belief(task: Task, count: int) -> Belief:
    """Mean and variance of every arm before anything is known, for `count` people or blocks."""
    return Belief(np.tile(task.means, (count, 1)), np.tile(np.asarray(task.variance, dtype=float), (count, 1)))


def take(trials: Trials, which: np.ndarray) -> Trials:
    """Some of the trials, by index or mask."""

    def part(value: Any) -> Any:
        if isinstance(value, Belief):
            return Belief(value.mean[which], value.variance[which])
        return value[which] if isinstance(value, np.ndarray) else value

    return Trials(*map(part, trials))
