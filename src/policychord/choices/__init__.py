"""Choices between uncertain arms: read them, fit models of choice, compare the models over a group, report."""

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .attitudes import Attitudes, plant_attitudes
    from .checks import (
        CrossValidation,
        Examination,
        examine,
        folds_of_people,
        posterior_tree,
        predict_others,
        recover,
        recover_choices,
    )
    from .compare import (
        Analysis,
        Plan,
        Rival,
        Rivals,
        Selection,
        analyse,
        compare_models,
        fit_rivals,
        plan_models,
        weights_by_trial,
    )
    from .data import Choices, Reading, parse_choices, read_choices
    from .effects import ModelEffects, effect_table, fit_effects
    from .estimate import Fitted, borrow, choice_likelihood, coefficients_of, fit, shrink
    from .fetch import data_folder, find_data
    from .figures import colours, draw_course, draw_pxp, entitle, probability_label
    from .learners import (
        AbstractLearner,
        BetaBernoulli,
        DeltaRule,
        GainLoss,
        Kalman,
        NoLearning,
        Trials,
        TwoRates,
        believe,
        learner_of,
        take,
    )
    from .measure import measure_task
    from .models import (
        CLASSIC,
        FEATURES,
        KNOWN,
        LEAST,
        OURS,
        PAPER,
        ROUNDING,
        ChoiceModel,
        Link,
        classic,
        columns,
        compose,
        composed,
        exploit,
        log_proba,
        model_by_name,
        weigh,
    )
    from .predictive import SequenceCheck, check_predictions, predict_sequences
    from .report import model_table, verdict
    from .simulate import GROUPS, SUBJECTS, SYNTHETIC, cohort, draw_people, simulate_choices, synthetic
    from .tasks import TASKS, Arms, Task, make_task, set_numbers

_HOME = {
        "tasks": ("TASKS", "Arms", "Task", "make_task", "set_numbers"), "measure": ("measure_task",),
        "data": ("Choices", "Reading", "parse_choices", "read_choices"),
        "learners": ("AbstractLearner", "BetaBernoulli", "DeltaRule", "GainLoss", "Kalman", "NoLearning", "Trials",
                 "TwoRates", "believe", "learner_of", "take"),
        "models": ("CLASSIC", "FEATURES", "KNOWN", "LEAST", "OURS", "PAPER", "ROUNDING", "ChoiceModel", "Link",
               "classic", "columns", "compose", "composed", "exploit", "log_proba", "model_by_name", "weigh"),
        "estimate": ("Fitted", "borrow", "choice_likelihood", "coefficients_of", "fit", "shrink"),
        "compare": ("Analysis", "Plan", "Rival", "Rivals", "Selection", "analyse", "compare_models",
                "fit_rivals", "plan_models", "weights_by_trial"),
        "checks": ("CrossValidation", "Examination", "examine", "folds_of_people",
               "posterior_tree", "predict_others", "recover", "recover_choices"),
        "attitudes": ("Attitudes", "plant_attitudes"),
        "effects": ("ModelEffects", "effect_table", "fit_effects"),
        "predictive": ("SequenceCheck", "check_predictions", "predict_sequences"),
        "report": ("model_table", "verdict"),
        "simulate": ("GROUPS", "SUBJECTS", "SYNTHETIC", "cohort", "draw_people", "simulate_choices", "synthetic"),
        "fetch": ("data_folder", "find_data"),
        "figures": ("colours", "draw_course", "draw_pxp", "entitle", "probability_label"),
}  # fmt: skip
__getattr__, __dir__, __all__ = lazily(__name__, _HOME)
