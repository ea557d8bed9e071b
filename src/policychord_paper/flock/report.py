"""The flock study as a record: its introduction, its data, and its findings with the numbers of a run."""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from policychord.loops import to_dataset
from policychord.worlds.flock import ARRIVED, FORCES, FlockFlight

from ..claim import count, judge_claim, label, median, number
from ..study import Finding, Objection, Recording, Study
from . import claims
from .claims import MILLS, POLARIZED, arrive, final_polarization, mill, nearest_distance, polarized_from
from .experiments import (
    FLOWN,
    Evidence,
    FlockStudySettings,
    by_model,
    by_name,
    experiments,
    gather,
    recorded,
    redraw,
    study_settings,
)
from .figures import FIGURES
from .worlds import WORLDS

INTRODUCTION = """Each boid of the paper's flock re-weights separation, alignment and cohesion at every step, with
weights from the gate. The paper shows single flights: a flock that polarizes, one that mills, one that a few leaders
bring to a goal, and followers of other models. Here the same flights are flown from several random starts each, with
Table S1's constants, and measured: polarization, milling, distance of the flock's centre from the goal, and how the
weights move. Every weight comes with a certificate of 1e-10. Each claim is compared with the flock without the thing
that should matter."""

PAPER_SEEDS = 30  # of Fig. S3c
SERIES = {"polarization": "1", "milling": "1", "goal_distance": "m", "pair_distance": "m", "spread": "m"}
CONSTANT = ["reward", "alive", "outcome"]  # no flock is rewarded, none ends early, and every weight is certified


# ------------------------------------------------------------------------------------ data


def _datasets(settings: FlockStudySettings, evidence: Evidence) -> Mapping[str, xr.Dataset]:
    """The first seed of every flight, every so many steps, and `series` of every seed."""
    thinned = {"time": slice(None, None, settings.keep_every)}
    flights = by_name(evidence)
    return {
        name: to_dataset(flight.shown, **flight.settings.model_dump()).drop_vars(CONSTANT).isel(thinned)
        for name, flight in flights.items()
    } | {"series": _series(flights, settings.keep_every)}


def _series(flights: Mapping[str, FlockFlight], every: int) -> xr.Dataset:
    """Order parameters, distances and imbalance of the weights; NaN where a flight has fewer seeds or steps."""
    seeds, steps = np.max([flight.measured.imbalance.shape for flight in flights.values()], axis=0)

    def filled(name: str) -> np.ndarray:
        values = np.full((len(flights), seeds, steps), np.nan)
        for row, flight in zip(values, flights.values(), strict=True):
            series = getattr(flight.measured, name)
            row[: series.shape[0], : series.shape[1]] = series
        return values[:, :, ::every]

    described = {name: {"units": unit} for name, unit in SERIES.items()}
    described["imbalance"] = {"long_name": "max|w - 1/3|, mean over boids", "units": "1"}
    variables = {name: (("experiment", "seed", "time"), filled(name), about) for name, about in described.items()}
    return xr.Dataset(variables, coords={"experiment": list(flights), "time": np.arange(steps)[::every]})


# ------------------------------------------------------------------------------------ summary


def _summary(settings: FlockStudySettings, evidence: Evidence) -> str:
    """What was found, with the control of each number next to it."""
    gated, fixed = evidence.leaderless
    ring, no_term, scattered, _ = map(mill, evidence.milling)
    led, alone = evidence.leaders.tenth, evidence.leaders.none
    rows = [
        ("polarization at the last step", f"{final_polarization(gated):.3f}",
         f"{final_polarization(fixed):.3f} (weights fixed at 1/3)"),
        (f"step from which it stays above {POLARIZED:g}", f"{polarized_from(gated):.0f}",
         f"{polarized_from(fixed):.0f} (weights fixed at 1/3)"),
        ("milling m from the scripts' rotating ring", f"{median(ring):.2f}",
         f"{median(no_term):.2f} (no collision term)"),
        (f"seeds with m > {MILLS:g} from the text's random start", number(count(scattered > MILLS)), ""),
        (f"seeds within {ARRIVED:g} m of the goal, 10% leaders", number(arrive(led)),
         f"{number(arrive(alone))} (no leaders)"),
        *((f"the same, six leaders of {name} followers", number(arrive(forms.released[0])),
           f"{number(arrive(forms.released[1]))} (no leaders)") for name, forms in by_model(evidence).items()),
    ]  # fmt: skip
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    text = ["Medians over seeds, each next to the same flock without what should matter."]
    if final_polarization(fixed) > POLARIZED:
        text.append("Flocks with fixed weights polarize too. Near-balance accompanies polarization, and the gate is "
                    "not needed for it.")  # fmt: skip
    if (ring > MILLS).all() and not (scattered > MILLS).any():
        text.append(
            f"The collision term keeps a rotating ring turning. None of {len(scattered)} random starts became a mill."
        )
    text.append(_sweet_spot(evidence))
    return f"{' '.join(text)}\n\n| | measured | control |\n|---|---|---|\n{table}"


def _sweet_spot(evidence: Evidence) -> str:
    """On which sides of the middle temperature flocks stay farther from the goal, by paired seeds."""
    near = [nearest_distance(flight) for flight in evidence.temperatures]
    cold, hot = (claims.standard_errors(near[side] - near[1]) for side in (0, 2))
    farther = [name for name, z in ((claims.COLD, cold), (claims.HOT, hot)) if z > claims.FARTHER]
    if len(farther) == 2:
        return f"Both {claims.COLD} and {claims.HOT} end farther from the goal than {claims.MIDDLE}."
    if not farther:
        return "The seeds do not separate the three temperatures by the distance from the goal."
    other = claims.HOT if farther[0] == claims.COLD else claims.COLD
    return (
        f"Flocks at {farther[0]} stay farther from the goal than at {claims.MIDDLE}; for {other} that is not shown, so "
        "neither is a sweet spot."
    )


# ------------------------------------------------------------------------------------ findings


def _findings(settings: FlockStudySettings, evidence: Evidence) -> list[Finding]:
    """What a reader who knows the field should know of these flocks."""
    return [
        _balance(evidence), _arrival(evidence), _temperature(settings, evidence),
        _followers(evidence), _text_and_scripts(evidence),
    ]  # fmt: skip


def _balance(evidence: Evidence) -> Finding:
    gated, fixed = evidence.leaderless
    imbalance = gated.measured.imbalance
    weights = gated.shown.weights[0, -100:].mean(axis=(0, 1))
    final, most = final_polarization(fixed), int(np.argmax(weights))
    text = (
        "The text links the onset of polarization to weights that become balanced. The largest distance of a weight "
        f"from 1/3 falls from {imbalance[:, :20].mean():.2f} (first 20 steps) to {imbalance[:, -100:].mean():.2f} "
        "(last 100). "
    )
    if weights[most] - 1 / 3 > 0.02:
        text += (
            f"A bias stays: the mean weights at the end are {', '.join(f'{w:.2f}' for w in weights)} "
            f"({', '.join(FORCES)}), {FORCES[most]} ahead. "
        )
    if final > POLARIZED:
        text += (
            f"Balance is not the cause, though: held at 1/3 from the first step, the flock polarizes too ({final:.3f}, "
            f"above {POLARIZED:g} for good from step {polarized_from(fixed):.0f}, with the gate from step "
            f"{polarized_from(gated):.0f}). Near-balance accompanies this polarization; it does not bring it about."
        )
    else:
        text += f"Held at 1/3 from the first step, the flock does not polarize ({final:.2f}), so the gate matters."
    lone = evidence.known.scattered.measured
    before, after = lone.follower_imbalance[:, :20].mean(), lone.follower_imbalance[:, -100:].mean()
    text += (
        f" Boids that see nobody have {before:.2f} at first and {after:.2f} at the end, polarization "
        f"{final_polarization(evidence.known.scattered):.2f}: "
    )
    text += (
        "weights become balanced where there is no flock, too."
        if after <= 0.5 * before
        else "without neighbours weights do not become balanced."
    )
    return Finding("Balance and polarization", text)


def _arrival(evidence: Evidence) -> Finding:
    led, alone = evidence.leaders.tenth, evidence.leaders.none
    measured, near, arrived = led.measured, median(nearest_distance(led)), arrive(led)
    end = median(measured.goal_distance[:, -1])
    text = (
        f"With 10% leaders the centre of the flock comes within {near:.1f} m of the goal (median; {arrived.value} of "
        f"{arrived.of} seeds nearer than {ARRIVED:g} m), without any {median(nearest_distance(alone)):.1f} m. "
    )
    if end > 2 * near:
        text += (
            f"At the end of the flight it is {end:.1f} m away again: nothing in the model asks for a stop, so the "
            "flock overshoots and circles. The nearest distance over a fixed time is what can be compared, not the "
            "last one. "
        )
    before, leaders = measured.leader_sd_before.mean(), measured.leader_sd.mean()
    others_before, others = measured.follower_sd_before.mean(), measured.follower_sd.mean()
    text += (
        f"The leaders' weights vary by {leaders:.3f} (sd over time), the followers' by {others:.3f}; until arrival "
        f"only, {before:.3f} and {others_before:.3f}. "
    )
    if before > others_before and leaders - others > 1.5 * (before - others_before):
        text += "Much of the difference arises while the flock circles the goal, but not all of it."
    elif before > others_before:
        text += "The difference is there before arrival as well."
    else:
        text += "Before arrival there is no such difference: it arises at the goal."
    return Finding("Arriving, and not stopping", text)


def _temperature(settings: FlockStudySettings, evidence: Evidence) -> Finding:
    claim = judge_claim(next(claim for claim in claims.CLAIMS if claim.id == "F8"), settings, evidence)
    value = {name: quantity.value for name, quantity in claim.measured.items()}
    lines = "\n".join(
        f"- {part}: its rule {'holds' if held else 'does not hold'}" for part, held in claim.holds.items()
    )
    near = ", ".join(
        f"{value[f'mean nearest distance at {eps}']:.1f} m at {eps}" for eps in (claims.COLD, claims.MIDDLE, claims.HOT)
    )
    hot, cold, hot_in_turn, cold_in_turn = (
        value[label(order, f"standard errors by which {eps} is farther than {claims.MIDDLE}")]
        for order in claims.READINGS
        for eps in (claims.HOT, claims.COLD)
    )
    text = (
        f"The claim has four parts, judged one by one over {value['seeds']} seeds, for boids that move at once and in "
        f"turn:\n\n{lines}\n\n"
        f"Mean nearest distance to the goal of boids that move at once: {near}. Against {claims.MIDDLE}, {claims.HOT} "
        f"is farther by {hot:.1f} standard errors of the paired seeds, and {claims.COLD} by {cold:.1f} (in turn: "
        f"{hot_in_turn:.1f} and {cold_in_turn:.1f}). "
    )
    if hot > 2 and cold <= 2:
        text += "So there is an upper limit, but no sweet spot: on the low side nothing is lost."
    elif hot > 2:
        text += "So both sides are worse than the middle: a sweet spot."
    else:
        text += (
            "By these distances the seeds do not tell the temperatures apart: a part that holds by its rule may do so "
            "by chance."
        )
    hottest = evidence.temperatures.hot.measured
    leaders, others = (a[:, -claims.LATE :].mean() for a in (hottest.leader_imbalance, hottest.follower_imbalance))
    text += (
        f" At {claims.HOT} the leaders' weights are {leaders:.3f} from 1/3 in the end, the followers' {others:.3f}: "
    )
    text += (
        "leaders weigh as followers do." if leaders <= 2 * others else "leaders still weigh otherwise than followers."
    )
    return Finding("Temperature, part by part", text)


def _followers(evidence: Evidence) -> Finding:
    table = [
        "| followers | released: nearest, arrive | without leaders | original: nearest, arrive | without leaders |",
        "|---|---|---|---|---|",
    ]
    helped = []
    for name, forms in by_model(evidence).items():
        shares = [float((nearest_distance(led) < ARRIVED).mean()) for led, _ in forms]
        cells = (
            f"{median(nearest_distance(led)):.1f} m, {share:.0%} | {median(nearest_distance(alone)):.1f} m"
            for (led, alone), share in zip(forms, shares, strict=True)
        )
        table.append(f"| {name} | {' | '.join(cells)} |")
        helped += [name] if shares[1] > shares[0] else []
    rows = "\n".join(table)
    text = (
        "The text refers to the original papers for the followers' models; the released scripts have forms and "
        "constants of their own. Couzin: in the scripts the zones end at 1, 3 and 12 m, the middle and the outer one "
        "count equally and a boid does not flee from behind; in the original form neighbours count equally, a boid "
        "flees from all sides, and the zones are flown here with 0.5, 6 and 12 m. Cucker and Smale sum over all boids; "
        "the scripts take a mean within 5 m, and halve the initial speed. Vicsek's radius is the unit of length, 5 m "
        f"in the scripts.\n\n{rows}\n\n"
    )
    if helped:
        text += f"In the original form more seeds arrive with {' and '.join(helped)} followers: the form matters."
    else:
        text += "In this run no model is guided more reliably in its original form."
    return Finding("Followers: released constants and original forms", text)


def _text_and_scripts(evidence: Evidence) -> Finding:
    gap = max(flight.measured.largest_gap for flight in by_name(evidence).values())
    text = (
        "Where the text leaves something open, the released scripts were followed, and where they differ, the text "
        "unless noted otherwise.\n\n"
        "- Table S1 says 30^2 actions; the scripts keep those within the largest acceleration, 648 cells. So here.\n"
        "- The text updates all boids from the same state; the scripts move them one after another in place. Composed "
        "flocks are flown both ways, followers of other models as in the scripts (`update` chooses).\n"
        "- Position advances with the old velocity, so the position term of the generative model is the same for every "
        "acceleration: it adds to the energy and cannot move a weight, neither a follower's nor a leader's. Leaders "
        "are led by the velocity term alone.\n"
        "- Milling starts on a rotating ring in the scripts, and the collision term is given by them alone.\n"
        "- The scripts integrate the flow with `solve_ivp` for every boid and step; here the equilibrium is solved "
        f"for, and the largest certified gap of all decisions is {gap:.0e}."
    )
    return Finding("The text and the released scripts", text)


def _objections(settings: FlockStudySettings, evidence: Evidence) -> list[Objection]:
    """What readers would dispute; the number of seeds is that of the run."""
    heats = settings.temperature_seeds
    few = Objection(
        ("F4", "F6", "F7", "F8"),
        "reviewer",
        "The seeds are few.",
        "They are; the last column says in how many draws of seeds the verdict is the same, and the smallest "
        f"change of a limit that would turn it. F8 has {heats} seeds for each temperature in this run"
        + (", as in the paper." if heats == PAPER_SEEDS else f"; the paper has {PAPER_SEEDS}."),
    )
    return [*OBJECTIONS, few]


OBJECTIONS = (
    Objection(("F3",), "author", "The scripts are the record, and they start from a ring.",
              "The ring is a part of its own, and counts. The table of parameters says that initial states are "
              "random, so a random start is the other part: it asks whether the collision term creates a mill, and "
              "not only whether it sustains one."),
    Objection(("F9", "F10"), "author", "*Guide toward the goal* does not say *arrive*.",
              "So towards the goal is a part of its own for each form, and counts: the distance at least halves. That "
              "a flock arrives, within 3 m, is another part, named as ours."),
    Objection(("F8",), "author", "A sweet spot was suggested, not claimed.",
              "So the other three parts are judged apart from it. A best range has a lower side and an upper side, "
              "and its part asks for both."),
    Objection(("F1", "F2"), "reviewer",
              "A flock with fixed weights polarizes too, so the claims say nothing about the gate.",
              "They do not say that the gate is needed. The control with weights of a third stands among the "
              "measured numbers of F1 and in the figure on order."),
    Objection(("F5", "F13"), "reviewer", "Leaders that circle the goal after arrival vary more for that reason alone.",
              "The numbers of F5 before arrival are given with those of the whole flight, and F13 measures leaders "
              "among three other kinds of followers."),
)  # fmt: skip


STUDY = Study(
    summary=_summary, shown="order",
    name="flock", title="Collective behaviour: boids that weigh three social forces",
    introduction=INTRODUCTION, settings=study_settings, experiments=experiments, evidence=gather,
    claims=claims.CLAIMS, figures=FIGURES, datasets=_datasets, controls=claims.controls, worlds=WORLDS,
    findings=_findings, objections=_objections, recording=Recording(lambda settings: FLOWN, recorded), redraw=redraw,
)  # fmt: skip
