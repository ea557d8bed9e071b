"""Against the real Stable-Baselines3: its evaluation runs our agents, its agents are our primitives.

It is no dependency of ours: these tests run where somebody has installed it.
"""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed, and need not be")

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from policychord.actions import Finite, Grid
from policychord.agent import Composer
from policychord.gym import REGISTERED, Predictor, Recurrent, play
from policychord.models import Cost
from policychord.primitives import Policy

from .test_play import PUSHES, cart_pole, leaning, pendulum_state, swinger

torch.set_num_threads(1)  # networks this small only wait for each other's threads


def observed(state, k):
    """A pendulum's state as the trained policy saw it."""
    return jnp.stack([jnp.cos(state.angle), jnp.sin(state.angle), state.velocity])


@pytest.fixture(scope="module")
def swing_policy():
    env = make_vec_env("Pendulum-v1", n_envs=4, seed=0)
    return PPO("MlpPolicy", env, n_steps=256, batch_size=128, gamma=0.9, seed=0, device="cpu").learn(2048)


@pytest.fixture(scope="module")
def push_policy():
    env = make_vec_env("CartPole-v1", n_envs=4, seed=0)
    return PPO("MlpPolicy", env, n_steps=256, batch_size=128, seed=0, device="cpu").learn(2048)


def test_evaluate_policy_measures_what_play_does():
    """A vector of environments with seed 0 begins with the seeds 0, 1, 2, 3."""
    agent = swinger()
    env = make_vec_env("Pendulum-v1", n_envs=4, seed=0)
    returns, lengths = evaluate_policy(
        Predictor(agent, pendulum_state), env, n_eval_episodes=4, return_episode_rewards=True
    )
    assert lengths == [200] * 4
    expected = play(agent, "Pendulum-v1", seeds=4, observe=pendulum_state).total_reward
    np.testing.assert_allclose(sorted(returns), sorted(expected), atol=1e-3)  # the monitor adds up float32


@pytest.mark.parametrize("deterministic", [True, False])
def test_evaluate_policy_of_twenty_episodes(deterministic):
    env = make_vec_env("Pendulum-v1", n_envs=4, seed=0)
    agent = swinger(selection="sample")
    mean, _ = evaluate_policy(Predictor(agent, pendulum_state), env, n_eval_episodes=20, deterministic=deterministic)
    pump = agent.replace(primitives={"pump": agent.primitives[0]})
    alone, _ = evaluate_policy(Predictor(pump, pendulum_state), env, n_eval_episodes=20, deterministic=deterministic)
    assert mean > alone + 100


def test_evaluate_policy_with_labels():
    agent = Composer(PUSHES, Cost(predict=cart_pole, cost_to_go=leaning), Finite(2), eps=0.01)
    env = make_vec_env("CartPole-v1", n_envs=2, seed=0)
    mean, _ = evaluate_policy(Predictor(agent), env, n_eval_episodes=2)
    assert mean == 500.0


@pytest.mark.parametrize("name", REGISTERED)
@pytest.mark.filterwarnings("ignore:We recommend you to use a symmetric and normalized Box action space")
def test_our_environments_are_accepted_and_learned_in(name):
    check_env(gymnasium.make(name).unwrapped)
    env = make_vec_env(name, n_envs=2, seed=0)
    model = PPO("MlpPolicy", env, n_steps=16, batch_size=16, seed=0, device="cpu").learn(64)
    returns, lengths = evaluate_policy(model, env, n_eval_episodes=2, return_episode_rewards=True)
    assert lengths == [REGISTERED[name][1]] * 2
    assert np.all(np.isfinite(returns))


def test_precision_of_observations(swing_policy, rng):
    """Composers see float64 and trained policies were fed float32: the answers agree."""
    observations = rng.uniform(-1.0, 1.0, (16, 3)).astype(np.float32)
    narrow, _ = swing_policy.predict(observations, deterministic=True)
    wide, _ = swing_policy.predict(observations.astype(float), deterministic=True)
    np.testing.assert_array_equal(narrow, wide)
    agent = Composer({"trained": Policy(swing_policy, 0.01)}, Cost(np.zeros(4001)), Grid(-2.0, 2.0, 4001), eps=0.1)
    for batch in (observations, observations.astype(float)):
        actions, _ = Predictor(agent).predict(batch, deterministic=True)
        # at the limits the bell is cut in half, which moves its mean by 0.8 of its width
        np.testing.assert_allclose(actions, narrow, atol=0.01)


def test_trained_policy_in_a_composition(swing_policy):
    agent = swinger()
    parts = dict(zip(agent.names, agent.primitives, strict=True))
    trained = Policy(swing_policy, 0.3, observed)
    composed = agent.replace(primitives={**parts, "trained": trained})
    trace = play(composed, "Pendulum-v1", seeds=4, steps=50, observe=pendulum_state)
    assert trace.converged.all()
    assert np.max(trace.gap) <= 1e-10
    assert 0 < trace.weights[..., 2].mean() < 1
    # alone, and with a spread around it, it still does what it does in its own house
    alone = play(agent.replace(primitives={"trained": trained}), "Pendulum-v1", seeds=4, observe=pendulum_state)
    expected, _ = evaluate_policy(swing_policy, make_vec_env("Pendulum-v1", n_envs=4, seed=0), n_eval_episodes=4)
    np.testing.assert_allclose(alone.total_reward.mean(), expected, rtol=0.1)


def test_trained_labels_in_a_composition(push_policy):
    model = Cost(predict=cart_pole, cost_to_go=leaning)
    agent = Composer({"trained": Policy(push_policy, 0.05)}, model, Finite(2), eps=0.01, selection="mode")
    alone = play(agent, "CartPole-v1", seeds=4, steps=100)
    answers, _ = push_policy.predict(alone.state.observation[alone.alive], deterministic=True)
    np.testing.assert_array_equal(alone.action[alone.alive], answers)
    primitives = {"trained": agent.primitives[0], **PUSHES}
    composed = play(agent.replace(primitives=primitives), "CartPole-v1", seeds=4, steps=100)
    assert composed.total_reward.tolist() == [100.0] * 4


@pytest.mark.parametrize("own", [True, False], ids=["own", "spread"])
def test_recurrent_policies_by_an_explicit_state(own):
    """The state that is shown is the one that the policy keeps itself, episode by episode and step by step."""
    contrib = pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed, and need not be")
    torch.manual_seed(0)
    small = {"lstm_hidden_size": 8, "net_arch": [8]}
    model = contrib.RecurrentPPO("MlpLstmPolicy", "Pendulum-v1", policy_kwargs=small, seed=0, device="cpu")
    torch.nn.init.normal_(model.policy.action_net.weight, std=2.0)
    torch.nn.init.constant_(model.policy.log_std, -3.0)
    parts = {"observe": lambda x, k: x["observation"], "state": lambda x, k: x["state"]}
    primitive = Policy(model, distribution="own", **parts) if own else Policy(model, 0.05, **parts)
    agent = Composer({"trained": primitive}, Cost(np.zeros(401)), Grid(-2.0, 2.0, 401), 0.1, selection="mode")
    trace = play(agent, lambda: Recurrent(gymnasium.make("Pendulum-v1"), model), seeds=[3, 5], steps=8)
    for seen, action in zip(trace.state.observation["observation"], trace.action, strict=True):
        state, start = None, np.ones(1, bool)
        for k in range(8):
            expected, state = model.predict(seen[k], state=state, episode_start=start, deterministic=True)
            start = np.zeros(1, bool)
            np.testing.assert_allclose(action[k], expected, atol=0.006)  # half a cell
            if k < 7:
                kept = [part[0, k + 1] for part in trace.state.observation["state"]]
    assert np.ptp(trace.action) > 0.05
    assert np.any(np.abs(kept) > 1e-3)
    with pytest.raises(ValueError, match="pass state="):
        Policy(model, 0.1).log_prob(agent.actions, np.zeros(3), 0)
