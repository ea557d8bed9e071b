"""The command line: parse, call, print. Each module adds its commands to the app when it is imported.

Who adds commands from another package (`load_commands`) finds here what ours are made of.
"""

from . import agents, choices, doctor, fit, options, results, studio, sweep, tracks
from .app import app, load_commands, main
from .interrupt import resumable
from .output import Json, aside, counted, emit
from .progress import accumulating, watching

__all__ = ["Json", "accumulating", "agents", "app", "aside", "choices", "counted", "doctor", "emit", "fit",
           "load_commands", "main", "options", "results", "resumable", "studio", "sweep", "tracks",
           "watching"]  # fmt: skip
