"""A table of policies and a cost. It is read without JAX, as the studio's parser needs it."""

import csv
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .store import check_text

FEWEST, MOST, LARGEST = 2, 5, 1000  # policies; states, and actions
OWN = ("state", "action", "cost")


class PolicyTable(NamedTuple):
    """Policies, and the cost of every action, in labelled states."""

    name: str
    states: list[str]
    actions: list[str]
    policies: list[str]
    pi: Float[np.ndarray, "state action n"]
    cost: Float[np.ndarray, "state action"]


def read_policies(path: Path) -> PolicyTable:
    """A CSV with a row for each state and action: (state,) action, cost, and a column of probabilities per policy."""
    check_text(path)
    if not path.exists():
        raise ValueError(f"{path} does not exist: check the path;  policychord agents simulate  writes one to try.")
    return parse_policies(path.read_bytes(), path.name)


def parse_policies(content: bytes, name: str) -> PolicyTable:
    """The same of what is in such a file."""
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig", "replace"))))
    header = [column for column in (rows[0] if rows else {}) if column]
    names = [column for column in header if column not in OWN]
    if not {"action", "cost"} <= set(header) or not FEWEST <= len(names) <= MOST:
        raise ValueError(f"{name} has the columns {', '.join(header)[:200] or 'none'}: it needs action, cost and "
                         f"{FEWEST} to {MOST} policies, and may have state.")  # fmt: skip
    states, actions = (list(dict.fromkeys(row.get(key) or "" for row in rows)) for key in ("state", "action"))
    if max(len(states), len(actions)) > LARGEST:
        raise ValueError(f"{name} has {len(states)} states and {len(actions)} actions: at most {LARGEST} of each.")
    cells = np.full((len(states), len(actions), 1 + len(names)), np.nan)
    for line, row in enumerate(rows, 2):
        place = states.index(row.get("state") or ""), actions.index(row["action"] or "")
        if np.isfinite(cells[place]).all():
            raise ValueError(f"{name}, line {line}: this state and action stand in an earlier line, too; remove one.")
        try:
            cells[place] = [float(row[column]) for column in ("cost", *names)]
        except (TypeError, ValueError):
            raise ValueError(f"{name}, line {line}: cost and policies must be numbers.") from None
    if not np.isfinite(cells).all():
        state, action, _ = np.argwhere(~np.isfinite(cells))[0]
        raise ValueError(f"{name} has no finite numbers for action {actions[action]!r} in state {states[state]!r}: "
                         "give every state a line for every action.")  # fmt: skip
    total = cells[..., 1:].sum(axis=1)
    if np.any(cells[..., 1:] < 0) or np.any(abs(total - 1) > 0.01):
        state, policy = np.argwhere((abs(total - 1) > 0.01) | np.any(cells[..., 1:] < 0, axis=1))[0]
        raise ValueError(f"{name}: the probabilities of {names[policy]} in state {states[state]!r} must be at least 0 "
                         f"and sum to 1; they sum to {total[state, policy]:.4g}.")  # fmt: skip
    return PolicyTable(name, states, actions, names, cells[..., 1:] / total[:, None], cells[..., 0])
