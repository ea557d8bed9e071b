"""`recover_models`: would this experiment have told the models apart, and found their parameters?

Cohorts are simulated from every model at the estimates of the data, and all models are fitted to each cohort: rows of
the confusion table are the models that made the behaviour, columns those that were fitted to it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .comparison import Comparison, compare
from .likelihoods import Data, Model, likelihood
from .optimise import Progress, of_groups, with_declared_prior
from .parameters import free_names, natural
from .uncertainty import curvature, inverse_of

# of (model, natural values by name with a leading group axis, seed): the same experiment with simulated behaviour
SimulateModel = Callable[[Model, Mapping[str, Any], int], Data]
NORMAL = 1.96


class RecoveredParameter(NamedTuple):
    """How well one unconstrained number of simulated people is found again."""

    model: str
    name: str
    correlation: float  # of true and estimated values over people
    bias: float
    rmse: float
    coverage: float  # share of people whose 95% interval, from the curvature, holds the truth


class ModelRecovery(NamedTuple):
    """What became of cohorts of every model."""

    models: tuple[str, ...]
    parameters: tuple[RecoveredParameter, ...]
    people: Float[np.ndarray, "simulated fitted"]  # share of people whose least BIC is the fitted model's
    frequency: Float[np.ndarray, "simulated fitted"]  # expected frequencies by group selection, mean over cohorts
    won: Float[np.ndarray, "simulated fitted"]  # share of cohorts that the fitted model predicts best, held out


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
    models = sorted(models, key=lambda model: model.name)
    names = tuple(model.name for model in models)
    people, frequency, won = (np.zeros((len(names), len(names))) for _ in range(3))
    parameters: list[RecoveredParameter] = []
    for row, model in enumerate(models):
        truth = comparison.score(model.name).z
        theta = jax.vmap(lambda z, model=model: natural(model.parameters, z))(jnp.asarray(truth))
        estimates, inside = [], []
        for cohort in range(cohorts):
            if progress is not None:
                progress(f"recovery: people who use {model.name}", row * cohorts + cohort, len(names) * cohorts)
            data = simulate(model, theta, seed + cohort * len(names) + row)
            again = compare(models, data, own=True, references=(), **settings)
            bic = np.stack([again.score(name).bic for name in names], axis=1)
            people[row] += np.bincount(bic.argmin(axis=1), minlength=len(names)) / len(bic)
            won[row, names.index(again.scores[0].name)] += 1
            if again.selection is not None:
                frequency[row] += again.selection.expected
            z = again.score(model.name).z
            given = likelihood(model, data.units, groups=data.subject, weight=settings.get("weight"))
            objective = with_declared_prior(of_groups(given, products=True), given, settings.get("method", "map"))
            error = np.sqrt(np.einsum("gii->gi", inverse_of(curvature(objective, z))[0])) if z.shape[1] else z
            estimates.append(z)
            inside.append(np.abs(z - truth) <= NORMAL * error)
        parameters += _recovered(model, truth, np.stack(estimates), np.stack(inside))
    return ModelRecovery(names, tuple(parameters), people / cohorts, frequency / cohorts, won / cohorts)


def _recovered(model: Model, truth: np.ndarray, estimates: np.ndarray, inside: np.ndarray) -> list[RecoveredParameter]:
    rows = []
    for k, name in enumerate(free_names(model.parameters)):
        off = estimates[..., k] - truth[:, k]
        wanted, got = np.broadcast_to(truth[:, k], off.shape).ravel(), estimates[..., k].ravel()
        varies = np.std(wanted) * np.std(got) > 0
        correlation = float(np.corrcoef(wanted, got)[0, 1]) if varies else float("nan")
        rmse = float(np.sqrt(np.mean(off**2)))
        rows.append(RecoveredParameter(model.name, name, correlation, float(off.mean()), rmse, inside[..., k].mean()))
    return rows
