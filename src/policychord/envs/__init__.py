"""Environments: physics only."""

from .bandit import Bandit, BanditState, Belief, learn
from .base import AbstractEnv, Box, Discrete, Spaces, Step, Variable
from .crazyflie import Crazyflie, CrazyflieState, CrazyflieView, figure_eight
from .flock import Flock, FlockState, in_ring, in_square
from .followers import AbstractFollower, Couzin, CuckerSmale, Vicsek
from .neighbours import View, Zones
from .paths import path
from .pendulum import Pendulum, PendulumState, upright
from .quadrotor import Quadrotor, QuadrotorState, QuadrotorView

__all__ = [
    "AbstractEnv", "AbstractFollower", "Bandit", "BanditState", "Belief", "Box", "Couzin", "Crazyflie",
    "CrazyflieState", "CrazyflieView", "CuckerSmale", "Discrete", "Flock", "FlockState", "Pendulum",
    "PendulumState", "Quadrotor", "QuadrotorState", "QuadrotorView", "Spaces", "Step", "Variable", "Vicsek", "View",
    "Zones", "figure_eight", "in_ring", "in_square", "learn", "path", "upright",
]  # fmt: skip
