"""A policy as a reference, and several demands at once."""

import jax.numpy as jnp
import numpy as np
import pytest

from policychord.actions import Finite, Grid
from policychord.models import Cost, Reference, Scaled, Sum, action_cost
from policychord.primitives import Categorical, Gaussian, Table

LABELS = Finite(3)


def test_reference_is_minus_the_logarithm():
    parts = Reference(Table([0.2, 0.3, 0.5])).terms(LABELS, None, 0)
    assert set(parts) == {"reference"}
    np.testing.assert_allclose(parts["reference"], -np.log([0.2, 0.3, 0.5]), rtol=1e-15)


def test_reference_follows_state_and_time():
    reference = Reference(Categorical(lambda x, k: jnp.array([0.0, x, 1.0 * k])))
    logits = np.array([0.0, 0.7, 2.0])
    np.testing.assert_allclose(
        action_cost(reference, LABELS, 0.7, 2), np.log(np.exp(logits).sum()) - logits, rtol=1e-14
    )


@pytest.mark.parametrize("floor", [1e-300, 1e-3])
def test_what_the_reference_never_does_costs_the_floor(floor):
    found = action_cost(Reference(Table([0.999, 0.001, 0.0]), floor), LABELS, None, 0)
    np.testing.assert_allclose(found, -np.log([0.999, 0.001, floor]), rtol=1e-13)


def test_far_tails_stay_finite():
    found = action_cost(Reference(Gaussian(0.0, 1e-3)), Grid(-1.0, 1.0, 9), None, 0)
    assert np.isfinite(found).all()
    assert np.max(found) == pytest.approx(-np.log(1e-300))


def test_a_sum_names_its_parts_and_adds_them():
    goal = Cost([1.0, 2.0, 3.0])
    both = Sum(goal=goal, habit=Reference(Table([0.2, 0.3, 0.5])), all=Sum(again=goal))
    parts = both.terms(LABELS, None, 0)
    assert list(parts) == ["goal.action", "habit.reference", "all.again.action"]
    expected = 2 * np.array([1.0, 2.0, 3.0]) - np.log([0.2, 0.3, 0.5])
    np.testing.assert_allclose(action_cost(both, LABELS, None, 0), expected, rtol=1e-15)


def test_a_scaled_model_costs_so_many_times_as_much():
    many = Scaled(Cost([1.0, 2.0, 3.0]), 5.0)
    assert {name: cost.tolist() for name, cost in many.terms(LABELS, None, 0).items()} == {"action": [5.0, 10.0, 15.0]}


COMPLAINTS = {
    "no policy": (lambda: Reference(np.ones(3)), "policy is a ndarray: pass a primitive"),
    "floor": (lambda: Reference(Table([1.0]), floor=0.0), "floor = 0.0: a probability between 0 and 1"),
    "nan floor": (lambda: Reference(Table([1.0]), floor=np.nan), "floor = nan"),
    "empty sum": (lambda: Sum(), "a sum needs at least one model"),
    "no factor": (lambda: Scaled(Cost([1.0]), -1.0), "factor = -1.0: pass a number of at least 0"),
    "nothing scaled": (lambda: Scaled(Table([1.0]), 2.0), "model is a Table: pass a generative model"),
    "no model": (lambda: Sum(goal=Table([1.0])), "goal is a Table: pass generative models"),
}


@pytest.mark.parametrize("name", COMPLAINTS)
@pytest.mark.usefixtures("without_type_checks")
def test_complaints_name_the_argument(name):
    make, message = COMPLAINTS[name]
    with pytest.raises(ValueError, match=message):
        make()
