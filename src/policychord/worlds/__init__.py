"""Ready worlds, each whole: physics, primitives, a default agent, settings, measures. Physics knows no agent."""

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from ..loops.environment import AbstractEnv, Box, Discrete, Spaces, Step, Variable
    from . import flock, quadrotor
    from .bandit import Bandit, BanditState, Belief, update_belief
    from .crazyflie import Crazyflie, CrazyflieState, CrazyflieView, figure_eight
    from .episodes import Episodes, EpisodeSetting, Measured, settings_of
    from .flock.neighbours import View, Zones
    from .flock.physics import AbstractFollower, Couzin, CuckerSmale, Flock, FlockState, Vicsek, in_ring, in_square
    from .pendulum import Pendulum, PendulumState, upright
    from .quadrotor.physics import Quadrotor, QuadrotorState, QuadrotorView, path

_HOME = {
    "bandit": ("Bandit", "BanditState", "Belief", "update_belief"),
    "crazyflie": ("Crazyflie", "CrazyflieState", "CrazyflieView", "figure_eight"),
    "episodes": ("Episodes", "Measured", "EpisodeSetting", "settings_of"),
    "flock.neighbours": ("View", "Zones"),
    "flock.physics": (
        "AbstractFollower", "Couzin", "CuckerSmale", "Flock", "FlockState", "Vicsek", "in_ring", "in_square",
    ),
    "pendulum": ("Pendulum", "PendulumState", "upright"),
    "quadrotor.physics": ("Quadrotor", "QuadrotorState", "QuadrotorView", "path"),
    ".loops.environment": ("AbstractEnv", "Box", "Discrete", "Spaces", "Step", "Variable"),
}  # fmt: skip
__getattr__, __dir__, __all__ = lazily(__name__, _HOME, ("flock", "quadrotor"))
