"""A table of policies and a cost. It is read without JAX, in the process that parses uploads."""

import csv
import io
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

FEWEST, MOST, MOST_STATES, MOST_ACTIONS = 2, 5, 200, 200
ROUNDED = 0.01  # how far from one the probabilities of a policy may sum
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
    reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig", "replace")))
    lines = [(reader.line_num, row) for row in reader]
    header = [column for column in reader.fieldnames or () if column] if lines else []
    names = [column for column in header if column not in ("state", "action", "cost")]
    if not {"action", "cost"} <= set(header) or not FEWEST <= len(names) <= MOST:
        raise ValueError(f"{name} has the columns {', '.join(header)[:200] or 'none'}: it needs action, cost and "
                         f"{FEWEST} to {MOST} policies, and may have state, with commas between them.")  # fmt: skip
    keys = [(row.get("state") or "", row["action"] or "") for _, row in lines]
    states, actions = (list(dict.fromkeys(labels)) for labels in zip(*keys, strict=True))
    if len(states) > MOST_STATES or len(actions) > MOST_ACTIONS:
        raise ValueError(f"{name} has {len(states)} states and {len(actions)} actions: up to 200 of each are taken.")
    cells, taken = np.full((len(states), len(actions), 1 + len(names)), np.nan), dict[tuple[str, str], int]()
    for (number, row), (state, action) in zip(lines, keys, strict=True):
        if (earlier := taken.setdefault((state, action), number)) != number:
            raise ValueError(f"{name}, line {number}: action {action}{_in(state)} is in line {earlier} already. "
                             "Leave one of the two out.")  # fmt: skip
        for place, column in enumerate(("cost", *names)):
            try:
                value = float(row[column])
            except (TypeError, ValueError):
                value = np.nan
            if not np.isfinite(value) or (place and value < 0):
                raise ValueError(f"{name}, line {number}: {column} is {row[column] or ''!r}, and cost and policies "
                                 "must be numbers, probabilities at least 0. Correct the line.")  # fmt: skip
            cells[states.index(state), actions.index(action), place] = value
    for s, a in np.argwhere(np.isnan(cells[..., 0])):
        raise ValueError(f"{name} has no numbers for action {actions[a]}{_in(states[s])}: give every state a line for "
                         "every action.")  # fmt: skip
    pi, cost = cells[..., 1:], cells[..., 0]
    total = pi.sum(axis=1, keepdims=True)
    for s, k in np.argwhere(abs(total[:, 0] - 1) > ROUNDED + 1e-9):
        raise ValueError(f"{name}: the probabilities of {names[k]}{_in(states[s])} sum to {total[s, 0, k]:.4g}, not 1. "
                         "Correct them; rounding by 0.01 is allowed.")  # fmt: skip
    return PolicyTable(states, actions, names, pi / total, cost)


def _in(state: str) -> str:
    return f" in state {state}" if state else ""
