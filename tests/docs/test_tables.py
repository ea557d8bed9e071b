"""Tables of measurements: kept as numbers by a benchmark, shown by a page with the command that made them."""

import importlib
import json
import re
import sys

import pytest
from benchmarks.tables import keep

from policychord_paper import STUDIES, load_study
from policychord_paper.claim import rule_text

from .pages import PAGES, ROOT

sys.path.insert(0, str(ROOT / "docs" / "_ext"))
import generated

LINE = re.compile(r"^% generated: measured (\S+) (\S+)$", re.MULTILINE)
SHOWN = [(page.name, *found) for page in PAGES for found in LINE.findall(page.read_text())]


def test_a_table_is_shown_as_it_was_kept(tmp_path, monkeypatch):
    path = tmp_path / "explanation" / "t.json"
    keep(path, "first", "python -m benchmarks.x", {"name": "s", "error": ".3f", "count": "d"}, [["a", 0.12345, 3]])
    keep(path, "other", "python -m benchmarks.y", {"n": "d"}, [[1], [None]])
    keep(path, "other", "python -m benchmarks.y", {"n": "d"}, [[2], [None]])
    monkeypatch.setattr(generated, "RECORD", tmp_path / "explanation" / "full_run.json")
    table = generated.measured("explanation/t.json", "first")
    assert "| name | error | count |\n|---|---|---|\n| a | 0.123 | 3 |\n" in table
    assert "Made by `python -m benchmarks.x` on 2" in table
    assert "| 2 |\n|  |\n" in generated.measured("explanation/t.json", "other")
    assert set(json.loads(path.read_text())) == {"first", "other"}


@pytest.mark.parametrize(("page", "where", "name"), SHOWN)
def test_every_table_of_a_page_is_kept(page, where, name):
    table = generated.measured(where, name)
    assert table.count("\n|") > 2, page
    assert "nan" not in table


def test_a_rule_in_other_words_is_still_recorded():
    """The record stays as its run wrote it; what `REWORDED` says are words of a present rule."""
    rules = [rule_text(claim.rule) for study in STUDIES for claim in load_study(study).claims]
    for now in generated.REWORDED.values():
        assert any(now in rule for rule in rules)
    recorded = [claim.rule for claim in generated._recorded()]
    assert not any(before in rule for before in generated.REWORDED for rule in recorded)


def test_generated_tables_name_models_that_exist():
    """A site's build says the same, minutes later."""
    for path in PAGES:
        for module, name in re.findall(r"^% generated: settings ([\w.]+):(\w+)", path.read_text(), re.MULTILINE):
            assert hasattr(importlib.import_module(module), name), f"{path.name}: {module}:{name}"
