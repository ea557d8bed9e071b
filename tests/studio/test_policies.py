"""The page Policies: a table in, weights with a proof, a contest and a diagnosis out."""

import io

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import expect

from policychord.core.equilibrium import solve
from policychord.core.objective import problem
from policychord.core.regularisers import Tsallis
from policychord.runs.policy_table import EXAMPLE, read_policies
from policychord.studio.pages.policies import POLICIES
from policychord.studio.uploads import Upload

from .browsing import loaded, needs_browser

ONE_STATE = b"action,cost,a,b\nleft,0,1,0\nright,2,3,1\n"


def drawn(state):
    frames = {}
    while not POLICIES.settled(state):
        state, frame = POLICIES.frame(state)
        frames |= {} if frame is None else {frame.part: frame}
    return state, frames


@pytest.fixture(scope="module")
def shown():
    state = POLICIES.begin()
    for part in ("contest", "diagnosis"):
        state = POLICIES.act(state, {"ask": part})
    return drawn(state)


def test_weights_are_those_of_the_gating_problem_of_each_state(shown):
    _, frames = shown
    table = pd.read_csv(io.StringIO(EXAMPLE))
    for weights, (_, rows) in zip(frames["weights"].arrays["weights"], table.groupby("state"), strict=True):
        pi = rows[["bold", "steady", "shy"]].to_numpy()
        best = solve(problem(pi=pi / pi.sum(axis=0), action_cost=rows.cost.to_numpy(), eps=0.5))
        np.testing.assert_allclose(weights, best.weights, atol=1e-6)
    assert frames["weights"].header["gap"] <= 1e-10


def test_the_snippet_says_the_same(shown, capsys):
    state, frames = shown
    found: dict = {}
    exec(POLICIES.describe(state)["snippet"], found)
    np.testing.assert_allclose(found["weighed"].weights, frames["weights"].arrays["weights"], atol=1e-9)
    said = capsys.readouterr().out
    for part in ("contest", "diagnosis"):
        assert "\n".join(frames[part].header["lines"]) in said
    assert "fixed mixture" in said


def test_a_table_of_ones_own_with_sparse_weights():
    state = POLICIES.change(POLICIES.begin(), {"regulariser": "Tsallis", "alpha": 2.0, "eps": 0.1})
    state, frames = drawn(POLICIES.act(state, {"file": Upload("own.csv", ONE_STATE)}))
    pi = np.array([[0.25, 0.0], [0.75, 1.0]])
    best = solve(problem(pi=pi, action_cost=np.array([0.0, 2.0]), eps=0.1, regulariser=Tsallis(2.0)))
    np.testing.assert_allclose(frames["weights"].arrays["weights"], [best.weights], atol=1e-6)
    assert set(POLICIES.describe(state)["idle"]) == {"state"}
    assert "read_csv('own.csv')" in POLICIES.describe(state)["snippet"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has the columns none"),
        ("action,cost,a\n1,2,1\n", "2 to 5 policies"),
        ("action,cost,a,b\n1,2,1,x\n", "line 2: cost and policies must be numbers"),
        ("state,action,cost,a,b\nx,1,2,1,1\nx,2,2,1,1\ny,1,0,1,1\n", "no numbers for action 2 in state y"),
        ("action,cost,a,b\n1,2,-1,1\n2,2,2,1\n", "probabilities are at least 0"),
        ("action,cost,a,b\n1,2,0,1\n2,2,0,1\n", "takes some action"),
        ("action,cost,a,b\n" + "".join(f"{k},0,1,1\n" for k in range(201)), "up to 200"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_with_its_remedy(text, said):
    with pytest.raises(ValueError, match=said):
        read_policies(text.encode(), "mine.csv", {})


@needs_browser
def test_a_table_is_edited_weighed_and_played(visit):
    page = loaded(visit("policies"), frames=2)
    expect(page.locator('[data-slot="proof"]')).to_contain_text("Proved")
    page.locator("[data-ask=contest]").click()
    expect(page.locator('[data-slot="contest"]')).to_contain_text("gain of composed")
    page.locator("#control-eps").fill("5")
    page.locator("#control-eps").press("Enter")
    contest = page.locator('[data-panel="contest"]')
    expect(contest).to_have_attribute("data-state", "stale")
    expect(contest.locator(".state")).to_contain_text("ask again")
    table = page.get_by_label("The table as CSV")
    table.fill("action,cost,a,b\n1,2,1\n")
    page.get_by_role("button", name="Use this table").click()
    expect(page.locator('[data-slot="blame"]')).to_contain_text("cost and policies must be numbers")
    table.fill(ONE_STATE.decode())
    page.get_by_role("button", name="Use this table").click()
    expect(page.locator('[data-slot="bars"] b')).to_have_text(["a", "b"])
    expect(page.locator('[data-slot="blamed"]')).to_be_hidden()
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
