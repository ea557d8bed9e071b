"""`maximise`: the best parameters of one likelihood, from several starts; `estimate`: those of every group at once.

Both use the search of `maximise_groups`. Runs of `maximise` from many starts use a part of the data, which is cheap and
tells the modes apart; the best of them go on with all.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from .._types import ArrayLike
from .likelihoods import Likelihood, by_group, restrict
from .parameters import at_bound, prior_of, size, unconstrained
from .search import NEAR, Objective, maximise_from, maximise_from_starts, maximise_groups

Progress = Callable[[str, int, int], Any]  # of (what is done, how far, of how much)
SCREENED = 800  # units of the part on which many starts are tried
SCREENING = 0.3  # standard errors from a mode at which runs on it end: .05 nats, less than what tells two modes apart
SPREAD = 1.0  # standard deviation of the starts around the declared one, on the unconstrained scale
SAME_MODE = 0.02  # runs that end closer than this, in nats per hundred units, have the same mode
FINAL = 3  # modes at most that are followed with all data


class Optimum(NamedTuple):
    """The best point so far, and where all runs ended. It is data: hand it to `maximise` again to go on from it."""

    z: Float[np.ndarray, " K"]
    log_posterior: float  # log-likelihood, and the log prior's density in a MAP estimate
    log_likelihood: float
    starts: Float[np.ndarray, "starts K"]
    tried: Float[np.ndarray, "tried K"]  # where each finished run ended; NaN for one that was not done
    heights: Float[np.ndarray, " tried"]  # its log posterior on all data; NaN for one that was not done
    evaluations: int
    converged: bool
    complete: bool  # False if somebody interrupted it: then `z` is the best so far
    paths: tuple[Float[np.ndarray, " steps"], ...] = ()  # the objective at every step of each run on all data


class Point(NamedTuple):
    """The objective at a point, and its gradient; -inf and zeros where they are not finite."""

    value: float
    gradient: Float[np.ndarray, " K"]


class Estimate(NamedTuple):
    """Everybody's estimate."""

    z: Float[np.ndarray, "groups K"]
    log_posterior: Float[np.ndarray, " groups"]  # log-likelihood, and with `map` the log prior's density
    inverse: Float[np.ndarray, "groups K K"]  # about the covariance: what the search collected on its way
    converged: Bool[np.ndarray, " groups"]

    @property
    def at_bound(self) -> Bool[np.ndarray, "groups K"]:
        """Where a number ran to the border of the unconstrained scale."""
        return at_bound(self.z)


# --------------------------------------------------------------------------------------------- objectives


def of_groups(given: Likelihood, products: bool = False, groups: int | None = None) -> Objective:
    """The likelihoods of groups as an objective: only the units of the groups that are asked for are computed.

    With `products` it gives the outer products of the scores, too.
    """
    count = given.groups if groups is None else groups  # groups without any unit come last, or not at all
    order = np.argsort(given.group, kind="stable")
    edges = np.searchsorted(given.group[order], np.arange(count + 1))

    def objective(z: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, ...]:
        if np.array_equal(which, np.arange(count)):
            return by_group(given, z, products)
        part = restrict(given, np.concatenate([order[edges[g] : edges[g + 1]] for g in which]))
        return by_group(part._replace(group=np.repeat(np.arange(len(which)), np.diff(edges)[which])), z, products)

    return objective


def with_normal_prior(objective: Objective, mean: np.ndarray, precision: np.ndarray) -> Objective:
    """The objective and ln N(z; mean, precision^-1); numbers without any precision have no prior."""
    some = np.diag(precision) > 0
    constant = 0.5 * (np.linalg.slogdet(precision[np.ix_(some, some)])[1] - some.sum() * np.log(2 * np.pi))

    def posterior(z: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, ...]:
        value, gradient, *products = objective(z, which)
        pull = (z - mean) @ precision
        density = constant - 0.5 * np.einsum("gi,gi->g", z - mean, pull)
        return value + density, gradient - pull, *(each + precision for each in products)

    return posterior


def with_declared_prior(objective: Objective, given: Likelihood, method: str) -> Objective:
    """An objective of groups with the priors that the parameters declare; itself if `method` is not `map`."""
    mean, precision = prior_of(given.parameters)
    return objective if method != "map" else with_normal_prior(objective, mean, np.diag(precision))


def pooled(given: Likelihood, method: str = "ml") -> Objective:
    """The likelihood of all units under one z (with the declared priors if `map`) as the objective of a single group.

    With `secants` it has no products: gradients of units say nothing about the curvature of what is no likelihood.
    """
    together = given._replace(group=np.zeros(given.units, int))
    return with_declared_prior(of_groups(together, method != "secants"), given, method)


def log_posterior(given: Likelihood, z: np.ndarray, method: str = "ml") -> Point:
    """The log-likelihood (`ml`), or with the declared priors (`map`), and its gradient."""
    value, gradient, *_ = pooled(given, method)(np.asarray(z)[None], np.zeros(1, int))
    if not (np.isfinite(value[0]) and np.isfinite(gradient).all()):
        return Point(-np.inf, np.zeros(len(z)))
    return Point(float(value[0]), gradient[0])


# ------------------------------------------------------------------------------------------ all groups


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
    objective = with_declared_prior(of_groups(given, True, count), given, method)
    points = spread_starts(given, starts, seed) if np.ndim(starts) < 3 else np.asarray(starts, dtype=float)
    if points.ndim == 2:
        points = np.broadcast_to(points[:, None], (len(points), count, points.shape[1]))
    return Estimate(*maximise_from_starts(objective, points, near=near))


def improve(given: Likelihood, z: np.ndarray, steps: int = 1, near: float = NEAR) -> Float[np.ndarray, " K"]:
    """A point that is not lower than z, after so many steps uphill or so close to the mode, in standard errors."""
    return maximise_groups(pooled(given), z[None], steps=steps, near=near).z[0]


# ------------------------------------------------------------------------------------------- one likelihood


class _Record:
    """An objective of one group that remembers the best point it was asked for, whatever interrupts a run."""

    def __init__(self, objective: Objective):
        self.objective = objective
        self.value, self.z, self.count = -np.inf, np.zeros(0), 0
        self.paths: list[list[float]] = []  # of each run the values that were higher than all before

    def __call__(self, z: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, ...]:
        value, gradient, *products = self.objective(z, which)
        self.count += 1
        if np.isfinite(value[0]) and np.isfinite(gradient).all():
            if value[0] > self.value:
                self.value, self.z = float(value[0]), np.array(z[0])
            if self.paths and (not self.paths[-1] or value[0] > self.paths[-1][-1]):
                self.paths[-1].append(float(value[0]))
        return value, gradient, *products

    def run(self, start: np.ndarray, near: float) -> tuple[np.ndarray, float, bool]:
        """(where an optimisation run ends, its value, whether it arrived)."""
        self.paths.append([])
        mode = maximise_from(self, start[None], near=near)
        return mode.z[0], float(mode.value[0]), bool(mode.converged[0])


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
    between runs. Ctrl-C gives the best so far with `complete=False`; `resume` takes such an answer and does the rest.
    `keep` is handed such an answer after every run, to be stored. A run ends `near` standard errors from the mode.
    """
    if method not in ("ml", "map", "secants"):
        raise ValueError(
            f"method = {method!r}: use 'ml' (maximum likelihood), 'map' (with the declared priors) or 'secants' (no "
            "likelihood: steps by secants alone)."
        )
    points = resume.starts if resume is not None else spread_starts(given, starts, seed)
    tried = np.full_like(points, np.nan) if resume is None else resume.tried.copy()
    heights = np.full(len(points), np.nan) if resume is None else resume.heights.copy()
    whole, part = _Record(pooled(given, method)), _part(given, seed)
    screen = whole if part is given else _Record(pooled(part, method))
    if resume is not None and np.isfinite(resume.log_posterior):
        whole.value, whole.z, whole.count = resume.log_posterior, resume.z, resume.evaluations
        whole.paths = [list(path) for path in resume.paths]
    converged = bool(np.isfinite(heights).any())

    def answer(log_likelihood: float, complete: bool) -> Optimum:
        count = whole.count + (screen.count if screen is not whole else 0)
        paths = tuple(np.array(path) for path in whole.paths)
        return Optimum(whole.z, whole.value, log_likelihood, points, tried.copy(), heights.copy(), count,
                       converged and complete, complete, paths)  # fmt: skip

    def store() -> None:
        if keep is not None:
            keep(answer(whole.value, False))

    values, complete = np.full(len(points), -np.inf), True
    try:
        for i, start in enumerate(points):
            report(progress, "optimising from several starts", i, len(points) + FINAL)
            if np.isnan(tried[i]).any():
                tried[i], values[i], _ = screen.run(start, SCREENING)
                store()
            else:
                values[i] = log_posterior(part, tried[i], method).value
        for rank, i in enumerate(_distinct(values, part.units)[:FINAL]):
            report(progress, "optimising with all data", len(points) + rank, len(points) + FINAL)
            if not np.isfinite(heights[i]):
                tried[i], heights[i], arrived = whole.run(tried[i], near)
                converged = converged or arrived
                store()
    except KeyboardInterrupt:
        complete = False
    if not whole.z.size and points.shape[1]:  # interrupted before anything was known of all data
        whole.z = screen.z if screen.z.size else points[0]
        whole.value = log_posterior(given, whole.z, method).value
    return answer(log_posterior(given, whole.z).value, complete)


def finished(optimum: Optimum) -> Optimum:
    """The optimum of what is one step of a longer computation: Ctrl-C during the step ends all of it."""
    if not optimum.complete:
        raise KeyboardInterrupt
    return optimum


def report(progress: Progress | None, what: str, done: int, total: int) -> None:
    """Call `progress`, if there is any."""
    if progress is not None:
        progress(what, done, total)


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


def _distinct(values: np.ndarray, units: int) -> list[int]:
    """The runs in order of value, one for each mode, and of those only modes that all data could make the highest.

    On a part of m units the difference of two modes is off by some sqrt(m) times a fraction of a nat; modes lower than
    three nats and that are left.
    """
    chosen: list[int] = []
    top = float(np.max(values))
    for i in np.argsort(-values, kind="stable"):
        near = any(abs(values[i] - values[j]) < SAME_MODE * units / 100 for j in chosen)
        if not near and values[i] > top - 3.0 - 0.1 * np.sqrt(units):
            chosen.append(int(i))
    return chosen
