"""What we found in the flock study, with the numbers of this run."""

import numpy as np

from ..study import Evidence, Passage
from . import metrics
from .claims import nearest_of, ordered_from, parts_of_temperature
from .controls import MILLS, mills
from .experiments import FORMS, MODELS
from .scenarios import TEMPERATURES
from .settings import FlockStudySettings

PAPER_SEEDS = 30  # of Fig. S3c
RULE_SEEDS = 8  # of F1, and what the other claims get in a full run


def found(settings: FlockStudySettings, evidence: Evidence) -> list[Passage]:
    """What a reader who knows the field should know of these flocks."""
    return [
        _milling(evidence), _balance(evidence), _arrival(evidence), _temperature(evidence), _followers(evidence),
        _text_and_scripts(evidence), _seeds(settings),
    ]  # fmt: skip


def _milling(evidence: Evidence) -> Passage:
    ring, bare, scattered = (
        mills(evidence[name]) for name in ("milling", "milling, no collision term", "milling, random start")
    )
    text = (
        "The text obtains milling by adding a collision term to the generative model, and says that boids start at "
        "random. The released script starts them on a ring that already rotates. From that ring, with the term, "
        f"m = {np.median(ring):.2f} (median of the last 50 steps, {(ring > MILLS).sum()} of {len(ring)} seeds above "
        f"{MILLS:g}); without the term, m = {np.median(bare):.2f}; with the term but from a random start "
        f"{(scattered > MILLS).sum()} of {len(scattered)} seeds mill. "
    )
    needs_ring, needs_term = not (scattered > MILLS).any(), np.median(bare) < MILLS
    if np.median(ring) < MILLS:
        text += "In this run the ring does not mill either."
    elif needs_ring and needs_term:
        text += "So milling needs both: the term keeps a rotation going and sharpens it, but does not create it."
    elif needs_term:
        text += "So the term is needed, and a rotating start makes milling more likely rather than possible."
    elif needs_ring:
        text += "So the rotating start is needed, and the term is not."
    else:
        text += "So in this run neither the start nor the term was needed."
    return Passage("Milling: the start and the term", text)


def _balance(evidence: Evidence) -> Passage:
    gated, fixed = evidence["polarization"], evidence["polarization, fixed weights"]
    early, late = float(gated.imbalance[:, :20].mean()), float(gated.imbalance[:, -100:].mean())
    weights = gated.shown.weights[0, -100:].mean(axis=(0, 1))
    final = float(np.median(fixed.metrics.polarization[:, -1]))
    when = [float(np.median(ordered_from(one))) for one in (gated, fixed)]
    text = (
        "The text links the onset of polarization to weights that become balanced. "
        f"The largest distance of a weight from 1/3 falls from {early:.2f} (first 20 steps) to {late:.2f} (last 100). "
    )
    names = ("separation", "alignment", "cohesion")
    most = int(np.argmax(weights))
    if weights[most] - 1 / 3 > 0.02:
        text += (
            f"A bias stays: the mean weights at the end are {', '.join(f'{w:.2f}' for w in weights)} "
            f"({', '.join(names)}), {names[most]} ahead. "
        )
    if final > 0.95:
        text += (
            f"Balance is not the cause, though: held at 1/3 from the first step, the flock polarizes too "
            f"({final:.3f}, above .95 for good from step {when[1]:.0f}, with the gate from step {when[0]:.0f}). "
            "Near-balance accompanies this polarization; it does not bring it about."
        )
    else:
        text += f"Held at 1/3 from the first step, the flock does not polarize ({final:.2f}), so the gate matters."
    return Passage("Balance and polarization", text)


def _arrival(evidence: Evidence) -> Passage:
    led, nobody = evidence["leaders 10%"], evidence["leaders 0%"]
    nearest, end = nearest_of(led), float(np.median(led.metrics.goal_distance[:, -1]))
    median = float(np.median(nearest))
    text = (
        f"With 10% leaders the centre of the flock comes within {median:.1f} m of the goal (median; "
        f"{(nearest < metrics.ARRIVED).sum()} of {len(nearest)} seeds nearer than {metrics.ARRIVED:g} m), without any "
        f"{np.median(nearest_of(nobody)):.1f} m. "
    )
    if end > 2 * median:
        text += (
            f"At the end of the flight it is {end:.1f} m away again: nothing in the model asks for a stop, so "
            "the flock "
            "overshoots and circles. The nearest distance over a fixed time is what can be compared, not the last one. "
        )
    before, all_the_time = led.leader_sd_before.mean(), led.leader_sd.mean()
    others, others_before = led.follower_sd.mean(), led.follower_sd_before.mean()
    text += (
        f"The leaders' weights vary by {all_the_time:.3f} (sd over time), the followers' by {others:.3f}; "
        "until arrival "
        f"only, {before:.3f} and {others_before:.3f}. "
    )
    if before > others_before and all_the_time - others > 1.5 * (before - others_before):
        text += "Much of the difference arises while the flock circles the goal, but not all of it."
    elif before > others_before:
        text += "The difference is there before arrival as well."
    else:
        text += "Before arrival there is no such difference: it arises at the goal."
    return Passage("Arriving, and not stopping", text)


def _temperature(evidence: Evidence) -> Passage:
    parts = parts_of_temperature(evidence)
    cold, middle, hot = TEMPERATURES
    near = {eps: nearest_of(evidence[f"temperature {eps:g}"]) for eps in TEMPERATURES}
    holds = {part: "holds" if held else "does not hold" for part, held in parts.holds.items()}
    lines = "\n".join(f"- {part}: its rule {words}" for part, words in holds.items())
    text = (
        f"The claim has four parts, judged one by one over {len(near[middle])} seeds:\n\n{lines}\n\n"
        "Mean nearest distance to the goal: "
        + ", ".join(f"{d.mean():.1f} m at eps {e:g}" for e, d in near.items())
        + f". Against eps {middle:g}, eps {hot:g} is farther by {parts.worse[hot]:.1f} standard errors of the paired "
        f"seeds, and eps {cold:g} by {parts.worse[cold]:.1f}. "
    )
    if parts.worse[hot] > 2 and parts.worse[cold] <= 2:
        text += (
            "So there is an upper limit, where leaders weigh as flatly as everybody else and nobody leads, but "
            "no sweet "
            "spot: on the low side nothing is lost."
        )
    elif parts.worse[hot] > 2:
        text += "So both sides are worse than the middle: a sweet spot."
    else:
        text += (
            "By these distances the seeds do not tell the temperatures apart: a part that holds by its rule may do so "
            "by chance."
        )
    return Passage("Temperature, part by part", text)


def _followers(evidence: Evidence) -> Passage:
    lines, helped = [], []
    for model, name in MODELS.items():
        figures = []
        for form in FORMS:
            led, alone = evidence[f"{model}, {form}"], evidence[f"{model}, {form}, no leaders"]
            arrive = (nearest_of(led) < metrics.ARRIVED).mean()
            figures.append((float(np.median(nearest_of(led))), float(np.median(nearest_of(alone))), arrive))
        helped += [name] if figures[1][2] > figures[0][2] else []
        lines.append(
            f"| {name} | "
            + " | ".join(f"{led:.1f} m, {arrive:.0%} | {alone:.1f} m" for led, alone, arrive in figures)
            + " |"
        )
    table = "\n".join(
        ("| followers | released: nearest, arrive | without leaders | original: nearest, arrive | without leaders |",
         "|---|---|---|---|---|", *lines)
    )  # fmt: skip
    text = (
        "The text refers to the original papers for the followers' models; the released scripts have forms and "
        "constants of their own. Couzin: in the scripts the zones end at 1, 3 and 12 m, the middle and the outer one "
        "count equally and a boid does not flee from behind; in the original form neighbours count equally, a boid "
        "flees from all sides, and the zones are flown here with 0.5, 6 and 12 m. Cucker and Smale sum over everybody; "
        "the scripts take a mean within 5 m, and halve the initial speed. Vicsek's radius is the unit of length, 5 m "
        "in the scripts.\n\n"
        f"{table}\n\n"
    )
    if helped:
        text += f"In the original form more seeds arrive with {' and '.join(helped)} followers: the form matters."
    else:
        text += "In this run no model is guided more reliably in its original form."
    return Passage("Followers: released constants and original forms", text)


def _text_and_scripts(evidence: Evidence) -> Passage:
    gap = max(one.largest_gap for one in evidence.values())
    text = (
        "Where the text leaves something open, the released scripts were followed, and where they differ, the text "
        "unless said otherwise.\n\n"
        "- Table S1 says 30^2 actions; the scripts keep those within the largest acceleration, 648 cells. So here.\n"
        "- The text updates all boids from the same state; the scripts move them one after another in place. Composed "
        "flocks are flown as in the text, followers of other models as in the scripts (`update` chooses).\n"
        "- Position advances with the old velocity, so the position term of the generative model is the same for every "
        "acceleration: it adds to the energy and cannot move a weight, neither a follower's nor a leader's. "
        "Leaders are "
        "led by the velocity term alone.\n"
        "- Milling starts on a rotating ring in the scripts, and the collision term is given by them alone.\n"
        "- The scripts integrate the flow with `solve_ivp` for every boid and step; here the equilibrium is "
        "solved for, "
        f"and the largest certified gap of all decisions is {gap:.0e}."
    )
    return Passage("The text and the released scripts", text)


def _seeds(settings: FlockStudySettings) -> Passage:
    """How many seeds stand behind each claim, and where that is fewer than in a full run."""
    few = []
    if settings.seeds < RULE_SEEDS:
        few.append(f"the leaderless flock {settings.seeds} (its rule asks for {RULE_SEEDS})")
    if settings.goal_seeds < RULE_SEEDS:
        few.append(f"milling, leaders and followers of other models {settings.goal_seeds} (a full run {RULE_SEEDS})")
    if settings.temperature_seeds < PAPER_SEEDS:
        few.append(f"temperatures {settings.temperature_seeds} (the paper {PAPER_SEEDS})")
    if few:
        text = (
            f"This run used fewer seeds than it might: {'; '.join(few)}. A share of seeds that arrive is coarse then: "
            f"with {settings.goal_seeds} seeds a rule of 80% asks for all of them. Use `--full` for the counts above."
        )
        if settings.seeds >= RULE_SEEDS:
            text += f" The leaderless flock has its {settings.seeds}."
    else:
        text = (
            f"The leaderless flock was flown from {settings.seeds} starts, milling, leaders and followers of other "
            f"models from {settings.goal_seeds}, and each temperature from {settings.temperature_seeds}, as "
            "the rules ask."
        )
    return Passage("How many seeds", text)
