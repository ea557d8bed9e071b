"""Tables of measurements: kept as numbers by a benchmark, shown by a page with the command that made them."""

import importlib
import json
import re
import sys

import pytest
from benchmarks.tables import keep
from PIL import Image

from policychord_paper import STUDIES, load_study
from policychord_paper.claim import rule_text

from .pages import PAGES, ROOT

sys.path.insert(0, str(ROOT / "docs" / "_ext"))
import generated

import composition

PARTS = [(page, found) for page in generated.pages() for found in generated.PART.finditer(page.read_text())]
NAMES = [f"{page.name}: {found[2]} {' '.join(found[3].split()[:2])}" for page, found in PARTS]


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


@pytest.mark.parametrize("found", [found for _, found in PARTS], ids=NAMES)
def test_what_a_page_shows_is_what_code_and_records_say(found):
    """A reader of the source sees the same table as a reader of the site."""
    if found[2] in generated.AT_BUILD:
        assert not found[4].strip()
        return
    made = generated.part(found[2], found[3])
    assert found[4].strip() == made.strip(), "run `make tables`"
    assert len(made) > 10
    assert "nan" not in made.split()


def test_no_mark_is_without_its_end():
    for page in generated.pages():
        text = page.read_text()
        marks = re.findall(r"^<!-- (?:generated: |end -->)", text, re.MULTILINE)
        assert len(marks) == 2 * len(generated.PART.findall(text)), page
        assert "% generated" not in text, page


def test_a_part_is_renewed_and_the_rest_stays():
    page = "# A\n\n<!-- generated: metrics flock -->\nold\n<!-- end -->\n\nB\n"
    text = generated.written(page)
    assert "| metric | what it is |" in text
    assert "old" not in text
    assert text.startswith("# A\n\n<!-- generated")
    assert text.endswith("<!-- end -->\n\nB\n")
    assert generated.written(text) == text
    assert generated.written("<!-- generated: commands -->\n<!-- end -->\n") == (
        "<!-- generated: commands -->\n<!-- end -->\n"
    )


def test_the_drawn_record_is_the_present_one():
    assert Image.open(composition.FIGURE).info["Source"] == composition.digest()


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
        for module, name in re.findall(r"^<!-- generated: settings ([\w.]+):(\w+)", path.read_text(), re.MULTILINE):
            assert hasattr(importlib.import_module(module), name), f"{path.name}: {module}:{name}"
