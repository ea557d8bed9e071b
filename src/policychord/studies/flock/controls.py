"""Controls of the flock study: the same flocks without what is said to matter."""

import numpy as np

from ..study import Control, Evidence
from . import metrics
from .claims import ORDERED, nearest_of, ordered_from
from .experiments import FORMS, MODELS
from .settings import FlockStudySettings
from .simulate import Experiment

MILLS = 0.8  # milling order parameter from which a flock counts as a mill


def controls(settings: FlockStudySettings, evidence: Evidence) -> list[Control]:
    """Each with an answer that follows its figures."""
    return [_fixed_weights(evidence), _no_leaders(evidence), _no_collisions(evidence), _random_start(evidence),
            *(_unled(evidence, model) for model in MODELS)]  # fmt: skip


def _fixed_weights(evidence: Evidence) -> Control:
    gated, fixed = evidence["polarization"], evidence["polarization, fixed weights"]
    final = float(np.median(fixed.metrics.polarization[:, -1]))
    when = {name: float(np.median(ordered_from(found))) for name, found in (("gated", gated), ("fixed", fixed))}
    if final <= ORDERED:
        answer = "No: without the gate the flock does not polarize, so the gate matters."
    elif when["fixed"] > when["gated"]:
        answer = (
            "Yes, more slowly. So balanced weights are not what makes this flock polarize: any mixture that contains "
            "alignment does, and the gate shortens the way."
        )
    else:
        answer = "Yes, and no more slowly: the gate is not what makes this flock polarize."
    return Control(
        "Fixed weights",
        "Does a flock polarize if no gate weighs anything and all weights stay at 1/3?",
        {
            "polarization at the end, fixed": final,
            "polarization at the end, gated": float(np.median(gated.metrics.polarization[:, -1])),
            f"above {ORDERED} for good from step, fixed": when["fixed"],
            f"above {ORDERED} for good from step, gated": when["gated"],
            "seeds, fixed and gated": f"{len(fixed.imbalance)} and {len(gated.imbalance)}",
        },
        answer,
    )


def _no_leaders(evidence: Evidence) -> Control:
    nobody, led = evidence["leaders 0%"], evidence["leaders 10%"]
    alone, near = float(np.median(nearest_of(nobody))), float(np.median(nearest_of(led)))
    arrived = int((nearest_of(nobody) < metrics.ARRIVED).sum())
    if arrived == 0 and near < alone / 5:
        answer = "No. The goal is reached because some know it, and not because flocks pass by."
    elif arrived == 0:
        answer = "No, but the flock with leaders does not come much nearer either."
    else:
        answer = f"In {arrived} of {len(nearest_of(nobody))} seeds, so arriving alone proves little."
    return Control(
        "No leaders",
        "Would a flock that nobody leads come to the goal by chance?",
        {
            "median nearest distance, no leaders (m)": alone,
            "median nearest distance, 10% leaders (m)": near,
            "seeds that arrive, no leaders": f"{arrived} of {len(nearest_of(nobody))}",
        },
        answer,
    )


def _no_collisions(evidence: Evidence) -> Control:
    with_term, without = (mills(evidence[name]) for name in ("milling", "milling, no collision term"))
    order = float(np.median(evidence["milling, no collision term"].metrics.polarization[:, -50:]))
    if np.median(without) >= MILLS:
        answer = "Yes, so the term is not needed for it."
    elif np.median(with_term) < MILLS:
        answer = "No, and with the term it does not mill either."
    elif order > 0.9:
        answer = "No: the ring opens and becomes a polarized flock. The term is needed to keep the mill turning."
    else:
        answer = "No. The term is needed to keep the mill turning."
    return Control(
        "No collision term",
        "Does the ring keep turning without the collision term?",
        {
            "median m, last 50 steps, without the term": float(np.median(without)),
            "median m, last 50 steps, with it": float(np.median(with_term)),
            "polarization without it": order,
        },
        answer,
    )


def _random_start(evidence: Evidence) -> Control:
    ring, scattered = (mills(evidence[name]) for name in ("milling", "milling, random start"))
    count, among = int((scattered > MILLS).sum()), len(scattered)
    if count == 0:
        answer = "No. The term sustains and sharpens a rotation that is there at the start; it does not create one."
    elif count < among:
        answer = "In some seeds. A rotating start is what makes milling reliable."
    else:
        answer = "Yes, in every seed of this run."
    return Control(
        "A random start",
        "Does a mill form from boids that begin at random, with the collision term?",
        {
            f"seeds with m > {MILLS:g}, random start": f"{count} of {among}",
            "largest m, random start": float(scattered.max()),
            f"seeds with m > {MILLS:g}, rotating ring": f"{(ring > MILLS).sum()} of {len(ring)}",
        },
        answer,
    )


def _unled(evidence: Evidence, model: str) -> Control:
    near = {
        form: tuple(float(np.median(nearest_of(evidence[f"{model}, {form}{alone}"]))) for alone in ("", ", no leaders"))
        for form in FORMS
    }
    guided = [form for form, (led, alone) in near.items() if led <= alone / 2]
    if len(guided) == len(FORMS):
        answer = "The leaders at least halve the distance in both forms."
    elif guided:
        answer = f"The leaders at least halve the distance in the {guided[0]} form only."
    else:
        answer = "The leaders halve the distance in neither form."
    measured: dict[str, float] = {}
    for form, (led, alone) in near.items():
        measured |= {f"{form}, 6 leaders: median nearest (m)": led, f"{form}, none (m)": alone}
    return Control(
        f"{MODELS[model]} followers without leaders",
        "How near does the same flock come if nobody knows the goal?",
        measured,
        answer,
    )


def mills(found: Experiment) -> np.ndarray:
    """The milling order parameter of each seed over the last 50 steps."""
    return found.metrics.milling[:, -50:].mean(axis=1)
