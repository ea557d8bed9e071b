"""Choices between uncertain arms: read them, fit models of choice, compare the models over a group, report."""

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .beliefs import Trials, believe, take
    from .checks import check_predictions, posterior_tree, predict_others, recover
    from .compare import Analysis, Comparison, analyse, compare_models, model_by_name, plan_models, weights_by_trial
    from .data import TASKS, Choices, Reading, Task, measure_task, parse_choices, read_choices
    from .estimate import choice_likelihood, shrink
    from .learners import AbstractLearner, BetaBernoulli, DeltaRule, Kalman, NoLearning, TwoRates
    from .models import ChoiceModel, Fitted, classic, composed, fit
    from .quality import examine
    from .report import model_table, verdict
    from .schemas import KNOWN
    from .simulate import cohort, synthetic

__all__ = [
    "KNOWN",
    "TASKS",
    "AbstractLearner",
    "Analysis",
    "BetaBernoulli",
    "ChoiceModel",
    "Choices",
    "Comparison",
    "DeltaRule",
    "Fitted",
    "Kalman",
    "NoLearning",
    "Reading",
    "Task",
    "Trials",
    "TwoRates",
    "analyse",
    "believe",
    "check_predictions",
    "choice_likelihood",
    "classic",
    "cohort",
    "compare_models",
    "composed",
    "examine",
    "fit",
    "measure_task",
    "model_by_name",
    "model_table",
    "parse_choices",
    "plan_models",
    "posterior_tree",
    "predict_others",
    "read_choices",
    "recover",
    "shrink",
    "synthetic",
    "take",
    "verdict",
    "weights_by_trial",
]

_HOME = {
    "data": ("TASKS", "Choices", "Reading", "Task", "measure_task", "parse_choices", "read_choices"),
    "beliefs": ("Trials", "believe", "take"),
    "learners": ("AbstractLearner", "BetaBernoulli", "DeltaRule", "Kalman", "NoLearning", "TwoRates"),
    "schemas": ("KNOWN",),
    "models": ("ChoiceModel", "Fitted", "classic", "composed", "fit"),
    "estimate": ("choice_likelihood", "shrink"),
    "compare": (
        "Analysis",
        "Comparison",
        "analyse",
        "compare_models",
        "model_by_name",
        "plan_models",
        "weights_by_trial",
    ),
    "quality": ("examine",),
    "checks": ("check_predictions", "posterior_tree", "predict_others", "recover"),
    "report": ("model_table", "verdict"),
    "simulate": ("cohort", "synthetic"),
}
__getattr__, __dir__ = lazily(__name__, _HOME)
