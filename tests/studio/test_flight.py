"""A flight of the page is an episode of the study, until it is pushed; then it is the same for all."""

import math
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord.loops import streams_of
from policychord.studio.pages.flight import FLIGHT, flying, page
from policychord.studio.pages.flight.flying import Push
from policychord.studio.pages.flight.page import INPUTS, _gusts, _reach, _record
from policychord.studio.session import FRAMES_PER_SECOND
from policychord.worlds.quadrotor.agents import agent_and_world, roster
from policychord.worlds.quadrotor.flights import fly_episodes
from policychord.worlds.quadrotor.physics import HOVER
from policychord.worlds.quadrotor.settings import QuadrotorSettings

STEPS, EPISODE = 60, 3
CREW = {"baseline": True, "stabilise": False, "track": False}  # with the composed drone and the fixed mixture


@pytest.fixture(scope="module")
def shown():
    """A short flight of the LQR pair, which meets an impulse, shown to its end."""
    return to_the_end(FLIGHT.change(FLIGHT.begin(), {"experiment": "lqr", "steps": STEPS, "flight": EPISODE, **CREW}))


def at(live, moment, **more):
    live = FLIGHT.act(live, {"moment": moment, **more})
    while not (live.drawn and live.sent == (live.edition, _reach(live))):
        live, _ = FLIGHT.frame(live)
    return live


def to_the_end(live):
    return at(live, 1000.0)


def states(live):
    return _record(live).arrays["states"]


def test_it_flies_as_the_study_flies(shown):
    settings = shown.settings
    assert settings.steps == STEPS
    recorded = _record(shown)
    assert 0 <= recorded.header["impulse"] < STEPS
    for i, (name, how) in enumerate(page._crew(settings, shown.view).items()):
        agent, env = agent_and_world(settings, "lqr", name, how)
        there = fly_episodes(settings, agent, env, [EPISODE])
        np.testing.assert_allclose(recorded.arrays["states"][i], there.states[0], atol=1e-6)
        np.testing.assert_allclose(recorded.arrays["weight"][i], there.stabilising[0], atol=1e-6)
        np.testing.assert_allclose(recorded.arrays["distance"][i], there.distance[0], atol=1e-6)
        assert recorded.arrays["cost"][i, -1] == pytest.approx(there.cost[0], rel=1e-6)
        assert recorded.header["impulse"] == there.impulse_time[0]
    assert recorded.arrays["gap"][0].max() <= 1e-10
    assert np.isnan(recorded.arrays["gap"][1:]).all()  # weights that are fixed solve no problem


def test_the_snippet_runs_and_says_the_same(shown, capsys):
    found: dict = {}
    exec(page._snippet(shown), found)
    np.testing.assert_allclose(list(found["costs"].values()), _record(shown).arrays["cost"][:, -1], rtol=1e-6)
    assert "baseline" in capsys.readouterr().out


def test_a_push_hits_all_at_once_and_can_be_forgotten(shown):
    before, compiled = states(shown), flying._bout._cached._cache_size()
    live = to_the_end(at(shown, 0.5, push=[0.6, -0.8]))
    after = states(live)
    np.testing.assert_array_equal(after[:, :25], before[:, :25])
    jump = after[:, 25] - before[:, 25]
    np.testing.assert_allclose(jump, np.tile([0, 0.6, 0, -0.8, 0, 0], (3, 1)), atol=1e-12)
    assert np.abs(after[:, 40, 0] - before[:, 40, 0]).min() > 0.01
    assert flying._bout._cached._cache_size() == compiled
    assert FLIGHT.describe(live)["settings"]["pushes"] == "25*0.6*-0.8"
    # the link holds it, and forgetting it gives the study's flight again
    linked = FLIGHT.change(shown, {"pushes": "25*0.6*-0.8"})
    np.testing.assert_array_equal(states(to_the_end(linked)), after)
    np.testing.assert_array_equal(states(to_the_end(FLIGHT.act(live, {"forget": True}))), before)
    found: dict = {}
    exec(page._snippet(live), found)
    np.testing.assert_allclose(list(found["costs"].values()), _record(live).arrays["cost"][:, -1], rtol=1e-9)


def test_looking_back_changes_nothing(shown):
    back = at(shown, 0.3)
    assert back.moment == 0.3
    np.testing.assert_array_equal(states(back), states(shown))
    assert to_the_end(back).edition == shown.edition
    paused = FLIGHT.change(back, {"playing": False})
    paused, _ = FLIGHT.frame(paused)
    assert FLIGHT.settled(paused)
    assert paused.moment == 0.3
    on, _ = FLIGHT.frame(FLIGHT.frame(FLIGHT.change(paused, {"playing": True}))[0])
    assert on.moment == pytest.approx(0.3 + 1 / FRAMES_PER_SECOND)
    turned, _ = FLIGHT.frame(FLIGHT.change(on, {"turn": 40.0}))
    assert turned.moment == pytest.approx(0.3 + 2 / FRAMES_PER_SECOND)  # time goes on while the view turns


def test_at_the_end_it_rests_and_plays_again(shown):
    assert FLIGHT.settled(shown)
    assert FLIGHT.change(shown, {"playing": True}).moment == 0.0
    pushed = at(shown, 0.5, push=[1.0, 0.0])
    again = FLIGHT.restart(pushed)
    assert again.moment == 0.0
    assert again.pushes == pushed.pushes  # a replay has them too
    with pytest.raises(ValueError, match="flight is over"):
        FLIGHT.act(shown, {"push": [1.0, 0.0]})


def test_numbers_change_in_flight_without_a_new_program(shown):
    compiled = flying._bout._cached._cache_size()
    changes = {"eps": 3.0, "force_sd": 0.01, "experiment": "pd", "path": "circle", "steps": 55, "disturbance": "centre"}
    live = to_the_end(FLIGHT.change(at(shown, 0.5), changes | {"horizon": "one-step", "seed": 4}))
    assert flying._bout._cached._cache_size() == compiled
    assert live.moment == pytest.approx(1.1)
    assert states(live).shape == (3, 56, 6)


def test_who_is_unchanged_is_not_flown_again(shown):
    live = FLIGHT.change(shown, {"eps": 0.5, "mixture": False})
    assert [drone.name for drone in live.drones] == ["composed", "baseline"]
    assert not live.drones[0].bouts
    assert live.drones[1] is shown.drones[2]
    assert live.moment == shown.moment
    with pytest.raises(ValueError, match="no drone flies"):
        FLIGHT.change(live, {"composed": False, "baseline": False})


def test_another_flight_begins_at_its_start_without_pushes(shown):
    pushed = at(shown, 0.5, push=[1.0, 0.0])
    other = FLIGHT.change(pushed, {"flight": 4})
    assert (other.moment, other.pushes) == (0.0, ())
    assert FLIGHT.change(pushed, {"flight": 4, "pushes": "7*1*0"}).pushes == (Push(7, 1.0, 0.0),)


def test_gusts_are_those_of_the_world():
    settings = QuadrotorSettings(thrust_sd=0.0, steps=2)  # so the impulse comes at once, or right after
    env = flying.launch(settings, "lqr", "baseline", None, EPISODE).env
    wind = _gusts(env, jnp.asarray(0), jnp.asarray(EPISODE))
    streams = streams_of(jax.random.key(0), EPISODE)
    state, hover = env.reset(streams.start), jnp.full(2, HOVER)

    @jax.jit
    def both(state, k):
        key = jax.random.fold_in(streams.environment, k)
        return env.step(key, state, hover, k).state, env.move(state, hover, wind[k])

    for k in range(3):
        state, blown = both(state, jnp.asarray(k))
        np.testing.assert_allclose(blown.velocity, state.velocity, atol=1e-12)
    assert np.abs(np.asarray(wind[:2])).max() > 0.8


def test_a_scenario_brings_its_numbers(shown):
    live = FLIGHT.change(FLIGHT.change(shown, {"eps": 2.0}), {"scenario": "one-step gate"})
    assert live.settings.composition == roster(QuadrotorSettings())["one-step gate"]
    told = FLIGHT.describe(live)
    assert told["defaults"]["gate"] == told["settings"]["gate"] == "one-step"
    assert set(told["settings"]) == set(told["defaults"]) == {control.name for control in INPUTS} | {"pushes"}
    assert "CompositionSettings(gate='one-step', selection='mean', margin=0.04)" in page._snippet(live)


def test_the_page_answers_while_programs_compile(monkeypatch):
    may_end = threading.Event()
    monkeypatch.setattr(page, "_compile", lambda *_: may_end.wait(60))
    live, first = FLIGHT.frame(FLIGHT.begin())
    assert first.header["computing"] == ["flight"]
    live, nothing = FLIGHT.frame(FLIGHT.change(live, {"turn": 40.0}))
    assert nothing is None
    assert live.view.turn == 40.0
    assert not any(drone.bouts for drone in live.drones)
    may_end.set()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"push": [1.0]}, "two velocities"),
        ({"push": [1.0, "far"]}, "push z = far"),
        ({"push": [30.0, 0.0]}, "at most 4 m/s"),
        ({"push": [True, 0.0]}, "push x = True"),
        ({"moment": "soon"}, "moment = soon"),
        ({"moment": math.nan}, "moment = nan"),
        ({"moment": 10**400}, "moment = 1000"),
        ({"push": [10**400, 0.0]}, "push x = 1000"),
        ({"push": [0.0, math.inf]}, "push z = inf"),
        ({"shout": 1}, "moment, push or forget"),
    ],
)
def test_a_wrong_act_is_named(given, said):
    with pytest.raises(ValueError, match=said):
        FLIGHT.act(FLIGHT.begin(), given)


def test_pushes_in_an_address():
    some = (Push(0, -1.25, 0.5), Push(130, 0.0, 1.2))
    assert page._write_pushes(some) == "0*-1.25*0.5_130*0*1.2"
    assert page._read_pushes(page._write_pushes(some)) == some
    assert page._read_pushes("") == ()
    assert page._where_they_part(some, some[1:]) == 0
    assert page._where_they_part(some, (*some, some[1])) == 130  # the same push twice is twice as strong
    assert flying._kicks((*some, some[1]), 200)[130].tolist() == [0.0, 2.4]
    for wrong in ("x", "1*2", "5*9*9", "1*nan*0", 7, "_".join(["1*1*1"] * 41)):
        with pytest.raises(ValueError, match="push"):
            page._read_pushes(wrong)


def test_every_input_has_a_description_and_holds_its_own_value():
    defaults = FLIGHT.describe(FLIGHT.begin())["defaults"]
    for item in FLIGHT.inputs():
        assert len(item["description"]) > len(item["label"])
        if item["kind"] == "range":
            assert item["low"] <= defaults[item["name"]] <= item["high"]
