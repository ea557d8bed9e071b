"""What an analysis found, in plain words and as tables."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..inference import ModelRecovery, compare_groups, detectable_difference, not_excluded
from ..inference.comparison import ALIKE
from ..inference.findings import as_markdown, no_verdict, table
from ..inference.parameters import FARTHEST
from ..inference.selection import ESTABLISHED, UNDECIDED
from .attitudes import Attitudes, attitude_table, describe_attitudes
from .checks import FOLDS, CrossValidation, Examination
from .compare import Analysis, Plan, Rival, Rivals, Selection, compare_models, weights_within_block
from .data import Choices
from .effects import MEAN, ModelEffects, describe_effects, effect_table
from .estimate import CHANCE, EFFECT, STARTS, Fitted, shrink
from .learners import LEARNERS, AbstractLearner, Trials
from .models import OURS, in_unit_of_rewards
from .predictive import PredictiveCheck, SequenceCheck, sequence_table
from .simulate import SYNTHETIC
from .tasks import describe_task

_UNIT = (
    "Primitives: the paper's definitions. Its risk is softmax(-variance), in squared units of the rewards: the same "
    "rewards in another unit would give other weights and another comparison of the composed model."
)
Check = ModelRecovery | CrossValidation | PredictiveCheck | SequenceCheck | ModelEffects | Attitudes | None


# ---------------------------------------------------------------------------------------------- tables


def model_table(fit: Analysis, examined: Examination | None = None) -> pd.DataFrame:
    """One row a model: summed log-likelihood, BIC and AIC, its place in the group comparison, and fit quality."""
    selection, rows = fit.everything.selection, []
    for k, (name, model) in enumerate(fit.models.items()):
        row = {"model": name, "parameters": model.parameters}
        row |= {key: float(values.sum()) for key, values in _scores(model).items()}
        row |= {"expected_frequency": selection.expected[k], "XP": selection.xp[k], "PXP": selection.pxp[k]}
        if examined is not None:
            gain = examined.comparison.difference(name, CHANCE)
            row |= examined.total(name) | {"over_chance": gain.mean, "error": gain.error}
        rows.append(row)
    return pd.DataFrame(rows)


def _scores(model: Fitted) -> dict[str, np.ndarray]:
    return {"log_likelihood": model.log_likelihood, "BIC": model.bic, "AIC": model.aic}


def weight_table(fit: Analysis) -> pd.DataFrame:
    """One row a trial: who, when, what was chosen, the weights, and how probable the choice was."""
    trials, composition = fit.trials, fit.ours.composition
    columns = {"subject": trials.subject, "block": trials.block, "trial": trials.trial, "choice": trials.choice + 1}
    columns |= {} if trials.scored is None else {"scored": trials.scored}
    columns |= {f"weight_{name}": composition.weights[:, k] for k, name in enumerate(fit.ours.primitives)}
    columns["p_choice"] = np.exp(composition.log_prob[np.arange(len(trials.choice)), trials.choice])
    return pd.DataFrame(columns).assign(certified_distance=composition.distance, data=trials.source)


def subject_table(fit: Analysis, examined: Examination | None = None, group: np.ndarray | None = None) -> pd.DataFrame:
    """One row a subject and model: coefficients with errors and 95% intervals, likelihood, fit quality, flags.

    `group` has everybody's, in the order of their names.
    """
    every = dict.fromkeys(name for model in fit.models.values() for name in model.names)
    parts = []
    for name, model in fit.models.items():
        columns: dict[str, Any] = {"subject": model.subjects, "model": name}
        columns |= {} if group is None else {"group": group}
        for label in every:
            for prefix, values in (("coef", model.coef), ("se", model.error), ("low", model.low), ("high", model.high)):
                known = None if label not in model.names else values
                columns[f"{prefix}_{label}"] = np.nan if known is None else known[:, model.names.index(label)]
        columns |= _scores(model)
        if examined is not None:
            columns |= {"trials": examined.trials, "chance": examined.chance / examined.trials,
                        "accuracy": examined.accuracy[name], "R2": examined.r2[name],
                        "held_out": examined.held_out[name]}  # fmt: skip
        parts.append(pd.DataFrame(columns | flags_of(model)))
    return pd.concat(parts, ignore_index=True)


def flags_of(model: Fitted) -> dict[str, np.ndarray]:
    """Flags of everybody's estimates."""
    never = np.zeros(len(model.separated), dtype=bool)
    bound, local = (never if flag is None else flag for flag in (model.at_bound, model.local))
    return {"separated": model.separated, "at_bound": bound, "local": local}


def group_of_people(choices: Choices) -> np.ndarray | None:
    """Everybody's group, in the order of their names, if the table has some."""
    if choices.group is None:
        return None
    return choices.group[np.unique(choices.subject, return_index=True)[1]].astype(str)


def coefficient_table(fit: Analysis, group: np.ndarray | None = None) -> pd.DataFrame:
    """Mean and standard deviation of every coefficient over people who have a standard error, by group."""
    rows = []
    for name, model in fit.models.items():
        if name == OURS or model.error is None or model.pooled:
            continue
        labels = np.full(len(model.coef), "all") if group is None else group
        for k, label in enumerate(model.names):
            for part in dict.fromkeys(labels.tolist()):
                values = model.coef[(labels == part) & np.isfinite(model.error[:, k]), k]
                mean, sd = (values.mean(), values.std(ddof=1)) if len(values) > 1 else (np.nan, np.nan)
                row = {"model": name, "coefficient": label} | ({} if group is None else {"group": part})
                rows.append(row | {"people": len(values), "mean": mean, "sd": sd})
    return pd.DataFrame(rows)


def shrunk_table(plan: Plan, trials: Trials) -> pd.DataFrame:
    """One row a subject and model: coefficients drawn towards the group's by empirical Bayes, with errors."""
    parts = []
    for name, model in plan.models.items():
        found, group = shrink(model, trials)
        assert found.error is not None
        columns: dict[str, Any] = {"subject": found.subjects, "model": name}
        for k, label in enumerate(found.names):
            columns |= {f"coef_{label}": found.coef[:, k], f"se_{label}": found.error[:, k]}
        columns |= {"log_likelihood": found.log_likelihood, "log_evidence": found.log_evidence}
        parts.append(pd.DataFrame(columns).assign(rounds=group.rounds, converged=group.converged))
    return pd.concat(parts, ignore_index=True)


def recovery_table(recovery: ModelRecovery) -> pd.DataFrame:
    """One row a coefficient: how well it is found again."""
    return pd.DataFrame([each._asdict() for each in recovery.parameters]).rename(columns={"name": "coefficient"})


def confusion_table(recovery: ModelRecovery) -> pd.DataFrame:
    """One row for each pair of a simulated and a fitted model."""
    return pd.DataFrame([
        {"simulated": a, "fitted": b, "least_BIC": recovery.people[i, j],
         "expected_frequency": recovery.frequency[i, j], "highest_PXP": recovery.won[i, j]}
        for i, a in enumerate(recovery.models) for j, b in enumerate(recovery.models)
    ])  # fmt: skip


def check_table(check: PredictiveCheck) -> pd.DataFrame:
    """One row for the people and one for each model."""
    shares = [np.nanmean(values, axis=0) for values in (check.observed, *check.expected)]
    table = pd.DataFrame(shares, columns=list(check.statistics))
    table.insert(0, "who", ["people", *check.models])
    return table


# ------------------------------------------------------------------------------------------- sentences


def verdict(fit: Analysis, examined: Examination | None = None) -> str:
    """Which model comes first, and the composed model against its reference; no verdict where no model beats chance."""
    if examined is not None and (lost := no_verdict(examined.comparison, unit="trial", reference=CHANCE)):
        return (
            f"No verdict. {lost} The models' frequencies compare models that are not established to predict anything."
        )
    words = " ".join([state(fit.everything), *_bonuses(fit)]) + _in_pairs(fit)
    if fit.composed is None:
        return words
    against, the = fit.ours.against_reference, "the Hybrid" if fit.ours.reference == "Hybrid" else fit.ours.reference
    return (f"{words} Against {the} alone, the composed model has a PXP of {_probability(against.pxp(OURS))} "
            f"(BOR {against.selection.bor:.3f}).")  # fmt: skip


def headline(fit: Analysis, examined: Examination) -> str:
    """The verdict in one sentence."""
    if no_verdict(examined.comparison, unit="trial", reference=CHANCE):
        return "No model is established to predict these choices better than chance."
    selection, names = fit.everything.selection, fit.everything.models
    if len(names) == 1:
        return f"{names[0]} predicts these choices better than chance; nothing else was compared with it."
    if selection.bor > UNDECIDED:
        return f"No model is established as the most frequent: all may be equally so (BOR {selection.bor:.2f})."
    left = [names[k] for k in not_excluded(selection)]
    if len(left) == 1:
        pxp = _probability(float(selection.pxp.max()))
        return f"{left[0]} is the most frequent of the models compared (PXP {pxp})."
    return f"No single model is established: {_listed(left)} are not excluded."


def judged(fit: Analysis) -> str:
    """The model whose estimates are shown: the first by PXP, or the one that lends it its coefficients."""
    first = fit.everything.models[int(fit.everything.selection.pxp.argmax())]
    return fit.ours.reference if first == OURS else first


def compared_cells(fit: Analysis, examined: Examination) -> tuple[list[str], list[list[str]]]:
    """(columns, rows) of the table of models, as text."""
    columns = ["model", "params", "log-lik.", "BIC", "accuracy", "held out", "over chance", "PXP"]
    rows = [
        [row["model"], str(row["parameters"]), f"{row['log_likelihood']:.2f}", f"{row['BIC']:.2f}",
         f"{row['accuracy']:.3f}", f"{row['held_out']:.4f}", f"{row['over_chance']:+.3f} ± {row['error']:.3f}",
         f"{row['PXP']:.4f}"]
        for row in model_table(fit, examined).to_dict("records")
    ]  # fmt: skip
    chance, each = float(examined.chance.sum()), f"{examined.chance_per_trial:.4f}"
    return columns, [*rows, ["(chance)", "0", f"{chance:.2f}", f"{-2 * chance:.2f}", "", each, "", ""]]


def _bonuses(fit: Analysis) -> list[str]:
    """The sign of the bonus for uncertainty, for the model that comes first and all that are not excluded."""
    names, selection = fit.everything.models, fit.everything.selection
    named = [names[int(selection.pxp.argmax())]]
    if selection.bor <= UNDECIDED and len(names) > 1:
        named = [names[k] for k in not_excluded(selection)]
    return [text for name in named if (text := _bonus(name, fit.models[name]))]


def _bonus(name: str, model: Fitted) -> str:
    if "RU" not in model.names:
        return ""
    size = model.coef[:, model.names.index("RU")]
    negative = int((size < 0).sum())
    sign, count = ("negative", negative) if 2 * negative > len(size) else ("positive", len(size) - negative)
    people = "" if model.pooled else f" in {count} of {len(size)} people (median {np.median(size):.3g})"
    so = ": most are averse to uncertainty" if sign == "negative" and count > 0.75 * len(size) > 1 else ""
    return f"The bonus for uncertainty of {name} is {sign}{people}{so}."


def state(selected: Selection) -> str:
    """One sentence that holds: the most frequent model, or those that are not excluded, or nothing."""
    selection, names = selected.selection, selected.models
    first, bor = int(selection.pxp.argmax()), selection.bor
    winner, pxp = names[first], _probability(float(selection.pxp[first]))
    if len(names) == 1:
        return f"{winner} was fitted alone: name other models to compare it with."
    if bor > UNDECIDED:
        return (
            f"Nothing is established for all models together: the probability that all are equally frequent, and "
            f"differ by chance, is {bor:.2f} (BOR). {winner} comes first with a PXP of {pxp}."
        )
    left = not_excluded(selection)
    listed = _listed([f"{names[k]} ({_probability(float(selection.pxp[k]))})" for k in left])
    claim = (
        f"Of the models compared, {winner} is the most frequent: its PXP is {pxp}."
        if len(left) == 1
        else f"No single model is established. Not excluded are {listed}, by their PXP."
    )
    return f"{claim} The probability that all are equally frequent, and differ by chance, is {bor:.2g} (BOR)."


def _in_pairs(fit: Analysis) -> str:
    """Where no model wins: which ones the first is established against alone. Models that nearly agree raise the BOR
    of all together, and hide that others are far behind.
    """
    names, selection = fit.everything.models, fit.everything.selection
    if selection.bor <= UNDECIDED and len(not_excluded(selection)) == 1:
        return ""
    first = names[int(selection.pxp.argmax())]
    pairs = {name: compare_models(fit.models, (first, name)) for name in names if name != first}
    behind = [name for name, pair in pairs.items() if pair.pxp(first) > ESTABLISHED and pair.selection.bor <= UNDECIDED]
    if not behind:
        return f" In pairs, {first} is not established against any of them."
    level = [name for name in pairs if name not in behind]
    but = f", but not against {_listed(level)}" if level else ""
    return f" In pairs, {first} is established against {_listed(behind)}{but}."


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _probability(p: float) -> str:
    """Three digits, and never 0 or 1."""
    return "over .999" if p >= 0.9995 else "below .001" if p < 0.0005 else f"{p:.3f}"


def remarks_on(choices: Choices, plan: Plan, fit: Analysis) -> tuple[str, ...]:
    """About task, learner, table and groups, before any result."""
    unit = (_UNIT,) if plan.composes and in_unit_of_rewards(plan.primitives) else ()
    return (describe_task(choices.task), describe_learner(plan), *choices.said, *unit, *describe_groups(choices, fit))


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
    label = group_of_people(choices)
    if label is None or len(fit.models) < 2:
        return ()
    names, counts = np.unique(label, return_counts=True)
    if len(names) < 2:
        return ()
    evidence = np.stack([model.log_evidence for model in fit.models.values()], axis=1)
    by_group = {str(name): evidence[label == name] for name in names}
    same = compare_groups(by_group).same
    sizes = ", ".join(f"{name} ({count})" for name, count in zip(names, counts, strict=True))
    if same < 1 - ESTABLISHED:
        return (f"Groups: {sizes}. They use the models with different frequencies: the probability that they are the "
                f"same is {_probability(same)}.",)  # fmt: skip
    so = "Whether they use the models with the same frequencies is open"
    if same > ESTABLISHED:
        so = "No difference in the frequencies of the models was found"
    least = detectable_difference(by_group)
    power = "not even groups that share no model would be distinguished with a probability of .8"
    if least is not None:
        power = (f"groups of these sizes are distinguished with a probability of .8 if the shares of the most frequent "
                 f"model differ by {least:.1f}, and smaller differences are not excluded")  # fmt: skip
    return (f"Groups: {sizes}. {so}: the probability that they are the same is {_probability(same)}; {power}.",)


# ------------------------------------------------------------------------------------------------ page


def details(fit: Analysis, rivals: Rivals | None, *checks: Check) -> list[tuple[str, str]]:
    """What else was found: headings and their Markdown."""
    parts = []
    if rivals is not None and fit.composed is not None:
        heading = "Is it the primitives, or only a floor under improbable choices?"
        parts.append((heading, _about_rivals(rivals.known(), fit.ours.reference)))
    if fit.composed is not None:
        attitudes = next((check for check in checks if isinstance(check, Attitudes)), None)
        parts.append(("How the primitives are weighed", _about_weights(fit, attitudes)))
    return parts + [_about_check(check) for check in checks
                    if check is not None and not isinstance(check, Attitudes)]  # fmt: skip


def about_data(fit: Analysis, said: tuple[str, ...]) -> str:
    people, trials = len(np.unique(fit.trials.subject)), int(fit.trials.counts.sum())
    composes = "" if fit.composed is None else (
        f" The composed model mixes {', '.join(fit.ours.primitives)} at temperature {fit.eps:g}, to come close to "
        f"{fit.ours.reference}."
    )  # fmt: skip
    simulated = SYNTHETIC in fit.trials.source
    return "\n".join([
        f"Data: {as_markdown(fit.trials.source)}; {people} {'person' if people == 1 else 'people'}, "
        f"{trials} scored trials.",
        *(as_markdown(line) for line in (*said, *fit.notes)),
        f"From utilities to probabilities: {fit.link}.{composes}",
        *(["", "**These choices are simulated. They say nothing about people.**"] if simulated else []),
    ])  # fmt: skip


def about_table(fit: Analysis, examined: Examination | None) -> str:
    """What the columns of the table of models mean."""
    composes = f"; {OURS} has no coefficients besides those of {fit.ours.reference}" if fit.composed else ""
    quality = () if examined is None else (
        "- accuracy: the share of choices to which a model gives the highest probability.",
        "- held out: mean ln p of trials that the coefficients were not fitted to, in "
        f"{FOLDS} folds of each person's blocks, or of stretches of trials if there is one block; in nats per trial. "
        f"Chance is {examined.chance_per_trial:.4f}.",
        "- over chance: by how much that is better than chance, with its standard error over people.",
    )  # fmt: skip
    return "\n".join([
        f"- BIC: summed over people{composes}.", *quality,
        "- expected_frequency (models.csv): the estimated share of people who use the model. PXP: the "
        "probability that more people use this model than any other, after allowing for chance. BOR (Bayes omnibus "
        "risk): the probability that the models are equally frequent. Beforehand all frequencies of the models are "
        "equally likely (a Dirichlet distribution with a count of 1 for each model).",
        f"- A model is called the most frequent if its PXP is above {ESTABLISHED:g}; with a BOR above {UNDECIDED:g} "
        "nothing is established.",
    ])  # fmt: skip


def _about_rivals(rivals: list[Rival], reference: str) -> str:
    rows = pd.DataFrame(
        [{"composed against": rival.description, "PXP of composed": rival.pxp, "BOR": rival.bor,
          "log-likelihood": rival.log_likelihood} for rival in rivals]
    )  # fmt: skip
    return "\n".join([
        _markdown(rows), "",
        f"A mixture of primitives never gives a choice a probability near zero, and {reference} sometimes does. The "
        f"first rows give {reference} such a floor, without primitives and without a parameter. Where the composed "
        f"model leads {reference} and is not established against these rows (PXP above {ESTABLISHED:g} with a BOR of "
        f"at most {UNDECIDED:g}), its lead is no evidence for composition. Rows in which the floor makes {reference} "
        "worse do not count.",
    ])  # fmt: skip


def _about_weights(fit: Analysis, attitudes: Attitudes | None) -> str:
    mean, arms = weights_within_block(fit).mean, fit.trials.arms
    first, last = (fit.ours.primitives[int(mean[at].argmax())] for at in (0, -1))
    start = f"At the first trial of a block {first} weighs most ({mean[0].max():.2f})"
    if np.ptp(mean[0]) < 1e-6:
        start = "At the first trial of a block nothing is known and all weigh the same"
    number, them = ("number", "it") if arms == 2 else ("numbers", "them")
    return (
        f"{start}; at the last trial {last} weighs most ({mean[-1].max():.2f}). The figure weights shows means over "
        "people, each person's blocks averaged first, with a standard error over people; weights.csv has every trial."
        "\n\nThese weights are what the composed model implies, not what the choices alone show: choices between "
        f"{arms} arms give {arms - 1} {number} a trial, and the model divides {them} among {len(fit.ours.primitives)} "
        "primitives. The certificate proves that the division is the model's optimum, and says nothing about people."
        + ("" if attitudes is None else _about_attitudes(attitudes, fit.ours.reference))
    )


def _about_attitudes(found: Attitudes, reference: str) -> str:
    none, other = len(found.planted[0].halves.early), len(found.planted[1].halves.early)
    return "\n".join([
        "\n\n**May the weights be read as attitudes?** People with a planted attitude to uncertainty played the same "
        f"task: with the fitted coefficients of {reference}, but for the bonus RU, which was zero ({none} cohorts), or "
        f"that of the strongest tenth of people, positive or negative ({other} cohorts each). Means of both halves of "
        "a block:\n",
        _markdown(attitude_table(found)), "",
        *(f"- {line}" for line in describe_attitudes(found)), "",
        "Intervals are where another simulated cohort of the same size would lie in 95% of cases. They leave out the "
        "error of the fitted coefficients, and are not corrected for their number.",
    ])  # fmt: skip


def _about_check(
    check: ModelRecovery | CrossValidation | PredictiveCheck | SequenceCheck | ModelEffects,
) -> tuple[str, str]:
    if isinstance(check, ModelEffects):
        table = effect_table((check,)).drop(columns=["model", "converged"])
        lines = "\n".join(f"- {as_markdown(line)}" for line in describe_effects(check))
        return "What groups and conditions differ in" if set(check.contrasts) != {MEAN} else "The group", (
            lines + "\n\n" + _markdown(table) + "\n\n`detectable`: the smallest difference that would "
            "have been found with a probability of .8. `sd_people`: of the coefficient over people of the same group. "
            "Rates and lapses are in logits, variances in logarithms. effects.csv has all models."
        )
    if isinstance(check, ModelRecovery):
        right = "; ".join(f"{name} {check.people[k, k]:.2f}" for k, name in enumerate(check.models))
        words = (
            "People with the fitted coefficients of each model played the same task again, and all models were fitted "
            f"to them. Share of people whose least BIC is that of the model they use: {right}. A model that is not "
            "found again on this task cannot be found in these data.\n\n"
        )
        return "Recovery on this task", words + _markdown(recovery_table(check))
    if isinstance(check, CrossValidation):
        best, *rest = sorted(check.models, key=check.mean, reverse=True)
        others = "; ".join(f"{name} {check.mean(name):.4f}" for name in rest)
        lead = check.mean(best) - check.mean(rest[0]) if rest else ALIKE
        close = f" {best} and {rest[0]} are only {lead:.4f} apart: take them as one." if lead < ALIKE else ""
        gain = check.lead(best, rest[0]) if rest else None
        if gain is not None:
            so = "is established" if gain.clear else "is not established"
            close = f" Its lead over {rest[0]}, {gain.mean:+.4f} ± {gain.error:.4f} over people, {so}.{close}"
        return "Predicting other people", (
            f"With coefficients from other people, {best} scores highest: {check.mean(best):.4f} nats per trial. "
            f"It comes first in {check.best_in(best)} of {len(check.score)} random splits of the same people, which "
            f"are no independent evidence.{close} {others}."
        )
    if isinstance(check, SequenceCheck):
        outside = [f"{row.name} ({model})" for model, rows in check.predictions.items() for row in rows
                   if not row.inside]  # fmt: skip
        words = (
            f"{check.draws} whole experiments of every model, with parameters drawn around everybody's estimates "
            "(Laplace approximation). What simulated people choose decides what they see. The task and the payoffs of "
            "the arms are given; payoffs are drawn from what the arms paid to the same person in the same block. `low` "
            "and `high` hold 95% of the experiments. The estimates have seen the same data: a measure inside is no "
            "evidence for a model, one outside speaks against it.\n\n"
        )
        return "Posterior predictive check: whole sequences", (
            f"{words}{_markdown(sequence_table(check))}\n\nOutside: {', '.join(outside) if outside else 'nothing'}."
        )
    words = (
        "What people did, and what each model expects at the estimates, given all that really happened before (shares "
        "of trials, means over people). A one-step check cannot show errors that build up: see whole sequences, in the "
        "next section.\n\n"
    )
    return "One-step check", words + _markdown(check_table(check))


def about_fits(fit: Analysis, only: str = "", group: np.ndarray | None = None) -> str:
    coefficients = coefficient_table(fit, group)
    certified = "" if fit.composed is None else (
        " Every weight vector (weights.csv) comes with a proof: it lies within "
        f"{fit.ours.composition.distance.max():.1e} of the optimal one (certified_distance, summed over primitives)."
    )  # fmt: skip
    return "\n".join([
        "Means and standard deviations over people with a standard error (estimates vary more than people do, by their "
        "errors; `--effects` and `--empirical-bayes` take that away):", "",
        _markdown(coefficients[coefficients["model"] == only] if only else coefficients), "",
        "Coefficients (subjects.csv) are each person's maximum-likelihood estimates, with a prior so weak that it only "
        "matters where there is no maximum, and with standard errors and 95% intervals from the curvature, named by "
        "what they multiply: V, how much better an arm seems; RU, how much less is known of it; V/TU, the first "
        f"divided by the total uncertainty. The evidence for a model is -BIC/2.{certified}",
        "",
        f"- Bounds: a coefficient times the spread of its feature between arms lies within ±{FARTHEST * EFFECT:g}; "
        f"logits of rates and lapses within ±{FARTHEST:g}; variances within a factor of exp({FARTHEST:g}) of that of "
        "the rewards.",
        "- `separated`: no finite coefficients fit best, and the weak prior holds them. `at_bound`: an estimate is at "
        f"a bound. `local`: only one of {STARTS} searches reached this optimum, or the search did not settle: there "
        "may be a better one.",
        "- No standard error is given for separated people, at a bound, where the data say less than the weak prior, "
        "and where the interval of a rate or variance spans a factor of 50 (of odds, or values): look at `low_...` and "
        "`high_...` there.",
        *(f"- {name}: of {len(model.subjects)} people {', '.join(counts)}."
          for name, model in fit.models.items() if only in ("", name)
          if (counts := [f"{int(values.sum())} `{flag}`" for flag, values in flags_of(model).items() if values.any()])),
    ])  # fmt: skip


def _markdown(shown: pd.DataFrame) -> str:
    def cell(value: Any) -> str:
        if not isinstance(value, float) or np.isnan(value):
            return "-" if isinstance(value, float) else str(value)
        return f"{value:.2f}" if abs(value) >= 100 else f"{value:.4f}"

    return table(list(shown.columns), [[*map(cell, row)] for row in shown.itertuples(index=False)])
