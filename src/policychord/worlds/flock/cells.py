"""What all boids of a flock see, found by cells: compiled, for the CPU; the same answers as `look`, whatever the size.

The plane is cut into squares as wide as the farthest zone reaches, and boids are sorted by square. A boid then looks
at three rows of three squares, which are three runs of neighbours in memory, so that the loop over them vectorises.
"""

import math

import jax
import numpy as np
from jaxtyping import Array, Float
from numba import carray

from ...core._compile import compiled, once
from ...core._native import (
    FLOAT64,
    INT64,
    _pointer,
    _word,
    argument,
    dim_of,
    frames_are_known,
    holds,
    is_question,
    refuse,
    register,
    result,
    rows_of,
    size_of,
)
from .neighbours import SOFTENING, View, Zones

FAR = 1e150  # m; whoever is farther away, or nowhere, sees nobody and is not seen: squares of distances stay finite


def are_available() -> bool:
    """Whether this JAX computes on the CPU and hands over its buffers in the layout that is read here."""
    return jax.default_backend() == "cpu" and frames_are_known()


def look_by_cells(
    zones: Zones, position: Float[Array, "n 2"], velocity: Float[Array, "n 2"], crowd: int
) -> tuple[View, Array]:
    """What all boids see, with up to `crowd` neighbours of the separation zone listed, and how many the fullest has."""
    position, velocity = (jax.numpy.asarray(a, np.float64) for a in (position, velocity))
    if position.ndim != 2 or position.shape[-1] != 2 or velocity.shape != position.shape or not len(position):
        raise ValueError(
            f"positions {position.shape} and velocities {velocity.shape}: both need the shape (boids, 2), and one boid "
            "at least."
        )
    vector, listed = jax.ShapeDtypeStruct(position.shape, np.float64), (len(position), crowd, 2)
    shapes = [*[vector] * 5, jax.ShapeDtypeStruct(listed, np.float64), jax.ShapeDtypeStruct((), np.int64)]
    call = jax.ffi.ffi_call(_registered(), shapes, vmap_method="broadcast_all")
    *seen, most = call(jax.numpy.stack(zones).astype(np.float64), position, velocity)
    return View(position, velocity, *seen), most


@once
def _registered() -> str:
    return register("policychord_look_by_cells", _answer)


@compiled()
def _is_visible(frame):
    """Whether a frame holds what is read, and space for what is written."""
    if _word(frame, 7) != 3 or _word(frame, 12) != 7:
        return False
    positions, listed = argument(frame, 1), result(frame, 5)
    if _word(positions, 4) < 2 or _word(listed, 4) < 2:
        return False
    boids, size = dim_of(positions, _word(positions, 4) - 2), size_of(positions)
    crowd = dim_of(listed, _word(listed, 4) - 2)
    flocks = size // max(2 * boids, 1)
    good = size == flocks * 2 * boids and holds(argument(frame, 0), FLOAT64, 4 * flocks)
    good = good and holds(positions, FLOAT64, size) and holds(argument(frame, 2), FLOAT64, size)
    for k in range(5):
        good = good and holds(result(frame, k), FLOAT64, size)
    return good and holds(listed, FLOAT64, size * crowd) and holds(result(frame, 6), INT64, flocks)


def _answer(frame):
    if not is_question(frame):
        if not _is_visible(frame):
            return refuse(frame)
        positions, listing = argument(frame, 1), result(frame, 5)
        boids, crowd = dim_of(positions, _word(positions, 4) - 2), dim_of(listing, _word(listing, 4) - 2)
        position, velocity = rows_of(positions, 2 * boids), rows_of(argument(frame, 2), 2 * boids)
        zones, listed = rows_of(argument(frame, 0), 4), rows_of(result(frame, 5), 2 * boids * crowd)
        most = carray(_pointer(_word(result(frame, 6), 3)), (position.shape[0],), np.int64)
        for k in range(position.shape[0]):  # flocks of a batch
            most[k] = _look_all(
                zones[k], position[k].reshape((boids, 2)), velocity[k].reshape((boids, 2)),
                rows_of(result(frame, 0), 2 * boids)[k].reshape((boids, 2)),
                rows_of(result(frame, 1), 2 * boids)[k].reshape((boids, 2)),
                rows_of(result(frame, 2), 2 * boids)[k].reshape((boids, 2)),
                rows_of(result(frame, 3), 2 * boids)[k].reshape((boids, 2)),
                rows_of(result(frame, 4), 2 * boids)[k].reshape((boids, 2)),
                listed[k].reshape((boids, crowd, 2)),
            )  # fmt: skip
    return 0


@compiled()
def _look_all(zones, position, velocity, separation, alignment, cohesion, mean_velocity, mean_position, closeness):
    """Fill what every boid sees; the largest number of neighbours in a separation zone."""
    boids = position.shape[0]
    side, left, low, wide, high = _grid(position, zones[2])
    cell, begin, order = _sort(position, side, left, low, wide, high)
    sorted_by_cell = np.empty((6, boids))  # x, y, velocity, heading: a row each
    for place in range(boids):
        j = order[place]
        vx, vy = velocity[j, 0], velocity[j, 1]
        speed = math.sqrt(vx * vx + vy * vy)
        over = 1.0 / speed if speed > 0 else 1.0
        sorted_by_cell[0, place], sorted_by_cell[1, place] = position[j, 0], position[j, 1]
        sorted_by_cell[2, place], sorted_by_cell[3, place] = vx, vy
        sorted_by_cell[4, place], sorted_by_cell[5, place] = vx * over, vy * over
    widest = math.cos(math.radians(zones[3]) / 2)
    sums, most = np.empty(13), 0
    for place in range(boids):
        i = order[place]
        for k in range(13):
            sums[k] = 0.0
        column, row = cell[i] % wide, cell[i] // wide
        below, above = max(row - 1, 0), min(row + 2, high) if cell[i] < wide * high else 0
        for other in range(below, above):
            first = begin[other * wide + max(column - 1, 0)]
            last = begin[other * wide + min(column + 1, wide - 1) + 1]
            _add(zones, widest, sorted_by_cell, place, first, last, sums)
        near, middle, far = sums[10], sums[11], sums[12]
        for axis in range(2):
            own, moving, heading = (
                sorted_by_cell[axis, place], sorted_by_cell[2 + axis, place], sorted_by_cell[4 + axis, place],
            )  # fmt: skip
            separation[i, axis] = sums[axis] / near if near > 0 else 0.0
            alignment[i, axis] = sums[2 + axis] / middle if middle > 0 else heading
            cohesion[i, axis] = sums[4 + axis] / far if far > 0 else 0.0
            mean_velocity[i, axis] = sums[6 + axis] / middle if middle > 0 else moving
            mean_position[i, axis] = sums[8 + axis] / far if far > 0 else own
        most = max(most, int(near))
        if closeness.shape[1] > 0:
            count = 0
            if near > 0:
                for other in range(below, above):
                    first = begin[other * wide + max(column - 1, 0)]
                    last = begin[other * wide + min(column + 1, wide - 1) + 1]
                    count = _list(zones[0], widest, sorted_by_cell, place, first, last, closeness[i], count)
            for k in range(count, closeness.shape[1]):
                closeness[i, k, 0], closeness[i, k, 1] = 0.0, 0.0
    return most


@compiled()
def _grid(position, reach):
    """The side of a cell, the lower left corner, and the number of columns and rows: never more cells than boids."""
    left, low, right, top = math.inf, math.inf, -math.inf, -math.inf
    for j in range(position.shape[0]):
        x, y = position[j, 0], position[j, 1]
        if abs(x) < FAR and abs(y) < FAR:
            left, right, low, top = min(left, x), max(right, x), min(low, y), max(top, y)
    width = max(right - left, top - low)
    if not (width >= 0 and reach > 0):  # nobody is anywhere, or looks anywhere
        return FAR, -FAR, -FAR, 1, 1
    across = math.floor(math.sqrt(position.shape[0])) + 1
    # a cell may be wider than the reach, never narrower, and rounding must not lose a neighbour at its border
    side = max(reach * (1 + 1e-9), width / across)
    return side, left, low, int((right - left) / side) + 1, int((top - low) / side) + 1


@compiled()
def _sort(position, side, left, low, wide, high):
    """The cell of every boid, where each cell begins in the order by cells, and that order.

    A boid that is nowhere is in a cell behind the last, at which nobody looks.
    """
    boids, nowhere = position.shape[0], wide * high
    cell, begin, order = np.empty(boids, np.int64), np.zeros(nowhere + 2, np.int64), np.empty(boids, np.int64)
    for j in range(boids):
        x, y = position[j, 0], position[j, 1]
        cell[j] = nowhere
        if abs(x) < FAR and abs(y) < FAR:
            column = min(max(int((x - left) / side), 0), wide - 1)
            cell[j] = min(max(int((y - low) / side), 0), high - 1) * wide + column
        begin[cell[j] + 1] += 1
    for k in range(nowhere + 1):
        begin[k + 1] += begin[k]
    filled = begin.copy()
    for j in range(boids):
        order[filled[cell[j]]] = j
        filled[cell[j]] += 1
    return cell, begin, order


@compiled(signed_zeros=True)
def _add(zones, widest, boids, place, first, last, sums):
    """Add what lies in one run of neighbours: sums over the three zones, and how many are in each."""
    separation, alignment, cohesion = zones[0], zones[1], zones[2]
    x, y, vx, vy = boids[0, place], boids[1, place], boids[2, place], boids[3, place]
    least = widest * math.sqrt(vx * vx + vy * vy)
    over_near, over_far = 1.0 / separation, 1.0 / (cohesion - alignment)
    push_x = push_y = heading_x = heading_y = pull_x = pull_y = 0.0
    velocity_x = velocity_y = position_x = position_y = near = middle = far = 0.0
    # slices of one row each: indices that start from zero, which the compiler knows not to count from the end
    xs, ys, vxs, vys = boids[0, first:last], boids[1, first:last], boids[2, first:last], boids[3, first:last]
    headings_x, headings_y = boids[4, first:last], boids[5, first:last]
    for j in range(xs.size):
        dx, dy = xs[j] - x, ys[j] - y
        distance = math.sqrt(dx * dx + dy * dy)
        seen = (distance > 0) & (dx * vx + dy * vy >= least * distance)
        over = 1.0 / distance if distance > 0 else 1.0
        is_near = seen & (distance <= separation)
        is_middle = seen & (distance > separation) & (distance <= alignment)
        is_far = seen & (distance > alignment) & (distance <= cohesion)
        push = (distance * over_near - 1.0) * over if is_near else 0.0
        pull = (cohesion - distance) * over_far * over if is_far else 0.0
        push_x += push * dx
        push_y += push * dy
        pull_x += pull * dx
        pull_y += pull * dy
        velocity_x += vxs[j] if is_middle else 0.0
        velocity_y += vys[j] if is_middle else 0.0
        heading_x += headings_x[j] if is_middle else 0.0
        heading_y += headings_y[j] if is_middle else 0.0
        position_x += xs[j] if is_far else 0.0
        position_y += ys[j] if is_far else 0.0
        near += 1.0 if is_near else 0.0
        middle += 1.0 if is_middle else 0.0
        far += 1.0 if is_far else 0.0
    sums[0] += push_x
    sums[1] += push_y
    sums[2] += heading_x
    sums[3] += heading_y
    sums[4] += pull_x
    sums[5] += pull_y
    sums[6] += velocity_x
    sums[7] += velocity_y
    sums[8] += position_x
    sums[9] += position_y
    sums[10] += near
    sums[11] += middle
    sums[12] += far


@compiled()
def _list(separation, widest, boids, place, first, last, closeness, count):
    """List direction over distance of those in the separation zone; how many are listed now."""
    x, y, vx, vy = boids[0, place], boids[1, place], boids[2, place], boids[3, place]
    least = widest * math.sqrt(vx * vx + vy * vy)
    for j in range(first, last):
        dx, dy = boids[0, j] - x, boids[1, j] - y
        squared = dx * dx + dy * dy
        if squared <= 1.0001 * separation * separation:  # most are farther away
            distance = math.sqrt(squared)
            seen = (distance > 0) & (dx * vx + dy * vy >= least * distance)
            if seen & (distance <= separation) & (count < closeness.shape[0]):
                over = 1.0 / (distance * (distance + SOFTENING))
                closeness[count, 0], closeness[count, 1] = dx * over, dy * over
                count += 1
    return count
