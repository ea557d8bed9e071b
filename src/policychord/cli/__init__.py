"""The command line: parse, call, print. Each module adds its commands to the app when it is imported."""

from . import bandit, compare, doctor, fit, flock, quadrotor, reproduce, studio, sweep, tracks
from .app import app, main

__all__ = ["app", "bandit", "compare", "doctor", "fit", "flock", "main", "quadrotor", "reproduce", "studio", "sweep",
           "tracks"]  # fmt: skip
