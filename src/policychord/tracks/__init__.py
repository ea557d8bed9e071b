"""Tracks of real groups: which social forces do these animals use, and do their weights follow the situation?

Tracks -> motion -> decisions -> fit and rivals -> a sentence, figures, a film, and flocks simulated with the estimates.
"""

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .decisions import Decisions, cells_of, decide, of_trial, thin
    from .forces import USUAL, ForceSettings, Layout, Seen, Sight
    from .gating import Answer, HeavyTailed, Judged, answer, call_of, family_of, models_of, weigh
    from .motion import Card, Motion, Smoothing, card_of, describe, leadership, move
    from .reading import TrackError, Tracks, Trial, parse_tracks, read_tracks
    from .simulate import as_tracks, blank_decisions, predict, simulate_group

_HOME = {
    "reading": ("TrackError", "Tracks", "Trial", "parse_tracks", "read_tracks"),
    "motion": ("Card", "Motion", "Smoothing", "card_of", "describe", "leadership", "move"),
    "forces": ("USUAL", "ForceSettings", "Layout", "Seen", "Sight"),
    "decisions": ("Decisions", "cells_of", "decide", "of_trial", "thin"),
    "gating": ("Answer", "HeavyTailed", "Judged", "answer", "call_of", "family_of", "models_of", "weigh"),
    "simulate": ("as_tracks", "blank_decisions", "predict", "simulate_group"),
}
__getattr__, __dir__, __all__ = lazily(__name__, _HOME)
