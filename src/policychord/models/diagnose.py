"""`diagnose`: is the horizon long enough, does the cost count, is the model right, do selection and spread suit?"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._types import Observation, in_native_order
from ..actions import Grid
from ..primitives.gaussian import Gaussian
from .base import Scaled, action_cost
from .trials import Trial, longer, try_changes

MOVES = 0.1  # a weight that still moves by so much with twice the horizon moves too much
WRONG = 0.25  # a model whose error is such a share of what an action changes is off
CONSTANT = 0.5  # share of a signal's squared error that is the same in all states, from which it is learned
HOLLOW = 0.5  # a mean is hollow where its action has less than this share of the greatest probability
OFTEN = 0.1  # share of the states
SAME = 1e-9  # nats: costs that are equal but for rounding
FLAT = 0.1  # a cost that moves the weights by less than this decides nothing
ALIKE = 0.05  # total variation of two primitives that do the same
NOTHING = 0.01  # share of the 90% quantile of the contrasts, below which the cost is the same for all primitives
FACTORS = tuple(float(f"{digit}e{power}") for power in range(7) for digit in (1, 2, 5))  # tried on the cost


class Diagnosis(NamedTuple):
    """What `diagnose` found. `print` it; `warnings` are the sentences that ask for a change.

    Averages are over the states that count: those in which the primitives do different things, at different costs.
    """

    counts: float  # the share of such states
    steps: int | None  # of the horizon, None if there is none
    moved: float | None  # how far weights move with twice the horizon: the mean over states of the largest
    moved_by_cost: float  # how far the cost moves the weights from where they are without any: likewise
    contrast: float  # nats by which the dearest primitive's expected cost exceeds the cheapest one's, on average
    unit: float | None  # times which the cost moves the weights enough; None if it does now, or never would
    model_error: float | None  # RMS error of the prediction as a share of the RMS change; None without transitions
    constant: bool  # whether some signal is off by about the same in all states, by a hundredth of its change or more
    hollow: float  # share of the states in which the mean of the mixture is an improbable action
    cost_of: dict[str, float]  # what the model says each selection costs more than the cheapest one, on average
    suits: str  # the selection with the least of these
    cut: dict[str, float]  # of primitives that the grid cuts off, or is too coarse for: the share of the states
    trials: dict[str, Trial]  # what changes save of the cost of acting in the model
    warnings: tuple[str, ...]

    @property
    def flat(self) -> bool:
        """Whether the cost moves no weights although primitives differ in it: then it shows nothing else."""
        return self.contrast > SAME and self.moved_by_cost < FLAT

    def __str__(self) -> str:
        """A line for each question."""
        horizon = "one step" if self.steps is None else f"{self.steps} steps"
        moved = "" if self.moved is None else f", weights move by {self.moved:.2f} with twice as many"
        cost = f"primitives differ by {self.contrast:.2g} nats, which moves weights by {self.moved_by_cost:.2f}"
        model = "not asked" if self.model_error is None else f"error {self.model_error:.0%} of what a step changes"
        dear = ", ".join(f"{name} {cost:+.3g}" for name, cost in self.cost_of.items())
        lines = [f"states: primitives differ in {self.counts:.0%} of them", f"cost: {cost}", f"model: {model}"]
        if self.flat:
            lines.append("horizon and selection: not known until the cost counts")
        else:
            lines += [f"horizon: {horizon}{moved}", f"selection: {self.suits} suits ({dear})"]
            lines += [f"tried in the model: {name} saves {trial}" for name, trial in self.trials.items()]
        return "\n".join([*lines, *(f"warning: {warning}" for warning in self.warnings)])


def diagnose(
    agent: Any,
    states: Observation,
    *,
    actions: Any = None,
    following: Observation | None = None,
    k: int = 0,
    tried: int = 16,
) -> Diagnosis:
    """Look at a composer in these states (a leading axis), which should be those that it meets while it acts.

    Give the `actions` that were taken there and the states `following` them, and it tells how far off the model is.
    Changes are tried in the model itself, where the agent acts from up to `tried` of the states on; 0 leaves that out.
    """
    if (actions is None) != (following is None):
        raise ValueError("actions and following belong together: what was done in each state, and what came of it.")
    states, actions, following = in_native_order((states, actions, following))
    look = _look(agent, states, k)
    great = look.contrast > max(SAME, NOTHING * float(np.quantile(look.contrast, 0.9)))
    count = great & (look.apart > ALIKE)
    chosen = count if count.any() else np.ones(len(count), bool)  # if none counts, all say so
    where = np.flatnonzero(chosen)
    met = jax.tree_util.tree_map(lambda a: jnp.asarray(a)[where], states)

    weigh = eqx.filter_jit(lambda composer, x: jax.vmap(lambda state: composer.weigh(state, k).weights)(x))
    far = longer(agent)
    moved = None if far is None else _largest(weigh(far, met) - weigh(agent, met))
    by_cost, unit = _moved_by_cost(agent, met, k, float(np.mean(look.contrast[chosen])))
    least = np.min(np.stack(list(look.costs.values())), axis=0)
    cost_of = {name: float(np.mean((cost - least)[chosen])) for name, cost in look.costs.items()}
    error, constant = (None, False) if actions is None else _model_error(agent, states, actions, following, k)
    diagnosis = Diagnosis(
        counts=float(np.mean(count)),
        steps=None if far is None else far.model.cost_to_go.steps // 2,
        moved=moved,
        moved_by_cost=by_cost,
        contrast=float(np.mean(look.contrast[chosen])),
        unit=unit,
        model_error=error,
        constant=constant,
        hollow=float(np.mean(look.hollow)),
        cost_of=cost_of,
        suits=min(cost_of, key=lambda name: cost_of[name]),
        cut=_cut(agent, states, k),
        trials={},
        warnings=(),
    )
    if tried and not diagnosis.flat:
        every = np.unique(np.linspace(0, len(where) - 1, tried).astype(int))
        begin = jax.tree_util.tree_map(lambda a: a[every], met)
        diagnosis = diagnosis._replace(trials=try_changes(agent, begin, k, _hollow(agent, diagnosis)))
    same = float(np.max(look.apart)) <= ALIKE
    return diagnosis._replace(warnings=_warnings(agent, diagnosis, same))


def _warnings(agent: Any, diagnosis: Diagnosis, same: bool) -> tuple[str, ...]:
    warnings, error = [], diagnosis.model_error
    if same:
        warnings.append("the primitives do the same in all of these states: pass states in which they differ.")
    elif diagnosis.flat:
        remedy = f"Multiply all costs by about {diagnosis.unit:.0f}." if diagnosis.unit else "Lower eps."
        warnings.append(
            f"the cost hardly counts: it differs by {diagnosis.contrast:.2g} nats between primitives, so prior and "
            f"entropies set the weights. {remedy}"
        )
    if error is not None and error > WRONG:
        warnings.append(
            f"the model is off: its error is {error:.0%} of what a step changes. Correct predict, or its time step."
        )
    if diagnosis.constant:
        warnings.append(
            "the model misses about the same in every state, as with a wrong mass: correct predict, or plan by "
            "Planner(..., like=observation), which learns such an error while it acts."
        )
    for name, share in diagnosis.cut.items():
        if share > OFTEN and not agent.actions.saturates:
            warnings.append(
                f"in {share:.0%} of the states the grid cuts primitive {name!r} off, or is too coarse for it: use a "
                "finer grid, a wider one, or Sampled actions."
            )
    return (*warnings, *(() if diagnosis.flat or same else _improvements(agent, diagnosis)))


def _improvements(agent: Any, diagnosis: Diagnosis) -> list[str]:
    """Changes that make acting cheaper by the model."""
    found, helps = [], {name: trial for name, trial in diagnosis.trials.items() if trial.helps}
    if (trial := helps.get("rollouts")) is not None:
        found.append(
            f"the model sees one step, and what is good shows later: with cost_to_go=Rollouts(...) its own cost falls "
            f"by {trial}."
        )
    if (trial := helps.get("twice the steps")) is not None and (diagnosis.moved or 0.0) > MOVES:
        steps = diagnosis.steps or 0
        found.append(
            f"{steps} steps are too few: with {2 * steps} the weights move by {diagnosis.moved:.2f}, and the model's "
            f"own cost falls by {trial}. Raise steps."
        )
    spreads = {name: trial for name, trial in helps.items() if name.endswith("the spread")}
    if spreads:
        name = max(spreads, key=lambda name: spreads[name].saved)
        change = "Raise" if float(name.split()[0]) > 1 else "Lower"
        found.append(f"the spread of the primitives costs: with {name} the model's own cost falls by {spreads[name]}. "
                     f"{change} sd.")  # fmt: skip
    if _hollow(agent, diagnosis) and ("mode" in helps or not diagnosis.trials):
        found.append(
            f"in {diagnosis.hollow:.0%} of the states the mean of the mixture is an action that no primitive wants, "
            "and by the model it costs more: use selection='mode', or 'sample'."
        )
    elif (trial := helps.get("posterior")) is not None and (diagnosis.model_error or 0.0) <= WRONG:
        check = "Check the model first: pass actions and following. " if diagnosis.model_error is None else ""
        found.append(
            f"actions between or beyond those of the primitives are better by the model: acting by p ~ (Pi w) exp(-s) "
            f"its own cost falls by {trial}. {check}If the model is right, use selection='posterior' or "
            "'posterior mean', or a Planner."
        )
    return found


def _hollow(agent: Any, diagnosis: Diagnosis) -> bool:
    """Whether the agent acts by a mean that is often an improbable action, and costs more than the mode."""
    dear = diagnosis.cost_of["mode"] < diagnosis.cost_of.get("mean", -np.inf)
    return agent.selection == "mean" and diagnosis.hollow > OFTEN and dear


def _moved_by_cost(agent: Any, states: Observation, k: int, contrast: float) -> tuple[float, float | None]:
    """(how far the cost moves the optimal weights, the least factor with which it moves them enough if it does not)."""
    deciding = agent.replace(gate="equilibrium", model=Scaled(agent.model, 1.0))
    weigh = eqx.filter_jit(
        lambda composer, factor, x: (
            jax.vmap(eqx.tree_at(lambda tree: tree.model.factor, composer, factor).weigh, in_axes=(0, None))(
                x, k
            ).weights
        )
    )
    free = weigh(deciding, jnp.zeros(()), states)

    def moved(factor: float) -> float:
        return _largest(weigh(deciding, jnp.asarray(factor), states) - free)

    now = moved(1.0)
    if now >= FLAT or contrast <= SAME:
        return now, None
    return now, next((factor for factor in FACTORS[1:] if moved(factor) >= FLAT), None)


def _largest(moves: Array) -> float:
    """The mean over states of the weight that moves most."""
    return float(np.mean(np.max(np.abs(np.asarray(moves)), axis=1)))


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


def _model_error(agent: Any, states: Observation, actions: Any, following: Observation, k: int) -> tuple[float, bool]:
    """(RMS error as a share of the RMS change, whether a signal's error is the same in all states and not small)."""
    predict = getattr(agent.model, "predict", None)
    if not callable(predict):
        raise ValueError(
            "the agent's model predicts no next state, so it cannot be compared with one: leave out actions."
        )
    predicted = jax.jit(jax.vmap(lambda x, u: predict(x, u, k)))(states, jnp.asarray(actions))
    flat = [np.concatenate([np.asarray(a).reshape(len(a), -1) for a in jax.tree_util.tree_leaves(tree)], axis=1)
            for tree in (states, predicted, following)]  # fmt: skip
    before, expected, after = flat
    missed, change = np.mean((after - expected) ** 2, axis=0), np.mean((after - before) ** 2, axis=0)
    same = np.mean(after - expected, axis=0) ** 2 > CONSTANT * missed
    constant = len(before) > 4 and bool(np.any(same & (missed > 1e-4 * change)))
    return float(np.sqrt(np.mean(missed) / max(float(np.mean(change)), 1e-300))), constant


class _Look(NamedTuple):
    """What is seen in each state."""

    apart: np.ndarray  # total variation of the two primitives that differ most
    contrast: np.ndarray  # nats between the expected costs of the dearest and the cheapest
    costs: dict[str, np.ndarray]  # of what each selection does
    hollow: np.ndarray  # whether the mean is an improbable action


def _look(agent: Any, states: Observation, k: int) -> _Look:
    labels = agent.actions.labels

    def look(state: Any) -> tuple[Any, ...]:
        weighed = agent.weigh(state, k)
        actions = agent.actions if weighed.drawn is None else weighed.drawn.actions
        prob, cost = weighed.mixture, action_cost(agent.model, actions, state, k)
        density = prob if weighed.drawn is None else jnp.exp(jnp.log(prob) + weighed.drawn.offset)
        sample, mode = prob @ cost, cost[jnp.argmax(density)]
        pi = jnp.asarray(weighed.problem.pi)
        contrast = jnp.ptp(cost @ pi)
        apart = jnp.max(0.5 * jnp.sum(jnp.abs(pi[:, :, None] - pi[:, None, :]), axis=0))
        if labels:
            return apart, contrast, sample, mode, sample, jnp.zeros((), bool)
        mean = actions.mean(prob)
        offsets = (actions.points - mean).reshape(actions.size, -1)
        near = jnp.argmin(jnp.sum(offsets**2, axis=-1))
        return apart, contrast, sample, mode, cost[near], density[near] < HOLLOW * jnp.max(density)

    apart, contrast, sample, mode, mean, hollow = (np.asarray(a) for a in jax.jit(jax.vmap(look))(states))
    return _Look(apart, contrast, {"sample": sample, "mode": mode} | ({} if labels else {"mean": mean}), hollow)
