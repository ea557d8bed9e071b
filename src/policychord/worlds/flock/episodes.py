"""Flocks by number, for sweeps."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...loops import to_dataset
from ..episodes import PLANNED, Episodes, EpisodeSetting, Measured, settings_of
from .figures import overview
from .flights import choose_episodes, measure_flight, simulate_flock
from .measures import LAST_STEPS, Measures, Numbers, at_end, measure
from .settings import ABLATIONS, SCENARIOS, FlockSettings, scenario


def _settings(**named: Any) -> FlockSettings:
    """Settings from names with values; `scenario` (and `ablation`) say what they change."""
    return scenario(named.pop("scenario", "polarization"), named.pop("ablation", None), **named)


LATELY = f"mean of the last {LAST_STEPS} steps, or of all if they are fewer"

# What a sweep measures: by name, what it is, with its unit, and how it follows from the measures of a batch.
METRICS: Mapping[str, tuple[str, Callable[[Measures], Numbers]]] = {
    "polarization": (f"polarization, {LATELY}", lambda measured: at_end(measured.polarization)),
    "milling": (f"milling, {LATELY}", lambda measured: at_end(measured.milling)),
    "goal_distance": ("nearest the centre came to the goal (m)", lambda measured: measured.goal_distance.min(axis=1)),
    "pair_distance": ("smallest distance of any two boids (m)", lambda measured: measured.pair_distance.min(axis=1)),
    "spread": ("mean distance from the centre at the end (m)", lambda measured: measured.spread[:, -1]),
    "groups": ("groups at the end", lambda measured: measured.groups[:, -1]),
    "largest_group": ("share of the largest group at the end", lambda measured: measured.largest_group[:, -1]),
    "imbalance": (f"farthest weight from 1/3, {LATELY}", lambda measured: at_end(measured.imbalance)),
}


def _run(settings: FlockSettings, episodes: Sequence[int]) -> Measured:
    """Let the flocks fly."""
    trace = simulate_flock(settings, episodes)
    measured, weights = measure(settings, trace), np.asarray(trace.weights)
    metrics = {name: number(measured) for name, (_, number) in METRICS.items()}
    metrics["weight_sd"] = weights.std(axis=1).mean(axis=(1, 2)) if weights.shape[2] else np.zeros(len(weights))
    return Measured(
        metrics,
        dataset=lambda places: to_dataset(choose_episodes(trace, places), **settings.model_dump()),
        draw=lambda place: overview(measure_flight(settings, choose_episodes(trace, [place]))),
    )


EPISODES = Episodes(
    settings=_settings,
    known_settings=(
        EpisodeSetting("scenario", "polarization", "the experiment that the other settings change", tuple(SCENARIOS)),
        EpisodeSetting("ablation", None, "what is taken away from it", tuple(ABLATIONS)),
        *settings_of(FlockSettings, without=PLANNED),
    ),
    metrics={name: words for name, (words, _) in METRICS.items()} | {"weight_sd": "sd of weights over time"},
    run=_run,
)
