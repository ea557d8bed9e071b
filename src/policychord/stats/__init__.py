"""Statistics that the studies need and that stand on their own: arrays in, records out."""

from .effect_size import EffectSize, Spread, cliffs_delta, effect_size, spread
from .glm import ChoiceFit, fit_choices, log_choice_prob
from .model_selection import ModelSelection, exceedance, select_families, select_models

__all__ = [
    "ChoiceFit",
    "EffectSize",
    "ModelSelection",
    "Spread",
    "cliffs_delta",
    "effect_size",
    "exceedance",
    "fit_choices",
    "log_choice_prob",
    "select_families",
    "select_models",
    "spread",
]
