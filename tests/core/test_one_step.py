"""One undamped relaxation: what it is, and that it swings where the gate is steep."""

import jax
import numpy as np
import pytest

from policychord import certify, problem, solve
from policychord.core.flow import one_step

from .families import member

SWING = np.exp(-10.0)  # what is left of the previous weights: 4.5e-5


def by_hand(p, weights):
    """The released scripts' recipe, one primitive at a time."""
    q = np.exp(-p.action_cost) + 1e-8
    q = q / q.sum()
    mixture = p.pi @ weights + 1e-8
    gradient = np.array([np.sum(column * (np.log(mixture) - np.log(q))) for column in p.pi.T])
    response = np.exp(p.log_prior - (gradient - gradient.min()) / p.eps)
    response = response / response.sum()
    return (1 - SWING) * response + SWING * weights


@pytest.mark.parametrize("family", ["generic", "sparse", "biased", "hot"])
def test_is_the_scripts_recipe(family):
    p = member(family, (), 12, 3)
    weights = np.array([0.2, 0.5, 0.3])
    np.testing.assert_allclose(one_step(p, weights), by_hand(p, weights), rtol=1e-9, atol=1e-14)


def test_batches_and_jit():
    p = member("generic", (4,), 12, 3)
    weights = np.tile([0.2, 0.5, 0.3], (4, 1))
    found = one_step(p, weights)
    for i in range(4):
        one = jax.tree.map(lambda a, i=i: a[i], p)
        np.testing.assert_allclose(found[i], by_hand(one, weights[i]), rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(jax.jit(one_step)(p, weights), found, rtol=1e-12)
    np.testing.assert_allclose(found.sum(-1), 1.0, atol=1e-14)


def steep():
    """Two narrow primitives side by side with the same cost: each is a good answer to the other."""
    grid = np.linspace(-1, 1, 41)
    pi = np.exp(-0.5 * ((grid[:, None] - np.array([-0.4, 0.4])) / 0.1) ** 2)
    return problem(pi=pi / pi.sum(0), action_cost=np.zeros(41), eps=0.05)


def test_a_steep_gate_swings_between_two_answers():
    """As recorded from the released scripts: 4.5e-5 and 1 - 4.5e-5 in turn, while the optimum is one half."""
    p, weights = steep(), np.array([0.6, 0.4])
    path = []
    for _ in range(20):
        weights = one_step(p, weights)
        path.append(weights[0])
    np.testing.assert_allclose(path[10::2], SWING, rtol=1e-2)
    np.testing.assert_allclose(1 - np.array(path[11::2]), SWING, rtol=1e-2)
    np.testing.assert_allclose(solve(p).weights, [0.5, 0.5], atol=1e-6)
    assert certify(p, weights).gap > 0.1


def test_where_the_gate_is_flat_it_settles_at_the_optimum():
    p = steep()._replace(eps=np.asarray(20.0), action_cost=np.linspace(0, 3, 41))
    weights = np.array([0.9, 0.1])
    for _ in range(30):
        weights = one_step(p, weights)
    np.testing.assert_allclose(weights, solve(p, tol=1e-14).weights, atol=1e-6)  # up to its floors


def test_a_large_reward_is_not_infinite():
    """q = exp(-s) may be too large to be written down."""
    p = steep()._replace(action_cost=np.linspace(-2000.0, -1000.0, 41))
    np.testing.assert_allclose(one_step(p, np.array([0.5, 0.5])), [1 - SWING / 2, SWING / 2], rtol=1e-12)
