"""Choices between uncertain arms: read them, fit models of choice, compare the models over a group, report."""

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .beliefs import Trials, believe, take
    from .checks import check_predictions, posterior_tree, predict_others, recover
    from .compare import Analysis, Comparison, analyse, compare_models, model_by_name, plan_models, weights_by_trial
    from .data import TASKS, Choices, Reading, Task, measure_task, parse_choices, read_choices
    from .estimate import choice_likelihood, shrink
    from .learners import AbstractLearner, BetaBernoulli, DeltaRule, Kalman, NoLearning, TwoRates, learner_of
    from .models import ChoiceModel, Fitted, classic, composed, fit
    from .quality import examine
    from .report import model_table, verdict
    from .schemas import KNOWN
    from .simulate import GROUPS, cohort, draw_people, simulate_choices, synthetic

__all__ = [
    "GROUPS",
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
    "draw_people",
    "examine",
    "fit",
    "learner_of",
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
    "simulate_choices",
    "synthetic",
    "take",
    "verdict",
    "weights_by_trial",
]

_HOME = {
    "data": ("TASKS", "Choices", "Reading", "Task", "measure_task", "parse_choices", "read_choices"),
    "beliefs": ("Trials", "believe", "take"),
    "learners": ("AbstractLearner", "BetaBernoulli", "DeltaRule", "Kalman", "NoLearning", "TwoRates", "learner_of"),
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
    "simulate": ("GROUPS", "cohort", "draw_people", "simulate_choices", "synthetic"),
}
__getattr__, __dir__ = lazily(__name__, _HOME)
