"""What an analysis found, in plain words and as tables."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..inference.findings import describe_comparison
from ..inference.recovery import ModelRecovery
from ..inference.selection import ESTABLISHED, UNDECIDED, compare_groups, not_excluded
from .beliefs import Trials
from .checks import CrossValidation, PredictiveCheck
from .compare import OURS, Analysis, Plan, Rival, Rivals, Selection, compare_models, weights_within_block
from .data import Choices, Task
from .estimate import Fitted, shrink
from .learners import LEARNERS, AbstractLearner
from .quality import CHANCE, FOLDS, Examination
from .simulate import SYNTHETIC


def model_table(fit: Analysis, examined: Examination | None = None) -> pd.DataFrame:
    """One row a model: summed log-likelihood, BIC and AIC, its place in the group comparison, and fit quality."""
    rows: list[dict[str, Any]] = []
    for k, (name, model) in enumerate(fit.models.items()):
        selection = fit.everything.selection
        rows.append(_scores(name, model) | {"expected_frequency": selection.expected[k], "XP": selection.xp[k],
                                            "PXP": selection.pxp[k]})  # fmt: skip
        if examined is not None:
            rows[-1] |= examined.total(name)
            gain = examined.comparison.difference(name, CHANCE)
            rows[-1] |= {"over_chance": gain.mean, "error": gain.error}
    return pd.DataFrame(rows)


def _scores(name: str, model: Fitted) -> dict[str, Any]:
    totals = {"log_likelihood": model.log_likelihood, "BIC": model.bic, "AIC": model.aic}
    return {"model": name, "parameters": model.parameters} | {key: value.sum() for key, value in totals.items()}


def weight_table(fit: Analysis) -> pd.DataFrame:
    """One row a trial: who, when, what was chosen, the weights, and how probable the choice was."""
    trials, row = fit.trials, np.arange(len(fit.trials.choice))
    columns = {"subject": trials.subject, "block": trials.block, "trial": trials.trial, "choice": trials.choice + 1}
    if trials.scored is not None:
        columns["scored"] = trials.scored
    columns |= {f"weight_{name}": fit.ours.composition.weights[:, k] for k, name in enumerate(fit.ours.primitives)}
    columns["p_choice"] = np.exp(fit.ours.composition.log_prob[row, trials.choice])
    columns["certified_distance"] = fit.ours.composition.distance
    columns["data"] = np.full(len(row), trials.source)
    return pd.DataFrame(columns)


def subject_table(fit: Analysis, examined: Examination | None = None) -> pd.DataFrame:
    """One row a subject and model: coefficients with errors and 95 % intervals, likelihood, fit quality."""
    every = dict.fromkeys(name for model in fit.models.values() for name in model.names)
    parts = []
    for name, model in fit.models.items():
        columns: dict[str, Any] = {"subject": model.subjects, "model": name}
        for label in every:
            k = model.names.index(label) if label in model.names else -1
            for prefix, values in (("coef", model.coef), ("se", model.error), ("low", model.low), ("high", model.high)):
                none = np.full(len(model.subjects), np.nan)
                columns[f"{prefix}_{label}"] = none if k < 0 or values is None else values[:, k]
        columns |= {"log_likelihood": model.log_likelihood, "BIC": model.bic, "AIC": model.aic}
        if examined is not None:
            columns |= {"trials": examined.trials, "chance": examined.chance / examined.trials,
                        "accuracy": examined.accuracy[name], "R2": examined.r2[name],
                        "held_out": examined.held_out[name]}  # fmt: skip
        parts.append(pd.DataFrame(columns | {"separated": model.separated}))
    return pd.concat(parts, ignore_index=True)


def describe(
    fit: Analysis,
    rivals: Rivals | None = None,
    examined: Examination | None = None,
    said: tuple[str, ...] = (),
    *checks: ModelRecovery | CrossValidation | PredictiveCheck | None,
) -> str:
    """The analysis in plain language, as Markdown; the tables are in files."""
    people, trials = len(np.unique(fit.trials.subject)), int(fit.trials.counts.sum())
    lines = [
        f"# Choices between {fit.trials.arms} arms: {fit.task_name}",
        "",
        f"Data: {_as_markdown(fit.trials.source)}; {people} {'person' if people == 1 else 'people'}, "
        f"{trials} scored trials.",
        *(_as_markdown(line) for line in (*said, *fit.notes)),
        f"From utilities to probabilities: {fit.link}." + _about_composed(fit),
    ]
    if SYNTHETIC in fit.trials.source:
        lines += ["", "**These choices are simulated. They say nothing about people.**"]
    lines += ["", "## Which model is the most frequent?", ""]
    if examined is not None:
        lines += [f"**Warning.** {_as_markdown(line)}\n" for line in examined.warnings]
    table = model_table(fit, examined).drop(columns=["AIC", "XP", "R2"], errors="ignore")
    lines += [verdict(fit), "", *_markdown(table), ""]
    if examined is not None:
        lines += [_about_quality(examined)]
    composes = f"; {OURS} has no coefficients besides those of {fit.ours.reference}" if fit.composed else ""
    lines += [
        f"- BIC: summed over people{composes}.",
        "- expected_frequency: the share of people who use the model, as far as can be told. PXP: the probability that "
        "more people use this model than any other, allowing for all of it being chance. BOR (Bayes omnibus risk): the "
        "probability that the models are equally frequent.",
        f"- A model is called the most frequent if its PXP is above {ESTABLISHED:g}; with a BOR above {UNDECIDED:g} "
        "nothing is established.",
    ]
    lines += _about_rivals(rivals.known() if rivals else [], fit.composed.reference if fit.composed else "")
    lines += _about_weights(fit) if fit.composed else []
    for check in checks:
        lines += _about_check(check)
    lines += _about_fits(fit)
    return "\n".join(lines) + "\n"


def _about_composed(fit: Analysis) -> str:
    if fit.composed is None:
        return ""
    return (f" The composed model mixes {', '.join(fit.ours.primitives)} at temperature {fit.eps:g}, to come close to "
            f"{fit.ours.reference}.")  # fmt: skip


def verdict(fit: Analysis) -> str:
    """Who won, how surely, and the composed model against its reference alone."""
    words = state(fit.everything) + _in_pairs(fit)
    if fit.composed is None:
        return words
    against, the = fit.ours.against_reference, "the Hybrid" if fit.ours.reference == "Hybrid" else fit.ours.reference
    return (f"{words} Against {the} alone, the composed model has a PXP of {_probability(against.pxp(OURS))} "
            f"(BOR {against.selection.bor:.3f}).")  # fmt: skip


def state(selected: Selection) -> str:
    """One sentence that holds: the most frequent model, or those that are not excluded, or nothing."""
    selection = selected.selection
    first, bor = int(selection.pxp.argmax()), selection.bor
    winner, pxp = selected.models[first], float(selection.pxp[first])
    if len(selected.models) == 1:
        return f"{winner} was fitted alone: name other models to compare it with."
    if bor > UNDECIDED:
        return (
            f"Nothing is established for all models together: the probability that all are equally frequent, and "
            f"differ by chance, is {bor:.2f} (BOR). {winner} comes first with a PXP of {_probability(pxp)}."
        )
    left = not_excluded(selection)
    if len(left) == 1:
        return (
            f"Of the models compared, {winner} is the most frequent: its PXP is {_probability(pxp)}. The probability "
            f"that all are equally frequent, and differ by chance, is {bor:.2g} (BOR)."
        )
    *others, last = (f"{selected.models[k]} ({_probability(float(selection.pxp[k]))})" for k in left)
    return (
        f"No single model is established. Not excluded are {', '.join(others)} and {last}, by their PXP. The "
        f"probability that all are equally frequent, and differ by chance, is {bor:.2g} (BOR)."
    )


def _in_pairs(fit: Analysis) -> str:
    """Where no model wins: which ones the first is established against alone. Models that nearly agree raise the BOR
    of all together, and hide that others are far behind.
    """
    everything = fit.everything
    if everything.selection.bor <= UNDECIDED and len(not_excluded(everything.selection)) == 1:
        return ""
    first = everything.models[int(everything.selection.pxp.argmax())]
    behind: list[str] = []
    level: list[str] = []
    for name in everything.models:
        if name != first:
            pair = compare_models(fit.models, (first, name))
            sure = pair.pxp(first) > ESTABLISHED and pair.selection.bor <= UNDECIDED
            (behind if sure else level).append(name)
    if not behind:
        return f" In pairs, {first} is not established against any of them."
    but = f", but not against {_listed(level)}" if level else ""
    return f" In pairs, {first} is established against {_listed(behind)}{but}."


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _probability(p: float) -> str:
    """Three digits, and never certainty."""
    return "over .999" if p >= 0.9995 else "below .001" if p < 0.0005 else f"{p:.3f}"


def _about_quality(examined: Examination) -> str:
    return " ".join([
        *describe_comparison(examined.comparison, unit="trial", reference=CHANCE),
        f"Chance is {examined.chance_per_trial:.4f} nats per trial.",
        "\n\n- `accuracy`: the share of choices to which a model gives the highest probability."
        f"\n- `held_out`: mean ln p of trials that the coefficients were not fitted to, in {FOLDS} folds of each "
        "person's blocks, or of stretches of trials if there is one block."
        "\n- `over_chance`: by how much that is better than chance, with its standard error over people (`error`).",
    ])  # fmt: skip


def _about_rivals(rivals: list[Rival], reference: str) -> list[str]:
    if not rivals:
        return []
    rows = pd.DataFrame(
        [{"composed against": rival.description, "PXP of composed": rival.pxp, "BOR": rival.bor,
          "log-likelihood": rival.log_likelihood} for rival in rivals]
    )  # fmt: skip
    return [
        "", "## Is it the primitives, or only a floor under improbable choices?", "", *_markdown(rows), "",
        f"A mixture of primitives never gives a choice a probability near zero, and {reference} sometimes does. The "
        f"first rows give {reference} such a floor, without primitives and without a parameter. Where the composed "
        f"model leads {reference} and is not established against these rows (PXP above {ESTABLISHED:g} with a BOR of "
        f"at most {UNDECIDED:g}), its lead is no evidence for composition. A floor that makes {reference} worse says "
        "nothing.",
    ]  # fmt: skip


def _about_weights(fit: Analysis) -> list[str]:
    course = weights_within_block(fit)
    mean = course.mean
    first, last = (fit.ours.primitives[int(mean[at].argmax())] for at in (0, -1))
    even = np.ptp(mean[0]) < 1e-6
    start = "At the first trial of a block nothing is known and all weigh the same" if even else (
        f"At the first trial of a block {first} weighs most ({mean[0].max():.2f})"
    )  # fmt: skip
    return [
        "", "## How the primitives are weighed", "",
        f"{start}; at the last trial {last} weighs most ({mean[-1].max():.2f}). The figure weights shows means over "
        "people, each person's blocks averaged first, with a standard error over people; weights.csv has every trial.",
        "",
        "These weights are what the composed model implies, not what the choices alone show: choices between "
        f"{fit.trials.arms} arms give {fit.trials.arms - 1} "
        f"{'number' if fit.trials.arms == 2 else 'numbers'} a trial, and the model divides "
        f"{'it' if fit.trials.arms == 2 else 'them'} among {len(fit.ours.primitives)} primitives. The certificate "
        "proves that the division is the model's optimum, and says nothing about people.",
    ]  # fmt: skip


def _about_check(check: ModelRecovery | CrossValidation | PredictiveCheck | None) -> list[str]:
    if isinstance(check, ModelRecovery):
        right = "; ".join(f"{name} {check.people[k, k]:.2f}" for k, name in enumerate(check.models))
        return ["", "## Recovery on this task", "",
                "People with the fitted coefficients of each model played the same task again, and all models were "
                f"fitted to them. Share of people whose least BIC is that of the model they use: {right}. A model "
                "that is "
                "not found again on this task cannot be found in these data.", "",
                *_markdown(recovery_table(check))]  # fmt: skip
    if isinstance(check, CrossValidation):
        best = max(check.models, key=check.mean)
        return ["", "## Predicting other people", "",
                f"With coefficients from other people, {best} predicts best: {check.mean(best):.4f} nats a trial, "
                "best in "
                f"{check.best_in(best)} of {len(check.score)} random splits. "
                + "; ".join(f"{name} {check.mean(name):.4f}" for name in check.models if name != best)
                + "."]  # fmt: skip
    if isinstance(check, PredictiveCheck):
        return ["", "## Posterior predictive check", "",
                "What people did, and what each model expects given what happened before (shares of trials, means over "
                "people):", "", *_markdown(check_table(check))]  # fmt: skip
    return []


def describe_task(task: Task) -> str:
    """What people know of the arms, in a sentence."""
    means = sorted(set(task.means.tolist()))
    same = f"{means[0]:g}" if len(means) == 1 else ", ".join(f"{m:g}" for m in task.means)
    spread = sorted(set(task.variance))
    variance = f"{spread[0]:g}" if len(spread) == 1 else ", ".join(f"{v:g}" for v in task.variance)
    if task.conditions:
        variance = "; ".join(f"{name} {', '.join(f'{v:g}' for v in values)}" for name, values in task.conditions)
    return (
        f"Task: {task.name}, {task.arms} arms, whose values have a mean of {same} and a variance of {variance}; "
        f"variance of a reward around its arm's value: {task.noise:g}."
    )


def describe_learner(plan: Plan) -> str:
    """How people learn, model by model where they differ, in a sentence."""
    by_learner: dict[str, list[str]] = {}
    for name, model in plan.models.items():
        by_learner.setdefault(_learner_text(model.learner or plan.learner), []).append(name)
    if len(by_learner) == 1:
        return f"Learner: {next(iter(by_learner))}."
    return "Learners: " + "; ".join(f"{text} ({', '.join(names)})" for text, names in by_learner.items()) + "."


def _learner_text(learner: AbstractLearner | None) -> str:
    if learner is None:
        return "kalman, with the task's mean, variance and noise"
    name = next((name for name, kind in LEARNERS.items() if type(learner) is kind), type(learner).__name__)
    return f"{name}, {' and '.join(learner.free)} fitted to each person" if learner.free else name


def describe_groups(choices: Choices, fit: Analysis) -> tuple[str, ...]:
    """Whether groups of people, if the table has some, use the models with the same frequencies."""
    if choices.group is None:
        return ()
    _, first = np.unique(choices.subject, return_index=True)
    label = choices.group[first]
    names = np.unique(label)
    if len(names) < 2:
        return ()
    if len(fit.models) < 2:
        return ()
    evidence = np.stack([model.log_evidence for model in fit.models.values()], axis=1)
    found = compare_groups({str(name): evidence[label == name] for name in names})
    sizes = ", ".join(f"{name} ({int((label == name).sum())})" for name in names)
    if found.same > ESTABLISHED:
        so = "They use the models with the same frequencies"
    elif found.same < 1 - ESTABLISHED:
        so = "They use the models with different frequencies"
    else:
        so = "Whether they use the models with the same frequencies is open"
    return (f"Groups: {sizes}. {so}: the probability that they are the same is {_probability(found.same)}.",)


def shrunk_table(plan: Plan, trials: Trials) -> pd.DataFrame:
    """One row a subject and model: coefficients drawn towards the group's by empirical Bayes, with errors."""
    parts = []
    for name, model in plan.models.items():
        found, group = shrink(model, trials)
        columns: dict[str, Any] = {"subject": found.subjects, "model": name}
        for k, label in enumerate(found.names):
            assert found.error is not None
            columns |= {f"coef_{label}": found.coef[:, k], f"se_{label}": found.error[:, k]}
        columns |= {"log_likelihood": found.log_likelihood, "log_evidence": found.log_evidence}
        parts.append(pd.DataFrame(columns).assign(rounds=group.rounds, converged=group.converged))
    return pd.concat(parts, ignore_index=True)


def recovery_table(recovery: ModelRecovery) -> pd.DataFrame:
    """One row a coefficient: how well it is found again."""
    return pd.DataFrame([parameter._asdict() for parameter in recovery.parameters]).rename(
        columns={"name": "coefficient"}
    )


def confusion_table(recovery: ModelRecovery) -> pd.DataFrame:
    """One row for each pair of a simulated and a fitted model."""
    return pd.DataFrame([
        {"simulated": a, "fitted": b, "least_BIC": recovery.people[i, j],
         "expected_frequency": recovery.frequency[i, j], "highest_PXP": recovery.won[i, j]}
        for i, a in enumerate(recovery.models) for j, b in enumerate(recovery.models)
    ])  # fmt: skip


def check_table(found: PredictiveCheck) -> pd.DataFrame:
    """One row for the people and one for each model."""
    rows = [{"who": "people"} | dict(zip(found.statistics, np.nanmean(found.observed, axis=0), strict=True))]
    for k, name in enumerate(found.models):
        rows.append({"who": name} | dict(zip(found.statistics, np.nanmean(found.expected[k], axis=0), strict=True)))
    return pd.DataFrame(rows)


def _about_fits(fit: Analysis) -> list[str]:
    separated = {name: int(model.separated.sum()) for name, model in fit.models.items() if model.separated.any()}
    lines = ["", "## What to know about the fits", ""]
    lines += [
        "Coefficients (subjects.csv) are each person's maximum-likelihood estimates, with a prior so weak that it only "
        "matters where there is no maximum, and with standard errors and 95 % "
        "intervals from the curvature, named by what they multiply: V, how much better an arm seems; RU, how "
        "much less is "
        "known of it; V/TU, the first in units of all that is uncertain. "
        "The evidence for a model is -BIC/2." + _about_certificates(fit),
    ]
    for name, count in separated.items():
        lines.append(
            f"{name}: for {count} of {len(fit.models[name].subjects)} people no finite coefficients fit best "
            "(`separated`): a weak prior holds them, and no standard errors are given."
        )
    return lines


def _about_certificates(fit: Analysis) -> str:
    if fit.composed is None:
        return ""
    return (
        " Every weight vector (weights.csv) comes with a proof: it lies within "
        f"{fit.ours.composition.distance.max():.1e} of the optimal one (certified_distance, summed over primitives)."
    )


def _as_markdown(text: str) -> str:
    """Text from outside, so that Markdown shows it and does not obey it."""
    # a colon, an underscore or a sign of a list does something in some places only: elsewhere it stays readable
    return re.sub(r"([\\`*{}\[\]<>|$&~@^]|(?<!\w)_|_(?!\w)|:(?=/)|^[=#+-]|(?<=www)\.)", r"\\\1", text)


def _markdown(table: pd.DataFrame) -> list[str]:
    def cell(value: Any) -> str:
        if not isinstance(value, float):
            return str(value)
        return f"{value:.2f}" if abs(value) >= 100 else f"{value:.4f}"

    rows = [" | ".join(map(cell, row)) for row in table.itertuples(index=False)]
    return [f"| {' | '.join(table.columns)} |", "|" + "---|" * len(table.columns), *(f"| {row} |" for row in rows)]
