"""The theory study as data. Its claims do their own work, so there is none to share."""

from collections.abc import Mapping

from ..claim import Entry
from ..study import Plate, Study
from .claims import LEDGER
from .figures import FIGURES
from .settings import TheorySettings


def _settings(*, quick: bool = True, seed: int = 0) -> TheorySettings:
    """The rules ask for a fixed number of problems, so quick and full are the same."""
    return TheorySettings(seed=seed)


def _alone(entry: Entry) -> Entry:
    return entry._replace(measure=lambda settings, evidence: entry.measure(settings))


def _drawn(figure):
    return lambda settings, evidence: figure(settings)


def _nothing(*given) -> Mapping:
    return {}


STUDY = Study(
    name="theory",
    settings=_settings,
    work=_nothing,
    ledger=tuple(_alone(entry) for entry in LEDGER),
    plates={name: Plate(_drawn(figure)) for name, figure in FIGURES.items()},
    datasets=_nothing,
)
