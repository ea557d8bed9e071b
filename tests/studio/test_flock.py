"""The live flock is the study's flock: the same boids, the same chance, the same weights."""

import numpy as np
import pytest

from policychord.studio.pages import flock as page
from policychord.studio.pages.flock import FLOCK, FlockSettings
from policychord.worlds.flock import measures
from policychord.worlds.flock.flights import simulate_flock
from policychord.worlds.flock.settings import SCENARIOS, scenario


def flight(steps, **changes):
    live = FLOCK.change(FLOCK.begin(), changes)
    for _ in range(steps):
        live = page._fly_on(live)
    return live


def test_it_flies_as_the_study_flies():
    name = "vicsek"  # in turn, leaders composed, others by a rule; the snippet's test is for all composed, at once
    live = flight(5, scenario=name, boids=12, leaders=2)
    trace = simulate_flock(scenario(name, boids=12, leaders=2, steps=6), episodes=[0])
    np.testing.assert_allclose(live.carry.state.position, trace.state.position[0, 5], atol=1e-9)
    np.testing.assert_allclose(live.weights, trace.weights[0, 4], atol=1e-6)


def test_pace_skips_pictures_not_steps():
    slow, fast = flight(6, boids=12), flight(2, boids=12, pace=3)
    assert slow.k == fast.k == 6
    np.testing.assert_allclose(slow.carry.state.position, fast.carry.state.position, atol=1e-12)


def test_numbers_change_in_flight_without_a_new_program():
    live = flight(2, scenario="leaders", boids=12, leaders=2)
    compiled = page._advance._cached._cache_size()
    live = FLOCK.change(live, {"eps": 3.0, "cohesion_radius": 9.0, "vision_angle": 200.0, "leaders": 3})
    assert live.k == 2
    live = page._fly_on(live)
    assert page._advance._cached._cache_size() == compiled
    assert live.k == 3
    assert FLOCK.change(live, {"seed": 4}).k == 0  # another start


def test_the_picture_shows_the_moment():
    live = flight(3, boids=12, selected=99)
    shown = page._picture(live)
    p, v = (np.asarray(a)[None, None] for a in live.carry.state)
    assert shown.header["polarization"] == measures.polarization(v)[0, 0]
    assert shown.header["milling"] == measures.milling(p, v)[0, 0]
    assert shown.header["selected"] == 11
    assert shown.header["gap"] <= 1e-10
    np.testing.assert_allclose(shown.arrays["weights"].sum(axis=1), 1.0)


def test_a_flock_that_stands_still_is_drawn_once():
    live = FLOCK.change(FLOCK.begin(), {"playing": False, "boids": 8})
    assert not FLOCK.settled(live)
    live, _ = FLOCK.frame(live)
    assert FLOCK.settled(live)
    assert live.k == 0
    assert not FLOCK.settled(FLOCK.change(live, {"selected": 3}))


def test_a_scenario_brings_its_numbers():
    live = FLOCK.change(FLOCK.begin(), {"eps": 2.0})
    live = FLOCK.change(live, {"scenario": "milling"})
    assert live.settings == scenario("milling")
    told = FLOCK.describe(live)
    assert told["defaults"]["boids"] == 60
    assert told["settings"]["scenario"] == "milling"


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_can_be_chosen(name):
    assert FLOCK.change(FLOCK.begin(), {"scenario": name, "boids": 8}).settings.boids == 8


def test_the_snippet_runs_and_says_the_same(capsys):
    live = flight(4, scenario="leaders", boids=12, eps=0.3)
    found: dict = {}
    exec(page._snippet(live), found)
    np.testing.assert_allclose(found["trace"].final_state.position[0], live.carry.state.position, atol=1e-9)
    assert "polarization" in capsys.readouterr().out


def test_every_control_has_words_and_holds_the_papers_value():
    for control in FLOCK.inputs():
        assert control["description"]
        if control["kind"] == "range" and control["name"] in FlockSettings.model_fields:
            for name in SCENARIOS:
                assert control["low"] <= getattr(scenario(name), control["name"]) <= control["high"]
