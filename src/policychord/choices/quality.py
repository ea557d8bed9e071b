"""How well models fit, always: chance, accuracy, pseudo-R2, held-out likelihood; and warnings that belong to a verdict.

Held-out: a person's coefficients are estimated without a fold and predict it. Folds are blocks, or stretches of trials
where there is one block. Beliefs run through everything, because they use the past only.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..inference.selection import ESTABLISHED, UNDECIDED
from .beliefs import Trials
from .compare import OURS, Analysis, Comparison, Plan, borrow, compare_models, model_by_name
from .data import Choices, measure_task
from .glm import log_choice_prob, log_choice_slope
from .models import ChoiceModel, Fitted, Mixture, believed, coefficients_of, fit, is_regression, log_proba
from .schemas import features

FOLDS = 5
DELTA = "delta rule"  # the simple rival that is always tried
LEAST_GAIN = 0.05  # nats a trial over chance, held out: below it a model hardly explains anything
CLEAR = 10.0  # of BIC, summed over people: a difference that is not chance
SHIFT = 0.5  # deviations of a reward: a mean that is farther off than this is not the task's
MOST_NAMED = 8  # people in a warning
FACTOR = 4.0  # between variances that still belong together
_WEAK_SD = 10.0  # of a coefficient times its feature's size: the weak prior of regressions without a maximum


class Quality(NamedTuple):
    """How well each model explains each person's scored choices."""

    models: tuple[str, ...]
    people: np.ndarray
    trials: np.ndarray  # (people) that are scored
    chance: np.ndarray  # (people) ln p if every arm on offer were equally likely
    log_likelihood: np.ndarray  # (people, models)
    accuracy: np.ndarray  # (people, models) share of choices that the model holds for the most likely
    r2: np.ndarray  # (people, models) McFadden's pseudo-R2, 1 - ln p / chance
    held_out: np.ndarray  # (people, models) ln p of trials under coefficients estimated without them

    def total(self, model: str) -> dict[str, float]:
        """Over all people, a trial: accuracy, pseudo-R2 and held-out ln p."""
        k, share = self.models.index(model), self.trials / self.trials.sum()
        return {
            "accuracy": float(share @ self.accuracy[:, k]),
            "R2": float(1.0 - self.log_likelihood[:, k].sum() / self.chance.sum()),
            "held_out": float(self.held_out[:, k].sum() / self.trials.sum()),
        }

    @property
    def chance_per_trial(self) -> float:
        """ln p of a choice by chance."""
        return float(self.chance.sum() / self.trials.sum())


class Examination(NamedTuple):
    """What stands beside a verdict: fit quality, the delta rule for comparison, warnings."""

    quality: Quality
    delta: Fitted
    warnings: tuple[str, ...]


def examine(choices: Choices, found: Analysis, plan: Plan) -> Examination:
    """Fit quality of every model and of a simple delta rule, and what a reader of the verdict must know."""
    delta = model_by_name("delta", choices.task, "logit")
    specs = {**plan.everything, DELTA: delta}
    fits = {**found.models, DELTA: fit(delta, found.trials)}
    quality = _measure_quality(specs, fits, found.trials)
    warnings = (*_task_warnings(choices), *_fit_warnings(quality, fits), *_floor_warnings(found, plan))
    return Examination(quality, fits[DELTA], warnings)


def _measure_quality(specs: Mapping[str, ChoiceModel], fits: Mapping[str, Fitted], trials: Trials) -> Quality:
    """Accuracy, pseudo-R2 and held-out likelihood of models that are fitted."""
    people, who = np.unique(trials.subject, return_inverse=True)
    counts, row = trials.counts, np.arange(len(trials.choice))
    offered = np.full(len(row), trials.arms) if trials.offered is None else trials.offered.sum(1)

    def sums(values: np.ndarray) -> np.ndarray:
        return np.bincount(who, np.where(counts, values, 0.0), minlength=len(people))

    scored, chance = sums(np.ones(len(row))), sums(-np.log(offered))
    fold = folds_of(trials)
    known: list[tuple[ChoiceModel, np.ndarray]] = []
    accuracy, held_out = [], []
    for name, model in specs.items():
        log_prob = log_proba(model, trials, coefficients_of(fits[name], trials))
        best = log_prob >= log_prob.max(1, keepdims=True) - 1e-12
        accuracy.append(sums(best[row, trials.choice] / best.sum(1)) / scored)
        # a composed model has its reference's coefficients, without a fold as with it
        key = model._replace(change=None, parameters=0) if isinstance(model.change, Mixture) else model
        coef = next((rows for other, rows in known if _same(other, key)), None)
        if coef is None:
            coef = _coefficients_without(key, trials, fold, fits[name].coef)
            known.append((key, coef))
        held_out.append(sums(log_proba(model, trials, coef)[row, trials.choice]))
    log_likelihood = np.stack([fits[name].log_likelihood for name in specs], axis=1)
    return Quality(
        tuple(specs), people, scored.astype(int), chance, log_likelihood, np.stack(accuracy, axis=1),
        1.0 - log_likelihood / chance[:, None], np.stack(held_out, axis=1),
    )  # fmt: skip


def _same(one: ChoiceModel, other: ChoiceModel) -> bool:
    return one._replace(parameters=0) == other._replace(parameters=0)


def folds_of(trials: Trials, folds: int = FOLDS) -> np.ndarray:
    """A fold for every trial, (trials): blocks in turn, or stretches of trials where a person has one block."""
    fold = np.zeros(len(trials.choice), dtype=int)
    for subject in np.unique(trials.subject):
        rows = np.flatnonzero(trials.subject == subject)
        _, block = np.unique(trials.block[rows], return_inverse=True)
        several = block.max() > 0
        fold[rows] = block % folds if several else np.arange(len(rows)) * folds // len(rows)
    return fold


def _coefficients_without(model: ChoiceModel, trials: Trials, fold: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """Coefficients for every trial that were estimated without its fold, (trials, coefficients)."""
    if not isinstance(model.reference, str) or coef.shape[1] == 0:
        return np.zeros((len(trials.choice), coef.shape[1]))
    if is_regression(model) and trials.offered is None:
        return _regress_folds(model, trials, fold, coef)
    from .estimate import climb_folds

    return climb_folds(model, trials, fold, coef)


def _regress_folds(model: ChoiceModel, trials: Trials, fold: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """Everybody's regressions without each fold, in step: Newton on expected information, with a weak prior."""
    seen = believed(model, trials, np.zeros((len(trials.choice), 0)))
    x = features(str(model.reference), seen)
    who = np.unique(trials.subject, return_inverse=True)[1]
    people, row = len(coef), np.arange(len(who))
    size = np.sqrt(np.mean((x - x.mean(1, keepdims=True)) ** 2, axis=(0, 1)))
    precision = np.diag((np.where(size > 0, size, 1.0) / _WEAK_SD) ** 2)
    answer = np.zeros((len(who), x.shape[2]))

    def sums(values: np.ndarray) -> np.ndarray:
        total = np.zeros((people, *values.shape[1:]))
        np.add.at(total, who, values)
        return total

    for left_out in np.unique(fold):
        weight = (trials.counts & (fold != left_out)).astype(float)

        def height(now: np.ndarray, weight: np.ndarray = weight) -> np.ndarray:
            log_p = log_choice_prob(x, now[who], model.link)[row, trials.choice]
            return np.bincount(who, weight * log_p, minlength=people) - 0.5 * np.einsum(
                "pf,fg,pg->p", now, precision, now
            )

        now = np.clip(coef, -_WEAK_SD / np.where(size > 0, size, 1.0), _WEAK_SD / np.where(size > 0, size, 1.0))
        value = height(now)
        for _ in range(30):
            slope = _log_choice_slope_rows(x, now[who], model.link)
            prob = np.exp(log_choice_prob(x, now[who], model.link))
            information = sums(np.einsum("t,to,tof,tog->tfg", weight, prob, slope, slope)) + precision
            gradient = sums(weight[:, None] * slope[row, trials.choice]) - now @ precision
            step = np.linalg.solve(information, gradient[..., None])[..., 0]
            aim = now + step
            reached = height(aim)
            for _halving in range(20):
                worse = reached < value - 1e-9
                if not worse.any():
                    break
                step[worse] /= 2
                aim = now + step
                reached = height(aim)
            now, gain, value = aim, reached - value, reached
            if np.abs(gain).max() < 1e-8:
                break
        here = fold == left_out
        answer[here] = now[who[here]]
    return answer


def _log_choice_slope_rows(x: np.ndarray, coef: np.ndarray, link: str) -> np.ndarray:
    """`log_choice_slope` with a row of coefficients for each trial, (trials, options, features)."""
    if link == "logit":
        prob = np.exp(log_choice_prob(x, coef, "logit"))
        return x - np.einsum("to,tof->tf", prob, x)[:, None]
    # the probit sees coefficients only by z = difference . coef: one feature with coefficient one has the same slope
    difference = x[:, 0] - x[:, 1]
    z = np.einsum("tf,tf->t", difference, coef)
    plain = log_choice_slope(np.stack([z, 0.0 * z], axis=1)[..., None], np.ones(1), "probit")[..., 0]
    ratio = np.divide(
        plain, z[:, None], out=np.sqrt(2 / np.pi) * np.tile([1.0, -1.0], (len(z), 1)), where=z[:, None] != 0
    )
    return ratio[..., None] * difference[:, None]


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


def _fit_warnings(quality: Quality, fits: Mapping[str, Fitted]) -> list[str]:
    """Where no model says much, or where a simple delta rule says more."""
    warnings = []
    mine = [name for name in quality.models if name != DELTA]
    gain = {name: quality.total(name)["held_out"] - quality.chance_per_trial for name in quality.models}
    best = max(mine, key=lambda name: gain[name])
    if gain[best] < LEAST_GAIN:
        warnings.append(
            f"No model explains much: the best held-out prediction ({best}) is {gain[best]:+.3f} nats a trial against "
            "chance. All models compared are nearly as bad as guessing."
        )
    total = {name: quality.log_likelihood[:, k].sum() - quality.chance.sum() for k, name in enumerate(quality.models)}
    if guessing := [name for name in mine if total[name] < 1.0]:
        warnings.append(f"No better than chance even on the trials they were fitted to: {', '.join(guessing)}.")
    scored = np.array([quality.models.index(name) for name in mine])
    lost = np.all(quality.held_out[:, scored] < quality.chance[:, None], axis=1)
    if lost.any() and gain[best] >= LEAST_GAIN:
        who = ", ".join(str(one) for one in quality.people[lost][:MOST_NAMED])
        more = f" and {int(lost.sum()) - MOST_NAMED} more" if lost.sum() > MOST_NAMED else ""
        warnings.append(
            f"Held-out trials of {int(lost.sum())} of {len(quality.people)} people are predicted worse than by chance, "
            f"by every model ({who}{more}): sums over people depend on them, so look at subjects.csv."
        )
    bic = {name: float(fits[name].bic.sum()) for name in quality.models}
    least = min(mine, key=lambda name: bic[name])
    if bic[DELTA] < bic[least] - CLEAR and gain[DELTA] > max(gain[name] for name in mine):
        warnings.append(
            f"A simple delta rule (a learning rate for each person) beats all of them: its BIC is lower than that of "
            f"the best ({least}) by {bic[least] - bic[DELTA]:.0f}, and it predicts held-out trials better "
            f"({gain[DELTA]:.3f} against {max(gain[name] for name in mine):.3f} nats a trial above chance). The "
            "learner "
            "is wrong for these data: try --learner delta, or add models with --models."
        )
    if (few := len(quality.people)) < 10:
        warnings.append(f"{few} people are few for statements about a group.")
    return warnings


def _floor_warnings(found: Analysis, plan: Plan) -> list[str]:
    """Where the composed model is established against its reference, and not against that with a floor under it."""
    base = plan.models[plan.reference]
    if not _leads(found.against_hybrid):
        return []
    floored = borrow(base._replace(change="clip"), found.trials, found.models[plan.reference])
    against = compare_models({plan.reference: floored, OURS: found.models[OURS]}, (plan.reference, OURS))
    if _leads(against):
        return []
    return [f"The lead of {OURS} over {plan.reference} may only be a floor under improbable choices: against "
            f"{plan.reference} clipped to [.01, .99], which has no primitives, its PXP is {against.pxp(OURS):.2f} with "
            f"a BOR of {against.selection.bor:.2f}, so that it is no evidence for composition."]  # fmt: skip


def _leads(found: Comparison) -> bool:
    return found.pxp(OURS) > ESTABLISHED and found.selection.bor <= UNDECIDED
