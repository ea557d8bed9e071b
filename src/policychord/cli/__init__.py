"""The command line: parse, call, print. Each module adds its commands to the app when it is imported."""

from . import bandit, flock, quadrotor, reproduce
from .app import app, main

__all__ = ["app", "bandit", "flock", "main", "quadrotor", "reproduce"]
