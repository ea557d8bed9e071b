"""Choices of a table: fit every model, compare, check, draw, write."""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from .._types import Watch
from ..choices import checks, figures, report
from ..choices.attitudes import Attitudes, attitude_table, describe_attitudes, plant_attitudes
from ..choices.compare import Analysis, Plan, Rivals, analyse, fit_rivals
from ..choices.data import Choices, as_csv
from ..choices.effects import By, ModelEffects, describe_effects, effect_table, fit_effects
from ..choices.estimate import CHANCE
from ..choices.models import OURS
from ..choices.predictive import (
    PredictiveCheck,
    SequenceCheck,
    check_predictions,
    predict_sequences,
    sequence_table,
)
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
    "evidence": "Log evidence (-BIC/2) of every model below the best one, person by person.",
    "predictions": "What people did, and what the fitted models expected of them one step ahead.",
    "effects": "Differences between groups and conditions, with 95% intervals, in standard deviations over people.",
}

TABLES = ("subjects", "models", "weights", "recovery", "confusion", "predictions", "sequences", "effects", "attitudes",
          "shrunk")  # fmt: skip
# all that a fit may write: an earlier one's go first, so that Ctrl-C never leaves files of two runs
WRITTEN = (
    "report.html", "summary.md", "posterior.nc", "posterior.zarr",  # the last was written by 0.2.0
    *(f"{name}.csv" for name in TABLES),
    *(f"figures/{name}.{ending}" for name in CAPTIONS for ending in ("svg", "png")),
)  # fmt: skip


class ChoiceChecks(NamedTuple):
    """Which checks are asked for."""

    recover: bool
    cross_validate: bool
    ppc: bool
    effects: tuple[By, ...] = ()  # by what coefficients may differ


class ChoiceResult(NamedTuple):
    """All that `choices fit` computes; checks that were not asked for are None."""

    choices: Choices
    plan: Plan
    analysis: Analysis
    examined: checks.Examination
    rivals: Rivals | None
    recovered: ModelRecovery | None
    others: checks.CrossValidation | None
    predicted: PredictiveCheck | None
    remarks: tuple[str, ...]  # about the data, before any result
    sequences: SequenceCheck | None = None
    effects: tuple[ModelEffects, ...] = ()
    attitudes: Attitudes | None = None


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
    predicted = sequences = None
    if asked.ppc:
        predicted = check_predictions(plan.everything, result.models, result.trials)
        sequences = predict_sequences(choices, plan, result.models, result.trials, progress=watch)
    effects = fit_effects(choices, plan, result.trials, asked.effects, watch) if asked.effects else ()
    return ChoiceResult(choices, plan, result, examined, rivals, recovered, others, predicted,
                        report.remarks_on(choices, plan, result), sequences, effects,
                        plant_attitudes(choices, plan, result, progress=watch))  # fmt: skip


def write_choices(fitted: ChoiceResult, out: Path, shrunk: bool, arviz: str, individuals: bool) -> list[Path]:
    """The page, its words as a summary, tables and figures, and the draws of the model `arviz` if it is named."""
    choices, plan, result, examined, rivals, recovered, others, predicted, remarks, sequences, effects, planted = fitted
    group = report.group_of_people(choices)
    tables = {"subjects": report.subject_table(result, examined, group), "models": report.model_table(result, examined)}
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
    if sequences is not None:
        tables["sequences"] = sequence_table(sequences)
    best = best_of(effects, examined)
    if best is not None:
        tables["effects"] = effect_table(effects)
        pictures["effects"] = partial(figures.effects, best, result.trials.source)
    if planted is not None:
        tables["attitudes"] = attitude_table(planted)
    if shrunk:
        tables["shrunk"] = report.shrunk_table(plan, result.trials)
    about = (result, rivals, examined, remarks, best, planted, recovered, others, predicted, sequences)
    summary, sections = report.describe(*about, group=group), report.sections(*about, group=group)
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
        files.append(write_dataset(out / "posterior.nc", tree))
    return files


def best_of(effects: tuple[ModelEffects, ...], examined: checks.Examination) -> ModelEffects | None:
    """The effects of the model that predicts best among those that have some."""
    known = {each.model: each for each in effects}
    return next((known[name] for name in examined.comparison.names if name in known), None)


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
    if fitted.attitudes is not None:
        planted = fitted.attitudes
        numbers["attitudes"] = {"table": attitude_table(planted).to_dict("records"),
                                "notes": list(describe_attitudes(planted))}  # fmt: skip
    if (best := best_of(fitted.effects, examined)) is not None:
        numbers["effects"] = {"table": effect_table(fitted.effects).to_dict("records"),
                              "notes": list(describe_effects(best))}  # fmt: skip
    if others is not None:
        numbers["other_people"] = {name: others.mean(name) for name in others.models}
    return numbers
