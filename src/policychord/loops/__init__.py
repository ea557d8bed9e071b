"""Loops: an agent in its environment, or beside a record of choices, and the trace that either leaves."""

from .replay import replay
from .rollout import rollout
from .trace import Labels, Trace, to_dataset

__all__ = ["Labels", "Trace", "replay", "rollout", "to_dataset"]
