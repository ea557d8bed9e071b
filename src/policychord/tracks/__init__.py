"""Tracks of real groups: which social forces do these animals use, and do their weights follow the situation?

Tracks -> motion -> decisions -> fit and rivals -> a sentence, figures, a film, and flocks simulated with the estimates.
"""

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .arena import find_arena
    from .decisions import Decisions, cells_of, decide, of_trial, thin
    from .forces import Layout, Seen, Sight
    from .gating import HeavyTailed, family_of, fit_agent, weigh
    from .kinds import KINDS, Kind, simulate_kind
    from .motion import Card, Motion, card_of, describe, leadership, move
    from .quality import Suspicions, suspect
    from .reading import TrackError, Tracks, Trial, parse_tracks, read_tracks
    from .rivals import models_of
    from .settings import USUAL, ForceSettings, Smoothing, TrackPlan
    from .simulate import as_tracks, blank_decisions, predict, simulate_group
    from .situations import Situations, situations_of
    from .verdict import Judged, Rank, Verdict, call_of, judge

_HOME = {
    "reading": ("TrackError", "Tracks", "Trial", "parse_tracks", "read_tracks"),
    "motion": ("Card", "Motion", "card_of", "describe", "leadership", "move"),
    "forces": ("Layout", "Seen", "Sight"),
    "settings": ("USUAL", "ForceSettings", "Smoothing", "TrackPlan"),
    "decisions": ("Decisions", "cells_of", "decide", "of_trial", "thin"),
    "gating": ("HeavyTailed", "family_of", "fit_agent", "weigh"),
    "quality": ("Suspicions", "suspect"),
    "arena": ("find_arena",),
    "situations": ("Situations", "situations_of"),
    "rivals": ("models_of",),
    "verdict": ("Judged", "Rank", "Verdict", "call_of", "judge"),
    "kinds": ("KINDS", "Kind", "simulate_kind"),
    "simulate": ("as_tracks", "blank_decisions", "predict", "simulate_group"),
}
__getattr__, __dir__, __all__ = lazily(__name__, _HOME)
