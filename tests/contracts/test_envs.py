"""What every environment promises: states of one shape, labels for all of them, and chance from keys alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord.worlds import Box

from .parts import ENVS

STEPS, EPISODES = 60, 8


@pytest.fixture(scope="module", params=ENVS.values(), ids=ENVS.keys())
def env(request):
    return request.param


def actions_of(env, steps):
    """The most extreme actions and the middle, in turn."""
    space = env.spaces().action
    if isinstance(space, Box):
        choice = [space.low, space.high, (space.low + space.high) / 2]
        return jnp.asarray(np.array([choice[i * i % 3] for i in range(steps)]))
    return jnp.arange(steps) * 7 % space.size


def run(env, key, steps=STEPS):
    """(states, rewards, terminated) of one episode, the start first."""

    def turn(state, now):
        k, action = now
        step = env.step(jax.random.fold_in(key, k), state, action, k)
        return step.state, step

    start = env.reset(jax.random.fold_in(key, STEPS))
    _, steps_taken = jax.lax.scan(turn, start, (jnp.arange(steps), actions_of(env, steps)))
    states = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), start, steps_taken.state)
    return states, steps_taken.reward, steps_taken.terminated


@pytest.fixture(scope="module")
def episodes(env):
    """Several episodes in one compiled batch."""
    return jax.jit(jax.vmap(lambda i: run(env, jax.random.fold_in(jax.random.key(5), i))))(jnp.arange(EPISODES))


def test_a_step_keeps_the_shapes_and_dtypes_of_the_state(env):
    state = jax.eval_shape(env.reset, jax.random.key(0))
    step = jax.eval_shape(lambda state: env.step(jax.random.key(1), state, actions_of(env, 1)[0], 0), state)
    assert jax.tree.structure(state) == jax.tree.structure(step.state)
    for before, after in zip(jax.tree.leaves(state), jax.tree.leaves(step.state), strict=True):
        assert (before.shape, before.dtype) == (after.shape, after.dtype)
    assert (step.reward.shape, step.reward.dtype) == ((), np.float64)
    assert (step.terminated.shape, step.terminated.dtype) == ((), np.bool_)


def test_every_field_of_the_state_is_labelled(env):
    state = jax.eval_shape(env.reset, jax.random.key(0))
    assert tuple(env.variables) == state._fields
    sizes = {}
    for name, variable in env.variables.items():
        shape = getattr(state, name).shape
        assert len(variable.dims) == len(shape)
        assert variable.unit
        for dim, size in zip(variable.dims, shape, strict=True):
            assert sizes.setdefault(dim, size) == size


def test_nothing_is_nan_and_signals_stay_in_their_box(env, episodes):
    states, rewards, _ = episodes
    assert all(np.isfinite(field).all() for field in states)
    assert np.isfinite(rewards).all()
    signals = jax.vmap(jax.vmap(env.signals))(states)
    box = env.spaces().signals
    assert signals.dtype == np.float64
    assert signals.shape == (EPISODES, STEPS + 1, *box.low.shape)
    assert (box.low <= signals).all()
    assert (signals <= box.high).all()


def test_a_batch_under_jit_is_one_by_one_without(env, episodes):
    key = jax.random.fold_in(jax.random.key(5), 3)
    with jax.disable_jit():
        alone = run(env, key, steps=2)
    for a, b in zip(jax.tree.leaves(episodes), jax.tree.leaves(alone), strict=True):
        np.testing.assert_allclose(a[3, : len(b)], b, rtol=1e-12, atol=1e-12)


def test_keys_are_the_only_chance_and_an_agent_can_look(env):
    keys = jnp.stack([jax.random.key(seed) for seed in (1, 1, 2)])
    starts, views = jax.jit(jax.vmap(lambda key: (start := env.reset(key), env.observe(start))))(keys)
    assert all(np.array_equal(field[0], field[1]) for field in jax.tree.leaves(starts))
    assert not all(np.array_equal(field[0], field[2]) for field in jax.tree.leaves(starts))
    assert all(np.isfinite(seen).all() for seen in jax.tree.leaves(views))
