"""Claims Q1 to Q5, each judged for the paper's released gate and for the optimum that its theory defines; controls."""

from collections.abc import Iterable, Sequence

from ...stats.effect_size import spread
from ..claim import Claim, Condition, Measured, Quantity, Relation, Rule, in_parts
from ..study import Control
from .agents import BASELINE, FIXED
from .experiments import Evidence, Flights
from .measures import LEAST_EVIDENCE, Both, Comparison, compare, compare_both, median, quantities, recovery
from .settings import QuadrotorSettings

# Both are "our model" of the paper: what its scripts compute, and what its text defines.
RELEASED, WRITTEN = GATES = "one-step gate", "equilibrium, sample"
LOOKING_AHEAD = "cost-to-go, warm"
OTHERS = ("equilibrium, mean", "equilibrium, mean, wide", FIXED, LOOKING_AHEAD)
Numbers = dict[str, Quantity | float]
Limit = tuple[str, Relation, float]

BELOW: Limit = ("median cost above the cheaper primitive's", "<", 0.0)
WIDER: Limit = ("inter-quartile range above PID's", "<", 0.0)
SLOWER: Limit = ("time until back above LQR's", "<", 0.0)
FARTHER: Limit = ("error above LQR's", "<", 0.0)
SIGN: Limit = ("delta", "<", 0.0)
TEST: Limit = ("p", "<", LEAST_EVIDENCE)


def both_gates(*limits: Limit, sign: Sequence[Limit] = (), context: str = "") -> Rule:
    """A part for each gate; `sign` is what counts in part for the released gate, if its p-value is too large."""
    parts = {RELEASED: (RELEASED, limits), WRITTEN: (WRITTEN, limits)}
    parts |= {f"{RELEASED}, without the test": (RELEASED, tuple(sign))} if sign else {}
    conditions = {
        name: tuple(Condition(f"{quantity}, {gate}", relation, limit) for quantity, relation, limit in these)
        for name, (gate, these) in parts.items()
    }
    return in_parts(conditions, context)


def _pd(evidence: Evidence) -> dict[str, Flights]:
    """By what the names of their numbers begin with."""
    return {"": evidence.stale_point.pd, "centre: ": evidence.centre.pd}


def _lqr(evidence: Evidence) -> dict[str, Flights]:
    return {"": evidence.stale_point.lqr, "centre: ": evidence.centre.lqr}


def _seeds(worlds: dict[str, Flights]) -> Numbers:
    return {f"{words}seeds": len(flights["baseline"].cost) for words, flights in worlds.items()}


def _medians(flights: Flights, names: Iterable[str], words: str = "") -> Numbers:
    return {f"{words}median cost, {name}": spread(flights[name].cost).median for name in names}


def _above_primitives(flights: Flights) -> Numbers:
    best = min(spread(flights[name].cost).median for name in ("stabilise", "track"))
    return {f"{BELOW[0]}, {name}": spread(flights[name].cost).median - best for name in GATES}


def _deltas(settings: QuadrotorSettings, worlds: dict[str, Flights]) -> Numbers:
    """Both readings of the paper first, then what they are to be compared with."""
    measured: Numbers = {}
    for words, flights in worlds.items():
        for name in (*GATES, *OTHERS):
            found = quantities(name, compare(settings, flights, name))
            kept = list(found)[: 3 if name in GATES else 1]  # of the others, delta alone
            measured |= {f"{words}{label}": found[label] for label in kept}
    return measured


def composing_tracks(settings: QuadrotorSettings, evidence: Evidence) -> Measured:
    worlds = _pd(evidence)
    first = (RELEASED, "stabilise", "track", WRITTEN)
    medians = _medians(worlds[""], (*first, *OTHERS)) | _above_primitives(worlds[""])
    return medians | _medians(worlds["centre: "], first, "centre: ") | _seeds(worlds)


def cheaper_than_pid(settings: QuadrotorSettings, evidence: Evidence) -> Measured:
    worlds = _pd(evidence)
    pid: Numbers = {"median cost, PID": spread(worlds[""]["baseline"].cost).median}
    return _deltas(settings, worlds) | pid | _seeds(worlds)


def less_variable(settings: QuadrotorSettings, evidence: Evidence) -> Measured:
    worlds = _pd(evidence)
    measured: Numbers = {}
    for words, flights in worlds.items():
        for name in (RELEASED, "baseline", WRITTEN, *OTHERS):
            label = "PID" if name == "baseline" else name
            measured[f"{words}inter-quartile range, {label}"] = spread(flights[name].cost).range
    here = worlds[""]
    pid = spread(here["baseline"].cost).range
    measured |= {f"{WIDER[0]}, {name}": spread(here[name].cost).range - pid for name in GATES}
    return measured | _seeds(worlds)


def cheaper_than_lqr(settings: QuadrotorSettings, evidence: Evidence) -> Measured:
    worlds = _lqr(evidence)
    here = worlds[""]
    medians = _medians(here, ("stabilise", "track", RELEASED, WRITTEN)) | _above_primitives(here)
    lqr: Numbers = {"median cost, LQR": spread(here["baseline"].cost).median}
    return _deltas(settings, worlds) | medians | lqr | _seeds(worlds)


def recovers_faster(settings: QuadrotorSettings, evidence: Evidence) -> Measured:
    worlds = _lqr(evidence)
    measured: Numbers = {}
    for words, flights in worlds.items():
        names = (RELEASED, "baseline", WRITTEN, FIXED, LOOKING_AHEAD)
        back = {"LQR" if name == "baseline" else name: recovery(settings, flights[name]) for name in names}
        measured |= {f"{words}time until back, {label}": Quantity(median(one.time), "s") for label, one in back.items()}
        measured |= {f"{words}error, {label}": Quantity(median(one.error), "m s") for label, one in back.items()}
        for gate in GATES if not words else ():
            time = median(back[gate].time) - median(back["LQR"].time)
            error = median(back[gate].error) - median(back["LQR"].error)
            measured |= {f"{SLOWER[0]}, {gate}": Quantity(time, "s"), f"{FARTHER[0]}, {gate}": Quantity(error, "m s")}
    return measured | _seeds(worlds)


MANN_WHITNEY = "costs against the baseline's, p by the Mann-Whitney test"
CLAIMS: tuple[Claim[QuadrotorSettings, Evidence], ...] = (
    Claim("Q1", "composing two PD controllers, each insufficient alone, tracks the figure of eight", "Fig. 5b",
          both_gates(BELOW), composing_tracks, "no number given: one flight in Fig. 5b, costs in Fig. 5c"),
    Claim("Q2", "the composed PD pair has a lower median cost than PID", "Fig. 5c",
          both_gates(SIGN, TEST, sign=[SIGN], context=MANN_WHITNEY), cheaper_than_pid,
          "delta = -0.14, p < 1e-7 (1000 seeds)"),
    Claim("Q3", "the composed PD pair varies less in cost than PID", "Fig. 5c",
          both_gates(WIDER), less_variable, "no number given: the boxes of Fig. 5c"),
    Claim("Q4", "the composed LQR pair, pushed by an impulse, costs less than both its primitives and the LQR baseline",
          "Fig. S7b", both_gates(SIGN, TEST, BELOW, sign=[SIGN, BELOW], context=MANN_WHITNEY), cheaper_than_lqr,
          "delta = -0.34, p < 1e-38 (1000 seeds)"),
    Claim("Q5", "the composed LQR pair recovers faster from the impulse than LQR", "Fig. S7a",
          both_gates(SLOWER, FARTHER, context="medians of the time to return within the radius `recovered` and of the "
                     "error over the next 2 s"),
          recovers_faster, "no number given: one flight in Fig. S7a"),
)  # fmt: skip


def controls(settings: QuadrotorSettings, evidence: Evidence) -> list[Control]:
    """What is changed, what comes out, and what that means for the claims."""
    made = (fixed_mixture, centre_of_mass, taken_action, wide_grid, horizon, temperature, text_and_scripts)
    return [control(settings, evidence) for control in made]


def _measured(found: dict[str, Comparison], **more: float) -> Numbers:
    return {name: number for label, one in found.items() for name, number in quantities(label, one).items()} | more


def _by_pair(label: str, both: Both) -> dict[str, Comparison]:
    return {f"{label}, {experiment.upper()}": one for experiment, one in both.items()}


def fixed_mixture(settings: QuadrotorSettings, evidence: Evidence) -> Control:
    released, ahead = (compare_both(settings, evidence.stale_point, FIXED, g) for g in (RELEASED, LOOKING_AHEAD))
    if any(one.dearer for one in released.values()):
        answer = "For the released gate yes, in at least one experiment: the fixed mixture costs more."
    else:
        answer = "For the released gate that is not shown: the fixed mixture costs more in neither experiment."
    both = all(one.dearer for one in ahead.values())
    answer += f" With a model that looks ahead {'it does, in both' if both else 'that is not shown in both either'}."
    found = _by_pair("50/50 against the released gate", released) | _by_pair("50/50 against the cost-to-go gate", ahead)
    question = "Does a gate add anything to the plain average of the two controllers?"
    return Control("Fixed 50/50 mixture", question, _measured(found), answer)


def centre_of_mass(settings: QuadrotorSettings, evidence: Evidence) -> Control:
    found = {
        f"{name} against {BASELINE[e]}": one
        for name in (*GATES, FIXED, LOOKING_AHEAD)
        for e, one in compare_both(settings, evidence.centre, name).items()
    }
    wins = [base for base in BASELINE.values() if found[f"{RELEASED} against {base}"].cheaper]
    if len(wins) == len(BASELINE):
        answer = "No: the released gate costs less than both baselines here too."
    elif wins:
        answer = f"Partly: the released gate costs less than {wins[0]} here; that it does than the other is not shown."
    else:
        answer = "Yes: once no force turns the drone, the released gate is not shown to cost less than either baseline."
    question = "Do the results rest on forces that act where the drone was, and so turn it?"
    measured = _measured(found, seeds=len(evidence.centre.pd["baseline"].cost))
    return Control("Forces at the centre of mass", question, measured, answer)


def taken_action(settings: QuadrotorSettings, evidence: Evidence) -> Control:
    mean, dither = (
        compare_both(settings, evidence.stale_point, f"equilibrium, {action}", WRITTEN) for action in ("mean", "dither")
    )
    both = {"mean": mean, "dither": dither}
    less = [action for action, pair in both.items() if all(one.cheaper for one in pair.values())]
    if less:
        cost = "both cost" if len(less) > 1 else "costs"
        answer = f"Yes: with the same weights, {' and '.join(less)} {cost} less than drawing, in both experiments."
    else:
        answer = "Not clearly: neither is shown to cost less in both experiments."
    question = "Does it matter that the thrust is drawn from the mixture, rather than its mean or controllers in turns?"
    found = _by_pair("mean against drawn", mean) | _by_pair("dither against drawn", dither)
    return Control("Drawn, mean or dithered thrust", question, _measured(found), answer)


def wide_grid(settings: QuadrotorSettings, evidence: Evidence) -> Control:
    found: dict[str, Comparison] = {}
    for action in ("sample", "mean"):
        name = f"equilibrium, {action}"
        both = compare_both(settings, evidence.stale_point, f"{name}, wide", name)
        found |= _by_pair(f"wide against the paper's grid, {action}", both)
    less = sum(one.cheaper for one in found.values())
    answer = f"On the wide grid costs are lower, by the test, in {less} of {len(found)} comparisons. "
    answer += "The cut at the limits is part of the result." if less else "The cut makes no difference that shows."
    question = (
        f"What if the grid reaches {settings.wide_margin:g} N past the motors' limits, so that no primitive is cut?"
    )
    return Control("Grid past the limits", question, _measured(found), answer)


def horizon(settings: QuadrotorSettings, evidence: Evidence) -> Control:
    found = {
        f"cost-to-go against one step, {e.upper()}, {world}": one
        for world, pairs in (("stale-point", evidence.stale_point), ("centre", evidence.centre))
        for e, one in compare_both(settings, pairs, "cost-to-go", "equilibrium, mean, wide").items()
    }
    less = sum(one.cheaper for one in found.values())
    answer = f"It is shown to in {less} of {len(found)}." if less else "It is shown to in none."
    question = "Does a cost-to-go cost less than the same gate with the cost of one step, and in how many comparisons?"
    return Control("How far the model sees", question, _measured(found), answer)


def temperature(settings: QuadrotorSettings, evidence: Evidence) -> Control:
    measured: Numbers = {}
    best = []
    for name, flights in (("one step", evidence.one_step), ("cost-to-go", evidence.cost_to_go)):
        medians = {eps: spread(flight.cost).median for eps, flight in flights.items()}
        measured |= {f"median cost, {name}, eps {eps:g}": cost for eps, cost in medians.items()}
        best.append(min(medians, key=lambda eps: (medians[eps], eps)))
    measured["seeds"] = len(next(iter(evidence.one_step.values())).cost)
    answer = f"The lowest median is at eps = {best[0]:g} for the cost of one step and at {best[1]:g} for the "
    answer += f"cost-to-go; the paper has {settings.composition.eps:g}."
    return Control("Temperature", "Is it the temperature? (PD pair, mean action, wide grid)", measured, answer)


def text_and_scripts(settings: QuadrotorSettings, evidence: Evidence) -> Control:
    text = compare(settings, evidence.accelerations, RELEASED)
    script = compare(settings, evidence.script_weight, RELEASED)
    found = {
        "accelerations, as in the text: released gate against PID": text,
        "the script's LQR weight: released gate against LQR": script,
    }
    answer = f"With accelerations, as in the text, the released gate {text.verb} PID. "
    answer += f"With the script's LQR weight, the released gate {script.verb} LQR."
    question = "Where text and scripts disagree: what does the other reading give?"
    seeds = len(evidence.accelerations[RELEASED].cost)
    return Control("Text and scripts", question, _measured(found, seeds=seeds), answer)
