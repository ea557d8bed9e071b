"""Policies of one's own: a table of two to five and a cost; their weights, a contest and a diagnosis."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from pydantic import Field

from ..._types import Watch
from ...actions import Finite
from ...agent import Composer
from ...loops.contest import contest
from ...models import Cost, diagnose
from ...primitives import Categorical
from ...runs.policy_table import EXAMPLE, MOST_STATES, PolicyTable, read_policies
from ..inputs import Input, changed, check_names, describe_inputs, inputs_of, values_of
from ..jobs import Job, pursue
from ..parser import parse
from ..uploads import Upload
from ..wire import Frame
from .base import Page
from .gate import ORDERLESS, GatingSettings, regulariser_of


class _Rows(eqx.Module):
    """A row of a table for each state, and one entry of it for an action."""

    values: Array

    def __call__(self, x: Any, *rest: Any) -> Array:
        return self.values[x] if len(rest) == 1 else self.values[x, rest[0]]


class _PolicySettings(GatingSettings):
    """How the policies are composed, and where one looks."""

    unit: float = Field(default=1.0, gt=0, description="Times which costs count: they are weighed against entropies.")
    state: int = Field(default=1, ge=1, description="The state whose weights are shown, by its place in the table.")
    episodes: int = Field(default=60, ge=2, description="Of a contest, state after state, the same for every agent.")


GATING, WATCH = "Gate", "Looking at"
INPUTS = (
    Input("eps", "Temperature", GATING, 0.02, 10.0, 0.01, "nats", "log"),
    Input("unit", "Unit of the cost", GATING, 0.01, 100.0, 0.01, "nats", "log"),
    Input("regulariser", "Regulariser", GATING),
    Input("alpha", "Order (Tsallis)", GATING, 1.0, 2.0, 0.05),
    Input("state", "State", WATCH, 1, MOST_STATES, 1),
    Input("episodes", "Episodes", WATCH, 2, 500, 1),
)


class _Policies(NamedTuple):
    """A table, and the parts that are still to be drawn."""

    settings: _PolicySettings
    table: PolicyTable
    upload: Upload
    fault: str = ""
    left: tuple[str, ...] = ("data", "weights")
    job: Job | None = None


def _agent(settings: _PolicySettings, table: PolicyTable) -> Composer:
    shares = {name: Categorical(_Rows(jnp.log(table.pi[..., i]))) for i, name in enumerate(table.names)}
    model = Cost(_Rows(jnp.asarray(settings.unit * table.cost)))
    return Composer(shares, model, Finite(len(table.actions)), settings.eps, regulariser=regulariser_of(settings))


_weigh = eqx.filter_jit(lambda agent, states: jax.vmap(lambda x: agent.weigh(x, 0))(states))


@eqx.filter_jit
def _returns(agent: Any, cost: Array, episodes: Array) -> Array:
    """Minus the cost of one action in each episode, in the table's states one after another."""

    def one(i: Array) -> Array:
        decided = agent.decide(jax.random.fold_in(jax.random.key(0), i), i % len(cost), 0, agent.start())
        return -cost[i % len(cost), decided.action]

    return jax.vmap(one)(episodes)


def _weights_frame(watch: Watch, settings: _PolicySettings, table: PolicyTable) -> Frame:
    """Weights in every state, with the worst certificate among them."""
    weighed = _weigh(_agent(settings, table), jnp.arange(len(table.states)))
    header = {
        "names": table.names, "states": table.states, "gap": float(weighed.certificate.gap.max()),
        "distance": float(weighed.certificate.distance.max()),
    }  # fmt: skip
    return Frame("weights", header, {"weights": np.asarray(weighed.weights)})


def _contest_frame(watch: Watch, settings: _PolicySettings, table: PolicyTable) -> Frame:
    """The composition and what it has to beat, in the same episodes."""
    cost, episodes = jnp.asarray(table.cost), jnp.arange(settings.episodes)
    found = contest(_agent(settings, table), lambda agent: _returns(agent, cost, episodes), progress=watch)
    return Frame("contest", {"lines": str(found).splitlines()}, {})


def _diagnosis_frame(watch: Watch, settings: _PolicySettings, table: PolicyTable) -> Frame:
    """Does the cost count, and does the selection suit? A table says nothing of what follows an action."""
    found = diagnose(_agent(settings, table), jnp.arange(len(table.states)), tried=0)
    return Frame("diagnosis", {"lines": str(found).splitlines()}, {})


# What is drawn, and the settings that it does not depend on.
MAKE = {"weights": _weights_frame, "contest": _contest_frame, "diagnosis": _diagnosis_frame}
WITHOUT = {"weights": ("state", "episodes"), "contest": ("state",), "diagnosis": ("state", "episodes")}
ASKED = {"contest": "Playing the episodes", "diagnosis": "Looking at the policies in every state"}


def _data_frame(state: _Policies) -> Frame:
    table, left = state.table, state.left
    header = {
        "file": state.upload.name, "text": state.upload.content.decode("utf-8", "replace")[:20_000],
        "blame": state.fault, "size": [len(table.states), len(table.actions), len(table.names)],
        "computing": [part for part in left if part == "weights"],
        "cancelled": [part for part in ASKED if part not in left],
    }  # fmt: skip
    return Frame("data", header, {})


def _begin() -> _Policies:
    upload = Upload("example.csv", EXAMPLE.encode())
    return _Policies(_PolicySettings(), read_policies(upload.content, upload.name, {}), upload)


def _change(state: _Policies, changes: Mapping[str, Any]) -> _Policies:
    check_names(INPUTS, changes)
    settings = changed(state.settings, changes, INPUTS)
    old, new = (inputs_of(one.model_dump(), WITHOUT["weights"]) for one in (state.settings, settings))
    return state._replace(settings=settings, left=state.left if old == new else ("data", "weights"))


def _act(state: _Policies, what: Mapping[str, Any]) -> _Policies:
    """Take a table, ask for a contest or a diagnosis, or stop it."""
    match dict(what):
        case {"file": Upload() as upload, **rest} if not rest:
            try:
                table = parse("policies", upload, {})
            except ValueError as error:
                return state._replace(fault=str(error)[:500], left=("data", *state.left))
            return _Policies(state.settings.model_copy(update={"state": 1}), table, upload, job=state.job)
        case {"ask": str() as part, **rest} if part in ASKED and not rest:
            return state._replace(left=(*(other for other in state.left if other != part), part))
        case {"cancel": True, **rest} if not rest:
            if state.job is not None:
                state.job.stop()
            return state._replace(left=("data", *(part for part in state.left if part not in ASKED)))
    raise ValueError(f"act = {str(dict(what))[:60]}: use file, ask or cancel.")


def _frame(state: _Policies) -> tuple[_Policies, Frame | None]:
    part, *left = state.left
    if part == "data":
        return state._replace(left=tuple(left)), _data_frame(state)
    job, ended = pursue(state.job, MAKE[part], state.settings, state.table)
    if not ended:
        said = Frame("asked", {"words": ASKED.get(part, ""), "computing": [part]}, {})
        return state._replace(job=job), said if job is not state.job and part in ASKED else None
    header = {**job.result().header, **inputs_of(values_of(INPUTS, state.settings), WITHOUT[part])}
    return state._replace(left=tuple(left), job=None), job.result()._replace(header=header)


def _describe(state: _Policies) -> dict[str, Any]:
    now, default = (values_of(INPUTS, settings) for settings in (state.settings, _PolicySettings()))
    idle = ORDERLESS if state.settings.regulariser != "Tsallis" else {}
    if len(state.table.states) == 1:
        idle = {**idle, "state": "The table has one state."}
    return {"settings": now, "defaults": default, "snippet": _snippet(state), "idle": idle}


def _snippet(state: _Policies) -> str:
    """The same in Python."""
    settings, own = state.settings, state.upload.content != EXAMPLE.encode()
    how = f", regulariser=pc.Tsallis({settings.alpha})" if settings.regulariser == "Tsallis" else ""
    file = repr(state.upload.name) if own else f"io.StringIO({EXAMPLE!r})"
    return f"""\
import io

import jax
import jax.numpy as jnp
import pandas as pd
import policychord as pc

pc.enable_x64()
table = pd.read_csv({file})
table["state"] = table["state"] if "state" in table else ""
names = [column for column in table if column not in ("state", "action", "cost")]
cells = table.pivot(index="state", columns="action").reindex(table.state.unique()).swaplevel(axis=1)
cells = jnp.stack([cells[action][["cost", *names]].to_numpy(float) for action in table.action.unique()], axis=1)
cost, pi = cells[..., 0], cells[..., 1:] / cells[..., 1:].sum(axis=1, keepdims=True)

policies = {{name: pc.Categorical(lambda x, k, i=i: jnp.log(pi[x, :, i])) for i, name in enumerate(names)}}
model = pc.Cost(lambda x, u, k: {settings.unit} * cost[x, u])
agent = pc.Composer(policies, model, pc.Finite(cost.shape[1]), {settings.eps}{how})
weighed = jax.vmap(lambda x: agent.weigh(x, 0))(jnp.arange(len(cost)))
print(names, weighed.weights.round(4), "proved within", weighed.certificate.gap.max())


def play(agent):
    def one(i):
        decided = agent.decide(jax.random.fold_in(jax.random.key(0), i), i % len(cost), 0, agent.start())
        return -cost[i % len(cost), decided.action]
    return jax.vmap(one)(jnp.arange({settings.episodes}))


print(pc.contest(agent, play))
print(pc.models.diagnose(agent, jnp.arange(len(cost)), tried=0))
"""


POLICIES = Page(
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
