"""The flock once more: slowly, in plain NumPy, from the paper's equations alone.

Shares nothing with the package: own zones, own grid, own solver (the mirror step, which is monotone whatever the
problem, until it stands still). Uniform numbers for the draws are handed in.
"""

import numpy as np

DT, V_MAX, U_MAX = 0.05, 1.0, 3.0
R_SEP, R_ALI, R_COH = 1.0, 3.0, 12.0
HALF_VISION = np.deg2rad(160.0)
EPS, VARIANCE, STATE_VARIANCE = 0.5, 0.1, 0.01

_axis = np.linspace(-U_MAX, U_MAX, 30)
GRID = np.array([(x, y) for x in _axis for y in _axis if np.hypot(x, y) <= U_MAX])


def shorten(v, longest):
    length = np.hypot(*v)
    return v * longest / length if length > longest else v


def angle_between(v, offset):
    cosine = v @ offset / (np.hypot(*v) * np.hypot(*offset))
    return np.arccos(np.clip(cosine, -1.0, 1.0))


def neighbours(positions, velocities, i):
    """Indices of those in the three zones."""
    separation, alignment, cohesion = [], [], []
    for j in range(len(positions)):
        offset = positions[j] - positions[i]
        if j == i or angle_between(velocities[i], offset) > HALF_VISION:
            continue
        distance = np.hypot(*offset)
        if distance <= R_SEP:
            separation.append(j)
        elif distance <= R_ALI:
            alignment.append(j)
        elif distance <= R_COH:
            cohesion.append(j)
    return separation, alignment, cohesion


def forces(positions, velocities, i):
    """Means of the three primitives."""
    separation, alignment, cohesion = neighbours(positions, velocities, i)
    apart, along, together = np.zeros(2), np.zeros(2), np.zeros(2)
    for j in separation:
        offset = positions[i] - positions[j]
        distance = np.hypot(*offset)
        apart += U_MAX * (1 - distance / R_SEP) * offset / distance / len(separation)
    for j in alignment:
        along += U_MAX * velocities[j] / np.hypot(*velocities[j]) / len(alignment)
    if not alignment:
        along = U_MAX * velocities[i] / np.hypot(*velocities[i])
    for j in cohesion:
        offset = positions[j] - positions[i]
        distance = np.hypot(*offset)
        together += U_MAX * (R_COH - distance) / (R_COH - R_ALI) * offset / distance / len(cohesion)
    return [shorten(f, U_MAX) for f in (apart, along, together)]


def cost(positions, velocities, i, goal, collision_term):
    """s(u) for every cell of the grid; goal is None for followers."""
    separation, alignment, cohesion = neighbours(positions, velocities, i)
    p, v = positions[i], velocities[i]
    if goal is not None:
        p_bar, v_bar = goal, (goal - p) / np.hypot(*(goal - p))
    else:
        p_bar = positions[cohesion].mean(axis=0) if cohesion else p
        v_bar = velocities[alignment].mean(axis=0) if alignment else v
    v_next = v + GRID * DT
    speed = np.hypot(v_next[:, 0], v_next[:, 1])
    v_next[speed > V_MAX] *= V_MAX / speed[speed > V_MAX, None]
    p_next = p + v * DT
    s = (((v_next - v_bar) ** 2).sum(axis=1) + ((p_next - p_bar) ** 2).sum()) / (2 * STATE_VARIANCE)
    if collision_term:
        exponent = np.zeros(len(GRID))
        for j in separation:
            offset = positions[j] - p
            distance = np.hypot(*offset)
            exponent += 2 * np.maximum(0.0, GRID @ offset / distance) / (distance + 1e-6)
        q = np.exp(-exponent)
        s -= np.log(np.maximum(q / q.sum(), 1e-10))
    return s


def optimal_weights(pi, s):
    """ln w+ = (ln w - h)/(1 + eps), normalised, until nothing moves."""
    w = np.full(3, 1 / 3)
    for _ in range(5000):
        h = pi.T @ (np.log(pi @ w) + s)
        z = (np.log(w) - h) / (1 + EPS)
        fresh = np.exp(z - z.max())
        fresh /= fresh.sum()
        if np.abs(fresh - w).max() < 1e-15:
            break
        w = fresh
    return fresh


def decide(positions, velocities, i, goal, collision_term, uniform):
    """(acceleration, weights); the mean of the mixture if no uniform number is given."""
    columns = []
    for mean in forces(positions, velocities, i):
        bell = np.exp(-((GRID - mean) ** 2).sum(axis=1) / (2 * VARIANCE))
        columns.append(bell / bell.sum())
    pi = np.stack(columns, axis=1)
    w = optimal_weights(pi, cost(positions, velocities, i, goal, collision_term))
    mixture = pi @ w
    if uniform is None:
        return mixture @ GRID, w
    running = np.cumsum(mixture)
    return GRID[np.searchsorted(running, uniform * running[-1], side="right")], w


def fly(positions, velocities, steps, *, sequential=False, goal=None, leaders=0, collision_term=False, uniforms=None):
    """Positions, velocities and weights before every step: (time, boid, ...)."""
    positions, velocities = positions.copy(), velocities.copy()
    boids = len(positions)
    path = []
    for k in range(steps):
        before = positions.copy(), velocities.copy()
        seen = (positions, velocities) if sequential else before
        weights = np.empty((boids, 3))
        for i in range(boids):
            number = None if uniforms is None else uniforms[k, i]
            u, weights[i] = decide(*seen, i, goal if i < leaders else None, collision_term, number)
            old = velocities[i].copy()
            velocities[i] = shorten(old + u * DT, V_MAX)
            positions[i] = positions[i] + old * DT
        path.append((*before, weights))
    return tuple(np.stack(series) for series in zip(*path, strict=True))
