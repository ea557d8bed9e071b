"""Would this experiment answer the question? `recover` and `recover_models` simulate it and estimate again.

`recover`: the parameters of a composed agent, at one point. `recover_models`: cohorts of every model at the estimates
of people, to which all models are fitted. `information` says without any estimate what a decision tells. All are a
power analysis: how many decisions a wanted error needs, and what cannot be distinguished.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float
from scipy.special import chdtri, ndtri

from .._types import require_float64
from .comparison import Comparison, compare
from .decisions import Family, Observations, family_of, likelihood_of_setup, log_weights, setup_of
from .fits import reasons_of
from .likelihoods import Data, Model, in_chunks, likelihood
from .optimise import Progress, objective_of, report, starts_around
from .parameters import Parameter, Theta, free_names, natural, unconstrained
from .search import Estimate, Objective, maximise_from_starts, maximise_groups
from .selection import select_models
from .uncertainty import (
    LEVEL,
    MOST_CORRELATED,
    Grade,
    Uncertainty,
    Verdict,
    beside,
    correlation_of,
    covariance_of,
    curvature,
    inverse_of,
    profile,
    verdicts,
)

Simulate = Callable[[Theta, int, int], Observations]  # of (theta, decisions, seed): an experiment, simulated
# of (model, natural values by name with a leading group axis, seed): the same experiment with simulated behaviour
SimulateModel = Callable[[Model, Mapping[str, Any], int], Data]
CLOSE = 1e-3  # standard errors from the mode at which a refit ends
AROUND = 0.5  # standard deviation of the starts around the declared one, on the unconstrained scale
NORMAL = float(ndtri(0.5 + LEVEL / 2))
WANTED = 0.1  # error on the unconstrained scale for which decisions are counted: 10% of a positive parameter


class Design(NamedTuple):
    """A family with the experiment in which it acts: what a plan of `policychord fit` needs."""

    family: Family
    simulate: Simulate
    description: str = "an own experiment"
    read: Callable[[Any], Observations] | None = None  # from an xarray dataset; None if there is only a simulation


class RecoveredParameter(NamedTuple):
    """How well one unconstrained number is found again in simulated behaviour."""

    model: str
    name: str
    correlation: float  # of true and estimated values; NaN if the truth does not vary
    bias: float
    rmse: float
    coverage: float  # share of 95% intervals, from the curvature, that hold the truth


class Recovery(NamedTuple):
    """What became of known parameters in `repeats` simulated experiments. All on the unconstrained scale."""

    names: tuple[str, ...]
    truth: Float[np.ndarray, " K"]
    decisions: int
    estimates: Float[np.ndarray, "repeats K"]
    errors: Float[np.ndarray, "repeats K"]  # from the curvature
    correlations: Float[np.ndarray, "K K"]  # median over experiments
    profiled: dict[str, Float[np.ndarray, "repeats 2"]]  # profile intervals, by name
    converged: Bool[np.ndarray, " repeats"]
    verdicts: tuple[tuple[Verdict, ...], ...] = ()  # (repeats, K): what each experiment would have found
    deviance: Mapping[str, Float[np.ndarray, " repeats"]] = MappingProxyType({})  # of the truth, by name

    @property
    def grades(self) -> dict[str, dict[str, float]]:
        """By name: the share of experiments that call the number identified, weakly or not identified."""
        grades = np.array([[verdict.grade for verdict in row] for row in self.verdicts])
        return {name: {grade: float(np.mean(grades[:, j] == grade)) for grade in get_args(Grade)}
                for j, name in enumerate(self.names)}  # fmt: skip

    @property
    def parameters(self) -> tuple[RecoveredParameter, ...]:
        """Bias, root of the mean squared error and coverage of each number."""
        ends = self.estimates - NORMAL * self.errors, self.estimates + NORMAL * self.errors
        truth = np.broadcast_to(self.truth, self.estimates.shape)
        return _recovered("composed", self.names, truth, self.estimates, *ends)

    @property
    def bias(self) -> Float[np.ndarray, " K"]:
        """Mean of the estimates less the truth."""
        return np.array([parameter.bias for parameter in self.parameters])

    @property
    def sd(self) -> Float[np.ndarray, " K"]:
        """Standard deviation of the estimates over experiments."""
        return self.estimates.std(axis=0, ddof=1)

    @property
    def needed(self) -> Float[np.ndarray, " K"]:
        """Decisions for an error of .1 on the unconstrained scale, from the median error of one experiment."""
        return self.decisions * (np.median(self.errors, axis=0) / WANTED) ** 2

    @property
    def pairs(self) -> tuple[tuple[str, str, float], ...]:
        """Parameters that can hardly be distinguished: |correlation| beyond .9."""
        return _pairs_of(self.names, self.correlations)


class Coverage(NamedTuple):
    """How often an interval holds the truth, with its own 95% interval."""

    share: float
    low: float
    high: float


class Information(NamedTuple):
    """Fisher information of one decision, at a point, over the observations of an experiment."""

    names: tuple[str, ...]
    z: Float[np.ndarray, " K"]
    matrix: Float[np.ndarray, "K K"]  # a decision
    covariance: Float[np.ndarray, "K K"]  # of one decision: divide by N
    flat: bool  # some direction is not determined at all

    @property
    def needed(self) -> Float[np.ndarray, " K"]:
        """Decisions for an error of .1 if all are free."""
        return np.diag(self.covariance) / WANTED**2

    @property
    def needed_alone(self) -> Float[np.ndarray, " K"]:
        """Decisions for an error of .1 if only this one is free."""
        return 1.0 / (np.maximum(np.diag(self.matrix), 1e-300) * WANTED**2)

    @property
    def correlation(self) -> Float[np.ndarray, "K K"]:
        """Of the estimates."""
        return correlation_of(self.covariance)

    @property
    def pairs(self) -> tuple[tuple[str, str, float], ...]:
        """Parameters that can hardly be distinguished."""
        return _pairs_of(self.names, self.correlation)


def needed_for(known: Recovery | Information, error: float) -> Float[np.ndarray, " K"]:
    """Decisions for a wanted error on the unconstrained scale: .1 is 10% of a positive parameter."""
    if not error > 0:
        raise ValueError(f"error = {error}: pass a positive number, such as 0.1 for 10% of a positive parameter.")
    return known.needed * (WANTED / error) ** 2


def recover(
    family: Family,
    theta: Theta,
    design: Simulate,
    repeats: int = 100,
    *,
    decisions: int = 1000,
    free: Sequence[Any] | None = None,
    fixed: Theta | None = None,
    profiles: Sequence[str] = (),
    tests: Sequence[str] = (),
    starts: int = 2,
    seed: int = 0,
    progress: Progress | None = None,
) -> Recovery:
    """Simulate `repeats` experiments of `decisions` decisions at `theta`, refit each, and compare with the truth.

    `profiles` names unconstrained numbers (`ln eps`) whose profile interval is found in every experiment. `tests` names
    some whose truth is only tested by the deviance 2 (L_max - L_profile(truth)): it is as often below the chi-square
    quantile as the profile interval holds the truth, which takes a tenth of the time. Runs begin at the declared
    values and around them, never at the truth.
    """
    require_float64()
    if repeats < 2:
        raise ValueError(f"repeats = {repeats}: pass at least 2.")
    fixed = {**_others(family, theta, free), **(fixed or {})}
    parameters = family_of(family, free, fixed)[1]
    names, truth = free_names(parameters), _truth(parameters, theta)
    if unknown := sorted({*profiles, *tests} - set(names)):
        raise ValueError(f"profiles or tests has {', '.join(unknown)}: the free numbers are {', '.join(names)}.")
    seen = design(theta, decisions * repeats, seed)
    seen = seen._replace(subject=np.arange(seen.size) // decisions)
    objective = objective_of(likelihood_of_setup(setup_of(family, seen, free, fixed)))
    total = 1 + len(profiles) + len(tests)
    report(progress, "refitting", 0, total)
    declared = unconstrained(parameters, {})
    best = maximise_from_starts(objective, starts_around(declared, starts, repeats, seed, AROUND), near=CLOSE)
    bend = curvature(objective, best.z)
    covariance, flat = inverse_of(bend)
    profiled, deviance = {}, {}
    for i, name in enumerate(profiles):
        report(progress, f"profiles of {name}", 1 + i, total)
        profiled[name] = profile(objective, best.z, best.log_posterior, covariance, names.index(name))
    for i, name in enumerate(tests):
        report(progress, f"tests of {name}", 1 + len(profiles) + i, total)
        deviance[name] = _deviance(objective, best, covariance, names.index(name), truth, declared)
    errors = np.sqrt(np.einsum("gii->gi", covariance))
    ends = best.z[:, :, None] + NORMAL * errors[:, :, None] * [-1.0, 1.0]
    for name, interval in profiled.items():
        ends[:, names.index(name)] = interval
    no_sandwich = np.full_like(bend[0], np.nan)
    graded = [
        verdicts(
            parameters, z, Uncertainty(bend[i], covariance[i], no_sandwich, ends[i], bool(flat[i])),
            reasons_of(parameters, z),
        )
        for i, z in enumerate(best.z)
    ]  # fmt: skip
    return Recovery(
        names=names,
        truth=truth,
        decisions=decisions,
        estimates=best.z,
        errors=errors,
        correlations=np.median([correlation_of(matrix) for matrix in covariance], axis=0),
        profiled=profiled,
        converged=best.converged,
        verdicts=tuple(graded),
        deviance=deviance,
    )


def _deviance(
    objective: Objective, best: Estimate, covariance: np.ndarray, j: int, truth: np.ndarray, declared: np.ndarray
) -> Float[np.ndarray, " repeats"]:
    """2 (L_max - L_profile(truth)) of number j. Another run to the mode begins where the profile ended."""
    slope = covariance[:, :, j] / covariance[:, j, j, None]
    tangent = best.z + slope * (truth[j] - best.z[:, j])[:, None]
    points = (tangent, best.z.copy(), np.tile(declared, (len(best.z), 1)))
    for start in points:
        start[:, j] = truth[j]
    below = beside(objective, points, j, np.full(len(best.z), np.inf))  # from every start
    top = maximise_groups(objective, below.z, near=CLOSE)
    return 2.0 * np.maximum(np.maximum(best.log_posterior, top.log_posterior) - below.log_posterior, 0.0)


def _recovered(
    model: str, names: Sequence[str], truth: np.ndarray, estimates: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[RecoveredParameter, ...]:
    """Of estimates and their intervals against the truth, (repeats, K) each."""
    rows = []
    for k, name in enumerate(names):
        off = estimates[:, k] - truth[:, k]
        varies = np.std(truth[:, k]) * np.std(estimates[:, k]) > 0
        correlation = float(np.corrcoef(truth[:, k], estimates[:, k])[0, 1]) if varies else float("nan")
        inside = float(np.mean((low[:, k] <= truth[:, k]) & (truth[:, k] <= high[:, k])))
        rmse = float(np.sqrt(np.mean(off**2)))
        rows.append(RecoveredParameter(model, name, correlation, float(off.mean()), rmse, inside))
    return tuple(rows)


def coverage(recovery: Recovery, name: str) -> tuple[Coverage, Coverage | None]:
    """How often the 95% interval of a number holds the truth: from the curvature, and from the profile if known.

    The second is from the intervals of `recover(profiles=...)`, or from the deviances of `recover(tests=...)`.
    """
    j = recovery.names.index(name)
    truth = recovery.truth[j]
    wald = _coverage(np.abs(recovery.estimates[:, j] - truth) <= NORMAL * recovery.errors[:, j])
    if name in recovery.profiled:
        return wald, _coverage((recovery.profiled[name][:, 0] <= truth) & (truth <= recovery.profiled[name][:, 1]))
    if name in recovery.deviance:
        return wald, _coverage(recovery.deviance[name] <= chdtri(1, 1 - LEVEL))
    return wald, None


def _coverage(inside: np.ndarray) -> Coverage:
    from scipy.stats import binomtest  # slow to import, and only this needs it

    low, high = binomtest(int(inside.sum()), len(inside)).proportion_ci(method="wilson")
    return Coverage(float(inside.mean()), float(low), float(high))


def information(
    family: Family,
    theta: Theta,
    observations: Observations,
    *,
    free: Sequence[Any] | None = None,
    fixed: Theta | None = None,
) -> Information:
    """sum_i p_i (d ln p_i)(d ln p_i)^T, the mean over observations: what one decision tells about theta.

    `observations` say which situations the experiment visits; their actions are not looked at.
    """
    require_float64()
    seen = observations._replace(action=np.zeros(observations.size, int))
    setup = setup_of(family, seen, free, {**_others(family, theta, free), **(fixed or {})})
    z = _truth(setup.parameters, theta)

    def log_mixture(z: Any, unit: Any) -> Any:
        problem = setup.choice(natural(setup.parameters, z), unit).problem
        return jnp.log(jnp.maximum(problem.pi @ jnp.exp(log_weights(problem)[0]), 1e-300))

    def of_unit(unit: Any) -> Any:
        log_p, push = jax.linearize(lambda z: log_mixture(z, unit), jnp.asarray(z))
        slope = jax.vmap(push)(jnp.eye(len(z)))  # (K, d), of one decision
        return (slope * jnp.exp(log_p)) @ slope.T

    program = jax.jit(lambda units: jax.lax.map(of_unit, units, batch_size=setup.at_once))
    matrix = in_chunks(program, setup.units, setup.at_once * 16).mean(axis=0)
    covariance, flat = inverse_of(matrix[None])
    return Information(free_names(setup.parameters), z, matrix, covariance[0], bool(flat[0]))


def _others(family: Family, theta: Theta, free: Sequence[Any] | None) -> dict[str, Any]:
    """The parameters of the truth that are not free: they are known in the refit."""
    recommended = family.free or family.parameters
    names = {getattr(each, "name", each) for each in (recommended if free is None else free)}
    return {name: value for name, value in theta.items() if name not in names}


def _truth(free: Sequence[Parameter], theta: Theta) -> Float[np.ndarray, " K"]:
    if missing := [parameter.name for parameter in free if parameter.name not in theta]:
        raise ValueError(f"theta has no {', '.join(missing)}: it needs a value for everything that is free.")
    return unconstrained(free, {parameter.name: theta[parameter.name] for parameter in free})


def _pairs_of(names: Sequence[str], correlation: np.ndarray) -> tuple[tuple[str, str, float], ...]:
    """Pairs whose correlation is beyond .9, strongest first."""
    pairs = [(names[i], names[j], float(correlation[i, j])) for i in range(len(names)) for j in range(i)]
    return tuple(sorted((pair for pair in pairs if abs(pair[2]) > MOST_CORRELATED), key=lambda pair: -abs(pair[2])))


# ------------------------------------------------------------------------------------------------------ models


class ModelRecovery(NamedTuple):
    """What became of cohorts of every model."""

    models: tuple[str, ...]
    parameters: tuple[RecoveredParameter, ...]
    people: Float[np.ndarray, "simulated fitted"]  # share of people whose least BIC is the fitted model's
    frequency: Float[np.ndarray, "simulated fitted"]  # expected frequencies by group selection, mean over cohorts
    won: Float[np.ndarray, "simulated fitted"]  # share of cohorts in which the fitted model comes first


class Refitted(NamedTuple):
    """All models fitted to one cohort of one model: the cohort's parameters, (people, K) each, and who explains it."""

    truth: Float[np.ndarray, "people K"]
    estimates: Float[np.ndarray, "people K"]
    low: Float[np.ndarray, "people K"]  # ends of 95% intervals
    high: Float[np.ndarray, "people K"]
    log_evidence: Float[np.ndarray, "people models"]
    first: int  # the model that comes first


def recover_cohorts(
    parameters: Mapping[str, Sequence[str]],
    refit: Callable[[str, int], Refitted],
    *,
    cohorts: int = 1,
    progress: Progress | None = None,
) -> ModelRecovery:
    """What `refit(model, number)` makes of several cohorts of every model; `parameters` has their names, by model."""
    names = tuple(parameters)
    people, frequency, won = (np.zeros((len(names), len(names))) for _ in range(3))
    rows: list[RecoveredParameter] = []
    for row, name in enumerate(names):
        refitted = []
        for number in range(cohorts):
            report(progress, f"recovery: people who use {name}", row * cohorts + number, len(names) * cohorts)
            cohort = refit(name, number)
            people[row] += np.bincount(cohort.log_evidence.argmax(axis=1), minlength=len(names)) / len(cohort.truth)
            frequency[row] += select_models(cohort.log_evidence).expected if len(names) > 1 else 1.0
            won[row, cohort.first] += 1
            refitted.append(cohort[:4])
        rows += _recovered(name, parameters[name], *(np.concatenate(part) for part in zip(*refitted, strict=True)))
    return ModelRecovery(names, tuple(rows), people / cohorts, frequency / cohorts, won / cohorts)


def recover_models(
    models: Sequence[Model],
    comparison: Comparison,
    simulate: SimulateModel,
    *,
    cohorts: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> ModelRecovery:
    """Simulate `cohorts` of every model at its estimates in `comparison`, fit all models to each, and compare.

    `settings` are those of `compare`: `fold`, `weight`, `starts`, ... People have parameters of their own.
    """
    known = {model.name: model for model in sorted(models, key=lambda model: model.name)}

    def refit(name: str, number: int) -> Refitted:
        model, truth = known[name], comparison.score(name).z
        data = simulate(model, natural(model.parameters, truth), seed + number * len(known) + list(known).index(name))
        again = compare(models, data, own=True, references=(), **settings)
        z = again.score(name).z
        given = likelihood(model, data.units, groups=data.subject, weight=settings.get("weight"))
        error = NORMAL * np.sqrt(np.einsum("gii->gi", covariance_of(given, z, settings.get("method", "map"))))
        evidence = np.stack([-again.score(other).bic / 2 for other in known], axis=1)
        return Refitted(truth, z, z - error, z + error, evidence, list(known).index(again.scores[0].name))

    parameters = {name: free_names(model.parameters) for name, model in known.items()}
    return recover_cohorts(parameters, refit, cohorts=cohorts, progress=progress)
