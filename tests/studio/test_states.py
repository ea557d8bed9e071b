"""A result is shown only next to the settings it was computed from, whatever is changed meanwhile."""

import threading

import pandas as pd
import pytest
from playwright.sync_api import expect

from policychord.choices.data import as_table
from policychord.choices.simulate import synthetic
from policychord.studio.jobs import Job, StoppedError, pursue
from policychord.studio.pages import gate
from policychord.studio.pages.choices import CHOICES, page
from policychord.studio.pages.gate import GATE, _GateSettings
from policychord.studio.uploads import Upload
from tests.cli.command import here

from .browsing import loaded, needs_browser
from .serving import wait_until

__all__ = ["here"]

# In every picture: what the inputs show, and the weights and the proof that can be seen.
RECORD = """() => { window.seen = [];
  const visible = (node) => getComputedStyle(node).visibility === 'visible' && node.textContent !== '';
  const look = () => {
    const proof = document.querySelector('[data-slot=proof]');
    const bars = [...document.querySelectorAll('[data-slot=bars] output')];
    window.seen.push({ regulariser: document.querySelector('#control-regulariser').value,
      eps: document.querySelector('#control-eps').value, proof: visible(proof) ? proof.textContent : null,
      weights: visible(bars[0]) ? bars.map((bar) => Number(bar.textContent)) : null });
    requestAnimationFrame(look); };
  look(); }"""


@needs_browser
def test_no_picture_shows_a_proof_of_other_settings(visit):
    page = loaded(visit("gate?eps=0.3"))
    expect(page.locator('[data-panel="circuit"]')).to_have_attribute("data-state", "current")
    page.evaluate(RECORD)
    regulariser, eps = page.get_by_label("Regulariser", exact=True), page.locator("#control-eps")
    for _ in range(3):
        regulariser.select_option("Tsallis")
        regulariser.select_option("entropy")
        regulariser.select_option("Tsallis")
        eps.evaluate("node => { node.value = '2'; node.dispatchEvent(new Event('change')); }")
        regulariser.select_option("entropy")
        eps.evaluate("node => { node.value = '0.3'; node.dispatchEvent(new Event('change')); }")
        regulariser.select_option("Tsallis")
    expect(page.locator('[data-panel="circuit"]')).to_have_attribute("data-state", "current")
    seen = page.evaluate("window.seen")
    proved = [one for one in seen if one["weights"]]
    assert len(proved) > 5
    assert any(one["weights"] is None for one in seen)  # there were pictures in between
    for one in seen:
        assert (one["proof"] is None) == (one["weights"] is None)
    for regulariser, eps in {(one["regulariser"], one["eps"]) for one in proved}:
        shown = gate._equilibrium_frame(_GateSettings(regulariser=regulariser, eps=float(eps))).arrays["weights"]
        for one in proved:
            if (one["regulariser"], one["eps"]) == (regulariser, eps):
                assert one["weights"] == pytest.approx(shown.tolist(), abs=1e-4), one


@needs_browser
def test_an_input_that_does_nothing_cannot_be_moved(visit):
    page = loaded(visit("gate"))
    expect(page.locator("#control-alpha")).to_be_disabled()
    page.get_by_label("Regulariser", exact=True).select_option("Tsallis")
    expect(page.locator("#control-alpha")).to_be_enabled()


@needs_browser
def test_what_fails_says_so_in_its_panel(visit, monkeypatch):
    page = loaded(visit("gate"))
    answer = page.locator('section[data-panel="gate"]')
    expect(answer).to_have_attribute("data-state", "current")
    monkeypatch.setattr(gate, "solve", lambda *_: (_ for _ in ()).throw(ValueError("no optimum: raise eps")))
    page.locator("#control-eps").fill("3")
    page.locator("#control-eps").press("Enter")
    expect(answer).to_have_attribute("data-state", "failed")
    expect(answer.locator(".state")).to_have_text("no optimum: raise eps")
    expect(page.locator('[data-slot="proof"]')).to_be_hidden()


def test_settings_change_while_a_part_is_computed(monkeypatch):
    """The circuit's first program takes seconds to compile: the next setting must not wait for it."""
    may_end, circuit = threading.Event(), gate._circuit_frame
    monkeypatch.setattr(gate, "_circuit_frame", lambda watch, one: (may_end.wait(60), circuit(watch, one))[1])
    state, frames = GATE.begin(), []
    while state.left != ("circuit",):
        state, frame = GATE.frame(state)
        frames.append(frame)
    state, nothing = GATE.frame(state)
    assert nothing is None
    state, frame = GATE.frame(GATE.change(state, {"eps": 2.0}))
    assert (frame.part, frame.header["of"]["eps"]) == ("gate", 2.0)
    may_end.set()
    while not GATE.settled(state):
        state, frame = GATE.frame(state)
    assert (frame.part, frame.header["of"]["eps"]) == ("circuit", 2.0)


def test_a_job_that_nobody_waits_for_stops_at_its_next_step():
    began, go_on, steps = threading.Event(), threading.Event(), []

    def work(watch, name):
        for step in range(3):
            watch(name, step, 3)
            steps.append((name, step))
            began.set()
            go_on.wait(60)
        return name

    job, ended = pursue(None, work, "first")
    assert not ended
    assert pursue(job, work, "first")[0] is job
    began.wait(60)
    assert job.progress == ("first", 0, 3)
    same, ended = pursue(job, work, "second")
    assert (same, ended) == (job, False)  # jobs do not pile up
    go_on.set()
    wait_until(job.ended)
    with pytest.raises(StoppedError):
        job.result()
    job, _ = pursue(job, work, "second")
    wait_until(job.ended)
    assert (job.result(), isinstance(job, Job)) == ("second", True)
    assert steps == [("first", 0), *(("second", step) for step in range(3))]


def fitted(state, until):
    """The state when a part was drawn, and the frames until then."""
    frames = []
    while not frames or frames[-1].part != until:
        state, frame = CHOICES.frame(state)
        frames += [] if frame is None else [frame]
    return state, frames


def test_fits_can_be_stopped_and_go_on(monkeypatch):
    """One model is fitted after another; between them a message is answered."""
    may_go_on, fit = threading.Event(), page.fit_next
    monkeypatch.setattr(page, "fit_next", lambda watch, fitting: (may_go_on.wait(60), fit(watch, fitting))[1])
    state = CHOICES.change(CHOICES.begin(), {"subjects": 4, "blocks": 2})
    state, _ = fitted(state, "progress")
    state, nothing = CHOICES.frame(state)
    assert nothing is None
    state, frames = fitted(CHOICES.act(state, {"cancel": True}), "progress")
    assert frames[-1].header["stopped"]
    assert CHOICES.settled(state)
    may_go_on.set()
    state, frames = fitted(CHOICES.act(state, {"cancel": False}), "group")
    assert frames[-1].header["of"]["subjects"] == 4
    assert state.analysis is not None


def test_a_table_is_measured_as_the_command_measures_it(tmp_path, here):
    """A table of Experiment 2 had other probabilities here (.274) than by `choices fit` (.268)."""
    path, out = tmp_path / "two.csv", tmp_path / "out"
    as_table(synthetic("2", 5, blocks=3, seed=1)).to_csv(path, index=False)
    assert here("choices", "fit", path, "--out", out, "--json").code == 0
    models = pd.read_csv(out / "models.csv")
    upload = Upload(path.name, path.read_bytes())
    _, frames = fitted(CHOICES.act(CHOICES.begin(), {"file": upload}), "group")
    shown = {model["name"]: model["pxp"] for model in frames[-1].header["models"]}
    column = next(name for name in models if name.lower() == "pxp")
    of_command = dict(zip(models.iloc[:, 0], models[column], strict=True))
    for name, pxp in shown.items():
        assert pxp == pytest.approx(of_command[name], abs=1e-4), name


@needs_browser
def test_on_a_phone_the_inputs_stand_beside_what_they_change(visit):
    page = visit("gate")
    page.set_viewport_size({"width": 390, "height": 844})
    loaded(page)
    expect(page.locator("#control-eps")).to_be_hidden()
    page.get_by_text("Controls", exact=True).click()
    page.locator('[data-slot="proof"]').evaluate("node => node.scrollIntoView({ block: 'start' })")
    page.mouse.wheel(0, -200)
    expect(page.locator("#control-eps")).to_be_in_viewport()
    expect(page.locator('[data-slot="bars"]')).to_be_in_viewport()
    before = page.locator('[data-slot="bars"] output').first.inner_text()
    page.locator("#control-eps").fill("5")
    page.locator("#control-eps").press("Enter")
    expect(page.locator('[data-slot="bars"] output').first).not_to_have_text(before)
