"""Compose reusable behaviours: the mixture weights that minimise one variational objective, with their proof."""

from importlib import import_module
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from .agent import Composer
    from .loops import replay, rollout
    from .population import Population

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "CircuitPath",
    "Composer",
    "ConvergenceError",
    "Equilibrium",
    "Layers",
    "Path",
    "Population",
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
    "replay",
    "rollout",
    "solve",
    "time_scales",
]

# The agents' layer is loaded when it is asked for: somebody who only solves should not wait for it.
_ON_REQUEST = {
    "Composer": "agent",
    "Population": "population",
    "replay": "loops",
    "rollout": "loops",
}


def __getattr__(name: str):
    if name not in _ON_REQUEST:
        raise AttributeError(f"module 'policychord' has no attribute {name!r}")
    return getattr(import_module(f".{_ON_REQUEST[name]}", __name__), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
