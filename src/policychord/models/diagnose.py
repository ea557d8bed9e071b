"""`diagnose`: is the horizon long enough, does the cost count, is the model right, do selection and grid suit?"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Observation, in_native_order
from ..actions import Grid
from ..primitives.gaussian import Gaussian
from .base import action_cost
from .cost import Cost
from .cost_to_go import Rollouts

MOVES = 0.1  # a weight that still moves by so much with twice the horizon moves too much
WRONG = 0.25  # a model whose error is such a share of what an action changes is off
HOLLOW = 0.5  # a mean is hollow where its action has less than this share of the greatest probability
OFTEN = 0.1  # share of the states
SAME = 1e-9  # nats: costs that are equal but for rounding
FLAT = 0.1  # a cost that moves the weights by less than this decides nothing


class Diagnosis(NamedTuple):
    """What `diagnose` found. `print` it; `warnings` are the sentences that ask for a change."""

    steps: int | None  # of the horizon, None if there is none
    moved: float | None  # how far weights move with twice the horizon: the mean over states of the largest
    moved_by_cost: float  # how far the cost moves the weights from where they are without any: likewise
    contrast: float  # nats by which the dearest primitive's expected cost exceeds the cheapest one's, on average
    model_error: float | None  # RMS error of the prediction as a share of the RMS change; None without transitions
    hollow: float  # share of the states in which the mean of the mixture is an improbable action
    cost_of: dict[str, float]  # what the model says each selection costs more than the cheapest one, on average
    suits: str  # the selection with the least of these
    cut: dict[str, float]  # of primitives that the grid cuts off, or is too coarse for: the share of the states
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        """A line for each question."""
        horizon = "one step" if self.steps is None else f"{self.steps} steps"
        moved = "" if self.moved is None else f", weights move by {self.moved:.2f} with twice as many"
        cost = f"primitives differ by {self.contrast:.2g} nats, which moves weights by {self.moved_by_cost:.2f}"
        model = "not asked" if self.model_error is None else f"error {self.model_error:.0%} of what a step changes"
        dear = ", ".join(f"{name} {cost:+.3g}" for name, cost in self.cost_of.items())
        lines = [f"cost: {cost}", f"model: {model}"]
        if self.moved_by_cost < FLAT and self.contrast > SAME:  # weights that the cost does not move show neither
            lines.append("horizon and selection: not known until the cost counts")
        else:
            lines += [f"horizon: {horizon}{moved}", f"selection: {self.suits} suits ({dear})"]
        return "\n".join([*lines, *(f"warning: {warning}" for warning in self.warnings)])


def diagnose(
    agent: Any, states: Observation, *, actions: Any = None, following: Observation | None = None, k: int = 0
) -> Diagnosis:
    """Look at a composer in these states (a leading axis), which should be those that it meets.

    Give the `actions` that were taken there and the states `following` them, and it tells how far off the model is.
    """
    if (actions is None) != (following is None):
        raise ValueError("actions and following belong together: what was done in each state, and what came of it.")
    states, actions, following = in_native_order((states, actions, following))
    weigh = eqx.filter_jit(lambda composer, x: jax.vmap(lambda state: composer.weigh(state, k).weights)(x))
    weights = np.asarray(weigh(agent, states))
    steps, longer = _horizon(agent)
    moved = None if longer is None else float(np.mean(np.max(np.abs(weigh(longer, states) - weights), axis=1)))
    deciding = agent.replace(gate="equilibrium")
    free = deciding.replace(model=Cost(lambda x, u, k: 0.0))
    by_cost = float(np.mean(np.max(np.abs(weigh(deciding, states) - weigh(free, states)), axis=1)))
    error = None if actions is None else _model_error(agent, states, actions, following, k)
    hollow, contrast, cost_of = _selections(agent, states, k)
    suits = min(cost_of, key=lambda name: cost_of[name])
    cut = _cut(agent, states, k)
    diagnosis = Diagnosis(
        steps=steps,
        moved=moved,
        moved_by_cost=by_cost,
        contrast=contrast,
        model_error=error,
        hollow=hollow,
        cost_of=cost_of,
        suits=suits,
        cut=cut,
        warnings=(),
    )
    return diagnosis._replace(warnings=_warnings(agent, diagnosis))


def _warnings(agent: Any, diagnosis: Diagnosis) -> tuple[str, ...]:
    warnings, steps = [], diagnosis.steps
    if steps is None and isinstance(agent.model, Cost) and agent.model.state_cost is not None:
        warnings.append("the model sees one step: if what is good shows later, give it cost_to_go=Rollouts(...).")
    if diagnosis.moved is not None and diagnosis.moved > MOVES:
        warnings.append(
            f"{steps} steps are too few: with {2 * (steps or 0)} the weights move by {diagnosis.moved:.2f}. "
            "Raise steps."
        )
    flat = diagnosis.contrast > SAME and diagnosis.moved_by_cost < FLAT  # else the primitives are equally good here
    if flat:
        remedy = (
            f"Multiply all costs by about {1 / diagnosis.contrast:.1g}." if diagnosis.contrast < 1 else "Lower eps."
        )
        warnings.append(
            f"the cost hardly counts: it differs by {diagnosis.contrast:.2g} nats between primitives, so prior and "
            f"entropies set the weights. {remedy}"
        )
    if diagnosis.model_error is not None and diagnosis.model_error > WRONG:
        warnings.append(
            f"the model is off: its error is {diagnosis.model_error:.0%} of what a step changes. Correct predict, or "
            "its time step."
        )
    hollow = diagnosis.hollow > OFTEN and diagnosis.cost_of["mode"] < diagnosis.cost_of.get("mean", -np.inf)
    if agent.selection == "mean" and hollow and not flat:
        warnings.append(
            f"in {diagnosis.hollow:.0%} of the states the mean of the mixture is an action that no primitive wants, "
            "and by the model it costs more: use selection='mode', or 'sample'."
        )
    for name, share in diagnosis.cut.items():
        if share > OFTEN and not agent.actions.saturates:
            warnings.append(
                f"in {share:.0%} of the states the grid cuts primitive {name!r} off, or is too coarse for it: use a "
                "finer grid, a wider one, or Sampled actions."
            )
    return tuple(warnings)


def _cut(agent: Any, states: Observation, k: int) -> dict[str, float]:
    """How often the grid spoils each Gaussian primitive, of those that it does at all."""
    if not isinstance(agent.actions, Grid):
        return {}
    spoiled = eqx.filter_jit(lambda part, x: jax.vmap(lambda state: part.spoiled_by(agent.actions, state, k))(x))
    shares = {
        name: float(np.mean(spoiled(primitive, states)))
        for name, primitive in zip(agent.names, agent.primitives, strict=True)
        if isinstance(primitive, Gaussian)
    }
    return {name: share for name, share in shares.items() if share > 0}


def _horizon(agent: Any) -> tuple[int | None, Any]:
    """(steps, the agent with twice as many), None where there are no rollouts."""
    model = agent.model
    if not (isinstance(model, Cost) and isinstance(model.cost_to_go, Rollouts)):
        return None, None
    old = model.cost_to_go
    to_go = Rollouts(
        old.primitives, old.actions, old.predict, old.stage_cost,
        steps=2 * old.steps, follow=old.follow, reduce=old.reduce,
    )  # fmt: skip
    return old.steps, agent.replace(model=eqx.tree_at(lambda tree: tree.cost_to_go, model, to_go))


def _model_error(agent: Any, states: Observation, actions: Any, following: Observation, k: int) -> float:
    predict = getattr(agent.model, "predict", None)
    if not callable(predict):
        raise ValueError(
            "the agent's model predicts no next state, so it cannot be compared with one: leave out actions."
        )
    predicted = jax.jit(jax.vmap(lambda x, u: predict(x, u, k)))(states, jnp.asarray(actions))
    flat = [np.concatenate([np.asarray(a).reshape(len(a), -1) for a in jax.tree_util.tree_leaves(tree)], axis=1)
            for tree in (states, predicted, following)]  # fmt: skip
    before, expected, after = flat
    return float(np.sqrt(np.mean((expected - after) ** 2) / max(float(np.mean((after - before) ** 2)), 1e-300)))


def _selections(agent: Any, states: Observation, k: int) -> tuple[float, float, dict[str, float]]:
    """(share of states with a hollow mean, contrast of the cost, mean cost of each selection above the cheapest)."""
    labels = agent.actions.labels

    def look(state: Any) -> tuple[Any, ...]:
        weighed = agent.weigh(state, k)
        actions = agent.actions if weighed.drawn is None else weighed.drawn.actions
        prob, cost = weighed.mixture, action_cost(agent.model, actions, state, k)
        density = prob if weighed.drawn is None else jnp.exp(jnp.log(prob) + weighed.drawn.offset)
        sample, mode = prob @ cost, cost[jnp.argmax(density)]
        contrast = jnp.ptp(cost @ jnp.asarray(weighed.problem.pi))
        if labels:
            return contrast, sample, mode, sample, jnp.zeros((), bool)
        mean = actions.mean(prob)
        offsets = (actions.points - mean).reshape(actions.size, -1)
        near = jnp.argmin(jnp.sum(offsets**2, axis=-1))
        return contrast, sample, mode, cost[near], density[near] < HOLLOW * jnp.max(density)

    contrast, sample, mode, mean, hollow = (np.asarray(a) for a in jax.jit(jax.vmap(look))(states))
    costs = {"sample": sample, "mode": mode} | ({} if labels else {"mean": mean})
    least = np.min(np.stack(list(costs.values())), axis=0)
    return (
        float(np.mean(hollow)),
        float(np.mean(contrast)),
        {name: float(np.mean(cost - least)) for name, cost in costs.items()},
    )
