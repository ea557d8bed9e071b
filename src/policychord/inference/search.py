"""`maximise_groups`: the one optimiser, for many small problems at once.

Every group has an optimisation run of its own, and all runs take their steps together: one call of the objective serves
them. A step is C g. More than a standard error from the mode C is the inverse of the scores' outer products, which cost
little next to the gradient g and know the scale of every direction; nearer, BFGS goes on from it, because the products
of a wrong model are not its curvature. A run that has not arrived after a while has its curvature measured, by
differences of gradients: the few slow runs of a large group would otherwise take most of the time. The distance from
the mode is counted in standard errors, sqrt(g^T C g), so the end of a run does not depend on the units of a parameter.

Why not a library: optimistix (`BFGS`, vmapped) reaches the same modes as fast, but compiles again for each number of
groups and decisions, needs all data at once, and knows no border, no number that is held and no Ctrl-C between steps.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from .parameters import FARTHEST, at_bound

# (z, which groups) to value and gradient, and perhaps the outer products of the scores
Objective = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, ...]]
NEAR = 1e-5  # standard errors from the mode at which a run ends: 5e-11 nats, which rounding of a long sum hides
LONGEST = 3.0  # of a step on the unconstrained scale: a factor of 20
FIRST = 0.5  # the same while C has no scale yet
MOST_STEPS = 200
FIRST_STEPS, FIRST_NEAR = 30, 0.03  # where runs from several starts pause: 5e-4 nats from a mode
PATIENCE = 15  # evaluations after which the curvature of a run that has not arrived is measured
DIFFERENCE = 1e-4  # of z, over which gradients are compared for that
TRIALS = 12  # of the length of a step, each a tenth to a half of the one before
SNAP = 1e-9  # from the border, where a number is put on it
SMALLEST = 1e-10  # a step that moves nothing by more is none
AS_HIGH = 0.05  # nats below the mode, within which a run of FIRST_STEPS has found it
SAME = 1e-9  # nats by which a mode must be higher to be another one
ROUNDING = 1e-12  # of a value: by so much a sum may seem to fall
NOISE = 1e-8  # the same of a value that is made of solved weights
FAR_OUT, NEARER = 8.0, 3.0  # |z| of an end that may be a plateau, and of where another run begins


class Estimate(NamedTuple):
    """Everybody's estimate: where the optimisation run of each group ended."""

    z: Float[np.ndarray, "groups K"]
    log_posterior: Float[np.ndarray, " groups"]  # the objective: log-likelihood, and with `map` the log prior's density
    inverse: Float[np.ndarray, "groups K K"]  # about the covariance: what the search collected on its way
    converged: Bool[np.ndarray, " groups"]
    reached: Int[np.ndarray, " groups"]  # starts from which a run came as high: one alone says little

    @property
    def at_bound(self) -> Bool[np.ndarray, "groups K"]:
        """Where a number ran to the border of the unconstrained scale."""
        return at_bound(self.z)


class _Runs(NamedTuple):
    """The state of all runs; its arrays are changed in place."""

    z: Float[np.ndarray, "groups K"]
    value: Float[np.ndarray, " groups"]
    gradient: Float[np.ndarray, "groups K"]
    products: Float[np.ndarray, "groups K K"] | None
    metric: Float[np.ndarray, "groups K K"]  # C
    far: Bool[np.ndarray, " groups"]  # C is the products' inverse
    fresh: Bool[np.ndarray, " groups"]  # C is the identity and says nothing about distances
    length: Float[np.ndarray, " groups"]  # share of the step that is tried next
    trials: Int[np.ndarray, " groups"]  # that failed, of the present step
    renewed: Bool[np.ndarray, " groups"]  # C, since the last step
    steps: Int[np.ndarray, " groups"]  # taken
    waited: Int[np.ndarray, " groups"]  # evaluations since C was measured
    measured: Int[np.ndarray, " groups"]  # steps taken when C was measured; -1 before


def maximise_groups(
    objective: Objective,
    z: np.ndarray,
    inverse: np.ndarray | None = None,
    *,
    steps: int = MOST_STEPS,
    held: int = -1,
    near: float = NEAR,
) -> Estimate:
    """A mode of the objective for every group, ascending from z (groups, K); groups that have arrived are left alone.

    `objective(z, which)` gives value (m) and gradient (m, K) of the groups `which` at z (m, K), and perhaps the outer
    products of their scores (m, K, K). `inverse` (groups, K, K) is a guess of the inverse curvature. Number `held` of z
    does not move, as a profile asks. A run ends `near` standard errors from the mode, or after `steps`.
    """
    runs = _begin(objective, z, inverse)
    done, converged = np.zeros(len(z), bool), np.zeros(len(z), bool)
    while (active := np.flatnonzero(~done & (runs.steps < steps))).size:
        step, uphill = _free_step(runs, active, held)
        left = np.einsum("gi,gi->g", step, uphill)  # squared distance from the mode in standard errors
        lost = ~(left > 0) & uphill.any(axis=1)  # rounding has spoilt C
        _restart(runs, active[lost])
        step[lost], left[lost] = uphill[lost], np.einsum("gi,gi->g", uphill[lost], uphill[lost])
        arrived = (left <= near**2) & ~(runs.fresh[active] & uphill.any(axis=1))
        done[active[arrived]], converged[active[arrived]] = True, np.isfinite(runs.value[active[arrived]])
        runs.far[active] &= left > 1.0
        active, step, uphill = active[~arrived], step[~arrived], uphill[~arrived]
        if active.size:
            _try(objective, runs, active, step, uphill)
            failed = active[runs.trials[active] >= TRIALS]
            done[failed[runs.fresh[failed]]] = True
            _renew(runs, failed[~runs.fresh[failed]])
            # without a step since the last time C would be the same, and the run would never be given up
            slow = (runs.waited[active] >= PATIENCE) & (runs.steps[active] > runs.measured[active]) & ~done[active]
            _measure(objective, runs, active[slow])
    return Estimate(runs.z, runs.value, runs.metric, converged, np.ones(len(z), int))


def maximise_from_starts(objective: Objective, starts: np.ndarray, *, near: float = NEAR) -> Estimate:
    """The highest mode of every group from starts (starts, groups, K): only the best run goes on to its end.

    Where that is far out, there may be a plateau: one more run begins nearer, and the higher end counts.
    """
    z, inverse, heights = starts[0], None, []
    if len(starts) > 1:
        first, *others = (maximise_groups(objective, z, steps=FIRST_STEPS, near=max(near, FIRST_NEAR)) for z in starts)
        heights = [np.array(run.log_posterior) for run in (first, *others)]
        for other in others:
            keep_higher(first, other, np.arange(len(other.z)))
        z, inverse = first.z, first.inverse
    best = maximise_groups(objective, np.clip(z, -FARTHEST, FARTHEST), inverse, near=near)
    out = np.flatnonzero(np.abs(best.z).max(axis=1, initial=0.0) > FAR_OUT)
    if out.size:
        nearer = np.clip(best.z[out], -NEARER, NEARER)
        keep_higher(best, maximise_groups(part_of(objective, out), nearer, near=near), out)
    best.reached[:] = np.sum([height >= best.log_posterior - AS_HIGH for height in heights], axis=0) if heights else 1
    return best


def keep_higher(best: Estimate, other: Estimate, groups: np.ndarray) -> None:
    """Write the modes of other runs of some groups over the best so far, where they are higher."""
    higher = other.log_posterior > best.log_posterior[groups] + SAME
    for old, new in zip(best, other, strict=True):
        old[groups[higher]] = new[higher]


def part_of(objective: Objective, groups: np.ndarray) -> Objective:
    """The objective of a part of the groups, which are numbered from 0."""
    return lambda z, which: objective(z, groups[which])


def _begin(objective: Objective, z: np.ndarray, inverse: np.ndarray | None) -> _Runs:
    z, (count, free) = np.array(z, dtype=float), z.shape
    value, gradient, *products = finite(objective(z, np.arange(count)))
    scored = bool(products) and inverse is None
    metric = np.tile(np.eye(free), (count, 1, 1)) if inverse is None else np.array(inverse)
    return _Runs(
        z=z, value=value, gradient=gradient, products=products[0] if products else None,
        metric=_inverses(products[0]) if scored else metric, far=np.full(count, scored),
        fresh=np.full(count, inverse is None and not scored), length=np.ones(count), trials=np.zeros(count, int),
        renewed=np.zeros(count, bool), steps=np.zeros(count, int), waited=np.zeros(count, int),
        measured=np.full(count, -1),
    )  # fmt: skip


def _free_step(runs: _Runs, active: np.ndarray, held: int) -> tuple[np.ndarray, np.ndarray]:
    """(C g, g) of the numbers that may move: one at the border that would leave it is held, and C is given that."""
    z, gradient, metric = runs.z[active], runs.gradient[active], runs.metric[active]
    edge = np.abs(z) >= FARTHEST
    fixed = (edge & (z * gradient > 0)) | (np.arange(z.shape[1]) == held)
    while True:
        uphill = np.where(fixed, 0.0, gradient)
        step = np.where(fixed, 0.0, np.einsum("gij,gj->gi", _given(metric, fixed), uphill))
        out = edge & ~fixed & (z * step > 0)
        if not out.any():
            return step, uphill
        fixed |= out


def _given(metric: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """The inverse curvature of the others while some numbers are fixed: C - C_f (C_ff)^-1 C_f^T."""
    if not (some := fixed.any(axis=1)).any():
        return metric
    inner, whole, mask = metric.copy(), metric[some], fixed[some]
    both = mask[:, :, None] & mask[:, None, :]
    diagonal = np.einsum("gii->gi", whole) * ~mask
    block = np.where(both, whole, 0.0) + diagonal[:, :, None] * np.eye(mask.shape[1])
    cross = whole * mask[:, None, :]
    inner[some] = whole - cross @ np.linalg.pinv(block, hermitian=True) @ np.swapaxes(cross, 1, 2)
    return inner


def _try(objective: Objective, runs: _Runs, active: np.ndarray, step: np.ndarray, uphill: np.ndarray) -> None:
    """Take the steps that are higher by a part of what the slope promises; the others are shorter next time."""
    size = np.maximum(np.abs(step), 1e-300)
    most = np.where(runs.fresh[active], FIRST, LONGEST)
    room = ((FARTHEST - np.sign(step) * runs.z[active]) / size).min(axis=1)  # up to the border: clipping would turn it
    share = np.minimum(np.minimum(1.0, most / size.max(axis=1)), room) * runs.length[active]
    aim = runs.z[active] + step * share[:, None]
    aim = np.where(np.abs(aim) > FARTHEST - SNAP, np.sign(aim) * FARTHEST, aim)
    moved, before = aim - runs.z[active], runs.value[active]
    value, gradient, *products = finite(objective(aim, active))
    promised = np.maximum(np.einsum("gi,gi->g", moved, uphill), 0.0)
    good = value >= before + 1e-4 * promised - ROUNDING * np.abs(before)
    # weights are solved to a tolerance: where that hides what is left to gain, the slope decides
    noise = NOISE * np.abs(before)
    metric, slope = runs.metric[active], np.where(uphill != 0, gradient, 0.0)
    flatter = np.einsum("gi,gij,gj->g", slope, metric, slope) < 0.25 * np.einsum("gi,gij,gj->g", uphill, metric, uphill)
    good |= (promised < noise) & (value > before - noise) & flatter
    # the top of the parabola through both values and the slope
    bend = before + promised - value
    known = np.isfinite(bend) & (bend > 0)
    shorter = np.clip(0.5 * promised / np.where(known, bend, np.inf), 0.1, 0.5)
    runs.length[active] = np.where(good, 1.0, runs.length[active] * shorter)
    runs.waited[active] += 1
    moving = good & (np.abs(moved).max(axis=1) > SMALLEST)
    runs.trials[active] = np.where(moving, 0, runs.trials[active] + 1)
    runs.renewed[active[moving]] = False
    won = active[good]
    fell = runs.gradient[won] - gradient[good]
    runs.metric[won] = _bfgs(runs.metric[won], moved[good], fell, runs.fresh[won])
    runs.fresh[won] = False
    runs.steps[won] += 1
    runs.z[won], runs.value[won], runs.gradient[won] = aim[good], value[good], gradient[good]
    if runs.products is not None:
        runs.products[won] = products[0][good]
        scored = won[runs.far[won]]
        runs.metric[scored] = _inverses(runs.products[scored])


def _renew(runs: _Runs, groups: np.ndarray) -> None:
    """Another C where no length of a step was good: that of the products, or after it the identity."""
    again = runs.far[groups] | runs.renewed[groups] | (runs.products is None)
    _restart(runs, groups[again])
    if runs.products is not None:
        scored = groups[~again]
        runs.metric[scored], runs.far[scored], runs.renewed[scored] = _inverses(runs.products[scored]), True, True
    runs.length[groups], runs.trials[groups] = 1.0, 0


def _measure(objective: Objective, runs: _Runs, groups: np.ndarray) -> None:
    """C is the inverse of |H|, the curvature as at a maximum, with H e_k = (g(z) - g(z + h e_k)) / h."""
    if not groups.size:
        return
    steps = DIFFERENCE * np.eye(runs.z.shape[1])
    ahead = np.stack([objective(runs.z[groups] + step, groups)[1] for step in steps], axis=-1)
    curvature = (runs.gradient[groups, :, None] - ahead) / DIFFERENCE
    known = np.isfinite(curvature).all(axis=(1, 2))
    values, vectors = np.linalg.eigh((curvature + np.swapaxes(curvature, 1, 2))[known] / 2)
    runs.metric[groups[known]] = _inverted(np.abs(values), vectors)
    runs.fresh[groups[known]] = runs.far[groups[known]] = False
    runs.length[groups], runs.trials[groups], runs.waited[groups] = 1.0, 0, 0
    runs.measured[groups] = runs.steps[groups]


def _restart(runs: _Runs, groups: np.ndarray) -> None:
    """C is the identity."""
    runs.metric[groups] = np.eye(runs.z.shape[1])
    runs.fresh[groups], runs.far[groups] = True, False


def _inverses(products: np.ndarray) -> Float[np.ndarray, "groups K K"]:
    """Inverses of the scores' products; directions of which the data say next to nothing get a bounded one."""
    return _inverted(*np.linalg.eigh(products))


def _inverted(values: np.ndarray, vectors: np.ndarray) -> Float[np.ndarray, "groups K K"]:
    least = np.maximum(1e-10 * values.max(axis=-1, keepdims=True, initial=0.0), 1e-12)
    return (vectors / np.maximum(values, least)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def _bfgs(metric: np.ndarray, s: np.ndarray, y: np.ndarray, fresh: np.ndarray) -> np.ndarray:
    """The inverse curvature after a step s along which the gradient fell by y; unchanged where it did not fall."""
    curved, square = np.einsum("gi,gi->g", s, y), np.einsum("gi,gi->g", y, y)
    fine = curved > 1e-12 * np.sqrt(np.einsum("gi,gi->g", s, s) * square + 1e-300)
    rho = np.where(fine, 1.0 / np.where(fine, curved, 1.0), 0.0)[:, None, None]
    scale = np.where(fresh & fine, curved / np.where(square > 0, square, 1.0), 1.0)
    metric = metric * scale[:, None, None]
    left = np.eye(s.shape[1]) - rho * s[:, :, None] * y[:, None, :]
    updated = left @ metric @ np.swapaxes(left, 1, 2) + rho * s[:, :, None] * s[:, None, :]
    return np.where(fine[:, None, None], updated, metric)


def finite(answer: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Values that are not numbers count as bottomless, with a flat slope."""
    value, gradient, *products = answer
    bad = ~np.isfinite(value) | ~np.isfinite(gradient).all(axis=1)
    calm = [np.where(np.isfinite(each), each, 0.0) for each in products]
    return np.where(bad, -np.inf, value), np.where(bad[:, None], 0.0, gradient), *calm
