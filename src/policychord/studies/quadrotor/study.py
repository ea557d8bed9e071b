"""The quadrotor study as data."""

from ..study import Study
from .claims import LEDGER
from .controls import controls
from .datasets import datasets
from .plan import work
from .plates import PLATES
from .settings import QuadrotorSettings
from .words import LEAD, TITLE, found

QUICK_SEEDS = 60


def _settings(*, quick: bool = True, seed: int = 0) -> QuadrotorSettings:
    return QuadrotorSettings(seed=seed, seeds=QUICK_SEEDS) if quick else QuadrotorSettings(seed=seed)


STUDY = Study(
    name="quadrotor",
    settings=_settings,
    work=work,
    ledger=LEDGER,
    plates=PLATES,
    datasets=datasets,
    title=TITLE,
    lead=LEAD,
    controls=controls,
    found=found,
)
