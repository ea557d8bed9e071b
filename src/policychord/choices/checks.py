"""How well models predict and what can be found: held-out trials, warnings, recovery, other people, draws for ArviZ.

In `examine` a person's coefficients are estimated without a fold and predict it. Folds are blocks, or stretches of
trials where there is one block. Beliefs run through everything, because they use the past only.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..inference import Comparison, Difference, Model, ModelRecovery, compare, paired
from ..inference.comparison import Estimator, estimate_without
from ..inference.findings import no_verdict
from ..inference.optimise import Progress
from ..inference.recovery import Refitted, recover_cohorts
from ..inference.selection import ESTABLISHED, UNDECIDED
from .compare import Analysis, Plan, Selection, believe_by, borrow, compare_models, play_by
from .data import Choices
from .estimate import (
    AT_ONCE,
    CHANCE,
    Fitted,
    choice_likelihood,
    coefficients_of,
    data_of,
    draw_coefficients,
    fit,
    natural_rows,
)
from .learners import Trials
from .measure import mismatches
from .models import OURS, ChoiceModel, Mixture, log_proba
from .places import places_of
from .simulate import design_of

FOLDS = 5
LEAST_GAIN = 0.05  # nats per trial over chance, held out: below it a model hardly explains anything
EXPLODES = 1.0  # nats per trial below chance, held out: a person whose score says nothing but that the fit failed
MOST_NAMED = 8  # people in a warning
# of (model, number): choices of people, and their coefficients
Cohort = Callable[[str, int], tuple[Choices, np.ndarray]]


# ----------------------------------------------------------------------------------- held-out trials


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
    trials, fits = analysis.trials, analysis.models
    comparison = _compare_held_out(plan, fits, trials)
    people, who = np.unique(trials.subject[trials.counts], return_inverse=True)
    made = np.arange(len(trials.choice)), trials.choice

    def by_person(values: np.ndarray) -> np.ndarray:
        return np.bincount(who, values, minlength=len(people))

    scored, chance = by_person(np.ones(len(who))), by_person(comparison.score(CHANCE).each)
    accuracy = {}
    for name, model in plan.everything.items():
        log_prob = log_proba(model, trials, coefficients_of(fits[name], trials))
        best = log_prob >= log_prob.max(1, keepdims=True) - 1e-12
        accuracy[name] = by_person((best[made] / best.sum(1))[trials.counts]) / scored
    examined = Examination(
        comparison, people, scored.astype(int), chance, accuracy,
        {name: 1.0 - fits[name].log_likelihood / chance for name in accuracy},
        {name: by_person(comparison.score(name).each) / scored for name in accuracy},
    )  # fmt: skip
    warnings = (
        *mismatches(choices), *_undefined(plan, trials), *_fit_warnings(examined), *_floor_warnings(analysis, plan),
    )  # fmt: skip
    return examined._replace(warnings=warnings)


def _compare_held_out(plan: Plan, fits: Mapping[str, Fitted], trials: Trials) -> Comparison:
    """The models of a plan and chance, everybody with coefficients of their own; errors are over people.

    Coefficients are estimated once without each fold; the composed model has those of its reference.
    """
    data, counts = data_of(trials)
    fold, at = folds_of(trials), places_of(trials)
    by_unit = at.spread(fold)
    without = {name: _without(model, trials, by_unit, fits[name]) for name, model in plan.models.items()}

    def estimator(name: str, model: ChoiceModel) -> Estimator:
        base = plan.reference if isinstance(model.change, Mixture) else name
        return Estimator(
            name, fits[name].parameters, lambda: fits[name].coef, lambda fold, coef: without[base],
            lambda coef: at.spread(_log_p(model, trials, coef)),
        )  # fmt: skip

    models = [estimator(name, model) for name, model in plan.everything.items()]
    with jax.enable_x64(True):
        return compare([*models, _CHANCE], data, own=True, fold=by_unit, weight=counts, at_once=AT_ONCE)


def _chance(theta: Any, unit: Any) -> Any:
    arms = unit.belief.mean.shape[-1]
    offered = jnp.full(unit.choice.shape, arms) if unit.offered is None else jnp.sum(unit.offered, axis=-1)
    return -jnp.log(1.0 * offered)


_CHANCE = Model(CHANCE, (), _chance, "every arm on offer equally likely")


def _without(model: ChoiceModel, trials: Trials, fold: np.ndarray, fitted: Fitted) -> np.ndarray:
    """Coefficients estimated without each fold of units (blocks, or blocks by trials), (folds, people, K)."""
    if fitted.z is None:
        return np.zeros((int(fold.max()) + 1, len(fitted.coef), 0))
    given = choice_likelihood(model, trials)
    with jax.enable_x64(True):
        return natural_rows(given, estimate_without(given, fold, fitted.z))


def _held_out(model: ChoiceModel, trials: Trials, fold: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """ln p of every choice with the coefficients without its fold, which the beliefs of earlier trials have, too."""
    answer = np.zeros(len(fold))
    for k, rows in enumerate(coef):
        answer = np.where(fold == k, _log_p(model, trials, rows), answer)
    return answer


def _log_p(model: ChoiceModel, trials: Trials, coef: np.ndarray) -> np.ndarray:
    """ln p of every choice with everybody's coefficients, (people, K), or one row for all."""
    who = np.unique(trials.subject, return_inverse=True)[1] if len(coef) > 1 else np.zeros(len(trials.choice), int)
    return log_proba(model, trials, coef[who])[np.arange(len(who)), trials.choice]


def folds_of(trials: Trials, folds: int = FOLDS) -> np.ndarray:
    """A fold for every trial, (trials): blocks in turn, or stretches of trials where a person has one block."""
    fold = np.zeros(len(trials.choice), dtype=int)
    for subject in np.unique(trials.subject):
        rows = np.flatnonzero(trials.subject == subject)
        _, block = np.unique(trials.block[rows], return_inverse=True)
        fold[rows] = block % folds if block.max() > 0 else np.arange(len(rows)) * folds // len(rows)
    return fold


# ------------------------------------------------------------------------------------------ warnings


def _fit_warnings(examined: Examination) -> list[str]:
    """Where no model says much, where one is no better than chance, and whom none predicts."""
    comparison, names, warnings = examined.comparison, list(examined.accuracy), []
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
    parameters = {name: comparison.score(name).parameters for name in names}
    if guessing := [name for name in names if total[name] < 1.0 and parameters[name]]:
        warnings.append(f"No better than chance even on the trials they were fitted to: {', '.join(guessing)}.")
    below = np.all([examined.held_out[name] * examined.trials < examined.chance for name in names], axis=0)
    people = len(examined.people)
    if below.any() and gain >= LEAST_GAIN:
        who = ", ".join(str(person) for person in examined.people[below][:MOST_NAMED])
        more = f" and {int(below.sum()) - MOST_NAMED} more" if below.sum() > MOST_NAMED else ""
        warnings.append(
            f"Held-out trials of {int(below.sum())} of {people} people are predicted worse than by chance, by every "
            f"model ({who}{more}): sums over people depend on them, so look at subjects.csv."
        )
    warnings += _explosions(examined)
    return [*warnings, f"{people} people are few for statements about a group."] if people < 10 else warnings


def _undefined(plan: Plan, trials: Trials) -> list[str]:
    """Models with V/TU where both values are known exactly: there it has no value and is set to zero."""
    known = int((np.asarray(trials.variance).sum(axis=-1) <= 0).sum())
    names = [name for name, model in plan.everything.items() if "V/TU" in model.coefficients]
    if not known or not names:
        return []
    return [
        f"In {known} of {len(trials.choice)} trials all values are known exactly, so that V/TU is undefined and set to "
        f"0: {', '.join(names)} predict chance there, however clear the choice is. Compare these models with others "
        "without such trials."
    ]


def _explosions(examined: Examination) -> list[str]:
    """Who is predicted far worse than by chance, by whatever model, and the scores without them."""
    chance = examined.chance / examined.trials
    gain = {name: score - chance for name, score in examined.held_out.items()}
    worst = np.min(list(gain.values()), axis=0)
    who = np.flatnonzero(worst < -EXPLODES)
    if not len(who):
        return []
    listed = []
    for person in sorted(who, key=lambda person: worst[person])[:MOST_NAMED]:
        name = min(gain, key=lambda model: gain[model][person])
        listed.append(f"{examined.people[person]} ({name} {examined.held_out[name][person]:.2f})")
    more = f" and {len(who) - MOST_NAMED} more" if len(who) > MOST_NAMED else ""
    rest = np.setdiff1d(np.arange(len(worst)), who)
    trials = examined.trials[rest]
    without = "; ".join(f"{name} {float(trials @ values[rest] / trials.sum()):+.3f}" for name, values in gain.items())
    return [
        f"Held-out predictions of {len(who)} of {len(worst)} people are more than {EXPLODES:g} nat per trial worse "
        f"than chance, each with its worst model: {', '.join(listed)}{more}. Means over people follow them. "
        + (f"Without them, over chance: {without}." if len(rest) else "")
    ]


def _floor_warnings(analysis: Analysis, plan: Plan) -> list[str]:
    """Where the composed model is established against its reference, and not against that with a floor under it."""
    if analysis.composed is None or not _leads(analysis.composed.against_reference):
        return []
    name = plan.reference
    floored = borrow(plan.models[name]._replace(change="clip"), analysis.trials, analysis.models[name])
    against = compare_models({name: floored, OURS: analysis.models[OURS]}, (name, OURS))
    if _leads(against):
        return []
    return [f"The lead of {OURS} over {name} may only be a floor under improbable choices: against {name} clipped to "
            f"[.01, .99], which has no primitives, its PXP is {against.pxp(OURS):.2f} with a BOR of "
            f"{against.selection.bor:.2f}, so that it is no evidence for composition."]  # fmt: skip


def _leads(against: Selection) -> bool:
    return against.pxp(OURS) > ESTABLISHED and against.selection.bor <= UNDECIDED


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
        rng = np.random.default_rng((seed, number, names.index(name)))
        design, coef = design_of(choices, (seed, number)), fits[name].coef
        return play_by(plan, specs[name], choices, design, coef, rng), coef

    return recover_choices(plan, again, cohorts=cohorts, progress=progress)


def recover_choices(plan: Plan, cohort: Cohort, *, cohorts: int = 1, progress: Progress | None = None) -> ModelRecovery:
    """All models of a plan fitted to cohorts of each of them: which model is found, and how well its coefficients."""
    names = tuple(plan.everything)

    def refit(name: str, number: int) -> Refitted:
        simulated, coef = cohort(name, number)
        trials = believe_by(plan, simulated)
        fits = {other: fit(model, trials) for other, model in plan.models.items()}
        if plan.composes:
            fits[OURS] = borrow(plan.ours, trials, fits[plan.reference])
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
    person: np.ndarray | None = None  # (people, models), mean over trials and splits
    trials: np.ndarray | None = None  # (people) that are scored

    def best_in(self, model: str) -> int:
        """In how many splits the model predicts best."""
        return int((self.score.argmax(1) == self.models.index(model)).sum())

    def mean(self, model: str) -> float:
        """The mean over splits."""
        return float(self.score[:, self.models.index(model)].mean())

    def lead(self, model: str, other: str) -> Difference | None:
        """By how much a model predicts better than another, in nats per trial, with its error over people."""
        if self.person is None or self.trials is None:
            return None
        each = np.repeat(self.person, self.trials, axis=0)
        people = np.repeat(np.arange(len(self.person)), self.trials)
        return paired(each[:, self.models.index(model)], each[:, self.models.index(other)], people)


def predict_others(
    plan: Plan, trials: Trials, *, folds: int = 3, splits: int = 5, seed: int = 0, progress: Progress | None = None
) -> CrossValidation:
    """Leave out a share of the people, fit the others' choices together, and predict those left out."""
    people, who = np.unique(trials.subject, return_inverse=True)
    specs, first = plan.everything, places_of(trials).first
    pooled = {name: model._replace(pooled=True) for name, model in plan.models.items()}
    fits = {name: fit(model, trials) for name, model in pooled.items()}
    score, scored = np.zeros((splits, len(specs))), np.bincount(who[trials.counts], minlength=len(people))
    person = np.zeros((len(people), len(specs)))
    for split, fold in enumerate(folds_of_people(len(people), folds, splits, seed)[:, who]):
        if progress is not None:
            progress("predicting other people", split, splits)
        coef = {name: _without(model, trials, fold[first], fits[name]) for name, model in pooled.items()}
        for column, (name, model) in enumerate(specs.items()):
            base = plan.reference if isinstance(model.change, Mixture) else name
            log_p = _held_out(model, trials, fold, coef[base])
            score[split, column] = np.mean([log_p[(fold == k) & trials.counts].mean() for k in range(folds)])
            person[:, column] += np.bincount(who, np.where(trials.counts, log_p, 0.0)) / np.maximum(scored, 1) / splits
    return CrossValidation(tuple(specs), score, person, scored)


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


# ---------------------------------------------------------------------------------------------- ArviZ


def posterior_tree(model: ChoiceModel, fitted: Fitted, trials: Trials, *, draws: int = 200, seed: int = 0) -> Any:
    """Posterior (Laplace), log_likelihood by trial, observed and constant data, as the installed ArviZ reads them.

    An `InferenceData` before ArviZ 1.0, and an `xarray.DataTree` from then on or without ArviZ: `arviz.loo` takes it as
    it is. Draws come from the normal approximation around each person's estimate on the unconstrained scale; for a full
    posterior see the how-to with NumPyro.
    """
    import xarray as xr

    from ..inference.export import CHAINS, for_installed_arviz, without_rounding

    each = max(1, draws // CHAINS)
    coef = draw_coefficients(model, fitted, trials, CHAINS * each, seed)  # (draws, people, coefficients)
    who = np.searchsorted(fitted.subjects, trials.subject)
    row = np.arange(len(who))
    log_p = without_rounding(np.stack([log_proba(model, trials, draw[who])[row, trials.choice] for draw in coef]))
    kept = trials.counts
    coef, log_p = (part.reshape(CHAINS, each, *part.shape[1:]) for part in (coef, log_p))
    chain = {"chain": np.arange(CHAINS), "draw": np.arange(each)}
    # a slash in a name would be a path in a tree: V/TU is written V_per_TU
    names = [name.replace("/", "_per_") for name in model.coefficients]
    posterior = {name: (("chain", "draw", "person"), coef[..., k]) for k, name in enumerate(names)}
    made = {"subject": trials.subject, "block": trials.block, "trial": trials.trial, "reward": trials.reward}
    return for_installed_arviz(
        xr.DataTree.from_dict({
            "posterior": xr.Dataset(posterior, coords={**chain, "person": fitted.subjects}),
            "log_likelihood": xr.Dataset({"choice": (("chain", "draw", "row"), log_p[..., kept])}, coords=chain),
            "observed_data": xr.Dataset({"choice": (("row",), trials.choice[kept] + 1)}),
            "constant_data": xr.Dataset({name: (("row",), np.asarray(value)[kept]) for name, value in made.items()}),
        })
    )  # fmt: skip
