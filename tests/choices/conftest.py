"""Where the public data are, and a small cohort for everything that does not need them."""

import os
from pathlib import Path

import numpy as np
import pytest

from policychord.choices.data import TASKS, Reading, read_choices
from policychord.choices.fetch import FILES, VARIABLE
from policychord.choices.learners import believe
from policychord.choices.simulate import synthetic

BESIDE = Path(__file__).parents[2].parent / "shared" / "data" / "gershman2018"


@pytest.fixture(scope="session")
def data_folder():
    """The folder with the public data, or a skip that says how to get them."""
    folder = Path(os.environ.get(VARIABLE, BESIDE))
    if not all((folder / name).is_file() for name in FILES):
        pytest.skip(f"public data not found: fetch them with `policychord choices data fetch` and set {VARIABLE}")
    return folder


@pytest.fixture(scope="session")
def people(data_folder):
    """Trials of both experiments."""
    how = Reading(doubtful="drop")  # as in the original analysis
    return {e: believe(read_choices(data_folder / f"data{e}.csv", TASKS[e], how=how)) for e in TASKS}


@pytest.fixture(scope="session")
def cohort():
    """A few simulated people in each experiment."""
    return {e: believe(synthetic(e, 8, blocks=8, trials=8, seed=3)) for e in TASKS}


@pytest.fixture
def table():
    """Rows of a correct file, to be spoilt: 2 people, 2 blocks, 6 trials."""
    rng = np.random.default_rng(5)
    rows = [["subject", "block", "trial", "choice", "reward", "RT"]]
    for subject in (1, 2):
        for block in (1, 2):
            for trial in range(1, 7):
                rows.append([subject, block, trial, int(rng.integers(1, 3)), int(rng.integers(-9, 9)), 400])
    return rows
