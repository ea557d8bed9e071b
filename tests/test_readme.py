"""The README is true: its Python runs, prints what it shows, and its complaint is what a user gets."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from policychord import problem

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
OVERVIEW = (ROOT / "docs" / "explanation" / "overview.md").read_text()
HORIZON = (ROOT / "docs" / "explanation" / "horizon.md").read_text()


def test_python_blocks_print_what_follows_them():
    pairs = re.findall(r"```python\n(.*?)```\s*```\n(.*?)```", README, re.DOTALL)
    assert pairs
    program = 'print("-" * 9)\n'.join(code for code, _ in pairs)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split("-" * 9 + "\n") == [shown for _, shown in pairs]


def test_the_complaint_that_the_overview_quotes():
    pi = np.full((3, 3), 1 / 3)
    pi[0, 0] -= 0.1
    with pytest.raises(ValueError, match="sums") as caught:
        problem(pi=pi, action_cost=[0.0, 0.0, 0.0], eps=0.1)
    assert str(caught.value) in OVERVIEW


def test_every_number_of_its_table_stands_on_the_page_with_intervals():
    rows = re.findall(r"^\| .*`python examples.*$", README, re.MULTILINE)
    assert len(rows) >= 2
    for row in rows:
        numbers = re.findall(r"-?\d+(?:\.\d+)?(?![\w-])", row.partition(") |")[2])
        assert [number for number in numbers if number not in HORIZON] == []


def test_its_tally_is_that_of_the_recorded_run():
    claims = json.loads((ROOT / "docs" / "explanation" / "full_run.json").read_text(encoding="utf-8"))["claims"]
    tally = Counter(claim["verdict"] for claim in claims)
    told = re.search(r"of (\d+), (\d+) are reproduced, (\d+) in part or under a correction, (\d+) is not", README)
    assert [*map(int, told.groups())] == [len(claims), *(tally[v] for v in ("reproduced", "partly", "not reproduced"))]


def test_it_fits_on_a_screen_or_two():
    assert len(README.splitlines()) <= 90
