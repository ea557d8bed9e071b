"""Generative models: descriptions of good behaviour as a cost for every action."""

from .base import AbstractModel, Reference, Scaled, Sum, Terms, action_cost
from .cost import AbstractOutcomes, BlackBox, Cost, Random, Tabular
from .cost_to_go import FittedCostToGo, Regulator, Rollouts, fit_cost_to_go, linearise, riccati, simulated_steps
from .diagnose import Diagnosis, diagnose
from .gaussian import GaussianTarget, gaussian_kl
from .trials import Trial
from .value import Value

__all__ = [
    "AbstractModel", "AbstractOutcomes", "BlackBox", "Cost", "Diagnosis", "FittedCostToGo", "GaussianTarget", "Random",
    "Reference", "Regulator", "Rollouts", "Scaled", "Sum", "Tabular", "Terms", "Trial", "Value", "action_cost",
    "diagnose", "fit_cost_to_go", "gaussian_kl", "linearise", "riccati", "simulated_steps",
]  # fmt: skip
