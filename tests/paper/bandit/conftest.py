"""A small study of a few simulated people, and the public data."""

import pytest

from policychord_paper.bandit.experiments import BanditSettings
from policychord_paper.bandit.report import STUDY

from ...choices.conftest import cohort, data_folder, people, table  # noqa: F401


@pytest.fixture(scope="session")
def small():
    sizes = {"splits": 2, "recovery_cohorts": 1, "subjects": 8, "blocks": 8, "trials": 8}
    return BanditSettings(seed=3, **sizes, temperatures=(0.01, 1.0), own_likelihood=False, durations=())


@pytest.fixture(scope="session")
def results(small):
    """What every step finds about a few simulated people."""
    return {name: step() for name, step in STUDY.experiments(small).items()}


@pytest.fixture(scope="session")
def evidence(small, results):
    return STUDY.evidence(small, results)
