"""Every page can be used by everybody: contrast, labels and roles by axe-core, and all controls by the keyboard."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from .browsing import loaded, needs_browser

pytestmark = needs_browser

# what a keyboard must reach; of radio buttons with one name it reaches the chosen one, and arrows lead to the others
NUMBER_CONTROLS = """() => [...document.querySelectorAll('button, input, select, a[href]')]
  .filter(e => e.checkVisibility({contentVisibilityAuto: true, visibilityProperty: true}))
  .filter(e => !e.disabled && !(e.type === 'radio' && !e.checked))
  .map((e, i) => { e.dataset.control = i; return e.outerHTML.slice(0, 120); })"""


LATE = '[data-panel]:not([data-state="current"])'


def examine(page: Page) -> dict:
    """What axe-core says of a page at rest: what is being computed anew is pale meanwhile."""
    while True:
        page.wait_for_function(
            "late => ![...document.querySelectorAll(late)].some(e => e.checkVisibility()) "
            "&& document.getAnimations().length === 0",
            arg=LATE,
        )
        result = Axe().run(page).response
        if not any(panel.is_visible() for panel in page.locator(LATE).all()):
            return result


@pytest.mark.parametrize("page", ["gate", "policies", "flock", "choices", "flight"])
def test_axe_finds_nothing(visit, page):
    page = visit(page)
    page.wait_for_selector("#main [data-slot]")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        result = examine(page)
        assert len(result["passes"]) > 20  # it did look
        broken = [(rule["id"], node["html"][:160]) for rule in result["violations"] for node in rule["nodes"]]
        assert broken == [], scheme


def test_the_keyboard_reaches_every_control_of_the_gate(visit):
    page = loaded(visit("gate"))
    controls = page.evaluate(NUMBER_CONTROLS)
    assert len(controls) > 10
    reached = set()
    for _ in range(len(controls) + 40):  # charts and pictures are stops too
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => document.activeElement.dataset.control"))
    assert [html for i, html in enumerate(controls) if str(i) not in reached] == []
