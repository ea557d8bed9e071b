"""Flights in one program are the flights one by one: same starts, same chance, same decisions."""

from typing import Any

import numpy as np
import pytest

from policychord.studies.flock.scenarios import scenario
from policychord.studies.flock.simulate import simulate
from policychord.studies.flock.together import fly_together

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
        alone = simulate(flight)
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
