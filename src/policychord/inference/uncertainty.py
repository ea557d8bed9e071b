"""How sure: curvature and sandwich errors, profile intervals, correlations, and a verdict for each parameter.

Everything is computed for all groups at once; one likelihood is the case of a single group.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import ndtri

from .likelihoods import Likelihood, scores, sums_of
from .optimise import Progress, Record, objective_of, report
from .parameters import FARTHEST, Parameter, at_bound, free_names
from .search import Estimate, Objective, keep_higher, maximise_groups, part_of

STEP = 1e-3  # of the central differences that give the curvature, on the unconstrained scale
LEVEL = 0.95  # of intervals
PROFILED = 0.05  # standard errors from the mode at which a run of a profile ends
WIDEST = 6.0  # a profile that is still inside after so many units of z (a factor of 400) is open
VAGUE = float(np.log(10.0))  # an interval wider than a factor of ten (of values, or of odds) hides the magnitude
MOST_CORRELATED = 0.9  # two parameters beyond this can hardly be distinguished
LARGEST_EPS = 30.0  # above it the weights stay at the prior, whatever the cost
LEAST_MOVEMENT = 0.01  # weights whose standard deviation over decisions is below this do not gate
HIGHER = 0.05  # nats by which a point met by a profile must be higher than the optimum to be another mode

Grade = Literal["identified", "weakly identified", "not identified"]


class Verdict(NamedTuple):
    """Whether the data say what a parameter is, and why not."""

    name: str
    grade: Grade
    reasons: tuple[str, ...]


class Uncertainty(NamedTuple):
    """Errors of z. `covariance` is the inverse curvature, `_sandwich` allows for dependence within clusters."""

    curvature: Float[np.ndarray, "K K"]
    covariance: Float[np.ndarray, "K K"]
    sandwich: Float[np.ndarray, "K K"]
    intervals: Float[np.ndarray, "K 2"]  # -inf or inf where a profile is open
    flat: bool  # the curvature has a direction in which the likelihood does not fall
    profiled: tuple[int, ...] = ()  # numbers whose interval is a profile; the others have normal intervals
    higher: Float[np.ndarray, " K"] | None = None  # a point that is higher than the optimum, if a profile met one

    @property
    def errors(self) -> Float[np.ndarray, " K"]:
        """Standard errors from the curvature."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def robust_errors(self) -> Float[np.ndarray, " K"]:
        """Standard errors from the sandwich."""
        return np.sqrt(np.diag(self.sandwich))

    @property
    def correlation(self) -> Float[np.ndarray, "K K"]:
        """Correlations of the estimates, from the curvature."""
        return correlation_of(self.covariance)


def curvature(objective: Objective, z: np.ndarray) -> Float[np.ndarray, "groups K K"]:
    """-d^2 L/dz^2 of every group, by central differences of the gradient."""
    everyone = np.arange(len(z))
    rows = []
    for j in range(z.shape[1]):
        ahead, behind = z.copy(), z.copy()
        ahead[:, j] += STEP
        behind[:, j] -= STEP
        rows.append((objective(behind, everyone)[1] - objective(ahead, everyone)[1]) / (2 * STEP))
    matrix = np.stack(rows, axis=1) if rows else np.zeros((len(z), 0, 0))
    return 0.5 * (matrix + np.swapaxes(matrix, 1, 2))


def covariance_of(given: Likelihood, z: np.ndarray, method: str = "map") -> Float[np.ndarray, "groups K K"]:
    """The inverse curvature of every group's objective at its estimate."""
    return inverse_of(curvature(objective_of(given, method), z))[0]


def draw_laplace(
    z: Float[np.ndarray, "groups K"], covariance: Float[np.ndarray, "groups K K"], draws: int, rng: np.random.Generator
) -> Float[np.ndarray, "draws groups K"]:
    """Draws of the Laplace approximation around everybody's estimate, z_g ~ N(estimate, covariance)."""
    values, vectors = np.linalg.eigh(covariance)
    noise = rng.normal(size=(draws, *z.shape))
    # a direction that the data leave open is drawn no wider than ten units: beyond, nothing changes
    return z + np.einsum("gij,dgj->dgi", vectors, noise * np.sqrt(np.clip(values, 0.0, 100.0)))


def inverse_of(matrix: np.ndarray) -> tuple[Float[np.ndarray, "groups K K"], Bool[np.ndarray, " groups"]]:
    """The inverse of curvatures (groups, K, K), and where they were flat; a flat direction gets an sd of 10^4."""
    if matrix.shape[-1] == 0:
        return matrix, np.zeros(len(matrix), bool)
    values, vectors = np.linalg.eigh(np.where(np.isfinite(matrix), matrix, 0.0))
    flat = values.min(axis=1) <= 1e-8
    held = np.maximum(values, 1e-8)
    return np.einsum("gij,gj,gkj->gik", vectors, 1.0 / held, vectors), flat


def correlation_of(covariance: Float[np.ndarray, "K K"]) -> Float[np.ndarray, "K K"]:
    """Correlations from covariances."""
    sd = np.sqrt(np.diag(covariance))
    return covariance / np.outer(sd, sd)


def _sandwich(given: Likelihood, z: np.ndarray, covariance: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """H^-1 ( sum over clusters of s_c s_c^T ) H^-1 C/(C - 1), with s_c the sum of a cluster's scores."""
    index = np.unique(clusters, return_inverse=True)[1].reshape(-1)
    count = int(index.max()) + 1
    per = sums_of(scores(given, z).gradient, index, count)
    if count < 2:
        return np.full_like(covariance, np.nan)
    per = per - per.mean(axis=0)
    return covariance @ (per.T @ per * (count / (count - 1))) @ covariance


def profile(
    objective: Objective, z: np.ndarray, value: np.ndarray, inverse: np.ndarray, which: int, level: float = LEVEL
) -> Float[np.ndarray, "groups 2"]:
    """The interval of one number of z in which 2 (L_max - L_profile) <= the chi-square quantile, for every group.

    All other numbers are estimated again at each point. The root of the deviance is close to a line, so the crossing is
    found by secants within a bracket. An end is infinite where the profile has not fallen enough WIDEST away, or at
    the border of the unconstrained scale.
    """
    wanted = float(ndtri(0.5 + level / 2))
    scored = len(objective(z[:1], np.zeros(1, int))) > 2  # then the products of scores replace the inverse curvature
    guess = None if scored else inverse
    sides = [_crossing(objective, z, value, inverse, which, sign, wanted, guess) for sign in (-1.0, 1.0)]
    return np.stack(sides, axis=1)


def beside(
    objective: Objective,
    starts: Sequence[np.ndarray],
    which: int,
    enough: np.ndarray,
    inverse: np.ndarray | None = None,
) -> Estimate:
    """The highest values that the other numbers allow while number `which` of z is held, from `starts` (groups, K).

    A run begins at the highest start. Where it ends lower than `enough` (groups), others begin at the other starts, and
    the highest end counts: a number must not be called impossible because one run stopped on its way.
    """
    points = np.clip(np.stack(starts), -FARTHEST, FARTHEST)
    groups = np.arange(points.shape[1])
    heights = np.stack([objective(start, groups)[0] for start in points])
    order = np.argsort(-np.where(np.isfinite(heights), heights, -np.inf), axis=0, kind="stable")

    def run(rank: np.ndarray, groups: np.ndarray) -> Estimate:
        guess = None if inverse is None else inverse[groups]
        start = points[rank[groups], groups]
        return maximise_groups(part_of(objective, groups), start, guess, steps=60, held=which, near=PROFILED)

    best = run(order[0], groups)
    for rank in order[1:]:
        if (groups := np.flatnonzero(best.log_posterior < enough)).size:
            keep_higher(best, run(rank, groups), groups)
    return best


def _crossing(
    objective: Objective,
    z: np.ndarray,
    value: np.ndarray,
    inverse: np.ndarray,
    which: int,
    sign: float,
    wanted: float,
    guess: np.ndarray | None,
) -> np.ndarray:
    count = len(z)
    sd = np.sqrt(np.maximum(inverse[:, which, which], 1e-12))
    farthest = np.minimum(WIDEST, np.maximum(FARTHEST - sign * z[:, which], 0.0))
    low, low_root = np.zeros(count), np.zeros(count)
    high, high_root = np.full(count, np.inf), np.full(count, np.inf)
    distance = np.minimum(wanted * np.minimum(sd, 1.5), farthest)
    here, at = z.copy(), np.zeros(count)
    slope = inverse[:, :, which] / inverse[:, which, which, None]
    end, open_ = np.full(count, np.nan), np.zeros(count, bool)
    for _ in range(14):
        active = np.flatnonzero(np.isnan(end) & ~open_)
        if active.size == 0:
            break
        # along the tangent, and straight: where a number is at its bound or hardly known the tangent leads anywhere
        tangent = here[active] + sign * slope[active] * (distance[active] - at[active])[:, None]
        starts = (tangent, here[active].copy(), z[active].copy())
        for begin in starts:
            begin[:, which] = z[active, which] + sign * distance[active]
        enough = value[active] - 0.5 * (wanted - 0.01) ** 2  # whatever is not clearly inside
        best = beside(part_of(objective, active), starts, which, enough, None if guess is None else guess[active])
        here[active], at[active] = best.z, distance[active]
        root = np.sqrt(2.0 * np.maximum(value[active] - best.log_posterior, 0.0))
        done = np.abs(root - wanted) < 0.01
        end[active[done]] = z[active[done], which] + sign * distance[active[done]]
        inside = root < wanted
        low[active], low_root[active] = (
            np.where(inside, distance[active], low[active]), np.where(inside, root, low_root[active]),
        )  # fmt: skip
        high[active], high_root[active] = (
            np.where(inside, high[active], distance[active]), np.where(inside, high_root[active], root),
        )  # fmt: skip
        open_[active] = inside & ~done & (distance[active] >= farthest[active] - 1e-9)
        bounded = np.isfinite(high)
        spread = np.where(bounded, high_root - low_root, 1.0)
        secant = low + (wanted - low_root) * np.where(bounded, (high - low) / np.maximum(spread, 1e-12), 0.0)
        inner = low + np.clip(secant - low, 0.05 * (high - low), 0.95 * (high - low))
        outer = np.where(low_root > 0.1, low * np.clip(1.05 * wanted / np.maximum(low_root, 0.1), 1.1, 3.0), 3.0 * low)
        distance = np.where(bounded, np.where(bounded, inner, 0.0), np.minimum(outer, farthest))
    still = np.isnan(end) & ~open_
    end[still] = z[still, which] + sign * 0.5 * (low + np.where(np.isfinite(high), high, low))[still]
    end[open_] = sign * np.inf
    return end


def uncertainty(
    given: Likelihood,
    z: np.ndarray,
    *,
    method: str = "ml",
    clusters: np.ndarray | None = None,
    profiles: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> Uncertainty:
    """Curvature, sandwich over `clusters` (units, each its own unless given) and profile intervals at an optimum.

    `profiles`: the numbers of z that are profiled, all unless given; the others get normal intervals. Ctrl-C
    leaves out the profiles that are not done: `profiled` says which are. A profile may meet a mode that no start had
    reached: `higher` is such a point.
    """
    objective = Record(given, method)
    value = objective(z[None], np.zeros(1, int))[0]
    bend = curvature(objective, z[None])
    covariance, flat = inverse_of(bend)
    clusters = np.arange(given.units) if clusters is None else np.asarray(clusters)
    wide = ndtri(0.5 + LEVEL / 2) * np.sqrt(np.diag(covariance[0]))
    intervals = np.stack([z - wide, z + wide], axis=-1)
    robust = _sandwich(given, z, covariance[0], clusters)
    done: list[int] = []
    wanted = range(len(z)) if profiles is None else profiles
    try:
        for j in wanted:
            report(progress, "profiles of the likelihood", len(done), len(wanted))
            intervals[j] = profile(objective, z[None], value, covariance, j)[0]
            done.append(j)
    except KeyboardInterrupt:
        pass
    higher = objective.z if objective.value > value[0] + HIGHER else None
    return Uncertainty(bend[0], covariance[0], robust, intervals, bool(flat[0]), tuple(done), higher)


def verdicts(
    parameters: Sequence[Parameter],
    z: np.ndarray,
    sure: Uncertainty,
    reasons: Mapping[str, str] | None = None,
) -> tuple[Verdict, ...]:
    """A verdict for each unconstrained number. `reasons` says of parameters, by name, why they cannot be identified.

    Not identified: at a bound, a profile open on both sides, a flat likelihood, or a reason that is given. Weakly: a
    profile open on one side, a correlation beyond .9 with another, or an interval that does not even tell the order of
    magnitude: wider than a factor of ten, in values of a positive number, in odds of a bounded one or of a simplex. A
    real number has no unit of its own, so no width is asked of it.
    """
    names, correlation = free_names(parameters), sure.correlation
    owners = [parameter for parameter in parameters for _ in range(parameter.free)]
    answers = []
    for j, (name, owner) in enumerate(zip(names, owners, strict=True)):
        hard, soft = [], []
        if at_bound(z[j]):
            hard.append("the estimate is at a bound")
        if reasons and owner.name in reasons:
            hard.append(reasons[owner.name])
        low, high = sure.intervals[j]
        if np.isinf(low) and np.isinf(high):
            hard.append("its profile is open on both sides")
        elif np.isinf(low) or np.isinf(high):
            soft.append(f"its profile is open {'below' if np.isinf(low) else 'above'}")
        elif high - low > VAGUE and owner.transform != "real":
            factor = np.exp(min(high - low, np.log(1e6)))  # beyond a million nobody asks how many millions
            soft.append(f"its interval spans a factor of {factor:.0f}: its order of magnitude is not known")
        soft += [f"its correlation with {other} is {correlation[i, j]:.2f}"
                 for i, other in enumerate(names) if i != j and abs(correlation[i, j]) > MOST_CORRELATED]  # fmt: skip
        grade: Grade = "not identified" if hard else "weakly identified" if soft else "identified"
        answers.append(Verdict(name, grade, tuple(hard + soft)))
    return tuple(answers)
