"""Generative models: descriptions of good behaviour as a cost for every action."""

from .base import AbstractModel, Terms, action_cost
from .cost import Cost
from .gaussian import GaussianTarget, gaussian_kl
from .reference import Reference
from .rollouts import Rollouts
from .total import Sum

__all__ = [
    "AbstractModel",
    "Cost",
    "GaussianTarget",
    "Reference",
    "Rollouts",
    "Sum",
    "Terms",
    "action_cost",
    "gaussian_kl",
]
