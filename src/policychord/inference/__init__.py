"""From behaviour back to parameters: likelihoods, estimates, their uncertainty, groups of people, and recovery.

In layers, each usable alone: `parameters` (names and scales), `likelihoods` (models and data), `search` (the
optimiser), `optimise` (estimates), `uncertainty` (errors, profiles, verdicts), `groups` (empirical Bayes), `comparison`
(models on held-out decisions), `selection` (frequencies of models in a group), `findings` (what a comparison says). For
composed agents: `decisions` (their likelihood and their rivals), `fits` (`fit`), `recovery`, `learning` (primitives),
`output` and `figures`.
"""

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .comparison import (
        Comparison,
        Difference,
        Score,
        compare,
        folds_of,
        folds_within,
        near_duplicates,
        paired,
    )
    from .decisions import Family, Observations, from_dataset, from_trace, observations
    from .export import to_arviz, to_numpyro
    from .figures import (
        draw_correlations,
        draw_differences,
        draw_estimates,
        draw_people,
        draw_recovery,
        draw_weights,
    )
    from .findings import comparison_rows, comparison_table, describe_comparison
    from .fits import Fit, fit, likelihood_of, sentence_of
    from .groups import GroupFit, ModelFrequencies, empirical_bayes, model_frequencies
    from .learning.objectives import Learned, learn
    from .likelihoods import Data, Likelihood, Model, likelihood
    from .optimise import Estimate, Optimum, estimate, maximise
    from .output import describe, to_datatree
    from .parameters import Normal, Parameter, bounded, positive, real, simplex
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
    from .selection import (
        ConditionComparison,
        Frequencies,
        GroupComparison,
        ModelSelection,
        Power,
        compare_conditions,
        compare_groups,
        exceedance,
        not_excluded,
        posterior_frequencies,
        power,
        select_families,
        select_models,
    )
    from .uncertainty import Uncertainty, Verdict, verdicts

_HOME = {
    "decisions": (
        "Family",
        "Observations",
        "from_dataset",
        "from_trace",
        "observations",
    ),
    "export": ("to_arviz", "to_numpyro"),
    "figures": (
        "draw_correlations",
        "draw_differences",
        "draw_estimates",
        "draw_people",
        "draw_recovery",
        "draw_weights",
    ),
    "findings": ("comparison_rows", "comparison_table", "describe_comparison"),
    "fits": (
        "Fit",
        "fit",
        "likelihood_of",
        "sentence_of",
    ),
    "groups": (
        "GroupFit",
        "ModelFrequencies",
        "empirical_bayes",
        "model_frequencies",
    ),
    "learning.objectives": (
        "Learned",
        "learn",
    ),
    "likelihoods": (
        "Data",
        "Likelihood",
        "Model",
        "likelihood",
    ),
    "optimise": (
        "Estimate",
        "Optimum",
        "estimate",
        "maximise",
    ),
    "output": ("describe", "to_datatree"),
    "parameters": (
        "Normal",
        "Parameter",
        "bounded",
        "positive",
        "real",
        "simplex",
    ),
    "recovery": (
        "Design",
        "Information",
        "ModelRecovery",
        "RecoveredParameter",
        "Recovery",
        "coverage",
        "information",
        "needed_for",
        "recover",
        "recover_models",
    ),
    "selection": (
        "ConditionComparison",
        "Frequencies",
        "GroupComparison",
        "ModelSelection",
        "Power",
        "compare_conditions",
        "compare_groups",
        "exceedance",
        "not_excluded",
        "posterior_frequencies",
        "power",
        "select_families",
        "select_models",
    ),
    "uncertainty": (
        "Uncertainty",
        "Verdict",
        "verdicts",
    ),
    "comparison": (
        "Comparison",
        "Difference",
        "Score",
        "compare",
        "folds_of",
        "folds_within",
        "near_duplicates",
        "paired",
    ),
}

__getattr__, __dir__, __all__ = lazily(__name__, _HOME)
