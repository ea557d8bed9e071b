"""A table of policies and a cost. It is read without JAX, in the process that parses uploads."""

import csv
import io
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

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
