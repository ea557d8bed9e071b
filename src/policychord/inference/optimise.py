"""`maximise`: the best parameters of one likelihood, from several starts; `estimate`: those of every group at once.

Both use the search of `maximise_groups`. Runs of `maximise` from many starts use a part of the data, which is cheap and
tells the modes apart; the best of them go on with all.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from .._types import ArrayLike
from .likelihoods import Likelihood, by_group, pooled, restrict
from .parameters import prior_of, size, unconstrained
from .search import NEAR, Estimate, Objective, finite, maximise_from_starts, maximise_groups

Progress = Callable[[str, int, int], Any]  # of (what is done, how far, of how much)
METHODS = {
    "ml": "maximum likelihood",
    "map": "with the declared priors",
    "secants": "no likelihood: steps by secants alone",
}
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


# --------------------------------------------------------------------------------------------- objectives


def objective_of(given: Likelihood, method: str = "ml", groups: int | None = None) -> Objective:
    """ln p(units of g | z_g), with `map` + ln p(z_g), of the groups that are asked for: value, gradient, products.

    With `secants` it gives no products: gradients of units say nothing about the curvature of what is no likelihood.
    """
    if method not in METHODS:
        known = ", ".join(f"{name!r} ({words})" for name, words in METHODS.items())
        raise ValueError(f"method = {method!r}: use one of {known}.")
    count = given.groups if groups is None else groups  # groups without any unit come last, or not at all
    order = np.argsort(given.group, kind="stable")
    edges = np.searchsorted(given.group[order], np.arange(count + 1))

    def objective(z: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, ...]:
        if np.array_equal(which, np.arange(count)):
            return by_group(given, z, method != "secants")
        part = restrict(given, np.concatenate([order[edges[g] : edges[g + 1]] for g in which]))
        part = part._replace(group=np.repeat(np.arange(len(which)), np.diff(edges)[which]))
        return by_group(part, z, method != "secants")

    if method != "map":
        return objective
    mean, precision = prior_of(given.parameters)
    return with_normal_prior(objective, mean, np.diag(precision))


def with_normal_prior(objective: Objective, mean: np.ndarray, precision: np.ndarray) -> Objective:
    """The objective and ln N(z; mean, precision^-1), with one mean (K) or one for each group (groups, K).

    Numbers without any precision have no prior.
    """
    some = np.diag(precision) > 0
    constant = 0.5 * (np.linalg.slogdet(precision[np.ix_(some, some)])[1] - some.sum() * np.log(2 * np.pi))

    def posterior(z: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, ...]:
        value, gradient, *products = objective(z, which)
        off = z - (mean if mean.ndim == 1 else mean[which])
        pull = off @ precision
        density = constant - 0.5 * np.einsum("gi,gi->g", off, pull)
        return value + density, gradient - pull, *(each + precision for each in products)

    return posterior


def log_posterior(given: Likelihood, z: np.ndarray, method: str = "ml") -> tuple[float, Float[np.ndarray, " K"]]:
    """The objective of all units under one z, and its gradient; -inf and zeros where they are not finite."""
    value, gradient, *_ = finite(objective_of(pooled(given), method)(np.asarray(z)[None], np.zeros(1, int)))
    return float(value[0]), gradient[0]


# ---------------------------------------------------------------------------------------------- estimates


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
    points = spread_starts(given, starts, seed) if np.ndim(starts) < 3 else np.asarray(starts, dtype=float)
    if points.ndim == 2:
        points = np.broadcast_to(points[:, None], (len(points), count, points.shape[1]))
    return maximise_from_starts(objective_of(given, method, count), points, near=near)


def improve(given: Likelihood, z: np.ndarray, steps: int = 1, near: float = NEAR) -> Float[np.ndarray, " K"]:
    """A point that is not lower than z, after so many steps up or so close to the mode, in standard errors."""
    return maximise_groups(objective_of(pooled(given)), z[None], steps=steps, near=near).z[0]


class Record:
    """An objective of one group that remembers the best point it was asked for, whatever interrupts a run."""

    def __init__(self, given: Likelihood, method: str):
        self.objective = objective_of(pooled(given), method)
        self.value, self.z, self.count = -np.inf, np.zeros(0), 0
        self.paths: list[list[float]] = []  # of each run the values that were higher than all before

    def __call__(self, z: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, ...]:
        answer = self.objective(z, which)
        value = float(finite(answer)[0][0])
        self.count += 1
        if value > self.value:
            self.value, self.z = value, np.array(z[0])
        if self.paths and value > max(self.paths[-1], default=-np.inf):
            self.paths[-1].append(value)
        return answer

    def run(self, start: np.ndarray, near: float) -> tuple[np.ndarray, float, bool]:
        """(where an optimisation run ends, its value, whether it arrived)."""
        self.paths.append([])
        mode = maximise_from_starts(self, start[None, None], near=near)
        return mode.z[0], float(mode.log_posterior[0]), bool(mode.converged[0])


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
    points = resume.starts if resume is not None else spread_starts(given, starts, seed)
    tried = np.full_like(points, np.nan) if resume is None else resume.tried.copy()
    heights = np.full(len(points), np.nan) if resume is None else resume.heights.copy()
    whole, part = Record(given, method), _part(given, seed)
    screen = whole if part is given else Record(part, method)
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
                values[i], _ = log_posterior(part, tried[i], method)
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
        whole.value, _ = log_posterior(given, whole.z, method)
    return answer(log_posterior(given, whole.z)[0], complete)


def finished(optimum: Optimum) -> Optimum:
    """The optimum of what is one step of a longer computation: Ctrl-C during the step ends all of it."""
    if not optimum.complete:
        raise KeyboardInterrupt
    return optimum


def report(progress: Progress | None, what: str, done: int, total: int) -> None:
    """Call `progress`, if there is any."""
    if progress is not None:
        progress(what, done, total)


def spread_starts(given: Likelihood, starts: int | ArrayLike, seed: int) -> Float[np.ndarray, "starts K"]:
    """The declared start, and points drawn around it, the same for a seed."""
    count = size(given.parameters)
    if not isinstance(starts, int | np.integer):
        points = np.atleast_2d(np.asarray(starts, dtype=float))
        if points.shape[1] != count:
            raise ValueError(f"starts has shape {points.shape}: pass (starts, {count}), or how many.")
        return points
    if starts < 1:
        raise ValueError(f"starts = {starts}: pass at least 1.")
    around = starts_around(unconstrained(given.parameters, {}), int(starts), 1, seed, SPREAD)[:, 0]
    return around if count else around[:1]


def starts_around(
    centre: np.ndarray, starts: int, groups: int, seed: int, spread: float = SPREAD
) -> Float[np.ndarray, "starts groups K"]:
    """Starts for every group: the centre, and points drawn around it."""
    offset = np.random.default_rng(seed).normal(size=(starts - 1, groups, len(centre)))
    return centre + spread * np.concatenate([np.zeros((1, groups, len(centre))), offset])


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
