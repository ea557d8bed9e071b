"""What every primitive promises: a distribution over the action set at every state, in log space."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord.primitives.columns import columns, separable

from .parts import PRIMITIVES, STATES, TIMES


@pytest.fixture(scope="module", params=PRIMITIVES.values(), ids=PRIMITIVES.keys())
def case(request):
    return request.param


@pytest.fixture(scope="module")
def one_by_one(case):
    """ln pi at every state and time, in calls of their own."""
    log_prob = jax.jit(lambda x, k: case.part.log_prob(case.actions, x, k))
    return np.array([[log_prob(x, k) for k in TIMES] for x in STATES])


def test_a_distribution_at_every_state(case, one_by_one):
    log_prob = one_by_one
    assert log_prob.shape == (len(STATES), len(TIMES), case.actions.size)
    assert not np.isnan(log_prob).any()
    assert (log_prob <= 1e-15).all()
    np.testing.assert_allclose(np.exp(log_prob).sum(-1), 1.0, rtol=0, atol=1e-12)


def test_a_batch_and_its_columns_are_one_by_one(case, one_by_one):
    by_axes = separable((case.part, case.part), case.actions)

    def both(x, k):
        return case.part.log_prob(case.actions, x, k), columns((case.part, case.part), case.actions, x, k, by_axes)

    log_prob, pi = jax.jit(jax.vmap(jax.vmap(both, (None, 0)), (0, None)))(STATES, jnp.array(TIMES))
    assert log_prob.dtype == pi.dtype == one_by_one.dtype == np.float64
    assert pi.shape == (*one_by_one.shape, 2)
    np.testing.assert_allclose(log_prob, one_by_one, rtol=1e-12, atol=1e-12)
    for column in (0, 1):
        np.testing.assert_allclose(pi[..., column], np.exp(one_by_one), rtol=0, atol=1e-13)
