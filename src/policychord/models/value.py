"""`Value`: a critic or any value function as a cost, of states or of actions."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._calls import call, takes_step
from .._types import ArrayLike, Observation, Time, is_traced
from ..primitives.policy import Identified
from .cost import BlackBox


class Value(eqx.Module):
    """Minus `scale` times a value: `Cost(cost_to_go=Value(critic))` of next states, `Cost(Value(critic))` of actions.

    A value is a reward to come, so a cost is minus the value; `scale` gives it in nats, and is the place of a discount
    factor. `critic` is

    - a trained algorithm of Stable-Baselines3, or its policy: PPO and A2C value states; DQN values labels, and a state
      by its best one; SAC, TD3 and DDPG value actions by the least of their critics, and a state by the policy's own
      action;
    - or a function over NumPy batches, with a number for each row: of (states) or (states, k), for actions of
      (observations, actions) or (observations, actions, k);
    - or a list of them, of which the greatest value counts, as in generalised policy improvement. They must speak of
      the same reward.

    `observe(observation, k)`, written with jax.numpy, makes what the critic sees of what the agent sees.
    """

    critics: tuple[Identified, ...] = eqx.field(static=True)
    scale: Float[Array, ""]
    observe: Callable[[Observation, Time], Any] | None

    def __init__(self, critic: Any, scale: ArrayLike = 1.0, observe: Callable[[Observation, Time], Any] | None = None):
        critics = tuple(critic) if isinstance(critic, Sequence) else (critic,)
        if not critics:
            raise ValueError("critic is an empty list: pass at least one critic or function.")
        for each in critics:
            if not (callable(each) or _is_trained(each)):
                raise ValueError(
                    f"critic is a {type(each).__name__}: pass a trained algorithm of Stable-Baselines3, or a function "
                    "of (states, k) or (observations, actions, k) over NumPy batches."
                )
        if not is_traced(scale) and not (np.ndim(scale) == 0 and np.isfinite(scale) and scale > 0):
            raise ValueError(f"scale = {scale!r}: pass a positive number, nats for a unit of reward.")
        self.critics, self.observe = tuple(Identified(each) for each in critics), observe
        self.scale = jnp.asarray(scale, dtype=float)

    def __call__(self, observation: Observation, *rest: Any) -> Float[Array, ""]:
        """The cost of a state, from (state, k), or of an action, from (observation, action, k)."""
        seen = observation if self.observe is None else call("observe", self.observe, observation, rest[-1])
        return -self.scale * BlackBox(partial(_greatest, self.critics), number=True)(seen, *rest)


def _greatest(critics: tuple[Identified, ...], observations: Any, *rest: Any) -> Float[np.ndarray, " row"]:
    """The greatest value of each row, from NumPy batches of (states, k) or (observations, actions, k)."""
    count = len(rest[-1])
    answers = [np.asarray(_answer(each.value, observations, *rest), dtype=float) for each in critics]
    if any(answer.size != count for answer in answers):
        shapes = ", ".join(str(answer.shape) for answer in answers)
        raise ValueError(f"the critic answered with shape {shapes} to {count} rows: one value for each is expected")
    return np.max([answer.reshape(count) for answer in answers], axis=0)


def _is_trained(critic: Any) -> bool:
    return hasattr(getattr(critic, "policy", critic), "obs_to_tensor")


def _answer(critic: Any, observations: Any, *rest: Any) -> Any:
    """What one critic says of these rows."""
    if _is_trained(critic):
        return _trained(getattr(critic, "policy", critic), observations, rest[0] if len(rest) == 2 else None)
    return critic(observations, *(rest if takes_step(critic, place=len(rest)) else rest[:-1]))


def _trained(network: Any, observations: Any, actions: np.ndarray | None) -> np.ndarray:
    """Values by a policy of Stable-Baselines3, of states if there are no actions."""
    import torch

    network.set_training_mode(False)
    with torch.no_grad():
        seen = network.obs_to_tensor(observations)[0]
        if callable(getattr(network, "q_net", None)):
            values = network.q_net(seen)
            if actions is None:
                return values.max(dim=1).values.double().cpu().numpy()
            chosen = torch.as_tensor(np.array(actions).reshape(-1, 1) - int(network.action_space.start))
            return values.gather(1, chosen.to(values.device)).double().cpu().numpy()
        if callable(getattr(network, "critic", None)):  # which speaks of actions scaled to [-1, 1]
            if actions is None:
                scaled = network._predict(seen, deterministic=True)
            else:
                shaped = np.asarray(actions, dtype=np.float32).reshape(-1, *network.action_space.shape)
                scaled = torch.as_tensor(network.scale_action(shaped), device=network.device)
            return torch.cat(network.critic(seen, scaled), dim=1).min(dim=1).values.double().cpu().numpy()
        if actions is not None:
            raise ValueError(
                f"{type(network).__name__} values states, not actions: use Cost(predict=..., cost_to_go=Value(...))"
            )
        return network.predict_values(seen).double().cpu().numpy()
