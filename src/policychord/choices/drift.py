"""Values of arms that move within blocks: noise, drift, decay and variance by the likelihood of a Kalman filter."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..inference import Model, Normal, bounded, estimate, likelihood, positive
from ..inference.parameters import natural, unconstrained
from ..worlds.bandit import Belief
from .learners import Kalman
from .tasks import Arms

_WEAK = Normal(0.0, 10.0)  # of logarithms and logits
_STARTS = ((0.5, 0.3, 0.9, 1.0), (0.9, 0.05, 0.99, 1.0), (0.1, 0.1, 0.98, 3.0))  # noise, drift, decay, variance


class Walk(NamedTuple):
    """Blocks, padded: choices, rewards in deviations from the mean, and which arms are not known."""

    choice: np.ndarray  # (blocks, longest)
    reward: np.ndarray
    moving: np.ndarray  # (blocks, arms)


def fit_walks(walk: Walk, weight: np.ndarray, groups: np.ndarray) -> list[dict[str, float]]:
    """The most likely numbers of each group of blocks."""
    parameters = (positive("noise", usual=0.5, prior=_WEAK), positive("drift", usual=0.1, prior=_WEAK),
                  bounded("decay", 0.0, 1.0, 0.9, prior=_WEAK), positive("variance", prior=_WEAK))  # fmt: skip
    with jax.enable_x64(True):
        given = likelihood(Model("walk", parameters, _log_rewards), walk, groups=groups, weight=weight)
        names = [parameter.name for parameter in parameters]
        points = [unconstrained(parameters, dict(zip(names, start, strict=True))) for start in _STARTS]
        z = estimate(given, starts=np.tile(np.stack(points)[:, None], (1, given.groups, 1))).z
        found = {name: np.asarray(value) for name, value in natural(parameters, z).items()}
    return [{name: float(value[k]) for name, value in found.items()} for k in range(given.groups)]


def _log_rewards(theta: Any, unit: Walk) -> Any:
    """ln p of the rewards of one block given its choices, (trials). What was not chosen is missing at random."""
    zero = jnp.zeros_like(unit.moving)
    start = Arms(zero, theta["variance"] * unit.moving, theta["noise"] + zero, theta["drift"] + zero,
                 theta["decay"] + zero)  # fmt: skip
    learner = Kalman()

    def step(belief: Belief, now: Any) -> tuple[Belief, Any]:
        choice, reward = now
        spread = belief.variance[choice] + theta["noise"]
        log_p = -0.5 * (jnp.log(2 * jnp.pi * spread) + (reward - belief.mean[choice]) ** 2 / spread)
        return learner.update(belief, choice, reward, start), log_p

    return jax.lax.scan(step, Belief(*start[:2]), (unit.choice, unit.reward))[1]
