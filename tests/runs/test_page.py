"""The one page that fits end in: what stands on it, on every screen, and what never gets into it."""

import json
import re

import pytest

from policychord.drawing import blank
from policychord.runs.page import Results, summarise, write_results
from policychord.runs.progress import parts

from ..studio.browsing import browser, needs_browser

__all__ = ["browser"]

NASTY = "<script>alert(1)</script> *bold* | [a](http://x.y)"


def draw(words):
    figure = blank(4.0, 2.5)
    figure.subplots().set_title(words)
    return figure


RESULTS = Results(
    kind="tracks fit", source=NASTY, verdict="Constant weights of these forces are enough.",
    columns=["model", "parameters", "held out", "over chance"],
    rows=[["constant sum", "35", "-2.6450", "+0.1365 ± 0.0359"], [NASTY, "21", "", ""]],
    sentences=["The first model has the best held-out score.", NASTY], warnings=["A few frames are doubtful.", NASTY],
    estimates=("constant sum", "| parameter | estimate |\n|---|---|\n| own: drag | 0.32 |"),
    card="| what | how much |\n|---|---|\n| trials | 1 |", details=[("Which forces?", "A paragraph.")],
    pictures={name: (draw, (name,), "A caption.") for name in ("models", "weights", "card")},
    tables={"estimates.csv": "parameter,estimate\n"}, record={"call": "constant weights", "gain": float("nan")},
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    files = write_results(out, RESULTS, "policychord tracks fit fish.csv --rate 20")
    assert files[0] == out / "report.html"
    assert all(file.exists() for file in files)
    return out


def test_the_verdict_is_the_title_and_the_command_is_at_the_end(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert f'<h1 id="title">{RESULTS.verdict}</h1>' in page
    words = ("A few frames", "What was compared", "Models</b>", "Estimates: constant sum", "The data", "Which forces?",
             "policychord tracks fit fish.csv --rate 20")  # fmt: skip
    order = [page.index(word) for word in words]
    assert order == sorted(order)
    assert page.count('class="number"') > 4  # columns of numbers


def test_nothing_is_fetched_and_text_from_outside_is_shown(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 4
    assert re.findall(r'(?:src|href)="(?!#|data:)', page) == []


def test_words_and_numbers_stand_beside_the_page(folder):
    record = json.loads((folder / "results.json").read_text())
    assert record["verdict"] == RESULTS.verdict
    assert record["rows"][0][0] == "constant sum"
    assert record["gain"] is None  # JSON has no word for it
    assert (folder / "estimates.csv").read_text() == "parameter,estimate\n"
    assert (folder / "summary.md").read_text(encoding="utf-8") == summarise(RESULTS, record["again"])
    assert (folder / "figures" / "weights.svg").exists()


@needs_browser
@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_is_whole_on_every_screen_and_axe_finds_nothing(folder, browser, width):
    from axe_playwright_python.sync_playwright import Axe

    for scheme in ("light", "dark"):
        tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        tab.goto((folder / "report.html").as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.locator("main").bounding_box()["width"] > 0.75 * width
        result = Axe().run(tab).response
        tab.close()
        assert len(result["passes"]) > 20  # it did look
        assert [(rule["id"], rule["nodes"][0]["html"][:120]) for rule in result["violations"]] == []


def test_parts_move_one_bar_from_its_begin_to_its_end():
    seen = []
    first, nothing, last = parts(lambda *step: seen.append(step), 1.0, 0.0, 3.0)
    first("a", 0, 2)
    first("a", 1, 2)
    nothing("b", 0, 1)
    last("c", 0, 4)
    last("c", 4, 4)
    assert seen == [("a", 0, 100), ("a", 12, 100), ("b", 25, 100), ("c", 25, 100), ("c", 100, 100)]
