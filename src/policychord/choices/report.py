"""What an analysis found, in plain words and as tables."""

import re
from typing import Any

import numpy as np
import pandas as pd

from .compare import OURS, Analysis, Rival, Rivals, weights_by_trial
from .data import LONGEST_RT
from .schemas import FEATURES
from .simulate import SYNTHETIC


def model_table(fit: Analysis) -> pd.DataFrame:
    """One row a model: summed log-likelihood, BIC and AIC, and its place in the group comparison of all."""
    rows = [
        {
            "model": name,
            "parameters": model.parameters,
            "log_likelihood": model.log_likelihood.sum(),
            "BIC": model.bic.sum(),
            "AIC": model.aic.sum(),
            "expected_frequency": fit.everything.selection.expected[k],
            "XP": fit.everything.selection.xp[k],
            "PXP": fit.everything.selection.pxp[k],
        }
        for k, (name, model) in enumerate(fit.models.items())
    ]
    return pd.DataFrame(rows)


def weight_table(fit: Analysis) -> pd.DataFrame:
    """One row a trial: who, when, what was chosen, the weights, and how probable the choice was."""
    trials, row = fit.trials, np.arange(len(fit.trials.choice))
    columns = {"subject": trials.subject, "block": trials.block, "trial": trials.trial, "choice": trials.choice + 1}
    columns |= {f"weight_{name}": fit.composition.weights[:, k] for k, name in enumerate(fit.primitives)}
    columns["p_choice"] = np.exp(fit.composition.log_prob[row, trials.choice])
    columns["certified_distance"] = fit.composition.distance
    columns["data"] = np.full(len(row), trials.source)
    return pd.DataFrame(columns)


def subject_table(fit: Analysis) -> pd.DataFrame:
    """One row a subject and model: coefficients by what they multiply, likelihood and evidence."""
    named = {f"coef_{what}": np.nan for model in fit.models.values() for what in FEATURES[model.reference]}
    parts = []
    for name, model in fit.models.items():
        coef = {f"coef_{what}": model.coef[:, k] for k, what in enumerate(FEATURES[model.reference])}
        scores = {"log_likelihood": model.log_likelihood, "BIC": model.bic, "AIC": model.aic}
        columns = {"subject": model.subjects, "model": name} | named | coef | scores
        parts.append(pd.DataFrame(columns | {"separated": model.separated}))
    return pd.concat(parts, ignore_index=True)


def describe(fit: Analysis, rivals: Rivals | None = None) -> str:
    """The analysis in plain language, as Markdown."""
    people, trials = len(fit.models[OURS].subjects), len(fit.trials.choice)
    lines = [
        f"# Choices between {fit.trials.arms} arms: {fit.task_name}",
        "",
        f"Data: {as_markdown(fit.trials.source)}; {people} people, {trials} trials"
        + (f" ({fit.left_out} slower than {LONGEST_RT / 1000:g} s left out)." if fit.left_out else "."),
        *fit.notes,
        f"From utilities to probabilities: {fit.link}. The composed model mixes {', '.join(fit.primitives)} at "
        f"temperature {fit.eps:g}.",
    ]
    if SYNTHETIC in fit.trials.source:
        lines += [
            "",
            "**These choices are synthetic: simulated with the Hybrid model. They say nothing about people.**",
        ]
    lines += ["", "## Which model is the most frequent?", "", *_markdown(model_table(fit)), "", verdict(fit), ""]
    lines += [
        f"- log_likelihood, BIC, AIC: sums over people; {OURS} has no coefficients besides the Hybrid's.",
        "- expected_frequency: the share of people who use the model, as far as can be told.",
        "- XP: the probability that more people use this model than any other. PXP (protected): the same, allowing for "
        "all of it being chance. BOR (Bayes omnibus risk): the probability that it is.",
    ]
    lines += _about_rivals(rivals.known() if rivals else []) + _about_weights(fit) + _about_fits(fit)
    return "\n".join(lines) + "\n"


def verdict(fit: Analysis) -> str:
    """Who won, how surely, and the composed model against the Hybrid alone."""
    selection, against = fit.everything.selection, fit.against_hybrid
    winner, pxp, bor = fit.everything.models[int(selection.pxp.argmax())], float(selection.pxp.max()), selection.bor
    if bor > 0.25:
        words = (
            f"No model is established: {winner} comes first with a PXP of {pxp:.3f}, but with a probability of "
            f"{bor:.2f} (BOR) the models differ by chance only."
        )
    else:
        words = (
            f"{winner} is the most frequent model: its PXP is {_probability(pxp)}, and that the models differ by "
            f"chance only has a probability of {bor:.2g} (BOR)."
        )
    return words + (
        f" Against the Hybrid alone, the composed model has a PXP of {_probability(against.pxp(OURS))} "
        f"(BOR {against.selection.bor:.3f})."
    )


def _probability(p: float) -> str:
    """Three digits, and never certainty."""
    return "over .999" if p >= 0.9995 else f"{p:.3f}"


def _about_rivals(rivals: list[Rival]) -> list[str]:
    if not rivals:
        return []
    rows = pd.DataFrame(
        [{"composed against": rival.description, "PXP of composed": rival.pxp, "BOR": rival.bor,
          "log-likelihood of the one that is changed": rival.log_likelihood} for rival in rivals]
    )  # fmt: skip
    return [
        "", "## Is it the primitives, or only a floor under improbable choices?", "", *_markdown(rows), "",
        "A mixture of primitives never holds a choice for impossible, and the Hybrid sometimes nearly does. The first "
        "rows give the Hybrid such a floor, without primitives and without a parameter. Where the composed model does "
        "not win against them (PXP near or below .5), its gain over the Hybrid is no evidence for composition.",
    ]  # fmt: skip


def _about_weights(fit: Analysis) -> list[str]:
    numbers, mean = weights_by_trial(fit)
    table = pd.DataFrame({"trial of a block": numbers} | {n: mean[:, k] for k, n in enumerate(fit.primitives)})
    first, last = (fit.primitives[int(mean[at].argmax())] for at in (0, -1))
    even = np.ptp(mean[0]) < 1e-6
    start = "At the first trial of a block nothing is known and all weigh the same" if even else (
        f"At the first trial of a block {first} weighs most"
    )  # fmt: skip
    return [
        "", "## How the primitives are weighed", "", "Mean weights over people and blocks:", "", *_markdown(table), "",
        f"{start}; at the last {last} weighs most. In figures/weights, lines are means over people and bands "
        "one standard deviation around them.",
    ]  # fmt: skip


def _about_fits(fit: Analysis) -> list[str]:
    separated = {name: int(model.separated.sum()) for name, model in fit.models.items() if model.separated.any()}
    lines = ["", "## What to know about the fits", ""]
    lines += [
        "Coefficients (subjects.csv) are each person's maximum-likelihood estimates, named by what they multiply: V, "
        "how much better an arm seems; RU, how much less is known of it; V/TU, the first in units of all that is "
        "uncertain. "
        "The evidence for a model is -BIC/2. Every weight vector (weights.csv) comes with a proof: it lies within "
        f"{fit.composition.distance.max():.1e} of the optimal one (certified_distance, summed over the primitives).",
    ]
    for name, count in separated.items():
        lines.append(
            f"{name}: {count} of {len(fit.models[name].subjects)} people choose exactly as it says, so that no "
            "finite coefficients fit them best (`separated`); a weak prior holds them."
        )
    return lines


def as_markdown(text: str) -> str:
    """Text from outside, so that Markdown shows it and does not obey it."""
    return re.sub(r"([\\`*_{}\[\]<>#+!|$&~:@=^]|(?<=www)\.)", r"\\\1", text)


def _markdown(table: pd.DataFrame) -> list[str]:
    def cell(value: Any) -> str:
        if not isinstance(value, float):
            return str(value)
        return f"{value:.2f}" if abs(value) >= 100 else f"{value:.4f}"

    rows = [" | ".join(map(cell, row)) for row in table.itertuples(index=False)]
    return [f"| {' | '.join(table.columns)} |", "|" + "---|" * len(table.columns), *(f"| {row} |" for row in rows)]
