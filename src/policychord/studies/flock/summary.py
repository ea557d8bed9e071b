"""An experiment in a few numbers and sentences, and what to tell somebody who asked for an unusual one."""

import math

import numpy as np

from . import metrics
from .settings import FlockSettings
from .simulate import Experiment

LAST = 50  # steps that count as the end
CROWDED = 400  # boids from which a start as dense as this costs more than it shows
DENSITY = 40 / 5.0**2  # boids per square metre at the paper's start
ORDERED = 0.9  # polarization or milling from which a sentence calls it so
LOST = 0.3  # and below which there is none


def summary(found: Experiment) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation over the seeds, by what was measured."""
    measured = found.metrics
    settings = found.settings
    last = min(LAST, settings.steps)
    values = {
        f"polarization, last {last} steps": measured.polarization[:, -LAST:].mean(axis=1),
        f"milling, last {last} steps": measured.milling[:, -LAST:].mean(axis=1),
        "smallest distance of any two, ever (m)": measured.pair_distance.min(axis=1),
        "mean distance from the centre, end (m)": measured.spread[:, -1],
        "groups, end": measured.groups[:, -1],
        "share of the largest group, end": measured.largest_group[:, -1],
    }
    if settings.leaders:
        distance = measured.goal_distance
        values |= {
            "distance to goal, nearest (m)": distance.min(axis=1),
            "distance to goal, end (m)": distance[:, -1],
            f"came within {metrics.ARRIVED:g} m of the goal": (distance.min(axis=1) < metrics.ARRIVED) * 1.0,
            "leaders' weights, sd over time": found.leader_sd.mean(axis=1),
            "the same until they arrive": found.leader_sd_before.mean(axis=1),
        }
    if found.follower_sd.shape[1]:
        whose = "other boids'" if settings.leaders else "boids'"
        values[f"{whose} weights, sd over time"] = found.follower_sd.mean(axis=1)
        values[f"farthest weight from 1/3, last {last} steps"] = found.imbalance[:, -LAST:].mean(axis=1)
    return {name: (float(np.mean(series)), float(np.std(series))) for name, series in values.items()}


def sentences(found: Experiment) -> list[str]:
    """What the flock did, for somebody who has not met these measures."""
    measured = found.metrics
    together = float(measured.polarization[:, -LAST:].mean())
    around = float(measured.milling[:, -LAST:].mean())
    flies = f"Polarization {together:.2f} (1: all fly the same way, 0: no common way)"
    mills = f"milling {around:.2f} (1: all circle their centre, 0: no common turn)"
    if together >= ORDERED:
        verdict = "the flock flies as one"
    elif around >= ORDERED:
        verdict = "the flock has become a mill"
    elif max(together, around) < LOST:
        verdict = "there is no common motion"
    else:
        verdict = "order is partial"
    lines = [f"{flies}, {mills}: {verdict}."]
    if found.settings.leaders:
        near = measured.goal_distance.min(axis=1) < metrics.ARRIVED
        seeds = "1 seed" if near.size == 1 else f"{near.size} seeds"
        lines.append(
            f"Its centre came within {metrics.ARRIVED:g} m of the goal in {near.sum()} of {seeds}. Nothing tells it to "
            "stop there, so the nearest distance says more than the last."
        )
    return lines


def advice(settings: FlockSettings) -> list[str]:
    """What somebody with such settings might not expect."""
    notes = []
    usual = math.sqrt(settings.boids / DENSITY) / 2
    if settings.boids > CROWDED and settings.start == "square" and settings.start_size < usual / 2:
        notes.append(
            f"{settings.boids} boids started in a square of half width {settings.start_size:g} m, where everybody sees "
            f"everybody: --start-size {usual:.0f} keeps the density of the paper's flock, and is faster."
        )
    return notes
