"""How people learn from rewards: parts that move beliefs on. Their parameters are fixed, or fitted to each person.

A parameter is a number for everybody or a column (people, 1); names in `free` are fitted person by person and counted.
Beliefs are `Belief(mean, variance)` of (people, arms), in NumPy or JAX.
"""

from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import equinox as eqx
import numpy as np

from .._types import ArrayLike, namespace
from ..worlds.bandit import Belief, update_belief
from .data import Task

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
        return _beta(xp, flat + self.wins, flat + self.losses)

    def update(self, belief: Belief, choice: ArrayLike, reward: ArrayLike, start: Belief) -> Belief:
        xp = namespace(*belief, choice, reward)
        mean, variance = belief
        total = mean * (1.0 - mean) / variance - 1.0  # of the counts
        chosen = xp.arange(mean.shape[-1]) == xp.asarray(choice)[..., None]
        won = xp.where(xp.asarray(reward)[..., None] > self.threshold, 1.0, 0.0)
        wins = mean * total * xp.where(chosen, self.memory, 1.0) + xp.where(chosen, won, 0.0)
        losses = (1.0 - mean) * total * xp.where(chosen, self.memory, 1.0) + xp.where(chosen, 1.0 - won, 0.0)
        return _beta(xp, wins, losses)


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
    odd = [one for one in (*known, *(free or ())) if one not in kind.scales and one not in ("by", "threshold")]
    if odd:
        has = ", ".join(kind.scales) or "no parameters"
        raise ValueError(f"{odd[0]} is no parameter of the learner {name}: it has {has}.")
    return kind(**known) if free is None else kind(**known, free=tuple(free))


def with_parameters(learner: AbstractLearner, values: Mapping[str, Any]) -> AbstractLearner:
    """The same learner with other values, such as one column for each person."""
    names = list(values)
    old = [getattr(learner, name) for name in names]
    if not names:
        return learner
    return eqx.tree_at(
        lambda one: [getattr(one, name) for name in names], learner, [values[name] for name in names],
        is_leaf=lambda leaf: leaf is None or any(leaf is one for one in old),
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


def _beta(xp: Any, wins: Any, losses: Any) -> Belief:
    total = wins + losses
    return Belief(wins / total, wins * losses / (total**2 * (total + 1.0)))
