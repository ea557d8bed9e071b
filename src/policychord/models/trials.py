"""Changes of an agent tried in its own model: what its closed loop costs there, with and without each."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import stdtrit

from .._calls import call
from .._types import Observation, Time
from ..actions import AbstractActions, Finite, Grid
from ..primitives.gaussian import MOVED, Gaussian
from ..primitives.policy import Policy
from .base import action_cost
from .cost import AbstractOutcomes, Cost
from .cost_to_go import Rollouts
from .gaussian import GaussianTarget

SPREADS = (0.25, 0.5, 2.0)
SHORT = 20  # steps of a closed loop, or twice the horizon if that is more
LEAST = 0.01  # share of the cost that a change must save to be worth a word


class Trial(NamedTuple):
    """What a change saves of the cost of the agent's closed loop in its model, paired over the states it begins in."""

    saved: float
    error: float  # half of the 95% interval
    cost: float  # of the agent as it is

    @property
    def helps(self) -> bool:
        """Whether the model's own cost falls, beyond its interval and by more than a hundredth."""
        return self.saved > max(self.error, LEAST * abs(self.cost))

    def __str__(self) -> str:
        return f"{self.saved:.3g} ± {self.error:.2g} of {self.cost:.3g}"


class _World(NamedTuple):
    """A model as a world to act in: what a step costs, where it leads, and what the last state costs from there on."""

    stage: Callable[[Observation, Array, Time], Array]
    predict: Callable[[Observation, Array, Time], Observation] | None
    last: Callable[[Observation, Time], Array] | None


def try_changes(agent: Any, states: Observation, k: int, hollow: bool = False) -> dict[str, Trial]:
    """What these changes save: a horizon or a longer one, another spread, the mode for a `hollow` mean, the posterior.

    Empty if nothing can be tried: worlds with chance and costs that are a list of numbers are left out.
    """
    world, horizon = _world_of(agent.model), _horizon(agent)
    if world is None:
        return {}
    steps = 1 if world.predict is None else max(SHORT, 2 * (horizon or 0))
    begun = jnp.asarray(k)
    changes = _changes(agent) | ({"mode": agent.replace(selection="mode")} if hollow else {})
    if agent.combine == "mixture" and agent.selection in ("sample", "mean", "mode", "dither"):
        changes["posterior"] = agent.replace(selection="posterior" if agent.actions.labels else "posterior mean")
    usual = _costs(agent, world, states, begun, steps)
    return {name: _compare(usual, _costs(other, world, states, begun, steps)) for name, other in changes.items()}


def longer(agent: Any) -> Any | None:
    """The same agent with rollouts of twice as many steps; None where there are no rollouts."""
    if _horizon(agent) is None:
        return None
    old = agent.model.cost_to_go
    to_go = Rollouts(
        old.primitives, old.actions, old.predict, old.stage_cost,
        steps=2 * old.steps, follow=old.follow, reduce=old.reduce,
    )  # fmt: skip
    return agent.replace(model=eqx.tree_at(lambda tree: tree.cost_to_go, agent.model, to_go))


def _horizon(agent: Any) -> int | None:
    to_go = getattr(agent.model, "cost_to_go", None)
    return to_go.steps if isinstance(to_go, Rollouts) else None


def spread(agent: Any, factor: float) -> Any | None:
    """The agent with so many times the spread of its primitives; None if nothing has one, or the grid is too coarse."""
    changed, fine = [], True
    for primitive in agent.primitives:
        wider = _spread(primitive, factor, agent.actions)
        fine = fine and not _coarse(wider, agent.actions)
        changed.append(wider)
    same = all(new is old for new, old in zip(changed, agent.primitives, strict=True))
    return None if same or not fine else eqx.tree_at(lambda tree: tree.primitives, agent, tuple(changed))


def _spread(primitive: Any, factor: float, actions: AbstractActions) -> Any:
    if isinstance(primitive, Policy) and primitive.spread is not None and not primitive.own and not actions.labels:
        return eqx.tree_at(lambda policy: policy.spread, primitive, factor * primitive.spread)
    if not isinstance(primitive, Gaussian):
        return primitive
    if callable(primitive.sd):
        return eqx.tree_at(lambda gaussian: gaussian.sd, primitive, _Times(factor, primitive.sd))
    field = "cholesky" if primitive.sd is None else "sd"
    return eqx.tree_at(lambda gaussian: getattr(gaussian, field), primitive, factor * getattr(primitive, field))


class _Times(eqx.Module):
    factor: float
    sd: Any

    def __call__(self, observation: Observation, k: Time) -> Array:
        return self.factor * jnp.asarray(self.sd(observation, k))


def _coarse(primitive: Any, actions: AbstractActions) -> bool:
    """Whether a grid moves the mean of a primitive as narrow as this, as far as its spread is known."""
    if not isinstance(actions, Grid):
        return False
    if isinstance(primitive, Policy) and primitive.spread is not None:
        primitive = Gaussian(np.zeros(len(actions.axes)), primitive.spread)
    if not isinstance(primitive, Gaussian) or callable(primitive.sd):
        return False
    return bool(primitive.coarseness(actions) > MOVED)


def _changes(agent: Any) -> dict[str, Any]:
    """Each other agent that is tried, by name."""
    changes = {f"{factor:g} times the spread": spread(agent, factor) for factor in SPREADS}
    model = agent.model
    if _horizon(agent) is not None:
        changes["twice the steps"] = longer(agent)
    elif isinstance(model, Cost) and model.state_cost is not None:
        world = _world_of(model)
        assert world is not None
        assert world.predict is not None
        parts = dict(zip(agent.names, agent.primitives, strict=True))
        later = Rollouts(parts, agent.actions, world.predict, world.stage, steps=SHORT)
        far = Cost(world.stage, predict=world.predict, cost_to_go=later)
        changes["rollouts"] = agent.replace(model=far)
    return {name: other for name, other in changes.items() if other is not None}


def _world_of(model: Any) -> _World | None:
    """A model as a world without chance; None if it is not one."""
    if isinstance(model, GaussianTarget):
        return _World(_Priced(model), model.predict, None)
    if not isinstance(model, Cost) or isinstance(model.predict, AbstractOutcomes):
        return None
    if isinstance(model.action_cost, Array):
        return None
    to_go, predict = model.cost_to_go, model.predict
    if isinstance(to_go, Rollouts):
        return _World(to_go.stage_cost, predict, None)
    if predict is None or to_go is None:
        return _World(_Priced(model), predict, None)
    free = Cost(lambda x, u, k: 0.0) if model.action_cost is None else Cost(model.action_cost)
    return _World(_Priced(free), predict, _Last(model, to_go))


class _Priced(eqx.Module):
    """A model's cost of one action."""

    model: Any

    def __call__(self, observation: Observation, action: Array, k: Time) -> Array:
        one = eqx.tree_at(lambda actions: actions.points, Finite(1), action[None])
        return action_cost(self.model, one, observation, k)[0]


class _Last(eqx.Module):
    """The cost-to-go of a state, as a function or by a matrix."""

    model: Cost
    to_go: Any

    def __call__(self, observation: Observation, k: Time) -> Array:
        states = jax.tree_util.tree_map(lambda a: a[None], observation)
        return self.model._price("cost_to_go", self.to_go, states, k - 1)[0]


@eqx.filter_jit
def _costs(agent: Any, world: _World, states: Observation, k: Array, steps: int) -> Float[Array, " state"]:
    """What the agent's closed loop costs in the world from each of the states on."""

    def from_state(key: Array, state: Observation) -> Array:
        def advance(carry: tuple[Observation, Any], j: Array) -> tuple[tuple[Observation, Any], Array]:
            x, memory = carry
            decision = agent.decide(jax.random.fold_in(key, j), x, k + j, memory)
            cost = jnp.asarray(call("stage_cost", world.stage, x, decision.action, k + j), dtype=float)
            following = x if world.predict is None else call("predict", world.predict, x, decision.action, k + j)
            following = jax.tree_util.tree_map(lambda new, old: jnp.asarray(new, dtype=old.dtype), following, x)
            return (following, decision.memory), cost

        (end, _), costs = jax.lax.scan(advance, (state, agent.start()), jnp.arange(steps))
        last = 0.0 if world.last is None else world.last(end, k + steps)
        return jnp.sum(costs) + last

    floats = jax.tree_util.tree_map(lambda a: jnp.asarray(a, dtype=float), states)
    count = len(jax.tree_util.tree_leaves(floats)[0])
    keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(0), i))(jnp.arange(count))
    return jax.vmap(from_state)(keys, floats)


def _compare(usual: Array, other: Array) -> Trial:
    saved = np.asarray(usual) - np.asarray(other)
    if len(saved) < 2 or not np.all(np.isfinite(saved)):
        return Trial(float(np.mean(saved)), float("inf"), float(np.mean(usual)))
    error = stdtrit(len(saved) - 1, 0.975) * saved.std(ddof=1) / len(saved) ** 0.5
    return Trial(float(np.mean(saved)), float(error), float(np.mean(usual)))
