"""Compose reusable behaviours: the mixture weights that minimise one variational objective, with their proof."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agent import Composer
    from .core.circuit import CircuitPath, Layers, TimeScales, circuit, time_scales
    from .core.equilibrium import ConvergenceError, Equilibrium, Outcome, solve
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
    "Outcome",
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

# Everything is loaded when it is asked for: the command's help pages, and somebody who only solves, need not wait.
_HOME = {
    "core.circuit": ("CircuitPath", "Layers", "TimeScales", "circuit", "time_scales"),
    "core.equilibrium": ("ConvergenceError", "Equilibrium", "Outcome", "solve"),
    "core.flow": ("Path", "dissipation", "flow"),
    "core.objective": (
        "Certificate", "Problem", "certify", "complexity", "energy", "gate", "primitive_cost", "problem",
    ),
    "core.stability": ("Stability", "circuit_stability"),
    "agent": ("Composer",),
    "population": ("Population",),
    "loops": ("replay", "rollout"),
}  # fmt: skip
_ON_REQUEST = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _ON_REQUEST:
        raise AttributeError(f"module 'policychord' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_ON_REQUEST[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
