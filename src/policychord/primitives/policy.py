"""`Policy`: anybody's trained policy as a primitive, through plain Python."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import ArrayLike, Observation, Time, is_traced
from ..actions import AbstractActions, Finite
from .base import AbstractPrimitive
from .gaussian import Gaussian


class Policy(AbstractPrimitive):
    """Whatever `predict(observation)` answers, with a spread around it.

    `policy` is an object with Stable-Baselines3's `predict(observation, state=None, episode_start=None,
    deterministic=False)`, or a callable from one observation to one action. `predict` is given a batch of observations
    and answers with a batch of actions, as Stable-Baselines3 does; a callable is given one observation at a time. Both
    run as ordinary Python (torch, NumPy, a look-up), outside the compiled loop. On a grid, `spread` is the standard
    deviation of a Gaussian around the answer. On a list of labels, it is the probability shared by the other actions.
    `observe(observation, k)` makes what the policy sees of what the agent sees; without it they are the same. A policy
    that keeps its own state (recurrent) is refused.
    """

    policy: "_Same" = eqx.field(static=True)
    spread: Float[Array, "..."]
    observe: Callable[[Observation, Time], ArrayLike] | None

    def __init__(self, policy: Any, spread: ArrayLike, observe: Callable[[Observation, Time], ArrayLike] | None = None):
        if not (callable(getattr(policy, "predict", None)) or callable(policy)):
            raise ValueError(
                f"policy is a {type(policy).__name__}: pass an object with predict(observation, ...), or a function."
            )
        values = np.asarray(spread, dtype=float)
        if not np.all(np.isfinite(values) & (values > 0)):
            raise ValueError(
                f"spread = {values.tolist()}: pass a positive number; a policy without any spread cannot be mixed."
            )
        self.policy, self.spread, self.observe = _Same(policy), jnp.asarray(values), observe

    def log_prob(self, actions: AbstractActions, observation: Observation, k: Time) -> Float[Array, " d"]:
        given = jnp.asarray(observation if self.observe is None else self.observe(observation, k))
        if isinstance(actions, Finite) and actions.labels:
            if self.spread.ndim or (not is_traced(self.spread) and not np.asarray(self.spread) < 1):
                raise ValueError(f"spread = {self.spread}: with labels it is one probability, so it lies below 1.")
            answer = self._ask(actions, given, ())
            chosen = actions.points == answer
            spread = self.spread if actions.size > 1 else 0.0  # there is no other action
            others = jnp.log(spread) - np.log(max(actions.size - 1, 1))
            # an answer that is not in the list gives NaN, which no certificate survives
            log_prob = jnp.where(chosen, jnp.log1p(-spread), others)
            return jnp.where(jnp.any(chosen), log_prob, jnp.nan)
        answer = self._ask(actions, given, actions.points.shape[1:])
        return Gaussian(lambda _, k: answer, sd=self.spread).log_prob(actions, observation, k)

    def _ask(self, actions: AbstractActions, observation: Array, shape: tuple[int, ...]) -> Array:
        ask = _Asker(self.policy.value, observation.ndim, shape, np.dtype(actions.points.dtype))
        if not is_traced(observation):
            return jnp.asarray(ask(observation))  # an error in the policy arrives as it was raised
        answer = jax.ShapeDtypeStruct(shape, actions.points.dtype)
        return jax.pure_callback(ask, answer, observation, vmap_method="broadcast_all")


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

    def __init__(self, policy: Any, ndim: int, shape: tuple[int, ...], dtype: np.dtype):
        self.policy, self.ndim, self.shape, self.dtype = policy, ndim, shape, dtype

    def __call__(self, observation: ArrayLike) -> np.ndarray:
        observation = np.asarray(observation)
        batch = observation.shape[: observation.ndim - self.ndim]
        many = observation.reshape(-1, *observation.shape[len(batch) :])
        answer = self._predict(many) if hasattr(self.policy, "predict") else [self.policy(one) for one in many]
        answer = np.asarray(answer)
        if answer.size != len(many) * int(np.prod(self.shape)):
            raise ValueError(
                f"the policy answered with shape {answer.shape} to {len(many)} observations: "
                f"one action of shape {self.shape} for each was expected."
            )
        exact = answer.reshape((*batch, *self.shape)).astype(self.dtype)
        if self.dtype.kind in "iu" and not np.array_equal(exact.ravel(), answer.ravel()):
            raise ValueError(f"the policy answered {answer.ravel()[:4].tolist()}, but the actions are whole numbers.")
        return exact

    def _predict(self, many: np.ndarray) -> ArrayLike:
        try:
            answer, state = self.policy.predict(many, deterministic=True)
        except Exception as error:  # other people's code may raise anything
            raise ValueError(
                f"policy.predict failed on a batch of observations of shape {many.shape} "
                f"({type(error).__name__}: {error}): predict must take a batch and return (actions, state); for a "
                "policy that takes one observation pass a function instead."
            ) from error
        if state is not None:
            raise ValueError(
                "the policy returned a state of its own, so its answers depend on what it saw before: recurrent "
                "policies cannot be primitives. Wrap it in a function that keeps and resets that state."
            )
        return answer
