"""A real browser for tests of the page: tabs of their own, and no complaint goes unheard."""

import shutil

import pytest
from playwright.sync_api import Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 180_000  # ms: the first picture waits for a compiler
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH: apt-get install chromium")


@pytest.fixture(scope="module")
def browser():
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def visit(browser, studio):
    """A function that opens a page in a tab of its own; at the end no tab may have complained."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    context.set_default_timeout(PATIENCE)
    complaints: list[str] = []

    def open_page(where: str) -> Page:
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{studio.address}#{where}")
        return page

    yield open_page
    context.close()
    assert complaints == []


def pixels(page: Page, canvas: str) -> str:
    return page.locator(f'[data-canvas="{canvas}"]').evaluate("canvas => canvas.toDataURL()")


def loaded(page: Page, frames: int = 2) -> Page:
    page.wait_for_function("n => Number(document.getElementById('main').dataset.frames) >= n", arg=frames)
    return page
