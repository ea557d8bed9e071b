"""The page "When does composition pay?" from its record: tables, a map of all levels, rules with their numbers.

Nothing is measured here. `python -m benchmarks.composition` writes the record, and every rule states what must be true
of the record for it to stand on the page: a build with a record that contradicts a rule fails.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

FOLDER = Path(__file__).parent.parent / "explanation"
FIGURE = FOLDER.parent / "figures" / "composition.png"
RIVALS = {  # as the record and as readers of the README call them
    "best primitive": "best controller alone", "best fixed mixture": "best fixed mixture",
    "cheapest rollout": "cheapest controller by the same rollouts", "MPPI": "MPPI, as many simulated steps",
    "best by hand": "best rule by hand",
}  # fmt: skip
CRASHED = 1e5  # medians above are those of agents that crash in most episodes
FACTORS = {
    "gains": "gains \N{MULTIPLICATION SIGN} {}",
    "horizon": "horizon \N{MULTIPLICATION SIGN} {}",
    "mass": "mass in the model \N{MULTIPLICATION SIGN} {}",
    "drag": "drag in the model + {}/s",
    "delay": "delay of {} decisions",
    "count": "{} primitives",
    "temperature": "temperature \N{MULTIPLICATION SIGN} {}",
    "selection": "selection: {}",
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


def pick(told: dict[str, Any], task: str, rival: str, factor: str = "usual", level: Any = "") -> Duel:
    """One comparison."""
    return next(one for one in duels(told) if one[:4] == (task, factor, level, rival))


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
    return FACTORS[factor].format(level if isinstance(level, str) else f"{level:g}")


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


def evidence() -> str:
    """The README's table: ratio of medians and paired wins against every rival, losses in bold."""
    tasks = record()["tasks"]
    rows = [f"| task | {' | '.join(RIVALS.values())} |", "|---" * (1 + len(RIVALS)) + "|"]
    for task in tasks:
        cells = []
        for rival in RIVALS:
            duel = pick(record(), task, rival)
            mark = {"wins": "", "loses": "**", "neither": "*"}[duel.verdict]
            cells.append(f"{mark}{duel.ratio:.2f} ({duel.wins[0]:.1%}){mark}")
        rows.append(f"| {task} | {' | '.join(cells)} |")
    first = against(record(), "best primitive").values()
    least, most = min(duel.ratio for duel in first), max(duel.ratio for duel in first)
    said = (
        f"**Composed costs {least:.2f} to {most:.2f} of the best single controller in all {len(tasks)} tasks, and less "
        f"in at least {min(duel.wins[0] for duel in first):.1%} of paired episodes.** The table has the ratio of "
        "median costs, composed over rival, so below 1 is a win; in brackets the share of paired episodes in which "
        "composed costs less. Bold: composed loses. Italic: no difference is established."
    )
    return f"{said}\n\n" + "\n".join(rows) + "\n"


# ------------------------------------------------------------- the map


def digest() -> str:
    """Of the record, kept in the figure: it says which record was drawn."""
    return hashlib.sha256((FOLDER / "composition.json").read_bytes()).hexdigest()[:16]


def save_figure() -> None:
    """Draw the map of all deltas, unless it was drawn from this record."""
    if not FIGURE.exists() or Image.open(FIGURE).info.get("Source") != digest():
        draw(record()).savefig(FIGURE, dpi=150, metadata={"Software": None, "Source": digest()})


def draw(told: dict[str, Any]) -> Any:
    """Rows are levels, columns are rivals, a panel for each task; blue: the composition costs less."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    tasks = {name: found for name, found in told["tasks"].items() if found["cells"]}
    found = {(one.task, one.factor, one.level, one.rival): one for one in duels(told)}
    rows = list(dict.fromkeys((one.factor, one.level) for one in found.values()))
    rows.sort(key=lambda row: (["usual", *FACTORS].index(row[0]), row[1]))
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
            ax.set_xticks(range(len(RIVALS)), RIVALS, rotation=90)
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


SPACE = """
In {episodes} fresh flights ({crashes} crashes) the composition has a median cost of {ours}.

- Against `{who}`, the best of its primitives ({primitive.theirs:.4g}): ratio of medians {primitive.ratio:.2f}, delta
  {primitive_delta}, cheaper in {primitive_wins} of the flights.
- Against the cheapest rollout of each primitive ({each.theirs:.4g}): ratio {each.ratio:.2f}, delta {each_delta},
  cheaper in {each_wins}.
- Against the cheapest rollout that may choose what its rollouts follow ({cheapest.theirs:.4g}): ratio
  {cheapest.ratio:.2f}, delta {cheapest_delta}, cheaper in {cheapest_wins}.

Gusts make flights differ, and delta counts that against every agent. An agent whose flights all cost the same share of
those of `{who}` has a delta of -0.8 with {f8:.2f} of the cost and of -0.3 with {f3:.2f}. An advantage of a few percent
that is there in nearly every flight is a small delta: look at paired wins and at the ratio too.
"""


def space() -> str:
    """What was gained against the primitives and the cheapest rollout, and what the spread of flights allows."""
    usual = record()["tasks"]["3-D drone"]["usual"]
    names = {"primitive": "best primitive", "cheapest": "cheapest rollout", "each": "cheapest, each followed"}
    told = {short: pick(record(), "3-D drone", rival) for short, rival in names.items()}
    first = usual["rivals"]["best primitive"]
    return SPACE.format(
        episodes=usual["episodes"], crashes=usual["crashes"], ours=_cost(usual["median"]), who=first["who"],
        f8=first["factors"]["-0.8"], f3=first["factors"]["-0.3"], **told,
        **{f"{short}_delta": _delta(duel.delta) for short, duel in told.items()},
        **{f"{short}_wins": _share(duel.wins) for short, duel in told.items()},
    )  # fmt: skip


def speed() -> str:
    """The record of `python -m benchmarks.crazyflie`."""
    file = FOLDER / "crazyflie.json"
    rows = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
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
    many = " or ".join(map(str, sorted(fewer)))
    varied = {task: {cell["factor"] for cell in found["cells"]} for task, found in told["tasks"].items()}
    lacking = {
        factor: [task for task, factors in varied.items() if factors and factor not in factors] for factor in FACTORS
    }
    missing = [f"{factor} ({', '.join(tasks)})" for factor, tasks in lacking.items() if tasks]
    later = f" Not recorded yet: {'; '.join(missing)}." if missing else ""
    return (
        "Everything that was chosen was chosen in episodes 0 to 49, by the lowest median cost, and is reported in "
        f"episodes from 1000 on: as many as the tables say where all is as usual, {many} on every other level. The "
        "planar drone in its second world, *centre*, has the settings that were chosen in the first. Recorded on "
        f"{told['date']} with JAX {told['jax']}.{later}\n"
    )


# ------------------------------------------------------------- rules


class Rule(NamedTuple):
    """A sentence with named numbers, where they come from, and what must be true of the record for it to stand."""

    name: str
    says: str
    numbers: Callable[[dict[str, Any]], dict[str, str]]
    holds: Callable[[dict[str, Any]], bool]


def against(told: dict[str, Any], rival: str, factor: str = "usual", level: Any = "") -> dict[str, Duel]:
    """The composition against this rival in all tasks that have this level."""
    found = (one for one in duels(told) if one[1:4] == (factor, level, rival))
    return {one.task: one for one in found}


def ours(told: dict[str, Any], factor: str, level: Any) -> dict[str, float]:
    """The composition's median at this level in those it has as usual, by task."""
    usual = against(told, "best primitive")
    return {task: one.ours / usual[task].ours for task, one in against(told, "best primitive", factor, level).items()}


def _list(values: dict[str, str]) -> str:
    return ", ".join(f"{value} ({_short(task)})" for task, value in values.items())


def _short(task: str) -> str:
    """A task within a sentence."""
    return task.replace("planar drone, centre", "its second world")


def _ratios(found: dict[str, Duel]) -> str:
    return _list({task: f"{one.ratio:.2f}" for task, one in found.items()})


def _times(found: dict[str, float]) -> str:
    return _list({task: f"{value:.2f}" for task, value in found.items()})


def _verdicts(found: dict[str, Duel]) -> str:
    """Where it wins, loses, or neither is established."""
    said = [
        f"{words} {', '.join(tasks)}"
        for verdict, words in (("wins", "it wins in:"), ("loses", "it **loses** in:"), ("neither", "neither in:"))
        if (tasks := [_short(task) for task, one in found.items() if one.verdict == verdict])
    ]
    return "; ".join(said)


def followed(told: dict[str, Any]) -> dict[str, float]:
    """The lowest median where rollouts follow each primitive, in that where they follow a mixture."""
    found = {}
    for task, one in told["tasks"].items():
        medians = one["chosen"]["tried"]
        each = min(value for name, value in medians.items() if name.startswith("each,"))
        found[task] = each / min(value for name, value in medians.items() if not name.startswith("each,"))
    return found


def _won(found: dict[str, Duel]) -> bool:
    return all(one.verdict == "wins" for one in found.values())


# What holds is what the sentence says of the record. "Established" is always by paired wins.
RULES = (
    Rule(
        "primitives",
        "**Compose where no single controller will do.** In every task the composition costs less than the best of its "
        "primitives: ratio of medians {ratios}, and less in {least} to {most} of the paired episodes.",
        lambda told: {
            "ratios": _ratios(against(told, "best primitive")),
            "least": f"{min(one.wins[0] for one in against(told, 'best primitive').values()):.1%}",
            "most": f"{max(one.wins[0] for one in against(told, 'best primitive').values()):.0%}",
        },
        lambda told: _won(against(told, "best primitive")),
    ),
    Rule(
        "mixture",
        "**Try a fixed mixture first.** The best one in tuning episodes needs no model. Against it the ratio of "
        "medians is {ratios}: in the pendulum the gate adds next to nothing, elsewhere a lot.",
        lambda told: {"ratios": _ratios(against(told, "best fixed mixture"))},
        lambda told: (
            (found := against(told, "best fixed mixture"))["pendulum"].ratio > 0.95
            and all(one.ratio < 0.8 for task, one in found.items() if task != "pendulum")
        ),
    ),
    Rule(
        "cheapest",
        '**Compare with `gate="cheapest"`, always, and let it choose what its rollouts follow.** Then the ratio of '
        "medians is {ratios}: {verdicts}. The model and its rollouts bring nearly all of the gain, the mixing of "
        "actions little.",
        lambda told: {
            "ratios": _ratios(against(told, "cheapest rollout")),
            "verdicts": _verdicts(against(told, "cheapest rollout")),
        },
        lambda told: against(told, "cheapest rollout")["pendulum"].verdict == "loses",
    ),
    Rule(
        "more knowledge",
        "**Do not compose where something better is available.** In space a controller that knows the path's "
        "acceleration has {hand} of the composition's cost, and MPPI with the same model and as many simulated "
        "steps {mppi}. "
        "Against MPPI {verdicts}. Against the best rule by hand {hands}.",
        lambda told: {
            "hand": f"{1 / pick(told, '3-D drone', 'best by hand').ratio:.2f}",
            "mppi": f"{1 / pick(told, '3-D drone', 'MPPI').ratio:.2f}",
            "verdicts": _verdicts(against(told, "MPPI")),
            "hands": _verdicts(against(told, "best by hand")),
        },
        lambda told: all(pick(told, "3-D drone", rival).verdict == "loses" for rival in ("MPPI", "best by hand")),
    ),
    Rule(
        "temperature",
        "**Rather too cold than too hot.** At a tenth of the temperature the composition's median is {cold} times that "
        "as usual, at ten times {warm}, at a hundred times {hot}; there, against the best fixed mixture, {verdicts}.",
        lambda told: {
            "cold": _times(ours(told, "temperature", 0.1)), "warm": _times(ours(told, "temperature", 10.0)),
            "hot": _times(ours(told, "temperature", 100.0)),
            "verdicts": _verdicts(against(told, "best fixed mixture", "temperature", 100.0)),
        },
        lambda told: (
            all(value > 1.2 for value in ours(told, "temperature", 100.0).values())
            and all(value < 1.05 for value in ours(told, "temperature", 0.1).values())
            and all(
                against(told, "best fixed mixture", "temperature", 100.0)[task].verdict == "loses"
                for task in ("3-D drone", "pendulum")
            )
        ),
    ),
    Rule(
        "mass",
        "**A wrong model can cost the whole gain.** With 1.4 times the true mass in its model the composition in space "
        "**loses** to the best primitive, which has no model (ratio of medians {ratios} over all tasks). MPPI suffers "
        "more there: ratio {mppi}, and {lighter} at 0.7 times the mass.",
        lambda told: {
            "ratios": _ratios(against(told, "best primitive", "mass", 1.4)),
            "mppi": f"{pick(told, '3-D drone', 'MPPI', 'mass', 1.4).ratio:.2f}",
            "lighter": f"{pick(told, '3-D drone', 'MPPI', 'mass', 0.7).ratio:.2f}",
        },
        lambda told: (
            pick(told, "3-D drone", "best primitive", "mass", 1.4).verdict == "loses"
            and all(pick(told, "3-D drone", "MPPI", "mass", level).verdict == "wins" for level in (0.7, 1.4))
        ),
    ),
    Rule(
        "quality",
        "**The better the primitives, the smaller the gain.** With half the gains the ratio of medians to the best "
        "primitive in space is {weak}, as usual {usual}, with twice the gains {strong}.",
        lambda told: {
            "weak": f"{pick(told, '3-D drone', 'best primitive', 'gains', 0.5).ratio:.2f}",
            "usual": f"{pick(told, '3-D drone', 'best primitive').ratio:.2f}",
            "strong": f"{pick(told, '3-D drone', 'best primitive', 'gains', 2.0).ratio:.2f}",
        },
        lambda told: (
            pick(told, "3-D drone", "best primitive", "gains", 0.5).ratio
            < pick(told, "3-D drone", "best primitive").ratio
            < pick(told, "3-D drone", "best primitive", "gains", 2.0).ratio
            < 1
        ),
    ),
    Rule(
        "delay",
        "**A delay that no model knows hurts rules by hand more.** With commands two decisions late the ratio of "
        "medians to the best rule by hand is {ratios}: {verdicts}.",
        lambda told: {
            "ratios": _ratios(against(told, "best by hand", "delay", 2)),
            "verdicts": _verdicts(against(told, "best by hand", "delay", 2)),
        },
        lambda told: all(
            against(told, "best by hand", "delay", 2)[task].verdict == "wins" for task in ("planar drone", "cart-pole")
        ),
    ),
    Rule(
        "horizon",
        "**Look far enough ahead; further is not always better.** With a fifth of the horizon the composition "
        "costs {short} times as much as usual and **loses** to the best fixed mixture in every task. With twice "
        "the horizon it costs {long} times as much.",
        lambda told: {"short": _times(ours(told, "horizon", 0.2)), "long": _times(ours(told, "horizon", 2.0))},
        lambda told: (
            all(one.verdict == "loses" for one in against(told, "best fixed mixture", "horizon", 0.2).values())
            and max(ours(told, "horizon", 2.0).values()) > 1.1
        ),
    ),
    Rule(
        "selection",
        "**Act by the mean, unless what lies between the controllers is bad.** The most probable action has {mode} "
        "times the median cost of the mean, an action drawn at random {sample}.",
        lambda told: {kind: _times(ours(told, "selection", kind)) for kind in ("mode", "sample")},
        lambda told: (
            all(value > 0.99 for value in ours(told, "selection", "sample").values())
            and all(ours(told, "selection", "mode")[task] > 1.1 for task in ("3-D drone", "planar drone"))
            and all(ours(told, "selection", "mode")[task] < 1 for task in ("pendulum", "cart-pole"))
        ),
    ),
    Rule(
        "count",
        "**More primitives help where they add something, and can hurt.** With eight of them the median is {ours} "
        "times that with the task's own number. In the pendulum the six that are added make the composition worse "
        "and leave the cheapest rollout as good as it was: ratio to it {cheapest}.",
        lambda told: {
            "ours": _times(ours(told, "count", 8)),
            "cheapest": f"{pick(told, 'pendulum', 'cheapest rollout', 'count', 8).ratio:.2f}",
        },
        lambda told: (
            ours(told, "count", 8)["pendulum"] > 1.5
            and all(value < 1 for task, value in ours(told, "count", 8).items() if task != "pendulum")
            and pick(told, "pendulum", "cheapest rollout", "count", 8).verdict == "loses"
        ),
    ),
    Rule(
        "what rollouts follow",
        "**Choose what rollouts follow.** Following each primitive and taking the cheapest has, in tuning episodes, "
        "{ratios} times the median of following the best mixture that was tried.",
        lambda told: {"ratios": _times(followed(told))},
        lambda told: followed(told)["3-D drone"] > 1.05,
    ),
)  # fmt: skip


def said(rule: Rule) -> str:
    return rule.says.format(**rule.numbers(record()))


def rules() -> str:
    """The rules, numbered; an error if the record contradicts one."""
    told = record()
    if broken := [rule.name for rule in RULES if not rule.holds(told)]:
        raise ValueError(f"The record composition.json contradicts the rule {', '.join(broken)}: change the rule.")
    return "\n".join(f"{number}. {said(rule)}" for number, rule in enumerate(RULES, 1)) + "\n"


def heads() -> str:
    """The rules without their numbers."""
    return "\n".join(re.findall(r"^(\d+\. \*\*.*?\*\*)", rules(), re.MULTILINE)) + "\n"


PARTS = {part.__name__: part for part in (rules, heads, evidence, tables, space, levels, method, settings, speed)}
