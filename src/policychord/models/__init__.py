"""Generative models: descriptions of good behaviour as a cost for every action."""

from .base import AbstractModel, Terms, action_cost
from .cost import Cost
from .diagnose import Diagnosis, diagnose
from .fitted import FittedCostToGo, fit_cost_to_go
from .gaussian import GaussianTarget, gaussian_kl
from .reference import Reference
from .riccati import Regulator, linearise, riccati
from .rollouts import Rollouts
from .total import Sum
from .transitions import AbstractOutcomes, BlackBox, Random, Tabular

__all__ = [
    "AbstractModel",
    "AbstractOutcomes",
    "BlackBox",
    "Cost",
    "Diagnosis",
    "FittedCostToGo",
    "GaussianTarget",
    "Random",
    "Reference",
    "Regulator",
    "Rollouts",
    "Sum",
    "Tabular",
    "Terms",
    "action_cost",
    "diagnose",
    "fit_cost_to_go",
    "gaussian_kl",
    "linearise",
    "riccati",
]
