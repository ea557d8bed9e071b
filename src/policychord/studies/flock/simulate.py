"""`simulate`: a flock from its settings to a trace. `experiment`: to what the claims need, in little memory."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...loops import Labels, Trace, rollout
from ...loops.rollout import episode_numbers, warn_if_not_converged
from . import metrics
from .metrics import Metrics
from .nobody import Nobody
from .parts import FORCES, flock, world
from .sequential import rollout_in_turn
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
    agents: Any = flock(settings, env) if env.agents else Nobody(FORCES)
    if settings.update == "synchronous":
        trace = rollout(agents, env, steps=settings.steps, episodes=which, seed=settings.seed)
        labels = trace.labels._replace(population=True, action_unit="m/s^2")
        return _in_numpy(trace._replace(labels=labels))
    root, numbers = jax.random.key(settings.seed), episode_numbers(which, "seeds")
    recorded = rollout_in_turn(agents, env, root, jnp.asarray(numbers), settings.steps)
    labels = Labels(FORCES, tuple(numbers.tolist()), dict(env.variables), population=True, action_unit="m/s^2")
    trace = Trace(**recorded, log_prob=None, labels=labels)
    warn_if_not_converged(trace)
    return _in_numpy(trace)


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
    return _mapped(lambda array: array[list(places)], trace)._replace(labels=labels)


def _in_numpy(trace: Trace) -> Trace:
    return _mapped(np.asarray, trace)


def _mapped(function: Callable, trace: Trace) -> Trace:
    """The function applied to every array; labels stay."""
    arrays = trace._asdict()
    labels = arrays.pop("labels")
    return Trace(**jax.tree_util.tree_map(function, arrays), labels=labels)
