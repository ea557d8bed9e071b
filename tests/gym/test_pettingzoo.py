"""PettingZoo: our flock passes its test, and our agents act in other people's environments with several agents.

It is no dependency of ours: these tests run where somebody has installed it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("pettingzoo", reason="pettingzoo is not installed, and need not be")

import pettingzoo
from gymnasium import spaces
from pettingzoo.test import parallel_api_test, parallel_seed_test

from policychord.actions import Finite, Grid
from policychord.agent import Composer
from policychord.loops import rollout
from policychord.models import Cost
from policychord.pettingzoo import ParallelEnv, play
from policychord.population import Population
from policychord.primitives import Gaussian, Table
from policychord.worlds import Flock, Pendulum

FLOCK = Flock(5)


def test_our_flock_passes():
    parallel_api_test(ParallelEnv(FLOCK, steps=30), num_cycles=100)
    parallel_seed_test(lambda: ParallelEnv(FLOCK, steps=10), num_cycles=5)


def drift(x, k):
    return jnp.array([1.0, 0.0])


def test_the_flock_is_that_of_rollout():
    """The actions of `rollout`, taken here under the episode's number as seed, bring about the same."""
    agent = Composer({"drift": Gaussian(drift, 0.5)}, Cost(lambda x, u, k: 0.0 * u[0]), Grid([-3, -3], [3, 3], 13), 0.1)
    trace = rollout(Population(agent, 5), FLOCK, steps=6, episodes=[4])
    env = ParallelEnv(FLOCK, steps=6, reward=lambda before, after: after.position[:, 0] - before.position[:, 0])
    env.reset(seed=4)
    for k in range(6):
        told = env.step({name: np.asarray(trace.action[0, k, i]) for i, name in enumerate(env.agents)})
    seen, reward, terminated, truncated, _ = told
    assert env.agents == []
    assert all(truncated.values())
    assert not any(terminated.values())
    final = jax.tree.map(lambda a: a[0], trace.final_state)
    expected = FLOCK.observe(final)
    rows = np.concatenate([np.asarray(leaf).reshape(5, -1) for leaf in jax.tree.leaves(expected)], axis=1)
    np.testing.assert_allclose(np.stack(list(seen.values())), rows, rtol=1e-5, atol=1e-5)
    moved = np.asarray(final.position - trace.state.position[0, -1])[:, 0]
    np.testing.assert_allclose(list(reward.values()), moved, atol=1e-12)


def test_what_is_no_environment_of_several_is_refused():
    with pytest.raises(ValueError, match=r"Pendulum takes actions .*leading agent axis"):
        ParallelEnv(Pendulum())
    env = ParallelEnv(FLOCK)
    with pytest.raises(ValueError, match="pass one for each of nobody"):
        env.step({})
    env.reset(seed=0)
    with pytest.raises(ValueError, match="pass one for each of"):
        env.step({"agent_0": [0.0, 0.0]})


class Meeting(pettingzoo.ParallelEnv):
    """A walker with a position and a caller with two labels; the caller leaves after its third step."""

    metadata = {"name": "meeting"}  # noqa: RUF012
    possible_agents = ["walker", "caller"]  # noqa: RUF012

    def observation_space(self, agent):
        return spaces.Box(-9.0, 9.0, (1,)) if agent == "walker" else spaces.Dict({"near": spaces.Discrete(2)})

    def action_space(self, agent):
        return spaces.Box(-1.0, 1.0, (1,)) if agent == "walker" else spaces.Discrete(2)

    def shown(self):
        all_of_them = {"walker": np.array([self.at], np.float32), "caller": {"near": int(abs(self.at) < 0.5)}}
        return {name: all_of_them[name] for name in self.agents}

    def reset(self, seed=None, options=None):
        self.agents, self.at, self.steps = list(self.possible_agents), 1.0 + (seed or 0), 0
        return self.shown(), {name: {} for name in self.agents}

    def step(self, actions):
        assert set(actions) == set(self.agents)
        self.at += float(actions["walker"][0])
        self.steps += 1
        seen = self.shown()
        ends = {name: name == "caller" and self.steps == 3 for name in self.agents}
        reward = {name: -abs(self.at) for name in self.agents}
        self.agents = [name for name in self.agents if not ends[name]]
        return seen, reward, ends, dict.fromkeys(seen, False), {name: {} for name in seen}


WALKER = Composer(
    {"back": Gaussian(lambda x, k: -jnp.sign(x), 0.2), "on": Gaussian(lambda x, k: jnp.sign(x), 0.2)},
    Cost(predict=lambda x, u, k: x + u, state_cost=lambda x, k: 5.0 * x[0] ** 2),
    Grid(-1.0, 1.0, 21), 0.1, selection="mean",
)  # fmt: skip
CALLS = {"quiet": Table([0.9, 0.1]), "loud": Table([0.1, 0.9])}
CALLER = Composer(CALLS, Cost(lambda x, u, k: u * x["near"]), Finite(2), 0.1)


def test_agents_of_different_kinds_in_one_environment():
    traces = play({"walker": WALKER, "caller": CALLER}, Meeting, seeds=[0, 2], steps=6)
    walker, caller = traces["walker"], traces["caller"]
    assert walker.labels.primitives == ("back", "on")
    assert caller.labels.primitives == ("quiet", "loud")
    assert walker.alive.all()
    assert caller.alive.tolist() == [[True] * 3 + [False] * 3] * 2
    np.testing.assert_allclose(walker.state.observation[:, 0, 0], [1.0, 3.0])
    assert np.all(np.abs(walker.final_state.observation) < 0.6)  # a step back from there goes as far beyond
    np.testing.assert_allclose(walker.reward[:, 0], -np.abs(walker.state.observation[:, 1, 0]), atol=1e-6)
    assert np.all(caller.reward[:, 3:] == 0)
    assert walker.converged.all()
    again = play({"walker": WALKER, "caller": CALLER}, Meeting, seeds=[2], steps=6)
    np.testing.assert_array_equal(again["caller"].action[0, :3], caller.action[1, :3])


def test_one_composer_for_all_and_wrong_names():
    steer = Composer(
        {"go": Gaussian([0.5, 0.0], 0.3)}, Cost(lambda x, u, k: 0.0 * u[0]), Grid([-3, -3], [3, 3], 9), 0.1
    )
    traces = play(steer, lambda: ParallelEnv(FLOCK, steps=4), steps=9)
    assert list(traces) == [f"agent_{i}" for i in range(5)]
    assert traces["agent_3"].reward.shape == (1, 4)  # the environment's end
    with pytest.raises(ValueError, match=r"agents are \['walker'\]: pass a composer for each of"):
        play({"walker": WALKER}, Meeting, steps=2)
