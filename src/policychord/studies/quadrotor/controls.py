"""Controls of the quadrotor study: what is changed, what comes out, and what that means for the claims."""

from typing import Any

from ..study import Control, Evidence
from .claims import CONTROL, RELEASED, USEFUL, WRITTEN
from .comparing import BASELINE, beside, in_both, median
from .plan import ACCELERATIONS, SCRIPT_WEIGHT, disputed_at, flights_at, sweep_of
from .settings import QuadrotorSettings


def controls(settings: QuadrotorSettings, evidence: Evidence) -> list[Control]:
    return [control(settings, evidence) for control in (mixture, centre, drawn, grid, horizon, temperature, disputed)]


def mixture(settings: QuadrotorSettings, evidence: Evidence) -> Control:
    gates = {"released gate": in_both(settings, evidence, CONTROL, RELEASED)}
    gates["cost-to-go gate"] = in_both(settings, evidence, CONTROL, USEFUL)
    released = gates["released gate"].values()
    if any(one.dearer for one in released):
        answer = "For the released gate yes, in at least one experiment: the fixed mixture costs more."
    else:
        answer = "For the released gate that is not shown: the fixed mixture costs more in neither experiment."
    if all(one.dearer for one in gates["cost-to-go gate"].values()):
        answer += " With a model that looks ahead it does, in both."
    else:
        answer += " With a model that looks ahead that is not shown in both either."
    measured = {f"50/50 against the {gate}, {e.upper()}": one.figures for gate, both in gates.items()
                for e, one in both.items()}  # fmt: skip
    question = "Does a gate add anything to the plain average of the two controllers?"
    return Control("Fixed 50/50 mixture", question, measured, answer)


def centre(settings: QuadrotorSettings, evidence: Evidence) -> Control:
    names = (RELEASED, WRITTEN, CONTROL, USEFUL)
    found = {name: in_both(settings, evidence, name, world="centre") for name in names}
    measured: dict[str, Any] = {
        f"{name} against {BASELINE[e]}": one.figures for name, both in found.items() for e, one in both.items()
    }
    measured["seeds"] = len(flights_at(settings, evidence, "pd", "centre")["baseline"].cost)
    wins = [BASELINE[e] for e, one in found[RELEASED].items() if one.cheaper]
    if len(wins) == len(BASELINE):
        answer = "No: the released gate costs less than both baselines here too."
    elif wins:
        answer = f"Partly: the released gate costs less than {wins[0]} here; that it does than the other is not shown."
    else:
        answer = "Yes: once no force turns the drone, the released gate is not shown to cost less than either baseline."
    question = "Do the results rest on forces that act where the drone was, and so turn it?"
    return Control("Forces at the centre of mass", question, measured, answer)


def drawn(settings: QuadrotorSettings, evidence: Evidence) -> Control:
    found = {name: in_both(settings, evidence, name, WRITTEN) for name in ("equilibrium, mean", "equilibrium, dither")}
    measured = {f"{name} against drawn, {e.upper()}": one.figures for name, both in found.items()
                for e, one in both.items()}  # fmt: skip
    cheaper = [name.split(", ")[1] for name, both in found.items() if all(one.cheaper for one in both.values())]
    if cheaper:
        cost = "both cost" if len(cheaper) > 1 else "costs"
        answer = f"Yes: with the same weights, {' and '.join(cheaper)} {cost} less than drawing, in both experiments."
    else:
        answer = "Not clearly: neither is shown to cost less in both experiments."
    question = "Does it matter that the thrust is drawn from the mixture, rather than its mean or controllers in turns?"
    return Control("Drawn, mean or dithered thrust", question, measured, answer)


def grid(settings: QuadrotorSettings, evidence: Evidence) -> Control:
    found = {n: in_both(settings, evidence, f"equilibrium, {n}, wide", f"equilibrium, {n}") for n in ("sample", "mean")}
    measured = {f"wide against the paper's grid, {n}, {e.upper()}": one.figures for n, both in found.items()
                for e, one in both.items()}  # fmt: skip
    cheaper = sum(one.cheaper for both in found.values() for one in both.values())
    answer = f"On the wide grid costs are lower, by the test, in {cheaper} of {len(measured)} comparisons. "
    answer += "The cut at the limits is part of the result." if cheaper else "The cut makes no difference that shows."
    question = (
        f"What if the grid reaches {settings.wide_margin:g} N past the motors' limits, so that no primitive is cut?"
    )
    return Control("Grid past the limits", question, measured, answer)


def horizon(settings: QuadrotorSettings, evidence: Evidence) -> Control:
    one = "equilibrium, mean, wide"
    found = {world: in_both(settings, evidence, "cost-to-go", one, world) for world in ("stale-point", "centre")}
    measured = {f"cost-to-go against one step, {e.upper()}, {world}": it.figures for world, both in found.items()
                for e, it in both.items()}  # fmt: skip
    better = [
        key for key, it in zip(measured, (x for b in found.values() for x in b.values()), strict=True) if it.cheaper
    ]
    answer = "It is shown to in none." if not better else f"It is shown to in {len(better)} of {len(measured)}."
    return Control(
        "How far the model sees",
        "Does a cost-to-go cost less than the same gate with the cost of one step, and in how many comparisons?",
        measured,
        answer,
    )


def temperature(settings: QuadrotorSettings, evidence: Evidence) -> Control:
    sweep = sweep_of(settings, evidence)
    measured: dict[str, Any] = {}
    best = {}
    for name, found in (("one step", sweep.one_step), ("cost-to-go", sweep.cost_to_go)):
        measured |= {f"median cost, {name}, eps {eps:g}": median(flight) for eps, flight in found.items()}
        best[name] = min((median(flight), eps) for eps, flight in found.items())[1]
    measured["seeds"] = len(next(iter(sweep.one_step.values())).cost)
    answer = f"The lowest median is at eps = {best['one step']:g} for the cost of one step and at "
    answer += f"{best['cost-to-go']:g} for the cost-to-go; the paper has {settings.composition.eps:g}."
    return Control("Temperature", "Is it the temperature? (PD pair, mean action, wide grid)", measured, answer)


def disputed(settings: QuadrotorSettings, evidence: Evidence) -> Control:
    places = {
        "accelerations, as in the text": (ACCELERATIONS, "PID"),
        "the script's LQR weight": (SCRIPT_WEIGHT, "LQR"),
    }
    found = {
        words: (beside(settings, disputed_at(evidence, where), RELEASED), base)
        for words, (where, base) in places.items()
    }
    measured = {f"{words}: released gate against {base}": one.figures for words, (one, base) in found.items()}
    measured["seeds"] = str(len(disputed_at(evidence, ACCELERATIONS)[RELEASED].cost))
    answer = " ".join(f"With {words}, the released gate {one.verb} {base}." for words, (one, base) in found.items())
    question = "Where text and scripts disagree: what does the other reading give?"
    return Control("Text and scripts", question, measured, answer)
