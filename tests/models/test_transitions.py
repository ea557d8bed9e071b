"""Chance, tables and simulators behind `predict`: the expected cost, the same numbers as a formula."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import Composer
from policychord.actions import Finite, Grid
from policychord.models import BlackBox, Cost, Random, Rollouts, Tabular, action_cost
from policychord.primitives import Gaussian, Table

LINE = Grid(-1.0, 1.0, 5)


def noisy(x, u, k, key):
    return x + u + 0.5 * jax.random.normal(key, x.shape)


def test_with_chance_the_cost_is_the_expected_one_and_not_that_of_the_mean():
    model = Cost(predict=Random(noisy, samples=4000), state_cost=lambda x, k: x[0] ** 2)
    found = action_cost(model, LINE, jnp.array([0.3]), 0)
    u = np.asarray(LINE.points)[:, 0]
    np.testing.assert_allclose(found, (0.3 + u) ** 2 + 0.25, atol=0.05)
    # every action meets the same random numbers: differences have far less error than costs
    offset = np.asarray(found) - (0.3 + u) ** 2
    steps = np.diff(offset) / np.diff(u)
    np.testing.assert_allclose(steps, steps[0], atol=1e-9)  # 2 E[noise], the same slope everywhere


def test_a_table_gives_the_expectation_exactly(rng):
    table = rng.dirichlet(np.ones(3), size=(3, 2))
    prices = np.array([1.0, -2.0, 5.0])
    model = Cost(predict=Tabular(table), state_cost=lambda x, k: jnp.asarray(prices)[x])
    for x in range(3):
        np.testing.assert_allclose(action_cost(model, Finite(2), jnp.asarray(x), 0), table[x] @ prices, rtol=1e-12)
    sure = np.zeros((2, 2, 2))
    sure[:, :, 0] = 1.0  # the second state never comes, so that its price does not matter
    never = Cost(predict=Tabular(sure), state_cost=lambda x, k: jnp.where(x == 1, jnp.inf, 3.0))
    np.testing.assert_allclose(action_cost(never, Finite(2), jnp.asarray(0), 0), [3.0, 3.0])
    agent = Composer([Table([0.9, 0.1]), Table([0.2, 0.8])], model, Finite(2), 0.3)
    assert agent.weigh(jnp.asarray(1)).certificate.gap < 1e-9


def test_a_simulator_in_numpy_is_the_same_as_a_formula_in_a_compiled_loop():
    seen = []

    def simulate(x, u, k):
        seen.append((x.shape, u.shape, k.shape))
        return np.sin(x) + u if np.all(k >= 0) else None  # a Python if, and NumPy

    formula, box = (lambda x, u, k: jnp.sin(x) + u), BlackBox(simulate)
    price = lambda x, k: jnp.sum(x**2)  # noqa: E731
    x = jnp.array([0.4])
    models = [Cost(predict=one, state_cost=price) for one in (formula, box)]
    ours, theirs = (jax.jit(partial(lambda m, x: action_cost(m, LINE, x, 0), model))(x) for model in models)
    np.testing.assert_allclose(theirs, ours, rtol=1e-12)
    assert seen[0] == ((5, 1), (5, 1), (5,))  # one call for all actions
    stage = BlackBox(lambda x, u, k: np.sum(x**2, axis=-1))
    followed = [Gaussian(lambda x, k: -x, 0.1)]
    later = [
        Rollouts(followed, LINE, p, s, steps=4)(x, 0) for p, s in ((formula, lambda x, u, k: price(x, k)), (box, stage))
    ]
    np.testing.assert_allclose(later[1], later[0], rtol=1e-12)


@pytest.mark.usefixtures("without_type_checks")
def test_rollouts_average_over_futures():
    stay = [Gaussian(lambda x, k: 0.0 * x, 0.1)]
    chance = Random(noisy, samples=4000)
    found = Rollouts(stay, LINE, chance, lambda x, u, k: x[0] ** 2, steps=3)(jnp.array([0.3]), 0)
    assert float(found) == pytest.approx(3 * 0.09 + 0.25 + 0.5, abs=0.05)
    with pytest.raises(ValueError, match="predict is Tabular"):
        Rollouts(stay, LINE, Tabular(np.ones((1, 1, 1))), lambda x, u, k: 0.0)


def test_action_values_need_no_model():
    values = jnp.array([[1.0, 3.0], [4.0, 2.0]])  # Q[x, u], higher is better
    agent = Composer(
        [Table([0.9, 0.1]), Table([0.1, 0.9])], Cost(lambda x, u, k: -values[x, u]), Finite(2), 0.2, selection="mode"
    )
    assert [int(agent.decide(jax.random.key(0), jnp.asarray(x)).action) for x in (0, 1)] == [1, 0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tabular(np.ones((2, 2))), "table has shape"),
        (lambda: Tabular(np.ones((2, 2, 2))), r"table\[0, 0\] is not a distribution"),
        (lambda: Random(noisy, samples=0), "samples = 0"),
        (lambda: BlackBox(3), "function is a int"),
    ],
)
@pytest.mark.usefixtures("without_type_checks")
def test_complaints(make, message):
    with pytest.raises(ValueError, match=message):
        make()
