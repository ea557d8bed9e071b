"""The plan of the study, its flights in groups and one by one, and the evidence that is made of them."""

from typing import Any

import jax
import numpy as np
import pydantic
import pytest

from policychord.runs import cache
from policychord.worlds.flock.flights import fly_together, simulate_flock
from policychord.worlds.flock.settings import scenario
from policychord_paper.flock.experiments import (
    NAMES,
    TEMPERATURES,
    FlockStudySettings,
    _groups,
    _plan,
    by_name,
    experiments,
    gather,
    study_settings,
)

from .flights import made

SMALL: dict[str, Any] = {"boids": 7, "steps": 12, "seeds": 2}
GROUPS = {
    "composed": [
        scenario("leaders", **SMALL | {"leaders": 2, "steps": 8, "seeds": 1}),
        scenario("temperature", **SMALL | {"leaders": 7, "eps": 3.0}),
        scenario("polarization", "fixed-weights", **SMALL),
    ],
    "milling": [
        scenario("milling", **SMALL | {"start_size": 2.5}),
        scenario("milling", start="square", **SMALL | {"start_size": 1.0}),
    ],
    "couzin": [
        scenario("couzin", form=form, **SMALL | {"leaders": leaders})
        for form, leaders in (("released", 3), ("original", 0))
    ],
}


@pytest.mark.parametrize(
    "group",
    [pytest.param(g, id=name, marks=[pytest.mark.thorough] * (name != "composed")) for name, g in GROUPS.items()],
)
def test_together_as_one_by_one(group):
    for flight, trace in zip(group, fly_together(group), strict=True):
        alone = simulate_flock(flight)
        np.testing.assert_allclose(trace.state.position, alone.state.position, atol=1e-9)
        np.testing.assert_allclose(trace.final_state.velocity, alone.final_state.velocity, atol=1e-9)
        np.testing.assert_allclose(trace.weights, alone.weights, atol=1e-6)  # fixed weights are hot ones here
        assert trace.action.shape == alone.action.shape
        assert trace.gap.shape == alone.gap.shape
        assert trace.converged.all()


def test_flights_of_another_kind_are_refused():
    with pytest.raises(ValueError, match="one by one"):
        fly_together([scenario("polarization", **SMALL), scenario("polarization", **SMALL | {"boids": 6})])
    with pytest.raises(ValueError, match="one by one"):
        fly_together([scenario("polarization", **SMALL), scenario("polarization", update="sequential", **SMALL)])


# ------------------------------------------------------------------------------------ the study


@pytest.mark.parametrize("quick", [True, False])
def test_the_plan_says_what_is_flown(quick):
    settings = study_settings(quick=quick, seed=3)
    flocks = _plan(settings)
    assert [flight.leaders for flight in flocks.leaders] == [0, 4, 8, 40]
    assert flocks.leaderless.gated.seeds >= 8  # the rule of F1
    assert (flocks.leaderless.gated.start, flocks.leaderless.gated.fixed_weights) == ("square", False)
    assert flocks.leaderless.fixed.fixed_weights
    assert [(one.start, one.collision_term) for one in flocks.milling] == [
        ("ring", True), ("ring", False), ("square", True), ("square", False),
    ]  # fmt: skip
    assert tuple(flight.eps for flight in flocks.temperatures) == TEMPERATURES
    assert {flight.seeds for flight in flocks.temperatures} == {2 if quick else 30}
    for name in ("couzin", "cucker_smale", "vicsek"):
        for form, pair in getattr(flocks, name)._asdict().items():
            assert [(one.followers.replace("-", "_"), one.form, one.leaders) for one in pair] == [
                (name, form, 6), (name, form, 0),
            ]  # fmt: skip
    for at_once, in_turn in zip(flocks, flocks.in_turn, strict=False):
        for one, other in zip(at_once, in_turn, strict=True):
            assert other == one.model_copy(update={"update": "sequential"})
    every = jax.tree_util.tree_leaves(flocks)
    assert len(every) == len(set(NAMES)) == 41
    assert {flight.seed for flight in every} == {3}


@pytest.mark.parametrize("seeds", [2, 30])
def test_the_evidence_does_not_show_how_flights_were_grouped(seeds):
    """Whether the temperatures are one step or three, every result comes to its place."""
    settings = FlockStudySettings(temperature_seeds=seeds)
    plan = _plan(settings)
    planned = jax.tree_util.tree_leaves(plan)
    groups = _groups(settings, plan)
    assert sorted(id(one) for group in groups.values() for one in group) == sorted(map(id, planned))
    assert list(experiments(settings)) == list(groups)
    number = {id(flight): k for k, flight in enumerate(planned)}
    results = {
        name: [(made().measured._replace(largest_gap=float(number[id(one)])), made().shown) for one in group]
        for name, group in groups.items()
    }
    evidence = gather(settings, results)
    flights = by_name(evidence)
    assert list(flights) == list(NAMES)
    assert [flight.measured.largest_gap for flight in flights.values()] == list(range(41))
    assert [flight.settings for flight in flights.values()] == planned
    assert flights["temperature-10"] is evidence.temperatures.hot
    assert flights["leaders-10"] is evidence.leaders.tenth
    assert flights["polarization-fixed-weights"] is evidence.leaderless.fixed
    assert flights["cucker-smale-original-no-leaders"] is evidence.cucker_smale.original[1]


def test_a_step_gives_plain_data(tmp_path):
    tiny = FlockStudySettings(seeds=1, goal_seeds=1, temperature_seeds=2, shorten=0.004)
    results = experiments(tiny)["Vicsek followers"]()
    assert [measured.leader_sd.shape for measured, _ in results] == [(1, 6), (1, 0)] * 2
    cache.save_result(tmp_path / "step.npz", "Vicsek followers", cache.Result(results, 1.0))
    again = cache.load_result(tmp_path / "step.npz").value
    np.testing.assert_array_equal(again[2][0].goal_distance, results[2][0].goal_distance)
    np.testing.assert_array_equal(again[0][1].weights, results[0][1].weights)
    assert again[0][1].labels == results[0][1].labels


@pytest.mark.parametrize("given", [{"temperature_seeds": 1}, {"seeds": 0}, {"shorten": 0.0}, {"seedz": 3}])
def test_sizes_that_cannot_be_judged_are_refused_before_the_work(given):
    with pytest.raises(pydantic.ValidationError):
        FlockStudySettings(**given)
