"""Vectors of environments: ours for others, and other people's in `play`; observations that are dicts."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from policychord.actions import Finite
from policychord.agent import Composer
from policychord.gym import REGISTERED, GymVectorEnv, play
from policychord.loops import to_dataset
from policychord.models import Cost
from policychord.primitives import Gaussian, Table

from .test_play import World, agent_with, pendulum_state, swinger

BOX = spaces.Box(-9.0, 9.0, (2,))


@pytest.mark.parametrize("name", REGISTERED)
def test_ours_is_the_vector_that_gymnasium_makes_of_singles(name):
    """The same episodes to rounding, through the end of one and the start of the next."""
    ours, theirs = (gymnasium.make_vec(name, num_envs=3, vectorization_mode=mode) for mode in (None, "sync"))
    assert isinstance(ours.unwrapped, GymVectorEnv)
    assert (ours.observation_space, ours.action_space) == (theirs.observation_space, theirs.action_space)
    assert ours.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    np.testing.assert_array_equal(ours.reset(seed=5)[0], theirs.reset(seed=5)[0])
    theirs.action_space.seed(1)
    limit = REGISTERED[name][1]
    for vector in (ours, theirs):  # near the end of an episode, without going there
        if isinstance(vector.unwrapped, GymVectorEnv):
            vector.unwrapped.max_episode_steps = min(limit, 6)
        else:
            for env in vector.envs:
                env.get_wrapper_attr("_max_episode_steps")
                env.set_wrapper_attr("_max_episode_steps", min(limit, 6))
    ended = []
    for _ in range(9):
        action = theirs.action_space.sample()
        (seen, *told, _), (same_seen, *same_told, _) = ours.step(action), theirs.step(action)
        assert ours.observation_space.contains(seen)
        np.testing.assert_allclose(seen, same_seen, rtol=1e-6, atol=1e-6)
        for one, same in zip(told, same_told, strict=True):
            np.testing.assert_allclose(one, same, rtol=1e-6, atol=1e-6)
        ended.append(told[2].all())
    assert ended == [i == 5 for i in range(9)]


def test_seeds_of_a_vector():
    vector = gymnasium.make_vec("policychord/Pendulum-v0", num_envs=2)
    single = gymnasium.make("policychord/Pendulum-v0")
    expected = [single.reset(seed=seed)[0] for seed in (7, 3)]
    np.testing.assert_array_equal(vector.reset(seed=[7, 3])[0], expected)
    assert not np.array_equal(vector.reset()[0], expected)
    with pytest.raises(ValueError, match="seed has 3 entries: pass one for each of 2"):
        vector.reset(seed=[1, 2, 3])


@pytest.mark.parametrize("action", [[[0.0]], [[0.0], [np.nan]], [0.0, 0.0]], ids=str)
def test_wrong_actions_are_refused(action):
    vector = gymnasium.make_vec("policychord/Pendulum-v0", num_envs=2)
    with pytest.raises(gymnasium.error.ResetNeeded):
        vector.step([[0.0], [0.0]])
    vector.reset(seed=0)
    with pytest.raises(ValueError, match="the environment takes 2 of them from Box"):
        vector.step(action)


# -- other people's vectors in `play`


def cart_vector(mode):
    return SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 3, autoreset_mode=mode)


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=str)
def test_a_vector_plays_what_singles_play(mode):
    """With episodes of different lengths, whatever the vector does when one is over."""
    agent = Composer({"any": Table([0.5, 0.5])}, Cost([0.0, 0.0]), Finite(2), eps=0.01)
    expected = play(agent, "CartPole-v1", seeds=[4, 9, 2], steps=40)
    assert len(set(expected.alive.sum(axis=1).tolist())) > 1
    vector = cart_vector(mode)
    for _ in range(2):  # a vector that is handed in stays open
        found = play(agent, vector, seeds=[4, 9, 2], steps=40)
        np.testing.assert_array_equal(found.alive, expected.alive)
        np.testing.assert_array_equal(found.action[found.alive], expected.action[expected.alive])
        np.testing.assert_array_equal(found.total_reward, expected.total_reward)
        np.testing.assert_allclose(found.state.observation, expected.state.observation, atol=1e-6)
        np.testing.assert_allclose(found.final_state.observation, expected.final_state.observation, atol=1e-6)


def test_a_function_may_make_a_vector():
    agent = swinger()
    made = play(
        agent, lambda: gymnasium.make_vec("Pendulum-v1", num_envs=2), seeds=[3, 8], steps=9, observe=pendulum_state
    )
    expected = play(agent, "Pendulum-v1", seeds=[3, 8], steps=9, observe=pendulum_state)
    np.testing.assert_allclose(made.reward, expected.reward, atol=1e-5)


def test_a_vector_has_one_environment_for_each_seed():
    with pytest.raises(ValueError, match="a vector of 3 environments, but there are 2 seeds"):
        play(agent_with(Finite(2)), cart_vector(AutoresetMode.NEXT_STEP), seeds=2)


# -- observations that are dicts and tuples


class Located(World):
    """Shows a place, and a goal with its number."""

    def __init__(self):
        pair = spaces.Tuple([BOX, spaces.Discrete(4)])
        super().__init__(spaces.Box(-1.0, 1.0, (2,)), spaces.Dict({"place": BOX, "goal": pair}))
        self.place = np.zeros(2)

    def shown(self):
        return {"place": self.place.astype(np.float32), "goal": (np.array([0.5, -0.5], np.float32), 2)}

    def reset(self, *, seed=None, options=None):
        self.place = np.full(2, 0.1 * (seed or 0))
        return self.shown(), {}

    def step(self, action):
        self.place = self.place + action
        return self.shown(), -float(np.sum((self.place - [0.5, -0.5]) ** 2)), False, False, {}


def offset(seen):
    return {"left": seen["goal"][0] - seen["place"], "number": seen["goal"][1]}


@pytest.mark.parametrize("vector", [False, True], ids=["singles", "vector"])
def test_observations_in_parts(vector):
    towards = {"there": Gaussian(lambda x, k: x["left"], 0.2), "away": Gaussian(lambda x, k: -x["left"], 0.2)}
    model = Cost(lambda x, u, k: jnp.sum((x["left"] - u) ** 2) * x["number"])
    agent = Composer(towards, model, Finite(np.random.default_rng(0).uniform(-1, 1, (40, 2))), 0.1, selection="mean")
    env = SyncVectorEnv([Located] * 2) if vector else Located
    trace = play(agent, env, seeds=[1, 4], steps=5, observe=offset)
    assert trace.state.observation["place"].shape == (2, 5, 2)
    np.testing.assert_allclose(trace.state.observation["place"][:, 0], [[0.1, 0.1], [0.4, 0.4]], atol=1e-6)
    assert np.all(trace.state.observation["goal"][1] == 2)
    assert np.all(trace.reward > -0.3)  # from -0.52 and -0.82 on
    assert np.all(trace.weights[:, 0, 0] > 0.8)
    dataset = to_dataset(trace)
    assert dataset["observation_place"].dims == ("episode", "time", "observation_place_0")
    assert dataset["observation_goal_1"].dims == ("episode", "time")
    np.testing.assert_allclose(dataset["final_observation_place"], trace.final_state.observation["place"])


def test_tables_need_no_observe():
    """Without `observe` the parts get the dict itself."""
    model = Cost(lambda x, u, k: jnp.sum((x["place"] - u) ** 2))
    agent = Composer([Table([0.5, 0.5])], model, Finite([[0.1, 0.0], [0.0, 0.1]]), 0.1)
    assert play(agent, Located, seeds=2, steps=2).converged.all()
