"""The page "When does composition pay?" from its record: tables, a map of all levels, rules with their numbers.

Nothing is measured here. `python -m benchmarks.composition` writes the record, and every rule states what must be true
of the record for it to stand on the page: a build with a record that contradicts a rule fails.
"""

import base64
import io
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FOLDER = Path(__file__).parent.parent / "explanation"
RIVALS = ("best primitive", "best fixed mixture", "cheapest rollout", "MPPI", "best by hand")
CRASHED = 1e5  # medians above are those of agents that crash in most episodes
FACTORS = {
    "gains": ("gains of all primitives", "times {}"),
    "horizon": ("horizon of the rollouts", "times {}"),
    "mass": ("mass in the model", "times {}"),
    "drag": ("drag that only the model has", "{}/s"),
    "delay": ("delay of every command", "{} decisions"),
    "count": ("number of primitives", "{}"),
    "temperature": ("temperature", "times {}"),
    "selection": ("selection", "{}"),
}


@cache
def record() -> dict[str, Any]:
    """What was measured."""
    return json.loads((FOLDER / "composition.json").read_text(encoding="utf-8"))


class Duel(NamedTuple):
    """The composition against one rival, on one level of a factor."""

    task: str
    factor: str
    level: Any
    rival: str
    ours: float
    theirs: float
    delta: list[float]  # and its 95% interval
    wins: list[float]

    @property
    def verdict(self) -> str:
        """By the interval of the share of paired episodes in which the composition costs less."""
        return "wins" if self.wins[1] > 0.5 else "loses" if self.wins[2] < 0.5 else "neither"

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


def duels(told: dict[str, Any]) -> Iterator[Duel]:
    """Every comparison of the record."""
    for task, found in told["tasks"].items():
        for cell in ({"factor": "usual", "level": ""} | found["usual"], *found["cells"]):
            for rival, one in cell["rivals"].items():
                both = cell["median"], one["median"]
                yield Duel(task, cell["factor"], cell["level"], rival, *both, one["delta"], one["wins"])


# ------------------------------------------------------------- tables


def tables() -> str:
    """A table for each task, where all is as usual."""
    return "\n".join(_table(task, found) for task, found in record()["tasks"].items())


def _table(task: str, found: dict[str, Any]) -> str:
    usual, chosen = found["usual"], found["chosen"]
    followed = "each primitive" if chosen["follow"] == "each" else "the best fixed mixture"
    primitives = ", ".join(found["primitives"])
    rows = [
        f"### {task[0].upper()}{task[1:]}\n",
        f"Primitives: {primitives}. Rollouts of {found['horizon']} steps follow {followed}; "
        f"eps = {chosen['eps']:g}, and a unit of the task's cost counts {chosen['nats']:g} nats. "
        f"{usual['episodes']} fresh episodes.\n",
        "| | median cost (quartiles) | crashes | ratio of medians | delta (95% interval) | composed costs less in "
        "(95% interval) | composed |",
        "|---|---|---|---|---|---|---|",
        f"| **composed** | **{_cost(usual['median'])}** {_quartiles(usual)} | {usual['crashes']} | | | | |",
    ]
    for duel in (one for one in duels({"tasks": {task: found | {"cells": []}}})):
        one = usual["rivals"][duel.rival]
        who = f": {one['who']}" if one["who"] else ""
        verdict = {"wins": "wins", "loses": "**loses**", "neither": "neither"}[duel.verdict]
        rows.append(
            f"| {duel.rival}{who} | {_cost(one['median'])} {_quartiles(one)} | {one['crashes']} | {duel.ratio:.2f} | "
            f"{_delta(duel.delta)} | {_share(duel.wins)} | {verdict} |"
        )
    return "\n".join(rows) + "\n"


def _cost(value: float) -> str:
    return "crashed" if value > CRASHED else f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _quartiles(one: dict[str, Any]) -> str:
    return f"({' to '.join(map(_cost, one['quartiles']))})"


def _delta(delta: list[float]) -> str:
    return f"{delta[0]:+.2f} ({delta[1]:+.2f} to {delta[2]:+.2f})"


def _share(wins: list[float]) -> str:
    return f"{wins[0]:.0%} ({wins[1]:.0%} to {wins[2]:.0%})"


def levels() -> str:
    """Every level of every factor: medians, and the composition against each rival."""
    told = record()
    heads = " | ".join(RIVALS)
    parts = []
    for task, found in told["tasks"].items():
        if not found["cells"]:
            continue
        rows = [f"### {task[0].upper()}{task[1:]}\n", f"| level | composed | {heads} |", "|---" * 7 + "|"]
        for cell in ({"factor": "usual", "level": ""} | found["usual"], *found["cells"]):
            given = [cell["rivals"][rival] for rival in RIVALS]
            cells = [f"{_cost(one['median'])}, {one['delta'][0]:+.2f}, {one['wins'][0]:.0%}" for one in given]
            rows.append(f"| {name_of(cell['factor'], cell['level'])} | {_cost(cell['median'])} | {' | '.join(cells)} |")
        parts.append("\n".join(rows) + "\n")
    return "\n".join(parts)


def name_of(factor: str, level: Any) -> str:
    if factor == "usual":
        return "as usual"
    words, form = FACTORS[factor]
    shown = form.format(level if isinstance(level, str) else f"{level:g}")
    return f"{words} {shown}".replace("1 decisions", "1 decision")


def settings() -> str:
    """What was tried in the episodes of choices, and what was chosen."""
    rows = [
        "| task | follow | eps | nats | MPPI's noise, temperature | medians of all that was tried |",
        "|---" * 6 + "|",
    ]
    for task, found in record()["tasks"].items():
        chosen = found["chosen"]
        tried = "; ".join(f"{name.replace('follow ', '')}: {_cost(value)}" for name, value in chosen["tried"].items())
        rows.append(
            f"| {task} | {chosen['follow']} | {chosen['eps']:g} | {chosen['nats']:g} | {chosen['noise']:g}, "
            f"{chosen['warmth']:g} | {tried} |"
        )
    return "\n".join(rows) + "\n"


# ------------------------------------------------------------- the map


def figure() -> str:
    """The map of all deltas as a picture within the page."""
    held = io.BytesIO()
    draw(record()).savefig(held, format="png", dpi=200, metadata={"Software": None})
    picture = base64.b64encode(held.getvalue()).decode()
    words = "Cliff's delta of the composition against five rivals, for every level of eight factors in four tasks"
    image = f'<img alt="{words}" style="width:100%;background:white" src="data:image/png;base64,{picture}">'
    return f"```{{raw}} html\n{image}\n```\n"


def draw(told: dict[str, Any]) -> Any:
    """Rows are levels, columns are rivals, a panel for each task; blue: the composition costs less."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    tasks = {name: found for name, found in told["tasks"].items() if found["cells"]}
    found = {(one.task, one.factor, one.level, one.rival): one for one in duels(told)}
    rows = list(dict.fromkeys((one.factor, one.level) for one in found.values()))
    rows.sort(key=lambda row: ["usual", *FACTORS].index(row[0]))
    with rc_context({"font.size": 7.5, "axes.titlesize": 8.5, "axes.titleweight": "bold"}):
        fig = Figure(figsize=(7.8, 6.6), layout="constrained")
        axes = fig.subplots(1, len(tasks), sharey=True, squeeze=False)[0]
        for ax, task in zip(axes, tasks, strict=True):
            values = np.full((len(rows), len(RIVALS)), np.nan)
            for i, row in enumerate(rows):
                for j, rival in enumerate(RIVALS):
                    if one := found.get((task, *row, rival)):
                        values[i, j] = one.delta[0]
                        pale = abs(one.delta[0]) < 0.6
                        colour = ("0.45" if one.verdict == "neither" else "black") if pale else "white"
                        text = f"{one.delta[0]:+.2f}".replace("0.", ".").replace("-", "\N{MINUS SIGN}")
                        ax.text(j, i, text, ha="center", va="center", fontsize=5.4, color=colour)
            image = ax.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
            ax.set_xticks(range(len(RIVALS)), RIVALS, rotation=55, ha="right", rotation_mode="anchor")
            ax.set_title(task)
            ax.tick_params(length=0)
            ax.spines[:].set_visible(False)
            starts = [i for i in range(1, len(rows)) if rows[i][0] != rows[i - 1][0]]
            ax.hlines([i - 0.5 for i in starts], -0.5, len(RIVALS) - 0.5, color="white", linewidth=3)
        axes[0].set_yticks(range(len(rows)), [name_of(*row) for row in rows])
        bar = fig.colorbar(image, ax=axes, location="bottom", shrink=0.4, aspect=40, pad=0.02)
        bar.set_label(
            "Cliff's delta: blue, the composition costs less; red, the rival does; grey numbers: not established"
        )
    return fig


# ------------------------------------------------------------- the drone in space, and its speed


def space() -> str:
    """What was gained against the primitives and the cheapest rollout, and what the spread of flights allows."""
    usual = record()["tasks"]["3-D drone"]["usual"]
    primitive, cheapest = usual["rivals"]["best primitive"], usual["rivals"]["cheapest rollout"]
    names = ["best primitive", "cheapest rollout"]
    told = {one.rival: one for one in duels(record()) if one.task == "3-D drone" and one.factor == "usual"}
    first, second = (told[name] for name in names)
    return (
        f"In {usual['episodes']} fresh flights ({usual['crashes']} crashes) the composition has a median cost of "
        f"{_cost(usual['median'])}, `{primitive['who']}`, the best of its primitives, {_cost(first.theirs)}: the ratio is "
        f"{first.ratio:.2f}, delta {_delta(first.delta)}, and {_share(first.wins)} of the flights cost less. Against the "
        f"cheapest rollout ({_cost(second.theirs)}) the ratio is {second.ratio:.2f}, delta {_delta(second.delta)}, and "
        f"{_share(second.wins)} of the flights cost less.\n\n"
        "Gusts make flights differ, and delta counts that against every agent. An agent whose flights all cost the same "
        f"share of those of `{primitive['who']}` would have a delta of -0.8 with {primitive['factors']['-0.8']:.2f} of the "
        f"cost and -0.3 with {primitive['factors']['-0.3']:.2f}; against the cheapest rollout these shares are "
        f"{cheapest['factors']['-0.8']:.2f} and {cheapest['factors']['-0.3']:.2f}. So an advantage of a few percent that "
        "is there in nearly every flight is a small delta.\n"
    )


def speed() -> str:
    """The record of `python -m benchmarks.crazyflie`."""
    rows = json.loads((FOLDER / "crazyflie.json").read_text(encoding="utf-8"))
    lines = ["| worlds | physics steps/s | decisions/s | ms a decision | model steps/s | MB, program | MB, process |"]
    lines.append("|---" * 7 + "|")
    for row in rows:
        names = ("physics steps/s", "decisions/s", "ms a decision", "model steps/s", "MB, program", "MB, process")
        lines.append(f"| {row['worlds']:,} | {' | '.join(_number(row[name]) for name in names)} |")
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:g}"


def method() -> str:
    """How many episodes, and when."""
    told = record()
    fewer = {cell["episodes"] for found in told["tasks"].values() for cell in found["cells"]}
    return (
        f"Everything that was chosen was chosen in episodes 0 to 49, by the lowest median cost, and is reported in "
        f"episodes from 1000 on: as many as the tables say where all is as usual, {' or '.join(map(str, sorted(fewer)))} "
        f"on every other level. Recorded on {told['date']} with JAX {told['jax']}.\n"
    )
