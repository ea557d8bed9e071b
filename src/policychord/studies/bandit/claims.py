"""Claims B1 to B10: rules fixed beforehand, applied to what the work found."""

from typing import Any

import numpy as np

from ...stats.glm import Link
from ..claim import Entry, Finding, Verdict
from ..study import Evidence
from .analysis import OURS, Analysis, weights_by_trial
from .settings import BanditSettings

Measured = dict[str, Any]
SHOWN_TRIALS = (1, 2, 3, 5, 10)


def beats_hybrid(settings: BanditSettings, evidence: Evidence, link: Link = "probit") -> Finding:
    """PXP > .5 in both experiments, with the Bayes omnibus risk and the controls beside it."""
    measured, held = _labelled(settings), []
    for experiment in settings.experiments:
        fit: Analysis = evidence[f"fit {experiment} {link}"]
        pxp = fit.against_hybrid.pxp(OURS)
        measured[f"Exp {experiment}: PXP of composed"] = pxp
        measured[f"Exp {experiment}: BOR against the Hybrid"] = fit.against_hybrid.selection.bor
        for name, control in evidence[f"controls {experiment} {link}"].items():
            shown = {"PXP": round(control.pxp, 4), "BOR": round(control.bor, 4)}
            measured[f"Exp {experiment}: against {name}"] = shown | {"LL": round(control.log_likelihood, 2)}
        gain, rare = evidence[f"rare choices {experiment} {link}"]
        measured[f"Exp {experiment}: gain in log-likelihood"] = gain
        measured[f"Exp {experiment}: of it where the Hybrid gave less than .01"] = rare
        held.append(pxp > 0.5)
    return Finding(measured, _all(held))


def beats_others(settings: BanditSettings, evidence: Evidence, link: Link = "probit") -> Finding:
    measured, held = _labelled(settings), []
    for experiment in settings.experiments:
        compared = evidence[f"fit {experiment} {link}"].against_others
        pxp = {model: round(compared.pxp(model), 6) for model in compared.models}
        measured[f"Exp {experiment}: PXP among the four"] = pxp
        measured[f"Exp {experiment}: BOR among the four"] = compared.selection.bor
        held.append(compared.models[int(compared.selection.pxp.argmax())] == OURS)
    return Finding(measured, _all(held))


def weights_of_one(settings: BanditSettings, evidence: Evidence, link: Link = "probit") -> Finding:
    """Uncertainty-seeking has the largest weight at every trial, risk-aversion the smallest."""
    measured, mean = _course(settings, evidence, "1", link)
    largest, smallest = (mean.argmax(1) == 1), (mean.argmin(1) == 2)
    measured["trials at which uncertainty is largest"] = f"{largest.sum()} of {len(mean)}"
    measured["trials at which risk is smallest"] = f"{smallest.sum()} of {len(mean)}"
    return Finding(measured, _all([bool(largest.all()), bool(smallest.all())]))


def weights_of_two(settings: BanditSettings, evidence: Evidence, link: Link = "probit") -> Finding:
    """A brief peak of uncertainty, then exploitation, then risk-aversion, which ends largest."""
    measured, mean = _course(settings, evidence, "2", link)
    uncertain, averse = mean[:, 1], mean[:, 2]
    parts = {
        "uncertainty peaks at trial 2": int(uncertain.argmax()) == 1,
        "and stays below 1/4 from trial 3 on": bool((uncertain[2:] < 0.25).all()),
        "exploitation is largest at trial 3": int(mean[2].argmax()) == 0,
        "risk rises from trial 3 to the last": bool(averse[-1] > averse[2]),
        "risk is largest at the last trial": int(mean[-1].argmax()) == 2,
    }
    return Finding(measured | parts, _all(list(parts.values())))


def predicts_others(settings: BanditSettings, evidence: Evidence, link: Link = "probit") -> Finding:
    """Experiment 1: best in more than half of the splits. Experiment 2: within 1% of the best."""
    measured, held = _labelled(settings), []
    for experiment in settings.experiments:
        found = evidence[f"cross-validation {experiment} {link}"]
        means = {model: round(found.mean(model), 5) for model in found.models}
        measured[f"Exp {experiment}: log-likelihood a trial"] = means
        best = {model: found.best_in(model) for model in found.models if found.best_in(model)}
        measured[f"Exp {experiment}: best in splits"] = best
        if experiment == "1":
            held.append(found.best_in(OURS) > len(found.score) / 2)
        else:
            top = max(found.mean(model) for model in found.models)
            held.append(found.mean(OURS) >= top - 0.01 * abs(top))
    return Finding(measured | {"splits": settings.splits, "folds": settings.folds}, _all(held))


def heat_harms(settings: BanditSettings, evidence: Evidence, link: Link = "probit") -> Finding:
    measured, held = _labelled(settings), []
    for experiment in settings.experiments:
        swept = evidence[f"temperature {experiment} {link}"]
        at = dict(zip(swept.eps, swept.pxp.tolist(), strict=True))
        measured[f"Exp {experiment}: PXP by eps"] = {f"{eps:g}": round(pxp, 4) for eps, pxp in at.items()}
        held.append(at[max(at)] < at[settings.eps])
    return Finding(measured, _all(held))


def _logit_comparison(settings, evidence) -> Finding:
    return _both(beats_hybrid(settings, evidence, "logit"), beats_others(settings, evidence, "logit"))


def _logit_weights(settings, evidence) -> Finding:
    return _both(weights_of_one(settings, evidence, "logit"), weights_of_two(settings, evidence, "logit"))


def _both(first: Finding, second: Finding) -> Finding:
    same = first.verdict == second.verdict
    return Finding(first.measured | second.measured, first.verdict if same else "partly")


def _course(settings: BanditSettings, evidence: Evidence, experiment: str, link: Link) -> tuple[Measured, np.ndarray]:
    fit: Analysis = evidence[f"fit {experiment} {link}"]
    numbers, mean = weights_by_trial(fit)
    shown = {int(k): np.round(row, 3).tolist() for k, row in zip(numbers, mean, strict=True) if k in SHOWN_TRIALS}
    return _labelled(settings) | {f"Exp {experiment}: {', '.join(fit.primitives)} by trial": shown}, mean


def _labelled(settings: BanditSettings) -> Measured:
    """Every measurement says whose choices these are."""
    return {"data": settings.source}


def _all(held: list[bool]) -> Verdict:
    return "reproduced" if all(held) else "partly" if any(held) else "not reproduced"


def _logit(measure):
    return lambda settings, evidence: measure(settings, evidence, "logit")


LEDGER = (
    Entry("B1", "the composed model explains choices better than the Hybrid, both experiments", "Fig 4b, top",
          "PXP of composed > .5 in both, with BOR; controls beside it", beats_hybrid),
    Entry("B2", "the composed model explains choices better than UCB, Thompson and Value", "Fig 4b, bottom",
          "highest PXP in both", beats_others),
    Entry("B3", "Experiment 1: uncertainty-seeking largest, risk-aversion low", "Fig 4c, top",
          "mean weight of uncertainty largest and of risk smallest at every trial of a block", weights_of_one),
    Entry("B4", "Experiment 2: exploitation early, then risk-aversion; uncertainty small after a peak",
          "Fig 4c, bottom",
          "uncertainty peaks at trial 2 and is < 1/4 from 3; exploitation largest at 3; risk rises and ends largest",
          weights_of_two),
    Entry("B5", "predicts people left out: best in Experiment 1, comparable with the best in Experiment 2", "Fig S5a",
          "best in more than half of the splits; within 1% of the best", predicts_others),
    Entry("B6", "large temperatures degrade the fit", "Fig S5b",
          "PXP at eps 1 below PXP at .01 in both", heat_harms),
    Entry("B7", "B1 and B2 with the logit link", "Fig S6a", "as B1 and B2", _logit_comparison),
    Entry("B8", "B3 and B4 with the logit link", "Fig S6b", "as B3 and B4", _logit_weights),
    Entry("B9", "B5 with the logit link", "Fig S6c", "as B5", _logit(predicts_others)),
    Entry("B10", "B6 with the logit link", "Fig S6d", "as B6", _logit(heat_harms)),
)  # fmt: skip
