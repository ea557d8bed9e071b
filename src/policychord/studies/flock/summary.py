"""An experiment in a few numbers, and what to tell somebody who asked for an unusual one."""

import math

import numpy as np

from . import metrics
from .settings import FlockSettings
from .simulate import Experiment

LAST = 50  # steps that count as the end
CROWDED = 400  # boids from which a start as dense as this costs more than it shows
DENSITY = 40 / 5.0**2  # boids per square metre at the paper's start


def summary(found: Experiment) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation over the seeds, by what was measured."""
    measured = found.metrics
    settings = found.settings
    values = {
        f"polarization, last {LAST} steps": measured.polarization[:, -LAST:].mean(axis=1),
        f"milling, last {LAST} steps": measured.milling[:, -LAST:].mean(axis=1),
        "smallest distance of a pair (m)": measured.pair_distance.min(axis=1),
        "mean distance to the centre, end (m)": measured.spread[:, -1],
        "groups, end": measured.groups[:, -1],
        "share of the largest group, end": measured.largest_group[:, -1],
    }
    if settings.leaders:
        distance = measured.goal_distance
        values |= {
            "distance to goal, end (m)": distance[:, -1],
            "distance to goal, nearest (m)": distance.min(axis=1),
            f"reached the goal (nearer than {metrics.ARRIVED:g} m)": (distance.min(axis=1) < metrics.ARRIVED) * 1.0,
            "temporal sd of weights, leaders": found.leader_sd.mean(axis=1),
            "the same before arrival": found.leader_sd_before.mean(axis=1),
        }
    if found.follower_sd.shape[1]:
        values["temporal sd of weights, other boids"] = found.follower_sd.mean(axis=1)
        values[f"max|w - 1/3|, last {LAST} steps"] = found.imbalance[:, -LAST:].mean(axis=1)
    return {name: (float(np.mean(series)), float(np.std(series))) for name, series in values.items()}


def advice(settings: FlockSettings) -> list[str]:
    """What somebody with such settings might not expect."""
    notes = []
    usual = math.sqrt(settings.boids / DENSITY) / 2
    if settings.boids > CROWDED and settings.start == "square" and settings.start_size < usual / 2:
        notes.append(
            f"{settings.boids} boids started in a square of half width {settings.start_size:g}, where everybody sees "
            f"everybody: --start-size {usual:.0f} keeps the density of the paper's flock, and is faster."
        )
    return notes
