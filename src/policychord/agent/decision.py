"""What a decision leaves (`Decision`), what the next one needs of it (`Memory`), and how a mixture becomes an act."""

import math
import warnings
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from .._names import Selection
from .._types import Action, Array, Time, namespace
from ..actions import AbstractActions
from ..core._method import Outcome
from ..core.complexities import is_product, pool
from ..core.convex import ConvexProblem
from ..core.objective import AnyProblem, Certificate
from ..primitives.columns import Drawn
from ..primitives.gaussian import LOST, MOVED

MOVES = f"it misses more than {LOST:.0%} of its mass, or moves its mean by more than {MOVED} sd."
REMEDY = "Use a finer grid, a wider one, or Sampled actions."
SATURATES = "If its ends are the limits of what can be done, say so: Grid(..., saturates=True)."
FAILURES = (Outcome.BAD_INPUT, Outcome.NOT_INTEGRATED)  # there are no weights, so the fallback is taken


def failed(outcome: Array) -> Bool[Array, "..."]:
    """Where nothing could be decided."""
    bad, not_followed = (outcome == int(why) for why in FAILURES)
    return bad | not_followed


class Memory(NamedTuple):
    """What the next decision needs from this one."""

    weights: Float[Array, " n"]  # the last good ones: where the solver starts, and what a gate in time goes on from
    debt: Float[Array, " n"]  # what each primitive has been promised by its weights and not yet been given
    action: Action  # the last one
    carried: Any = ()  # what else the gate carries from step to step, such as the layers of a circuit


class Weighing(NamedTuple):
    """The gating problem of one observation and its answer."""

    problem: AnyProblem
    weights: Float[Array, " n"]  # zero for primitives that are left out; NaN if nothing could be weighed
    certificate: Certificate
    outcome: Int[Array, ""]  # an `Outcome`
    valid: Bool[Array, " n"]  # False for primitives that are left out, because they are not numbers here
    carried: Any = ()  # of the gate, for the next decision
    drawn: Drawn | None = None  # the points of `Sampled` actions
    standard_error: Float[Array, " n"] | None = None  # of the weights, by the sampling of actions; None for fixed sets
    cut: Bool[Array, " n"] | None = None  # primitives that the grid cuts off, or is too coarse for; None without a grid
    cost: Float[Array, " d"] | None = None  # s of every action, as the model says

    @property
    def mixture(self) -> Float[Array, " d"]:
        """The probability of every action: the mixture of the primitives, or their product."""
        if isinstance(self.problem, ConvexProblem) and is_product(self.problem.complexity):
            return pool(self.problem.parameters[0], self.weights)
        return jnp.asarray(self.problem.pi) @ self.weights

    @property
    def good(self) -> Bool[Array, ""]:
        """Whether the weights are numbers, and of all primitives: then the next decision may start from them."""
        return jnp.all(self.valid) & ~failed(self.outcome)


class Decision(NamedTuple):
    """An action, the weights behind it, and what is proved about them."""

    action: Action
    weights: Float[Array, " n"]
    certificate: Certificate
    outcome: Int[Array, ""]  # an `Outcome`
    memory: Memory
    standard_error: Float[Array, "*agent n"] | None = None  # of the weights, statistical; None unless `Sampled`
    cut: Bool[Array, "*agent n"] | None = None  # primitives that the grid cuts off, or is too coarse for

    @property
    def optimal(self) -> Bool[Array, "..."]:
        """Whether the weights are proved to be optimal, to the agent's tolerance."""
        return namespace(self.outcome).asarray(self.outcome == Outcome.CONVERGED)

    @property
    def certified(self) -> Bool[Array, "..."]:
        """Whether it is known how far from optimal the weights can be, whatever that is."""
        return namespace(self.certificate.gap).isfinite(self.certificate.gap)


def remember(memory: Memory, weighed: Weighing, keep: Bool[Array, ""] | bool = True) -> Memory:
    """The memory with these weights and what their gate carries, where they are good and to be kept."""
    keep = jnp.asarray(weighed.good & keep)
    new, old = (weighed.weights, weighed.carried), (memory.weights, memory.carried)
    weights, carried = jax.tree_util.tree_map(lambda a, b: jnp.where(keep, a, b), new, old)
    return memory._replace(weights=weights, carried=carried)


@runtime_checkable
class Decides(Protocol):
    """What a closed loop needs of an agent that has begun."""

    def decide(self, key: Any, observation: Any, k: Time, memory: Any, /) -> Decision:
        """An action for what it sees at step k, and the memory for the next decision."""


@runtime_checkable
class Agent(Decides, Protocol):
    """What can act in an environment: a Composer, a Population, or anything else with these three."""

    @property
    def names(self) -> tuple[str, ...]:
        """What each of its weights is the weight of."""

    def start(self) -> Any:
        """The memory of an agent that has not decided yet."""


TILTED = ("posterior", "posterior mean")  # selections that act by the mixture's posterior under the cost


def select(
    selection: Selection, actions: AbstractActions, key: Array, pi: jax.Array, weights: Array, debt: Array,
    drawn: Drawn | None = None,
) -> tuple[jax.Array, Array]:  # fmt: skip
    """An action of the mixture Pi w, or of a posterior in its place, and what each primitive is owed afterwards.

    Of `drawn` points each stands for another volume, and the means of the primitives are known better.
    """
    if selection in ("mean", "posterior mean"):
        return actions.mean(pi @ weights) if drawn is None else jnp.asarray(weights) @ drawn.means, debt
    if selection == "mode":
        prob = pi @ weights
        return actions.at(jnp.argmax(prob if drawn is None else jnp.log(prob) + drawn.offset)), debt
    if selection in ("sample", "posterior"):
        return actions.at(_draw(key, pi @ weights)), debt
    debt = jnp.asarray(debt + weights)
    turn = jnp.argmax(debt)
    if drawn is not None:
        action = drawn.means[turn]
    elif actions.labels:  # they have no mean, so one is drawn
        action = actions.at(_draw(key, pi[:, turn]))
    else:
        action = actions.mean(pi[:, turn])
    return action, debt.at[turn].add(-1.0)


def _draw(key: Array, prob: jax.Array) -> jax.Array:
    """An index drawn by inverting the distribution function: one uniform number, the same for a paired comparison.

    First the block of actions that the number falls into, then the action: two short running sums cost a quarter of
    a long one. An action without probability is never drawn, whatever rounding does to the sums.
    """
    block = math.isqrt(prob.shape[0] - 1) + 1
    blocks = jnp.pad(prob, (0, -prob.shape[0] % block)).reshape(-1, block)
    share = jnp.sum(blocks, axis=1)
    level = jax.random.uniform(key, dtype=prob.dtype) * jnp.sum(share)
    row, below = _first_above(share, level)
    return row * block + _first_above(blocks[row], level - below)[0]


def _first_above(prob: jax.Array, level: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The first index, among those with a probability, at which the running sum exceeds the level; the sum before."""
    up_to = jnp.cumsum(prob)
    reached = jnp.where(prob > 0, up_to, 0.0)
    # rounding may take the level just below zero, or above the sum
    level = jnp.clip(level, 0.0, jnp.nextafter(jnp.max(reached), 0.0))
    index = jnp.argmax(reached > level)
    return index, jnp.where(index > 0, up_to[index - 1], 0.0)


def warn_of_grid(names: tuple[str, ...], cut: Any, where: str = "", stacklevel: int = 4) -> None:
    """Say which primitives the grid cuts off, given a flag for each. Python shows each warning once."""
    for name, bad in zip(names, np.asarray(cut), strict=True):
        if bad:
            warning = f"the grid cuts primitives[{name!r}] off{where}, or is coarse: {MOVES} {REMEDY} {SATURATES}"
            warnings.warn(warning, stacklevel=stacklevel)
