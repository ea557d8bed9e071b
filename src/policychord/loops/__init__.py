"""Loops: one `step` of an agent in its environment, repeated: `rollout`, `replay`, their trace, and `contest`."""

from .contest import Contest, contest, controls
from .in_turn import step_in_turn
from .replay import replay
from .rollout import rollout
from .step import Carry, Record, Streams, begin, step, streams_of
from .trace import Labels, Trace, to_dataset

__all__ = [
    "Carry",
    "Contest",
    "Labels",
    "Record",
    "Streams",
    "Trace",
    "begin",
    "contest",
    "controls",
    "replay",
    "rollout",
    "step",
    "step_in_turn",
    "streams_of",
    "to_dataset",
]
