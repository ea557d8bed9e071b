"""Agents to compare with: a controller `Alone`, the `Greedy` action of a model, and weights that no model set."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from .._calls import PartError, call_at
from .._types import Action, Observation, Time
from ..actions import AbstractActions, Sampled
from ..agent import Composer, Decision, Memory
from ..core.equilibrium import Outcome
from ..core.objective import Certificate
from ..models import AbstractModel, action_cost, simulated_steps
from ..primitives import AbstractPrimitive, Gaussian, Policy
from ..primitives.policy import Identified

NOT_OPTIMISED = int(Outcome.NOT_OPTIMISED)
ROUNDING = 1e-12  # of a command, by which the nearest action that is allowed may differ from it


def can_act_alone(primitive: Any, actions: AbstractActions) -> bool:
    """Whether a primitive has a command of its own, and not only probabilities."""
    return isinstance(primitive, Policy) or (hasattr(primitive, "centre") and not actions.labels)


class Alone(eqx.Module):
    """A single controller as an agent: its own command, without grid or spread, cut to what can be done.

    `controller` is a `Gaussian` or a `Policy`, of which the command is taken; a trained policy with `predict`, which
    is asked with `deterministic=True`; or a function of (observation) or (observation, k). A function that is written
    with jax.numpy is compiled, any other one runs as ordinary Python.
    """

    controller: AbstractPrimitive
    function: Identified | None = eqx.field(static=True)
    actions: AbstractActions
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, name: str, controller: Any, actions: AbstractActions):
        if isinstance(controller, AbstractPrimitive) and not can_act_alone(controller, actions):
            raise ValueError(f"controller is a {type(controller).__name__}, which has no command on these actions.")
        self.function = None
        if not isinstance(controller, AbstractPrimitive):
            self.function = None if hasattr(controller, "predict") else Identified(controller)
            controller = Policy(controller, 0.5)  # a spread that is never looked at
        self.controller, self.actions, self.names = controller, actions, (name,)

    @property
    def simulated(self) -> int:
        """It simulates nothing."""
        return 0

    def start(self) -> tuple[()]:
        """It remembers nothing."""
        return ()

    def decide(self, key: Key[Array, ""], observation: Observation, k: Time = 0, memory: tuple[()] = ()) -> Decision:
        """The controller's command, with the only weight that there is."""
        controller = self.controller
        if self.function is not None and _is_jax(self.function.value, observation, k):
            own = call_at("the controller", self.function.value, observation, k)
            controller = Gaussian(lambda x, k: own, 1.0)
        return _single(command(controller, self.actions, observation, k), memory)


def command(controller: Any, actions: AbstractActions, observation: Observation, k: Time) -> Action:
    """What a controller asks for, to the digit where it can be done, else what comes nearest."""
    if isinstance(controller, Gaussian):  # before it moves its mean to the border itself
        controller = Gaussian(controller.mean, 1.0, outside="tail")
    own = controller.centre(actions, observation, k)
    if actions.labels:
        return own.astype(actions.points.dtype)
    if isinstance(actions, Sampled) and actions.squash and isinstance(controller, Gaussian):
        return actions.at_points(own[None]).points[0]
    inside = actions.inside(own)
    return jnp.where(jnp.abs(inside - own) <= ROUNDING * (1.0 + jnp.abs(own)), own, inside)


def _is_jax(function: Callable[..., Any], observation: Observation, k: Time) -> bool:
    """Whether JAX can trace a function; any that it cannot is run as ordinary Python, and says there what is wrong."""
    try:
        jax.eval_shape(lambda x, k: call_at("the controller", function, x, k), observation, jnp.asarray(k))
    except PartError:
        return False
    return True


class Greedy(eqx.Module):
    """The action with the least cost by a model: of the action set, or of what some controllers ask for.

    With `Cost(Value([one, another]))` it is generalised policy improvement: it maximises the greatest of the critics'
    values. With `controllers`, their commands are the candidates; otherwise the points of the action set are.
    """

    model: AbstractModel
    actions: AbstractActions
    controllers: tuple[AbstractPrimitive, ...]
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, model: AbstractModel, actions: AbstractActions, controllers: Sequence[AbstractPrimitive] = ()):
        if isinstance(actions, Sampled) and not controllers:
            raise ValueError("Sampled actions have no points before primitives draw them: pass controllers.")
        for controller in controllers:
            if not can_act_alone(controller, actions):
                raise ValueError(f"controllers has a {type(controller).__name__}, which has no command here.")
        self.model, self.actions, self.controllers = model, actions, tuple(controllers)
        self.names = ("greedy",)

    @property
    def simulated(self) -> int | None:
        """One question to the model for each candidate."""
        return simulated_steps(self.model, len(self.controllers) or self.actions.size)

    def start(self) -> tuple[()]:
        """It remembers nothing."""
        return ()

    def decide(self, key: Key[Array, ""], observation: Observation, k: Time = 0, memory: tuple[()] = ()) -> Decision:
        """The cheapest candidate; the first of those that cost the same."""
        actions: Any = self.actions
        if self.controllers:
            asked = [command(each, self.actions, observation, k) for each in self.controllers]
            actions = eqx.tree_at(lambda actions: actions.points, actions, jnp.stack(asked))
        cost = action_cost(self.model, actions, observation, k)
        return _single(actions.at(jnp.argmin(cost)), memory)


class Unpriced(eqx.Module):
    """A composer whose weights do not depend on a model, without one. What is optimal is not known: no certificate."""

    composer: Composer

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the primitives."""
        return self.composer.names

    @property
    def actions(self) -> AbstractActions:
        """Those of the composer."""
        return self.composer.actions

    @property
    def simulated(self) -> int:
        """It simulates nothing."""
        return 0

    def start(self) -> Memory:
        """The composer's memory."""
        return self.composer.start()

    def decide(
        self, key: Key[Array, ""], observation: Observation, k: Time = 0, memory: Memory | None = None
    ) -> Decision:
        """The composer's decision."""
        unknown = Certificate(jnp.asarray(jnp.inf), jnp.asarray(jnp.inf))
        return self.composer.decide(key, observation, k, memory)._replace(certificate=unknown)


def _single(action: Action, memory: Any) -> Decision:
    certain = Certificate(jnp.zeros(()), jnp.zeros(()))  # of the only weight, which is one
    return Decision(action, jnp.ones(1), certain, jnp.asarray(NOT_OPTIMISED, "int8"), memory)
