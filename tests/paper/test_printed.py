"""The report on paper: at most six pages with all claims of the paper, in a real browser; and what it folds away."""

import os
import re
import stat

import pytest

from policychord.drawing import blank, styled
from policychord.runs import PageFigure, print_page, save_figure
from policychord.runs.doctor import BROWSERS, find_program
from policychord_paper import STUDIES, load_study
from policychord_paper.claim import Check, Quantity, _Robustness, judge_claim
from policychord_paper.report import write_report
from policychord_paper.study import Chapter, Report

from .pages import ENVIRONMENT, a_run

BROWSER = find_program(BROWSERS)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium on the PATH: apt-get install chromium")
PARAGRAPH = "Each sentence of this paragraph stands for one that a study writes about its numbers. " * 8
TABLE = "| | measured | control |\n|---|---|---|\n" + "| a quantity with a name of its own | 0.997 | 0.994 |\n" * 8


def of_full_size(folder) -> Report:
    """Every claim of every study as it is printed, partly reproduced and unsure, with a paragraph and a figure."""
    figure = styled(lambda: blank(7.4, 4.2))
    chapters = []
    for study in map(load_study, STUDIES):
        svg, png = (path.relative_to(folder) for path in save_figure(folder / "figures" / study.name, figure))
        check = Check("a null", "made so", "rejected", "not reproduced", True, {}, {})
        claims = []
        for claim in study.claims:
            limits = {c.quantity: Quantity(c.limit) for part in claim.rule.parts for c in part.conditions}
            limits |= {c.fewer.quantity: Quantity(1) for p in claim.rule.parts for c in p.conditions if c.fewer}
            judged = judge_claim(claim._replace(measure=lambda settings, evidence, limits=limits: limits), None, None)
            firm = _Robustness(judged.robustness.flip, 33, 50)
            claims.append(judged._replace(robustness=firm, checks=(check, check._replace(expected="accepted"))))
        shown = PageFigure("shown", str(svg), str(png), study.figures[study.shown].caption, ())
        chapters.append(
            Chapter(study.name, study.title, study.introduction, {}, "human data", claims, [shown], [], [], [], (),
                    f"{PARAGRAPH}\n\n{TABLE}", "shown")
        )  # fmt: skip
    return Report(chapters, ENVIRONMENT)


def pages(pdf) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))


@needs_browser
def test_all_claims_are_printed_on_six_pages_at_most(tmp_path):
    pdf = print_page(write_report(of_full_size(tmp_path), tmp_path))
    assert pdf == tmp_path / "report.pdf"
    assert 3 <= pages(pdf) <= 6


def test_without_a_browser_there_is_no_pdf(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", os.fspath(tmp_path / "empty"))
    (tmp_path / "report.pdf").write_bytes(b"of an earlier run")
    assert print_page(tmp_path / "report.html") is None
    assert not (tmp_path / "report.pdf").exists()


def test_a_browser_that_fails_leaves_no_pdf(tmp_path, monkeypatch):
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "report.pdf").write_bytes(b"of an earlier run")
    assert print_page(tmp_path / "report.html") is None
    assert not (tmp_path / "report.pdf").exists()


@needs_browser
def test_a_link_to_a_claim_unfolds_it_and_no_width_is_too_small(tmp_path):
    play = pytest.importorskip("playwright.sync_api")
    a_run(tmp_path)
    with play.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 390, "height": 800})
        complaints: list[str] = []
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.goto((tmp_path / "report.html").as_uri())
        assert not tab.locator("#B2 .formula").is_visible()
        tab.locator("#ledger a", has_text="B2").click()
        tab.locator("#B2 .rule").wait_for(state="visible")
        tab.locator("#B2 summary", has_text="formula").click()
        tab.locator("#B2 .formula").wait_for(state="visible")
        tab.locator(".pick", has_text="bandit").click()
        assert tab.locator("#ledger tbody tr:visible").count() == 2
        tab.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        tab.emulate_media(media="print")
        assert not tab.locator("#appendix").is_visible()
        assert tab.locator("#ledger").is_visible()
        browser.close()
    assert complaints == []
