"""A flock, whole: boids and what they see, three social forces, a composed boid, flights, measures, figures."""

from typing import TYPE_CHECKING

from ..._lazy import lazily

if TYPE_CHECKING:
    from .agents import FORCES, boid, flock_agents, flock_world
    from .animation import FRAMES_PER_SECOND, animate_flock
    from .figures import all_weights, draw_band, draw_paths, draw_simplex, flock_figures, overview
    from .flights import FlockFlight, choose_episodes, fly_together, measure_flight, simulate_flock
    from .followers import AbstractFollower, Couzin, CuckerSmale, Vicsek
    from .measures import (
        ARRIVED,
        Measures,
        arrivals,
        at_end,
        describe_flock,
        flock_spread,
        goal_distance,
        measure,
        milling,
        ordered_from,
        polarization,
        summarise,
    )
    from .neighbours import View, Zones
    from .physics import Flock, FlockState, in_ring, in_square
    from .settings import ABLATIONS, SCENARIOS, FlockSettings, advise, scenario

_HOME = {
    "agents": ("FORCES", "boid", "flock_agents", "flock_world"),
    "animation": ("FRAMES_PER_SECOND", "animate_flock"),
    "figures": ("all_weights", "draw_band", "draw_paths", "draw_simplex", "flock_figures", "overview"),
    "flights": ("FlockFlight", "choose_episodes", "fly_together", "measure_flight", "simulate_flock"),
    "followers": ("AbstractFollower", "Couzin", "CuckerSmale", "Vicsek"),
    "measures": (
        "ARRIVED",
        "Measures",
        "arrivals",
        "at_end",
        "describe_flock",
        "goal_distance",
        "measure",
        "milling",
        "ordered_from",
        "polarization",
        "flock_spread",
        "summarise",
    ),
    "neighbours": ("View", "Zones"),
    "physics": ("Flock", "FlockState", "in_ring", "in_square"),
    "settings": ("ABLATIONS", "SCENARIOS", "FlockSettings", "advise", "scenario"),
}
__getattr__, __dir__, __all__ = lazily(__name__, _HOME)
