"""`Trace`: what happened, step by step, and how it becomes a labelled dataset."""

import json
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from .._types import Array, is_traced, namespace
from ..agent import FAILURES, Outcome, failed
from ..agent.decision import warn_of_grid
from .environment import Variable
from .step import Record

if TYPE_CHECKING:
    import xarray as xr


# how files say what the numbers of a variable stand for
OUTCOMES = {
    "long_name": "how the weights were found",
    "flag_values": [int(outcome) for outcome in Outcome],
    "flag_meanings": " ".join(outcome.name.lower() for outcome in Outcome),
}


OFTEN = 0.1  # share of the decisions in which a grid may cut a primitive before a warning


@jax.tree_util.register_static
class Labels(NamedTuple):
    """What the numbers of a trace mean. JAX takes them as part of a trace's structure, not as data."""

    primitives: tuple[str, ...]
    episodes: tuple[int, ...]
    variables: Mapping[str, Variable]  # of the state's fields
    action_unit: str = "1"

    def __hash__(self) -> int:
        return hash((self.primitives, self.episodes, tuple(self.variables.items()), self.action_unit))


class Trace(NamedTuple):
    """Episodes of one agent or population. Leading axes (episode, time), then (agent) for a population."""

    state: Any  # before each decision
    final_state: Any
    action: Shaped[Array, "episode time ..."]
    weights: Float[Array, "episode time *agent n"]
    gap: Float[Array, "episode time *agent"]  # certificate: V(w) - V* <= gap
    distance: Float[Array, "episode time *agent"]  # certificate: ||w - w*||_1 <= distance
    outcome: Int[Array, "episode time *agent"]  # an `Outcome`
    reward: Float[Array, "episode time"]
    alive: Bool[Array, "episode time"]  # False once the episode was over, or where nothing was recorded
    log_prob: Float[Array, "episode time"] | None  # ln probability of recorded actions (replay only)
    labels: Labels
    cut: Bool[Array, "episode time *agent n"] | None = None  # primitives that the grid cuts off, or is too coarse for

    @property
    def total_reward(self) -> Float[Array, " episode"]:
        """The return of each episode."""
        return self.reward.sum(axis=1)

    @property
    def population(self) -> bool:
        """Whether decisions have an agent axis."""
        return self.weights.ndim == 4

    @property
    def converged(self) -> Bool[Array, "episode time *agent"]:
        """Which weights are proved to be optimal, to the agent's tolerance."""
        return self.outcome == int(Outcome.CONVERGED)

    @property
    def certified(self) -> Bool[Array, "episode time *agent"]:
        """Of which weights it is known how far from optimal they can be."""
        return namespace(self.gap).isfinite(self.gap)

    @property
    def fallbacks(self) -> Int[Array, "..."]:
        """How many decisions of each episode were taken by the agent's fallback, since nothing could be decided."""
        alive = self.alive[:, *[None] * (self.outcome.ndim - 2), :]
        return (failed(self.outcome).swapaxes(1, -1) & alive).sum(axis=-1)


def trace_of(record: Record, final_state: Any, labels: Labels, log_prob: Array | None = None) -> Trace:
    """The trace of these steps (leading axes episode, time), with a warning where something was not a number."""
    trace = Trace(**record._asdict(), final_state=final_state, log_prob=log_prob, labels=labels)
    if not is_traced(trace.outcome):
        for complaint, at in complaints(labels.primitives, trace.outcome, trace.weights, trace.gap, trace.alive):
            where = f" (first in episode {labels.episodes[at[0]]} at time {int(at[1])})"
            warnings.warn(complaint + where + ". Look at trace.state, or call agent.problem there.", stacklevel=3)
        if trace.cut is not None and trace.cut.shape[-1] == len(labels.primitives):
            lived = np.asarray(trace.cut)[np.asarray(trace.alive)].reshape(-1, trace.cut.shape[-1])
            often = lived.sum(axis=0) > OFTEN * len(lived)
            warn_of_grid(labels.primitives, often, " in many decisions (trace.cut says in which)")
    return trace


def complaints(
    names: tuple[str, ...], outcome: Array, weights: Array, gap: Array, alive: Array
) -> Iterator[tuple[str, np.ndarray]]:
    """What went wrong in decisions, in words, and where first."""
    outcome, weights, gap, alive = (np.asarray(a) for a in (outcome, weights, gap, alive))
    alive = np.broadcast_to(alive.reshape(alive.shape + (1,) * (outcome.ndim - alive.ndim)), outcome.shape)
    for why in (Outcome.NOT_CONVERGED, Outcome.ROUNDING_LIMIT, *FAILURES):
        if (bad := alive & (outcome == why)).any():
            instead = " The agent's fallback was taken" if why in FAILURES else " They are used as they are"
            yield f"{bad.sum()} of {bad.size} decisions failed. {why.sentence}{instead}", np.argwhere(bad)[0]
    for i, name in enumerate(names if weights.shape[-1] == len(names) else ()):
        # a certified weight is positive, unless its primitive was left out
        if (bad := alive & np.isfinite(gap) & (weights[..., i] == 0)).any():
            yield (
                f"primitive {name!r} was not a number in {bad.sum()} of {bad.size} decisions, and left out of them",
                np.argwhere(bad)[0],
            )


def to_dataset(trace: Trace, **settings: Any) -> "xr.Dataset":
    """The trace as an `xarray.Dataset` with dims episode, time, agent, primitive; `settings` become attributes.

    Each field of the state is a variable of its own, with its unit; one that has the name of something else here, such
    as `time`, is called `state_time`. A single agent has an agent axis of length one.
    """
    import xarray as xr

    labels = trace.labels
    fixed = ("episode", "time")
    each = (*fixed, "agent")

    def per_agent(values: Array, *more: str) -> tuple[tuple[str, ...], np.ndarray]:
        values = np.asarray(values)
        return (*each, *more), values if trace.population else np.expand_dims(values, 2)

    action = per_agent(trace.action)[1]
    action_dims = ("action_axis",) if action.ndim == 4 else tuple(f"action_axis_{i}" for i in range(action.ndim - 3))
    variables = {
        "weights": (*per_agent(trace.weights, "primitive"), {"long_name": "mixture weights", "units": "1"}),
        "gap": (*per_agent(trace.gap), {"long_name": "certificate: V(w) - V* is at most this", "units": "nat"}),
        "distance": (
            *per_agent(trace.distance),
            {"long_name": "certificate: |w - w*|_1 is at most this", "units": "1"},
        ),
        "outcome": (*per_agent(trace.outcome), OUTCOMES),
        "action": ((*each, *action_dims), action, {"units": labels.action_unit}),
        "alive": (fixed, np.asarray(trace.alive), {"long_name": "False once the episode was over"}),
    }
    if trace.cut is not None:
        described = {"long_name": "whether the grid cuts the primitive off, or is too coarse for it", "units": "1"}
        variables["cut"] = (*per_agent(trace.cut, "primitive"), described)
    if trace.log_prob is None:
        variables["reward"] = (fixed, np.asarray(trace.reward), {"units": "1"})
    else:
        described = {"long_name": "ln probability of the recorded action", "units": "nat"}
        variables["log_prob"] = (fixed, np.asarray(trace.log_prob), described)
    taken = {*variables, *each, "primitive"}
    for name, variable in labels.variables.items():
        described = {"units": variable.unit}
        for label, dims, values, final in _leaves(name, variable.dims, trace):
            own = f"state_{label}" if label in taken else label
            variables[own] = ((*fixed, *dims), values, described)
            variables[f"final_{label}"] = (("episode", *dims), final, described)
    coordinates = {
        "episode": list(labels.episodes),
        "primitive": list(labels.primitives),
        "time": np.arange(trace.reward.shape[1]),
        "agent": np.arange(np.asarray(trace.weights).shape[2] if trace.population else 1),
    }
    return xr.Dataset(variables, coords=coordinates, attrs={name: _storable(v) for name, v in settings.items()})


def _leaves(
    name: str, dims: tuple[str, ...], trace: Trace
) -> Iterator[tuple[str, tuple[str, ...], np.ndarray, np.ndarray]]:
    """(label, dims, values, final values) of one field of the state; of each part, if it is a dict or a tuple."""
    values = getattr(trace.state, name, trace.state)  # a state may be a single array
    final = jax.tree_util.tree_leaves(getattr(trace.final_state, name, trace.final_state))
    for (path, leaf), last in zip(jax.tree_util.tree_leaves_with_path(values), final, strict=True):
        label = "_".join([name, *(str(getattr(key, "key", getattr(key, "idx", key))) for key in path)])
        own = tuple(f"{label}_{i}" for i in range(np.ndim(leaf) - 2)) if path else dims
        yield label, own, np.asarray(leaf), np.asarray(last)


def _storable(value: Any) -> str | int | float:
    """Numbers and text as they are; anything else as JSON, which every file format can keep."""
    value = value.tolist() if hasattr(value, "tolist") else value  # arrays and numbers of NumPy and JAX
    if isinstance(value, str | int | float):
        return value
    return json.dumps(value, default=lambda part: part.tolist() if hasattr(part, "tolist") else str(part))
