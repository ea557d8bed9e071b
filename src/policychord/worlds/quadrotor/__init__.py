"""A planar drone, whole: physics, paths, controllers and their composition, flights, figures."""

from typing import TYPE_CHECKING

from ..._lazy import lazily

if TYPE_CHECKING:
    from .agents import (
        ALONE,
        BASELINE,
        FIXED,
        Roster,
        agent_and_world,
        composer,
        controllers,
        quadrotor_world,
        reference_path,
        roster,
    )
    from .figures import draw_flights, draw_one_flight, silhouette
    from .flights import Flight, Flights, dataset, fly_controller, fly_episodes, program
    from .physics import MASS, Disturbance, PathName, Quadrotor, QuadrotorState, QuadrotorView, path
    from .settings import CompositionSettings, Experiment, Horizon, QuadrotorSettings, own_settings

_HOME = {
    "agents": (
        "ALONE", "BASELINE", "FIXED", "Roster", "agent_and_world", "composer", "controllers", "reference_path",
        "roster", "quadrotor_world",
    ),
    "figures": ("draw_flights", "draw_one_flight", "silhouette"),
    "flights": ("Flight", "Flights", "dataset", "fly_controller", "fly_episodes", "program"),
    "physics": ("PathName", "path", "MASS", "Disturbance", "Quadrotor", "QuadrotorState", "QuadrotorView"),
    "settings": ("CompositionSettings", "Experiment", "Horizon", "QuadrotorSettings", "own_settings"),
}  # fmt: skip
__getattr__, __dir__, __all__ = lazily(__name__, _HOME)
