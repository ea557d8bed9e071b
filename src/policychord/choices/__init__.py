"""Choices between uncertain arms: read them, fit models of choice, compare the models over a group, report."""

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .beliefs import Trials, believe, take
    from .checks import CrossValidation, Recovered, Recovery, check_predictions, posterior_tree, predict_others, recover
    from .compare import (
        OURS,
        ROUNDING,
        Analysis,
        Comparison,
        Rival,
        Rivals,
        analyse,
        compare_models,
        fit_hybrid,
        fit_rivals,
        model_by_name,
        plan_models,
        weights_by_trial,
    )
    from .data import TASKS, Choices, Reading, Task, measure_task, parse_choices, read_choices
    from .estimate import choice_likelihood, shrink
    from .fetch import data_folder, find_data
    from .figures import colours, draw_course, draw_pxp, entitle, probability_label
    from .glm import ChoiceFit, Link, fit_choices, log_choice_prob
    from .learners import AbstractLearner, BetaBernoulli, DeltaRule, Kalman, NoLearning, TwoRates, learner_of
    from .models import (
        LEAST,
        ChoiceModel,
        Fitted,
        classic,
        coefficients_of,
        compose,
        composed,
        evaluate,
        fit,
        log_proba,
        weigh,
    )
    from .quality import examine
    from .report import model_table, verdict
    from .schemas import CLASSIC, FEATURES, KNOWN, PAPER, columns, exploit, features
    from .simulate import GROUPS, SUBJECTS, SYNTHETIC, cohort, draw_people, simulate_choices, synthetic

_HOME = {
    "data": ("TASKS", "Choices", "Reading", "Task", "measure_task", "parse_choices", "read_choices"),
    "beliefs": ("Trials", "believe", "take"),
    "glm": ("ChoiceFit", "Link", "fit_choices", "log_choice_prob"),
    "learners": ("AbstractLearner", "BetaBernoulli", "DeltaRule", "Kalman", "NoLearning", "TwoRates", "learner_of"),
    "schemas": ("CLASSIC", "FEATURES", "KNOWN", "PAPER", "columns", "exploit", "features"),
    "models": (
        "LEAST",
        "ChoiceModel",
        "Fitted",
        "classic",
        "coefficients_of",
        "compose",
        "composed",
        "evaluate",
        "fit",
        "log_proba",
        "weigh",
    ),
    "estimate": ("choice_likelihood", "shrink"),
    "compare": (
        "OURS",
        "ROUNDING",
        "Analysis",
        "Comparison",
        "Rival",
        "Rivals",
        "analyse",
        "compare_models",
        "fit_hybrid",
        "fit_rivals",
        "model_by_name",
        "plan_models",
        "weights_by_trial",
    ),
    "quality": ("examine",),
    "checks": (
        "CrossValidation",
        "Recovered",
        "Recovery",
        "check_predictions",
        "posterior_tree",
        "predict_others",
        "recover",
    ),
    "report": ("model_table", "verdict"),
    "simulate": ("GROUPS", "SUBJECTS", "SYNTHETIC", "cohort", "draw_people", "simulate_choices", "synthetic"),
    "fetch": ("data_folder", "find_data"),
    "figures": ("colours", "draw_course", "draw_pxp", "entitle", "probability_label"),
}
__getattr__, __dir__, __all__ = lazily(__name__, _HOME)
