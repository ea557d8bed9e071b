"""The page that a run ends with: complete, closed in itself, and equal to claims.json."""

import base64
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

from policychord.runs import duration, plain
from policychord.runs import page as page_module
from policychord.runs.page import markdown
from policychord_paper import STUDIES, load_study
from policychord_paper.claim import MINUS, SPACE, TIMES, VERDICTS, Check, Quantity, Revision, _Robustness, number
from policychord_paper.commands.reproduce import _claims_table
from policychord_paper.report import (
    AUTHORS,
    MAKERS,
    PAPER,
    PEOPLES_LINK,
    PREPRINT,
    PREPRINTS_LINK,
    PREPRINTS_YEAR,
    SOFTWARE,
    _all_digits,
    _render,
    write_report,
)
from policychord_paper.study import PANELS, Report

from .pages import CLAIMS, ENVIRONMENT, OTHER, OUTSIDE, a_report, a_run
from .quadrotor.invented import evidence as flown

ROOT = Path(__file__).parents[2]
PEOPLE = "human data (Gershman 2018)"
VOID = {"meta", "link", "img", "input", "br", "hr", "path", "circle"}


class Node(NamedTuple):
    tag: str
    given: dict
    within: tuple  # the ids and tags around it
    text: list


class Page(HTMLParser):
    """Every element with its attributes and its text; tags must close in order."""

    def __init__(self, text: str):
        super().__init__()
        self.nodes, self.around = [], []
        self.feed(text)
        self.close()
        assert not self.around, f"left open: {[node.tag for node in self.around]}"

    def handle_starttag(self, tag, attrs):
        node = Node(tag, dict(attrs), tuple(self.around), [])
        self.nodes.append(node)
        if tag not in VOID:
            self.around.append(node)

    def handle_startendtag(self, tag, attrs):
        self.nodes.append(Node(tag, dict(attrs), tuple(self.around), []))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.around.pop().tag == tag

    def handle_data(self, data):
        for node in self.around:
            node.text.append(data)

    def all(self, tag, **given):
        wanted = {name.rstrip("_"): value for name, value in given.items()}
        return [n for n in self.nodes if n.tag == tag and all(n.given.get(k) == v for k, v in wanted.items())]

    def inside(self, id_, tag):
        return [n for n in self.nodes if n.tag == tag and any(a.given.get("id") == id_ for a in n.within)]


def typed(text: str) -> str:
    """With the signs of a keyboard."""
    return text.translate({ord(MINUS): "-", ord(TIMES): "x", ord(SPACE): " "})


def words(node) -> str:
    return " ".join("".join(node.text).split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    a_run(folder)
    return folder


@pytest.fixture(scope="module")
def html(folder):
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def test_every_id_is_there_once_and_every_link_leads_to_one(page):
    ids = [node.given["id"] for node in page.nodes if "id" in node.given]
    assert len(ids) == len(set(ids))
    links = [node.given["href"] for node in page.nodes if node.tag == "a"]
    assert len(links) > 20
    for link in links:  # those that leave the page: one stands in a passage, one is the preprint
        assert link in (OUTSIDE, PREPRINTS_LINK) or (link.startswith("#") and link[1:] in ids), f"{link} leads nowhere"
    for node in page.nodes:
        for name in ("aria-labelledby", "aria-describedby", "aria-controls"):
            assert node.given.get(name, ids[0]) in ids, node


def test_figures_are_embedded_and_can_be_decoded(page):
    images = [node for node in page.nodes if node.tag == "img" and "src" in node.given]
    assert len(images) == 2
    for image in images:
        kind, _, data = image.given["src"].partition(";base64,")
        drawn = base64.b64decode(data, validate=True)
        if kind == "data:image/svg+xml":
            assert ElementTree.fromstring(drawn).tag.endswith("svg")
        else:
            Image.open(io.BytesIO(drawn)).verify()
        assert int(image.given["width"]) > int(image.given["height"]) > 0
        assert image.given["alt"]


def test_nothing_is_fetched(html, page):
    for node in page.nodes:
        for name in ("src", "href", "srcset", "poster", "data", "action", "formaction"):
            value = node.given.get(name, "data:")
            assert value.startswith("data:") or (node.tag == "a" and name == "href"), f"{node.tag} {name}={value}"
    styles = "".join(words(node) for node in page.all("style"))
    assert "url(" not in styles
    assert "@import" not in styles
    scripts = [node for node in page.all("script") if node.given.get("type") != "application/json"]
    assert len(scripts) == 2
    assert not any(re.search(r"fetch\(|XMLHttpRequest|import\(|https?:", words(node)) for node in scripts)


def test_numbers_of_a_claim_are_those_of_claims_json(folder, page):
    shown = 0
    for claim in json.loads((folder / "claims.json").read_text()):
        cells = {cell.given["value"]: words(cell) for cell in page.inside(claim["id"], "data")}
        for value in (Quantity(**value) for value in claim["measured"].values()):
            assert cells[json.dumps(value.value)] == " ".join(number(value).split())
        shown += len(cells)
    assert shown == 9


def test_a_rule_is_a_list_of_ticked_conditions_with_a_formula(page):
    """Every condition once, with what was measured and its limit; the formula has the same numbers."""
    rows = [words(row) for row in page.inside("B2", "tr")]
    assert rows[1:] == ["holdsearly, q1 only1> 0", f"does not holdlate, q2 other{MINUS}1> 0"]
    (formula,) = (words(node) for node in page.inside("B2", "p") if node.given.get("class") == "formula")
    assert formula == "B2 is reproduced if (q1>0) ∧ (q2>0), and partly if one of the brackets holds."


def test_the_history_of_a_rule_stands_with_it(page):
    (earlier,) = (node for node in page.inside("B2", "details") if node.given.get("class") == "revised")
    assert words(earlier) == (
        "Set after a measurement: the rule of B2 Before: only > <2>. Verdict: not reproduced, now partly. "
        "2 was a guess."
    )
    assert "†" in words(next(row for row in page.all("tr") if row.given.get("data-claim") == "B2"))
    assert "†" not in words(next(row for row in page.all("tr") if row.given.get("data-claim") == "B1"))


def test_verdicts_on_simulated_people_are_marked_in_their_rows(page, folder):
    """By the rule that leaves them out of the headline, on the page and in the terminal."""
    for shown, marked in ((page, ["B1", "B2"]), (Page(_render(with_people(a_report(folder)), folder)), [])):
        rows = [row for row in shown.inside("ledger", "tr") if "data-claim" in row.given]
        assert [row.given["data-claim"] for row in rows if "simulated people, not counted" in words(row)] == marked
    for report, count in ((a_report(folder), 2), (with_people(a_report(folder)), 0)):
        verdicts = [str(cell) for cell in _claims_table(report).columns[-1].cells]
        assert sum("simulated people" in verdict for verdict in verdicts) == count
        assert len(verdicts) == 3


def test_a_verdict_that_some_draws_change_says_how_firm_it_is(folder):
    def headline(same):
        claim = OTHER[0]._replace(robustness=_Robustness(None, same, 50))
        report = Report([a_report(folder).chapters[1]._replace(claims=[claim])], ENVIRONMENT)
        told = [str(cell) for cell in _claims_table(report).columns[-1].cells]
        return words(Page(_render(report, folder)).inside("ledger", "td")[-1]), told[0]

    open_one, told = headline(33)
    assert open_one.endswith("not reproduced (33/50)")
    assert told == "not reproduced\n(33 of 50 draws)"
    for same in (50, None):
        assert headline(same)[0].endswith("not reproduced")


@pytest.mark.parametrize(
    ("choices", "commands"),
    [
        ("", ["policychord reproduce all --quick --seed 3"]),
        ("fetched", ["policychord choices data fetch", "policychord reproduce all --quick --seed 3"]),
        ("folder", ["policychord reproduce all --quick --seed 3 --data FOLDER"]),
    ],
)
def test_a_run_is_repeated_by_what_it_was_given(folder, choices, commands):
    bare = a_report(folder).chapters[1]
    chapters = [bare._replace(study=name, claims=[]) for name in STUDIES]
    page = Page(_render(Report(chapters, ENVIRONMENT._replace(choices=choices)), folder))
    assert "".join(page.inside("method", "code")[0].text).splitlines() == commands
    assert ("data1.csv" in words(page.all("section", id="method")[0])) == (choices == "folder")


def test_a_line_of_the_table_and_its_claim_say_everything(folder, page):
    for claim in json.loads((folder / "claims.json").read_text()):
        row = next(node for node in page.all("tr") if node.given.get("data-claim") == claim["id"])
        detail = next(node for node in page.all("details") if node.given.get("id") == claim["id"])
        for field in ("id", "statement", "verdict"):
            assert " ".join(claim[field].split()) in words(row), field
            assert " ".join(claim[field].split()) in words(detail), field
        assert claim["paper"] in words(row)
        assert row.given["data-verdict"] == claim["verdict"]
        assert row.given["data-study"] == claim["study"]
    assert "4 of 7" not in words(page.all("table", id="ledger")[0])
    assert [n.given["href"] for n in page.inside("B1", "a")] == ["#figure-bandit-weights_over_time"]


def with_people(report, **more):
    chapters = [report.chapters[0]._replace(source=PEOPLE), *report.chapters[1:]]
    return report._replace(chapters=chapters, environment=ENVIRONMENT._replace(data=PEOPLE, **more))


def test_headline_counts(page, folder):
    report = a_report(folder)
    human = with_people(report)
    # claims about people are not counted where there were no people
    for shown, claims, headline in (
        (page, OTHER, "0 of 1 claim reproduced"),
        (Page(_render(human, folder)), CLAIMS + OTHER, "1 of 3 claims reproduced, 1 partly"),
    ):
        assert words(shown.all("h1")[0]) == headline
        for verdict in VERDICTS:
            link = shown.all("a", **{"data-pick": verdict})[0]
            assert words(link) == f"{sum(c.verdict == verdict for c in claims)} {verdict}"
    facts = words(page.all("article", class_="digest")[0])
    for fact in ("Quick reproduction", "1 March 2026, 12:30 UTC", "2 min 41 s", "A processor", "policychord 0.1.0"):
        assert fact in facts
    assert "The choices in the bandit study are simulated." in facts
    assert ENVIRONMENT.data in facts
    assert "A quick run." in facts


def test_full_runs_of_human_data_carry_no_warnings(folder):
    report = a_report(folder)
    human = with_people(report, quick=False)
    text = words(Page(_render(human, folder)).all("header", id="summary")[0])
    assert "Full reproduction" in text
    assert "simulated" not in text
    assert "A quick run" not in text


def test_simulated_choices_do_not_matter_where_nobody_chooses(folder):
    report = a_report(folder)
    flock = report._replace(chapters=report.chapters[1:])
    assert "are simulated" not in _render(flock, folder)


def test_everything_is_escaped(html, page):
    assert "<script>alert" not in html
    assert not [node for node in page.nodes if "onerror" in node.given]
    assert not [node for node in page.nodes if node.tag in ("i", "b", "u") and words(node) in ("this", "alert(1)")]
    row = next(node for node in page.all("tr") if node.given.get("data-claim") == "B1")
    assert CLAIMS[0].statement in words(row)
    assert len(page.all("script")) == 3


def test_markdown_obeys_no_tags_and_fetches_no_pictures():
    text = str(
        markdown(
            "# Title\n\n*a* <b>x</b> ![p](http://example.org/p.png) [bad](javascript:alert(1))\n\n|a|b|\n|-|-|\n|1|2|"
        )
    )
    assert "<h5>Title</h5>" in text
    assert "<em>a</em> &lt;b&gt;x&lt;/b&gt;" in text
    assert "<td>2</td>" in text
    assert "<img" not in text
    assert 'href="javascript' not in text


def test_a_page_alone_holds_the_record_of_its_run(folder, page):
    record = json.loads("".join(page.all("script", id="record")[0].text))
    claims = json.loads((folder / "claims.json").read_text())
    assert json.dumps(record["claims"]) == json.dumps(claims)  # as text: what is not a number equals nothing
    assert record["environment"] == json.loads((folder / "environment.json").read_text())


def test_a_chapter_shows_what_it_has_and_no_more(page):
    def titles(study):
        folds = {id(node) for node in page.inside(study, "details") if node.given.get("class") == "fold"}
        return [words(n) for n in page.inside(study, "summary") if id(n.within[-1]) in folds]

    assert titles("bandit") == [
        "What was done", "2 claims, with rules and numbers", "Controls", "Findings", "Objections and answers",
        "1 more figure", "4 settings, 1 dataset",
    ]  # fmt: skip
    assert titles("flock") == ["1 claim, with rules and numbers"]
    assert words(page.inside("flock", "h3")[0]) == "Flock"
    section = words(page.all("section", id="bandit")[0])
    for text in ("A floor & its effect", "Is 1 < 2?", 'xarray.open_zarr("data/bandit/weights.zarr")', "deep.a"):
        assert text in section
    chips = page.inside("figure-bandit-weights_over_time", "a")
    assert [words(chip) for chip in chips] == ["B1, reproduced", "F1, not reproduced"]  # Z9 is not in this run


def test_settings_are_explained_where_the_study_does(folder):
    from policychord_paper.bandit.experiments import BanditSettings

    report = a_report(folder)
    chapter = report.chapters[0]._replace(settings=BanditSettings(seed=3).model_dump())
    section = words(Page(_render(Report([chapter], ENVIRONMENT), folder)).all("section", id="bandit")[0])
    assert BanditSettings.model_fields["eps"].description in section


def test_no_chapters_still_make_a_page(tmp_path):
    page = Page(_render(Report([], ENVIRONMENT._replace(steps={}, packages={}, devices=[])), tmp_path))
    assert words(page.all("h1")[0]) == "No claims were judged"


def test_ids_that_collide_get_places_of_their_own(folder):
    report = a_report(folder)
    odd = [CLAIMS[1]._replace(id=name) for name in ("claims", "ledger", "appendix", "flock-title", "a b", "a/b", "<>")]
    chapter = report.chapters[1]._replace(claims=odd)
    ids = [n.given["id"] for n in Page(_render(Report([chapter], ENVIRONMENT), folder)).nodes if "id" in n.given]
    assert len(ids) == len(set(ids))
    assert {"claims-2", "a-b", "a-b-2"} <= set(ids)


def test_heavy_drawings_become_pixels(folder, monkeypatch):
    report = a_report(folder)
    monkeypatch.setattr(page_module, "LARGEST_SVG", 10)
    png = [len((folder / f.png).read_bytes()) for f in report.chapters[0].figures]
    svg = [len((folder / f.svg).read_bytes()) for f in report.chapters[0].figures]
    sources = [n.given["src"] for n in Page(_render(report, folder)).nodes if n.tag == "img" and "src" in n.given]
    shown = [len(base64.b64decode(source.partition(",")[2])) for source in sources]
    assert sorted(shown) == sorted(map(min, png, svg))


def test_a_missing_figure_is_named(folder):
    report = a_report(folder)
    chapter = report.chapters[0]
    lost = chapter.figures[0]._replace(svg="figures/none.svg", png="figures/none.png")
    with pytest.raises(ValueError, match=r"none\.png is missing"):
        _render(Report([chapter._replace(figures=[lost])], ENVIRONMENT), folder)


def test_the_same_run_gives_the_same_page(folder, html):
    assert _render(a_report(folder), folder) == html
    assert write_report(a_report(folder), folder) == folder / "report.html"


def test_citation_has_the_facts_of_the_file():
    facts = (ROOT / "CITATION.cff").read_text()
    assert f'title: "{SOFTWARE}"' in facts
    assert f"title: {PAPER}" in facts
    assert f"- name: {MAKERS}" in facts
    named = re.findall(r"family-names: (\w+)\s+given-names: (\w+)", facts)
    assert tuple(f"{given} {family}" for family, given in named) == AUTHORS
    one_line = " ".join(facts.split())
    assert f"{PREPRINT} ({PREPRINTS_YEAR}), arXiv:{PREPRINTS_LINK.rpartition('/')[2]}" in one_line


def test_the_article_of_the_choices_is_cited_where_there_are_people(page, folder):
    assert PEOPLES_LINK not in [node.given.get("href") for node in page.all("a")]
    human = Page(_render(with_people(a_report(folder)), folder))
    assert human.all("a", href=PEOPLES_LINK)


def test_verdicts_since_the_last_change_of_their_rules(folder):
    claims = [
        OTHER[0]._replace(id=name, verdict=now, history=(Revision("a rule", before, "why"),))
        for name, before, now in (
            ("A", "partly", "reproduced"), ("B", "reproduced", "partly"), ("C", "reproduced", "not reproduced"),
            ("D", "partly", "partly"), ("E", None, "partly"),
        )
    ]  # fmt: skip
    report = Report([a_report(folder).chapters[1]._replace(claims=[*claims, OTHER[0]])], ENVIRONMENT)
    text = words(Page(_render(report, folder)).all("section", id="method")[0])
    assert "1 of 6 rules were fixed" in text
    assert "2 verdicts are lower, 1 higher and 1 the same; 1 statement had no rule before" in text


def test_nulls_and_alternatives_stand_in_both_layers(folder):
    null = Check("coins", "Coin flippers.", "rejected", "not reproduced", True, {}, {})
    passed = Check("people", "Simulated people.", "accepted", "partly", False, {}, {})
    claim = CLAIMS[1]._replace(checks=(null, passed))
    first, *rest = a_report(folder).chapters
    page = Page(_render(Report([first._replace(claims=[CLAIMS[0], claim]), *rest], ENVIRONMENT), folder))
    marks = [node for node in page.nodes if "tick" in node.given.get("class", "")]
    ticks = {
        row.given["data-claim"]: [words(mark) for mark in marks if row in mark.within]
        for row in page.all("tr")
        if "data-claim" in row.given
    }
    assert ticks["B2"] == ["holds", "does not hold"]
    assert all("hold" not in mark for mark in ticks["B1"])
    rows = [words(row) for row in page.inside("bandit", "tr")]
    assert "coinsCoin flippers. Every rule must reject it.holdsB2" in rows
    assert "peopleSimulated people. Every rule must accept it.does not holdB2" in rows
    assert "1 of these checks fails" in words(page.all("section", id="method")[0])


@pytest.mark.parametrize(
    ("value", "short"),
    [
        (0.1 + 0.2, "0.3"), (0.0, "0"), (-0.0, "0"), (1.0, "1"), (-2.5, "-2.5"), (0.72054771, "0.7205"),
        (-3495.214, "-3495"), (12345.67, "12,346"), (9999.7, "10,000"), (999999.9, "1.000 x 10⁶"),
        (0.00123456, "0.001235"), (0.00099999, "0.001000"), (0.000999, "9.99 x 10⁻⁴"), (0.99998, "1.000"),
        (5e-324, "4.941 x 10⁻³²⁴"), (-0.54399, "-0.5440"), (-1.887379e-15, "-1.887 x 10⁻¹⁵"), (1.5e6, "1.5 x 10⁶"),
        (240, "240"), (-7, "-7"), (123456, "123,456"), (True, "yes"), (False, "no"), (None, "none"),
        (float("inf"), "∞"), (float("-inf"), "-∞"), (float("nan"), "not a number"), (np.float64(0.5), "0.5"),
        (np.int64(3), "3"), (np.bool_(True), "yes"), (Quantity(174, of=200), "174 of 200"),
        (Quantity(0.25, "share", interval=(0.2, 0.301)), "25% (20 to 30.1)"), (Quantity(-2.5, "m"), "-2.5 m"),
    ],
)  # fmt: skip
def test_numbers_for_people(value, short):
    assert typed(number(value)) == short


def test_signs_are_those_of_print():
    assert number(-2.5)[0] == number(-7)[0] == MINUS == "\u2212"
    assert number(-1e-9) == f"{MINUS}1{SPACE}{TIMES}{SPACE}10⁻⁹"
    assert "-" not in number(-1e-9) + number(-123456)


def test_exact_values_keep__all_digits():
    assert _all_digits(0.1 + 0.2) == "0.30000000000000004"
    assert _all_digits(np.float32(0.5)) == "0.5"
    assert _all_digits(True) == "true"
    assert plain({"a": (1, np.arange(2))}) == {"a": [1, [0, 1]]}
    assert plain({"a": Quantity(np.float64("nan"))}, finite=True)["a"]["value"] is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.7, "1 min 0 s"), (161.4, "2 min 41 s"), (3900, "1 h 5 min")],
)
def test_durations(seconds, words):
    assert typed(duration(seconds)) == words


def test_changes_of_rules_and_objections_have_tables(folder):
    """Each rule with a history has a line: the verdict before, that of now, the reason. Objections have answers."""
    first, *others = a_report(folder).chapters
    page = Page(_render(Report([first._replace(source=PEOPLE), *others], ENVIRONMENT), folder))
    revised = [claim for claim in (*CLAIMS, *OTHER) if claim.history]
    rows = [words(row) for row in page.inside("changes", "tr")][1:]
    assert len(rows) == len(revised) > 0
    for row, claim in zip(rows, revised, strict=True):
        assert (claim.history[-1].verdict or "not judged") in row
    assert any("author" in words(row) and "Then 1 < 2." in words(row) for row in page.inside("bandit", "tr"))


def test_objections_are_about_claims_of_their_study():
    for study in map(load_study, STUDIES):
        # only those about the drone read more than the settings
        evidence = flown() if study.name == "quadrotor" else None
        objections = study.objections(study.settings(), evidence)
        about = {name for one in objections for name in one.claims}
        assert about <= {claim.id for claim in study.claims}
        assert {one.reader for one in objections} == {"author", "reviewer"}


def test_only_a_full_run_with_people_becomes_the_record(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from record import record

    claims = [
        {"id": name, "measured": {"rate": {"value": value}}} for name, value in (("B1", 0.5), ("T19", float("nan")))
    ]

    def written(**changes):
        (tmp_path / "claims.json").write_text(json.dumps(claims))
        (tmp_path / "environment.json").write_text(json.dumps(plain(ENVIRONMENT) | changes))
        return record(tmp_path)

    made = written(quick=False, data=PEOPLE)
    assert made["claims"] == claims[:1]  # what is no number is left out
    assert made["environment"]["started"] == ENVIRONMENT.started
    with pytest.raises(SystemExit, match="quick run"):
        written(quick=True, data=PEOPLE)
    with pytest.raises(SystemExit, match="synthetic"):
        written(quick=False, data="synthetic cohort")


def test_panels_lead_to_figures_and_claims(folder):
    """The paper's panels of the studies that ran; with all studies also those that nothing stands for."""
    report = a_report(folder)
    first, *rest = report.chapters
    drawn = first.figures[0]._replace(panels={"4b": ["B1", "B2"], "S6a": ["B1"]})
    chapter = first._replace(figures=[drawn, *first.figures[1:]])
    page = Page(_render(report._replace(chapters=[chapter, *rest]), folder))
    rows = {words(row): row for row in page.inside("panels", "tr")}
    assert len(rows) == 3
    (row,) = (text for text in rows if text.startswith("Fig. 4b"))
    assert "B1" in row
    assert "B2" in row
    assert "no counterpart" not in " ".join(rows)
    others = [chapter._replace(study=name, claims=[], figures=[]) for name in STUDIES if name != chapter.study]
    page = Page(_render(report._replace(chapters=[chapter, *others]), folder))
    assert len(page.inside("panels", "tr")) == 1 + len(PANELS)
    assert "no counterpart" in words(page.inside("panels", "table")[0])


def test_every_panel_of_the_paper_has_a_counterpart():
    shown = [panel for name in STUDIES for figure in load_study(name).figures.values() for panel in figure.panels]
    assert set(shown) == set(PANELS)
    claims = {claim.id for name in STUDIES for claim in load_study(name).claims}
    for name in STUDIES:
        for figure in load_study(name).figures.values():
            assert {one for about in figure.panels.values() for one in about} <= claims
