"""`maximise`: the best parameters of one likelihood, from several starts; `climb_groups`: of every group at once.

Climbs from many starts use a part of the data, which is cheap and finds the hills; the best of them go on with all.
How far the top is, is counted in standard errors, g^T C g with C the inverse of the scores' outer products: so the
end of a climb does not depend on the units of a parameter.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from .._types import ArrayLike
from .likelihoods import Likelihood, by_group, restrict, scores, value_and_gradient
from .parameters import FARTHEST, log_prior, prior_precision, size, unconstrained

Progress = Callable[[str, int, int], Any]  # of (what is done, how far, of how much)
SCREENED = 800  # units of the part on which many starts are tried
SPREAD = 1.0  # standard deviation of the starts around the declared one, on the unconstrained scale
SAME_HILL = 0.02  # climbs that end closer than this, in nats a hundred units, are on the same hill
FINAL = 3  # hills at most that are climbed with all data
NEAR = 1e-5  # standard errors from the top at which a climb ends: 5e-11 nats, which rounding of a long sum hides
NEAR_A_HILL = 0.3  # the same while hills are looked for: .05 nats, less than what tells two hills apart
GRADIENT = 1e-3  # climbs of groups end where no slope is larger: for a standard error of one, 1e-3 of it from the top
LONGEST = 3.0  # of a step on the unconstrained scale: a factor of 20
MOST_TURNS = 200
FIRST_TURNS = 30  # of each start of a group; the best goes on
FAR_OUT, NEARER = 8.0, 3.0  # |z| of an end that may be a plateau, and of where the climb begins once more


class Optimum(NamedTuple):
    """The best point found, and what else was. It is data: hand it to `maximise` again to go on from it."""

    z: Float[np.ndarray, " K"]
    log_posterior: float  # log-likelihood, and the log prior's density in a MAP estimate
    log_likelihood: float
    starts: Float[np.ndarray, "starts K"]
    tried: Float[np.ndarray, "tried K"]  # where each finished climb ended; NaN for one that was not done
    heights: Float[np.ndarray, " tried"]  # its log posterior on all data; NaN for one that was not done
    evaluations: int
    converged: bool
    complete: bool  # False if somebody interrupted it: then `z` is the best so far
    paths: tuple[Float[np.ndarray, " turns"], ...] = ()  # the objective at every step of each climb on all data


class _Best:
    """The best point that the objective was asked for, whatever interrupts the climb."""

    def __init__(self, given: Likelihood, method: str):
        self.given, self.method = given, method
        self.value, self.z, self.count = -np.inf, np.zeros(0), 0
        self.paths: list[list[float]] = []  # the heights of each climb, step by step

    def at(self, z: np.ndarray) -> "Point":
        here = log_posterior(self.given, z, self.method)
        self.count += 1
        if here.value > self.value:
            self.value, self.z = here.value, here.z
        return here


class Point(NamedTuple):
    """The objective at a point, with the outer products of its scores, whose mean is the curvature's."""

    z: Float[np.ndarray, " K"]
    value: float
    gradient: Float[np.ndarray, " K"]
    products: Float[np.ndarray, "K K"]


def log_posterior(given: Likelihood, z: np.ndarray, method: str = "ml") -> Point:
    """The log-likelihood (`ml`), or with the declared priors (`map`), with its gradient and the products of scores."""
    found = scores(given, z)
    value, gradient = float(found.log_likelihood.sum()), found.gradient.sum(axis=0)
    products = found.gradient.T @ found.gradient
    if method == "map":
        prior, slope = log_prior(given.parameters, z)
        value, gradient = value + prior, gradient + slope
        products = products + np.diag(prior_precision(given.parameters))
    if method == "secants":
        products = np.eye(len(z)) * given.units
    if not (np.isfinite(value) and np.isfinite(gradient).all() and np.isfinite(products).all()):
        return Point(np.array(z), -np.inf, np.zeros_like(z), np.zeros((len(z), len(z))))
    return Point(np.array(z), value, gradient, products)


def maximise(
    given: Likelihood,
    *,
    starts: int | ArrayLike = 8,
    method: str = "ml",
    seed: int = 0,
    progress: Progress | None = None,
    resume: Optimum | None = None,
    keep: Callable[[Optimum], Any] | None = None,
    near: float = NEAR,
) -> Optimum:
    """The parameters that maximise the likelihood (`ml`) or the posterior (`map`).

    `secants` is for objectives that are no likelihood: gradients of units then say nothing about the curvature.

    `starts`: how many, the declared values first, or their z (starts, K). `progress(what, done, total)` is called
    between climbs. Ctrl-C gives the best so far with `complete=False`; `resume` takes such an answer and does the rest.
    `keep` is handed such an answer after every climb, to be stored. A climb ends `near` standard errors from the top.
    """
    if method not in ("ml", "map", "secants"):
        raise ValueError(
            f"method = {method!r}: use 'ml' (maximum likelihood), 'map' (with the declared priors) or 'secants' (no "
            "likelihood: steps by secants alone)."
        )
    points = resume.starts if resume is not None else spread_starts(given, starts, seed)
    tried = np.full_like(points, np.nan) if resume is None else resume.tried.copy()
    best = _Best(given, method)
    if resume is not None and np.isfinite(resume.log_posterior):
        best.value, best.z, best.count = resume.log_posterior, resume.z, resume.evaluations
        best.paths = [list(path) for path in resume.paths]
    part = _part(given, seed)
    heights = np.full(len(points), np.nan) if resume is None else resume.heights.copy()
    complete, converged = True, False
    screen = _Best(part, method)
    if part is given:
        screen.paths = best.paths  # climbs on all data, too

    def answer(log_likelihood: float, whole: bool) -> Optimum:
        paths = tuple(np.array(path) for path in best.paths)
        return Optimum(best.z, best.value, log_likelihood, points, tried.copy(), heights.copy(), best.count,
                       converged and whole, whole, paths)  # fmt: skip

    def store() -> None:
        if keep is not None:
            keep(answer(best.value, False))

    try:
        if points.shape[1] == 0:
            best.at(points[0])
            converged = True
        hills = np.full(len(points), -np.inf)
        for i, start in enumerate(points if points.shape[1] else ()):
            _tell(progress, "climbing from several starts", i, len(points) + FINAL)
            if np.isnan(tried[i]).any():
                tried[i], hills[i], _ = _climb(screen, start, NEAR_A_HILL)
                store()
            else:
                hills[i] = screen.at(tried[i]).value
        best.count += screen.count
        ends = _distinct(hills, part.units) if points.shape[1] else []
        for i in ends[:FINAL]:
            if not np.isfinite(heights[i]):
                _tell(progress, "climbing with all data", len(points) + ends.index(i), len(points) + FINAL)
                tried[i], heights[i], fine = _climb(best, tried[i], near)
                converged = converged or fine
                store()
            else:
                converged = True
    except KeyboardInterrupt:
        complete = False
        if not best.z.size and screen.z.size:  # what a part of the data says is better than nothing
            best.at(screen.z)
    if not best.z.size and points.shape[1]:  # interrupted before anything was known
        best.at(points[0])
        best.z = points[0] if not best.z.size else best.z
    return answer(value_and_gradient(given, best.z)[0], complete)


def finished(found: Optimum) -> Optimum:
    """The optimum of a climb that is one step of a longer computation: Ctrl-C during the climb ends all of it."""
    if not found.complete:
        raise KeyboardInterrupt
    return found


def _tell(progress: Progress | None, what: str, done: int, total: int) -> None:
    if progress is not None:
        progress(what, done, total)


def _climb(objective: _Best, start: np.ndarray, near: float) -> tuple[np.ndarray, float, bool]:
    """(where a climb ends, how high that is, whether it arrived).

    A climb that ran far out may lie on a plateau, where every slope is zero: it begins once more from nearer, and the
    higher end counts.
    """
    first = _ascend(objective, np.clip(start, -FARTHEST, FARTHEST), near)
    if np.abs(first[0]).max(initial=0.0) <= FAR_OUT:
        return first
    second = _ascend(objective, np.clip(first[0], -NEARER, NEARER), near)
    return max(first, second, key=lambda end: end[1])


def improve(given: Likelihood, z: np.ndarray, turns: int = 1, near: float = NEAR) -> Float[np.ndarray, " K"]:
    """A point that is not lower than z, after so many steps uphill or so close to the top, in standard errors."""
    return _ascend(_Best(given, "ml"), z, near, turns)[0]


def _ascend(
    objective: _Best, begin: np.ndarray, near: float, turns: int = MOST_TURNS
) -> tuple[np.ndarray, float, bool]:
    """Climb by the scores' outer products while the top is far, by BFGS from them once it is close.

    The products cost nothing beside the gradient and know the scale of every direction, also where a gradient is small;
    where the model is wrong they are not the curvature, and secants mend that.
    """
    here = objective.at(begin)
    path = [here.value]
    objective.paths.append(path)
    metric, close = _inverse(here.products), objective.method == "secants"
    fresh = close
    for _ in range(turns):
        metric = metric if close else _inverse(here.products)
        step, uphill = _inwards(metric, here)
        left = float(uphill @ step)
        if left <= near**2:
            return here.z, here.value, np.isfinite(here.value)
        close = close or left <= 1.0
        step *= min(1.0, LONGEST / np.abs(step).max())
        there = _line(objective, here, step, uphill)
        if there is None:
            if not close:
                return here.z, here.value, False
            metric, close = _inverse(here.products), objective.method == "secants"  # secants went wrong: anew
            fresh = close
            there = _line(objective, here, *_inwards(metric, here))
            if there is None:
                return here.z, here.value, False
        if close:
            s, y = there.z - here.z, here.gradient - there.gradient
            metric = _bfgs(metric[None], s[None], y[None], np.array([fresh]))[0]
            fresh = False
        here = there
        path.append(here.value)
    return here.z, here.value, False


def _inwards(metric: np.ndarray, here: Point) -> tuple[np.ndarray, np.ndarray]:
    """(step, gradient) in the numbers that may move: one at a bound that wants to go on outwards is held.

    Clipping a step afterwards would turn it, and it need not lead uphill any more.
    """
    gradient = here.gradient
    edge = np.abs(here.z) >= FARTHEST
    held = edge & (here.z * gradient > 0)
    while True:
        uphill = np.where(held, 0.0, gradient)
        inner = metric
        if held.any():
            cross = metric[:, held]
            inner = metric - cross @ np.linalg.pinv(metric[np.ix_(held, held)]) @ cross.T
        step = np.where(held, 0.0, inner @ uphill)
        out = edge & ~held & (here.z * step > 0)
        if not out.any():
            return step, uphill
        held = held | out


def _line(objective: _Best, here: Point, step: np.ndarray, uphill: np.ndarray) -> Point | None:
    """A point along the step that is higher by a part of what the slope promises; None if rounding hides any gain."""
    length = 1.0
    for _ in range(12):
        aim = np.clip(here.z + length * step, -FARTHEST, FARTHEST)
        there = objective.at(aim)
        promised = float(uphill @ (aim - here.z))
        if there.value >= here.value + 1e-4 * promised - 1e-12 * abs(here.value):
            return there
        # the top of the parabola through both values and the slope, within a tenth and a half of the way
        bend = here.value + promised - there.value
        length *= float(np.clip(0.5 * promised / bend, 0.1, 0.5)) if np.isfinite(bend) and bend > 0 else 0.1
    return None


def _inverse(spread: np.ndarray) -> np.ndarray:
    return _inverses(spread[None])[0]


def _inverses(spread: np.ndarray) -> Float[np.ndarray, "groups K K"]:
    """Inverses of the scores' products; directions of which the data say next to nothing get a bounded one."""
    values, vectors = np.linalg.eigh(spread)
    least = np.maximum(1e-10 * values.max(axis=-1, keepdims=True, initial=0.0), 1e-12)
    return (vectors / np.maximum(values, least)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def spread_starts(given: Likelihood, starts: int | ArrayLike, seed: int) -> np.ndarray:
    """The declared start, and points drawn around it, the same for a seed."""
    count = size(given.parameters)
    if not isinstance(starts, int | np.integer):
        points = np.atleast_2d(np.asarray(starts, dtype=float))
        if points.shape[1] != count:
            raise ValueError(f"starts has shape {points.shape}: pass (starts, {count}), or how many.")
        return points
    if starts < 1:
        raise ValueError(f"starts = {starts}: pass at least 1.")
    centre = unconstrained(given.parameters, {})
    if starts == 1 or count == 0:
        return centre[None]
    spread = np.random.default_rng(seed).normal(size=(starts - 1, count))
    return np.concatenate([centre[None], centre + SPREAD * spread])


def _part(given: Likelihood, seed: int) -> Likelihood:
    """Some of the units, drawn without replacement; all if they are few."""
    if given.units <= 1.5 * SCREENED:
        return given
    rows = np.random.default_rng([seed, given.units]).choice(given.units, SCREENED, replace=False)
    return restrict(given, np.sort(rows))


def _distinct(hills: np.ndarray, units: int) -> list[int]:
    """The climbs in order of height, one for each hill, and of those only hills that all data could make the highest.

    On a part of m units the difference of two hills is off by some sqrt(m) times a fraction of a nat; hills lower than
    three nats and that are left.
    """
    chosen: list[int] = []
    top = float(np.max(hills))
    for i in np.argsort(-hills, kind="stable"):
        near = any(abs(hills[i] - hills[j]) < SAME_HILL * units / 100 for j in chosen)
        if not near and hills[i] > top - 3.0 - 0.1 * np.sqrt(units):
            chosen.append(int(i))
    return chosen


# ---------------------------------------------------------------------------------- every group at once


class Climbed(NamedTuple):
    """Where the climbs of all groups ended."""

    z: Float[np.ndarray, "groups K"]
    value: Float[np.ndarray, " groups"]
    inverse: Float[np.ndarray, "groups K K"]  # the inverse curvature that the climb collected on its way
    converged: Bool[np.ndarray, " groups"]


# (z, which groups) to value and gradient, and perhaps the outer products of the scores
Objective = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, ...]]


def climb_groups(
    objective: Objective,
    z: np.ndarray,
    inverse: np.ndarray | None = None,
    turns: int = MOST_TURNS,
    held: int = -1,
    flat: float = GRADIENT,
    near: float = 0.0,
) -> Climbed:
    """Maximise for all groups in step by BFGS; those that have arrived are not asked for again.

    `objective(z, which)` gives value (m) and gradient (m, K) of the groups `which` at z (m, K), and perhaps the outer
    products of their scores (m, K, K): with these a climb begins as that of `maximise` does. `inverse` (groups, K, K)
    is a guess of the inverse curvature. The number `held` of z does not move: so a profile is climbed. A climb ends
    where no slope is larger than `flat`, or `near` standard errors from the top.
    """
    z, (count, free) = np.array(z, dtype=float), z.shape
    everyone = np.arange(count)
    value, gradient, *products = _finite(objective(z, everyone))
    gradient = _hold(gradient, held)
    metric = np.tile(np.eye(free), (count, 1, 1)) if inverse is None else np.array(inverse)
    far = np.full(count, bool(products) and inverse is None)  # the top is: products say where it lies
    fresh = np.full(count, inverse is None) & ~far
    if far.any():
        metric = _inverses(products[0])
    metric = _conditional(metric, held)
    length, converged, stuck = np.ones(count), np.zeros(count, bool), np.zeros(count, int)
    left = np.full(count, np.inf)  # squared distance from the top in standard errors
    for _ in range(turns):
        converged = (np.abs(_inward(z, gradient)).max(axis=1, initial=0.0) <= flat) | (left <= near**2)
        active = np.flatnonzero(~converged & (stuck < 25))
        if active.size == 0:
            break
        free_metric, inward = _pinned(metric[active], z[active], gradient[active])
        step = np.einsum("gij,gj->gi", free_metric, inward)
        uphill = np.einsum("gi,gi->g", step, inward)
        lost = (uphill <= 0) | ~np.isfinite(uphill)
        left[active] = np.where(lost | fresh[active], np.inf, uphill)
        if (arrived := left[active] <= near**2).all():
            converged[active] = True
            break
        active, step, inward = active[~arrived], step[~arrived], inward[~arrived]
        uphill, lost = uphill[~arrived], lost[~arrived]
        far[active] &= left[active] > 1.0
        step = np.where(lost[:, None], inward, step)
        uphill = np.where(lost, np.einsum("gi,gi->g", step, step), uphill)
        longest = np.abs(step).max(axis=1)
        most = np.where(fresh[active], 0.5, 3.0)  # the first step has no scale of its own
        step *= np.minimum(1.0, most / np.maximum(longest, 1e-300))[:, None] * length[active, None]
        aim = np.clip(z[active] + step, -FARTHEST, FARTHEST)
        moved = aim - z[active]
        trial, slope, *products = _finite(objective(aim, active))
        slope = _hold(slope, held)
        enough = value[active] + 1e-4 * np.einsum("gi,gi->g", moved, gradient[active])
        good = np.isfinite(trial) & (trial >= enough - 1e-9 * (1 + np.abs(value[active])))
        length[active] = np.where(good, 1.0, 0.3 * length[active])
        stuck[active] = np.where(good & (np.abs(moved).max(axis=1) > 1e-10), 0, stuck[active] + 1)
        won = active[good]
        metric[won] = _bfgs(metric[won], moved[good], gradient[won] - slope[good], fresh[won])
        fresh[won] = False
        if products and (scored := good & far[active]).any():
            metric[active[scored]] = _conditional(_inverses(products[0][scored]), held)
        z[won], value[won], gradient[won] = aim[good], trial[good], slope[good]
        again = active[stuck[active] == 8]
        metric[again] = _conditional(np.tile(np.eye(free), (again.size, 1, 1)), held)
        length[again], fresh[again], far[again] = 1.0, True, False
    return Climbed(z, value, metric, converged)


class Estimate(NamedTuple):
    """Everybody's estimate."""

    z: Float[np.ndarray, "groups K"]
    log_posterior: Float[np.ndarray, " groups"]  # log-likelihood, and with `map` the log prior's density
    inverse: Float[np.ndarray, "groups K K"]  # about the covariance: what the search collected on its way
    converged: Bool[np.ndarray, " groups"]

    @property
    def at_bound(self) -> Bool[np.ndarray, "groups K"]:
        """Where a number ran to the border of the unconstrained scale."""
        return np.abs(self.z) >= FARTHEST


def estimate(
    given: Likelihood,
    *,
    method: str = "map",
    starts: int | ArrayLike = 4,
    seed: int = 0,
    groups: int | None = None,
    near: float = NEAR,
) -> Estimate:
    """argmax_z ln p(units of g | z_g) + ln p(z_g), of every group g at once; without the prior if `method` is `ml`.

    `starts`: how many for each group, the declared values first, or z of them, (starts, K) or (starts, groups, K). All
    are followed for some steps; the best of each group goes on to its end.
    """
    count = given.groups if groups is None else groups
    free = size(given.parameters)
    objective = with_declared_prior(of_groups(given, True, count), given, method)
    if free == 0:
        value, *_ = objective(np.zeros((count, 0)), np.arange(count))
        return Estimate(np.zeros((count, 0)), value, np.zeros((count, 0, 0)), np.ones(count, bool))
    points = spread_starts(given, starts, seed) if np.ndim(starts) < 3 else np.asarray(starts, dtype=float)
    points = np.broadcast_to(points[:, None], (len(points), count, free)) if points.ndim == 2 else points
    best = climb_groups(
        objective, points[0], turns=MOST_TURNS if len(points) == 1 else FIRST_TURNS, flat=0.0, near=near
    )
    for start in points[1:]:
        other = climb_groups(objective, start, turns=FIRST_TURNS, flat=0.0, near=near)
        higher = other.value > best.value + 1e-9
        best = Climbed(*(np.where(higher.reshape(-1, *[1] * (a.ndim - 1)), a, b)
                         for a, b in zip(other, best, strict=True)))  # fmt: skip
    if len(points) > 1:
        best = climb_groups(objective, best.z, best.inverse, flat=0.0, near=near)
    return Estimate(*best)


def with_declared_prior(objective: Objective, given: Likelihood, method: str) -> Objective:
    """An objective of groups with the priors that the parameters declare; itself if `method` is not `map`."""
    if method != "map":
        return objective
    precision = np.diag(prior_precision(given.parameters))

    def posterior(z: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, ...]:
        value, gradient, *products = objective(z, which)
        prior = [log_prior(given.parameters, row) for row in z]
        value = value + np.array([density for density, _ in prior])
        return value, gradient + np.stack([slope for _, slope in prior]), *(one + precision for one in products)

    return posterior


def of_groups(given: Likelihood, products: bool = False, groups: int | None = None) -> Objective:
    """The likelihoods of groups as an objective: only the units of the groups that are asked for are computed.

    With `products` it gives the outer products of the scores, too.
    """
    order = np.argsort(given.group, kind="stable")
    count = given.groups if groups is None else groups  # groups without any unit come last, or not at all
    edges = np.searchsorted(given.group[order], np.arange(count + 1))

    def objective(z: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, ...]:
        rows = np.concatenate([order[edges[g] : edges[g + 1]] for g in which])
        part = restrict(given, rows)
        at = np.zeros(count, dtype=int)
        at[which] = np.arange(len(which))
        return by_group(part._replace(group=at[part.group]), z, products)

    return objective


def _inward(z: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """The gradient without the numbers at the border of the unconstrained scale that it would push over it."""
    return np.where((np.abs(z) >= FARTHEST) & (z * gradient > 0), 0.0, gradient)


def _pinned(inverse: np.ndarray, z: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inverse curvatures and gradients of the numbers that may move: those at the border stay there."""
    inward = _inward(z, gradient)
    at_border = inward != gradient
    if at_border.any():
        inverse = inverse.copy()
        for j in range(z.shape[1]):
            rows = np.flatnonzero(at_border[:, j])
            if rows.size:
                inverse[rows] = _conditional(inverse[rows], j)
    return inverse, inward


def _conditional(inverse: np.ndarray, held: int) -> np.ndarray:
    """The inverse curvature of the others while one number is held: S - S_j S_j^T / S_jj, with zeros for it."""
    if held < 0:
        return inverse
    column = inverse[:, :, held]
    left = inverse - column[:, :, None] * column[:, None, :] / np.maximum(column[:, held], 1e-300)[:, None, None]
    left[:, held], left[:, :, held] = 0.0, 0.0
    return left


def _bfgs(metric: np.ndarray, s: np.ndarray, y: np.ndarray, fresh: np.ndarray) -> np.ndarray:
    """The inverse curvature after a step s along which the gradient fell by y; unchanged where it did not fall."""
    curved = np.einsum("gi,gi->g", s, y)
    fine = curved > 1e-12 * np.sqrt(np.einsum("gi,gi->g", s, s) * np.einsum("gi,gi->g", y, y) + 1e-300)
    rho = np.where(fine, 1.0 / np.where(fine, curved, 1.0), 0.0)
    size_of_y = np.einsum("gi,gi->g", y, y)
    scale = np.where(fresh & fine, curved / np.where(size_of_y > 0, size_of_y, 1.0), 1.0)
    metric = metric * scale[:, None, None]
    left = np.eye(s.shape[1]) - rho[:, None, None] * s[:, :, None] * y[:, None, :]
    updated = left @ metric @ np.swapaxes(left, 1, 2) + rho[:, None, None] * s[:, :, None] * s[:, None, :]
    return np.where(fine[:, None, None], updated, metric)


def _hold(gradient: np.ndarray, held: int) -> np.ndarray:
    if held >= 0:
        gradient = gradient.copy()
        gradient[:, held] = 0.0
    return gradient


def _finite(found: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Values that are not numbers count as bottomless, with a flat slope."""
    value, gradient, *products = found
    bad = ~np.isfinite(value) | ~np.isfinite(gradient).all(axis=1)
    calm = [np.where(np.isfinite(one), one, 0.0) for one in products]
    return np.where(bad, -1e10, value), np.where(bad[:, None], 0.0, gradient), *calm
