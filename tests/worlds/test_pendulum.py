"""The pendulum is Gymnasium's: the same states and rewards, step by step."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord.worlds import Pendulum, PendulumState, upright


@pytest.fixture(scope="module")
def theirs():
    env = gymnasium.make("Pendulum-v1").unwrapped
    env.reset(seed=0)
    return env


# angle, velocity, torque: at rest, hanging, many turns away, at the speed limit, beyond the torque limit
STARTS = [
    (0.0, 0.0, 0.0), (np.pi, 0.0, 1.0), (-np.pi, 0.5, -1.0), (7 * np.pi + 0.3, -2.0, 0.7), (-20.0, 3.0, 2.0),
    (1.0, 8.0, 2.0), (-1.0, -8.0, -2.0), (0.4, 1.0, 50.0), (0.4, -1.0, -50.0), (np.pi - 1e-12, 0.0, 0.0),
]  # fmt: skip


@pytest.mark.parametrize("start", STARTS)
def test_one_step_from_a_set_state(theirs, start):
    angle, velocity, torque = start
    theirs.state = np.array([angle, velocity])
    _, reward, *_ = theirs.step(np.array([torque]))
    state = PendulumState(jnp.asarray(angle), jnp.asarray(velocity))
    step = Pendulum().step(jax.random.key(0), state, jnp.array([torque]), 0)
    np.testing.assert_allclose([step.state.angle, step.state.velocity], theirs.state, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(step.reward, reward, rtol=1e-13, atol=1e-14)
    assert not step.terminated


def test_a_whole_episode(theirs, rng):
    torques = rng.uniform(-3, 3, size=(200, 1))
    observation, _ = theirs.reset(seed=3)
    env, start = Pendulum(), PendulumState(*(jnp.asarray(x) for x in theirs.state))

    def turn(state, torque):
        step = env.step(jax.random.key(0), state, torque, 0)
        return step.state, (env.signals(step.state), step.reward)

    _, (signals, rewards) = jax.jit(lambda start: jax.lax.scan(turn, start, torques))(start)
    np.testing.assert_allclose(env.signals(start), observation, atol=1e-6)  # theirs are in single precision
    for k, torque in enumerate(torques):
        observation, reward, *_ = theirs.step(torque)
        np.testing.assert_allclose(signals[k], observation, atol=2e-6)
        np.testing.assert_allclose(rewards[k], reward, rtol=1e-8, atol=1e-9)


def test_other_masses_and_lengths(theirs):
    other = gymnasium.make("Pendulum-v1", g=3.7).unwrapped
    other.reset(seed=0)
    other.m, other.l, other.state = 2.0, 0.5, np.array([1.0, 0.5])
    other.step(np.array([1.5]))
    moved = Pendulum(gravity=3.7, mass=2.0, length=0.5).move(PendulumState(jnp.asarray(1.0), jnp.asarray(0.5)), 1.5)
    np.testing.assert_allclose(moved, other.state, rtol=1e-14)


def test_starts_are_spread_as_theirs():
    """Angles from -pi to pi, velocities from -1 to 1, uniformly."""
    from scipy.stats import kstest

    starts = jax.jit(jax.vmap(Pendulum().reset))(jax.random.split(jax.random.key(0), 2000))
    assert kstest(np.asarray(starts.angle) / np.pi, "uniform", args=(-1, 2)).pvalue > 1e-3
    assert kstest(np.asarray(starts.velocity), "uniform", args=(-1, 2)).pvalue > 1e-3
    assert abs(np.corrcoef(starts.angle, starts.velocity)[0, 1]) < 0.1


def test_upright_takes_turns_off():
    angles = np.array([0.0, 1.0, 2 * np.pi + 1, -6 * np.pi - 1, np.pi, -np.pi])
    np.testing.assert_allclose(upright(jnp.asarray(angles)), [0, 1, 1, -1, -np.pi, -np.pi], atol=1e-14)
