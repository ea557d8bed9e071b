"""Claims B1 to B10: rules, applied to what the work found."""

from typing import Any

import numpy as np

from ...stats.glm import Link
from ..claim import Entry, Finding, Verdict
from ..study import Evidence
from .analysis import OURS, Analysis, weights_by_trial
from .settings import BanditSettings
from .validation import FLOORED, counted

Measured = dict[str, Any]
SHOWN_TRIALS = (1, 2, 3, 5, 10)


def beats_hybrid(settings: BanditSettings, evidence: Evidence, link: Link = "probit") -> Finding:
    """PXP > .5 in both experiments, with the Bayes omnibus risk and the controls beside it."""
    fits: dict[str, Analysis] = {e: evidence[f"fit {e} {link}"] for e in settings.experiments}
    pxp = {e: fit.against_hybrid.pxp(OURS) for e, fit in fits.items()}
    measured: Measured = {f"Exp {e}: PXP of composed": value for e, value in pxp.items()}
    measured |= {f"Exp {e}: BOR against the Hybrid": fit.against_hybrid.selection.bor for e, fit in fits.items()}
    for e, fit in fits.items():
        controls = evidence[f"controls {e} {link}"]
        for name in (FLOORED, counted(fit.models[OURS].parameters + 1)):
            measured[f"Exp {e}: PXP against {name}"] = controls[name].pxp
        gain, rare = evidence[f"rare choices {e} {link}"]
        measured[f"Exp {e}: gain in log-likelihood"] = gain
        measured[f"Exp {e}: of it where the Hybrid gave less than .01"] = rare
    return Finding(measured | _labelled(settings), _all([value > 0.5 for value in pxp.values()]))


def beats_others(settings: BanditSettings, evidence: Evidence, link: Link = "probit") -> Finding:
    compared = {e: evidence[f"fit {e} {link}"].against_others for e in settings.experiments}
    measured: Measured = {f"Exp {e}: PXP of composed among four": one.pxp(OURS) for e, one in compared.items()}
    for e, one in compared.items():
        measured |= {f"Exp {e}: PXP of {model}": one.pxp(model) for model in one.models if model != OURS}
    measured |= {f"Exp {e}: BOR among the four": one.selection.bor for e, one in compared.items()}
    held = [one.models[int(one.selection.pxp.argmax())] == OURS for one in compared.values()]
    return Finding(measured | _labelled(settings), _all(held))


def weights_of_one(settings: BanditSettings, evidence: Evidence, link: Link = "probit") -> Finding:
    """Uncertainty-seeking has the largest weight at every trial, risk-aversion the smallest."""
    shown, mean = _course(settings, evidence, "1", link)
    largest, smallest = (mean.argmax(1) == 1), (mean.argmin(1) == 2)
    measured: Measured = {
        "trials at which uncertainty is largest": f"{largest.sum()} of {len(mean)}",
        "trials at which risk is smallest": f"{smallest.sum()} of {len(mean)}",
    }
    return Finding(measured | shown, _all([bool(largest.all()), bool(smallest.all())]))


def weights_of_two(settings: BanditSettings, evidence: Evidence, link: Link = "probit") -> Finding:
    """A brief peak of uncertainty, then exploitation, then risk-aversion, which ends largest."""
    shown, mean = _course(settings, evidence, "2", link)
    uncertain, averse = mean[:, 1], mean[:, 2]
    parts = {
        "exploitation is largest at trial 3": int(mean[2].argmax()) == 0,
        "risk rises from trial 3 to the last": bool(averse[-1] > averse[2]),
        "risk is largest at the last trial": int(mean[-1].argmax()) == 2,
        "uncertainty peaks at trial 2": int(uncertain.argmax()) == 1,
        "and stays below 1/4 from trial 3 on": bool((uncertain[2:] < 0.25).all()),
    }
    return Finding(parts | shown, _all(list(parts.values())))


def predicts_others(settings: BanditSettings, evidence: Evidence, link: Link = "probit") -> Finding:
    """Experiment 1: best in more than half of the splits. Experiment 2: within 1% of the best."""
    found = {e: evidence[f"cross-validation {e} {link}"] for e in settings.experiments}
    first: Measured = {
        f"Exp {e}: composed is best, of {len(f.score)} splits": f.best_in(OURS) for e, f in found.items()
    }
    measured: Measured = {}
    held = []
    for e, one in found.items():
        means = {model: one.mean(model) for model in one.models}
        best = max(one.models, key=one.mean)
        first[f"Exp {e}: behind the best mean by"] = means[best] - means[OURS]
        measured[f"Exp {e}: best on average"] = best
        measured |= {f"Exp {e}: log-likelihood a trial, {model}": mean for model, mean in means.items()}
        measured[f"Exp {e}: best in splits"] = {m: one.best_in(m) for m in one.models if one.best_in(m)}
        close = means[OURS] >= means[best] - 0.01 * abs(means[best])
        held.append(one.best_in(OURS) > len(one.score) / 2 if e == "1" else close)
    return Finding(first | measured | {"folds": settings.folds} | _labelled(settings), _all(held))


def heat_harms(settings: BanditSettings, evidence: Evidence, link: Link = "probit") -> Finding:
    swept = {e: evidence[f"temperature {e} {link}"] for e in settings.experiments}
    at = {e: dict(zip(one.eps, one.pxp.tolist(), strict=True)) for e, one in swept.items()}
    hot = max(settings.temperatures)
    measured: Measured = {f"Exp {e}: PXP at eps {hot:g}": values[hot] for e, values in at.items()}
    measured |= {f"Exp {e}: PXP at eps {settings.eps:g}": values[settings.eps] for e, values in at.items()}
    for e, values in at.items():
        measured[f"Exp {e}: PXP by eps"] = {f"{eps:g}": round(pxp, 4) for eps, pxp in values.items()}
    held = [values[hot] < values[settings.eps] for values in at.values()]
    return Finding(measured | _labelled(settings), _all(held))


def _logit_comparison(settings, evidence) -> Finding:
    return _both(beats_hybrid(settings, evidence, "logit"), beats_others(settings, evidence, "logit"))


def _logit_weights(settings, evidence) -> Finding:
    return _both(weights_of_one(settings, evidence, "logit"), weights_of_two(settings, evidence, "logit"))


def _both(first: Finding, second: Finding) -> Finding:
    same = first.verdict == second.verdict
    measured = first.measured | second.measured
    label = {"data": measured.pop("data")}  # behind the figures
    return Finding(measured | label, first.verdict if same else "partly")


def _course(settings: BanditSettings, evidence: Evidence, experiment: str, link: Link) -> tuple[Measured, np.ndarray]:
    fit: Analysis = evidence[f"fit {experiment} {link}"]
    numbers, mean = weights_by_trial(fit)
    shown = {int(k): np.round(row, 3).tolist() for k, row in zip(numbers, mean, strict=True) if k in SHOWN_TRIALS}
    return {f"Exp {experiment}: {', '.join(fit.primitives)} by trial": shown} | _labelled(settings), mean


def _labelled(settings: BanditSettings) -> Measured:
    """Every measurement says whose choices these are."""
    return {"data": settings.source}


def _all(held: list[bool]) -> Verdict:
    return "reproduced" if all(held) else "partly" if any(held) else "not reproduced"


def _logit(measure):
    return lambda settings, evidence: measure(settings, evidence, "logit")


LEDGER = (
    Entry("B1", "the composed model explains choices better than the Hybrid, in both experiments", "Fig. 4b, top",
          "PXP of composed > .5 in both, with BOR; controls beside it", beats_hybrid,
          "higher PXP in both (no number given: the bars of Fig. 4b, top)"),
    Entry("B2", "the composed model explains choices better than UCB, Thompson and Value", "Fig. 4b, bottom",
          "highest PXP in both", beats_others,
          "highest PXP in both (no number given: the bars of Fig. 4b, bottom)"),
    Entry("B3", "in Experiment 1 uncertainty-seeking weighs most and risk-aversion least", "Fig. 4c, top",
          "mean weight of uncertainty largest and of risk smallest at every trial of a block", weights_of_one,
          "no number given: shown in Fig. 4c, top"),
    Entry("B4", "in Experiment 2 exploitation weighs most early, then risk-aversion; uncertainty-seeking peaks, "
          "then stays small", "Fig. 4c, bottom",
          "uncertainty peaks at trial 2 and is < 1/4 from 3; exploitation largest at 3; risk rises and ends largest",
          weights_of_two, "no number given: shown in Fig. 4c, bottom"),
    Entry("B5", "the composed model predicts people left out best in Experiment 1, and about as well as the best in "
          "Experiment 2", "Fig. S5a",
          "best in more than half of the splits; within 1% of the best", predicts_others,
          "one split: highest in Exp. 1, next to Thompson in Exp. 2 (no number given: Fig. S5a)"),
    Entry("B6", "at large temperatures the composed model fits worse", "Fig. S5b",
          "PXP at eps 1 below PXP at .01 in both", heat_harms,
          "no number given: curves for eps from .001 to 1 in Fig. S5b"),
    Entry("B7", "with the logit link too, the composed model explains choices better than the others (B1, B2)",
          "Fig. S6a", "as B1 and B2", _logit_comparison,
          "highest PXP in both (no number given: the bars of Fig. S6a)"),
    Entry("B8", "with the logit link too, the weights take the courses of B3 and B4", "Fig. S6b",
          "as B3 and B4", _logit_weights,
          "much like probit (no number given: shown in Fig. S6b)"),
    Entry("B9", "with the logit link too, the composed model predicts people left out (B5)", "Fig. S6c",
          "as B5", _logit(predicts_others),
          "one split: highest in Exp. 1, next to Thompson in Exp. 2 (no number given: Fig. S6c)"),
    Entry("B10", "with the logit link too, it fits worse at large temperatures (B6)", "Fig. S6d",
          "as B6", _logit(heat_harms),
          "no number given: curves for eps from .001 to 1 in Fig. S6d"),
)  # fmt: skip
