"""Ready worlds, each whole: physics, primitives, a default agent, settings, measures. Physics knows no agent."""

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from ..loops.environment import AbstractEnv, Box, Discrete, Spaces, Step, Variable
    from . import flock, quadrotor
    from .bandit import Bandit, BanditState, Belief, update_belief
    from .crazyflie import Crazyflie, CrazyflieState, CrazyflieView, figure_eight
    from .episodes import Episodes, EpisodeSetting, Measured, settings_of
    from .flock.followers import AbstractFollower, Couzin, CuckerSmale, Vicsek
    from .flock.neighbours import View, Zones
    from .flock.physics import Flock, FlockState, in_ring, in_square
    from .pendulum import Pendulum, PendulumState, upright
    from .quadrotor.paths import path
    from .quadrotor.physics import Quadrotor, QuadrotorState, QuadrotorView

_HOME = {
    "bandit": ("Bandit", "BanditState", "Belief", "update_belief"),
    "crazyflie": ("Crazyflie", "CrazyflieState", "CrazyflieView", "figure_eight"),
    "episodes": ("Episodes", "Measured", "EpisodeSetting", "settings_of"),
    "flock.followers": ("AbstractFollower", "Couzin", "CuckerSmale", "Vicsek"),
    "flock.neighbours": ("View", "Zones"),
    "flock.physics": ("Flock", "FlockState", "in_ring", "in_square"),
    "pendulum": ("Pendulum", "PendulumState", "upright"),
    "quadrotor.paths": ("path",),
    "quadrotor.physics": ("Quadrotor", "QuadrotorState", "QuadrotorView"),
    ".loops.environment": ("AbstractEnv", "Box", "Discrete", "Spaces", "Step", "Variable"),
}
__getattr__, __dir__, __all__ = lazily(
    __name__,
    _HOME,
    (
        "flock",
        "quadrotor",
    ),
)
