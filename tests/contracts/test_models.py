"""What every generative model promises: named, finite prices for every action."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord.models import action_cost

from .parts import MODELS, STATES, TIMES


@pytest.fixture(scope="module", params=MODELS.values(), ids=MODELS.keys())
def case(request):
    return request.param


@pytest.fixture(scope="module")
def one_by_one(case):
    """The parts at every state and time, in calls of their own."""
    parts = jax.jit(lambda x, k: case.part.terms(case.actions, x, k))
    return [[parts(x, k) for k in TIMES] for x in STATES]


def test_parts_are_finite_and_have_a_number_for_every_action(case, one_by_one):
    names = set(one_by_one[0][0])
    assert names
    for row in one_by_one:
        for parts in row:
            assert set(parts) == names
            for part in parts.values():
                assert part.shape == (case.actions.size,)
                assert part.dtype == np.float64
                assert np.isfinite(part).all()


def test_without_jit_parts_add_up_to_the_cost(case, one_by_one):
    alone = action_cost(case.part, case.actions, jnp.asarray(STATES[1]), TIMES[1])
    assert alone.dtype == np.float64
    np.testing.assert_allclose(alone, sum(one_by_one[1][1].values()), rtol=1e-12, atol=1e-12)


def test_a_batch_is_one_by_one(case, one_by_one):
    def cost(x, k):
        return action_cost(case.part, case.actions, x, k)

    batched = jax.jit(jax.vmap(jax.vmap(cost, (None, 0)), (0, None)))(STATES, jnp.array(TIMES))
    expected = [[sum(parts.values()) for parts in row] for row in one_by_one]
    np.testing.assert_allclose(batched, expected, rtol=1e-12, atol=1e-12)
