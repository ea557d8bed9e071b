"""Flocks by number, for sweeps."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...loops import to_dataset
from ..episodes import PLANNED, Episodes, Measured, Setting, settings_of
from .experiments import choose_episodes, measure_flight, simulate
from .figures import overview
from .measures import LAST, at_end, measure
from .settings import ABLATIONS, SCENARIOS, FlockSettings, scenario


def settings(**named: Any) -> FlockSettings:
    """Settings from names with values; `scenario` (and `ablation`) say what they change."""
    return scenario(named.pop("scenario", "polarization"), named.pop("ablation", None), **named)


def run(told: FlockSettings, episodes: Sequence[int]) -> Measured:
    """Let the flocks fly."""
    trace = simulate(told, episodes)
    measured = measure(told, trace)

    def dataset(places: Sequence[int]) -> Any:
        return to_dataset(choose_episodes(trace, places), **told.model_dump())

    weights = np.asarray(trace.weights)
    return Measured(
        {
            "polarization": at_end(measured.polarization),
            "milling": at_end(measured.milling),
            "goal_distance": measured.goal_distance.min(axis=1),
            "pair_distance": measured.pair_distance.min(axis=1),
            "spread": measured.spread[:, -1],
            "groups": measured.groups[:, -1],
            "largest_group": measured.largest_group[:, -1],
            "imbalance": at_end(measured.imbalance),
            "weight_sd": weights.std(axis=1).mean(axis=(1, 2)) if weights.shape[2] else np.zeros(len(weights)),
        },
        dataset,
        draw=lambda place: overview(measure_flight(told, choose_episodes(trace, [place]))),
    )


EPISODES = Episodes(
    settings=settings,
    told=(
        Setting("scenario", "polarization", "the experiment that the other settings change", tuple(SCENARIOS)),
        Setting("ablation", None, "what is taken away from it", tuple(ABLATIONS)),
        *settings_of(FlockSettings, without=PLANNED),
    ),
    metrics={
        "polarization": f"polarization, mean of the last {LAST} steps",
        "milling": f"milling, mean of the last {LAST} steps",
        "goal_distance": "nearest the centre came to the goal (m)",
        "pair_distance": "smallest distance of any two boids (m)",
        "spread": "mean distance from the centre at the end (m)",
        "groups": "groups at the end",
        "largest_group": "share of the largest group at the end",
        "imbalance": f"farthest weight from 1/3, mean of the last {LAST} steps",
        "weight_sd": "sd of weights over time",
    },
    run=run,
)
