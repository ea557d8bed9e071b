"""The page in a real browser: no errors, controls that do something, tabs that do not disturb each other."""

import json
import re

import pytest
from playwright.sync_api import Page, expect

from policychord.studio.server import _private_link

from .browsing import loaded, needs_browser, pixels

pytestmark = needs_browser


def weights(page: Page) -> list[float]:
    return [float(text) for text in page.locator('[data-slot="bars"] output').all_inner_texts()]


def test_the_gate_shows_a_proof_a_path_and_a_circuit(visit):
    page = loaded(visit("gate"))
    expect(page.locator('[data-slot="proof"]')).to_contain_text("Proved")
    expect(page.locator('[data-slot="verdict"]')).to_contain_text("settles")
    page.wait_for_selector('[data-slot="plot"] .scatterlayer .trace')
    assert sum(weights(page)) == pytest.approx(1.0, abs=2e-4)
    assert page.locator("#pages a").all_inner_texts() == ["Gate", "Policies", "Flock", "Choices", "Flight"]


def test_a_slider_changes_weights_address_and_reset(visit):
    page = loaded(visit("gate"))
    before = weights(page)
    page.get_by_label("Temperature", exact=True).first.fill("9")
    page.get_by_label("Temperature", exact=True).first.press("Enter")
    page.wait_for_function("() => location.hash.includes('eps=9')")
    page.wait_for_function(f"() => document.querySelector('[data-slot=bars] output').textContent !== '{before[0]:.4f}'")
    assert max(weights(page)) < max(before)  # hot mixes all
    page.get_by_role("button", name="Reset Temperature").click()
    page.wait_for_function("() => !location.hash.includes('eps')")
    page.wait_for_function(f"() => document.querySelector('[data-slot=bars] output').textContent === '{before[0]:.4f}'")


def test_a_primitive_can_be_dragged_and_the_simplex_clicked(visit):
    page = loaded(visit("gate?position_1=-2&position_2=0&position_3=2&valley=2.5&depth=1"))
    expect(page.locator('[data-slot="verdict"]')).to_contain_text("settles")
    box = page.locator('[data-canvas="actions"]').bounding_box()
    x = box["x"] + 14 + (box["width"] - 28) / 6  # u = -2
    y = box["y"] + 26 + (box["height"] - 56) * 0.14
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y, steps=4)
    page.mouse.up()
    page.wait_for_function("() => /position_1=-1\\.\\d/.test(location.hash)")
    seen = pixels(page, "simplex")
    page.locator('[data-canvas="simplex"]').click(position={"x": 200, "y": 200})
    page.wait_for_function("() => location.hash.includes('start_1')")
    page.wait_for_function("old => document.querySelector('[data-canvas=\"simplex\"]').toDataURL() !== old", arg=seen)


def test_a_link_reproduces_the_view(visit):
    page = loaded(visit("gate?eps=3.5&valley=-1.5"))
    for number in page.locator(".side input[type=number]").all():
        expect(number).not_to_have_value("")
    page.wait_for_function("() => document.querySelector('[data-slot=bars] output').textContent !== ''")
    expect(page.locator("#control-eps")).to_have_value("3.5")
    again = loaded(visit("gate?" + page.url.split("?")[1]))
    expect(again.locator('[data-slot="proof"]')).to_contain_text("Proved")
    assert weights(again) == weights(page)


def test_a_sparse_gate_shows_its_exact_zeros(visit):
    page = loaded(visit("gate?regulariser=Tsallis&alpha=2&spread_2=1.5"), frames=3)
    expect(page.locator('[data-slot="proof"]')).to_contain_text("exactly no weight")
    assert "0" in page.locator('[data-slot="bars"] output').all_inner_texts()
    expect(page.locator('[data-slot="verdict"]')).to_contain_text("It settles")
    page.get_by_role("button", name="Reset all").click()
    expect(page.locator('[data-slot="proof"]')).not_to_contain_text("exactly no weight")


def test_a_wrong_link_says_what_is_wrong(visit):
    page = visit("gate?eps=-3")
    expect(page.get_by_role("alert")).to_contain_text("eps = -3")


@pytest.mark.parametrize("where", ["cellar?eps=1", "constructor", "__proto__"])
def test_an_unknown_page_leads_to_the_first_and_says_so(visit, where):
    page = visit(where)
    expect(page.get_by_role("alert")).to_contain_text("There is no page")
    loaded(page)
    expect(page.locator("#pages a[aria-current]")).to_have_text("Gate")


def test_the_private_file_opens_the_page_and_it_can_be_reloaded(browser, studio):
    context = browser.new_context()
    with _private_link(studio.address) as link:
        page = context.new_page()
        page.goto(link)
        page.wait_for_url(f"{studio.origin}/")  # without the token
        loaded(page)
        page.reload()
        loaded(page)
    context.close()


def test_the_flock_flies_and_obeys(visit):
    page = loaded(visit("flock?boids=12"))
    first = pixels(page, "flock")
    page.wait_for_function("() => /step [1-9]\\d/.test(document.querySelector('[data-slot=clock]').textContent)")
    page.wait_for_function("was => document.querySelector('[data-canvas=flock]').toDataURL() !== was", arg=first)
    page.get_by_label("Leaders", exact=True).first.fill("5")
    page.get_by_label("Leaders", exact=True).first.press("Enter")
    expect(page.get_by_text("knows the goal")).to_be_visible()
    expect(page.locator('[data-slot="who"]')).to_have_text("Boid 0, a leader")
    page.get_by_label("Playing", exact=True).uncheck()
    page.wait_for_function("() => location.hash.includes('playing=false')")
    page.get_by_label("Scenario").select_option("milling")
    page.wait_for_function("() => location.hash.includes('milling')")
    expect(page.locator("#control-boids")).to_have_value("60")


def test_two_tabs_are_independent(visit):
    one, two = visit("flock?boids=12&playing=false"), visit("flock?boids=9&playing=false")
    for page, boids in ((one, "12"), (two, "9")):
        page.wait_for_function("() => Number(document.getElementById('main').dataset.frames) >= 1")
        expect(page.locator("#control-boids")).to_have_value(boids)
    one.get_by_label("Temperature", exact=True).first.fill("4")
    one.get_by_label("Temperature", exact=True).first.press("Enter")
    one.wait_for_function("() => location.hash.includes('eps=4')")
    expect(two.locator("#control-eps")).to_have_value("0.5")
    assert "eps" not in two.url


def test_figure_data_and_snippet_can_be_taken_away(visit, tmp_path):
    page = loaded(visit("gate?eps=0.7"))
    expect(page.locator('[data-slot="proof"]')).to_contain_text("Proved")
    with page.expect_download() as download:
        page.get_by_role("button", name="Figure").click()
    assert download.value.path().read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    with page.expect_download() as download:
        page.get_by_role("button", name="Data").click()
    data = json.loads(download.value.path().read_text())
    assert data["settings"]["eps"] == 0.7
    assert data["shown"]["gate"]["arrays"]["weights"]["values"] == pytest.approx(weights(page), abs=1e-4)
    page.get_by_role("button", name="Python").click()
    assert "eps=0.7" in page.get_by_role("dialog").locator("code").inner_text()  # that it runs is tested in test_gate


def test_dark_and_light_and_a_narrow_screen(visit):
    page = loaded(visit("gate"))
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Dark colours").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    for page in ("gate", "flock?boids=12"):
        page = visit(page)
        page.set_viewport_size({"width": 360, "height": 740})
        loaded(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        # fonts differ from machine to machine: a wide one must fit too
        page.evaluate("document.documentElement.style.cssText = '--sans: monospace; --serif: monospace'")
        page.evaluate("document.body.style.letterSpacing = '.12em'")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        expect(page.get_by_role("button", name="Dark colours")).to_be_in_viewport(ratio=1)


def test_every_control_can_be_reached_and_has_a_name(visit):
    page = loaded(visit("flock?boids=12"))
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, a')].filter((node) =>
            !(node.getAttribute('aria-label') || node.labels?.length || node.textContent.trim()))
            .map((node) => node.outerHTML)"""
    )
    assert unnamed == []
    page.locator("#control-boids").focus()
    page.keyboard.press("Tab")
    slider = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert re.match("Boids", slider)
