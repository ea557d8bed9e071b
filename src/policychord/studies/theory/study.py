"""The theory study as data: what is computed, what is claimed of it, what is drawn, kept and said."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..study import Plate, Study
from . import measure
from .asides import look_aside
from .circuits import CIRCUITS, compare_ladders, oscillate, settle
from .claims import LEDGER
from .controls import controls
from .datasets import datasets
from .figures import FIGURES
from .found import found
from .paths import FLOWS, follow
from .settings import TheorySettings
from .words import CAPTIONS, LEAD, SHOWS, TITLE


def _settings(*, quick: bool = True, seed: int = 0) -> TheorySettings:
    """The rules ask for a fixed number of problems, so quick and full are the same."""
    return TheorySettings(seed=seed)


def work(settings: TheorySettings) -> Mapping[str, Callable[[], Any]]:
    """Every computation by name, the longest first; steps with the name of a claim are its finding."""
    steps: dict[str, Callable[[], Any]] = {name: partial(settle, settings, each) for name, each in CIRCUITS.items()}
    steps |= {name: partial(follow, settings, primitives) for name, primitives in FLOWS.items()}
    steps |= {
        "ladders": partial(compare_ladders, settings),
        "oscillation": partial(oscillate, settings),
        "T8": partial(measure.gradient_and_curvature, settings),
        "asides": partial(look_aside, settings),
        "judged optima": partial(measure.judged_optima, settings),
        "T4": partial(measure.energy_dissipates, settings),
        "T9": partial(measure.temperature_limits, settings),
        "T3": partial(measure.prox_is_softmax, settings),
        "T10": partial(measure.prior_weighted_gate, settings),
        "certificates": partial(measure.certified, settings),
    }
    return steps


STUDY = Study(
    name="theory",
    settings=_settings,
    work=work,
    ledger=LEDGER,
    plates={name: Plate(draw, CAPTIONS[name], SHOWS[name]) for name, draw in FIGURES.items()},
    datasets=datasets,
    title=TITLE,
    lead=LEAD,
    controls=controls,
    found=found,
)
