"""Statistics that the studies need and that stand on their own: arrays in, records out."""

from .effect_size import EffectSize, Spread, cliffs_delta, effect_size, spread
from .glm import ChoiceFit, Link, fit_choices, log_choice_prob
from .model_selection import (
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

__all__ = [
    "ChoiceFit",
    "ConditionComparison",
    "EffectSize",
    "Frequencies",
    "GroupComparison",
    "Link",
    "ModelSelection",
    "Power",
    "Spread",
    "cliffs_delta",
    "compare_conditions",
    "compare_groups",
    "effect_size",
    "exceedance",
    "fit_choices",
    "log_choice_prob",
    "not_excluded",
    "posterior_frequencies",
    "power",
    "select_families",
    "select_models",
    "spread",
]
