"""Policies in a table: their weights in every state, what composing them gains, and what to change."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from .._types import Array
from ..core.equilibrium import Equilibrium, solve
from ..core.objective import Problem, problem
from ..drawing import COLOURS, blank
from ..inference import findings
from ..loops.contest import OURS, Contest
from .page import Results
from .policy_table import PolicyTable, read_policies
from .store import check_text, write_text

OWN = ("state", "action", "cost")
SHOWN = 20  # states on the page; weights.csv has all
LONGEST = 16  # letters of a state below its bar
MOVED = 0.1  # a cost that moves no weight by so much hardly counts
ALIKE = 0.05  # total variation of two policies that do the same


class Composed(NamedTuple):
    """What a table gives: weights in every state, and the expected costs of what composing has to beat."""

    table: PolicyTable
    posed: Problem
    solved: Equilibrium
    costs: Contest  # minus the expected cost of an action, state by state


def open_policies(path: Path) -> PolicyTable:
    """The policies of a CSV file."""
    check_text(path)
    if not path.exists():
        raise ValueError(f"{path} does not exist: check the path;  policychord agents simulate  writes one to try.")
    return read_policies(path.read_bytes(), path.name, {})


def simulate_policies(policies: int, states: int, actions: int, seed: int) -> PolicyTable:
    """Policies that each know a stretch of the states: they aim at the best action there, and miss elsewhere."""
    rng = np.random.default_rng(seed)
    best = rng.permutation(np.arange(states) % actions)
    place, cost = np.arange(actions), np.empty((states, actions))
    cost[:] = 4.0 * abs(place - best[:, None]) / actions + rng.uniform(0, 0.2, (states, actions))
    knows = np.arange(states) * policies // states
    aim = np.where(knows[:, None] == np.arange(policies), best[:, None], rng.integers(0, actions, (states, policies)))
    pi = np.exp(-abs(place[:, None] - aim[:, None]))

    def labels(word: str, count: int) -> list[str]:
        return [f"{word} {k + 1}" for k in range(count)]

    return PolicyTable(
        states=labels("state", states), actions=labels("action", actions), names=labels("policy", policies),
        pi=pi / pi.sum(axis=1, keepdims=True), cost=cost,
    )  # fmt: skip


def write_policies(path: Path, table: PolicyTable) -> Path:
    """The table as a CSV that `read_policies` reads."""
    lines = [",".join([*OWN, *table.names])]
    for s, state in enumerate(table.states):
        for a, action in enumerate(table.actions):
            lines.append(",".join([state, action, *(f"{x:.6f}" for x in (table.cost[s, a], *table.pi[s, a]))]))
    return write_text(path, "\n".join(lines) + "\n")


def compose_table(table: PolicyTable, eps: float, unit: float = 1.0, prior: Sequence[float] = ()) -> Composed:
    """Weights with their certificates in every state, and expected costs with those of each policy alone."""
    n = len(table.names)
    if prior and (len(prior) != n or min(prior) <= 0):
        raise ValueError(f"--prior {','.join(f'{p:g}' for p in prior)}: give {n} positive shares, one for each policy.")
    share = np.array(prior or [1.0] * n) / sum(prior or [1.0] * n)
    posed = problem(pi=table.pi, action_cost=unit * table.cost, eps=np.full(len(table.states), eps), prior=share)
    solved = solve(posed)
    alone = np.einsum("san,sa->sn", table.pi, table.cost)
    returns = {f"{name} alone": -alone[:, k] for k, name in enumerate(table.names)}
    returns |= {"fixed mixture": -alone @ share, "cheapest": -alone.min(axis=1)}
    returns[OURS] = -np.sum(alone * np.asarray(solved.weights), axis=1)
    return Composed(table, posed, solved, Contest(returns, OURS))


def warnings_of(table: PolicyTable, posed: Problem, weights: Array | None = None) -> list[str]:
    """What asks for a change: policies that do the same, and a cost that hardly counts."""
    said, n = [], len(table.names)
    apart = {(i, j): float(abs(table.pi[..., i] - table.pi[..., j]).sum(axis=1).max() / 2)
             for i in range(n) for j in range(i)}  # fmt: skip
    said += [f"{table.names[j]} and {table.names[i]} do the same in every state (they differ by {far:.2f} in "
             "total variation): leave one out." for (i, j), far in apart.items() if far < ALIKE]  # fmt: skip
    if weights is not None:
        free = solve(posed._replace(action_cost=0 * posed.action_cost)).weights
        moved = float(abs(np.asarray(weights) - np.asarray(free)).max())
        if moved < MOVED:
            said.append(f"The cost hardly counts: it moves no weight by more than {moved:.2f}. Raise --cost-unit, or "
                        "lower --eps.")  # fmt: skip
    return said


def describe_table(table: PolicyTable) -> list[tuple[str, str]]:
    """What a table of policies holds."""
    alone = np.einsum("san,sa->sn", table.pi, table.cost)
    spread = alone.max(axis=1) - alone.min(axis=1)
    best = np.bincount(alone.argmin(axis=1), minlength=len(table.names))
    return [
        ("states", f"{len(table.states):,}"), ("actions", f"{len(table.actions):,}"),
        ("policies", ", ".join(table.names)), ("cost", f"{table.cost.min():.4g} to {table.cost.max():.4g}"),
        ("expected costs differ between policies by", f"{spread.mean():.3g} on average, {spread.max():.3g} at most"),
        *((f"{name} is the cheapest in", f"{count} of {len(table.states)} states")
          for name, count in zip(table.names, best.tolist(), strict=True)),
    ]  # fmt: skip


def results_of(found: Composed, source: str) -> Results:
    """What stands on the page of policies."""
    table, solved = found.table, found.solved
    weights, gap = np.asarray(solved.weights), np.asarray(solved.certificate.gap)
    contest = {row.agent: row for row in found.costs.rows}
    rows = [
        [row.agent, f"{0.0 - row.mean:.4f}", "" if row.gain is None else f"{row.gain:+.4f}",
         "" if row.won is None else str(row.won), "" if row.lost is None else str(row.lost)]
        for row in found.costs.rows
    ]  # fmt: skip
    single = max((f"{name} alone" for name in table.names), key=lambda name: contest[name].mean)
    ours, alone, fixed, cheapest = (float(f"{0.0 - contest[name].mean:.4g}")  # compared in the digits that are shown
                                    for name in (OURS, single, "fixed mixture", "cheapest"))  # fmt: skip
    verdict = f"Composing {'pays' if ours < min(alone, fixed) else 'does not pay here'}: {ours:g}"
    if cheapest < ours:
        verdict = f"Picking the cheapest policy in each state costs less than composing: {cheapest:g} against {ours:g}"
    verdict += f" per action on average; {single} costs {alone:g}, a fixed mixture {fixed:g}."
    columns = ["state", *table.names, "proved gap"]
    shown = [[state or "all", *(f"{w:.4f}" for w in weights[s]), f"{gap[s]:.1e}"]
             for s, state in enumerate(table.states[:SHOWN])]  # fmt: skip
    proof = (f"Every weight vector is proved to be within {gap.max():.1e} of the minimum of the objective"
             f" (largest gap over {len(table.states)} states).")  # fmt: skip
    lines = [",".join([*columns[:-1], "gap", "distance"])]
    distance = np.asarray(solved.certificate.distance)
    lines += [",".join([state, *(f"{w:.12g}" for w in weights[s]), f"{gap[s]:.3g}", f"{distance[s]:.3g}"])
              for s, state in enumerate(table.states)]  # fmt: skip
    return Results(
        kind="agents fit", source=source, verdict=verdict,
        columns=["agent", "expected cost", "composed gains", "cheaper in", "dearer in"], rows=rows,
        sentences=[proof, "Costs are exact means over the table's states, all counted alike. Cheapest takes the "
                   "policy with the lowest expected cost in each state, so no weights cost less than it; composing "
                   "also keeps actions spread."],
        warnings=warnings_of(table, found.posed, weights),
        estimates=("weights of the composed agent", findings.table(columns, shown)),
        card=findings.table(["what", "how much"], describe_table(table)),
        details=[], pictures={"weights": (draw_weights, (table, weights), "Weights of the policies in every state."),
                              "costs": (draw_costs, (found.costs,), "Expected cost of an action, over all states.")},
        tables={"weights.csv": "\n".join(lines) + "\n"},
        record={"weights": weights, "gap": gap, "distance": distance, "policies": table.names,
                "states": table.states, "contest": [row._asdict() for row in found.costs.rows]},
    )  # fmt: skip


def draw_weights(table: PolicyTable, weights: np.ndarray) -> Figure:
    """Shares of the policies, state by state."""
    figure = blank(5.2, 3.2)
    ax, floor, places = figure.subplots(), np.zeros(len(weights)), np.arange(len(weights))
    for name, share, colour in zip(table.names, weights.T, COLOURS, strict=False):
        ax.bar(places, share, 0.9, floor, color=colour, label=name.replace("$", r"\$"))
        floor = floor + share
    ax.set(xlabel="state, in the table's order", ylabel="weight", ylim=(0, 1), xlim=(-0.5, len(weights) - 0.5))
    steps = places[:: 1 + len(places) // SHOWN]
    ax.set_xticks(steps, [table.states[s][:LONGEST].replace("$", r"\$") for s in steps], rotation=30, ha="right")
    figure.legend(loc="outside upper left", ncols=len(table.names), frameon=False)
    return figure


def draw_costs(costs: Contest) -> Figure:
    """The mean expected cost of every agent."""
    figure = blank(5.2, 3.2)
    ax, rows = figure.subplots(), list(reversed(costs.rows))
    ax.barh([row.agent.replace("$", r"\$") for row in rows], [-row.mean for row in rows],
            color=[COLOURS[0] if row.agent == costs.ours else "0.7" for row in rows])  # fmt: skip
    ax.set_xlabel("expected cost of an action")
    return figure
