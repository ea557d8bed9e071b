"""Policies of one's own, in a table with a cost: certified weights in every state, and does composing pay?"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from ...runs.policy_table import EXAMPLE, MOST_STATES, PolicyTable, read_policies
from ..inputs import Input, changed, check_names, describe_inputs, in_page_words, inputs_of, values_of
from ..parser import parse
from ..uploads import Upload
from ..wire import Frame
from .base import Page

LONGEST_FAULT, LONGEST_TEXT = 500, 20_000  # characters
PAGE_WORDS = ((r"--cost-unit\b", "Unit of the cost"), (r"--eps\b", "Temperature"))


class _PolicySettings(BaseModel):
    """How policies are composed, and where one looks; a misspelt setting is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    eps: float = Field(default=0.5, gt=0, description="Temperature: low follows the cost, high uses all alike.")
    unit: float = Field(default=1.0, gt=0, description="Times which costs count: they are weighed against entropies.")
    state: int = Field(default=1, ge=1, description="The state whose weights are shown, by its place in the table.")


INPUTS = (
    Input("eps", "Temperature", "Gate", 0.02, 10.0, 0.01, "nats", "log"),
    Input("unit", "Unit of the cost", "Gate", 0.01, 100.0, 0.01, "nats", "log"),
    Input("state", "State", "Looking at", 1, MOST_STATES, 1),
)


class _Policies(NamedTuple):
    """A table, what is wrong with one that was refused, and the parts that are still to be drawn."""

    settings: _PolicySettings
    table: PolicyTable
    upload: Upload
    fault: str = ""
    left: tuple[str, ...] = ("data", "weights")


def _data_frame(state: _Policies) -> Frame:
    from ...runs.policies import describe_table  # matplotlib takes a second

    header = {"file": state.upload.name, "text": state.upload.content.decode("utf-8", "replace")[:LONGEST_TEXT],
              "blame": state.fault, "facts": describe_table(state.table)}  # fmt: skip
    return Frame("data", header, {})


def _weights_frame(state: _Policies) -> Frame:
    """Weights in every state with the worst certificate, the contest in expected costs, and what asks for a change."""
    from ...runs.policies import compose_table, warnings_of

    settings, table = state.settings, state.table
    found = compose_table(table, settings.eps, settings.unit)
    certificate = found.solved.certificate
    header = {
        "names": table.names, "states": table.states,
        "gap": float(np.max(certificate.gap)), "distance": float(np.max(certificate.distance)),
        "contest": [row._asdict() for row in found.costs.rows],
        "warnings": [in_page_words(line, PAGE_WORDS)
                     for line in warnings_of(table, found.posed, np.asarray(found.solved.weights))],
        **inputs_of(values_of(INPUTS, settings), ("state",)),
    }  # fmt: skip
    return Frame("weights", header, {"weights": np.asarray(found.solved.weights)})


def _begin() -> _Policies:
    upload = Upload("example.csv", EXAMPLE.encode())
    return _Policies(_PolicySettings(), read_policies(upload.content, upload.name, {}), upload)


def _change(state: _Policies, changes: Mapping[str, Any]) -> _Policies:
    check_names(INPUTS, changes)
    left = tuple(part for part in ("data", "weights") if part in (*state.left, "weights"))
    return state._replace(settings=changed(state.settings, changes, INPUTS), left=left)


def _act(state: _Policies, what: Mapping[str, Any]) -> _Policies:
    """Take a table; one that cannot be read leaves the other where it is."""
    match dict(what):
        case {"file": Upload() as upload, **rest} if not rest:
            try:
                table = parse("policies", upload, {})
            except ValueError as error:
                return state._replace(fault=str(error)[:LONGEST_FAULT], left=("data", *state.left))
            return _Policies(state.settings.model_copy(update={"state": 1}), table, upload)
    raise ValueError(f"act = {str(dict(what))[:60]}: use file.")


def _frame(state: _Policies) -> tuple[_Policies, Frame]:
    part, *left = state.left
    make = {"data": _data_frame, "weights": _weights_frame}
    return state._replace(left=tuple(left)), make[part](state)


def _describe(state: _Policies) -> dict[str, Any]:
    now, default = (values_of(INPUTS, settings) for settings in (state.settings, _PolicySettings()))
    idle = {"state": "The table has one state."} if len(state.table.states) == 1 else {}
    return {"settings": now, "defaults": default, "snippet": _snippet(state), "idle": idle}


def _snippet(state: _Policies) -> str:
    """The same in Python."""
    own = state.upload.content != EXAMPLE.encode()
    return f"""\
import io

import pandas as pd
from policychord import problem, solve

table = pd.read_csv({repr(state.upload.name) if own else f"io.StringIO({EXAMPLE!r})"})
names = [column for column in table if column not in ("state", "action", "cost")]
for state, rows in table.groupby(table["state"] if "state" in table else lambda row: "", sort=False):
    pi, cost = rows[names].to_numpy(), rows["cost"].to_numpy()
    pi = pi / pi.sum(axis=0)
    best = solve(problem(pi=pi, action_cost={state.settings.unit} * cost, eps={state.settings.eps}))
    print(state, dict(zip(names, best.weights.round(4))), "proved within", best.certificate.gap)
    print("  costs", cost @ pi @ best.weights, "and alone", dict(zip(names, (cost @ pi).round(4))))
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
