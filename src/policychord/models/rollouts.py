"""`Rollouts`: a cost-to-go that builds itself, by following the agent's own primitives in its own model."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from .._calls import call
from .._types import Action, ArrayLike, Observation, Time
from ..actions import AbstractActions, Finite, Sampled
from ..primitives.base import AbstractPrimitive, Draws
from ..primitives.columns import drawable
from .transitions import Random, Tabular

Follow = Literal["each", "prior"]
Reduce = Literal["min", "softmin"]


class Rollouts(eqx.Module):
    """What the next `steps` steps will cost if the primitives are followed from a state: `Cost(cost_to_go=...)`.

    - `primitives`: the agent's own, the dict that `Composer` is given; each is followed by its mean, or, on labels, by
      its most probable action; one of which `Sampled` actions are drawn and no mean is known, by its median.
    - `predict(observation, action, k)`: the next observation, `Random` for a world with chance, of which the mean over
      its futures counts; `stage_cost(observation, action, k)`: what a step costs.
    - `follow`: `each` follows one primitive after another, and takes the least of their costs (`reduce="min"`) or
      -ln mean exp(-cost) (`"softmin"`); `prior` follows the equal mixture of their means.

    Choose `steps` so that the weights no longer change with more; five steps are often no better than one.
    """

    primitives: tuple[AbstractPrimitive, ...]
    actions: AbstractActions
    predict: Callable[[Observation, Action, Time], Observation] | Random
    stage_cost: Callable[[Observation, Action, Time], ArrayLike]
    steps: int = eqx.field(static=True)
    follow: Follow = eqx.field(static=True)
    reduce: Reduce = eqx.field(static=True)

    def __init__(
        self,
        primitives: Mapping[str, AbstractPrimitive] | Sequence[AbstractPrimitive],
        actions: AbstractActions,
        predict: Callable[[Observation, Action, Time], Observation] | Random,
        stage_cost: Callable[[Observation, Action, Time], ArrayLike],
        *,
        steps: int = 30,
        follow: Follow = "each",
        reduce: Reduce = "min",
    ):
        if isinstance(predict, Tabular):
            raise ValueError(
                "predict is Tabular: in a finite world the cost-to-go is a linear system, so pass it to Cost as a "
                "function of the state, or follow the table by Random."
            )
        if not (isinstance(steps, int | np.integer) and steps >= 1):
            raise ValueError(f"steps = {steps!r}: pass a whole number of at least 1.")
        if follow not in ("each", "prior"):
            raise ValueError(f"follow = {follow!r}: use 'each' or 'prior'.")
        if reduce not in ("min", "softmin"):
            raise ValueError(f"reduce = {reduce!r}: use 'min' or 'softmin'.")
        self.primitives = tuple(primitives.values() if isinstance(primitives, Mapping) else primitives)
        self.actions, self.predict, self.stage_cost = actions, predict, stage_cost
        self.steps, self.follow, self.reduce = int(steps), follow, reduce
        if follow == "prior" and self._labels():
            raise ValueError('follow = "prior" mixes means, and the mean of labels is not an action: use "each".')

    def __call__(self, observation: Observation, k: Time) -> Float[Array, ""]:
        """The cost of the next steps from here."""
        costs = self.each(observation, k)
        return jnp.min(costs) if self.reduce == "min" else np.log(len(costs)) - logsumexp(-costs)

    def each(self, observation: Observation, k: Time) -> Float[Array, " followed"]:
        """The cost of following each primitive from here, or the one of following their mixture."""

        def mean(x: Observation, t: Time) -> Array:
            return jnp.mean(jnp.stack([self._act(p, x, t) for p in self.primitives]), axis=0)

        if self.follow == "prior":
            return self._cost(mean, observation, k)[None]
        return jnp.stack([self._cost(partial(self._act, p), observation, k) for p in self.primitives])

    def _cost(self, act: Callable[[Observation, Time], Array], observation: Observation, k: Time) -> Float[Array, ""]:
        def advance(x: Observation, i: Array, number: Array | int = 0) -> tuple[Observation, Array]:
            action = act(x, k + i)
            cost = jnp.asarray(call("stage_cost", self.stage_cost, x, action, k + i), dtype=float)
            following = self._follow(x, action, k + i, number)
            return jax.tree_util.tree_map(lambda new, old: jnp.asarray(new, dtype=old.dtype), following, x), cost

        observation = jax.tree_util.tree_map(lambda a: jnp.asarray(a, dtype=float), observation)
        if not isinstance(self.predict, Random):
            _, costs = jax.lax.scan(advance, observation, jnp.arange(self.steps))
            return jnp.sum(costs)

        def future(number: Array) -> Array:
            _, costs = jax.lax.scan(partial(advance, number=number), observation, jnp.arange(self.steps))
            return jnp.sum(costs)

        return jnp.mean(jax.vmap(future)(jnp.arange(self.predict.samples)))

    def _follow(self, x: Observation, action: Array, k: Time, number: Array | int) -> Observation:
        """The next observation; in a world with chance that of the future with this number."""
        if not isinstance(self.predict, Random):
            return call("predict", self.predict, x, action, k)
        stream = jax.random.fold_in(jax.random.fold_in(jax.random.key(self.predict.seed), number), k)
        return call("predict", self.predict.predict, x, action, k, stream)

    def _act(self, primitive: AbstractPrimitive, observation: Observation, k: Time) -> Array:
        actions = self.actions
        if isinstance(actions, Sampled):
            (primitive,) = drawable((primitive,), actions, observation, k)
        mean = getattr(primitive, "centre", None)
        if mean is not None and not self._labels():
            own = mean(actions, observation, k)
            if isinstance(actions, Sampled) and actions.squash:
                return actions.at_points(own[None]).points[0]
            return actions.inside(own)
        if isinstance(actions, Sampled):
            assert isinstance(primitive, Draws)  # a composer refuses other ones
            middle = jnp.full((1, *actions.low.shape), 0.5)
            return actions.at_points(primitive.sample(middle, actions, observation, k)).points[0]
        log_prob = primitive.log_prob(actions, observation, k)
        return actions.at(jnp.argmax(log_prob)) if self._labels() else actions.mean(jnp.exp(log_prob))

    def _labels(self) -> bool:
        return isinstance(self.actions, Finite) and bool(self.actions.labels)
