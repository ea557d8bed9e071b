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
INDEX = (ROOT / "docs" / "index.md").read_text()
CLAIMS = json.loads((ROOT / "docs" / "explanation" / "full_run.json").read_text(encoding="utf-8"))["claims"]


def test_python_blocks_print_what_follows_them():
    pairs = re.findall(r"```python\n(.*?)```\s*```\n(.*?)```", README, re.DOTALL)
    assert pairs
    program = 'print("-" * 9)\n'.join(code for code, _ in pairs)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split("-" * 9 + "\n") == [shown for _, shown in pairs]


def test_the_complaint_that_the_first_page_quotes():
    pi = np.full((3, 3), 1 / 3)
    pi[0, 0] -= 0.1
    with pytest.raises(ValueError, match="sums") as caught:
        problem(pi=pi, action_cost=[0.0, 0.0, 0.0], eps=0.1)
    assert str(caught.value) in INDEX


def test_its_evidence_is_that_of_the_record():
    """The table is compared with the record in tests/docs/test_tables.py; these are the sentences."""
    composition = json.loads((ROOT / "docs" / "explanation" / "composition.json").read_text(encoding="utf-8"))
    first = {task: found["usual"] for task, found in composition["tasks"].items()}
    ratios = [one["median"] / one["rivals"]["best primitive"]["median"] for one in first.values()]
    wins = [one["rivals"]["best primitive"]["wins"][0] for one in first.values()]
    said = re.search(
        r"costs ([\d.]+) to ([\d.]+) of the best single controller in all (\d+) tasks.*at least ([\d.]+)%", README
    )
    assert [float(number) for number in said.groups()] == [
        round(min(ratios), 2), round(max(ratios), 2), len(first), round(100 * min(wins), 1),
    ]  # fmt: skip
    drone = first["3-D drone"]
    assert f"costs {drone['rivals']['best by hand']['median'] / drone['median']:.2f} of the composed one" in README


def test_it_shows_losses_beside_wins():
    losses = re.findall(r"\*\*\d\.\d\d \(\d+\.\d%\)\*\*", README)
    assert len(losses) >= 6


def test_its_tally_is_that_of_the_recorded_run():
    tally = Counter(claim["verdict"] for claim in CLAIMS)
    said = re.search(
        r"of (\d+) claims (\d+) are reproduced, (\d+) hold in part and (\d+) (?:is|are) not\s+reproduced", README
    )
    assert [*map(int, said.groups())] == [len(CLAIMS), *(tally[v] for v in ("reproduced", "partly", "not reproduced"))]


def test_what_a_first_run_counts_is_explained():
    """Without people's data the claims on choices are not counted."""
    people = sum(claim["study"] == "bandit" for claim in CLAIMS)
    said = re.search(r"first run counts (\d+) of them: the (\d+) on choices", README)
    assert [*map(int, said.groups())] == [len(CLAIMS) - people, people]


def test_its_links_lead_to_pages_that_can_be_read_where_they_are():
    """On a code host: no empty tables, no pictures within directives, links between pages that exist."""
    for page in _reachable():
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"^% |```\{(?:figure|raw|image)\}|^:{3,}", text, re.MULTILINE), page
        assert not re.search(r"\{(?:py:)?\w+\}`~", text), page
        for part in re.finditer(r"^<!-- generated: (\w+).*?-->\n(.*?)^<!-- end -->", text, re.DOTALL | re.MULTILINE):
            assert part[2].strip() or part[1] == "commands", page


def _reachable() -> set[Path]:
    found, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in found or page.suffix != ".md":
            continue
        found.add(page)
        text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            if not target.startswith(("http", "data:")):
                path = (page.parent / target).resolve()
                assert path.exists(), f"{page.relative_to(ROOT)} -> {target}"
                waiting.append(path)
    return found


def test_it_fits_on_a_screen_and_a_half():
    assert len(README.splitlines()) <= 90
    assert len(README.split()) <= 850
