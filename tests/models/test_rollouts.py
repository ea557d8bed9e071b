"""Rollouts as cost-to-go: the same numbers as a loop in Python, and the decision that one step cannot see."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import Composer
from policychord.actions import Finite, Grid, Sampled
from policychord.models import Cost, Rollouts
from policychord.primitives import Gaussian, Table

LINE = Grid(-1.0, 1.0, 21)
BRAKES = {"brake": Gaussian(lambda x, k: -0.8 * x[1:], 0.1), "push": Gaussian(lambda x, k: 0.1 * k - x[:1], 0.1)}


def predict(x, u, k):
    return jnp.array([x[0] + 0.3 * x[1], x[1] + 0.3 * u[0]])


def stage(x, u, k):
    return x[0] ** 2 + 0.1 * u[0] ** 2


def by_hand(name, steps, x, k):
    x, total = np.array(x), 0.0
    for i in range(steps):
        u = np.clip(-0.8 * x[1:] if name == "brake" else 0.1 * (k + i) - x[:1], -1.0, 1.0)
        total += x[0] ** 2 + 0.1 * u[0] ** 2
        x = np.array([x[0] + 0.3 * x[1], x[1] + 0.3 * u[0]])
    return total


def test_costs_are_those_of_a_loop():
    x = jnp.array([0.7, -0.4])
    costs = np.array([by_hand(name, 6, x, 2) for name in BRAKES])
    least = Rollouts(BRAKES, LINE, predict, stage, steps=6)
    soft = Rollouts(BRAKES, LINE, predict, stage, steps=6, reduce="softmin")
    np.testing.assert_allclose(least(x, 2), costs.min(), rtol=1e-12)
    np.testing.assert_allclose(soft(x, 2), -np.log(np.mean(np.exp(-costs))), rtol=1e-12)
    same = Rollouts([BRAKES["brake"]] * 2, LINE, predict, stage, steps=6, follow="prior")
    np.testing.assert_allclose(same(x, 2), costs[0], rtol=1e-12)


def test_squashed_primitives_are_followed_by_squashed_means():
    box = Sampled([-2.0, 0.0], [2.0, 6.0], squash=True, count=16)
    pushes = {"a": Gaussian([0.7, -0.4], 0.3)}
    cost = Rollouts(pushes, box, lambda x, u, k: x, lambda x, u, k: u[0] + 10.0 * u[1], steps=1)(jnp.zeros(1), 0)
    u = np.array([0.0, 3.0]) + np.array([2.0, 3.0]) * np.tanh([0.7, -0.4])
    np.testing.assert_allclose(cost, u[0] + 10.0 * u[1], rtol=1e-12)


def test_an_agent_with_rollouts_sees_what_one_step_cannot():
    """A thrust changes the place only two steps later: one step has no preference, rollouts have."""
    x = jnp.array([1.0, 0.0])
    dear = lambda x, u, k: 20.0 * stage(x, u, k)  # noqa: E731
    near = Cost(dear, predict=predict, state_cost=lambda x, k: 20.0 * x[0] ** 2)
    far = Cost(dear, predict=predict, cost_to_go=Rollouts(BRAKES, LINE, predict, dear, steps=10))
    weigh = eqx.filter_jit(lambda agent, x: agent.weigh(x).weights)
    one, many = (weigh(Composer(BRAKES, model, LINE, 0.1), x) for model in (near, far))
    assert many[1] > 0.9 > one[1]


def test_labels_are_followed_by_the_most_probable():
    stay = {"zero": Table([0.9, 0.1]), "one": Table([0.2, 0.8])}
    chain = Rollouts(stay, Finite(2), lambda x, u, k: x + u, lambda x, u, k: x + 2.0 * u, steps=3)
    assert float(chain(jnp.asarray(0.0), 0)) == 0.0
    assert float(chain(jnp.asarray(1.0), 0)) == 3.0


@pytest.mark.usefixtures("without_type_checks")
@pytest.mark.parametrize(
    ("change", "message"),
    [({"steps": 0}, "steps = 0"), ({"follow": "best"}, "follow = 'best'"), ({"reduce": "max"}, "reduce = 'max'")],
)
def test_complaints(change, message):
    with pytest.raises(ValueError, match=message):
        Rollouts(BRAKES, LINE, predict, stage, **change)
    with pytest.raises(ValueError, match="mean of labels"):
        Rollouts([Table([0.5, 0.5])], Finite(2), predict, stage, follow="prior")
