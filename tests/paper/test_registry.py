"""One registry of studies: a fifth is a folder and a line, and every door knows it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import policychord_paper

ROOT = Path(__file__).parents[2]
SKELETON = ROOT / "tests" / "contracts" / "skeletons" / "study.py"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package with the skeleton as one more study."""
    folder = tmp_path_factory.mktemp("package")
    source = Path(policychord_paper.__file__).parent
    copy = shutil.copytree(source, folder / "policychord_paper", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "mirror").mkdir()
    (copy / "mirror" / "__init__.py").touch()
    shutil.copy(SKELETON, copy / "mirror" / "report.py")
    registry = copy / "__init__.py"
    text = registry.read_text()
    assert text.count('"quadrotor")') == 1
    registry.write_text(text.replace('"quadrotor")', '"quadrotor", "mirror")'))
    return folder


@pytest.fixture(scope="module")
def command(package):
    def run(*words) -> str:
        environment = os.environ | {"PYTHONPATH": str(package), "COLUMNS": "100"}
        start = [sys.executable, "-m", "policychord", *map(str, words)]
        done = subprocess.run(start, capture_output=True, text=True, env=environment, cwd=package)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_a_fifth_study_is_reproduced_reported_and_compared(command, tmp_path):
    assert "bandit, quadrotor or mirror" in command("reproduce", "--help")
    told = json.loads(command("reproduce", "mirror", "--jobs", 1, "--out", tmp_path / "run", "--json"))
    assert [(claim["study"], claim["id"], claim["verdict"]) for claim in told["results"]] == [
        ("mirror", "M1", "reproduced")
    ]
    page = (tmp_path / "run" / "report.html").read_text()
    for words in ("The mirror step", "largest rise in one step", "policychord reproduce mirror --quick"):
        assert words in page
    found = json.loads(command("compare", tmp_path / "run", tmp_path / "run" / "report.html", "--json"))["results"]
    assert (found["claims"], found["verdicts"], found["moved"]) == (1, [], [])
    assert [figure["name"] for figure in found["figures"]] == ["mirror/descents"]


def test_a_study_is_not_for_sweeps(command):
    assert "flock or quadrotor" in command("sweep", "settings", "--help")
