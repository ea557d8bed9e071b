"""Choices of a table: fit every model, compare, check, draw, write."""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from .._types import Watch
from ..choices import checks, figures, report
from ..choices.compare import Analysis, Plan, Rivals, analyse, fit_rivals
from ..choices.data import Choices, as_csv
from ..choices.estimate import CHANCE
from ..choices.models import OURS
from ..drawing import styled
from ..inference import ModelRecovery, describe_comparison, draw_differences
from .page import PageFigure, render_page
from .store import remove_results, save_figure, write_dataset, write_text

CAPTIONS = {
    "model_comparison": "The probability that each model is the most frequent one, allowing for chance (PXP).",
    "held_out": "How much better than chance each model predicts held-out trials, with bars of two standard errors.",
    "weights": "Weights of the primitives by trial of a block: the mean over people with its standard error.",
    "weights_in_course": "The same weights along the experiment, blocks one after the other.",
    "coefficients": "Coefficients of every person with their 95% intervals.",
    "evidence": "The evidence for the composed model over its reference, person by person.",
    "predictions": "What the fitted models do when they are simulated, beside what people did.",
}

TABLES = ("subjects", "models", "weights", "recovery", "confusion", "predictions", "shrunk")
# all that a fit may write: an earlier one's go first, so that Ctrl-C never leaves files of two runs
WRITTEN = (
    "report.html", "summary.md", "posterior.zarr", *(f"{name}.csv" for name in TABLES),
    *(f"figures/{name}.{ending}" for name in CAPTIONS for ending in ("svg", "png")),
)  # fmt: skip


class ChoiceChecks(NamedTuple):
    """Which checks are asked for."""

    recover: bool
    cross_validate: bool
    ppc: bool


class ChoiceResult(NamedTuple):
    """All that `bandit fit` computes; checks that were not asked for are None."""

    choices: Choices
    plan: Plan
    analysis: Analysis
    examined: checks.Examination
    rivals: Rivals | None
    recovered: ModelRecovery | None
    others: checks.CrossValidation | None
    predicted: checks.PredictiveCheck | None
    remarks: tuple[str, ...]  # about the data, before any result


def run_choices(choices: Choices, plan: Plan, asked: ChoiceChecks, watch: Watch) -> ChoiceResult:
    """Fit every model to every person, and run the checks that were asked for."""
    watch("fitting models to every person", 0, 4)
    result = analyse(choices, plan=plan)
    watch("held-out predictions", 1, 4)
    examined = checks.examine(choices, result, plan)
    watch("fitting controls", 2, 4)
    rivals = None
    if plan.composes:
        known = result.models[plan.reference]
        rivals = fit_rivals(result.trials, plan.link, plan.eps, plan=plan, known=known)
    recovered = checks.recover(choices, plan, result.models, progress=watch) if asked.recover else None
    others = checks.predict_others(plan, result.trials, progress=watch) if asked.cross_validate else None
    predicted = checks.check_predictions(plan.everything, result.models, result.trials) if asked.ppc else None
    return ChoiceResult(choices, plan, result, examined, rivals, recovered, others, predicted,
                        report.remarks_on(choices, plan, result))  # fmt: skip


def write_choices(fitted: ChoiceResult, out: Path, shrunk: bool, arviz: str, individuals: bool) -> list[Path]:
    """The page, its words as a summary, tables and figures, and the draws of the model `arviz` if it is named."""
    _, plan, result, examined, rivals, recovered, others, predicted, remarks = fitted
    tables = {"subjects": report.subject_table(result, examined), "models": report.model_table(result, examined)}
    pictures: dict[str, Any] = {
        "model_comparison": partial(figures.comparison, result),
        "held_out": partial(draw_differences, examined.comparison, CHANCE, "trial"),
    }
    if result.composed is not None:
        tables["weights"] = report.weight_table(result)
        pictures["weights"] = partial(figures.weights, result, individuals)
        if len(set(result.trials.block.tolist())) > 1:  # with one block its course is the whole experiment's
            pictures["weights_in_course"] = partial(figures.course, result)
    pictures |= {"coefficients": partial(figures.coefficients, result), "evidence": partial(figures.evidence, result)}
    if recovered is not None:
        tables |= {"recovery": report.recovery_table(recovered), "confusion": report.confusion_table(recovered)}
    if predicted is not None:
        tables["predictions"] = report.check_table(predicted)
        pictures["predictions"] = partial(figures.predictions, predicted, result.trials.source)
    if shrunk:
        tables["shrunk"] = report.shrunk_table(plan, result.trials)
    about = (result, rivals, examined, remarks, recovered, others, predicted)
    summary, sections = report.describe(*about), report.sections(*about)
    remove_results(out, WRITTEN)
    files = [write_text(out / "summary.md", summary)]
    files += [write_text(out / f"{name}.csv", as_csv(table)) for name, table in tables.items()]
    drawn = []
    for name, draw in pictures.items():
        files += save_figure(out / "figures" / name, styled(draw))
        drawn.append(PageFigure(name, f"figures/{name}.svg", f"figures/{name}.png", CAPTIONS[name], ()))
    headline = f"{result.trials.source}: {report.verdict(result, examined).partition('. ')[0].rstrip('.')}"
    files.insert(0, write_text(out / "report.html", render_page(headline, sections, drawn, out)))
    if arviz:
        tree = checks.posterior_tree(plan.everything[arviz], result.models[arviz], result.trials)
        files.append(write_dataset(out / "posterior.zarr", tree))
    return files


def numbers_of(fitted: ChoiceResult, rows: list[dict[Any, Any]]) -> dict[str, Any]:
    """The numbers of the record."""
    result, examined, rivals, others = fitted.analysis, fitted.examined, fitted.rivals, fitted.others
    numbers = {
        "data": result.trials.source, "trials": int(result.trials.counts.sum()), "left_out": result.left_out,
        "people": len(examined.people), "models": rows, "bor": result.everything.selection.bor,
        "chance": examined.chance_per_trial, "verdict": report.verdict(result, examined),
        "warnings": list(examined.warnings),
        "held_out": list(describe_comparison(examined.comparison, unit="trial", reference=CHANCE)),
    }  # fmt: skip
    if rivals is not None:
        against = result.ours.against_reference
        numbers |= {
            "against_reference": {"pxp": against.pxp(OURS), "bor": against.selection.bor},
            "controls": {rival.name: {key: getattr(rival, key) for key in ("log_likelihood", "pxp", "bor")}
                         for rival in rivals.known()},
        }  # fmt: skip
    if others is not None:
        numbers["other_people"] = {name: others.mean(name) for name in others.models}
    return numbers
