"""The record of the benchmark: its numbers follow from results, and the page's tables and sentences from it."""

import json
import re

import numpy as np
import pytest
from benchmarks import learning_record as made

from ..docs.pages import ROOT

PAGE, KEPT = (
    ROOT.joinpath(*path).read_text() for path in (("docs", "explanation", "learning.md"), ("benchmarks", "RECORD.md"))
)
LINES = [
    tuple(found.split()) for found in re.findall(r"^<!-- generated: learning (.*) -->$", PAGE + KEPT, re.MULTILINE)
]


def scored(rng, ahead):
    """Results of 6 people with 20 decisions: every way has the same scores but for what the gate is ahead."""
    base = rng.normal(-0.5, 0.1, size=120)
    row = {"parameters": 3, "told": [], "starts": 2, "folds": 3, "date": "2026-01-02"}
    rows = {"experiment 1: subjects": np.repeat(np.arange(6), 20).tolist()}
    names = ["hand-made, gate", "1 learned", *(f"{n} learned, {way}" for n in (2, 3) for way in made.WAYS)]
    for name in names:
        lost = ahead.get(name.rpartition(", ")[2], 0.0) if "learned," in name else 0.05
        rows[f"experiment 1: {name}"] = row | {"each": (base - lost + 0.01 * (name[0] == "3")).tolist()}
    return rows


def test_sentence_follows_from_paired_differences(rng):
    noise = 0.2 * rng.normal(size=120)
    rows = scored(rng, {"constant": 0.03, "softmax": noise, "markov": -0.02, "shuffled": -0.015})
    record = made.summarise(rows)
    it = record["experiment 1"]
    assert it["date"] == "2026-01-02"
    assert it["gate"] == "3 learned, gate"
    assert it["enough"] == 3  # two are behind by .01 in every decision
    assert it["against"]["constant"]["mean"] == pytest.approx(0.03)
    assert it["against"]["constant"]["wins"] == 6
    assert it["ways"]["2 learned, markov"]["gain"][0] == pytest.approx(-0.02)
    words = made.sentence(it, "people")
    assert "explain more than the hand-made ones (+.060 ± .000 nats per decision, 6 of 6 people)" in words
    assert "ahead of constant weights (+.030" in words
    assert "level with a mixture of experts" in words
    assert "behind a hidden Markov chain (-.020 ± .000 nats per decision, 0 of 6 people)" in words
    assert words.endswith("the chain's lead over the gate is +.015 instead of +.020.")
    table = made.scores(record, "experiment 1", "people", "people")
    assert "6 people with 120 decisions, 3 folds of people, 2 starts" in table
    assert "(+.030 ± .000)" in table


def test_local_rules_are_counted_from_the_lowest_energy():
    rows = {"local, eps 0.1: descent on the energy": {"energy": [-2.0, -1.995]},
            "local, eps 0.1: rule": {"energy": [-1.98, -2.001], "noise": [0.1, 0.3], "still": [0.0, 0.0], "step": 2.0,
                                     "passes": 60}}  # fmt: skip
    it = made.summarise(rows)["local .1"]
    assert it["lowest"] == -2.001
    assert [one["near"] for one in it["rules"].values()] == [2, 1]
    assert it["rules"]["rule"]["mean"] == pytest.approx(0.0105)
    assert "| rule | 2 | 60 | 2 | 1 | .0105 | .0210 | +0.0e+00 | .2000 |" in made.local({"local .1": it}, ".1")


def test_sections_that_were_not_measured_stay(tmp_path, rng):
    path = tmp_path / "record.json"
    path.write_text(json.dumps({"em": {"date": "2025-12-31", "cohorts": 7}}))
    made.write(scored(rng, {}), path)
    record = json.loads(path.read_text())
    assert record["em"] == {"date": "2025-12-31", "cohorts": 7}
    assert made.days(record) == "2025-12-31: em; 2026-01-02: experiment 1.\n"


def test_every_part_of_the_page_is_made_from_the_record():
    assert {line[0] for line in LINES} == set(made.PARTS)
    for name, *options in LINES:
        words = made.part(name, *options)
        assert "nan" not in words.split()
        assert len(words) > 10
    typed = re.sub(r"^<!-- generated.*?^<!-- end -->$", "", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert "|---|" not in typed  # a table that was typed in can part from the record


def test_page_says_what_the_record_says():
    """Some numbers, read back from the words."""
    record = json.loads(made.RECORD.read_text())
    it = record["cohorts"]
    assert f"{it['within']} of {it['cohorts']} cohorts" in made.part("cohorts")
    assert f"{it['mean']:.4f}"[1:] in made.part("cohorts")
    best = record["experiment 2"]["ways"]["3 learned, gate"]["held out"]
    assert f"-{-best:.4f}".replace("0.", ".") in made.part("experiment2")
