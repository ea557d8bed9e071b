"""Choices of a table: fit every model, compare, check, draw, write."""

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
from ..inference import ModelRecovery, describe_comparison, draw_differences
from .page import Picture, Results, write_results
from .progress import parts
from .store import remove_results, write_dataset

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

CITED = (
    "Models: S. J. Gershman, Deconstructing the human algorithms for exploration, Cognition 173 (2018).",
    "PXP and BOR: L. Rigoux, K. E. Stephan, K. J. Friston and J. Daunizeau, Bayesian model selection for group studies "
    "- revisited, NeuroImage 84 (2014).",
)
TABLES = ("subjects", "models", "weights", "recovery", "confusion", "predictions", "sequences", "effects", "attitudes",
          "shrunk")  # fmt: skip
# all that a fit may write: an earlier one's go first, so that Ctrl-C never leaves files of two runs
WRITTEN = (
    "report.html", "summary.md", "results.json", "posterior.nc", "posterior.zarr",  # the last was written by 0.2.0
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
    composes = plan.composes
    planted = composes and "RU" in plan.everything[plan.reference].coefficients
    fitting, checking, controls, recovering, others_of, predicting, affecting, planting = parts(
        watch, 4.0, 1.6, 0.3 * composes, 40.0 * asked.recover, 4.0 * asked.cross_validate, 6.0 * asked.ppc,
        4.0 * bool(asked.effects), 12.0 * planted,
    )  # fmt: skip
    fitting("fitting models to every person", 0, 1)
    result = analyse(choices, plan=plan)
    checking("held-out predictions", 0, 1)
    examined = checks.examine(choices, result, plan)
    rivals = None
    if composes:
        controls("fitting controls", 0, 1)
        known = result.models[plan.reference]
        rivals = fit_rivals(result.trials, plan.link, plan.eps, plan=plan, known=known)
    recovered = checks.recover(choices, plan, result.models, progress=recovering) if asked.recover else None
    others = checks.predict_others(plan, result.trials, progress=others_of) if asked.cross_validate else None
    predicted = sequences = None
    if asked.ppc:
        predicted = check_predictions(plan.everything, result.models, result.trials)
        sequences = predict_sequences(choices, plan, result.models, result.trials, progress=predicting)
    effects = fit_effects(choices, plan, result.trials, asked.effects, affecting) if asked.effects else ()
    return ChoiceResult(choices, plan, result, examined, rivals, recovered, others, predicted,
                        report.remarks_on(choices, plan, result), sequences, effects,
                        plant_attitudes(choices, plan, result, progress=planting))  # fmt: skip


def results_of(fitted: ChoiceResult, shrunk: bool = False, individuals: bool = False) -> Results:
    """What stands on the page of choices, and in its files."""
    result, examined = fitted.analysis, fitted.examined
    group, best = report.group_of_people(fitted.choices), best_of(fitted.effects, examined)
    columns, rows = report.compared_cells(result, examined)
    model, numbers = report.judged(result), numbers_of(fitted, report.model_table(result, examined).to_dict("records"))
    checked = (fitted.attitudes, best, fitted.recovered, fitted.others, fitted.predicted, fitted.sequences)
    said = [line for line in numbers["held_out"] if line not in examined.warnings]
    return Results(
        kind="choices fit", source=result.trials.source, verdict=report.headline(result, examined), columns=columns,
        rows=rows, sentences=[report.verdict(result, examined), *said], warnings=[*examined.warnings],
        estimates=(model, report.about_fits(result, model, group)), card=report.about_data(result, fitted.remarks),
        details=[("How to read the table", report.about_table(result, examined)),
                 *report.details(result, fitted.rivals, *checked)],
        pictures=_pictures(fitted, best, individuals), tables=_tables(fitted, group, shrunk), record=numbers,
        cited=CITED,
    )  # fmt: skip


def _tables(fitted: ChoiceResult, group: Any, shrunk: bool) -> dict[str, str]:
    """Names of files and their text; those of checks that were not asked for are left out."""
    result, effects = fitted.analysis, fitted.effects
    made = {
        "subjects": report.subject_table(result, fitted.examined, group),
        "models": report.model_table(result, fitted.examined),
        "weights": None if result.composed is None else report.weight_table(result),
        "predictions": None if fitted.predicted is None else report.check_table(fitted.predicted),
        "sequences": None if fitted.sequences is None else sequence_table(fitted.sequences),
        "effects": effect_table(effects) if effects else None,
        "attitudes": None if fitted.attitudes is None else attitude_table(fitted.attitudes),
        "shrunk": report.shrunk_table(fitted.plan, result.trials) if shrunk else None,
    }
    if fitted.recovered is not None:
        made |= {"recovery": report.recovery_table(fitted.recovered),
                 "confusion": report.confusion_table(fitted.recovered)}  # fmt: skip
    return {f"{name}.csv": as_csv(table) for name, table in made.items() if table is not None}


def _pictures(fitted: ChoiceResult, best: ModelEffects | None, individuals: bool) -> dict[str, Picture]:
    result, source = fitted.analysis, fitted.analysis.trials.source
    drawn: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "model_comparison": (figures.comparison, (result,)),
        "held_out": (draw_differences, (fitted.examined.comparison, CHANCE, "trial")),
        "coefficients": (figures.coefficients, (result,)),
    }
    if result.composed is not None:
        drawn["weights"] = (figures.weights, (result, individuals))
        if len(set(result.trials.block.tolist())) > 1:  # with one block its course is the whole experiment's
            drawn["weights_in_course"] = (figures.course, (result,))
    drawn["evidence"] = (figures.evidence, (result,))
    if fitted.predicted is not None:
        drawn["predictions"] = (figures.predictions, (fitted.predicted, source))
    if best is not None:
        drawn["effects"] = (figures.effects, (best, source))
    return {name: (draw, arguments, CAPTIONS[name]) for name, (draw, arguments) in drawn.items()}


def write_choices(fitted: ChoiceResult, results: Results, out: Path, arviz: str = "", again: str = "") -> list[Path]:
    """The page with its figures and tables, and the draws of the model `arviz` if it is named."""
    remove_results(out, WRITTEN)
    files = write_results(out, results, again)
    if arviz:
        result = fitted.analysis
        tree = checks.posterior_tree(fitted.plan.everything[arviz], result.models[arviz], result.trials)
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
        "chance": examined.chance_per_trial,
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
