"""A planar drone, whole: physics, paths, controllers and their composition, flights, measures, figures."""

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
    from .animation import animate, pictures_per_second
    from .figures import draw_comparison, draw_costs, draw_flights, draw_flown, draw_one_flight, typical
    from .flights import Flight, Flights, by_program, dataset, fly_all, fly_controller, fly_episodes, program
    from .measures import LEAST_EVIDENCE, CostComparison, compare_costs, signed_rank
    from .paths import PathName, path
    from .physics import MASS, Disturbance, Quadrotor, QuadrotorState, QuadrotorView
    from .settings import CompositionSettings, Experiment, Horizon, QuadrotorSettings, own_settings

_HOME = {
    "agents": (
        "ALONE",
        "BASELINE",
        "FIXED",
        "Roster",
        "agent_and_world",
        "composer",
        "controllers",
        "reference_path",
        "roster",
        "quadrotor_world",
    ),
    "animation": ("animate", "pictures_per_second"),
    "figures": ("draw_comparison", "draw_costs", "draw_flights", "draw_flown", "draw_one_flight", "typical"),
    "flights": ("Flight", "Flights", "by_program", "dataset", "fly_controller", "fly_all", "fly_episodes", "program"),
    "measures": ("LEAST_EVIDENCE", "CostComparison", "compare_costs", "signed_rank"),
    "paths": ("PathName", "path"),
    "physics": ("MASS", "Disturbance", "Quadrotor", "QuadrotorState", "QuadrotorView"),
    "settings": ("CompositionSettings", "Experiment", "Horizon", "QuadrotorSettings", "own_settings"),
}
__getattr__, __dir__, __all__ = lazily(__name__, _HOME)
