"""`simulate`: a flock from its settings to a trace. `experiment`: to what the claims need, in little memory."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from ...envs.flock import Flock
from ...loops import Trace, rollout
from ...population import Passive, Population
from . import metrics
from .metrics import Metrics
from .parts import FORCES, flock, world
from .settings import FlockSettings


class Experiment(NamedTuple):
    """What is left of an experiment: series of every seed, and one seed in full."""

    settings: FlockSettings
    metrics: Metrics
    imbalance: np.ndarray  # (episode, time)
    leader_sd: np.ndarray  # temporal sd of weights of each (episode, leader)
    follower_sd: np.ndarray
    leader_sd_before: np.ndarray  # the same, before the goal is reached
    follower_sd_before: np.ndarray
    leader_weights: np.ndarray  # of the first leader, (episode, time, primitive)
    follower_weights: np.ndarray
    largest_gap: float  # the worst certificate
    shown: Trace  # the first episode


def simulate(settings: FlockSettings, episodes: Sequence[int] | None = None) -> Trace:
    """Let the flock fly: all seeds, or the episodes that are named, at once; every weight with its certificate."""
    which = settings.seeds if episodes is None else episodes
    env = world(settings)
    in_turn = settings.update == "sequential"
    trace = rollout(
        agents_in(settings, env), env, steps=settings.steps, episodes=which, seed=settings.seed, in_turn=in_turn
    )
    labels = trace.labels._replace(action_unit="m/s^2")
    return jax.tree_util.tree_map(np.asarray, trace)._replace(labels=labels)


def agents_in(settings: FlockSettings, env: Flock) -> Population | Passive:
    """Those who decide in this world, if anybody does."""
    return flock(settings, env) if env.agents else Passive(FORCES, (2,))


def experiment(settings: FlockSettings) -> Experiment:
    """Simulate, measure, and keep what claims and figures need."""
    return summarise(settings, simulate(settings))


def summarise(settings: FlockSettings, trace: Trace) -> Experiment:
    """The measurements on a trace."""
    position, velocity = trace.state
    measured = metrics.measure(position, velocity, settings.goal, settings.cohesion_radius)
    arrived = metrics.arrivals(measured.goal_distance)
    leaders = settings.leaders
    weights = np.asarray(trace.weights)
    spread, before = metrics.weight_sd(weights), metrics.weight_sd(weights, arrived)
    return Experiment(
        settings, measured, metrics.imbalance(weights) if weights.shape[2] else np.zeros(weights.shape[:2]),
        spread[:, :leaders], spread[:, leaders:], before[:, :leaders], before[:, leaders:],
        weights[:, :, :leaders][:, :, :1], weights[:, :, leaders:][:, :, :1],
        float(trace.gap.max(initial=0.0)), first_episode(trace),
    )  # fmt: skip


def first_episode(trace: Trace) -> Trace:
    return chosen_episodes(trace, [0])


def chosen_episodes(trace: Trace, places: Sequence[int]) -> Trace:
    """The trace of a few episodes, without holding on to the others."""
    labels = trace.labels._replace(episodes=tuple(trace.labels.episodes[place] for place in places))
    return jax.tree_util.tree_map(lambda array: array[list(places)], trace)._replace(labels=labels)
