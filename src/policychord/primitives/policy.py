"""`Policy`: anybody's trained policy as a primitive, through plain Python."""

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._calls import call
from .._types import ArrayLike, Observation, Time, is_traced
from ..actions import AbstractActions, Finite, Sampled
from .base import AbstractPrimitive
from .gaussian import Gaussian
from .trained import OwnDistribution, own_distribution


class Policy(AbstractPrimitive):
    """Whatever `predict(observation)` answers, with a spread around it; or the policy's own distribution.

    `policy` is an object with Stable-Baselines3's `predict(observation, state=None, episode_start=None,
    deterministic=False)`, or a callable from one observation to one action. `predict` is given a batch of observations
    and answers with a batch of actions, as Stable-Baselines3 does; a callable is given one observation at a time. Both
    run as ordinary Python (torch, NumPy, a look-up), outside the compiled loop.

    - `spread`: on a grid, the standard deviation of a Gaussian around the answer. On a list of labels, the probability
      shared by the other actions.
    - `observe(observation, k)` makes what the policy sees of what the agent sees; without it they are the same.
    - `distribution="own"`, in place of a spread, takes the distribution of a Stable-Baselines3 policy: PPO's and A2C's
      categorical or Gaussian, SAC's squashed Gaussian, the softmax of DQN's values (`spread` is its temperature then,
      1 if it is not given). On a grid every point has the probability of its cell. Of `Sampled` actions PPO and A2C
      take the Gaussian, cut at the sides of the box; SAC needs `Sampled(low, high, squash=True)` with its own limits.
    - `state(observation, k)`: the state of a recurrent policy before it sees this, a tuple of arrays. It is part of
      what the agent sees; `policychord.gym.Recurrent` is an environment that shows it. The policy's batches have their
      axis second, as those of sb3-contrib.
    """

    policy: "_Same" = eqx.field(static=True)
    spread: Float[Array, "..."] | None
    own: bool = eqx.field(static=True)
    observe: Callable[[Observation, Time], Any] | None
    state: Callable[[Observation, Time], Any] | None

    def __init__(
        self,
        policy: Any,
        spread: ArrayLike | None = None,
        observe: Callable[[Observation, Time], Any] | None = None,
        *,
        distribution: Literal["spread", "own"] = "spread",
        state: Callable[[Observation, Time], Any] | None = None,
    ):
        if not (callable(getattr(policy, "predict", None)) or callable(policy)):
            raise ValueError(
                f"policy is a {type(policy).__name__}: pass an object with predict(observation, ...), or a function."
            )
        if distribution not in ("spread", "own"):
            raise ValueError(f"distribution = {distribution!r}: use 'spread' (around its answer) or 'own'.")
        if state is not None and not hasattr(policy, "predict"):
            raise ValueError("state belongs to a policy with predict; a function can look at the observation itself.")
        if distribution == "spread" or spread is not None:
            values = np.asarray(np.nan if spread is None else spread, dtype=float)
            if not np.all(np.isfinite(values) & (values > 0)):
                raise ValueError(
                    f"spread = {values.tolist()}: pass a positive number, or distribution='own' for a policy that has "
                    "one; a policy without any spread cannot be mixed."
                )
        self.own = distribution == "own"
        if self.own and own_distribution(policy).kind != "values" and spread is not None:
            raise ValueError(
                f"spread = {spread!r}: {type(policy).__name__} has a distribution of its own; only one with values "
                "(DQN) needs a spread, as the temperature of their softmax. Leave it out."
            )
        self.policy, self.observe, self.state = _Same(policy), observe, state
        self.spread = None if spread is None else jnp.asarray(values)

    def log_prob(self, actions: AbstractActions, observation: Observation, k: Time) -> Float[Array, " d"]:
        if self.own:
            own = own_distribution(self.policy.value)
            return own.log_prob(actions, self._ask(observation, k, own.shape, np.dtype(float), own), self.spread)
        spread = jnp.asarray(self.spread)
        if isinstance(actions, Finite) and actions.labels:
            if spread.ndim or (not is_traced(spread) and not np.asarray(spread) < 1):
                raise ValueError(f"spread = {spread}: with labels it is one probability, so it lies below 1.")
            answer = self._ask(observation, k, (), np.dtype(actions.points.dtype))
            chosen = actions.points == answer
            shared = spread if actions.size > 1 else 0.0  # there is no other action
            others = jnp.log(shared) - np.log(max(actions.size - 1, 1))
            # an answer that is not in the list gives NaN, which no certificate survives
            log_prob = jnp.where(chosen, jnp.log1p(-shared), others)
            return jnp.where(jnp.any(chosen), log_prob, jnp.nan)
        answer = self._ask(observation, k, actions.points.shape[1:], np.dtype(actions.points.dtype))
        return Gaussian(lambda _, k: answer, sd=spread).log_prob(actions, observation, k)

    def gaussian(self, actions: Sampled, observation: Observation, k: Time) -> Gaussian:
        """What it would do here, as the Gaussian that `Sampled` actions are drawn from."""
        self.check_drawn(actions)
        if not self.own:
            answer, spread = self._ask(observation, k, actions.low.shape, np.dtype(float)), self.spread
            return Gaussian(lambda x, k: answer, lambda x, k: spread)
        own = own_distribution(self.policy.value)
        mean, sd = self._ask(observation, k, own.shape, np.dtype(float), own)
        return Gaussian(lambda x, k: mean, lambda x, k: sd, outside="tail")

    def check_drawn(self, actions: Sampled) -> None:
        """Complain unless these actions can be drawn from it."""
        if self.own:
            own_distribution(self.policy.value).fits(actions)
        elif actions.squash:
            raise ValueError(
                "a policy with a spread speaks of actions, and squashed ones are drawn before they are squashed: "
                "leave squash out, or use distribution='own' with a policy that squashes (SAC)."
            )

    def _ask(
        self,
        observation: Observation,
        k: Time,
        shape: tuple[int, ...],
        dtype: np.dtype,
        own: OwnDistribution | None = None,
    ) -> Array:
        """The policy's answer: an action, or the numbers of its own distribution."""
        seen = observation if self.observe is None else self.observe(observation, k)
        state = None if self.state is None else tuple(self.state(observation, k))
        arguments = jax.tree_util.tree_map(jnp.asarray, (seen, state))
        ndim = jax.tree_util.tree_map(jnp.ndim, arguments)
        ask = _Asker(self.policy.value, own, ndim, shape, dtype)
        if not is_traced(*jax.tree_util.tree_leaves(arguments)):
            return jnp.asarray(ask(*arguments))  # an error in the policy arrives as it was raised
        return jax.pure_callback(ask, jax.ShapeDtypeStruct(shape, dtype), *arguments, vmap_method="broadcast_all")


class _Same:
    """Anything, compared by identity, so that it can be part of what a compiled function is known by."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class _Asker:
    """Calls the policy with NumPy observations: many at once if it has `predict`, else one by one."""

    def __init__(self, policy: Any, own: OwnDistribution | None, ndim: Any, shape: tuple[int, ...], dtype: np.dtype):
        self.policy, self.own, self.ndim, self.shape, self.dtype = policy, own, ndim, shape, dtype

    def __call__(self, observation: Any, state: Any) -> np.ndarray:
        arguments = jax.tree_util.tree_map(np.asarray, (observation, state))
        first, ndim = jax.tree_util.tree_leaves(arguments)[0], jax.tree_util.tree_leaves(self.ndim)[0]
        batch = first.shape[: first.ndim - ndim]
        flat = jax.tree_util.tree_map(lambda a, n: a.reshape(-1, *a.shape[a.ndim - n :]), arguments, self.ndim)
        many, count = flat[0], int(np.prod(batch))
        state = None if state is None else tuple(np.moveaxis(part, 0, 1) for part in flat[1])
        if self.own is not None or hasattr(self.policy, "predict"):
            answer = self._batch(many, state, first.shape[len(batch) :])
        else:
            rows = (jax.tree_util.tree_map(lambda a, i=i: a[i], many) for i in range(count))
            answer = [call("the policy", self.policy, row) for row in rows]
        answer = np.asarray(answer)
        if answer.size != count * int(np.prod(self.shape)):
            raise ValueError(
                f"the policy answered with shape {answer.shape} to {count} observations: "
                f"one action of shape {self.shape} for each was expected."
            )
        exact = answer.reshape((*batch, *self.shape)).astype(self.dtype)
        if self.dtype.kind in "iu" and not np.array_equal(exact.ravel(), answer.ravel()):
            raise ValueError(f"the policy answered {answer.ravel()[:4].tolist()}, but the actions are whole numbers.")
        return exact

    def _batch(self, many: Any, state: Any, shape: tuple[int, ...]) -> ArrayLike:
        try:
            if self.own is not None:
                return self.own.parameters(many, state)
            answer, after = self.policy.predict(many, **({} if state is None else {"state": state}), deterministic=True)
        except Exception as error:  # other people's code may raise anything
            raise ValueError(
                f"policy.predict failed on a batch of observations of shape {(len(_leaf(many)), *shape)} "
                f"({type(error).__name__}: {error}): predict must take a batch and return (actions, state); for a "
                "policy that takes one observation pass a function instead."
            ) from error
        if after is not None and state is None:
            raise ValueError(
                "the policy returned a state of its own, so its answers depend on what it saw before: pass "
                "state=..., a function of (observation, k) that gives the state before this observation, and see "
                "policychord.gym.Recurrent, which keeps it."
            )
        return answer


def _leaf(tree: Any) -> np.ndarray:
    return jax.tree_util.tree_leaves(tree)[0]
