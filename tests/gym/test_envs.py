"""Our environments as Gymnasium's: they pass its checker, repeat by seed, and have the physics of `rollout`."""

import pickle
import subprocess
import sys
import warnings

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from policychord.actions import Finite, Grid
from policychord.agent import Composer
from policychord.gym import REGISTERED, GymEnv, register
from policychord.loops import rollout
from policychord.models import Cost
from policychord.primitives import Gaussian, Table
from policychord.worlds import Bandit, Pendulum

# The checker's advice that our environments do not follow, and why.
KNOWN_ADVICE = (
    "we recommend using a symmetric and normalized space",  # torques are in N m
    "A Box observation space (minimum|maximum) value is -?infinity",  # a belief about a Gaussian arm has no bound
)

NAMES = pytest.mark.parametrize("name", REGISTERED)


def episode(env, seed, steps=10):
    """Everything that an episode shows, under actions that only depend on the seed."""
    env.action_space.seed(seed)
    seen = [env.reset(seed=seed)[0]]
    rewards = []
    for _ in range(steps):
        observation, reward, *_ = env.step(env.action_space.sample())
        seen.append(observation)
        rewards.append(reward)
    return np.array(seen), np.array(rewards)


@NAMES
def test_checker(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for advice in KNOWN_ADVICE:
            # Gymnasium colours its warnings, so the words come after something
            warnings.filterwarnings("ignore", message=f".*{advice}")
        check_env(gymnasium.make(name).unwrapped)


@NAMES
def test_seeds(name):
    first, again, other = gymnasium.make(name), gymnasium.make(name), gymnasium.make(name)
    seen, rewards = episode(first, 3)
    same_seen, same_rewards = episode(again, 3)
    np.testing.assert_array_equal(seen, same_seen)
    np.testing.assert_array_equal(rewards, same_rewards)
    assert not np.array_equal(rewards, episode(other, 4)[1])


@NAMES
def test_resets_without_a_seed_go_on_from_the_last_one(name):
    def rewards_of_three(env, seed):
        env.reset(seed=seed)
        rewards = []
        for _ in range(3):
            env.reset()
            rewards.append(env.step(env.action_space.sample() * 0)[1])
        return rewards

    rewards = rewards_of_three(gymnasium.make(name), 3)
    assert len(set(rewards)) == 3
    assert rewards == rewards_of_three(gymnasium.make(name), 3)
    assert rewards != rewards_of_three(gymnasium.make(name), 4)


def test_seeds_of_any_size():
    env = GymEnv(Pendulum())
    seen = [env.reset(seed=seed)[0] for seed in (0, 2**32 - 1, 2**32, 2**100)]
    assert len({tuple(one) for one in seen}) == 4
    np.testing.assert_array_equal(env.reset(seed=2**100)[0], seen[-1])


def test_an_episode_ends_at_its_limit():
    for name, (_, limit) in REGISTERED.items():
        env = gymnasium.make(name)
        env.reset(seed=0)
        ends = [env.step(env.action_space.sample())[2:4] for _ in range(limit)]
        assert ends == [(False, False)] * (limit - 1) + [(False, True)]


def test_pendulum_has_the_physics_of_rollout():
    torque = Grid(-1.7, 1.7, 4)  # numbers that float32 does not hold
    primitives = {"left": Gaussian([-1.0], sd=1.0), "right": Gaussian([1.0], sd=1.0)}
    agent = Composer(primitives, Cost(lambda state, action, k: 0.1 * state.velocity * action[0]), torque, eps=0.1)
    check_physics(agent, Pendulum(gravity=9.81), "policychord/Pendulum-v0", gravity=9.81)


def test_bandit_has_the_physics_of_rollout():
    primitives = {"first": Table([0.9, 0.05, 0.05]), "others": Table([0.1, 0.4, 0.5])}
    agent = Composer(primitives, Cost(lambda belief, arm, k: -0.1 * belief.mean[arm]), Finite(3), eps=0.1)
    variance = (100.0, 50.0, 10.0)
    check_physics(agent, Bandit(variance, noise=5.0), "policychord/Bandit-v0", variance=variance, noise=5.0)


def check_physics(agent, env, name, **settings):
    """The actions of `rollout`, taken in Gymnasium under the episode's number as seed, bring about the same."""
    steps, numbers = 10, [0, 7]
    trace = rollout(agent, env, steps=steps, episodes=numbers)
    for i, number in enumerate(numbers):
        world = gymnasium.make(name, **settings)
        seen = [world.reset(seed=number)[0]]
        rewards = []
        for k in range(steps):
            observation, reward, *_ = world.step(np.asarray(trace.action[i, k]))
            seen.append(observation)
            rewards.append(reward)
        states = type(trace.state)(*(field[i] for field in trace.state))
        expected = np.asarray(jax.vmap(env.signals)(states), dtype=np.float32)
        np.testing.assert_allclose(seen[:-1], expected, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(rewards, trace.reward[i], rtol=1e-12)


def test_settings():
    assert gymnasium.make("policychord/Pendulum-v0", gravity=9.81).unwrapped.env.gravity == 9.81
    assert gymnasium.make("policychord/Bandit-v0", variance=[1.0, 2.0, 3.0]).action_space.n == 3
    changed, usual = (gymnasium.make("policychord/Pendulum-v0", **settings) for settings in ({"gravity": 9.81}, {}))
    assert not np.array_equal(episode(changed, 1)[1], episode(usual, 1)[1])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gravty": 9.81}, "Pendulum-v0 has no setting gravty: it has gravity, mass, length"),
        ({"render_mode": "human"}, "render_mode = 'human': policychord/Pendulum-v0 draws no pictures"),
        ({"render_mode": "rgb_array"}, "render_mode = 'rgb_array'"),
    ],
)
def test_settings_that_nobody_reads_are_refused(settings, message):
    # the kind of error by which Stable-Baselines3's make_vec_env learns that there are no pictures
    with pytest.raises(TypeError, match=message):
        gymnasium.make("policychord/Pendulum-v0", **settings)


def test_no_render_mode_is_fine():
    assert gymnasium.make("policychord/Pendulum-v0", render_mode=None).render_mode is None


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("policychord/Bandit-v0", 2),
        ("policychord/Bandit-v0", -1),
        ("policychord/Bandit-v0", 0.5),
        ("policychord/Bandit-v0", [1]),
        ("policychord/Pendulum-v0", 1.0),
        ("policychord/Pendulum-v0", [1.0, 1.0]),
        ("policychord/Pendulum-v0", [np.nan]),
    ],
)
def test_wrong_actions_are_refused(name, action):
    env = GymEnv(REGISTERED[name][0]())
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"the environment takes (Discrete|Box)"):
        env.step(action)


def test_a_step_needs_a_reset():
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        GymEnv(Pendulum()).step([0.0])


@NAMES
def test_pickled_in_mid_episode(name):
    env = gymnasium.make(name)
    env.reset(seed=5)
    env.step(env.action_space.sample())
    copy = pickle.loads(pickle.dumps(env))
    action = env.action_space.sample()
    (seen, reward, *_), (same_seen, same_reward, *_) = env.step(action), copy.step(action)
    np.testing.assert_array_equal(seen, same_seen)
    assert reward == same_reward


@NAMES
def test_registration_can_be_stored(name):
    spec = gymnasium.envs.registration.EnvSpec.from_json(gymnasium.spec(name).to_json())
    np.testing.assert_array_equal(gymnasium.make(spec).reset(seed=1)[0], gymnasium.make(name).reset(seed=1)[0])


def test_registering_again_changes_nothing():
    before = dict(gymnasium.registry)
    register()
    assert before == gymnasium.registry
    assert set(REGISTERED) <= set(before)


@NAMES
def test_vectors_of_environments(name):
    """Each of a vector is the environment alone: the first gets the seed, the others the next ones."""
    alone = [gymnasium.make(name) for _ in range(3)]
    made = gymnasium.make_vec(name, num_envs=3, vectorization_mode="sync")
    vectors = [made, gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make(name)] * 3)]
    for vector in vectors:
        seen = vector.reset(seed=11)[0]
        np.testing.assert_array_equal(seen, [env.reset(seed=11 + i)[0] for i, env in enumerate(alone)])
        actions = np.zeros(vector.action_space.shape, vector.action_space.dtype)
        seen, reward, *_ = vector.step(actions)
        expected = [env.step(action)[:2] for env, action in zip(alone, actions, strict=True)]
        np.testing.assert_array_equal(seen, [one[0] for one in expected])
        np.testing.assert_array_equal(reward, [one[1] for one in expected])
        vector.close()


def test_a_step_is_compiled_once(monkeypatch):
    """For all steps, all episodes and all environments with the same settings."""
    traced = []
    step = Pendulum.step

    def counted(self, *arguments):
        traced.append(arguments)
        return step(self, *arguments)

    monkeypatch.setattr(Pendulum, "step", counted)
    for seed in range(3):
        env = GymEnv(Pendulum(gravity=3.21))  # settings that no other test has compiled for
        env.reset(seed=seed)
        for torque in (np.array([0.5], np.float32), np.array([0.5]), [1], jnp.ones(1)):
            env.step(torque)
    assert len(traced) == 1


def test_by_module_name_and_in_float32():
    """In a program that neither imports us nor allows float64."""
    code = (
        "import gymnasium, numpy\n"
        "env = gymnasium.make('policychord.gym:policychord/Pendulum-v0')\n"
        "seen = [env.reset(seed=1)[0]] + [env.step(env.action_space.low)[0] for _ in range(3)]\n"
        "print(*numpy.ravel(seen))\n"
    )
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert np.all(np.isfinite(np.array(output.split(), dtype=float)))
