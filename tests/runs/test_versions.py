"""Which code a result depends on: what its step uses, and nothing else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import policychord
from policychord.runs.versions import _used_by

SOURCE = Path(policychord.__file__).parents[1]
STEP = "policychord_paper.flock.experiments"
FINISH = "policychord_paper.flock.report"
ASK = f"""
from policychord.runs import code_version
print(code_version({STEP!r}), code_version({FINISH!r}))
"""


@pytest.fixture
def tree(tmp_path):
    """A copy of the source that may be changed."""
    return shutil.copytree(SOURCE, tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))


def versions(tree):
    """The versions of a step and of the last step, as another process sees them."""
    environment = os.environ | {"PYTHONPATH": str(tree)}
    return subprocess.run(
        [sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()


def change(tree, file, old, new):
    path = tree / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_changed_kernel_discards_and_a_changed_text_does_not(tree):
    step, finish = versions(tree)
    change(tree, "policychord/cli/options.py", "Folder for the results.", "Where the results go.")
    change(tree, "policychord/runs/templates/page.css", "{", "{ ")
    change(tree, "policychord/choices/models.py", "import ", "import json\nimport ")
    change(tree, "policychord/core/_kernels.py", '"""', '"""Words of a docstring. ')
    assert versions(tree) == [step, finish]
    change(tree, "policychord_paper/flock/figures.py", "1.03", "1.04")
    again, finished_anew = versions(tree)
    assert again == step
    assert finished_anew != finish
    change(tree, "policychord/core/_kernels.py", "def ", "def _nobody() -> None:\n    pass\n\n\ndef ")
    assert versions(tree)[0] != step


def test_a_step_uses_what_it_imports_and_what_packages_hand_on():
    used = _used_by([STEP])
    assert {STEP, "policychord.worlds.flock.agents", "policychord.core._kernels", "policychord.loops.step"} <= used
    assert not {
        name for name in used if name.startswith(("policychord.cli", "policychord.studio", "policychord.choices"))
    }


def test_names_of_other_packages_are_not_ours():
    assert _used_by(["numpy", "policychord_paper.nothing"]) == set()
