"""Wheel and source distribution hold every file of the package, and the wheel works alone."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEN_LINES = """
import policychord as pc
best = pc.solve(pc.problem(pi=[[0.9, 0.2], [0.1, 0.8]], action_cost=[1.0, 0.2], eps=0.1))
print(pc.__file__, best.certificate.gap <= 1e-10)
"""


def build(source, kind, out):
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, text=True)
    return next(Path(out).glob("*.whl" if kind == "wheel" else "*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_every_file_of_the_package(wheel):
    tracked = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    if not tracked:
        tracked = [str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.py")]
    held = set(zipfile.ZipFile(wheel).namelist())
    assert [name for name in tracked if name.removeprefix("src/") not in held] == []


def test_the_wheel_works_away_from_the_source(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")  # which is all that installing a pure wheel does
    where = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run([sys.executable, "-c", TEN_LINES], cwd=tmp_path, env=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    path, proved = done.stdout.split()
    assert Path(path).is_relative_to(tmp_path)
    assert proved == "True"


def test_the_source_distribution_builds_the_same_wheel(wheel, tmp_path):
    with tarfile.open(build(ROOT, "sdist", tmp_path)) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = next(path for path in tmp_path.iterdir() if path.is_dir())
    again = build(unpacked, "wheel", tmp_path / "again")
    assert zipfile.ZipFile(again).namelist() == zipfile.ZipFile(wheel).namelist()
