"""Checks on the user's own task: recovery, other people, posterior predictive checks, draws for ArviZ."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .beliefs import Trials, take
from .compare import Plan, believe_by, borrow, compare_models
from .data import Choices
from .models import ChoiceModel, Fitted, Mixture, coefficients_of, fit, is_regression, log_proba, names_of
from .simulate import design_of, play

if TYPE_CHECKING:
    import xarray as xr

Progress = Callable[[str, int, int], Any]  # of (what is done, how far, of how much)
STATISTICS = ("repeats", "stays after a win", "shifts after a loss", "takes the arm that paid best so far")


# ------------------------------------------------------------------------------------------- recovery


class Recovered(NamedTuple):
    """How well one coefficient of simulated people is found again."""

    model: str
    coefficient: str
    correlation: float  # of true and estimated values
    bias: float
    rmse: float
    coverage: float | None = None  # share of people whose 95 % interval holds the true value


class Recovery(NamedTuple):
    """What became of cohorts of every model."""

    models: tuple[str, ...]
    parameters: list[Recovered]
    best: np.ndarray  # (simulated, fitted) share of people whose least BIC is the fitted model's
    frequency: np.ndarray  # (simulated, fitted) expected frequencies by group selection, mean over cohorts
    won: np.ndarray  # (simulated, fitted) share of cohorts in which the fitted model has the highest PXP


def recover(
    choices: Choices,
    plan: Plan,
    fits: Mapping[str, Fitted],
    *,
    cohorts: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> Recovery:
    """People with the fitted coefficients of each model play the same task again, and all models are fitted to them.

    The task is that of the data (`design_of`): as many people, blocks and trials, and the rewards that were recorded.
    """
    specs = plan.everything
    names = tuple(specs)
    best, frequency, won = (np.zeros((len(names), len(names))) for _ in range(3))
    parameters: list[Recovered] = []
    for row, (name, model) in enumerate(specs.items()):
        true, found = fits[name].coef, []
        for cohort in range(cohorts):
            if progress is not None:
                progress(f"recovery: people who use {name}", row * cohorts + cohort, len(names) * cohorts)
            design = design_of(choices, (seed, cohort))
            at = np.searchsorted(fits[name].subjects, design.subject)
            rng = np.random.default_rng((seed, cohort, row))
            again = play(design, choices.task, model, true[at], rng)
            trials = believe_by(plan, again)
            refits = {other: fit(one, trials, engine="scoring") for other, one in plan.models.items()}
            every = {**refits, names[-1]: borrow(plan.ours, trials, refits[plan.reference])}
            evidence = np.stack([one.log_evidence for one in every.values()], axis=1)
            best[row] += np.bincount(evidence.argmax(1), minlength=len(names)) / len(evidence)
            selection = compare_models(every, names).selection
            frequency[row] += selection.expected
            won[row, selection.pxp.argmax()] += 1
            found.append(every[name])
        parameters += _recovered(name, true, found)
    return Recovery(names, parameters, best / cohorts, frequency / cohorts, won / cohorts)


def _recovered(name: str, true: np.ndarray, found: list[Fitted]) -> list[Recovered]:
    wanted = np.concatenate([true] * len(found))
    estimate = np.concatenate([one.coef for one in found])
    parts = []
    for k, label in enumerate(found[0].names):
        error, spread = estimate[:, k] - wanted[:, k], np.std(wanted[:, k]) * np.std(estimate[:, k])
        correlation = float(np.corrcoef(wanted[:, k], estimate[:, k])[0, 1]) if spread > 0 else float("nan")
        inside = [(one.low[:, k] <= true[:, k]) & (true[:, k] <= one.high[:, k])
                  for one in found if one.low is not None and one.high is not None]  # fmt: skip
        coverage = float(np.mean(inside)) if inside else None
        rmse = float(np.sqrt(np.mean(error**2)))
        parts.append(Recovered(name, label, correlation, float(np.mean(error)), rmse, coverage))
    return parts


# ---------------------------------------------------------------------------------------- other people


class CrossValidation(NamedTuple):
    """Predictive log-likelihood per trial of people left out, for each random split and model."""

    models: tuple[str, ...]
    score: np.ndarray  # (splits, models), mean over folds

    def best_in(self, model: str) -> int:
        """In how many splits the model predicts best."""
        return int((self.score.argmax(1) == self.models.index(model)).sum())

    def mean(self, model: str) -> float:
        """The mean over splits."""
        return float(self.score[:, self.models.index(model)].mean())


def predict_others(
    plan: Plan, trials: Trials, *, folds: int = 3, splits: int = 5, seed: int = 0, progress: Progress | None = None
) -> CrossValidation:
    """Leave out a share of the people, fit the others' choices together, and predict those left out."""
    people, who = np.unique(trials.subject, return_inverse=True)
    if len(people) < folds:
        raise ValueError(f"folds = {folds} with {len(people)} people: use at most one fold a person.")
    specs, scored = plan.everything, trials.counts
    score = np.zeros((splits, len(specs)))
    made = np.arange(len(who)), trials.choice
    for split in range(splits):
        if progress is not None:
            progress("predicting other people", split, splits)
        order = np.random.default_rng((seed, split)).permutation(len(people))
        fold = np.empty(len(people), dtype=int)
        for k, some in enumerate(np.array_split(order, folds)):
            fold[some] = k
        fold = fold[who]
        rows = {name: _pooled_without(model, trials, fold) for name, model in plan.models.items()}
        for column, (name, model) in enumerate(specs.items()):
            coef = rows[plan.reference if isinstance(model.change, Mixture) else name]
            score[split, column] = log_proba(model, trials, coef)[made][scored].mean()
    return CrossValidation(tuple(specs), score)


def _pooled_without(model: ChoiceModel, trials: Trials, fold: np.ndarray) -> np.ndarray:
    """Coefficients for every trial that were estimated from the people outside its fold, (trials, coefficients)."""
    pooled = model._replace(pooled=True)
    if not isinstance(model.reference, str):
        return np.zeros((len(fold), 0))
    if is_regression(model) and trials.offered is None:
        parts = [fit(pooled, take(trials, fold != k), engine="scoring").coef[0] for k in range(int(fold.max()) + 1)]
        return np.stack(parts)[fold]
    from .estimate import climb, climb_folds

    return climb_folds(model, trials, fold, climb(pooled, trials).coef, pooled=True)


# ------------------------------------------------------------------------------ posterior predictive checks


class PredictiveCheck(NamedTuple):
    """What people did and what the fitted models expect, one step ahead of the recorded history."""

    models: tuple[str, ...]
    statistics: tuple[str, ...]
    observed: np.ndarray  # (people, statistics) shares of trials; NaN where a person has no such trial
    expected: np.ndarray  # (models, people, statistics)
    trial: np.ndarray  # of a block
    observed_course: np.ndarray  # (people, trials) share that takes the arm that paid best so far
    expected_course: np.ndarray  # (models, people, trials)


def check_predictions(specs: Mapping[str, ChoiceModel], fits: Mapping[str, Fitted], trials: Trials) -> PredictiveCheck:
    """Do fitted models repeat, stay, shift and find the best arm as often as people do?

    Probabilities given what really happened before, so no chance is added: a model that is right differs from people
    by their own randomness only.
    """
    people, who = np.unique(trials.subject, return_inverse=True)
    masks = _statistics(trials)
    row = np.arange(len(who))
    numbers, at = np.unique(trials.trial, return_inverse=True)
    cell = who * len(numbers) + at

    def shares(hit: np.ndarray, asked: np.ndarray, index: np.ndarray, size: int) -> np.ndarray:
        count = np.bincount(index[asked], minlength=size)
        total = np.bincount(index[asked], hit[asked], minlength=size)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    def measure(prob: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = []
        for wanted, asked in masks:
            hit = (prob * wanted).sum(1)
            found.append(shares(hit, asked & trials.counts, who, len(people)))
        wanted, asked = masks[-1]
        course = shares((prob * wanted).sum(1), asked & trials.counts, cell, len(people) * len(numbers))
        return np.stack(found, axis=1), course.reshape(len(people), len(numbers))

    taken = np.zeros_like(trials.mean)
    taken[row, trials.choice] = 1.0
    observed, course = measure(taken)
    expected = [measure(np.exp(log_proba(model, trials, coefficients_of(fits[name], trials))))
                for name, model in specs.items()]  # fmt: skip
    return PredictiveCheck(
        tuple(specs), STATISTICS, observed, np.stack([one for one, _ in expected]), numbers, course,
        np.stack([one for _, one in expected]),
    )  # fmt: skip


def _statistics(trials: Trials) -> list[tuple[np.ndarray, np.ndarray]]:
    """(arms that count as a hit, trials that are asked), for each of STATISTICS."""
    reward = np.asarray(trials.reward, dtype=float)
    again = np.arange(trials.arms) == trials.previous[:, None]
    later = trials.previous >= 0
    before = np.concatenate([[0.0], reward[:-1]])  # only read where there is a trial before
    won = before > np.median(reward) if np.median(reward) < reward.max() else before >= reward.max()
    count, total = np.zeros(trials.arms), np.zeros(trials.arms)
    best = np.zeros_like(again)
    for t in range(len(reward)):
        if not later[t]:
            count[:], total[:] = 0.0, 0.0
        else:
            count[trials.choice[t - 1]] += 1
            total[trials.choice[t - 1]] += reward[t - 1]
        mean = np.where(count > 0, total / np.maximum(count, 1), -np.inf)
        best[t] = (mean == mean.max()) & (count > 0)
    return [(again, later), (again, later & won), (~again, later & ~won), (best, later)]


# ---------------------------------------------------------------------------------------------- ArviZ


def posterior_tree(
    model: ChoiceModel, fitted: Fitted, trials: Trials, *, draws: int = 200, seed: int = 0
) -> "xr.DataTree":
    """An xarray DataTree in ArviZ's groups: posterior (Laplace), log_likelihood by trial, observed and constant data.

    Draws come from the normal approximation around each person's estimate on the unconstrained scale; for a full
    posterior see the how-to with NumPyro.
    """
    import xarray as xr

    from ..inference.output import without_rounding
    from .estimate import draw_coefficients

    base = model._replace(change=None) if isinstance(model.change, Mixture) else model
    coef = draw_coefficients(base, fitted, trials, draws, seed)  # (draws, people, coefficients)
    who = np.searchsorted(fitted.subjects, trials.subject)
    row = np.arange(len(who))
    log_p = without_rounding(np.stack([log_proba(model, trials, one[who])[row, trials.choice] for one in coef]))
    kept = trials.counts
    chain = {"chain": [0], "draw": np.arange(draws)}
    # a slash in a name would be a path in a tree: V/TU is written V_per_TU
    names = [name.replace("/", "_per_") for name in names_of(base)]
    named = {name: (("chain", "draw", "person"), coef[None, :, :, k]) for k, name in enumerate(names)}
    who_made = {"subject": trials.subject, "block": trials.block, "trial": trials.trial, "reward": trials.reward}
    return xr.DataTree.from_dict({
        "posterior": xr.Dataset(named, coords={**chain, "person": fitted.subjects}),
        "log_likelihood": xr.Dataset({"choice": (("chain", "draw", "row"), log_p[None][:, :, kept])}, coords=chain),
        "observed_data": xr.Dataset({"choice": (("row",), trials.choice[kept] + 1)}),
        "constant_data": xr.Dataset({name: (("row",), np.asarray(value)[kept]) for name, value in who_made.items()}),
    })  # fmt: skip


__all__ = ["STATISTICS", "CrossValidation", "PredictiveCheck", "Recovered", "Recovery", "check_predictions",
           "posterior_tree", "predict_others", "recover"]  # fmt: skip
