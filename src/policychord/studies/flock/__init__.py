"""The flock study: polarization, milling, leaders, and what else follows from composed social forces."""

from typing import TYPE_CHECKING

from ..._lazy import lazily

if TYPE_CHECKING:
    from .agents import boid, flock, world
    from .settings import FlockSettings

# for those who start from the paper's boids
__all__ = ["FlockSettings", "boid", "flock", "world"]

__getattr__, __dir__ = lazily(__name__, {"agents": ("boid", "flock", "world"), "settings": ("FlockSettings",)})
