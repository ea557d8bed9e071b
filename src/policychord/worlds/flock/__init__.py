"""A flock, whole: boids and what they see, three social forces, a composed boid, flights, measures, figures."""

from typing import TYPE_CHECKING

from ..._lazy import lazily

if TYPE_CHECKING:
    from .agents import FORCES, boid, flock_agents, flock_world
    from .figures import draw_band, draw_paths, draw_simplex, overview
    from .flights import FlockFlight, choose_episodes, fly_together, measure_flight, simulate_flock
    from .measures import (
        ARRIVED,
        LAST_STEPS,
        Measures,
        arrivals,
        at_end,
        flock_spread,
        goal_distance,
        measure,
        milling,
        polarization,
    )
    from .neighbours import View, Zones
    from .physics import AbstractFollower, Couzin, CuckerSmale, Flock, FlockState, Vicsek, in_ring, in_square
    from .settings import ABLATIONS, SCENARIOS, FlockSettings, scenario

_HOME = {
    "agents": ("FORCES", "boid", "flock_agents", "flock_world"),
    "figures": ("draw_band", "draw_paths", "draw_simplex", "overview"),
    "flights": ("FlockFlight", "choose_episodes", "fly_together", "measure_flight", "simulate_flock"),
    "measures": (
        "ARRIVED", "LAST_STEPS", "Measures", "arrivals", "at_end", "goal_distance", "measure", "milling",
        "polarization", "flock_spread",
    ),
    "neighbours": ("View", "Zones"),
    "physics": ("AbstractFollower", "Couzin", "CuckerSmale", "Vicsek", "Flock", "FlockState", "in_ring", "in_square"),
    "settings": ("ABLATIONS", "SCENARIOS", "FlockSettings", "scenario"),
}  # fmt: skip
__getattr__, __dir__, __all__ = lazily(__name__, _HOME)
