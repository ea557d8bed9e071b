"""Compose reusable behaviours: the mixture weights that minimise one variational objective, with their proof."""

from typing import TYPE_CHECKING

from ._lazy import lazily

if TYPE_CHECKING:
    from . import (
        actions,
        agent,
        choices,
        core,
        drawing,
        effect_size,
        gym,
        inference,
        loops,
        models,
        pettingzoo,
        population,
        primitives,
        rivals,
        torch,
        tracks,
        worlds,
    )
    from ._types import enable_x64
    from .actions import Finite, Grid, Sampled
    from .agent import Commitment, Composer, Planner
    from .core.circuit import CircuitPath, Layers, circuit
    from .core.convex import ConvexProblem
    from .core.equilibrium import ConvergenceError, Equilibrium, Outcome, solve
    from .core.flow import Path, dissipation, flow
    from .core.game import GameCertificate, Play, game
    from .core.objective import Certificate, Problem, certify, complexity, energy, gate, primitive_cost, problem
    from .core.regularisers import Entropy, Tsallis, best_response, prox
    from .core.stability import Stability, TimeScales, circuit_stability, time_scales
    from .inference import fit, learn
    from .loops.contest import contest
    from .loops.rollout import replay, rollout
    from .loops.trace import to_dataset
    from .models import Cost, GaussianTarget, Reference, Rollouts, Sum
    from .population import Groups, Population
    from .primitives import Categorical, Gaussian, Policy, Table

__version__ = "0.2.0"

# Everything is loaded when it is asked for: the command's help pages, and somebody who only solves, need not wait.
_HOME = {
    "core.circuit": (
        "CircuitPath", "Layers", "circuit",
    ),
    "core.convex": ("ConvexProblem",),
    "core.stability": ("Stability", "TimeScales", "circuit_stability", "time_scales"),
    "core.game": ("GameCertificate", "Play", "game"),
    "core.equilibrium": ("ConvergenceError", "Equilibrium", "Outcome", "solve"),
    "core.flow": ("Path", "dissipation", "flow"),
    "core.objective": (
        "Certificate", "Problem", "certify", "complexity", "energy", "gate", "primitive_cost", "problem",
    ),
    "core.regularisers": ("Entropy", "Tsallis", "best_response", "prox"),
    "_types": ("enable_x64",),
    "actions": ("Finite", "Grid", "Sampled"),
    "primitives": ("Categorical", "Gaussian", "Policy", "Table"),
    "models": ("Cost", "GaussianTarget", "Reference", "Rollouts", "Sum"),
    "agent": ("Commitment", "Composer", "Planner"),
    "population": ("Groups", "Population"),
    "inference": ("fit", "learn"),
    "loops": ("contest", "replay", "rollout", "to_dataset"),
}  # fmt: skip
# Whole packages, by their names: `pc.worlds.Pendulum`, `pc.choices.read_choices`, `pc.gym.play`.
_PACKAGES = (
    "actions", "agent", "choices", "core", "drawing", "effect_size", "gym", "inference", "loops", "models",
    "pettingzoo", "population", "primitives", "rivals", "torch", "tracks", "worlds",
)  # fmt: skip

__getattr__, __dir__, __all__ = lazily(__name__, _HOME, _PACKAGES)
