"""What a comparison says: one table, and sentences by rules that stand here once (its figure: `draw_differences`).

established         a difference is larger than SURE errors (`Difference.call`)
no verdict          the best model is not established to predict better than the reference: nothing else is said
simpler             a model with fewer parameters is not established to predict worse than the best one
one family          held-out ln p of models differs by less than ALIKE on average (`near_duplicates`)
disagreement        group selection (PXP, from BIC) and held-out prediction favour different models
"""

from collections.abc import Sequence
from typing import Any

from .comparison import ALIKE, Comparison, Difference, near_duplicates

# ------------------------------------------------------------------------------------------------- table


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


# --------------------------------------------------------------------------------------------- sentences


def describe_comparison(
    comparison: Comparison, *, unit: str = "decision", reference: str = "chance"
) -> tuple[str, ...]:
    """What may be said of a comparison, by the rules above."""
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
