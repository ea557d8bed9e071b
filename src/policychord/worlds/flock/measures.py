"""What is measured on a flock. Arrays in, arrays out; leading axes (episode, time), then (boid, axis)."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from ..._types import ArrayLike
from ...loops import Trace
from .settings import FlockSettings

Moving = Float[np.ndarray, "episode time boid 2"]
Series = Float[np.ndarray, "episode time"]
Weights = Float[np.ndarray, "episode time agent n"]
Numbers = np.ndarray[Any, np.dtype[Any]]

ARRIVED = 3.0  # m: nearer than this the flock counts as having reached the goal
LAST_STEPS = 50  # steps that count as the end
BALANCED = 0.05


class Measures(NamedTuple):
    """Time series of every episode, and how its weights vary."""

    polarization: Series
    milling: Series
    goal_distance: Series
    pair_distance: Series  # the smallest
    spread: Series  # mean distance to the centre
    groups: Series  # counted on every `every`-th step only
    largest_group: Series  # share of the boids in it, on the same steps
    linked: Series  # the same share where boids are linked within the alignment radius, on the same steps
    every: int
    imbalance: Series
    leader_imbalance: Series  # of the leaders alone, zero if there are none
    follower_imbalance: Series
    leader_sd: Numbers  # temporal sd of the weights of each (episode, leader)
    follower_sd: Numbers
    leader_sd_before: Numbers  # the same, before the goal is reached
    follower_sd_before: Numbers
    leader_weights: Weights  # of the first leader
    follower_weights: Weights  # of the first follower
    largest_gap: float  # the worst certificate
    raised: Numbers  # (episode, 2): boids too close to another, and those whose separation the collision term raises
    balanced: Series  # share of boids of which every weight is within BALANCED of 1/n


def measure(settings: FlockSettings, trace: Trace, every: int = 20) -> Measures:
    """All measures of a flock but `raised`; boids within the cohesion radius of each other belong to one group."""
    (position, velocity), weights, leaders = trace.state, np.asarray(trace.weights), settings.leaders
    groups, largest = _group_series(position[:, ::every], settings.cohesion_radius)
    _, linked = _group_series(position[:, ::every], settings.alignment_radius)
    distance = goal_distance(position, settings.goal)
    sd, before = _weight_sd(weights), _weight_sd(weights, arrivals(distance))
    return Measures(
        polarization(velocity), milling(position, velocity), distance, _pair_distance(position),
        flock_spread(position), groups, largest, linked, every,
        _imbalance(weights), _imbalance(weights[:, :, :leaders]), _imbalance(weights[:, :, leaders:]),
        sd[:, :leaders], sd[:, leaders:], before[:, :leaders], before[:, leaders:],
        weights[:, :, :leaders][:, :, :1], weights[:, :, leaders:][:, :, :1], float(trace.gap.max(initial=0.0)),
        np.zeros((len(weights), 2)), (_off_balance(weights) <= BALANCED).mean(axis=2),
    )  # fmt: skip


def polarization(velocity: Moving) -> Series:
    """| mean of v/|v| |."""
    return np.linalg.norm(_unit(velocity).mean(axis=2), axis=-1)


def milling(position: Moving, velocity: Moving) -> Series:
    """| mean of the cross product of the directions from the centre and of motion |."""
    outward, heading = _unit(_from_centre(position)), _unit(velocity)
    return np.abs((outward[..., 0] * heading[..., 1] - outward[..., 1] * heading[..., 0]).mean(axis=2))


def goal_distance(position: Moving, goal: ArrayLike) -> Series:
    """Distance of the flock's centre from the goal."""
    return np.linalg.norm(position.mean(axis=2) - np.asarray(goal), axis=-1)


def flock_spread(position: Moving) -> Series:
    """Mean distance of the boids from their centre."""
    return np.linalg.norm(_from_centre(position), axis=-1).mean(axis=2)


def _pair_distance(position: Moving) -> Series:
    """The distance of the two boids that are closest."""
    episodes, times, boids, _ = position.shape
    if boids < 2:
        return np.full((episodes, times), np.inf)
    frames = position.reshape(-1, boids, 2)
    least = [cKDTree(frame).query(frame, k=2)[0][:, 1].min() for frame in frames]
    return np.asarray(least).reshape(episodes, times)


def _group_series(position: Moving, reach: float) -> tuple[Series, Series]:
    """(number of groups, share of the largest): boids within reach of each other, directly or through others."""
    boids = position.shape[2]
    sizes = [_group_sizes(frame, reach) for frame in position.reshape(-1, boids, 2)]
    count, largest = np.array([(len(groups), groups.max() / boids) for groups in sizes]).T
    return count.reshape(position.shape[:2]), largest.reshape(position.shape[:2])


def _group_sizes(frame: Numbers, reach: float) -> Numbers:
    boids = len(frame)
    centre = frame.mean(axis=0)
    if ((frame - centre) ** 2).sum(axis=-1).max() <= (reach / 2) ** 2:
        return np.array([boids])  # no two boids are farther apart than reach
    pairs = cKDTree(frame).query_pairs(reach, output_type="ndarray")
    links = coo_matrix((np.ones(len(pairs)), pairs.T), shape=(boids, boids))
    return np.bincount(connected_components(links, directed=False)[1])


def arrivals(distance: Series) -> Numbers:
    """The step at which each episode first gets nearer than ARRIVED, or its length if it never does."""
    there = distance < ARRIVED
    return np.where(there.any(axis=1), there.argmax(axis=1), distance.shape[1])


def _weight_sd(weights: Weights, until: Numbers | None = None) -> Numbers:
    """Standard deviation of the weights over time, up to a step of each episode, averaged over primitives."""
    ends = np.full(len(weights), weights.shape[1]) if until is None else until
    return np.stack(
        [series[: max(end, 2)].std(axis=0).mean(axis=-1) for series, end in zip(weights, ends, strict=True)]
    )


def _imbalance(weights: Weights) -> Series:
    """max_a |w_a - 1/n|, averaged over boids; zero if there are none."""
    if weights.shape[2] == 0:
        return np.zeros(weights.shape[:2])
    return _off_balance(weights).mean(axis=2)


def _off_balance(weights: Weights) -> Float[np.ndarray, "episode time agent"]:
    return np.abs(weights - 1.0 / weights.shape[-1]).max(axis=-1)


def _from_centre(position: Moving) -> Moving:
    return position - position.mean(axis=2, keepdims=True)


def _unit(vectors: Moving) -> Moving:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(length > 0, length, 1.0)


def at_end(series: Series) -> Numbers:
    """The mean of each episode over its last steps."""
    return series[:, -LAST_STEPS:].mean(axis=1)
