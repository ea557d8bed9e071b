"""The paper's studies: what they set, simulate, measure, draw and claim. A new one is a folder and a line here."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .._lazy import lazily

if TYPE_CHECKING:
    from .episodes import Episodes
    from .study import Study

# Each is a folder with the files settings, agents, experiments, measures, claims, figures, report (which holds STUDY),
# and, where they are needed, episodes (which holds EPISODES, for sweeps) and animation.
STUDIES = ("theory", "flock", "bandit", "quadrotor")
__getattr__, _ = lazily(__name__, {}, STUDIES)  # `pc.studies.flock` needs no import of its own


def load_study(name: str) -> "Study[Any, Any]":
    """A study by name; its modules are loaded only now."""
    return import_module(f".{name}.report", __name__).STUDY


def studies_with_episodes() -> tuple[str, ...]:
    """The studies that sweeps can run."""
    return tuple(name for name in STUDIES if find_spec(f".{name}.episodes", __name__))


def load_episodes(name: str) -> "Episodes":
    """What a study offers to sweeps."""
    return import_module(f".{name}.episodes", __name__).EPISODES
