"""Environments: physics only."""

from .bandit import Bandit, BanditState, Belief, learn
from .base import AbstractEnv, Box, Discrete, Spaces, Step, Variable
from .pendulum import Pendulum, PendulumState, upright

__all__ = [
    "AbstractEnv", "Bandit", "BanditState", "Belief", "Box", "Discrete", "Pendulum", "PendulumState", "Spaces", "Step",
    "Variable", "learn", "upright",
]  # fmt: skip
