"""What an analysis found, in plain words, and as a table trial by trial."""

from typing import Any

import numpy as np
import pandas as pd

from .analysis import OURS, Analysis, weights_by_trial
from .cohort import SYNTHETIC
from .validation import Controlled


def model_table(fit: Analysis) -> pd.DataFrame:
    """One row a model: summed log-likelihood, BIC and AIC, and its place in the group comparison of all."""
    rows = [
        {
            "model": name,
            "parameters": model.parameters,
            "log_likelihood": model.log_likelihood_.sum(),
            "BIC": model.bic_.sum(),
            "AIC": model.aic_.sum(),
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
    """One row a subject and model: coefficients, likelihood and evidence."""
    parts = []
    for name, model in fit.models.items():
        coef = {f"coef_{k + 1}": model.coef_[:, k] for k in range(model.coef_.shape[1])}
        scores = {"log_likelihood": model.log_likelihood_, "BIC": model.bic_, "AIC": model.aic_}
        columns = {"subject": model.subjects_, "model": name} | coef | scores | {"separated": model.separated_}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def describe(fit: Analysis, controls: dict[str, Controlled]) -> str:
    """The analysis in plain language, as Markdown."""
    selection = fit.everything.selection
    winner = fit.everything.models[int(selection.pxp.argmax())]
    people, trials = len(fit.models[OURS].subjects_), len(fit.trials.choice)
    lines = [
        f"# Choices between {fit.trials.arms} arms: {fit.task_name}",
        "",
        f"Data: {fit.trials.source}; {people} people, {trials} trials"
        + (f" ({fit.left_out} slower than 20 s left out)." if fit.left_out else "."),
        f"Link: {fit.link}. Temperature of the composed model: {fit.eps:g}. Primitives: {', '.join(fit.primitives)}.",
    ]
    if SYNTHETIC in fit.trials.source:
        lines += [
            "",
            "**These choices are synthetic: simulated with the Hybrid model. They say nothing about people.**",
        ]
    lines += ["", "## Which model do most people use?", "", *_markdown(model_table(fit)), ""]
    lines += [_verdict(winner, float(selection.pxp.max()), selection.bor)]
    against = fit.against_hybrid
    lines += [
        f"Against the Hybrid alone, the composed model has a PXP of {against.pxp(OURS):.3f} "
        f"(Bayes omnibus risk {against.selection.bor:.3f}).",
    ]
    lines += _about_controls(controls) + _about_weights(fit) + _about_fits(fit)
    return "\n".join(lines) + "\n"


def _verdict(winner: str, pxp: float, bor: float) -> str:
    sure = f"The protected exceedance probability (PXP) favours {winner}: {pxp:.3f}. "
    if bor > 0.25:
        return (
            sure + f"But chance explains these differences with probability {bor:.2f} (BOR): no model is established."
        )
    return sure + f"That all models are equally common has a probability of {bor:.2g} (BOR)."


def _about_controls(controls: dict[str, Controlled]) -> list[str]:
    if not controls:
        return []
    rows = pd.DataFrame(
        [{"composed against": k, "PXP of composed": c.pxp, "BOR": c.bor, "LL": c.log_likelihood}
         for k, c in controls.items()]
    )  # fmt: skip
    return [
        "", "## Is it the primitives, or only a floor under improbable choices?", "", *_markdown(rows), "",
        "LL is that of the new model in each line. A floor has no parameter and no primitives; where it does as well, "
        "the gain over the Hybrid is no evidence for composition.",
    ]  # fmt: skip


def _about_weights(fit: Analysis) -> list[str]:
    numbers, mean = weights_by_trial(fit)
    table = pd.DataFrame({"trial of a block": numbers} | {n: mean[:, k] for k, n in enumerate(fit.primitives)})
    first, last = (fit.primitives[int(mean[at].argmax())] for at in (0, -1))
    even = np.ptp(mean[0]) < 1e-6
    start = "At the first trial of a block nothing is known and all weigh the same" if even else (
        f"At the first trial of a block {first} weighs most"
    )  # fmt: skip
    return ["", "## How the primitives are weighed", "", *_markdown(table), "", f"{start}; at the last it is {last}."]


def _about_fits(fit: Analysis) -> list[str]:
    separated = {name: int(model.separated_.sum()) for name, model in fit.models.items() if model.separated_.any()}
    lines = ["", "## What to know about the fits", ""]
    lines += [
        "Coefficients are each person's maximum-likelihood estimates; the composed model uses the Hybrid's and has no "
        "others. Evidence is -BIC/2. Every weight vector is certified: |w - w*| is at most "
        f"{fit.composition.distance.max():.1e}."
    ]
    for name, count in separated.items():
        lines.append(
            f"{name}: {count} of {len(fit.models[name].subjects_)} people choose exactly as the features say, so that "
            "their coefficients have no maximum-likelihood value; a weak prior holds them."
        )
    return lines


def _markdown(table: pd.DataFrame) -> list[str]:
    def cell(value: Any) -> str:
        if not isinstance(value, float):
            return str(value)
        return f"{value:.2f}" if abs(value) >= 100 else f"{value:.4f}"

    rows = [" | ".join(map(cell, row)) for row in table.itertuples(index=False)]
    return [f"| {' | '.join(table.columns)} |", "|" + "---|" * len(table.columns), *(f"| {row} |" for row in rows)]
