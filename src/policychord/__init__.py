"""Compose reusable behaviours: the mixture weights that minimise one variational objective, with their proof."""

from .core.circuit import CircuitPath, Layers, TimeScales, circuit, time_scales
from .core.equilibrium import ConvergenceError, Equilibrium, solve
from .core.flow import Path, dissipation, flow
from .core.objective import (
    Certificate,
    Problem,
    certify,
    complexity,
    energy,
    gate,
    primitive_cost,
    problem,
)
from .core.stability import Stability, circuit_stability

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "CircuitPath",
    "ConvergenceError",
    "Equilibrium",
    "Layers",
    "Path",
    "Problem",
    "Stability",
    "TimeScales",
    "certify",
    "circuit",
    "circuit_stability",
    "complexity",
    "dissipation",
    "energy",
    "flow",
    "gate",
    "primitive_cost",
    "problem",
    "solve",
    "time_scales",
]
