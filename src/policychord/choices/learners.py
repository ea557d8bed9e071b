"""How people learn from rewards, and what everybody believes before each choice.

A parameter of a learner is a number for everybody or a column (people, 1); names in `free` are fitted person by person
and counted. Beliefs are `Belief(mean, variance)` of (people, arms), in NumPy or JAX.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import numpy as np

from .._types import ArrayLike, namespace
from ..worlds.bandit import Belief, update_belief
from .places import places_of
from .tasks import Arms, Task

if TYPE_CHECKING:
    from .data import Choices

Scale = Literal["unit", "positive", "weight", "real"]  # values: (0, 1), above 0 in units of reward^2 or without, any


class AbstractLearner(eqx.Module):
    """From a belief, a choice and its reward to the next belief."""

    free: eqx.AbstractVar[tuple[str, ...]]
    scales: ClassVar[Mapping[str, Scale]]  # every parameter that may be fitted
    apart: ClassVar[bool] = False  # whether rewards come as gain and loss, on one more axis

    @abstractmethod
    def start(self, mean: ArrayLike, variance: ArrayLike) -> Belief:
        """The belief at the start of a block, from the task's mean and variance of every arm."""

    @abstractmethod
    def update(self, belief: Belief, choice: ArrayLike, reward: ArrayLike, start: Arms) -> Belief:
        """The belief after a reward; `start` has the mean and variance of `start`, and the task's other numbers."""


class Kalman(AbstractLearner):
    """The optimal learner of values that move: `update_belief`, then m -> m0 + decay (m - m0), v -> decay^2 v + drift.

    Numbers are the task's where None. With `decay = 1` and `drift = 0` values stay, as in the paper.
    """

    noise: Any = None
    drift: Any = None
    decay: Any = None
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

    def update(self, belief: Belief, choice: ArrayLike, reward: ArrayLike, start: Arms) -> Belief:
        xp = namespace(*belief, choice, reward, start.mean, self.noise, self.drift, self.decay)
        # an arm whose rewards have no noise keeps none
        noise = start.noise if self.noise is None else xp.where(xp.asarray(start.noise) > 0, self.noise, 0.0)
        drift, decay = (getattr(start if getattr(self, name) is None else self, name) for name in ("drift", "decay"))
        after = update_belief(belief, choice, reward, noise)
        # where values stay not even rounding may move them
        mean = xp.where(decay == 1, after.mean, start.mean + decay * (after.mean - start.mean))
        # an arm that the task holds for known stays known
        variance = xp.where(xp.asarray(start.variance) == 0, 0.0, decay**2 * after.variance + drift)
        return Belief(mean, variance)


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

    def update(self, belief: Belief, choice: ArrayLike, reward: ArrayLike, start: Arms) -> Belief:
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

    def update(self, belief: Belief, choice: ArrayLike, reward: ArrayLike, start: Arms) -> Belief:
        xp = namespace(*belief, reward, self.rate_gain, self.rate_loss)

        def rate(error: Any, reward: Any) -> Any:
            return xp.where((error if self.by == "error" else reward) >= 0, self.rate_gain, self.rate_loss)

        return _delta(belief, choice, reward, rate)


class GainLoss(AbstractLearner):
    """The delta rule on gain + loss_weight loss: a loss may count more than a gain, or less.

    Gains and losses are what the table has in two columns, else the rewards above and below zero.
    """

    rate: Any = 0.3
    loss_weight: Any = 1.0
    start_value: Any = None
    free: tuple[str, ...] = eqx.field(default=("rate", "loss_weight"), static=True)

    scales: ClassVar[Mapping[str, Scale]] = MappingProxyType(
        {"rate": "unit", "loss_weight": "weight", "start_value": "real"}
    )
    apart: ClassVar[bool] = True

    def start(self, mean: ArrayLike, variance: ArrayLike) -> Belief:
        return _from_value(self.start_value, mean, variance)

    def update(self, belief: Belief, choice: ArrayLike, reward: ArrayLike, start: Arms) -> Belief:
        xp = namespace(*belief, reward, self.loss_weight)
        gain, loss = xp.asarray(reward)[..., 0], xp.asarray(reward)[..., 1]
        weight = xp.reshape(xp.asarray(self.loss_weight), xp.shape(self.loss_weight)[:-1])  # (people), or none
        return _delta(belief, choice, gain + weight * loss, lambda error, reward: self.rate)


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

    def update(self, belief: Belief, choice: ArrayLike, reward: ArrayLike, start: Arms) -> Belief:
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

    def update(self, belief: Belief, choice: ArrayLike, reward: ArrayLike, start: Arms) -> Belief:
        return belief


LEARNERS: Mapping[str, type[AbstractLearner]] = MappingProxyType(
    {
        "kalman": Kalman,
        "delta": DeltaRule,
        "two-rates": TwoRates,
        "gain-loss": GainLoss,
        "bernoulli": BetaBernoulli,
        "none": NoLearning,
    }
)


def learner_of(name: str, free: tuple[str, ...] | None = None, **values: Any) -> AbstractLearner:
    """A learner by name, with the parameters in `free` fitted to each person (its own default if None)."""
    if name not in LEARNERS:
        raise ValueError(f"learner = {name!r}: there are {', '.join(LEARNERS)}.")
    kind = LEARNERS[name]
    if odd := [key for key in (*values, *(free or ())) if key not in (*kind.scales, "by", "threshold")]:
        has = ", ".join(kind.scales) or "no parameters"
        raise ValueError(f"{odd[0]} is no parameter of the learner {name}: it has {has}.")
    return kind(**values) if free is None else kind(**values, free=tuple(free))


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
    prior: Arms | None = None  # (trials, arms) what the task says of every arm in the trial's block
    scored: np.ndarray | None = None  # (trials) whether a choice counts in likelihoods; all where None
    offered: np.ndarray | None = None  # (trials, arms) whether an arm could be taken; all where None
    loss: np.ndarray | None = None  # (trials) the part of the reward that was lost, at most 0

    @property
    def arms(self) -> int:
        return self.mean.shape[1]

    @property
    def counts(self) -> np.ndarray:
        """Whether each choice counts in likelihoods, (trials)."""
        return np.ones(len(self.choice), dtype=bool) if self.scored is None else self.scored


def believe(choices: "Choices", learner: AbstractLearner | Callable[..., Belief] | None = None) -> Trials:
    """Beliefs before each choice, from scratch in every block, by a learner.

    The default is the Kalman filter with the task's numbers; `update(belief, choice, reward, noise)` will do too.
    Rewards are recorded, so this is `loops.replay` without an agent: in NumPy, over all blocks at once.
    """
    prior = prior_of(choices)
    previous = np.where(places_of(choices).place > 0, np.roll(choices.choice, 1), -1)
    trials = Trials(
        subject=choices.subject,
        block=choices.block,
        trial=choices.trial,
        choice=choices.choice,
        previous=previous,
        mean=np.asarray(prior.mean),
        variance=np.asarray(prior.variance),
        source=choices.source,
        reward=choices.reward,
        prior=prior,
        scored=choices.scored,
        offered=choices.offered,
        loss=np.minimum(choices.reward, 0.0) if choices.loss is None else choices.loss,
    )
    if learner is None or isinstance(learner, AbstractLearner):
        return relearn(trials, learner or Kalman())
    start, noise = Belief(*prior[:2]), np.asarray(prior.noise)
    return _along(trials, start, lambda belief, row: learner(belief, *_seen(trials, row), noise[row]))


def relearn(trials: Trials, learner: AbstractLearner, rows: Mapping[str, np.ndarray] | None = None) -> Trials:
    """The same trials with the beliefs of another learner; `rows` has parameters for every trial, (trials, 1)."""
    if trials.prior is None or trials.reward is None:
        raise ValueError("trials have no rewards and no prior, so that nothing can be learned: make them by `believe`.")
    values = rows or {}
    start = begin(with_parameters(learner, values), trials.prior)

    def update(belief: Belief, row: np.ndarray) -> Belief:
        here = with_parameters(learner, {name: value[row] for name, value in values.items()})
        return here.update(belief, *_seen(trials, row, learner.apart), take_arms(start, row))

    return _along(trials, Belief(*start[:2]), update)


def begin(learner: AbstractLearner, task: Arms) -> Arms:
    """What the task says of every arm, with the mean and variance that the learner starts from."""
    mean, variance = learner.start(task.mean, task.variance)
    return task._replace(mean=mean, variance=variance)


def take_arms(arms: Arms, rows: Any) -> Arms:
    """Some of the rows."""
    return Arms(*(np.asarray(part)[rows] for part in arms))


def _seen(trials: Trials, row: np.ndarray, apart: bool = False) -> tuple[np.ndarray, np.ndarray]:
    reward = np.asarray(trials.reward)[row]
    if apart:
        loss = np.asarray(trials.loss)[row]
        reward = np.stack([reward - loss, loss], axis=-1)
    return trials.choice[row], reward


def _along(trials: Trials, start: Belief, update: Callable[[Belief, np.ndarray], Belief]) -> Trials:
    """Beliefs before each choice: `start` at the first trial of a block, then one `update` after another."""
    place = places_of(trials).place
    mean, variance = np.array(start.mean, dtype=float), np.array(start.variance, dtype=float)
    order = np.argsort(place, kind="stable")
    for now in np.split(order, np.searchsorted(place[order], np.arange(1, place.max() + 1)))[1:]:
        mean[now], variance[now] = update(Belief(mean[now - 1], variance[now - 1]), now - 1)
    return trials._replace(mean=mean, variance=variance)


def prior_of(choices: "Choices") -> Arms:
    """What the task says of every arm at every trial, (trials, arms); a condition may have its own."""
    if choices.condition is None:
        return prior_belief(choices.task, len(choices.choice))
    return arms_under(choices.task, choices.condition)


def arms_under(task: Task, condition: np.ndarray) -> Arms:
    """What the task says of every arm under each condition, (conditions, arms)."""
    every = prior_belief(task, len(condition))
    for part in task.conditions:
        for values, own in zip(every, part.numbers, strict=True):
            np.asarray(values)[condition == part.name] = own
    return every


def prior_belief(task: Task, count: int) -> Arms:
    """What the task says of every arm before anything is known, for `count` people or blocks."""
    return Arms(*(np.tile(np.asarray(values), (count, 1)) for values in task.numbers))


def take(trials: Trials, which: np.ndarray) -> Trials:
    """Some of the trials, by index or mask."""

    def part(value: Any) -> Any:
        if isinstance(value, Arms):
            return take_arms(value, which)
        return value[which] if isinstance(value, np.ndarray) else value

    return Trials(*map(part, trials))
