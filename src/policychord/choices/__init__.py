"""Choices between uncertain arms: read them, fit models of choice, compare the models over a group, report."""

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .beliefs import Trials, believe, take
    from .checks import (
        CrossValidation,
        check_predictions,
        folds_of_people,
        posterior_tree,
        predict_others,
        recover,
        recover_choices,
    )
    from .compare import (
        OURS,
        ROUNDING,
        Analysis,
        Plan,
        Rival,
        Rivals,
        Selection,
        analyse,
        compare_models,
        fit_rivals,
        model_by_name,
        plan_models,
        weights_by_trial,
    )
    from .data import TASKS, Choices, Reading, Task, measure_task, parse_choices, read_choices
    from .estimate import Fitted, borrow, choice_likelihood, coefficients_of, fit, shrink
    from .fetch import data_folder, find_data
    from .figures import colours, draw_course, draw_pxp, entitle, probability_label
    from .learners import AbstractLearner, BetaBernoulli, DeltaRule, Kalman, NoLearning, TwoRates, learner_of
    from .models import LEAST, ChoiceModel, Link, classic, compose, composed, log_proba, weigh
    from .quality import Examination, examine
    from .report import model_table, verdict
    from .schemas import CLASSIC, FEATURES, KNOWN, PAPER, columns, exploit
    from .simulate import GROUPS, SUBJECTS, SYNTHETIC, cohort, draw_people, simulate_choices, synthetic

_HOME = {
    "data": ("TASKS", "Choices", "Reading", "Task", "measure_task", "parse_choices", "read_choices"),
    "beliefs": ("Trials", "believe", "take"),
    "learners": ("AbstractLearner", "BetaBernoulli", "DeltaRule", "Kalman", "NoLearning", "TwoRates", "learner_of"),
    "schemas": ("CLASSIC", "FEATURES", "KNOWN", "PAPER", "columns", "exploit"),
    "models": ("LEAST", "ChoiceModel", "Link", "classic", "compose", "composed", "log_proba", "weigh"),
    "estimate": ("Fitted", "borrow", "choice_likelihood", "coefficients_of", "fit", "shrink"),
    "compare": (
        "OURS",
        "ROUNDING",
        "Analysis",
        "Plan",
        "Rival",
        "Rivals",
        "Selection",
        "analyse",
        "compare_models",
        "fit_rivals",
        "model_by_name",
        "plan_models",
        "weights_by_trial",
    ),
    "quality": ("Examination", "examine"),
    "checks": (
        "CrossValidation",
        "check_predictions",
        "folds_of_people",
        "posterior_tree",
        "predict_others",
        "recover",
        "recover_choices",
    ),
    "report": ("model_table", "verdict"),
    "simulate": ("GROUPS", "SUBJECTS", "SYNTHETIC", "cohort", "draw_people", "simulate_choices", "synthetic"),
    "fetch": ("data_folder", "find_data"),
    "figures": ("colours", "draw_course", "draw_pxp", "entitle", "probability_label"),
}
__getattr__, __dir__, __all__ = lazily(__name__, _HOME)
