"""Bandits and the beliefs about them, judged by the textbook posterior of all rewards at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord.worlds import Bandit, Belief, update_belief

VARIANCE, NOISE = np.array([100.0, 16.0, 0.0]), 10.0


def posterior(choices, rewards, arm):
    """Mean and variance of one arm from its conjugate prior and everything seen of it, in one go."""
    seen = rewards[choices == arm]
    if VARIANCE[arm] == 0:
        return 0.0, 0.0
    precision = 1 / VARIANCE[arm] + len(seen) / NOISE
    return seen.sum() / NOISE / precision, 1 / precision


def test_beliefs_are_the_posterior(rng):
    choices = rng.integers(0, 3, size=40)
    rewards = rng.normal(3.0, 5.0, size=40)
    update = jax.jit(lambda belief, choice, reward: update_belief(belief, choice, reward, NOISE))
    belief = Belief(jnp.zeros(3), jnp.asarray(VARIANCE))
    for k, (choice, reward) in enumerate(zip(choices, rewards, strict=True)):
        belief = update(belief, choice, reward)
        for arm in range(3):
            expected = posterior(choices[: k + 1], rewards[: k + 1], arm)
            np.testing.assert_allclose([belief.mean[arm], belief.variance[arm]], expected, rtol=1e-11, atol=1e-13)


@pytest.fixture(scope="module")
def played():
    """Many blocks of twenty trials: values, choices, rewards and the last beliefs."""
    env = Bandit(VARIANCE, noise=NOISE)
    choices = jnp.arange(20) * 5 % 3

    def block(key):
        def turn(state, now):
            k, choice = now
            step = env.step(jax.random.fold_in(key, k), state, choice, k)
            return step.state, step.reward

        start = env.reset(jax.random.fold_in(key, 99))
        last, rewards = jax.lax.scan(turn, start, (jnp.arange(20), choices))
        return start.value, rewards, last

    values, rewards, last = jax.jit(jax.vmap(block))(jax.random.split(jax.random.key(1), 3000))
    return np.asarray(values), np.asarray(choices), np.asarray(rewards), last


def test_values_and_rewards_have_their_variances(played):
    values, choices, rewards, _ = played
    assert (values[:, 2] == 0).all()  # a variance of zero is a known arm
    for arm in (0, 1):
        # the variance of a sample variance of n normal numbers is 2 sigma^4/n
        assert abs(values[:, arm].var() / VARIANCE[arm] - 1) < 5 * np.sqrt(2 / len(values))
    assert (rewards[:, choices == 2] == 0).all()  # and always pays zero
    noise = (rewards - values[:, choices])[:, choices < 2].ravel()
    assert abs(noise.var() / NOISE - 1) < 5 * np.sqrt(2 / noise.size)
    assert abs(noise.mean()) < 5 * np.sqrt(NOISE / noise.size)


def test_the_environment_keeps_the_beliefs(played):
    values, choices, rewards, last = played
    np.testing.assert_array_equal(last.value, values)
    for arm in range(3):
        mean, variance = posterior(choices, rewards[7], arm)
        np.testing.assert_allclose([last.mean[7, arm], last.variance[7, arm]], [mean, variance], rtol=1e-11, atol=1e-13)


def test_beliefs_are_calibrated(played):
    """The value lies as far from its believed mean as the believed variance says."""
    values, _, _, last = played
    z = (values[:, :2] - np.asarray(last.mean)[:, :2]) / np.sqrt(np.asarray(last.variance)[:, :2])
    assert abs((z**2).mean() - 1) < 5 * np.sqrt(2 / z.size)


def test_all_arms_pay_at_every_trial():
    """Two agents that choose differently meet the same noise: what an arm would have paid is settled beforehand."""
    env = Bandit([4.0, 4.0])
    state = env.reset(jax.random.key(0))
    key = jax.random.key(1)
    noise = [float(env.step(key, state, arm, 0).reward - state.value[arm]) for arm in (0, 1)]
    assert noise[0] != noise[1]
    again = float(env.step(key, state, 0, 5).reward - state.value[0])
    assert again == noise[0]


COMPLAINTS = {
    "one arm": (lambda: Bandit([1.0]), r"variance = \[1.0\]: one number .* two or more arms"),
    "negative": (lambda: Bandit([1.0, -1.0]), r"variance = \[1.0, -1.0\]"),
    "noise": (lambda: Bandit(noise=0.0), "noise = 0.0: the variance of a reward is a positive number"),
}


@pytest.mark.parametrize("name", COMPLAINTS)
def test_complaints_name_the_argument(name):
    make, message = COMPLAINTS[name]
    with pytest.raises(ValueError, match=message):
        make()
