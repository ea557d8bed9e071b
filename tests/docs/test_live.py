"""The first page's figure solves in JavaScript what `solve` solves."""

import json
import shutil

import numpy as np
import pytest

import policychord as pc

from .pages import ROOT

SCRIPT = (ROOT / "docs" / "_static" / "live.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page():
    play = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no browser is installed")
    with play.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 900, "height": 600})
        view.set_content(f'<div id="live"></div><script>{SCRIPT}</script>')
        yield view
        browser.close()


@pytest.mark.parametrize("seed", range(6))
def test_its_weights_are_those_of_solve(page, seed):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(2, 6), rng.integers(2, 8)
    pi, cost = rng.dirichlet(np.ones(d), n).T, 2.0 * rng.normal(size=d)
    eps = float(10 ** rng.uniform(-1.5, 1))
    theirs = page.evaluate(f"solve({json.dumps(pi.tolist())}, {json.dumps(cost.tolist())}, {eps})")
    task = pc.problem(pi=pi, action_cost=cost, eps=eps)
    assert theirs["gap"] <= 1e-10
    assert pc.certify(task, np.array(theirs["weights"])).gap <= 2e-10
    np.testing.assert_allclose(theirs["weights"], pc.solve(task, tol=1e-14).weights, atol=np.sqrt(2e-10 / eps))


def test_a_slider_moves_the_weights_and_their_bound_is_shown(page):
    shown = page.locator("#live svg")
    assert "0.5328" in shown.text_content()
    assert "proved within" in shown.text_content()
    slider = page.locator("#live input").nth(1)  # the cost of going ahead
    slider.fill("3")
    best = pc.solve(pc.problem(pi=np.array(page.evaluate("PI")), action_cost=[1.0, 3.0, 0.5, 0.8], eps=0.1))
    assert all(f"{weight:.4f}" in shown.text_content() for weight in best.weights)


def test_a_click_shows_a_descent_that_ends_at_the_optimum(page):
    box = page.locator("#live svg").bounding_box()
    page.mouse.click(box["x"] + 0.19 * box["width"], box["y"] + 0.7 * box["height"])
    path = page.locator("#live polyline").get_attribute("points").split()
    dot = page.locator("#live circle")
    assert len(path) > 5
    end = [float(dot.get_attribute(name)) for name in ("cx", "cy")]
    np.testing.assert_allclose([float(number) for number in path[-1].split(",")], end, atol=0.5)


def test_it_is_small_and_on_the_first_page():
    assert len(SCRIPT.splitlines()) < 150
    assert '<div id="live"></div>' in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
