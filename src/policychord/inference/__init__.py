"""From behaviour back to parameters: likelihoods, estimates, their uncertainty, groups of people, and recovery.

In layers, each usable alone: `parameters` (names and scales), `likelihoods` (models and data), `search` (the
optimiser), `optimise` (estimates), `uncertainty` (errors, profiles, verdicts), `groups` (empirical Bayes), `comparison`
(models on held-out decisions), `selection` (frequencies of models in a group). `recovery` and `prediction`
simulate at the estimates. For composed agents: `decisions` (their likelihood and their rivals), `fits` (`fit`),
`learning` (primitives). What was found: `findings` (tables and sentences), `figures`, `export`.
"""

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .comparison import (
        Comparison,
        Difference,
        Estimator,
        Score,
        compare,
        folds_of,
        folds_within,
        near_duplicates,
        paired,
    )
    from .contrasts import Contrasts, by_condition, contrasts_of
    from .decisions import Family, Observations, from_dataset, from_trace, observations
    from .export import to_arviz, to_datatree, to_numpyro
    from .figures import draw_correlations, draw_differences, draw_estimates, draw_people, draw_recovery, draw_weights
    from .findings import comparison_rows, comparison_table, describe, describe_comparison, sentence_of
    from .fits import Fit, fit, likelihood_of
    from .groups import Effect, GroupFit, ModelFrequencies, effects_of, empirical_bayes, model_frequencies
    from .learning.objectives import Learned, learn
    from .likelihoods import Data, Likelihood, Model, likelihood
    from .optimise import Optimum, estimate, maximise
    from .parameters import Normal, Parameter, bounded, positive, real, simplex
    from .prediction import Prediction, predict
    from .recovery import (
        Design,
        Information,
        ModelRecovery,
        RecoveredParameter,
        Recovery,
        coverage,
        information,
        needed_for,
        recover,
        recover_models,
    )
    from .search import Estimate
    from .selection import (
        ConditionComparison,
        Frequencies,
        GroupComparison,
        ModelSelection,
        Power,
        compare_conditions,
        compare_groups,
        detectable_difference,
        exceedance,
        not_excluded,
        posterior_frequencies,
        power,
        select_families,
        select_models,
    )
    from .uncertainty import Uncertainty, Verdict, verdicts

_HOME = {
    "parameters": ("Normal", "Parameter", "bounded", "positive", "real", "simplex"),
    "likelihoods": ("Data", "Likelihood", "Model", "likelihood"),
    "search": ("Estimate",),
    "optimise": ("Optimum", "estimate", "maximise"),
    "uncertainty": ("Uncertainty", "Verdict", "verdicts"),
    "groups": ("Effect", "GroupFit", "ModelFrequencies", "effects_of", "empirical_bayes", "model_frequencies"),
    "contrasts": ("Contrasts", "by_condition", "contrasts_of"),
    "comparison": (
        "Comparison", "Difference", "Estimator", "Score", "compare", "folds_of", "folds_within", "near_duplicates",
        "paired",
    ),
    "selection": (
        "ConditionComparison", "Frequencies", "GroupComparison", "ModelSelection", "Power", "compare_conditions",
        "compare_groups", "detectable_difference", "exceedance", "not_excluded", "posterior_frequencies", "power",
        "select_families", "select_models",
    ),
    "decisions": ("Family", "Observations", "from_dataset", "from_trace", "observations"),
    "fits": ("Fit", "fit", "likelihood_of"),
    "recovery": (
        "Design", "Information", "ModelRecovery", "RecoveredParameter", "Recovery", "coverage", "information",
        "needed_for", "recover", "recover_models",
    ),
    "prediction": ("Prediction", "predict"),
    "learning.objectives": ("Learned", "learn"),
    "findings": ("comparison_rows", "comparison_table", "describe", "describe_comparison", "sentence_of"),
    "figures": (
        "draw_correlations", "draw_differences", "draw_estimates", "draw_people", "draw_recovery", "draw_weights",
    ),
    "export": ("to_arviz", "to_datatree", "to_numpyro"),
}  # fmt: skip

__getattr__, __dir__, __all__ = lazily(__name__, _HOME)
