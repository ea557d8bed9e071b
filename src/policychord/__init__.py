"""Compose reusable behaviours: the mixture weights that minimise one variational objective, with their proof."""

from .core.equilibrium import ConvergenceError, Equilibrium, solve
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

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "ConvergenceError",
    "Equilibrium",
    "Problem",
    "certify",
    "complexity",
    "energy",
    "gate",
    "primitive_cost",
    "problem",
    "solve",
]
