"""From motion to decisions: at regular moments, what each individual saw and how it then changed its velocity.

The change is taken in body coordinates and falls into one of the cells of a grid that is fine where changes are usual
and coarse where they are rare.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import brentq
from scipy.spatial import cKDTree

from ..inference import Observations
from ..inference import observations as checked
from ..worlds.flock.neighbours import Zones
from .forces import RATIOS, Force, ForceSettings, Layout, NamedForces, Seen, World, absent_far, as_pairs, forces_of, see
from .motion import Motion, Moved
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
    members = [members_of(one, settings) for one in motion.trials]
    layout = _layout_of(motion, settings, step, members) if layout is None else layout
    parts = []
    for number, (one, group) in enumerate(zip(motion.trials, members, strict=True)):
        if (rows := _of_trial(one, group, settings, forces, layout, step)) is not None:
            parts.append({**rows, "trial": np.full(len(rows["frame"]), number)})
    if not parts:
        raise TrackError(
            f"no individual is followed for {step + 1} frames: ask for decisions closer together (--every)."
        )
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0] if name != "seen"}
    seen = Seen(*(np.concatenate(fields) for fields in zip(*(part["seen"] for part in parts), strict=True)))
    cells = cells_of(rows["change"]) if cells is None else cells
    action, clipped = _cell_of(cells, rows["change"])
    block, by = _blocks(rows["trial"], rows["frame"], [len(one.position) for one in motion.trials])
    return Decisions(
        tuple(forces), layout, cells, seen, action, rows["change"], rows["trial"], rows["frame"], rows["individual"],
        rows["position"], rows["velocity"], rows["neighbour"], block, by, step, clipped,
    )  # fmt: skip


def members_of(one: Moved, settings: ForceSettings) -> np.ndarray:
    """Those who belong to the group: all but predator, leader and those left out, who must be there."""
    marked = {settings.predator, settings.leader, *settings.leave_out} - {None}
    return np.array([i for i, name in enumerate(one.ids) if name not in marked], dtype=int)


def _layout_of(motion: Motion, settings: ForceSettings, step: int, members: list[np.ndarray]) -> Layout:
    """Radii, usual speed and usual change, from the data where the settings do not say."""
    known = {name for one in motion.trials for name in one.ids}
    for name in filter(None, (settings.predator, settings.leader, *settings.leave_out)):
        if name not in known:
            some = ", ".join(sorted(known, key=in_order)[:8])
            more = f" and {len(known) - 8} more" if len(known) > 8 else ""
            raise TrackError(f"there is no individual {name!r}: there are {some}{more}.")
    velocity = [one.velocity[:, group] for one, group in zip(motion.trials, members, strict=True)]
    speed = _median(np.concatenate([np.linalg.norm(v, axis=-1).ravel() for v in velocity]))
    change = _median(np.concatenate([np.linalg.norm(v[step:] - v[:-step], axis=-1).ravel() for v in velocity]))
    if not (speed > 0 and change > 0):
        raise TrackError("more than half of the velocities, or of their changes, are zero: check the frame rate, ask "
                         "for decisions farther apart (--every), or leave some out (--leave-out).")  # fmt: skip
    radii = settings.radii
    if radii is None:
        near = _median(_neighbour_distances(motion, members))
        near = near if near > 0 else speed * settings.every
        radii = (RATIOS[0] * near, RATIOS[1] * near, RATIOS[2] * near)
    reach = 2 * radii[2] if settings.reach is None else settings.reach
    # the median of a Rayleigh distribution is 1.1774 of its scale
    return Layout(Zones(*radii, settings.vision_angle), settings.nearest, speed, change / 1.1774, step / motion.rate,
                  settings.arena, settings.goal, reach)  # fmt: skip


def _median(values: np.ndarray) -> float:
    values = values[np.isfinite(values)]
    return float(np.median(values)) if len(values) else 0.0


def _neighbour_distances(motion: Motion, members: list[np.ndarray]) -> np.ndarray:
    found = [np.zeros(0)]
    for one, group in zip(motion.trials, members, strict=True):
        for frame in range(0, len(one.position), max(1, len(one.position) // 50)):
            places = one.position[frame, group]
            places = places[np.isfinite(places[:, 0])]
            if len(places) > 1:
                found.append(cKDTree(places).query(places, k=2)[0][:, 1])
    return np.concatenate(found)


def cells_of(change: np.ndarray) -> Cells:
    """A grid whose cells grow outwards, x = r sinh(c y)/sinh(c), up to nearly the largest change."""
    half = AXIS // 2
    reach = max(float(np.quantile(np.abs(change), REACHED)), FINEST * half * 1.001)
    # the first cell beside the middle is the smallest: r sinh(c/half)/sinh(c) = FINEST
    curve = brentq(lambda c: reach * np.sinh(c / half) - FINEST * np.sinh(c), 1e-6, 50.0)
    y = np.linspace(-1, 1, AXIS)
    axis = reach * np.sinh(curve * y) / np.sinh(curve)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    width = np.diff(_edges(axis))
    return Cells(axis, points, np.log(np.outer(width, width)).ravel())


def _edges(axis: np.ndarray) -> np.ndarray:
    """Cells reach half of the way to the next one."""
    return np.concatenate(
        [[1.5 * axis[0] - 0.5 * axis[1]], (axis[1:] + axis[:-1]) / 2, [1.5 * axis[-1] - 0.5 * axis[-2]]]
    )


def corners_of(cells: Cells) -> tuple[np.ndarray, np.ndarray]:
    """(lower corner, widths) of every cell, (d, 2) each."""
    edges = _edges(cells.axis)
    low, wide = (np.stack(np.meshgrid(a, a, indexing="ij"), axis=-1) for a in (edges[:-1], np.diff(edges)))
    return low.reshape(-1, 2), wide.reshape(-1, 2)


def _cell_of(cells: Cells, change: np.ndarray) -> tuple[np.ndarray, float]:
    """The cell of each change, and the share of changes beyond the outermost cells."""
    between = (cells.axis[1:] + cells.axis[:-1]) / 2
    place = np.searchsorted(between, change)
    outside = np.abs(change).max(axis=1) > 1.5 * cells.axis[-1] - 0.5 * cells.axis[-2]
    return place[:, 0] * len(cells.axis) + place[:, 1], float(outside.mean())


def _blocks(trial: np.ndarray, frame: np.ndarray, lengths: list[int]) -> tuple[np.ndarray, str]:
    """Labels of what is held out together, for all individuals alike, since they move together."""
    if len(np.unique(trial)) >= ENOUGH_TRIALS:
        return trial, "trial"
    each = -(-BLOCKS // len(lengths))
    return trial * each + frame * each // np.asarray(lengths)[trial], "block of time"


def _of_trial(
    one: Moved, group: np.ndarray, settings: ForceSettings, forces: dict[str, Force], layout: Layout, step: int
) -> dict[str, Any] | None:
    """Decisions of one trial, by column; None if there are none."""
    frames = np.arange(0, len(one.position) - step, step)
    position, velocity = one.position[frames][:, group], one.velocity[frames][:, group]
    later = one.velocity[frames + step][:, group]
    there = np.isfinite(velocity).all(axis=-1)
    decides = there & np.isfinite(later).all(axis=-1)
    if not decides.any():
        return None
    # individuals come and go: only those who are there take a place
    places = max(int(there.sum(axis=1).max()), 1)
    order = np.argsort(~there, axis=1, kind="stable")[:, :places]
    p = absent_far(np.take_along_axis(np.where(there[..., None], position, np.nan), order[..., None], axis=1))
    v = np.nan_to_num(np.take_along_axis(np.where(there[..., None], velocity, np.nan), order[..., None], axis=1))
    chosen = np.take_along_axis(decides, order, axis=1)
    marks = [marked(one, frames, name) for name in (settings.predator, settings.leader)]
    seen = _seen(layout, forces, World(p, v, *marks), chosen)
    row, column = np.nonzero(chosen)
    who = order[row, column]
    own, change = velocity[row, who], later[row, who] - velocity[row, who]
    return {
        "seen": seen, "frame": frames[row], "individual": group[who], "position": position[row, who], "velocity": own,
        "change": _turned(own, change) / layout.change, "neighbour": _neighbours(position, velocity, there, row, who),
    }  # fmt: skip


def marked(one: Moved, frames: np.ndarray, name: str | None) -> np.ndarray:
    """Where the individual of this name is at some frames, far away if it is not there."""
    if name is None or name not in one.ids:
        return np.full((len(frames), 2), absent_far(np.array(np.nan)))
    return absent_far(one.position[frames, one.ids.index(name)])


def _seen(layout: Layout, forces: dict[str, Force], worlds: World, chosen: np.ndarray) -> Seen:
    """What all chosen individuals saw, some frames at a time: memory does not grow with the length of a trial."""
    places = worlds.position.shape[1]
    everyone, at_once = jnp.arange(places), max(1, min(FRAMES_AT_ONCE, PAIRS_AT_ONCE // places**2))
    parts = []
    for begin in range(0, len(chosen), at_once):
        here = np.minimum(np.arange(begin, begin + at_once), len(chosen) - 1)  # one program for all
        found = _look_around(layout, as_pairs(forces), World(*(jnp.asarray(field[here]) for field in worlds)), everyone)
        count = min(at_once, len(chosen) - begin)
        parts.append([np.asarray(field)[:count][chosen[begin : begin + count]] for field in found])
    return Seen(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))


@eqx.filter_jit
def _look_around(layout: Layout, forces: NamedForces, worlds: World, everyone: Any) -> Seen:
    """What everyone sees in each of some worlds; compiled once for all trials with as many places."""
    return jax.vmap(lambda world: jax.vmap(lambda i: see(layout, dict(forces), world, i))(everyone))(worlds)


def _turned(heading: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Vectors in body coordinates: (ahead, left)."""
    length = np.linalg.norm(heading, axis=-1, keepdims=True)
    ahead = np.where(length > 0, heading / np.where(length > 0, length, 1.0), [1.0, 0.0])
    left = np.stack([-ahead[:, 1], ahead[:, 0]], axis=-1)
    return np.stack([(vector * ahead).sum(axis=-1), (vector * left).sum(axis=-1)], axis=-1)


def _neighbours(
    position: np.ndarray, velocity: np.ndarray, there: np.ndarray, row: np.ndarray, who: np.ndarray
) -> np.ndarray:
    """Distance and bearing of the nearest neighbour of each decision."""
    found = np.full((*there.shape, 2), np.nan)
    for frame in np.unique(row):
        present = np.flatnonzero(there[frame])
        if len(present) < 2:
            continue
        places = position[frame, present]
        distance, nearest = cKDTree(places).query(places, k=2)
        offset = _turned(velocity[frame, present], places[nearest[:, 1]] - places)
        found[frame, present] = np.stack([distance[:, 1], np.arctan2(offset[:, 1], offset[:, 0])], axis=-1)
    return found[row, who]


def _rows_of(given: Decisions, rows: np.ndarray) -> Decisions:
    """Some of the decisions."""
    fields = ("action", "change", "trial", "frame", "individual", "position", "velocity", "neighbour", "block")
    return given._replace(seen=Seen(*(field[rows] for field in given.seen)),
                          **{name: getattr(given, name)[rows] for name in fields})  # fmt: skip


def of_trial(given: Decisions, trial: int) -> Decisions:
    """The decisions of one trial alone, held out by blocks of its time."""
    part = _rows_of(given, given.trial == trial)
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
    return _rows_of(given, chosen[moments])


def to_observations(given: Decisions) -> Observations:
    """Decisions as `policychord.fit` takes them: one subject, and blocks for what is held out together."""
    return checked(given.seen, given.action, k=np.zeros(given.size, int), block=given.block)
