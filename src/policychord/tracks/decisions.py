"""From motion to decisions: at regular moments, what each individual saw and how it then changed its velocity.

The change is taken in body coordinates and falls into one of the cells of a grid that is fine where changes are usual
and coarse where they are rare.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import brentq

from ..inference import Observations
from ..inference import observations as checked
from ..worlds.flock.neighbours import Zones
from .forces import RATIOS, Force, ForceSettings, Layout, NamedForces, Seen, World, absent_far, forces_of, see
from .motion import Motion, Moved, lengths, nearest_neighbours
from .reading import TrackError, in_order

AXIS = 11  # cells along each axis
FINEST = 0.5  # the smallest cell, in usual changes of velocity
REACHED = 0.995  # of the changes lie within the outermost cells' middles
ENOUGH_TRIALS = 8  # from which trials are held out as wholes
BLOCKS = 20  # stretches of time at least, where there are fewer trials
FRAMES_AT_ONCE = 64
PAIRS_AT_ONCE = 1_000_000  # of individuals in these frames: a crowd is looked at in fewer


class Cells(NamedTuple):
    """The actions: changes of velocity in body coordinates, in usual changes, with the area that each stands for."""

    axis: Float[np.ndarray, " m"]
    points: Float[np.ndarray, "d 2"]
    low: Float[np.ndarray, "d 2"]  # the lower corner of each cell
    wide: Float[np.ndarray, "d 2"]
    log_area: Float[np.ndarray, " d"]


class Decisions(NamedTuple):
    """Decisions with where and when they were made; one row each."""

    names: tuple[str, ...]  # of the forces
    layout: Layout
    cells: Cells
    seen: Seen
    action: Int[np.ndarray, " N"]  # the cell of the change
    change: Float[np.ndarray, "N 2"]  # the change itself, in usual changes
    trial: Int[np.ndarray, " N"]
    frame: Int[np.ndarray, " N"]
    individual: Int[np.ndarray, " N"]  # its place among the ids of its trial
    position: Float[np.ndarray, "N 2"]
    velocity: Float[np.ndarray, "N 2"]
    neighbour: Float[np.ndarray, "N 2"]  # distance and bearing (rad, left positive) of the nearest one; NaN if alone
    block: Int[np.ndarray, " N"]  # what is held out together
    held_out_by: str
    step: int  # frames from one decision to the next
    clipped: float  # share of changes outside of the grid, which count in its outermost cells

    @property
    def size(self) -> int:
        """N."""
        return len(self.action)


def decide(
    motion: Motion,
    settings: ForceSettings | None = None,
    own: Mapping[str, Force] | None = None,
    layout: Layout | None = None,
    cells: Cells | None = None,
) -> Decisions:
    """All decisions of a motion. `own` adds forces; `layout` and `cells` are found from the data unless given."""
    settings = ForceSettings() if settings is None else settings
    forces = forces_of(settings, own)
    step = max(1, round(settings.every * motion.rate))
    members = [members_of(trial, settings) for trial in motion.trials]
    layout = _layout_of(motion, settings, step, members) if layout is None else layout
    parts = [
        _of_trial(number, trial, group, settings, forces, layout, step)
        for number, (trial, group) in enumerate(zip(motion.trials, members, strict=True))
    ]
    if not any(parts):
        raise TrackError(
            f"no individual is followed for {step + 1} frames: ask for decisions closer together (--every)."
        )
    rows = jax.tree_util.tree_map(lambda *columns: np.concatenate(columns), *filter(None, parts))
    cells = cells_of(rows["change"]) if cells is None else cells
    action, clipped = _cell_of(cells, rows["change"])
    block, by = _blocks(rows["trial"], rows["frame"], [len(trial.position) for trial in motion.trials])
    return Decisions(
        tuple(forces), layout, cells, action=action, block=block, held_out_by=by, step=step, clipped=clipped, **rows
    )


def members_of(trial: Moved, settings: ForceSettings) -> np.ndarray:
    """Those who belong to the group: all but predator, leader and those left out, who must be there."""
    marked = {settings.predator, settings.leader, *settings.leave_out}
    return np.array([i for i, name in enumerate(trial.ids) if name not in marked], dtype=int)


def _layout_of(motion: Motion, settings: ForceSettings, step: int, members: list[np.ndarray]) -> Layout:
    """Radii, usual speed and usual change, from the data where the settings do not say."""
    known = {name for trial in motion.trials for name in trial.ids}
    for name in filter(None, (settings.predator, settings.leader, *settings.leave_out)):
        if name not in known:
            some = ", ".join(sorted(known, key=in_order)[:8])
            more = f" and {len(known) - 8} more" if len(known) > 8 else ""
            raise TrackError(f"there is no individual {name!r}: there are {some}{more}.")
    velocity = [trial.velocity[:, group] for trial, group in zip(motion.trials, members, strict=True)]
    speed, change = _median(map(lengths, velocity)), _median(lengths(v[step:] - v[:-step]) for v in velocity)
    if not (speed > 0 and change > 0):
        raise TrackError("more than half of the velocities, or of their changes, are zero: check the frame rate, ask "
                         "for decisions farther apart (--every), or leave some out (--leave-out).")  # fmt: skip
    radii = settings.radii
    if radii is None:
        near = _median(
            nearest_neighbours(places)[0] for trial, group in zip(motion.trials, members, strict=True)
            for places in _some_moments(trial.position[:, group])
        ) or speed * settings.every  # fmt: skip
        radii = (RATIOS[0] * near, RATIOS[1] * near, RATIOS[2] * near)
    reach = 2 * radii[2] if settings.reach is None else settings.reach
    # the median of a Rayleigh distribution is 1.1774 of its scale
    return Layout(Zones(*radii, settings.vision_angle), settings.nearest, speed, change / 1.1774, step / motion.rate,
                  settings.arena, settings.goal, reach)  # fmt: skip


def _median(parts: Iterable[np.ndarray]) -> float:
    values = np.concatenate([np.zeros(0), *parts])
    values = values[np.isfinite(values)]
    return float(np.median(values)) if len(values) else 0.0


def _some_moments(position: np.ndarray) -> Iterator[np.ndarray]:
    """Places of those who are there, at some fifty moments with two or more."""
    for places in position[:: max(1, len(position) // 50)]:
        present = places[np.isfinite(places[:, 0])]
        if len(present) > 1:
            yield present


def cells_of(change: np.ndarray) -> Cells:
    """A grid whose cells grow outwards, x = r sinh(c y)/sinh(c), up to nearly the largest change."""
    half = AXIS // 2
    reach = max(float(np.quantile(np.abs(change), REACHED)), FINEST * half * 1.001)
    # the first cell next to the middle is the smallest: r sinh(c/half)/sinh(c) = FINEST
    curve = brentq(lambda c: reach * np.sinh(c / half) - FINEST * np.sinh(c), 1e-6, 50.0)
    y = np.linspace(-1, 1, AXIS)
    axis = reach * np.sinh(curve * y) / np.sinh(curve)
    # cells reach half of the way to the next one
    last = 1.5 * axis[-1] - 0.5 * axis[-2]
    edges = np.concatenate([[-last], (axis[1:] + axis[:-1]) / 2, [last]])
    points, low, wide = (
        np.stack(np.meshgrid(along, along, indexing="ij"), axis=-1).reshape(-1, 2)
        for along in (axis, edges[:-1], np.diff(edges))
    )
    return Cells(axis, points, low, wide, np.log(wide).sum(axis=1))


def _cell_of(cells: Cells, change: np.ndarray) -> tuple[np.ndarray, float]:
    """The cell of each change, and the share of changes beyond the outermost cells."""
    between = (cells.axis[1:] + cells.axis[:-1]) / 2
    place = np.searchsorted(between, change)
    outside = np.abs(change).max(axis=1) > -cells.low.min()
    return place[:, 0] * len(cells.axis) + place[:, 1], float(outside.mean())


def _blocks(trial: np.ndarray, frame: np.ndarray, frames: list[int]) -> tuple[np.ndarray, str]:
    """Labels of what is held out together, for all individuals alike, since they move together."""
    if len(np.unique(trial)) >= ENOUGH_TRIALS:
        return trial, "trial"
    each = -(-BLOCKS // len(frames))
    return trial * each + frame * each // np.asarray(frames)[trial], "block of time"


def _of_trial(
    number: int, trial: Moved, group: np.ndarray, settings: ForceSettings, forces: dict[str, Force], layout: Layout,
    step: int,
) -> dict[str, Any]:  # fmt: skip
    """Decisions of one trial, by column; nothing if there are none."""
    frames = np.arange(0, len(trial.position) - step, step)
    position, velocity = trial.position[frames][:, group], trial.velocity[frames][:, group]
    later = trial.velocity[frames + step][:, group]
    there = np.isfinite(velocity).all(axis=-1)
    # nobody decides across a gap or a cut
    missing = np.cumsum(~np.isfinite(trial.velocity[:, group]).all(axis=-1), axis=0)
    decides = there & (missing[frames + step] == missing[frames])
    if not decides.any():
        return {}
    # individuals come and go: only those who are there take a place
    places = max(int(there.sum(axis=1).max()), 1)
    order = np.argsort(~there, axis=1, kind="stable")[:, :places]
    p, v = (
        np.take_along_axis(np.where(there[..., None], values, np.nan), order[..., None], axis=1)
        for values in (position, velocity)
    )
    chosen = np.take_along_axis(decides, order, axis=1)
    marks = [marked(trial, frames, name) for name in (settings.predator, settings.leader)]
    seen = _seen(layout, forces, World(absent_far(p), np.nan_to_num(v), *marks), chosen)
    if wrong := [name for name, push in zip(forces, np.moveaxis(np.asarray(seen.force), 1, 0), strict=True)
                 if not np.isfinite(push).all()]:  # fmt: skip
        raise ValueError(
            f"force {wrong[0]!r} is not finite in some situations: return zeros where it has no direction."
        )
    row, column = np.nonzero(chosen)
    who = order[row, column]
    own, change = velocity[row, who], later[row, who] - velocity[row, who]
    return {
        "seen": seen, "trial": np.full(len(row), number), "frame": frames[row], "individual": group[who],
        "position": position[row, who], "velocity": own, "change": turned(own, change) / layout.change,
        "neighbour": _neighbours(position, velocity, there)[row, who],
    }  # fmt: skip


def marked(trial: Moved, frames: np.ndarray, name: str | None) -> np.ndarray:
    """Where the individual of this name is at some frames, far away if it is not there."""
    known = name is not None and name in trial.ids
    return absent_far(trial.position[frames, trial.ids.index(name)] if known else np.full((len(frames), 2), np.nan))


def _seen(layout: Layout, forces: dict[str, Force], worlds: World, chosen: np.ndarray) -> Seen:
    """What all chosen individuals saw, some frames at a time: memory does not grow with the length of a trial."""
    places = worlds.position.shape[1]
    everyone, at_once = jnp.arange(places), max(1, min(FRAMES_AT_ONCE, PAIRS_AT_ONCE // places**2))
    parts = []
    for begin in range(0, len(chosen), at_once):
        here = np.minimum(np.arange(begin, begin + at_once), len(chosen) - 1)  # one program for all
        world = World(*(jnp.asarray(field[here]) for field in worlds))
        rows = chosen[begin : begin + at_once]
        seen = _look_around(layout, tuple(forces.items()), world, everyone)
        parts.append([np.asarray(field)[: len(rows)][rows] for field in seen])
    return Seen(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))


@eqx.filter_jit
def _look_around(layout: Layout, forces: NamedForces, worlds: World, everyone: Any) -> Seen:
    """What everyone sees in each of some worlds; compiled once for all trials with as many places."""
    return jax.vmap(lambda world: jax.vmap(lambda i: see(layout, dict(forces), world, i))(everyone))(worlds)


def turned(heading: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Vectors in body coordinates: (ahead, left)."""
    length = np.linalg.norm(heading, axis=-1, keepdims=True)
    ahead = np.where(length > 0, heading / np.where(length > 0, length, 1.0), [1.0, 0.0])
    left = np.stack([-ahead[:, 1], ahead[:, 0]], axis=-1)
    return np.stack([(vector * ahead).sum(axis=-1), (vector * left).sum(axis=-1)], axis=-1)


def _neighbours(position: np.ndarray, velocity: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Distance and bearing of everybody's nearest neighbour, (frame, id, 2); NaN for who is alone."""
    neighbours = np.full((*there.shape, 2), np.nan)
    for frame in np.flatnonzero(there.sum(axis=1) > 1):
        places = position[frame, there[frame]]
        distance, nearest = nearest_neighbours(places)
        ahead, left = turned(velocity[frame, there[frame]], places[nearest] - places).T
        neighbours[frame, there[frame]] = np.stack([distance, np.arctan2(left, ahead)], axis=-1)
    return neighbours


def rows_of(given: Decisions, rows: np.ndarray) -> Decisions:
    """Some of the decisions."""
    fields = ("action", "change", "trial", "frame", "individual", "position", "velocity", "neighbour", "block")
    return given._replace(seen=Seen(*(field[rows] for field in given.seen)),
                          **{name: getattr(given, name)[rows] for name in fields})  # fmt: skip


def of_trial(given: Decisions, trial: int) -> Decisions:
    """The decisions of one trial alone, held out by blocks of its time."""
    part = rows_of(given, given.trial == trial)
    length = int(part.frame.max()) + 1 if part.size else 1
    block, by = _blocks(np.zeros(part.size, int), part.frame, [length])
    return part._replace(block=block, held_out_by=by)


def thin(given: Decisions, most: int) -> Decisions:
    """At most so many decisions: whole moments, evenly spread in time, with all individuals that decided then."""
    if given.size <= most:
        return given
    moments = np.unique(np.stack([given.trial, given.frame], axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    count = int(moments.max()) + 1
    stays = max(1, int(count * most / given.size))
    chosen = np.zeros(count, bool)
    chosen[np.linspace(0, count - 1, stays).round().astype(int)] = True
    return rows_of(given, chosen[moments])


def hold(given: Decisions, weights: np.ndarray, trial: Moved, number: int) -> Float[np.ndarray, "frame id n"]:
    """Weights of everybody in a trial at every frame: those of the last decision, NaN before the first."""
    rows = given.trial == number
    held = np.full((len(trial.position), len(trial.ids), weights.shape[1]), np.nan)
    held[given.frame[rows], given.individual[rows]] = weights[rows]
    for frame in range(1, len(held)):
        held[frame] = np.where(np.isfinite(held[frame]), held[frame], held[frame - 1])
    return held


def to_observations(given: Decisions) -> Observations:
    """Decisions as `policychord.fit` takes them: one subject, and blocks for what is held out together."""
    return checked(given.seen, given.action, k=np.zeros(given.size, int), block=given.block)
