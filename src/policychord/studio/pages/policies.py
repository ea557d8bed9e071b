"""Policies of one's own: two to five of them and a cost, from a table or for the pendulum; weights, contest, diagnosis."""

import csv
import inspect
import io
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from pydantic import Field

from ..._types import Watch
from ...actions import Finite, Grid
from ...agent import Composer
from ...core.regularisers import Tsallis
from ...loops.contest import contest
from ...loops.rollout import rollout
from ...models import Cost, Rollouts, diagnose
from ...primitives import Categorical, Gaussian
from ...worlds.pendulum import Pendulum, PendulumState, upright
from ..inputs import Input, changed, check_names, describe_inputs, inputs_of, values_of
from ..jobs import Job, pursue
from ..parser import parse
from ..uploads import Upload
from ..wire import Frame
from .base import Page
from .gate import GatingSettings

FEWEST, MOST, MOST_STATES, MOST_ACTIONS = 2, 5, 200, 200
EXAMPLE = """state,action,cost,bold,steady,shy
clear,left,2,.1,.3,.2
clear,ahead,0,.8,.4,.2
clear,stop,3,.1,.3,.6
crowded,left,1,.1,.3,.2
crowded,ahead,6,.8,.4,.2
crowded,stop,2,.1,.3,.6
"""


class PolicyTable(NamedTuple):
    """Policies and a cost over labelled states and actions."""

    states: list[str]
    actions: list[str]
    names: list[str]
    pi: Float[np.ndarray, "state action n"]
    cost: Float[np.ndarray, "state action"]


def read_policies(content: bytes, name: str, options: Mapping[str, Any]) -> PolicyTable:
    """A CSV with a row for each state and action: (state,) action, cost, and a column of probabilities per policy."""
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig", "replace"))))
    header = [column for column in (rows[0] if rows else {}) if column]
    names = [column for column in header if column not in ("state", "action", "cost")]
    if not {"action", "cost"} <= set(header) or not FEWEST <= len(names) <= MOST:
        raise ValueError(f"{name} has the columns {', '.join(header)[:200] or 'none'}: it needs action, cost and "
                         f"{FEWEST} to {MOST} policies, and may have state.")  # fmt: skip
    states, actions = (list(dict.fromkeys(str(row.get(key) or "") for row in rows)) for key in ("state", "action"))
    if len(states) > MOST_STATES or len(actions) > MOST_ACTIONS:
        raise ValueError(f"{name} has {len(states)} states and {len(actions)} actions: up to 200 of each are taken.")
    cells = np.full((len(states), len(actions), 1 + len(names)), np.nan)
    for number, row in enumerate(rows, 2):
        try:
            values = [float(row[column]) for column in ("cost", *names)]
        except (TypeError, ValueError):
            raise ValueError(f"{name}, line {number}: cost and policies must be numbers. Correct the line.") from None
        cells[states.index(str(row.get("state") or "")), actions.index(row["action"])] = values
    pi, cost = cells[..., 1:], cells[..., 0]
    if not np.all(np.isfinite(cells)):
        at = np.argwhere(~np.isfinite(cells))[0]
        raise ValueError(f"{name} has no numbers for action {actions[at[1]]} in state {states[at[0]] or 'one'}: give "
                         "every state a line for every action.")  # fmt: skip
    if np.any(pi < 0) or np.any(pi.sum(axis=1) <= 0):
        raise ValueError(f"{name}: probabilities are at least 0, and each policy takes some action in every state.")
    return PolicyTable(states, actions, names, pi / pi.sum(axis=1, keepdims=True), cost)


# ------------------------------------------------------------------ the pendulum: policies, a model and a cost


def pump(x, k):
    energy = x.velocity**2 / 6 + 5.0 * (jnp.cos(x.angle) - 1.0)  # zero: enough to reach the top
    return jnp.array([-2.0 * jnp.sign(x.velocity * energy)])


def balance(x, k):
    return jnp.array([-20.0 * upright(x.angle) - 4.0 * x.velocity])


def brake(x, k):
    return jnp.array([-2.0 * x.velocity])


def left(x, k):
    return jnp.array([-2.0])


def right(x, k):
    return jnp.array([2.0])


def predict(x, u, k):
    return Pendulum().move(x, u[0])


class Stage(eqx.Module):
    """What the task charges for a step, times the unit."""

    unit: Array

    def __call__(self, x, u, k):
        return self.unit * (upright(x.angle) ** 2 + 0.1 * x.velocity**2 + 0.001 * u[0] ** 2)


POLICIES: dict[str, Callable[..., Any]] = {one.__name__: one for one in (pump, balance, brake, left, right)}


class Rows(eqx.Module):
    """A row of a table for each state, and the price of an action in it."""

    values: Array

    def __call__(self, x, *rest):
        return self.values[x] if len(rest) == 1 else self.values[x, rest[0]]


class _PolicySettings(GatingSettings):
    """What is composed, and where it is looked at; a misspelt setting is an error."""

    problem: str = Field(default="table", pattern="^(table|pendulum)$", description="What the policies are for.")
    unit: float = Field(default=1.0, gt=0, description="Times which costs count: they are weighed against entropies.")
    pump: bool = Field(default=True, description="Swings up: adds energy while there is too little.")
    balance: bool = Field(default=True, description="Stiff and damped around upright.")
    brake: bool = Field(default=False, description="Against the motion.")
    left: bool = Field(default=False, description="Full torque to one side.")
    right: bool = Field(default=False, description="Full torque to the other side.")
    steps: int = Field(default=20, ge=1, description="How far the model looks: each policy followed for these steps.")
    velocity: float = Field(default=0.0, description="The speed at which weights are shown, at every angle.")
    episodes: int = Field(default=20, ge=2, description="Played by every agent of a contest: the same ones.")
    state: int = Field(default=1, ge=1, description="The state whose weights are shown, by its place.")

    @property
    def chosen(self) -> list[str]:
        """The pendulum's policies that are on."""
        return [name for name in POLICIES if getattr(self, name)]


WHAT, GATING, WATCH = "Policies", "Gate", "Looking at"
INPUTS = (
    Input("problem", "Problem", WHAT),
    *(Input(name, name.capitalize(), WHAT) for name in POLICIES),
    Input("steps", "Horizon", WHAT, 1, 60, 1, "steps"),
    Input("eps", "Temperature", GATING, 0.02, 10.0, 0.01, "nats", "log"),
    Input("unit", "Unit of the cost", GATING, 0.01, 100.0, 0.01, "nats", "log"),
    Input("regulariser", "Regulariser", GATING),
    Input("alpha", "Order (Tsallis)", GATING, 1.0, 2.0, 0.05),
    Input("velocity", "Velocity", WATCH, -8.0, 8.0, 0.1, "rad/s"),
    Input("state", "State", WATCH, 1, MOST_STATES, 1),
    Input("episodes", "Episodes", WATCH, 2, 200, 1),
)
OF_PENDULUM = (*POLICIES, "steps", "velocity")


class _Policies(NamedTuple):
    """What is composed, and the parts that are still to be drawn."""

    settings: _PolicySettings
    table: PolicyTable
    upload: Upload
    fault: str = ""
    left: tuple[str, ...] = ("data", "weights")
    job: Job | None = None


def _agent(settings: _PolicySettings, table: PolicyTable) -> Composer:
    """The composition that is looked at."""
    unit, how = jnp.asarray(settings.unit), {}
    how["regulariser"] = Tsallis(settings.alpha) if settings.regulariser == "Tsallis" else None
    if settings.problem == "table":
        shares = {name: Categorical(Rows(jnp.log(table.pi[..., i]))) for i, name in enumerate(table.names)}
        return Composer(shares, Cost(Rows(unit * table.cost)), Finite(len(table.actions)), settings.eps, **how)
    ways = {name: Gaussian(POLICIES[name], sd=0.3, outside="tail") for name in settings.chosen}
    torques, stage = Grid(-2.0, 2.0, 41, saturates=True), Stage(unit)
    later = Rollouts(ways, torques, predict, stage, steps=settings.steps)
    model = Cost(stage, predict=predict, cost_to_go=later)
    return Composer(ways, model, torques, settings.eps, selection="mean", **how)


def _states(settings: _PolicySettings, table: PolicyTable) -> tuple[list[Any], Any]:
    """Names of the states that are looked at, and the states."""
    if settings.problem == "table":
        return table.states, jnp.arange(len(table.states))
    angles = np.linspace(-180.0, 180.0, 61)
    return angles.tolist(), PendulumState(jnp.radians(angles), jnp.full(angles.shape, settings.velocity))


_weigh = eqx.filter_jit(lambda agent, states: jax.vmap(lambda x: agent.weigh(x, 0))(states))


def _weights_frame(watch: Watch, settings: _PolicySettings, table: PolicyTable) -> Frame:
    """Weights in every state, with the worst certificate among them."""
    agent, (names, states) = _agent(settings, table), _states(settings, table)
    weighed = _weigh(agent, states)
    header = {"names": list(agent.names), "states": names, "gap": float(weighed.certificate.gap.max()),
              "distance": float(weighed.certificate.distance.max()), "problem": settings.problem}  # fmt: skip
    return Frame("weights", header, {"weights": np.asarray(weighed.weights)})


def play(settings: _PolicySettings, table: PolicyTable, agent: Any) -> np.ndarray:
    """The return of every episode: a swing-up, or one action in a state of the table, state after state."""
    if settings.problem == "pendulum":
        return rollout(agent, Pendulum(), steps=200, episodes=settings.episodes).total_reward

    @eqx.filter_jit
    def draw(agent: Any, i: Any) -> Any:
        decided = agent.decide(jax.random.fold_in(jax.random.key(0), i), i % len(table.states), 0, agent.start())
        return -jnp.asarray(table.cost)[i % len(table.states), decided.action]

    return np.asarray(jax.vmap(lambda i: draw(agent, i))(jnp.arange(settings.episodes)))


def _contest_frame(watch: Watch, settings: _PolicySettings, table: PolicyTable) -> Frame:
    """The composition and what it has to beat, in the same episodes."""
    found = contest(_agent(settings, table), lambda agent: play(settings, table, agent), progress=watch)
    return Frame("contest", {"rows": [row._asdict() for row in found.rows], "episodes": settings.episodes}, {})


def _diagnosis_frame(watch: Watch, settings: _PolicySettings, table: PolicyTable) -> Frame:
    """Does the cost count, is the horizon long enough, does the selection suit?"""
    tried = 0 if settings.problem == "table" else 8  # a table says nothing of what follows an action
    found = diagnose(_agent(settings, table), _states(settings, table)[1], tried=tried)
    lines = [line for line in str(found).splitlines() if not line.startswith("warning: ")]
    return Frame("diagnosis", {"lines": lines, "warnings": list(found.warnings)}, {})


def _data_frame(state: _Policies) -> Frame:
    table = state.table
    header = {"file": state.upload.name, "text": state.upload.content.decode("utf-8", "replace")[:20_000],
              "fault": "", "blame": state.fault, "table": state.settings.problem == "table",
              "size": [len(table.states), len(table.actions), len(table.names)]}  # fmt: skip
    return Frame("data", header, {})


# ------------------------------------------------------------------ as a page

MAKE = {"weights": _weights_frame, "contest": _contest_frame, "diagnosis": _diagnosis_frame}
WITHOUT = {"weights": ("state", "episodes"), "contest": ("state", "velocity"), "diagnosis": ("state", "episodes")}
ASKED = {"contest": "Playing", "diagnosis": "Looking at the agent in these states"}


def _begin() -> _Policies:
    upload = Upload("example.csv", EXAMPLE.encode())
    return _Policies(_PolicySettings(), read_policies(upload.content, upload.name, {}), upload)


def _change(state: _Policies, changes: Mapping[str, Any]) -> _Policies:
    check_names(INPUTS, changes)
    settings = changed(state.settings, changes, INPUTS)
    if not FEWEST <= len(settings.chosen) <= MOST:
        raise ValueError(f"{len(settings.chosen)} policies are on: switch on at least {FEWEST}.")
    other = inputs_of(settings.model_dump(), WITHOUT["weights"]) != inputs_of(
        state.settings.model_dump(), WITHOUT["weights"]
    )
    return state._replace(settings=settings, left=("data", "weights") if other else state.left)


def _act(state: _Policies, what: Mapping[str, Any]) -> _Policies:
    match dict(what):
        case {"file": Upload() as upload, **rest} if not rest:
            try:
                table = parse("policies", upload, {})
            except ValueError as error:
                return state._replace(upload=upload, fault=str(error)[:500], left=("data",))
            settings = state.settings.model_copy(update={"problem": "table", "state": 1})
            return _Policies(settings, table, upload, job=state.job)
        case {"ask": str() as part, **rest} if part in ASKED and not rest:
            return state._replace(left=(*(one for one in state.left if one != part), part))
        case {"cancel": True, **rest} if not rest:
            if state.job is not None:
                state.job.stop()
            return state._replace(left=tuple(one for one in state.left if one not in ASKED))
    raise ValueError(f"act = {str(dict(what))[:60]}: use file, ask or cancel.")


def _frame(state: _Policies) -> tuple[_Policies, Frame | None]:
    part, *left = state.left
    if part == "data":
        return state._replace(left=tuple(left)), _data_frame(state)
    job, ended = pursue(state.job, MAKE[part], state.settings, state.table)
    if not ended:
        words = job.progress[0] or ASKED.get(part, "")
        said = Frame("asked", {"words": words, "computing": [part]}, {}) if part in ASKED else None
        return state._replace(job=job), said
    header = {**job.result().header, **inputs_of(values_of(INPUTS, state.settings), WITHOUT[part])}
    return state._replace(left=tuple(left), job=None), job.result()._replace(header=header)


def _describe(state: _Policies) -> dict[str, Any]:
    now, default = (values_of(INPUTS, settings) for settings in (state.settings, _PolicySettings()))
    idle = dict.fromkeys(OF_PENDULUM, "This belongs to the pendulum.") if state.settings.problem == "table" else {}
    if state.settings.regulariser != "Tsallis":
        idle["alpha"] = "The entropy has no order: choose Tsallis first."
    return {"settings": now, "defaults": default, "snippet": _snippet(state), "idle": idle}


def _snippet(state: _Policies) -> str:
    """The same in Python."""
    one, name = state.settings, state.upload.name
    how = f", regulariser=pc.Tsallis({one.alpha})" if one.regulariser == "Tsallis" else ""
    if one.problem == "table":
        file = f"io.StringIO({EXAMPLE!r})" if state.upload.content == EXAMPLE.encode() else repr(name)
        return f"""\
import io

import pandas as pd
import policychord as pc

table = pd.read_csv({file})
policies = [column for column in table if column not in ("state", "action", "cost")]
for state, rows in table.groupby("state" if "state" in table else lambda row: "", sort=False):
    pi = rows[policies].to_numpy()
    posed = pc.problem(pi=pi / pi.sum(axis=0), action_cost={one.unit} * rows.cost.to_numpy(), eps={one.eps}{how})
    best = pc.solve(posed)
    print(state, dict(zip(policies, best.weights.round(4))), "proved within", best.certificate.gap)
"""
    sources = "\n\n".join(inspect.getsource(part) for part in (*map(POLICIES.get, one.chosen), predict, Stage))
    ways = ", ".join(f'"{name}": {name}' for name in one.chosen)
    return f"""\
import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

import policychord as pc
from policychord.worlds import Pendulum, PendulumState, upright

pc.enable_x64()

{sources}

ways = {{name: pc.Gaussian(way, sd=0.3, outside="tail") for name, way in {{{ways}}}.items()}}
torques, stage = pc.Grid(-2.0, 2.0, 41, saturates=True), Stage(jnp.asarray({one.unit}))
later = pc.Rollouts(ways, torques, predict, stage, steps={one.steps})
model = pc.Cost(stage, predict=predict, cost_to_go=later)
agent = pc.Composer(ways, model, torques, {one.eps}, selection="mean"{how})

angles = jnp.radians(jnp.linspace(-180.0, 180.0, 61))
states = PendulumState(angles, jnp.full(angles.shape, {one.velocity}))
print(agent.weigh(PendulumState(angles[30], jnp.asarray({one.velocity}))).weights)  # upright
print(pc.contest(agent, lambda one: pc.rollout(one, Pendulum(), steps=200, episodes={one.episodes}).total_reward))
print(pc.models.diagnose(agent, states, tried=8))
"""


POLICIES_PAGE = Page(
    name="policies",
    title="Policies",
    inputs=lambda: describe_inputs([_PolicySettings], INPUTS),
    begin=_begin,
    change=_change,
    restart=lambda state: _begin(),
    describe=_describe,
    frame=_frame,
    settled=lambda state: not state.left,
    act=_act,
)
