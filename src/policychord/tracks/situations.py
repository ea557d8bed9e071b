"""The situation of every decision: what an individual would do without company, and what its weights may depend on.

Own terms are vectors in body coordinates that say nothing about where the neighbours are: going on, braking, the change
before, walls, and a push ahead or back that depends on the situation. What they explain is not called social.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .arena import inward
from .decisions import Decisions, turned
from .forces import RATIOS
from .motion import Motion

OWN_FORCES = ("persist", "drag", "wall")  # of those that can be named, the ones that are not social
TOWARDS = ("alignment", "leader", "goal")  # forces that are a direction less the own heading
RESTING = 0.1  # usual speeds below which an animal has no heading to speak of
FARTHEST = 3.0  # standard deviations: a feature beyond counts as there
WALLS = (2, 6, 20)  # powers of the share of the way to the wall
# Each frees how one force depends on distance, with constant weights: that is the force's shape and no re-weighting.
SHAPES = {
    "separation from close ones": "separation", "separation from near ones": "separation",
    "separation by direction": "separation", "separation by direction and distance": "separation",
    "separation half a step later": "separation", "separation from the nearest": "separation",
    "the same by distance": "separation", "the same by distance squared": "separation",
    "alignment with near ones": "alignment", "alignment by angle": "alignment",
    "cohesion by distance": "cohesion", "cohesion by direction": "cohesion", "cohesion by place": "cohesion",
}  # fmt: skip
NEAR = 1.5  # separation radii over which neighbours count for the local density
PAIRS_AT_ONCE = 1_000_000


class Situations(NamedTuple):
    """Rows are decisions; all vectors are in body coordinates and usual changes of velocity."""

    social: tuple[str, ...]
    shapes: tuple[str, ...]
    own_terms: tuple[str, ...]
    features: tuple[str, ...]
    change: Float[np.ndarray, "N 2"]
    force: Float[np.ndarray, "N s 2"]  # the social ones
    shape: Float[np.ndarray, "N e 2"]  # the same forces with other dependence on distance
    of: tuple[int, ...]  # which force each of these belongs to
    own: Float[np.ndarray, "N m 2"]
    before: Float[np.ndarray, "N 2"]  # the change until this decision; zero where it is not known
    speed: Float[np.ndarray, " N"]  # in usual speeds
    feature: Float[np.ndarray, "N f"]  # mean zero, standard deviation one
    wanted: Float[np.ndarray, "N 2"]
    closeness: Float[np.ndarray, "N crowd 2"]


def situations_of(motion: Motion, given: Decisions, arena: tuple[float, ...] = ()) -> Situations:
    """The situations of decisions; `arena` has walls, which are among the own terms."""
    social = tuple(name for name in given.names if name not in OWN_FORCES)
    if not social:
        raise ValueError(f"forces = {', '.join(given.names)}: name one or more that depend on others.")
    speed = np.asarray(given.seen.speed)
    raw, shape = _company(motion, given)
    names = ["distance to neighbours", "density", "place in the group", "speed"]
    columns = [*raw, speed]
    if "predator" in given.names:
        names.append("nearness of the predator")
        columns.append(np.linalg.norm(given.seen.force[:, given.names.index("predator")], axis=1))
    feature = np.stack([_standard(column) for column in columns], axis=1)
    before = _before(motion, given)
    own_terms, own = _own(given, speed, feature, names, before, arena)
    force = np.array(given.seen.force[:, [given.names.index(name) for name in social]])
    for column, name in enumerate(social):
        if name in TOWARDS:  # without the own heading, which would be a drag that a gate could use
            force[:, column, 0] += (force[:, column] != 0).any(axis=1)
    shape |= _profiles(feature, shape)
    if "alignment" in social:  # a turn by the angle to the others' heading, as in Vicsek's model
        ahead, left = force[:, social.index("alignment")].T
        shape["alignment by angle"][:, 1] = np.arctan2(left, ahead)
    used = [name for name in SHAPES if SHAPES[name] in social]
    shapes = np.stack([shape[name] for name in used] or [np.zeros((given.size, 2))], axis=1)[:, : len(used)]
    return Situations(social, tuple(used), own_terms, tuple(names), given.change, force, shapes,
                      tuple(social.index(SHAPES[name]) for name in used), own, before, speed, feature,
                      np.asarray(given.seen.wanted), np.asarray(given.seen.closeness))  # fmt: skip


def _standard(column: np.ndarray) -> np.ndarray:
    known = np.isfinite(column)
    if not known.any() or column[known].std() == 0:
        return np.zeros(len(column))
    values = np.where(known, column, column[known].mean())
    return np.clip((values - values.mean()) / values.std(), -FARTHEST, FARTHEST)


def _own(
    given: Decisions, speed: np.ndarray, feature: np.ndarray, names: list[str], before: np.ndarray,
    arena: tuple[float, ...],
) -> tuple[tuple[str, ...], np.ndarray]:  # fmt: skip
    """Names and vectors of the own terms; the first four are those in which bursts differ from coasting."""
    ahead = np.array([1.0, 0.0])
    lag = 1.0 - np.minimum(speed, 4.0)
    terms: dict[str, np.ndarray] = {
        "drag": np.broadcast_to(-ahead, (given.size, 2)), "persist": lag[:, None] * ahead,
        "persist squared": lag[:, None] ** 2 * ahead, "before": before,
    }  # fmt: skip
    terms |= {f"ahead by {name}": column[:, None] * ahead for name, column in zip(names, feature.T, strict=True)
              if name != "speed"}  # fmt: skip
    if arena:
        share, normal = inward(arena, given.position)
        normal = turned(given.velocity, normal)
        for power in WALLS:
            terms[f"wall {power}"] = share[:, None] ** power * normal
        terms["wall ahead"] = (share ** WALLS[1] * np.clip(-normal[:, 0], 0.0, None))[:, None] * normal
    return tuple(terms), np.stack(list(terms.values()), axis=1)


def _before(motion: Motion, given: Decisions) -> np.ndarray:
    """The change of velocity from one step earlier until each decision, in body coordinates."""
    earlier = np.full((given.size, 2), np.nan)
    known = given.frame >= given.step
    for number, trial in enumerate(motion.trials):
        rows = np.flatnonzero(known & (given.trial == number))
        earlier[rows] = trial.velocity[given.frame[rows] - given.step, given.individual[rows]]
    return np.nan_to_num(turned(given.velocity, given.velocity - earlier) / given.layout.change)


def _company(motion: Motion, given: Decisions) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Features (3, N) of an individual's company, and the shapes of the forces by name.

    ln of the distance to the nearest neighbour, ln(1 + local density), distance to the centre in mean distances.
    """
    answer, shapes = np.full((3, given.size), np.nan), {name: np.zeros((given.size, 2)) for name in SHAPES}
    radius = given.layout.zones.separation
    members = [np.unique(given.individual[given.trial == number]) for number in range(len(motion.trials))]
    for number, frames in _moments(motion, given, members):
        group, trial = members[number], motion.trials[number]
        rows = np.flatnonzero((given.trial == number) & np.isin(given.frame, frames))
        at = np.searchsorted(frames, given.frame[rows]), np.searchsorted(group, given.individual[rows])
        place, velocity = (values[np.ix_(frames, group)] for values in (trial.position, trial.velocity))
        there = np.isfinite(velocity).all(axis=-1)
        place = np.where(there[..., None], place, np.nan)
        offset = place[:, None] - place[:, :, None]  # (frame, i, j, 2): from i to j
        pair = there[:, :, None] & there[:, None] & ~np.eye(len(group), dtype=bool)
        distance = np.where(pair, np.linalg.norm(offset, axis=-1), np.inf)
        toward = np.where(pair[..., None], offset / np.maximum(distance, 1e-9 * radius)[..., None], 0.0)
        speed = np.linalg.norm(velocity, axis=-1, keepdims=True)
        heading = np.where(there[..., None], velocity / np.maximum(speed, 1e-12), 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            close = np.exp(-0.5 * (distance / (NEAR * radius)) ** 2)
            count = np.maximum(there.sum(axis=1), 1)[:, None]
            middle = np.linalg.norm(place - (np.nansum(place, axis=1) / count)[:, None], axis=-1)
            middle = middle / (np.nansum(middle, axis=1) / count[:, 0])[:, None]
            features = np.log(np.maximum(distance.min(axis=-1), 1e-9 * radius)), np.log1p(close.sum(axis=-1)), middle
        answer[:, rows] = [feature[at] for feature in features]
        near = close / np.maximum(close.sum(axis=-1, keepdims=True), 1e-12)
        later = place + 0.5 * given.layout.every * velocity
        apart = np.exp(-0.5 * (distance / (0.5 * radius)) ** 2)
        mean = np.nansum(np.where(pair[..., None], offset, 0.0), axis=2) / np.maximum(count - 1, 1)[..., None]
        within = np.where(distance < radius, close, 0.0)
        vectors = {
            "separation from close ones": -np.einsum("tij,tijk->tik", apart, toward),
            "separation from near ones": -np.einsum("tij,tijk->tik", close, toward),
            "separation from the nearest": -np.take_along_axis(
                toward, distance.argmin(axis=-1)[..., None, None], axis=2)[:, :, 0],
            "alignment with near ones": np.einsum("tij,tjk->tik", near, heading),
            "separation by direction": -_direction(np.einsum("tij,tijk->tik", within, toward)),
            "separation half a step later": _separation_later(later, pair, float(radius)),
            "cohesion by direction": _direction(mean),
            "cohesion by distance": mean / (RATIOS[1] * radius),
        }  # fmt: skip
        for name, vector in vectors.items():
            shapes[name][rows] = turned(given.velocity[rows], np.clip(vector[at], -5.0, 5.0))
    return np.where(np.isfinite(answer), answer, np.nan), shapes


def _separation_later(place: np.ndarray, pair: np.ndarray, radius: float) -> np.ndarray:
    """The direction away from those who will be near if all go straight on."""
    offset = place[:, None] - place[:, :, None]
    distance = np.where(pair, np.linalg.norm(offset, axis=-1), np.inf)
    toward = np.where(pair[..., None], offset / np.maximum(distance, 1e-9 * radius)[..., None], 0.0)
    return -_direction(np.einsum("tij,tijk->tik", np.clip(1 - distance / radius, 0.0, None), toward))


def _direction(vector: np.ndarray) -> np.ndarray:
    return vector / np.maximum(np.linalg.norm(vector, axis=-1, keepdims=True), 1e-12)


def _profiles(feature: np.ndarray, shape: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Directions times powers of distance, which is the first feature, and of the place in the group, the third."""
    distance, place, nearest = feature[:, :1], feature[:, 2:3], shape["separation from the nearest"]
    return {"separation by direction and distance": distance * shape["separation by direction"],
            "the same by distance": distance * nearest, "the same by distance squared": distance**2 * nearest,
            "cohesion by place": place * shape["cohesion by direction"]}  # fmt: skip


def _moments(motion: Motion, given: Decisions, members: list[np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
    """(trial, some frames with decisions): few of a crowd, so that memory does not grow."""
    for number in range(len(motion.trials)):
        frames = np.unique(given.frame[given.trial == number])
        at_once = max(1, PAIRS_AT_ONCE // max(len(members[number]), 1) ** 2)
        for begin in range(0, len(frames), at_once):
            yield number, frames[begin : begin + at_once]
