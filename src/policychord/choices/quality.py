"""How well models predict: all of them and chance on the same held-out trials, and warnings that belong to a verdict.

A person's coefficients are estimated without a fold and predict it. Folds are blocks, or stretches of trials where
there is one block. Beliefs run through everything, because they use the past only.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..inference.comparison import Comparison, Score, compare, estimate_without
from ..inference.findings import no_verdict
from ..inference.likelihoods import Model
from ..inference.selection import ESTABLISHED, UNDECIDED
from .beliefs import Trials
from .compare import OURS, Analysis, Plan, Selection, borrow, compare_models
from .data import Choices, measure_task
from .estimate import AT_ONCE, Fitted, choice_likelihood, coefficients_of, data_of, model_of, natural_rows, places_of
from .models import ChoiceModel, log_proba

FOLDS = 5
CHANCE = "chance"
LEAST_GAIN = 0.05  # nats per trial over chance, held out: below it a model hardly explains anything
SHIFT = 0.5  # deviations of a reward: a mean that is farther off than this is not the task's
MOST_NAMED = 8  # people in a warning
FACTOR = 4.0  # between variances that still belong together


class Examination(NamedTuple):
    """How well each model explains each person's scored choices, and what a reader of the verdict must know."""

    comparison: Comparison  # of all models and chance, held out
    people: np.ndarray
    trials: np.ndarray  # (people) that are scored
    chance: np.ndarray  # (people) summed ln p if every arm on offer were equally likely
    accuracy: dict[str, np.ndarray]  # (people) share of choices that the model holds for the most likely
    r2: dict[str, np.ndarray]  # (people) McFadden's pseudo-R2, 1 - ln p / chance
    held_out: dict[str, np.ndarray]  # (people) mean ln p of trials under coefficients estimated without them
    warnings: tuple[str, ...] = ()

    def total(self, model: str) -> dict[str, float]:
        """Over all trials: accuracy, pseudo-R2, and held-out ln p per trial."""
        score = self.comparison.score(model)
        return {
            "accuracy": float(self.trials @ self.accuracy[model] / self.trials.sum()),
            "R2": float(1.0 - score.log_likelihood.sum() / self.chance.sum()),
            "held_out": score.held_out,
        }

    @property
    def chance_per_trial(self) -> float:
        """ln p of a choice by chance."""
        return float(self.chance.sum() / self.trials.sum())


def examine(choices: Choices, analysis: Analysis, plan: Plan) -> Examination:
    """All models of a plan and chance on the same held-out trials, and what a reader of the verdict must know."""
    trials = analysis.trials
    examined = _measure(plan.everything, analysis.models, trials, compare_held_out(plan, analysis.models, trials))
    warnings = (*_task_warnings(choices), *_fit_warnings(examined), *_floor_warnings(analysis, plan))
    return examined._replace(warnings=warnings)


def compare_held_out(plan: Plan, fits: dict[str, Fitted], trials: Trials) -> Comparison:
    """The models of a plan and chance, everybody with coefficients of their own; errors are over people."""
    data, counts = data_of(trials)
    fold = folds_of(trials)
    fitted = {name: model for name, model in plan.models.items() if model.coefficients}
    others = {name: model for name, model in plan.everything.items() if name not in fitted}
    ready = [_ready(name, model, fits[name], trials, fold) for name, model in others.items()]
    models = [model_of(model, trials, name) for name, model in fitted.items()]
    begin = {name: np.asarray(fits[name].z)[None] for name in fitted}
    with jax.enable_x64(True):
        return compare(
            [*models, _CHANCE], data, own=True, fold=places_of(trials).spread(fold), weight=counts, begin=begin,
            references=(CHANCE,), ready=ready, at_once=AT_ONCE,
        )  # fmt: skip


def _chance(theta: Any, unit: Any) -> Any:
    arms = unit.belief.mean.shape[-1]
    offered = jnp.full(unit.choice.shape, arms) if unit.offered is None else jnp.sum(unit.offered, axis=-1)
    return -jnp.log(1.0 * offered)


_CHANCE = Model(CHANCE, (), _chance, "every arm on offer equally likely")


def _ready(name: str, model: ChoiceModel, fitted: Fitted, trials: Trials, fold: np.ndarray) -> Score:
    """The score of a model with the coefficients of its reference, without a fold as with it."""
    coef = np.zeros((len(fold), 0))
    z = np.zeros((len(fitted.subjects), 0)) if fitted.z is None else fitted.z
    if model.coefficients:
        given = choice_likelihood(model._replace(change=None), trials)
        with jax.enable_x64(True):
            without = estimate_without(given, places_of(trials).spread(fold), z)
            rows = natural_rows(given, without)  # (folds, people, coefficients)
        coef = rows[fold, np.searchsorted(fitted.subjects, trials.subject)]
    each = log_proba(model, trials, coef)[np.arange(len(fold)), trials.choice]
    return Score(name, "", fitted.parameters, z, fitted.log_likelihood, fitted.bic, each[trials.counts])


def _measure(
    specs: dict[str, ChoiceModel], fits: dict[str, Fitted], trials: Trials, comparison: Comparison
) -> Examination:
    people, who = np.unique(trials.subject[trials.counts], return_inverse=True)
    made = np.arange(len(trials.choice)), trials.choice

    def by_person(values: np.ndarray) -> np.ndarray:
        return np.bincount(who, values, minlength=len(people))

    scored, chance = by_person(np.ones(len(who))), by_person(comparison.score(CHANCE).each)
    accuracy = {}
    for name, model in specs.items():
        log_prob = log_proba(model, trials, coefficients_of(fits[name], trials))
        best = log_prob >= log_prob.max(1, keepdims=True) - 1e-12
        accuracy[name] = by_person((best[made] / best.sum(1))[trials.counts]) / scored
    return Examination(
        comparison, people, scored.astype(int), chance, accuracy,
        {name: 1.0 - fits[name].log_likelihood / chance for name in specs},
        {name: by_person(comparison.score(name).each) / scored for name in specs},
    )  # fmt: skip


def folds_of(trials: Trials, folds: int = FOLDS) -> np.ndarray:
    """A fold for every trial, (trials): blocks in turn, or stretches of trials where a person has one block."""
    fold = np.zeros(len(trials.choice), dtype=int)
    for subject in np.unique(trials.subject):
        rows = np.flatnonzero(trials.subject == subject)
        _, block = np.unique(trials.block[rows], return_inverse=True)
        several = block.max() > 0
        fold[rows] = block % folds if several else np.arange(len(rows)) * folds // len(rows)
    return fold


# -------------------------------------------------------------------------------------------- warnings


def fits_task(choices: Choices) -> bool:
    """Whether the rewards are of the kind that the task says."""
    return not _task_warnings(choices)


def _task_warnings(choices: Choices) -> list[str]:
    """Where the rewards are not those of the task that the beliefs were made for."""
    task = choices.task
    for arm in np.flatnonzero(np.asarray(task.variance) == 0):
        paid = choices.reward[(choices.choice == arm) & np.isfinite(choices.reward)]
        if task.name != "own data" and len(paid) and np.ptp(paid) > 0:
            return [f"The task says that arm {arm + 1} always pays the same, and it paid {paid.min():g} to "
                    f"{paid.max():g}: name the arms in the task's order with --arms, or let --experiment auto measure "
                    "the task. Beliefs, and what follows from them, are wrong as it is."]  # fmt: skip
    if task.name == "own data" and task == measure_task(choices):
        return []
    seen = measure_task(choices)
    moving = np.asarray(task.variance) > 0
    variance = float(np.mean(np.asarray(task.variance)[moving]))
    mean, found = float(np.mean(task.means[moving])), float(np.mean(seen.means[moving]))
    lines = []
    if abs(found - mean) > SHIFT * np.sqrt(variance + task.noise):
        lines.append(f"rewards have a mean of {found:.3g}, and the task says {mean:.3g} (--prior-mean)")
    for what, said, option in (("variance of values", variance, "--variance"), ("noise", task.noise, "--noise")):
        measured = seen.noise if what == "noise" else max(seen.variance)
        if not 1 / FACTOR <= measured / said <= FACTOR:
            lines.append(f"the {what} of the rewards is about {measured:.3g}, and the task says {said:.3g} ({option})")
    return [f"The task does not fit the data: {'; '.join(lines)}. Beliefs, and what follows from them, depend on "
            "these numbers; --experiment auto measures them."] if lines else []  # fmt: skip


def _fit_warnings(examined: Examination) -> list[str]:
    """Where no model says much, where one is no better than chance, and whom none predicts."""
    comparison, warnings = examined.comparison, []
    names = list(examined.accuracy)
    best = next(name for name in comparison.names if name != CHANCE)
    gain = comparison.score(best).held_out - comparison.score(CHANCE).held_out
    if lost := no_verdict(comparison, unit="trial", reference=CHANCE):
        warnings.append(lost)
    elif gain < LEAST_GAIN:
        warnings.append(
            f"No model explains much: the best held-out prediction ({best}) is {gain:+.3f} nats per trial against "
            "chance. All models compared are nearly as bad as guessing."
        )
    total = {name: comparison.score(name).log_likelihood.sum() - examined.chance.sum() for name in names}
    if guessing := [name for name in names if total[name] < 1.0]:
        warnings.append(f"No better than chance even on the trials they were fitted to: {', '.join(guessing)}.")
    below = np.all([examined.held_out[name] * examined.trials < examined.chance for name in names], axis=0)
    if below.any() and gain >= LEAST_GAIN:
        who = ", ".join(str(person) for person in examined.people[below][:MOST_NAMED])
        more = f" and {int(below.sum()) - MOST_NAMED} more" if below.sum() > MOST_NAMED else ""
        warnings.append(
            f"Held-out trials of {int(below.sum())} of {len(examined.people)} people are predicted worse than by "
            f"chance, by every model ({who}{more}): sums over people depend on them, so look at subjects.csv."
        )
    if (few := len(examined.people)) < 10:
        warnings.append(f"{few} people are few for statements about a group.")
    return warnings


def _floor_warnings(analysis: Analysis, plan: Plan) -> list[str]:
    """Where the composed model is established against its reference, and not against that with a floor under it."""
    if analysis.composed is None or not _leads(analysis.composed.against_reference):
        return []
    base = plan.models[plan.reference]
    floored = borrow(base._replace(change="clip"), analysis.trials, analysis.models[plan.reference])
    against = compare_models({plan.reference: floored, OURS: analysis.models[OURS]}, (plan.reference, OURS))
    if _leads(against):
        return []
    return [f"The lead of {OURS} over {plan.reference} may only be a floor under improbable choices: against "
            f"{plan.reference} clipped to [.01, .99], which has no primitives, its PXP is {against.pxp(OURS):.2f} with "
            f"a BOR of {against.selection.bor:.2f}, so that it is no evidence for composition."]  # fmt: skip


def _leads(against: Selection) -> bool:
    return against.pxp(OURS) > ESTABLISHED and against.selection.bor <= UNDECIDED
