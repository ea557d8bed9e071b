"""What was found, in tables and sentences: of comparisons, fits and recoveries (their figures: `figures`).

Sentences about comparisons follow rules that stand here once:


established         a difference is larger than SURE errors (`Difference.call`)
no verdict          the best model is not established to predict better than the reference: no other sentence
simpler             a model with fewer parameters is not established to predict worse than the best one
one family          held-out ln p of models differs by less than ALIKE on average (`near_duplicates`)
disagreement        group selection (PXP, from BIC) and held-out prediction favour different models
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, get_args

import numpy as np

from .comparison import ALIKE, Comparison, Difference, near_duplicates
from .decisions import AGENT, CONSTANT
from .fits import Fit
from .parameters import natural
from .recovery import Information, Recovery, coverage
from .uncertainty import LEAST_MOVEMENT, Grade

RECOVERY_COLUMNS = ["free number", "truth", "bias", "sd", "coverage, curvature", "coverage, profile",
                    "decisions for an error of .1"]  # fmt: skip
INFORMATION_COLUMNS = ["free number", "decisions, all free", "decisions, alone", "most correlated with"]

# -------------------------------------------------------------------------------------------- comparisons


def comparison_rows(comparison: Comparison, reference: str = "chance") -> list[dict[str, Any]]:
    """One row for each model, the best first by held-out ln p; differences to the reference, in nats per decision.

    Where people have parameters of their own, `parameters` are those of one of them, log-likelihood and BIC are sums
    over people, and models that were selected from have their expected frequency and PXP.
    """
    rows = []
    for score in comparison.scores:
        gain = comparison.difference(score.name, reference) if reference in comparison.names else None
        row = {
            "model": score.name, "parameters": score.parameters, "held_out": score.held_out,
            "difference": None if gain is None else gain.mean, "error": None if gain is None else gain.error,
            "log_likelihood": float(score.log_likelihood.sum()), "BIC": float(score.bic.sum()),
            "description": score.description,
        }  # fmt: skip
        if comparison.selection is not None:
            at = comparison.selected.index(score.name) if score.name in comparison.selected else None
            row |= {"frequency": None if at is None else float(comparison.selection.expected[at]),
                    "pxp": None if at is None else float(comparison.selection.pxp[at])}  # fmt: skip
        rows.append(row)
    return rows


def comparison_table(comparison: Comparison, reference: str = "chance") -> tuple[list[str], list[list[str]]]:
    """(columns, rows) of `comparison_rows` as text, for a page or a terminal."""
    columns = ["model", "parameters", "held out", f"over {reference}", "log-likelihood", "BIC"]
    columns += [] if comparison.selection is None else ["frequency", "PXP"]
    rows = []
    for row in comparison_rows(comparison, reference):
        above = "" if row["difference"] is None else difference_text(Difference(row["difference"], row["error"]))
        line = [row["model"], str(row["parameters"]), f"{row['held_out']:.4f}", above,
                f"{row['log_likelihood']:.2f}", f"{row['BIC']:.1f}"]  # fmt: skip
        line += ["" if row[name] is None else f"{row[name]:.3f}" for name in ("frequency", "pxp") if name in row]
        rows.append(line)
    return columns, rows


def describe_comparison(
    comparison: Comparison, *, unit: str = "decision", reference: str = "chance"
) -> tuple[str, ...]:
    """Sentences about a comparison, by the rules above."""
    names = [name for name in comparison.names if name != reference]
    if not names:
        return ()
    if lost := no_verdict(comparison, unit=unit, reference=reference):
        return (lost,)
    best, sentences = names[0], []
    families = near_duplicates(comparison)
    family = next((family for family in families if best in family), (best,))
    words = f"{best} has the best held-out score"
    if reference in comparison.names:
        words += f", {amount(comparison.difference(best, reference), unit)} over {reference}"
    if following := next((name for name in names if name not in family), None):
        lead = comparison.difference(best, following)
        call = "established" if lead.call == "better" else "not established"
        words += f"; its lead over {following} is {call} ({difference_text(lead)})"
    sentences.append(f"{_begin(words)}.")
    if simpler := _simpler(comparison, names):
        fewer, more = (comparison.score(name).parameters for name in (simpler, best))
        behind = comparison.difference(simpler, best)
        sentences.append(
            f"{_begin(simpler)} has {fewer} instead of {more} parameters and is not established to predict worse "
            f"({difference_text(behind)})."
        )
    for alike in families:
        sentences.append(
            f"{_begin(_listed(alike))} predict nearly the same (less than {ALIKE:g} nats per {unit} apart): take "
            "them as one family."
        )
    if comparison.selection is not None:
        first = int(comparison.selection.pxp.argmax())
        favourite, pxp = comparison.selected[first], comparison.selection.pxp[first]
        if favourite != best:
            lead = comparison.difference(best, favourite)
            agree = "held-out prediction does not tell them apart" if lead.call != "better" else "the criteria disagree"
            sentences.append(
                f"Group selection by BIC favours {favourite} (PXP {pxp:.2f}), held-out prediction {best} "
                f"({difference_text(lead)}): {agree}."
            )
    return tuple(sentences)


def no_verdict(comparison: Comparison, *, unit: str = "decision", reference: str = "chance") -> str:
    """That no model is established to predict better than the reference, if so; else nothing."""
    best = next((name for name in comparison.names if name != reference), None)
    if best is None or reference not in comparison.names:
        return ""
    gain = comparison.difference(best, reference)
    if gain.call == "better":
        return ""
    if gain.call == "worse":
        return (
            f"No model predicts held-out {unit}s better than {reference}: {best}, the best of them, is worse "
            f"({amount(gain, unit)})."
        )
    return (
        f"No model is established to predict held-out {unit}s better than {reference}, not even {best}, the best of "
        f"them ({amount(gain, unit)})."
    )


def _simpler(comparison: Comparison, names: Sequence[str]) -> str | None:
    """The model with the fewest parameters, fewer than the best one's, that is not established to be worse."""
    best = comparison.score(names[0])
    fewer = [comparison.score(name) for name in names[1:] if comparison.score(name).parameters < best.parameters]
    close = [score for score in fewer if comparison.difference(score.name, best.name).call == "not established"]
    return min(close, key=lambda score: score.parameters).name if close else None


def amount(difference: Difference, unit: str = "decision") -> str:
    """A difference with its standard error and its unit."""
    return f"{difference_text(difference)} nats per {unit}"


def difference_text(difference: Difference) -> str:
    """A difference with its standard error."""
    return f"{difference.mean:+.4f} ± {difference.error:.4f}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]])


def _begin(words: str) -> str:
    """As the beginning of a sentence."""
    return words[:1].upper() + words[1:]


# ---------------------------------------------------------------------------------------------------- fits


def headline(fit: Fit) -> str:
    """The verdict about gating in one sentence."""
    comparison = fit.comparison
    if comparison is None or not {AGENT, CONSTANT} <= set(comparison.names):
        return "The parameters of a composed agent, not compared with constant weights."
    if no_verdict(comparison):
        return "No model is established to predict these decisions better than chance."
    if float(fit.weights.std(axis=0).max()) < LEAST_MOVEMENT:
        return "The weights hardly move: constant weights do."
    call = comparison.difference(AGENT, CONSTANT).call
    return {
        "better": "State-dependent gating is needed to predict these decisions.",
        "not established": "State-dependent gating is not established to be needed: constant weights may do.",
        "worse": "State-dependent gating predicts these decisions worse than constant weights.",
    }[call]


def sentence_of(fit: Fit) -> str:
    """Whether state-dependent weights are needed, from held-out scores and the weights' movement."""
    comparison = fit.comparison
    if comparison is None or not {AGENT, CONSTANT} <= set(comparison.names):
        return "Gating was not compared with constant weights."
    if lost := no_verdict(comparison):
        return f"{lost} (Held out by {fit.held_out_by}.)"
    gain, moved = comparison.difference(AGENT, CONSTANT), float(fit.weights.std(axis=0).max())
    if moved < LEAST_MOVEMENT:
        return (
            f"The weights hardly move (sd {moved:.4f}), so what the composed agent adds over constant weights "
            f"({amount(gain)}) is not gating: constant weights do."
        )
    words = {
        "better": f"State-dependent gating adds {amount(gain)} over constant weights: it is needed here.",
        "not established": f"State-dependent gating adds {amount(gain)} over constant weights: it is not needed here.",
        "worse": f"State-dependent gating predicts worse than constant weights ({amount(gain)}): it is the wrong model "
        "here.",
    }[gain.call]
    best = next(name for name in comparison.names if name != CONSTANT)
    if best != AGENT and (ahead := comparison.difference(best, AGENT)).call == "better":
        words += f" {best.capitalize()} predicts better, by {amount(ahead)}."
    return f"{words} (Held out by {fit.held_out_by}.)"


def estimate_rows(fit: Fit) -> list[dict[str, Any]]:
    """One row for each natural number: estimate, errors, 95% interval, verdict.

    An entry of a simplex has the interval of its odds over the last entry. Its verdict is the worst of all log ratios,
    whose reasons stand once, in the first row.
    """
    errors, robust_errors, intervals = fit.errors, fit.robust_errors, fit.intervals
    rows, at = [], 0
    for parameter, theta in zip(fit.parameters, fit.theta.values(), strict=True):
        name, grades = parameter.name, fit.verdicts[at : at + parameter.free]
        shared, ends = parameter.transform == "simplex", np.reshape(intervals[name], (-1, 2)).tolist()
        for i, value in enumerate(np.atleast_1d(theta)):
            own = grades if shared else grades[i : i + 1]
            reasons = [
                f"{verdict.name.removeprefix(f'{name}: ')}: {reason}" if shared else reason
                for verdict in own if i == 0 or not shared for reason in verdict.reasons
            ]  # fmt: skip
            rows.append({
                "parameter": f"{name}: {parameter.labels[i]}" if parameter.labels else name,
                "estimate": float(value),
                "error": float(np.atleast_1d(errors[name])[i]),
                "robust_error": float(np.atleast_1d(robust_errors[name])[i]),
                "interval": None if shared else tuple(ends[i]),
                "odds": tuple(np.exp(ends[i]).tolist()) if shared and i < parameter.free else None,
                "verdict": max((verdict.grade for verdict in own), key=get_args(Grade).index),
                "reason": "; ".join(reasons),
            })  # fmt: skip
        at += parameter.free
    return rows


def interval_text(row: dict[str, Any], digits: int = 4) -> str:
    """The interval of a row of `estimate_rows`, in words."""
    ends = row["interval"] or row["odds"]
    if ends is None:
        return "-"
    low, high = (_number(end, digits) for end in ends)
    return f"{low} to {high}" + (" (odds)" if row["interval"] is None else "")


def person_rows(fit: Fit) -> list[dict[str, Any]]:
    """With groups, one row for each person: estimates on natural scales, shrunk towards the group."""
    if fit.group is None:
        return []
    theta = {name: np.asarray(value).tolist() for name, value in natural(fit.parameters, fit.group.z).items()}
    labels = np.unique(fit.observations.subject).tolist()
    return [{"person": label} | {name: value[i] for name, value in theta.items()} for i, label in enumerate(labels)]


def describe(fit: Fit) -> str:
    """The fit in plain words, as Markdown."""
    gating = [] if fit.comparison is None else ["", "## Is gating needed?", "", describe_gating(fit)]
    return "\n".join([describe_estimates(fit), *gating]) + "\n"


def describe_estimates(fit: Fit) -> str:
    """The estimates and how sure they are, as Markdown."""
    rows = [
        [row["parameter"], _number(row["estimate"]), _number(row["error"]), _number(row["robust_error"]),
         interval_text(row), row["verdict"] + (f": {row['reason']}" if row["reason"] else "")]
        for row in estimate_rows(fit)
    ]  # fmt: skip
    columns = ["parameter", "estimate", "error", "error, clustered", "95% interval", "verdict"]
    method = "maximum likelihood" if fit.method == "ml" else "maximum a posteriori"
    method = method if fit.group is None else "empirical Bayes"
    return "\n".join([
        f"{fit.decisions} decisions; log-likelihood {fit.log_likelihood:.2f}, BIC {fit.bic:.1f}, {method}.",
        *fit.notes, "", table(columns, rows), "", _how_sure(fit),
    ])  # fmt: skip


def describe_gating(fit: Fit) -> str:
    """Whether gating is needed, what else the comparison says, and its table, as Markdown."""
    assert fit.comparison is not None
    sentences = [sentence_of(fit), *describe_comparison(fit.comparison)]
    explained = (
        "Held out: nats per decision, under estimates without the decision's fold. Differences are paired over the "
        f"same decisions, with standard errors over {'subject' if fit.group is not None else fit.held_out_by}s."
    )
    return "\n\n".join([*dict.fromkeys(sentences), "\n".join(table(*comparison_table(fit.comparison))), explained])


def _how_sure(fit: Fit) -> str:
    """Where errors and intervals come from."""
    if fit.group is not None:
        return (
            f"Estimates are the mean of {len(fit.group.z)} people, by empirical Bayes, with the error of that mean. "
            "Verdicts are about the estimate that all share: it has more data than anybody."
        )
    words = "Errors are from the curvature of the likelihood, and from its sandwich over clusters; intervals are "
    if len(fit.uncertainty.profiled) == len(fit.verdicts):
        return words + "profiles of the likelihood. An open interval ends at 0 or infinity."
    if not fit.uncertainty.profiled:
        return words + "from the curvature, too: no profile was computed."
    names = ", ".join(fit.verdicts[j].name for j in fit.uncertainty.profiled)
    return words + f"profiles of the likelihood for {names}, and from the curvature for the others."


def recovery_rows(recovery: Recovery) -> list[list[str]]:
    """One row for each free number of a recovery."""
    rows = []
    for j, name in enumerate(recovery.names):
        wald, profiled = coverage(recovery, name)
        shown = "-" if profiled is None else f"{profiled.share:.3f} ({profiled.low:.2f} to {profiled.high:.2f})"
        rows.append([name, _number(recovery.truth[j]), f"{recovery.bias[j]:+.3f}", _number(recovery.sd[j]),
                     f"{wald.share:.3f}", shown, f"{recovery.needed[j]:,.0f}"])  # fmt: skip
    return rows


def information_rows(known: Information) -> list[list[str]]:
    """One row for each free number: decisions for an error of .1, with all free and alone, and its worst partner."""
    rows, correlation = [], known.correlation - np.eye(len(known.names))
    for j, name in enumerate(known.names):
        partner = int(np.argmax(np.abs(correlation[j])))
        worst = "-" if len(known.names) < 2 else f"{known.names[partner]} ({correlation[j, partner]:+.2f})"
        rows.append([name, f"{known.needed[j]:,.0f}", f"{known.needed_alone[j]:,.0f}", worst])
    return rows


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (columns, ["---"] * len(columns), *rows))


def as_markdown(text: str) -> str:
    """Text from outside, so that Markdown shows it and does not obey it."""
    # a colon, an underscore or a sign of a list does something in some places only: elsewhere it stays readable
    return re.sub(r"([\\`*{}\[\]<>|$&~@^]|(?<!\w)_|_(?!\w)|:(?=/)|^[=#+-]|(?<=www)\.)", r"\\\1", text)


def _number(value: float, digits: int = 4) -> str:
    if np.isnan(value):
        return "-"
    if np.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    return f"{value:.{digits}g}"
