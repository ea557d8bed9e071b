"""Costs of actions and of the states they lead to: every function gets the state, the action and the time it should."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord.actions import Finite, Grid
from policychord.models import Cost, action_cost

PUSHES = Grid([-1.0, -1.0], [1.0, 1.0], 3)
POINTS = np.asarray(PUSHES.points)
X = np.array([0.5, -0.25])
M = np.array([[2.0, 0.3], [0.3, 1.0]])


def moved(x, u, k):
    return x + u * (k + 1)


def test_numbers_for_actions():
    np.testing.assert_array_equal(action_cost(Cost([1, 2, 4]), Finite(3), None, 0), [1.0, 2.0, 4.0])


def test_a_function_of_state_action_and_time():
    parts = Cost(lambda x, u, k: x @ u + 10 * k).terms(PUSHES, jnp.asarray(X), 3)
    assert set(parts) == {"action"}
    np.testing.assert_allclose(parts["action"], POINTS @ X + 30, rtol=1e-14)


def test_the_next_state_is_priced_at_its_own_time():
    parts = Cost(predict=moved, state_cost=lambda x, k: jnp.sum(x) + 100 * k).terms(PUSHES, jnp.asarray(X), 3)
    assert set(parts) == {"state"}
    np.testing.assert_allclose(parts["state"], (X + 4 * POINTS).sum(1) + 400, rtol=1e-14)


@pytest.mark.parametrize("name", ["state_cost", "cost_to_go"])
@pytest.mark.parametrize("target", ["none", "constant", "moving"])
def test_matrices(name, target):
    given = {"none": None, "constant": [1.0, -1.0], "moving": lambda k: jnp.array([1.0, 2.0]) * k}[target]
    model = Cost(lambda x, u, k: u[0] ** 2, predict=moved, **{name: M}, target=given)
    parts = model.terms(PUSHES, jnp.asarray(X), 3)
    part = {"state_cost": "state", "cost_to_go": "cost_to_go"}[name]
    assert list(parts) == ["action", part]
    wanted = {"none": np.zeros(2), "constant": np.array([1.0, -1.0]), "moving": np.array([4.0, 8.0])}[target]
    away = X + 4 * POINTS - wanted
    np.testing.assert_allclose(parts[part], [a @ M @ a for a in away], rtol=1e-13)
    np.testing.assert_allclose(action_cost(model, PUSHES, X, 3), POINTS[:, 0] ** 2 + parts[part], rtol=1e-13)


def test_states_of_any_kind_with_a_function():
    model = Cost(
        predict=lambda x, u, k: {"position": x["position"] + u[0], "speed": u[1]},
        cost_to_go=lambda x, k: x["position"] ** 2 + jnp.abs(x["speed"]),
    )
    found = action_cost(model, PUSHES, {"position": 1.0, "speed": 0.0}, 0)
    np.testing.assert_allclose(found, (1 + POINTS[:, 0]) ** 2 + np.abs(POINTS[:, 1]), rtol=1e-14)


def test_whole_numbers_are_prices_too():
    found = Cost(lambda x, u, k: 3).terms(PUSHES, None, 0)["action"]
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.full(9, 3.0))


def of_parts(model, state=X):
    return model.terms(PUSHES, jnp.asarray(state), 0)


COMPLAINTS = {
    "both": (lambda: Cost(predict=moved, state_cost=M, cost_to_go=M), "cost_to_go already counts the next state"),
    "no prediction": (lambda: Cost(state_cost=M), "a cost of the next state needs predict"),
    "no price": (lambda: Cost([1.0], predict=moved), "predict is given but nothing prices the next state"),
    "nothing": (lambda: Cost(), "nothing has a price: pass action_cost, state_cost or cost_to_go"),
    "idle target": (lambda: Cost([1.0], target=[1.0]), "target is used with a matrix"),
    "target beside a function": (
        lambda: Cost(predict=moved, state_cost=lambda x, k: 0.0, target=[1.0]), "target is used with a matrix"
    ),
    "matrix": (lambda: Cost(predict=moved, state_cost=np.ones((2, 3))), r"state_cost has shape \(2, 3\): .*square"),
    "vector": (lambda: Cost(np.ones((2, 2))), r"action_cost has shape \(2, 2\): pass a vector"),
    "actions": (lambda: of_parts(Cost([1.0, 2.0])), r"action_cost has shape \(2,\): one number for each of 9"),
    "vector price": (lambda: of_parts(Cost(lambda x, u, k: u)), r"the action cost of one action has shape \(2,\)"),
    "vector state price": (
        lambda: of_parts(Cost(predict=moved, state_cost=lambda x, k: x)), r"the state cost .* has shape \(2,\)"
    ),
    "matrix and state": (
        lambda: of_parts(Cost(predict=moved, state_cost=np.eye(3))),
        r"predict gives a state of 2 numbers, but state is priced by a matrix of shape \(3, 3\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLAINTS)
@pytest.mark.usefixtures("without_type_checks")
def test_complaints_name_the_argument(name):
    make, message = COMPLAINTS[name]
    with pytest.raises(ValueError, match=message):
        make()


class TwoFields(NamedTuple):
    position: jax.Array
    velocity: jax.Array


def test_a_matrix_prices_a_state_of_several_fields_in_their_order():
    matrix = np.array([[2.0, 0.5], [0.5, 1.0]])
    fields = Cost(predict=lambda x, u, k: TwoFields(x.position + u[0], x.velocity), cost_to_go=matrix)
    vector = Cost(predict=lambda x, u, k: jnp.stack([x.position + u[0], x.velocity]), cost_to_go=matrix)
    state, actions = TwoFields(jnp.asarray(0.3), jnp.asarray(-1.0)), Grid(-1.0, 1.0, 2)
    np.testing.assert_array_equal(
        fields.terms(actions, state, 0)["cost_to_go"], vector.terms(actions, state, 0)["cost_to_go"]
    )
