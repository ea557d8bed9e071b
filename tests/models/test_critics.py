"""Critics of the real Stable-Baselines3 as costs, and its policies alone in a contest, judged by their own numbers.

It is no dependency of ours: these tests run where somebody has installed it.
"""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed, and need not be")

import torch
from stable_baselines3 import DQN, PPO, SAC, TD3

from policychord.actions import Finite, Grid
from policychord.loops import Alone
from policychord.models import Cost, Value, action_cost

torch.set_num_threads(1)
SEEN = np.array([[0.5, 0.1, -0.3], [-0.2, 0.9, 1.4], [1.0, 0.0, 0.0]], dtype=np.float32)
BOX = spaces.Box(np.array([-1, -2], np.float32), np.array([3, 2], np.float32))
PLANE = Grid([-1.0, -2.0], [3.0, 2.0], [5, 3], saturates=True)


class Still(gymnasium.Env):
    """Three numbers to look at, and nothing happens."""

    def __init__(self, action_space):
        self.observation_space, self.action_space = spaces.Box(-2.0, 2.0, (3,)), action_space

    def reset(self, *, seed=None, options=None):
        return np.zeros(3, np.float32), {}

    def step(self, action):
        return np.zeros(3, np.float32), 0.0, False, False, {}


def untrained(kind, action_space):
    return kind("MlpPolicy", Still(action_space), seed=3, device="cpu", policy_kwargs={"net_arch": [16]})


def prices(model, actions):
    """The cost of each action for each observation, in one compiled call."""
    return np.asarray(jax.jit(jax.vmap(lambda x: action_cost(model, actions, x, 0)))(SEEN))


def test_ppo_values_states_and_no_actions():
    model = untrained(PPO, BOX)
    found = jax.jit(jax.vmap(lambda x: Value(model, scale=2.0)(x, 0)))(SEEN)
    with torch.no_grad():
        expected = model.policy.predict_values(torch.as_tensor(SEEN)).numpy().ravel()
    np.testing.assert_allclose(found, -2.0 * expected, rtol=1e-5)
    later = Cost(predict=lambda x, u, k: x + 0.1 * u[0], cost_to_go=Value(model))
    assert prices(later, PLANE).shape == (3, 15)
    with pytest.raises(Exception, match="values states, not actions"):
        jax.block_until_ready(Value(model)(jnp.asarray(SEEN[0]), jnp.zeros(2), 0))


def test_dqn_values_labels_and_a_state_by_the_best():
    model = untrained(DQN, spaces.Discrete(3))
    with torch.no_grad():
        expected = model.q_net(torch.as_tensor(SEEN)).numpy()
    np.testing.assert_allclose(prices(Cost(Value(model)), Finite(3)), -expected, rtol=1e-5)
    found = jax.vmap(lambda x: Value(model)(x, 0))(jnp.asarray(SEEN))
    np.testing.assert_allclose(found, -expected.max(axis=1), rtol=1e-5)
    alone = Alone("dqn", model, Finite(3))
    labels = jax.jit(jax.vmap(lambda x: alone.decide(jax.random.key(0), x).action))(SEEN)
    np.testing.assert_array_equal(labels, model.predict(SEEN, deterministic=True)[0])


@pytest.mark.parametrize("kind", [SAC, TD3])
def test_critics_of_actions_see_them_scaled_as_they_were_trained(kind):
    model = untrained(kind, BOX)
    points = np.asarray(PLANE.points, dtype=np.float32)
    scaled = (points - [1.0, 0.0]) / [2.0, 2.0]  # to [-1, 1]
    with torch.no_grad():
        for x, costs in zip(SEEN, prices(Cost(Value(model)), PLANE), strict=True):
            many = torch.as_tensor(np.tile(x, (15, 1)))
            both = torch.cat(model.critic(many, torch.as_tensor(scaled, dtype=torch.float32)), dim=1)
            np.testing.assert_allclose(costs, -both.min(dim=1).values.numpy(), rtol=1e-4, atol=1e-6)
    own = model.predict(SEEN, deterministic=True)[0]
    of_states = jax.vmap(lambda x: Value(model)(x, 0))(jnp.asarray(SEEN))
    of_own = jax.vmap(lambda x, u: Value(model)(x, u, 0))(jnp.asarray(SEEN), jnp.asarray(own))
    np.testing.assert_allclose(of_states, of_own, rtol=1e-4, atol=1e-6)  # the policy's own action


@pytest.mark.parametrize("kind", [PPO, SAC])
def test_a_trained_policy_alone_acts_as_its_predict(kind):
    model = untrained(kind, BOX)
    alone = Alone("mine", model, PLANE)
    found = jax.jit(jax.vmap(lambda x: alone.decide(jax.random.key(0), x).action))(SEEN)
    np.testing.assert_array_equal(found, model.predict(SEEN, deterministic=True)[0])
