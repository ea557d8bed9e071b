"""Checks on the user's own task: recovery, other people, posterior predictive checks, draws for ArviZ."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np

from ..inference.comparison import estimate_without
from ..inference.optimise import Progress
from ..inference.recovery import ModelRecovery, Refitted, recover_cohorts
from .beliefs import Trials
from .compare import Plan, believe_by, borrow, compare_models
from .data import Choices
from .estimate import Fitted, choice_likelihood, coefficients_of, draw_coefficients, fit, natural_rows, places_of
from .models import ChoiceModel, Mixture, log_proba
from .simulate import design_of, play

if TYPE_CHECKING:
    import xarray as xr

STATISTICS = ("repeats", "stays after a win", "shifts after a loss", "takes the arm that paid best so far")
# of (model, number): choices of people, and their coefficients
Cohort = Callable[[str, int], tuple[Choices, np.ndarray]]


# ------------------------------------------------------------------------------------------- recovery


def recover(
    choices: Choices,
    plan: Plan,
    fits: Mapping[str, Fitted],
    *,
    cohorts: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> ModelRecovery:
    """People with the fitted coefficients of each model play the same task again, and all models are fitted to them.

    The task is that of the data (`design_of`): as many people, blocks and trials, and the rewards that were recorded.
    """
    specs = plan.everything
    names = tuple(specs)

    def again(name: str, number: int) -> tuple[Choices, np.ndarray]:
        design = design_of(choices, (seed, number))
        at = np.searchsorted(fits[name].subjects, design.subject)
        rng = np.random.default_rng((seed, number, names.index(name)))
        return play(design, choices.task, specs[name], fits[name].coef[at], rng), fits[name].coef

    return recover_choices(plan, again, cohorts=cohorts, progress=progress)


def recover_choices(plan: Plan, cohort: Cohort, *, cohorts: int = 1, progress: Progress | None = None) -> ModelRecovery:
    """All models of a plan fitted to cohorts of each of them: which model is found, and how well its coefficients."""
    names = tuple(plan.everything)

    def refit(name: str, number: int) -> Refitted:
        simulated, coef = cohort(name, number)
        trials = believe_by(plan, simulated)
        fits = {other: fit(model, trials) for other, model in plan.models.items()}
        if plan.composes:
            fits[names[-1]] = borrow(plan.ours, trials, fits[plan.reference])
        evidence = np.stack([fits[other].log_evidence for other in names], axis=1)
        first = int(compare_models(fits, names).selection.pxp.argmax())
        own = fits[name]
        assert own.low is not None
        assert own.high is not None
        return Refitted(coef, own.coef, own.low, own.high, evidence, first)

    parameters = {name: model.coefficients for name, model in plan.everything.items()}
    return recover_cohorts(parameters, refit, cohorts=cohorts, progress=progress)


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
    specs, made = plan.everything, (np.arange(len(who)), trials.choice)
    fold = folds_of_people(len(people), folds, splits, seed)[:, who]  # (splits, trials)
    coef = {name: _pooled_without(model, trials, fold, progress) for name, model in plan.models.items()}
    score = np.zeros((splits, len(specs)))
    for column, (name, model) in enumerate(specs.items()):
        rows = coef[plan.reference if isinstance(model.change, Mixture) else name]
        for split in range(splits):
            log_p = log_proba(model, trials, rows[split])[made]
            parts = [log_p[(fold[split] == k) & trials.counts].mean() for k in range(folds)]
            score[split, column] = np.mean(parts)
    return CrossValidation(tuple(specs), score)


def folds_of_people(people: int, folds: int, splits: int, seed: int = 0) -> np.ndarray:
    """Random splits of people into folds, (splits, people)."""
    if people < folds:
        raise ValueError(f"folds = {folds} with {people} people: use at most one fold a person.")
    fold = np.empty((splits, people), dtype=int)
    for split in range(splits):
        order = np.random.default_rng((seed, split)).permutation(people)
        for k, some in enumerate(np.array_split(order, folds)):
            fold[split, some] = k
    return fold


def _pooled_without(
    model: ChoiceModel, trials: Trials, fold: np.ndarray, progress: Progress | None = None
) -> np.ndarray:
    """Coefficients for every trial from the people outside its fold, (splits, trials, coefficients)."""
    if not model.coefficients:
        return np.zeros((*fold.shape, 0))
    given = choice_likelihood(model._replace(pooled=True), trials)
    first = places_of(trials).first
    rows = []
    with jax.enable_x64(True):
        whole = fit(model._replace(pooled=True), trials).z
        for split, each in enumerate(fold):
            if progress is not None:
                progress(f"predicting other people: {model.name}", split, len(fold))
            without = estimate_without(given, each[first], np.asarray(whole))
            rows.append(natural_rows(given, without[:, 0])[each])
    return np.stack(rows)


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

    from ..inference.export import without_rounding

    coef = draw_coefficients(model, fitted, trials, draws, seed)  # (draws, people, coefficients)
    who = np.searchsorted(fitted.subjects, trials.subject)
    row = np.arange(len(who))
    log_p = without_rounding(np.stack([log_proba(model, trials, one[who])[row, trials.choice] for one in coef]))
    kept = trials.counts
    chain = {"chain": [0], "draw": np.arange(draws)}
    # a slash in a name would be a path in a tree: V/TU is written V_per_TU
    names = [name.replace("/", "_per_") for name in model.coefficients]
    named = {name: (("chain", "draw", "person"), coef[None, :, :, k]) for k, name in enumerate(names)}
    who_made = {"subject": trials.subject, "block": trials.block, "trial": trials.trial, "reward": trials.reward}
    return xr.DataTree.from_dict({
        "posterior": xr.Dataset(named, coords={**chain, "person": fitted.subjects}),
        "log_likelihood": xr.Dataset({"choice": (("chain", "draw", "row"), log_p[None][:, :, kept])}, coords=chain),
        "observed_data": xr.Dataset({"choice": (("row",), trials.choice[kept] + 1)}),
        "constant_data": xr.Dataset({name: (("row",), np.asarray(value)[kept]) for name, value in who_made.items()}),
    })  # fmt: skip
