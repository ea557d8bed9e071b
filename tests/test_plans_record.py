"""Do plans pay: the benchmark plays, keeps and compares; the record says what the page says of it."""

import json
import re

import numpy as np
from benchmarks import composition, plan

from .docs.pages import ROOT

RECORD = ROOT / "docs" / "explanation" / "plan.json"


def test_agents_play_the_same_episodes_and_make_the_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(composition, "BEFORE", [np.inf])
    arena = plan.Arena("pendulum", tmp_path)
    arena.bench = arena.bench._replace(task=arena.bench.task._replace(steps=6, horizon=3))
    arena.ahead = {"steps": 4, "samples": 8}
    agents = arena.agents(composition.USUAL)
    found = {
        who: {"pendulum": arena.costs(who, agents[who], range(1000, 1003))} for who in ("composed", "plan", "by hand")
    }
    assert all(one["pendulum"].shape == (3, 3) and np.all(np.isfinite(one["pendulum"])) for one in found.values())
    plan.tables({"": found, "mass x 0.8": found}, tmp_path / "t.json")
    made = json.loads((tmp_path / "t.json").read_text())
    assert [(row[0], row[-1]) for row in made["costs"]["rows"]] == [(who, 3) for who in found]
    assert [row[0] for row in made["mass"]["rows"]] == [f"{who}, mass x 0.8" for who in found]
    ratio = np.median(found["plan"]["pendulum"][0]) / np.median(found["by hand"]["pendulum"][0])
    column = list(made["paired"]["columns"]).index("pendulum")
    assert made["paired"]["rows"][1][column].startswith(f"{ratio:.2f}, ")
    # what is not played again stays
    plan.tables({"": {who: found[who] for who in ("plan", "composed")}}, tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text())["costs"]["rows"] == made["costs"]["rows"]


def test_intervals_by_hand():
    assert plan.middle(np.arange(1.0, 101.0)) == "50.5 (40.0 to 61.0)"  # order statistics 40 and 61 of a hundred
    assert plan.share(np.array([1.0, 1.0, 3.0, 1.0]), np.full(4, 2.0)).startswith("0.50, 75% (")


def numbers(name: str) -> dict[str, dict[str, tuple[float, ...]]]:
    """A table of the record: row, column, and the numbers of that cell."""
    table = json.loads(RECORD.read_text())[name]
    return {
        row[0]: {
            task: tuple(map(float, re.findall(r"[\d.]+", cell)))
            for task, cell in zip(table["columns"], row, strict=True) if task in plan.NAMES and cell
        }
        for row in table["rows"]
    }  # fmt: skip


def test_the_record_says_what_the_page_says():
    paired, mass = numbers("paired"), {who: cells["3-D drone"][0] for who, cells in numbers("mass").items()}
    for rival in ("composed", "MPPI", "MPPI, tuned"):
        assert all(low > 50.0 for _, _, low, _ in paired[rival].values()), rival
    assert all(paired["plan by gradient"][task][2] > 50.0 for task in ("3-D drone", "planar drone", "cart-pole"))
    hand = paired["by hand"]
    assert hand["cart-pole"][2] > 50.0 > max(hand["3-D drone"][3], hand["planar drone"][3])
    assert paired["posterior"]["planar drone"][3] < 50.0
    for wrong in ("0.8", "1.2"):
        composed = mass[f"composed, mass x {wrong}"]
        assert mass[f"plan, mass x {wrong}"] > composed < mass[f"posterior, mass x {wrong}"]
        assert mass[f"plan, learns the model's error, mass x {wrong}"] < composed / 2
    cart = {who: cells["cart-pole"][0] for who, cells in numbers("mass").items()}
    assert cart["plan, learns the model's error, mass x 0.8"] > cart["plan, mass x 0.8"]
    fixed, own = (numbers("costs")[f"posterior, {words}"] for words in ("fixed weights", "its own gate"))
    assert all(abs(fixed[task][0] / own[task][0] - 1) < 0.05 for task in fixed)
