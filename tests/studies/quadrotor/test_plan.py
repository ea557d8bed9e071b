"""The study's work: all flights that are needed, none twice, in steps that can be done in any order."""

import pickle

import numpy as np
import pytest

from policychord.studies.quadrotor import plan
from policychord.studies.quadrotor.plan import disputed_at, flights_at, sweep_of
from policychord.studies.quadrotor.settings import QuadrotorSettings
from policychord.studies.quadrotor.simulate import BATCH, fly, roster
from policychord.studies.quadrotor.study import STUDY

TINY = QuadrotorSettings(seeds=4, steps=3, temperatures=(0.05, 0.5))


def legs_of(settings):
    return [leg for step in plan.work(settings).values() for leg in step.args[0]]


@pytest.mark.parametrize("quick", [True, False])
def test_every_flight_is_in_one_step(quick):
    settings = STUDY.settings(quick=quick)
    names = [f"{leg.place}: {leg.name}" for leg in legs_of(settings)]
    assert len(names) == len(set(names)) == 4 * len(roster(settings)) + 2 * len(settings.temperatures) + 8
    by_place = {leg.place: leg.settings.seeds for leg in legs_of(settings)}
    assert by_place["pd, stale-point"] == by_place["lqr, stale-point"] == settings.seeds
    assert by_place["pd, centre"] == min(settings.seeds, settings.control_seeds)


def test_what_shares_a_step_shares_a_program():
    for step in plan.work(STUDY.settings(quick=False)).values():
        legs = step.args[0]
        assert len({None if leg.how is None else (leg.how.gate, leg.how.selection) for leg in legs}) == 1
        assert len(legs) == 1 or sum(leg.decisions for leg in legs) <= plan.LONGEST
    assert len(plan.work(STUDY.settings(quick=True))) == 5


def test_disputed_numbers_are_flown_as_told():
    by_place = {leg.place: leg.settings for leg in legs_of(QuadrotorSettings())}
    assert by_place[plan.ACCELERATIONS].force_sd == pytest.approx(0.03 * 0.027)
    assert by_place[plan.ACCELERATIONS].disturbance == "centre"
    assert by_place[plan.SCRIPT_WEIGHT].lqr_stabilise.state == (1e-6, 0.05, 1e-6, 1e-5, 0.5, 0.1)


@pytest.fixture(scope="module")
def evidence():
    return {name: step() for name, step in plan.work(TINY).items()}


def test_flights_are_found_again(evidence):
    for world in ("stale-point", "centre"):
        for experiment in ("pd", "lqr"):
            assert list(flights_at(TINY, evidence, experiment, world)) == list(roster(TINY))
    assert list(sweep_of(TINY, evidence).cost_to_go) == list(TINY.temperatures)
    assert list(disputed_at(evidence, plan.SCRIPT_WEIGHT)) == list(plan.DISPUTED)
    there = TINY.model_copy(update={"disturbance": "centre"})
    alone = fly(there, "lqr", "cost-to-go", roster(TINY)["cost-to-go"])
    np.testing.assert_array_equal(alone.cost, flights_at(TINY, evidence, "lqr", "centre")["cost-to-go"].cost)


def test_steps_give_the_same_in_any_order(evidence):
    """To the last bit, and through a file."""
    steps = dict(reversed(plan.work(TINY).items()))
    again = {name: step() for name, step in steps.items()}
    kept = pickle.loads(pickle.dumps(evidence))
    for name, found in kept.items():
        for where, flights in found.items():
            for who, flight in flights.items():
                for ours, theirs in zip(flight, again[name][where][who], strict=True):
                    np.testing.assert_array_equal(ours, theirs)


def test_batches_are_one_flight():
    """More seeds than a batch, and not a multiple: the same episodes as one by one, to rounding."""
    many = TINY.model_copy(update={"seeds": BATCH + 5})
    flight = fly(many, "pd", "baseline", None)
    assert flight.cost.shape == (BATCH + 5,)
    assert flight.distance.shape == (BATCH + 5, 4)
    assert len(flight.states) == 16
    few = fly(TINY, "pd", "baseline", None)
    np.testing.assert_allclose(flight.cost[:4], few.cost, rtol=1e-9)
    assert len(set(flight.cost.tolist())) == BATCH + 5
