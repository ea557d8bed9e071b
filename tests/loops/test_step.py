"""One step, and the loops over it: a Python loop is a rollout, and all of it compiles."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import rollout
from policychord.loops import begin, step, streams_of

from .parts import PENDULUM, SWINGER, WALKER, Walk

STEPS = 6


def test_a_python_loop_over_step_is_a_rollout():
    trace = rollout(WALKER, Walk(), steps=STEPS, episodes=[3], seed=1)
    streams = streams_of(jax.random.key(1), 3)
    carry, states = begin(WALKER, Walk(), streams), []
    for k in range(STEPS):
        carry, record = step(WALKER, Walk(), streams, carry, k)
        states.append(record.state.place)
    np.testing.assert_allclose(states, trace.state.place[0], atol=1e-9)
    np.testing.assert_allclose(carry.state.place, trace.final_state.place[0], atol=1e-9)


def test_roles_have_streams_of_their_own():
    keys = [jax.random.key_data(key).tolist() for number in (0, 1) for key in streams_of(jax.random.key(0), number)]
    assert len({tuple(key) for key in keys}) == 6


@pytest.mark.parametrize("compiled", [jax.jit, eqx.filter_jit], ids=["jax.jit", "eqx.filter_jit"])
def test_rollout_under_jit(compiled):
    """As part of a larger program it gives the same trace, with its labels."""
    plain = rollout(SWINGER, PENDULUM, steps=STEPS, episodes=2, seed=4)
    found = compiled(lambda seed: rollout(SWINGER, PENDULUM, steps=STEPS, episodes=2, seed=seed))(jnp.asarray(4))
    assert found.labels == plain.labels
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)
