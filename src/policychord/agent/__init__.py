"""Agents: from an observation to a gating problem, to weights with their certificate, to an action."""

from .._names import check_used
from ..core._method import Outcome
from .composer import Composer
from .decision import FAILURES, Agent, Decides, Decision, Memory, Selection, Weighing, failed, remember
from .gates import (
    DURATION,
    GATES,
    AbstractGate,
    AtEquilibrium,
    Cheapest,
    Circuit,
    Flow,
    Gate,
    Gated,
    OneStep,
    Options,
    Posterior,
    Prior,
    gate_in_time,
)
from .plan import Commitment, Planned, Planner

__all__ = [
    "DURATION", "FAILURES", "GATES", "AbstractGate", "Agent", "AtEquilibrium", "Cheapest", "Circuit", "Commitment",
    "Composer", "Decides", "Decision", "Flow", "Gate", "Gated", "Memory", "OneStep", "Options", "Outcome", "Planned",
    "Planner", "Posterior", "Prior", "Selection", "Weighing", "check_used", "failed", "gate_in_time", "remember",
]  # fmt: skip
