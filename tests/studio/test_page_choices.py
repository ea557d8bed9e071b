"""The page Choices in a real browser: a table handed over, people looked at, things taken away."""

import json

import numpy as np
import pytest
from playwright.sync_api import expect

from policychord.choices.compare import analyse
from policychord.choices.data import as_table, read_choices
from policychord.choices.simulate import synthetic

from .browsing import needs_browser, pixels

pytestmark = needs_browser
SMALL = "subjects=5&blocks=3"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Choices of six people, as a file."""
    path = tmp_path_factory.mktemp("own") / "mine.csv"
    as_table(synthetic("2", 6, blocks=3, seed=4)).to_csv(path, index=False)
    return path


def slot(page, name):
    return page.locator(f'[data-slot="{name}"]')


def analysed(page, people):
    expect(slot(page, "counts")).to_contain_text(f"{people} people")
    expect(slot(page, "people").locator("option")).to_have_count(people)
    expect(slot(page, "working")).to_be_hidden()
    page.wait_for_selector('[data-slot="plot"] .scatterlayer .trace')
    return page


def pxp(page):
    return [float(cell) for cell in slot(page, "table").locator("td:last-child").all_text_contents()]


def expected(choices):
    return [round(float(value), 4) for value in analyse(choices).everything.selection.pxp]


def test_a_table_is_taken_and_a_broken_one_is_not(visit, table):
    page, other = analysed(visit(f"choices?{SMALL}"), 5), visit(f"choices?{SMALL}&seed=1")
    expect(slot(page, "badge")).to_have_text("simulated")
    assert pxp(page) == expected(synthetic("2", 5, blocks=3))
    slot(page, "file").set_input_files(table)
    analysed(page, 6)
    expect(slot(page, "badge")).to_have_text("your data")
    expect(slot(page, "whose")).to_have_text("mine.csv")
    assert pxp(page) == expected(read_choices(table, None))
    assert "file=mine.csv" in page.url
    broken = {"name": "broken.csv", "mimeType": "text/csv", "buffer": table.read_bytes() + b"6,3,11,9,<b>\n"}
    slot(page, "file").set_input_files(broken)
    expect(slot(page, "why")).to_contain_text("choice must be 1 or 2, an arm that occurs often")
    expect(slot(page, "why")).to_contain_text("reward must be a number: row 182 ('<b>')")
    expect(slot(page, "why")).to_contain_text("Correct the file")
    expect(slot(page, "whose")).to_have_text("mine.csv")  # what was there stays
    large = {"name": "large.csv", "mimeType": "text/csv", "buffer": b"x" * 5_000_001}
    slot(page, "file").set_input_files(large)
    expect(slot(page, "why")).to_contain_text("takes up to 5 MB")
    analysed(other, 5)  # the other tab has its own people still
    assert pxp(other) == expected(synthetic("2", 5, blocks=3, seed=1))
    slot(page, "cohort").click()
    analysed(page, 5)
    expect(slot(page, "fault")).to_be_hidden()
    assert "file" not in page.url


def test_a_table_of_another_lab_with_four_arms(visit):
    """Columns by drop-down, learner and models by click, checks by buttons; nothing must be reset."""
    rng = np.random.default_rng(3)
    rows = [f"p{s};{t};{'ABCD'[rng.integers(4)]};{rng.integers(40, 60)}" for s in range(4) for t in range(40)]
    theirs = {"name": "theirs.csv", "mimeType": "text/csv", "buffer": "\n".join(["who;n;took;got", *rows]).encode()}
    page = analysed(visit(f"choices?{SMALL}"), 5)
    slot(page, "file").set_input_files(theirs)
    expect(slot(page, "why")).to_contain_text("missing columns subject, choice, reward")
    expect(slot(page, "mapped")).to_have_text("Which column is subject, choice, reward?")
    for ours, column in (("subject", "who"), ("choice", "took"), ("reward", "got")):
        slot(page, "columns").locator(f'[data-column="{ours}"]').select_option(column)
    analysed(page, 4)
    expect(slot(page, "fault")).to_be_hidden()
    expect(slot(page, "counts")).to_contain_text("4 arms")
    expect(slot(page, "warnings")).to_contain_text("4 people are few")
    assert "subject%3Dwho" in page.url
    page.get_by_label("Learner", exact=True).select_option("delta")
    page.get_by_label("Value with stickiness", exact=True).check()
    expect(slot(page, "table").locator("th")).to_have_text(["Value", "Value+stickiness", "Composed"])
    expect(slot(page, "working")).to_be_hidden()
    slot(page, "ppc").click()
    expect(page.locator('[data-check="ppc"] tbody tr')).to_have_count(4)
    slot(page, "recovery").click()
    expect(page.locator('[data-check="recovery"] table').first.locator("tbody tr")).to_have_count(3)
    page.set_viewport_size({"width": 390, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_file_can_be_dropped_and_taken_away_as_report_data_and_python(visit, table):
    page = analysed(visit(f"choices?{SMALL}&file=mine.csv"), 5)
    expect(slot(page, "missing")).to_contain_text("mine.csv, which a link cannot hold")
    page.evaluate(
        """text => { const data = new DataTransfer();
            data.items.add(new File([text], 'mine.csv', { type: 'text/csv' }));
            const drop = new DragEvent('drop', { dataTransfer: data });
            document.querySelector('[data-slot="drop"]').dispatchEvent(drop); }""",
        table.read_text(),
    )
    analysed(page, 6)
    expect(slot(page, "missing")).to_be_hidden()
    with page.expect_download() as download:
        slot(page, "report").click()
    report = download.value.path().read_text()
    assert "What was compared" in report
    assert "mine.csv" in report
    with page.expect_download() as download:
        page.get_by_role("button", name="Data", exact=True).click()
    kept = json.loads(download.value.path().read_text())
    assert [round(model["pxp"], 4) for model in kept["shown"]["group"]["models"]] == pxp(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Figure").click()
    assert download.value.path().read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    page.get_by_role("button", name="Python").click()
    expect(page.get_by_role("dialog").locator("code")).to_contain_text("read_choices('mine.csv', None)")


def test_people_trials_and_settings_change_what_is_shown(visit):
    page = analysed(visit(f"choices?{SMALL}"), 5)
    expect(slot(page, "who")).to_have_text("Person 1")
    before, bars = pixels(page, "values"), slot(page, "bars").locator("output")
    slot(page, "next").click()
    expect(slot(page, "who")).to_have_text("Person 2")
    page.wait_for_function("old => document.querySelector('[data-canvas=values]').toDataURL() !== old", arg=before)
    page.wait_for_function("() => location.hash.includes('participant=2')")
    slot(page, "people").select_option("5")
    expect(slot(page, "who")).to_have_text("Person 5")
    expect(slot(page, "next")).to_be_disabled()
    first = bars.all_inner_texts()
    assert first == ["0.3333"] * 3  # nothing is known at first
    page.locator("#moment").focus()
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    expect(slot(page, "when")).to_have_text("block 2, trial 3")
    assert bars.all_inner_texts() != first
    expect(slot(page, "proof")).to_contain_text("Proved")
    page.get_by_role("radio", name="block 2").check()
    page.wait_for_function("() => /moment=13.*only_block=true/.test(location.hash)")
    page.get_by_label("Repeat", exact=True).check()
    expect(bars).to_have_count(4)
    old = pxp(page)
    page.get_by_label("Temperature", exact=True).first.fill("0.8")
    page.get_by_label("Temperature", exact=True).first.press("Enter")
    page.wait_for_function("() => location.hash.includes('eps=0.8')")
    page.wait_for_function(
        "old => document.querySelector('[data-slot=table] tr:last-child td:last-child').textContent !== old",
        arg=f"{old[-1]:.4f}",
    )
    again = analysed(visit(page.url.split("#")[1]), 5)  # the link alone
    expect(slot(again, "when")).to_have_text("block 2, trial 3")
    assert pxp(again) == pxp(page)


def test_everything_has_a_name_and_fits_a_narrow_screen(visit):
    page = visit(f"choices?{SMALL}&file=a-rather-long-name-of-a-file-that-somebody-sent.csv")
    page.set_viewport_size({"width": 360, "height": 740})
    analysed(page, 5)
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, a')].filter((node) =>
            !(node.getAttribute('aria-label') || node.labels?.length || node.textContent.trim()))
            .map((node) => node.outerHTML)"""
    )
    assert unnamed == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
