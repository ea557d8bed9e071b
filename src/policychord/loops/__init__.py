"""Loops: one `step` of an agent in its environment, repeated: `rollout`, `replay`, their trace, and `contest`."""

from .contest import Contest, contest, controls
from .rollout import replay, rollout
from .single import Alone, Greedy, Unpriced
from .step import Carry, Record, Streams, begin, step, step_in_turn, streams_of
from .trace import Labels, Trace, to_dataset

__all__ = [
    "Alone", "Carry", "Contest", "Greedy", "Labels", "Record", "Streams", "Trace", "Unpriced", "begin", "contest",
    "controls", "replay", "rollout", "step", "step_in_turn", "streams_of", "to_dataset",
]  # fmt: skip
