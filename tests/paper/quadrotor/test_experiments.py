"""The study's work: all flights that are needed, none twice, in steps that can be done in any order."""

import pickle

import jax
import numpy as np
import pytest

from policychord.worlds.quadrotor.agents import roster
from policychord.worlds.quadrotor.flights import BATCH, Flight, fly_controller, program  # fmt: skip
from policychord.worlds.quadrotor.settings import QuadrotorSettings
from policychord_paper.quadrotor.experiments import (
    CLAMPED,
    DISPUTED,
    LONGEST,
    PUSHED,
    TWICE,
    _FlightKey,
    _plan,
    experiments,
    gather,
)
from policychord_paper.quadrotor.report import STUDY

TINY = QuadrotorSettings(seeds=4, steps=3, temperatures=(0.05, 0.5))


def legs_of(settings):
    return [leg for legs in _plan(settings).values() for leg in legs]


@pytest.mark.parametrize("quick", [True, False])
def test_every_flight_is_in_one_step(quick):
    settings = STUDY.settings(quick=quick)
    keys = [leg.key for leg in legs_of(settings)]
    flown = (
        4 * len(roster(settings)) + 2 * len(settings.temperatures) + 3 * len(DISPUTED) + len(PUSHED) + len(TWICE) + 4
    )
    assert len(keys) == len(set(keys)) == flown
    seeds = {leg.key: leg.settings.seeds for leg in legs_of(settings)}
    assert seeds[_FlightKey("stale-point", "pd", "track")] == settings.seeds
    assert seeds[_FlightKey("stale-point", "lqr", "track")] == settings.seeds
    assert seeds[_FlightKey("accelerations", "lqr", "equilibrium, sample")] == settings.seeds  # judged there too
    fewer = min(settings.seeds, settings.control_seeds)
    assert seeds[_FlightKey("centre", "pd", "track")] == seeds[_FlightKey("cost-to-go", "pd", eps=0.05)] == fewer


def test_what_shares_a_step_shares_a_program():
    for legs in _plan(STUDY.settings(quick=False)).values():
        assert len({program(leg.how) for leg in legs}) == 1
        assert len(legs) == 1 or sum(leg.decisions for leg in legs) <= LONGEST
    assert len(_plan(STUDY.settings(quick=True))) == 5


def test_disputed_numbers_are_flown_as_told():
    settings = {leg.key.series: leg.settings for leg in legs_of(QuadrotorSettings())}
    assert settings["accelerations"].force_sd == pytest.approx(0.03 * 0.027)
    assert settings["accelerations"].impulse == QuadrotorSettings().impulse  # a force in every reading that is judged
    assert settings["weak push"].impulse == pytest.approx(0.027 * QuadrotorSettings().impulse)
    assert settings["accelerations"].disturbance == "centre"
    assert settings["script's weight"].lqr_stabilise.state == (1e-6, 0.05, 1e-6, 1e-5, 0.5, 0.1)


@pytest.fixture(scope="module")
def results():
    return {name: step() for name, step in experiments(TINY).items()}


def test_flights_are_found_again(results):
    evidence = gather(TINY, results)
    for pairs in (evidence.stale_point, evidence.centre):
        for flights in pairs:
            assert list(flights) == list(roster(TINY))
    assert [list(flights) for flights in evidence.accelerations] == [list(DISPUTED)] * 2
    assert list(evidence.one_step) == list(evidence.cost_to_go) == list(TINY.temperatures)
    assert list(evidence.script_weight) == list(DISPUTED)
    there = TINY.model_copy(update={"disturbance": "centre"})
    alone = fly_controller(there, "lqr", "cost-to-go", roster(TINY)["cost-to-go"])
    np.testing.assert_array_equal(alone.cost, evidence.centre.lqr["cost-to-go"].cost)


def test_temperatures_that_look_alike_in_print_are_two():
    near = TINY.model_copy(update={"temperatures": (0.05, 0.05 + 1e-9)})
    marks = {step: [np.array(leg.key.eps) for leg in legs] for step, legs in _plan(near).items()}
    marks |= {step: dict(readings) for step, readings in CLAMPED.items()}
    assert list(gather(near, marks).one_step.values()) == list(near.temperatures)


def test_steps_give_the_same_in_any_order(results):
    """To the last bit, and through a file."""
    again = {name: step() for name, step in reversed(experiments(TINY).items())}
    assert all(type(flight) is Flight for step in _plan(TINY) for flight in results[step])
    jax.tree.map(np.testing.assert_array_equal, pickle.loads(pickle.dumps(results)), again)


def test_batches_are_one_flight():
    """More seeds than a batch, and not a multiple: the same episodes as one by one, to rounding."""
    many = TINY.model_copy(update={"seeds": BATCH + 5})
    flight = fly_controller(many, "pd", "baseline", None)
    assert flight.cost.shape == (BATCH + 5,)
    assert flight.distance.shape == (BATCH + 5, 4)
    assert len(flight.states) == 16
    few = fly_controller(TINY, "pd", "baseline", None)
    np.testing.assert_allclose(flight.cost[:4], few.cost, rtol=1e-9)
    assert len(set(flight.cost.tolist())) == BATCH + 5
