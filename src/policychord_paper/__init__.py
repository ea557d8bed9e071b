"""The paper, replicated: its four studies with what they set, simulate, measure, draw and claim.

A client of `policychord`: it uses public names only, and nothing in `policychord` imports it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .study import Study

# Each is a folder with at least experiments (settings, steps and their evidence), claims, figures and report, which
# holds STUDY. A new one is a folder and a name here.
STUDIES = ("theory", "flock", "bandit", "quadrotor")


def load_study(name: str) -> "Study[Any, Any]":
    """A study by name; its modules are loaded only now."""
    return import_module(f".{name}.report", __name__).STUDY
