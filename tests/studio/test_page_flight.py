"""The page Flight in a real browser: drones fly, a pull pushes them all, and the flight can be looked at again."""

import json

import pytest
from playwright.sync_api import Page, expect

from .browsing import loaded, needs_browser, pixels

pytestmark = needs_browser
SEEN = "flight?experiment=pd&track=false&stabilise=false"  # the composed drone and the fixed mixture
STILL = "&layout=together&turn=0&tilt=0&playing=false"


def costs(page: Page) -> list[str]:
    return page.locator('[data-slot="board"] td:nth-child(4)').all_inner_texts()


def flown(page: Page) -> Page:
    """The page with both flights on its board; one that the studio has kept comes in a single frame."""
    page.wait_for_function("() => document.querySelectorAll('[data-slot=board] tr').length === 2")
    return page


def at_the_end(page: Page) -> list[str]:
    page.locator('[data-slot="moment"]').press("End")
    page.wait_for_function("() => document.querySelector('[data-slot=time]').textContent.startsWith('6.00')")
    expect(page.locator('[data-slot="clock"]')).to_contain_text("decision 300 of 300")
    page.wait_for_function("() => document.querySelector('[data-press=play]').textContent === 'Again'")
    return costs(page)


def start_of_the_drones(page: Page) -> tuple[float, float]:
    """Where (0, 1.2) is in a canvas that shows 2.18 m by 1.795 m, from 0.06 m below the floor."""
    box = page.locator('[data-canvas="flight"]').bounding_box()
    unit = min(box["width"] / 2.18, box["height"] / 1.795)
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2 - unit * (1.2 - (1.735 - 0.06) / 2)


def test_it_flies_obeys_and_can_be_looked_at_again(visit):
    page = loaded(visit(SEEN), 5)
    first = pixels(page, "flight")
    page.wait_for_function("old => document.querySelector('[data-canvas=flight]').toDataURL() !== old", arg=first)
    expect(page.locator('[data-slot="proof"]')).to_contain_text("proved within")
    page.get_by_role("button", name="Pause").click()
    page.wait_for_function("() => location.hash.includes('playing=false')")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    page.locator('[data-slot="moment"]').press("Home")
    page.wait_for_function("() => document.querySelector('[data-slot=time]').textContent.startsWith('0.00')")
    usual = at_the_end(page)
    # a control changes the flight that is shown, here and now
    page.get_by_label("Temperature", exact=True).first.fill("5")
    page.get_by_label("Temperature", exact=True).first.press("Enter")
    page.wait_for_function("() => location.hash.includes('eps=5')")
    page.wait_for_function(
        "old => document.querySelector('[data-slot=board] td:nth-child(4)').textContent !== old", arg=usual[0]
    )
    assert costs(page)[1] == usual[1]  # the mixture has no temperature
    page.get_by_role("checkbox", name="Baseline").check()
    expect(page.locator('[data-slot="board"]')).to_contain_text("PID")


def test_a_pull_pushes_all_and_the_link_holds_it(visit):
    page = flown(visit(SEEN + STILL))
    x, y = start_of_the_drones(page)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y - 30, steps=4)
    page.mouse.up()
    page.wait_for_function("() => location.hash.includes('pushes=0*1*0.5')")
    expect(page.locator('[data-slot="pushes"]')).to_contain_text("0.00 s: 1.1 m/s up and right")
    page.wait_for_function(
        "() => Number(document.getElementById('main').dataset.moment) > 0.1"
    )  # a push sets time going
    pushed = at_the_end(page)
    again = flown(visit("flight?" + page.url.split("?")[1]))
    assert at_the_end(again) == pushed
    again.get_by_role("button", name="Forget them").click()
    again.wait_for_function("() => !location.hash.includes('pushes')")
    first = "document.querySelector('[data-slot=board] td:nth-child(4)').textContent"
    again.wait_for_function(f"old => {first} !== old", arg=pushed[0])
    assert "pushes" in page.url  # each tab has its own flight
    # by keyboard as well
    again.locator('[data-slot="moment"]').press("Home")
    again.locator('[data-canvas="flight"]').focus()
    again.keyboard.press("ArrowRight")
    again.wait_for_function("() => location.hash.includes('turn=5')")
    again.keyboard.press("Shift+ArrowUp")
    again.wait_for_function("() => /pushes=\\d+\\*0\\*1/.test(location.hash)")


def test_figure_data_and_snippet_on_a_narrow_screen(visit):
    page = visit(SEEN + "&playing=false")
    page.set_viewport_size({"width": 360, "height": 740})
    flown(page)
    expect(page.locator('[data-canvas="flight"]')).to_have_css("height", "400px")  # the page's own style is there
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('main button, main input, main select')].filter((node) =>
            !(node.getAttribute('aria-label') || node.labels?.length || node.textContent.trim()))
            .map((node) => node.outerHTML)"""
    )
    assert unnamed == []
    page.get_by_text("Controls", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Figure").click()
    assert download.value.path().read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    with page.expect_download() as download:
        page.get_by_role("button", name="Data").click()
    data = json.loads(download.value.path().read_text())
    states = data["shown"]["record"]["arrays"]["states"]
    assert states["values"][:6] == pytest.approx([0, 0, 1.2, 0, 0, 0])
    assert [drone["name"] for drone in data["shown"]["record"]["drones"]] == ["composed", "fixed 50/50"]
    page.get_by_role("button", name="Python").click()
    text = page.get_by_role("dialog").locator("code").inner_text()
    assert "fly_episodes" in text
    compile(text, "snippet", "exec")
