"""The page Policies: a table in, weights with a proof, a contest and a diagnosis out."""

import io

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import expect

from policychord.core.equilibrium import solve
from policychord.core.objective import problem
from policychord.runs.policy_table import EXAMPLE, read_policies
from policychord.studio.pages.policies import POLICIES
from policychord.studio.uploads import Upload

from .browsing import loaded, needs_browser

ONE_STATE = b"action,cost,a,b\nleft,0,1,0\nright,2,0,1\n"


def drawn(state):
    frames = {}
    while not POLICIES.settled(state):
        state, frame = POLICIES.frame(state)
        frames[frame.part] = frame
    return state, frames


def test_weights_and_costs_are_those_of_the_gating_problem_of_each_state():
    _, frames = drawn(POLICIES.begin())
    table, costs = pd.read_csv(io.StringIO(EXAMPLE)), []
    for weights, (_, rows) in zip(frames["weights"].arrays["weights"], table.groupby("state"), strict=True):
        pi = rows[["bold", "steady", "shy"]].to_numpy()
        best = solve(problem(pi=pi, action_cost=rows.cost.to_numpy(), eps=0.5))
        np.testing.assert_allclose(weights, best.weights, atol=1e-6)
        costs.append(rows.cost.to_numpy() @ pi @ best.weights)
    header = frames["weights"].header
    assert header["gap"] <= 1e-10
    contest = {row["agent"]: row for row in header["contest"]}
    np.testing.assert_allclose(-contest["composed"]["mean"], np.mean(costs), atol=1e-6)
    assert contest["composed"]["mean"] > max(contest[f"{name} alone"]["mean"] for name in ("bold", "steady", "shy"))


def test_the_snippet_says_the_same(capsys):
    state, frames = drawn(POLICIES.change(POLICIES.begin(), {"unit": 3.0}))
    found: dict = {}
    exec(POLICIES.describe(state)["snippet"], found)
    np.testing.assert_allclose(found["best"].weights, frames["weights"].arrays["weights"][-1], atol=1e-6)
    assert "proved within" in capsys.readouterr().out


def test_a_table_of_ones_own_is_read_or_refused_with_a_remedy():
    state = POLICIES.act(POLICIES.begin(), {"file": Upload("own.csv", ONE_STATE)})
    state, frames = drawn(POLICIES.change(state, {"unit": 0.01}))
    assert "Raise Unit of the cost, or lower Temperature" in " ".join(frames["weights"].header["warnings"])
    assert set(POLICIES.describe(state)["idle"]) == {"state"}
    assert "read_csv('own.csv')" in POLICIES.describe(state)["snippet"]
    broken = POLICIES.act(state, {"file": Upload("broken.csv", b"action,cost,a\n1,2,1\n")})
    assert "it needs action, cost and 2 to 5 policies" in drawn(broken)[1]["data"].header["blame"]
    assert broken.table is state.table


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has the columns none"),
        ("action,cost,a\n1,2,1\n", "2 to 5 policies"),
        ("action,cost,a,b\n1,2,1,x\n", "line 2: b is 'x', and cost and policies must be numbers"),
        ("state,action,cost,a,b\nx,1,2,1,1\nx,2,2,1,1\ny,1,0,1,1\n", "no numbers for action 2 in state y"),
        (
            "action,cost,a,b\n\n1,2,-1,1\n2,2,2,0\n",
            "line 3: a is '-1', and cost and policies must be numbers, probabilities at least 0",
        ),
        ("action,cost,a,b\n1,2,0,1\n2,2,0,0\n", "of a sum to 0, not 1"),
        ("state,action,cost,a,b\nx,1,2,.5,.5\nx,2,2,.5,.52\n", "of b in state x sum to 1.02, not 1. Correct them"),
        ("action,cost,a,b\n1,2,1,1\n2,2,0,0\n1,2,1,1\n", "line 4: action 1 is in line 2 already. Leave one of"),
        ("action,cost,a,b\n" + "".join(f"{k},0,1,1\n" for k in range(201)), "up to 200"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_with_its_remedy(text, said):
    with pytest.raises(ValueError, match=said):
        read_policies(text.encode(), "mine.csv", {})


def test_rounded_probabilities_are_normalised():
    table = read_policies(b"action,cost,a,b\n1,2,.33,1\n2,2,.33,0\n3,1,.33,0\n", "mine.csv", {})
    np.testing.assert_allclose(table.pi[0, :, 0], 1 / 3, rtol=1e-12)


@needs_browser
def test_a_table_is_edited_weighed_and_played(visit):
    page = loaded(visit("policies"), frames=2)
    expect(page.locator('[data-slot="proof"]')).to_contain_text("Proved")
    expect(page.locator('[data-slot="contest"]')).to_contain_text("fixed mixture")
    page.get_by_role("button", name="crowded").click()
    page.wait_for_function("() => location.hash.includes('state=2')")
    expect(page.locator('[data-slot="where"]')).to_have_text("In the state crowded")
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
