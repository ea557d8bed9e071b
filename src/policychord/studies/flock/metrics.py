"""What is measured on a flock. Arrays in, arrays out; leading axes (episode, time), then (boid, axis)."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

Moving = Float[np.ndarray, "episode time boid 2"]
Series = Float[np.ndarray, "episode time"]

ARRIVED = 3.0  # m: nearer than this the flock counts as having reached the goal
FRAMES_AT_ONCE = 200  # bounds the memory of all pair distances


class Metrics(NamedTuple):
    """Time series of every episode; groups are counted on every `every`-th step only."""

    polarization: Series
    milling: Series
    goal_distance: Series
    pair_distance: Series  # the smallest
    spread: Series  # mean distance to the centre
    groups: Series
    largest_group: Series  # share of the boids in it
    every: int


def measure(position: Moving, velocity: Moving, goal, reach: float, every: int = 20) -> Metrics:
    """All metrics of a flock; boids within `reach` of each other belong to one group."""
    groups, largest = group_series(position[:, ::every], reach)
    return Metrics(
        polarization(velocity), milling(position, velocity), goal_distance(position, goal), pair_distance(position),
        spread(position), groups, largest, every,
    )  # fmt: skip


def polarization(velocity: Moving) -> Series:
    """| mean of v/|v| |."""
    return np.linalg.norm(_unit(velocity).mean(axis=2), axis=-1)


def milling(position: Moving, velocity: Moving) -> Series:
    """| mean of the cross product of the directions from the centre and of motion |."""
    outward, heading = _unit(_from_centre(position)), _unit(velocity)
    return np.abs((outward[..., 0] * heading[..., 1] - outward[..., 1] * heading[..., 0]).mean(axis=2))


def goal_distance(position: Moving, goal) -> Series:
    """Distance of the flock's centre from the goal."""
    return np.linalg.norm(position.mean(axis=2) - np.asarray(goal), axis=-1)


def spread(position: Moving) -> Series:
    """Mean distance of the boids from their centre."""
    return np.linalg.norm(_from_centre(position), axis=-1).mean(axis=2)


def pair_distance(position: Moving) -> Series:
    """The distance of the two boids that are closest."""
    episodes, times, boids, _ = position.shape
    if boids < 2:
        return np.full((episodes, times), np.inf)
    frames = position.reshape(-1, boids, 2)
    if boids > 500:
        least = [cKDTree(frame).query(frame, k=2)[0][:, 1].min() for frame in frames]
        return np.asarray(least).reshape(episodes, times)
    first, second = np.triu_indices(boids, 1)
    least = []
    for low in range(0, len(frames), FRAMES_AT_ONCE):
        some = frames[low : low + FRAMES_AT_ONCE]
        least.append(((some[:, first] - some[:, second]) ** 2).sum(axis=-1).min(axis=-1))
    return np.sqrt(np.concatenate(least)).reshape(episodes, times)


def group_series(position: Moving, reach: float) -> tuple[Series, Series]:
    """(number of groups, share of the largest): boids within reach of each other, directly or through others."""
    boids = position.shape[2]
    found = [_groups(frame, reach) for frame in position.reshape(-1, boids, 2)]
    shape = position.shape[:2]
    return (
        np.array([float(len(sizes)) for sizes in found]).reshape(shape),
        np.array([sizes.max() / boids for sizes in found]).reshape(shape),
    )


def _groups(frame: np.ndarray, reach: float) -> np.ndarray:
    """Sizes of the groups."""
    boids = len(frame)
    centre = frame.mean(axis=0)
    if ((frame - centre) ** 2).sum(axis=-1).max() <= (reach / 2) ** 2:
        return np.array([boids])  # nobody is farther than reach from anybody
    pairs = cKDTree(frame).query_pairs(reach, output_type="ndarray")
    links = coo_matrix((np.ones(len(pairs)), pairs.T), shape=(boids, boids))
    return np.bincount(connected_components(links, directed=False)[1])


def arrivals(distance: Series) -> np.ndarray:
    """The step at which each episode first gets nearer than ARRIVED, or its length if it never does."""
    there = distance < ARRIVED
    return np.where(there.any(axis=1), there.argmax(axis=1), distance.shape[1])


def weight_sd(weights: Float[np.ndarray, "episode time boid n"], until=None) -> Float[np.ndarray, "episode boid"]:
    """Standard deviation of the weights over time, up to a step of each episode, averaged over primitives."""
    ends = np.full(len(weights), weights.shape[1]) if until is None else until
    return np.stack([one[: max(end, 2)].std(axis=0).mean(axis=-1) for one, end in zip(weights, ends, strict=True)])


def imbalance(weights: Float[np.ndarray, "episode time boid n"]) -> Series:
    """max_a |w_a - 1/n|, averaged over boids."""
    return np.abs(weights - 1.0 / weights.shape[-1]).max(axis=-1).mean(axis=2)


def _from_centre(position: Moving) -> Moving:
    return position - position.mean(axis=2, keepdims=True)


def _unit(vectors: Moving) -> Moving:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(length > 0, length, 1.0)
