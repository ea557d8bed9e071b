"""A file of tracks in the page Flock: what is played is the data, and the group beside it starts where they are."""

import io
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from playwright.sync_api import expect

from policychord.studio.pages import tracks as page
from policychord.studio.pages.flock import FLOCK
from policychord.studio.uploads import Upload

from .browsing import loaded, needs_browser, pixels

FRAMES, COUNT, RATE = 61, 5, 20.0
THETA = {"eps": 0.5, "prior": [0.25] * 4, "gain": [1.0, 2.0, 2.0, 2.0], "sd": 0.6, "tail": 6.0}
SENTENCE = "Gating is not needed here."


def positions():
    """Individuals that walk side by side and weave; the last one comes late."""
    time = np.arange(FRAMES)[:, None] / RATE
    phase = np.arange(COUNT)
    place = np.stack([time + 0.1 * phase, 0.8 * phase + 0.2 * np.sin(2 * time + phase)], axis=-1)
    place[:20, -1] = np.nan
    return place


@pytest.fixture(scope="module")
def table():
    rows = ["frame,id,x,y"]
    rows += [f"{k},{i},{x:.6f},{y:.6f}" for k, frame in enumerate(positions()) for i, (x, y) in enumerate(frame)
             if np.isfinite(x)]  # fmt: skip
    return "\n".join(rows).encode()


@pytest.fixture(autouse=True)
def quick_fit(monkeypatch):
    """What a fit finds is tested elsewhere: here it finds at once what is wanted."""
    fit = SimpleNamespace(theta={name: np.asarray(value) for name, value in THETA.items()}, decisions=50)
    monkeypatch.setattr(page, "answer", lambda *_: SimpleNamespace(fit=fit, sentence=SENTENCE))


def until(live, stage):
    for _ in range(500):
        live, shown = FLOCK.frame(live)
        if shown.header["stage"] == stage:
            return live, shown
        time.sleep(0.01)  # the fit has a thread of its own
    raise AssertionError(f"it never came to {stage}")


def test_a_file_is_played_beside_a_group_that_starts_where_it_is(table):
    live = FLOCK.act(FLOCK.begin(), {"file": Upload("five.csv", table)})
    live, shown = FLOCK.frame(live)
    assert shown.header["stage"] == "fault"
    assert "set Frame rate" in shown.header["fault"]
    assert FLOCK.settled(live)
    live, shown = until(FLOCK.change(live, {"rate": RATE, "follow": 1.0, "smooth": 0.2}), "playing")
    started = shown.header["time"]
    assert started == pytest.approx(shown.header["since"])
    assert (shown.header["present"], shown.header["sentence"]) == (4, SENTENCE)
    begun = live.file.begun
    data = live.file.motion.trials[0]
    np.testing.assert_allclose(begun.group.position[0, : begun.there], data.position[0, :4])
    for _ in range(31):
        live, shown = FLOCK.frame(live)
    assert shown.header["since"] < 0.2  # it has started again from the data
    assert shown.header["present"] == 5
    own = shown.arrays["weights"]
    np.testing.assert_allclose(own[np.isfinite(own[:, 0])].sum(axis=1), 1.0)
    exact = data.position[:, 0, 0]
    assert shown.arrays["position"][0, 0] == pytest.approx(np.interp(shown.header["time"] * RATE, range(FRAMES), exact))
    assert shown.header["gap"] <= 1e-10
    paused = FLOCK.change(live, {"playing": False})
    paused, _ = FLOCK.frame(paused)
    assert FLOCK.settled(paused)
    assert FLOCK.restart(live).file.time == 0
    back = FLOCK.act(live, {"boids": True})
    assert FLOCK.frame(back)[1].part == "flock"
    with pytest.raises(ValueError, match="use file or boids"):
        FLOCK.act(live, {"swim": True})


def test_the_page_answers_while_it_fits(table, monkeypatch):
    """A fit in the session's own thread let messages wait for minutes."""
    may_end, quick = threading.Event(), page.answer
    monkeypatch.setattr(page, "answer", lambda *given: (may_end.wait(60), quick(*given))[1])
    live = FLOCK.act(FLOCK.change(FLOCK.begin(), {"rate": RATE}), {"file": Upload("five.csv", table)})
    for _ in range(5):
        live, shown = FLOCK.frame(live)
        assert shown.header["stage"] == "fitting"
    live = FLOCK.change(live, {"follow": 2.0})
    assert live.file.fitting is not None
    may_end.set()
    until(live, "playing")


def test_a_fit_that_fails_is_said(table, monkeypatch):
    def fail(*given):
        raise ValueError("nothing can be fitted to this")

    monkeypatch.setattr(page, "answer", fail)
    live = FLOCK.act(FLOCK.change(FLOCK.begin(), {"rate": RATE}), {"file": Upload("five.csv", table)})
    with pytest.raises(ValueError, match="nothing can be fitted"):
        until(live, "playing")


def test_marked_individuals_come_from_an_address_too(table):
    live = FLOCK.change(FLOCK.begin(), {"rate": RATE, "predator": 4, "leave_out": "3"})
    live, shown = FLOCK.frame(FLOCK.act(live, {"file": Upload("five.csv", table)}))
    assert shown.header["names"][-1] == "predator"
    assert shown.arrays["member"].tolist() == [1, 1, 1, 0, 0]
    assert "predator='4'" in FLOCK.describe(live)["snippet"]
    live, shown = FLOCK.frame(FLOCK.change(live, {"predator": "wolf"}))
    assert "no individual 'wolf'" in shown.header["fault"]


@needs_browser
def test_the_page_plays_a_file_and_goes_back(visit, table, tmp_path):
    page = loaded(visit("flock?boids=12"), frames=1)
    page.set_viewport_size({"width": 390, "height": 800})
    broken, whole = tmp_path / "broken.csv", tmp_path / "five.csv"
    broken.write_text("frame,id,x,y\n1,2\n")
    whole.write_bytes(table)
    choose = page.locator('[data-slot="tracks-file"]')
    choose.set_input_files(broken)
    expect(page.locator('[data-slot="blame"]')).to_contain_text("line 2 has fewer cells")
    choose.set_input_files(whole)
    expect(page.locator('[data-slot="blame"]')).to_contain_text("set Frame rate")
    mends = page.locator('[data-slot="blamed"] input')  # the field stands beside the error, and has the focus
    expect(mends).to_be_focused()
    expect(mends).to_be_in_viewport()
    mends.fill(str(RATE))
    mends.press("Enter")
    expect(page.locator('[data-slot="answer"]')).to_have_text(SENTENCE)
    expect(page.locator('[data-slot="since"]')).to_contain_text("started where the data were")
    first = pixels(page, "simulated")
    page.wait_for_function("was => document.querySelector('[data-canvas=simulated]').toDataURL() !== was", arg=first)
    expect(page.locator('[data-slot="flock-part"]')).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_label("Leave out").fill("4")
    page.get_by_label("Leave out").press("Enter")
    page.wait_for_function("() => location.hash.includes('leave_out=4')")
    page.get_by_role("button", name="Back to the boids").click()
    expect(page.locator('[data-slot="flock-part"]')).to_be_visible()


def test_a_crowd_that_would_take_minutes_is_refused():
    file = io.BytesIO()
    np.save(file, np.random.default_rng(0).integers(-99, 99, (1000, 300, 2)).astype("i1"))
    said = page.open_file(Upload("crowd.npy", file.getvalue()), page.TracksView(rate=4.0)).fault
    assert "90,000,000 pairs of individuals" in said
    assert "Decisions farther apart" in said
