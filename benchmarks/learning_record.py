"""What `python -m benchmarks.learning` measured: numbers for the record, and the tables and sentences of the page.

`summarise` makes the record's sections from results, `PARTS` the page's Markdown from a section: a table cannot say
anything else than the record. `draw` makes the page's figure.
"""

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from policychord.inference.comparison import paired

DOCS = Path(__file__).parent.parent / "docs"
RECORD = DOCS / "explanation" / "learning.json"
FIGURE = DOCS / "figures" / "learning.png"
WANTED = 0.05  # total variation within which a planted primitive counts as found
NEAR = 0.01  # nats from the lowest energy at which a local rule counts as arrived
RIVALS = ("constant", "softmax", "markov", "shuffled")
WAYS = {"gate": "the gate", "constant": "constant weights", "softmax": "a mixture of experts",
        "markov": "a hidden Markov chain", "shuffled": "such a chain, order shuffled"}  # fmt: skip
NUMBERS = (1, 2, 3, 4, 5)
QUICK, SLOW = (0.2, 40), (0.02, 60)  # rate for each tau, passes: first near the lowest energy, then without noise
Rows = dict[str, Any]
Section = dict[str, Any]


def _of(rows: Rows, begin: str) -> Rows:
    return {name[len(begin) :]: row for name, row in rows.items() if name.startswith(begin)}


def _date(rows: Rows) -> str:
    """The day of the newest row."""
    dates = [row["date"] for row in rows.values() if isinstance(row, dict) and "date" in row]
    return max(dates, default=date.today().isoformat())


# -------------------------------------------------------------------------------------------------- numbers


def sum_cohorts(rows: Rows) -> Section:
    """Recovery of planted primitives, and which number was chosen."""
    some = list(rows.values())
    tv = np.array([row["distance"] for row in some])
    limit = np.array([[row["bound"]["mean"], row["bound"]["largest"]] for row in some])
    behind = {n: np.array([row["held out"][n] for row in some]) for n in map(str, NUMBERS)}
    return {
        "cohorts": len(some), "mean": tv.mean(), "worst of three": tv.max(axis=1).mean(), "worst of all": tv.max(),
        "within": int((tv.max(axis=1) <= WANTED).sum()), "bound mean": limit[:, 0].mean(),
        "bound worst of three": limit[:, 1].mean(), "chosen": _counts([row["chosen"] for row in some]),
        "best": _counts([row["best"] for row in some]),
        "behind": {n: [each[:, 1].mean(), each[:, 2].mean()] for n, each in behind.items()},
        "degenerate": {n: sum(bool(row["degenerate"][n]) for row in some) for n in behind},
        "steps": sum(row["steps"] for row in some), "fell": max(row["fell"] for row in some),
    }  # fmt: skip


def _counts(numbers: list[int]) -> dict[str, int]:
    return {str(n): numbers.count(n) for n in sorted(set(numbers))}


def sum_designs(rows: Rows) -> Section:
    """Fisher bounds of the worst of three primitives, by experiment."""
    found = {}
    for name, row in rows.items():
        worst = float(np.mean([one["largest"] for one in row]))
        found[name] = {"flat": sum(one["flat"] for one in row), "sets": len(row), "worst of three": worst}
    return found


def sum_em(rows: Rows) -> Section:
    """Plain EM against the search from the same start."""
    some = list(rows.values())
    short = np.array([row["nats"] for row in some])
    return {
        "cohorts": len(some), "fell in": sum(row["falls"] > 0 for row in some),
        "worst step": max(row["fell"] for row in some), "short": [short.min(), float(np.median(short)), short.max()],
        "worst of three": float(np.mean([max(row["distance"]) for row in some])),
        "ours": float(np.mean([max(row["our distance"]) for row in some])),
    }  # fmt: skip


def sum_flock(rows: Rows) -> Section:
    """Planted forces of simulated flocks."""
    some = list(rows.values())
    tv, off = np.array([row["distance"] for row in some]), np.abs(np.array([row["gains"] for row in some]) - np.eye(3))
    return {"flocks": len(some), "decisions": some[0]["decisions"], "mean": tv.mean(), "worst of all": tv.max(),
            "within": int((tv.max(axis=1) <= WANTED).sum()), "gains": [off.mean(), off.max()]}  # fmt: skip


def sum_scores(rows: Rows) -> Section:
    """Held-out scores of one set of decisions, with the gate's paired gains over each way with as many primitives."""
    subject = np.array(rows["subjects"])
    ways = {name: row for name, row in rows.items() if isinstance(row, dict)}
    each = {name: np.array(row["each"]) for name, row in ways.items()}
    found: Section = {"decisions": len(subject), "subjects": len(np.unique(subject))}
    found |= {key: sorted({row[key] for row in ways.values() if key in row}) for key in ("starts", "folds")}
    found["ways"] = {}
    for name, row in ways.items():
        kind, _, _ = name.partition(",")
        own = f"{kind}, gate" if f"{kind}, gate" in each else None
        gain = paired(each[own], each[name], subject) if own and own != name else None
        found["ways"][name] = {
            "held out": each[name].mean(), "parameters": row["parameters"], "told": row["told"],
            "notes": row.get("notes", []), "inside": row.get("inside"),
            "gain": None if gain is None else [gain.mean, gain.error],
        }  # fmt: skip
    found |= _against(each, subject)
    return found


def _against(each: dict[str, np.ndarray], subject: np.ndarray) -> Section:
    """The best learned gate beside the hand-made one and the best of each rival; the smallest number that would do."""

    def best(way: str) -> str | None:
        names = [name for name in each if "learned" in name and name.endswith(f", {way}")]
        return max(names, key=lambda name: each[name].mean(), default=None)

    gate = best("gate")
    if gate is None:
        return {"against": {}}
    others = {"hand-made": "hand-made, gate"} | {way: best(way) for way in RIVALS}
    against = {}
    for label, name in others.items():
        if name is None or name not in each:
            continue
        gain, apart = paired(each[gate], each[name], subject), each[gate] - each[name]
        ahead = np.bincount(subject, apart) > 0
        against[label] = {"name": name, "mean": gain.mean, "error": gain.error, "wins": int(ahead.sum())}
    tried = {int(name[0]): each[name] for name in each if name.endswith(("1 learned", "learned, gate"))}
    fine = [n for n, one in tried.items() if (gap := paired(each[gate], one, subject)).mean <= gap.error]
    return {"gate": gate, "against": against, "enough": min([*fine, int(gate[0])])}


def sum_local(rows: Rows) -> Section:
    """Where local rules end, over the lowest energy that was found at all."""
    lowest = min(min(row["energy"]) for row in rows.values())
    found: Section = {"lowest": lowest, "rules": {}}
    for name, row in rows.items():
        excess = np.array(row["energy"]) - lowest
        found["rules"][name] = {
            "starts": len(excess), "near": int((excess < NEAR).sum()), "mean": excess.mean(), "worst": excess.max(),
            "step": row.get("step"), "passes": row.get("passes"), "change": float(np.mean(row.get("still", [0.0]))),
            "noise": float(np.mean(row.get("noise", [0.0]))),
        }  # fmt: skip
    return found


def summarise(rows: Rows) -> dict[str, Section]:
    """The sections of the record for which there are results, each with the day of its newest one."""
    makers: dict[str, tuple[str, Callable[[Rows], Section]]] = {
        "cohorts": ("cohort ", sum_cohorts), "designs": ("design: ", sum_designs), "em": ("em ", sum_em),
        "flock": ("flock ", sum_flock), "local .1": ("local, eps 0.1: ", sum_local),
        "local 1": ("local, eps 1: ", sum_local),
    }  # fmt: skip
    titles = [name.removesuffix(": subjects") for name in rows if name.endswith(": subjects")]
    makers |= {title: (f"{title}: ", sum_scores) for title in titles}
    return {name: {"date": _date(of), **make(of)} for name, (begin, make) in makers.items() if (of := _of(rows, begin))}


def write(rows: Rows, path: Path = RECORD) -> dict[str, Section]:
    """Renew the sections that were measured; the others of the record stay as they are, with their days."""
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    record = kept | _rounded(summarise(rows))
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return record


def _rounded(value: Any) -> Any:
    """Six digits, which is more than any table shows."""
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    return float(f"{value:.6g}") if isinstance(value, float | np.floating) else value


# ------------------------------------------------------------------------------------------- words and tables


def _n(value: float, digits: int = 3, sign: bool = False) -> str:
    """A number without the zero in front of the point."""
    words = f"{value:{'+' if sign else ''}.{digits}f}"
    return words.replace("0.", ".", 1) if abs(value) < 1 else words


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def cohorts(record: dict[str, Section]) -> str:
    it = record["cohorts"]
    of = f"of {it['cohorts']}"
    other = ", ".join(f"{n} in {count}" for n, count in it["best"].items() if n != "3")
    rows = [
        ["total variation, mean", _n(it["mean"], 4), _n(it["bound mean"], 4)],
        ["of the worst of three, mean over cohorts", _n(it["worst of three"], 4), _n(it["bound worst of three"], 4)],
        ["worst of all", _n(it["worst of all"]), ""],
        [f"all three within {_n(WANTED, 2)}", f"{it['within']} {of} cohorts", ""],
        ["number chosen right (1 to 5 tried, smallest that is not behind by more than one error)",
         f"{it['chosen'].get('3', 0)} {of}", ""],
        ["number with the highest held-out likelihood right", f"{it['best'].get('3', 0)} {of}"
         + (f" ({other})" if other else ""), ""],
    ]  # fmt: skip
    return _table(["", "measured", "Fisher bound"], rows)


def numbers(record: dict[str, Section]) -> str:
    it = record["cohorts"]
    rows = [["behind the best, nats per decision",
             *(f"{_n(mean, 4)} ± {_n(error, 4)}" for mean, error in it["behind"].values())],
            [f"called degenerate, of {it['cohorts']}", *map(str, it["degenerate"].values())]]  # fmt: skip
    return _table(["number of primitives", *it["behind"]], rows)


def monotone(record: dict[str, Section]) -> str:
    it = record["cohorts"]
    fell = f"the largest fall of the likelihood was {it['fell']:.0e} nats per decision, which is rounding"
    fell = fell if it["fell"] > 0 else "the likelihood never fell"
    return f"In {it['steps']:,} accepted steps of the {it['cohorts']} cohorts below {fell}.\n"


def designs(record: dict[str, Section]) -> str:
    rows = []
    for name, it in record["designs"].items():
        if name == "date":
            continue
        told = f"not identified in {it['flat']} of {it['sets']}" if it["flat"] else _n(it["worst of three"])
        rows.append([name, told])
    return _table(["experiment", "total variation of the worst of three, bound"], rows)


def em(record: dict[str, Section]) -> str:
    it = record["em"]
    low, middle, high = it["short"]
    return (f"On {it['cohorts']} of the cohorts below, from one start each, plain EM lowered the likelihood at some "
            f"step in {it['fell in']} of them (worst step {it['worst step']:.0e} nats per decision). It ended "
            f"{low:.1f} to {high:.1f} nats (median {middle:.1f}) below the optimum with both terms. The total "
            f"variation of its worst primitive was {_n(it['worst of three'])} "
            f"instead of {_n(it['ours'])}.\n")  # fmt: skip


def flock(record: dict[str, Section]) -> str:
    it = record["flock"]
    return (f"From {it['flocks']} simulated flocks of {it['decisions']:,} decisions, with nine gains and three spreads "
            f"free, the paper's forces came back to a total variation of {_n(it['mean'])} on average and "
            f"{_n(it['worst of all'])} at worst (within {_n(WANTED, 2)} in {it['within']} of {it['flocks']}); gains to "
            f"{_n(it['gains'][0])} (worst {_n(it['gains'][1])}).\n")  # fmt: skip


def scores(record: dict[str, Section], title: str, what: str, who: str) -> str:
    """A table of one set of decisions, and the sentence that follows."""
    it = record[title]
    digits = 4 if abs(it["ways"]["hand-made, gate"]["held out"]) < 1 else 3

    def cell(name: str) -> str:
        if name not in it["ways"]:
            return ""
        one = it["ways"][name]
        gain = one["gain"]
        told = "" if gain is None else f" ({_n(gain[0], 3, sign=True)} ± {_n(gain[1])})"
        return _n(one["held out"], digits) + told

    rows = []
    for way, words in WAYS.items():
        names = ["1 learned" if n == 1 and way == "gate" else f"{n} learned, {way}" for n in NUMBERS]
        rows.append([words, cell(f"hand-made, {way}"), *map(cell, names)])
    starts, folds = (" or ".join(map(str, it[key])) for key in ("starts", "folds"))
    head = (f"*{what}*: {it['subjects']} {who} with {it['decisions']:,} decisions, {folds} folds of {who}, {starts} "
            "starts. In brackets: the gate's gain over it with as many primitives.\n\n")  # fmt: skip
    return (
        head
        + _table(["mixed by", "hand-made", *(f"{n} learned" for n in NUMBERS)], rows)
        + f"\n{sentence(it, who)}\n\n{doubts(it)}\n"
    )


def doubts(it: Section) -> str:
    """What is wrong with some of the scores: optimisation runs that missed the best mode, degenerate answers."""
    ways, missed = it["ways"], []
    for way in WAYS:
        inside = [(n, one["inside"]) for n in NUMBERS[1:] if (one := ways.get(f"{n} learned, {way}")) and one["inside"]]
        missed += [
            f"{n} with {WAYS[way]}" for i, (n, own) in enumerate(inside) if any(own < low for _, low in inside[:i])
        ]
    halted = [
        name.replace(" learned, ", " learned with the ")
        for name, one in ways.items()
        if one["notes"] and "gate" in name
    ]
    words = []
    if missed:
        words.append(f"From so few starts the optimisation runs of {', '.join(missed)} ended lower on all data than "
                     "those of fewer primitives: they missed the best mode, and these scores may be "
                     "too low.")  # fmt: skip
    if halted:
        words.append(f"No optimisation run converged for {', '.join(halted)}.")
    told = [f"{name.split()[0]}: {' '.join(one['told'])}" for name, one in ways.items() if one["told"]]
    if told:
        words.append(f"`learning.degenerate` says of the gate with {' Of the gate with '.join(told)}")
    return " ".join(words)


def sentence(it: Section, who: str) -> str:
    """What follows about learned primitives, gates and rivals, from paired differences."""
    of, against = it["subjects"], it["against"]

    def beside(one: Section) -> str:
        return f"{_n(one['mean'], 3, sign=True)} ± {_n(one['error'])} nats per decision, {one['wins']} of {of} {who}"

    def clear(one: Section) -> int:
        return int(np.sign(one["mean"])) if abs(one["mean"]) > 2 * one["error"] else 0

    hand = against["hand-made"]
    verb = {1: "explain more than", 0: "explain as much as", -1: "explain less than"}[clear(hand)]
    some = "One would do" if it["enough"] == 1 else f"{it['enough']} would do"
    words = (f"Learned primitives with the gate (at best {it['gate'].split(',')[0]}) {verb} the hand-made ones "
             f"({beside(hand)}). {some}: so many are not behind by more than one error.")  # fmt: skip
    how = {1: "ahead of", 0: "level with", -1: "behind"}
    rivals = [way for way in RIVALS if way in against and way != "shuffled"]
    parts = [f"{how[clear(against[way])]} {WAYS[way]} ({beside(against[way])})" for way in rivals]
    if parts:
        listed = ", ".join(parts[:-1]) + f" and {parts[-1]}" if len(parts) > 1 else parts[0]
        words += f" Each at its best number, the gate is {listed}."
    if {"markov", "shuffled"} <= against.keys():
        lead, left = (_n(-against[way]["mean"], 3, sign=True) for way in ("markov", "shuffled"))
        words += f" With the order of decisions shuffled, the chain's lead over the gate is {left} instead of {lead}."
    return words


def gains(record: dict[str, Section]) -> str:
    """What the gate gains on each rival, every one at its best number of primitives."""
    rivals = {"hand-made": "hand-made primitives"} | {way: WAYS[way] for way in RIVALS if way != "shuffled"}
    rows = []
    for name, title in (("experiment 1", "people, 1"), ("experiment 2", "people, 2"), ("sheep", "sheep")):
        against = record[name]["against"]
        cells = [f"{_n(against[way]['mean'], 3, sign=True)} ± {_n(against[way]['error'])}" for way in rivals]
        rows.append([title, *cells])
    return _table(["", *rivals.values()], rows)


def local(record: dict[str, Section], eps: str) -> str:
    it = record[f"local {eps}"]
    rows = []
    for name, one in it["rules"].items():
        step = "" if one["step"] is None else f"{one['step']:g}"
        late = "" if one["step"] is None else f"{one['change']:+.1e}"
        noise = "" if one["step"] is None else _n(one["noise"], 4)
        passes = "" if one["passes"] is None else f"{one['passes']:,}"
        rows.append([name, step, passes, str(one["starts"]), str(one["near"]), _n(one["mean"], 4), _n(one["worst"], 4),
                     late, noise])  # fmt: skip
    head = ["rule", "step a situation", "passes", "starts", f"within {_n(NEAR, 2)}", "mean excess", "worst",
            "last change", "noise"]  # fmt: skip
    return _table(head, rows)


def circuit(record: dict[str, Section]) -> str:
    """The sentence about a smaller rate in the circuit, and the flow with the same rates beside it."""
    rules = record["local .1"]["rules"]

    def told(rule: str) -> str:
        one = rules[rule]
        return (f"{one['near']} of {one['starts']} starts end within {_n(NEAR, 2)} nats of the lowest energy (mean "
                f"excess {_n(one['mean'], 4)}, noise {_n(one['noise'], 4)})")  # fmt: skip

    circuit, flow = (f"{name}, 10 tau a situation, rate {QUICK[0]:g}" for name in ("six-layer circuit", "flow"))
    then = f", then {SLOW[0]:g}"
    return (f"*In the circuit* at the rate {QUICK[0]:g}, a step of {rules[circuit]['step']:g} a situation, "
            f"{told(circuit)}. After {SLOW[1]} more passes at a rate ten times smaller, {told(circuit + then)}. "
            f"The softmax flow, without the circuit, at the same rates: first {told(flow)}, then "
            f"{told(flow + then)}.\n")  # fmt: skip


def days(record: dict[str, Section]) -> str:
    """When each section was measured."""
    by_day: dict[str, list[str]] = {}
    for name, it in record.items():
        by_day.setdefault(it["date"], []).append(name)
    return "; ".join(f"{day}: {', '.join(names)}" for day, names in sorted(by_day.items())) + ".\n"


PARTS: dict[str, Callable[..., str]] = {
    part.__name__: part for part in (cohorts, numbers, monotone, designs, em, flock, gains, local, circuit, days)
}
PARTS |= {
    "experiment1": lambda record: scores(record, "experiment 1", "Gershman (2018), experiment 1", "people"),
    "experiment2": lambda record: scores(record, "experiment 2", "Gershman (2018), experiment 2", "people"),
    "sheep": lambda record: scores(record, "sheep", "One sheep of each drive", "drives"),
}


def show(record: dict[str, Section]) -> str:
    """All parts for which there is a section, and sets of decisions that the page does not have."""
    words = []
    for name, it in record.items():
        if name == "cohorts":
            words += [cohorts(record), numbers(record), monotone(record)]
        elif name.startswith("local "):
            words += [f"Temperature {name[6:]}:\n", local(record, name[6:])]
        elif name in PARTS:
            words += [PARTS[name](record)]
        elif "hand-made, gate" in it.get("ways", {}):
            words += [scores(record, name, name, "subjects")]
    return "\n".join(words)


def part(name: str, *options: str) -> str:
    """Markdown of a part of the page, from the record."""
    return PARTS[name](json.loads(RECORD.read_text(encoding="utf-8")), *options)


# ----------------------------------------------------------------------------------------------------- figure

COLOURS = {"gate": "#0072B2", "constant": "#999999", "softmax": "#D55E00", "markov": "#009E73",
           "shuffled": "#56B4E9"}  # fmt: skip
DRAWN = {
    "settled weights, rate 0.5": ("settled weights, small rate", "#0072B2"),
    "settled weights, rate 5": ("settled weights, ten times that", "#D55E00"),
    "flow, 1 tau a situation, rate 0.05": ("flow, 1 tau a situation", "#999999"),
    "six-layer circuit, 10 tau a situation, rate 0.2": ("circuit, rate 0.2", "#CC79A7"),
    "six-layer circuit, 10 tau a situation, rate 0.2, then 0.02": ("circuit, then rate 0.02", "#009E73"),
}


def draw(rows: Rows, path: Path = FIGURE) -> None:
    """Held-out scores over the number of primitives, and the energy along local rules."""
    from matplotlib.figure import Figure

    record = summarise(rows)
    titles = {name: title for name, title in (("experiment 1", "people, experiment 1"),
              ("experiment 2", "people, experiment 2"), ("sheep", "sheep")) if name in record}  # fmt: skip
    fig = Figure(figsize=(3.2 * (len(titles) + 1), 3.5), layout="constrained")
    axes = fig.subplots(1, len(titles) + 1, squeeze=False)[0]
    for axis, (name, title) in zip(axes, titles.items(), strict=False):
        ways = record[name]["ways"]
        for way, colour in COLOURS.items():
            some = [(n, ways[f"{n} learned, {way}"]["held out"]) for n in NUMBERS if f"{n} learned, {way}" in ways]
            if some:
                axis.plot(*zip(*some, strict=True), "o-", color=colour, label=WAYS[way], markersize=4)
        axis.axhline(ways["hand-made, gate"]["held out"], color="black", linestyle=":", label="hand-made, the gate")
        axis.axhline(ways["1 learned"]["held out"], color="black", linestyle="--", linewidth=0.8, label="one learned")
        axis.set(title=title, xlabel="learned primitives", ylabel="held out, nats per decision", xticks=NUMBERS[1:])
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower left", ncols=4, fontsize=7, frameon=False)
    lowest = record["local .1"]["lowest"]
    for rule, (label, colour) in DRAWN.items():
        if row := rows.get(f"local, eps 0.1: {rule}"):
            excess = np.maximum(np.array(row["path"]) - lowest, 1e-5)
            axes[-1].semilogy(np.linspace(0, 1, len(excess)), excess, color=colour, label=label, linewidth=1.2)
    axes[-1].axhline(NEAR, color="black", linestyle=":", linewidth=0.8)
    axes[-1].set(title="local rules", xlabel="share of the passes", ylabel="energy above the lowest, nats")
    fig.legend(*axes[-1].get_legend_handles_labels(), loc="outside lower right", ncols=2, fontsize=7, frameon=False)
    fig.savefig(path, dpi=150)
