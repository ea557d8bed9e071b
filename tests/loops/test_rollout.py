"""The closed loop: random numbers belong to episodes, worlds are shared, and what is over stands still."""

import warnings
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import Composer, Population, rollout
from policychord.actions import Finite
from policychord.agent import Decision
from policychord.core.objective import Certificate
from policychord.models import Cost
from policychord.primitives import Categorical, Table

from .parts import ARMS, CHOOSER, PENDULUM, SWINGER, WALKER, Walk

STEPS = 25


@pytest.fixture(scope="module")
def forty():
    return rollout(SWINGER, PENDULUM, steps=STEPS, episodes=40, seed=1)


def assert_same(one, other, tolerance=1e-9):
    for a, b in zip(jax.tree.leaves(one[:-1]), jax.tree.leaves(other[:-1]), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def part_of(trace, which):
    return (*jax.tree.map(lambda a: a[np.array(which)], trace[:-1]), trace.labels)


def test_episodes_do_not_depend_on_the_batch(forty):
    assert_same(rollout(SWINGER, PENDULUM, steps=STEPS, episodes=10, seed=1), part_of(forty, range(10)))
    which = [31, 4, 17, 0, 39, 8, 22, 23, 5, 11]
    chosen = rollout(SWINGER, PENDULUM, steps=STEPS, episodes=which, seed=1)
    assert chosen.labels.episodes == tuple(which)
    assert_same(chosen, part_of(forty, which))


def test_episodes_and_seeds_differ(forty):
    assert len(np.unique(forty.state.angle[:, 0])) == 40
    other = rollout(SWINGER, PENDULUM, steps=STEPS, episodes=40, seed=2)
    assert not np.isclose(other.state.angle[:, 0], forty.state.angle[:, 0]).any()


def test_the_trace_is_what_happened(forty):
    """Each state follows from the one before by the recorded action; each reward is its due."""
    move = jax.jit(jax.vmap(jax.vmap(lambda x, u: PENDULUM.step(jax.random.key(0), x, u, 0))))
    step = move(forty.state, forty.action)
    np.testing.assert_allclose(step.reward, forty.reward, atol=1e-12)
    for field in ("angle", "velocity"):
        after, recorded = getattr(step.state, field), getattr(forty.state, field)
        np.testing.assert_allclose(after[:, :-1], recorded[:, 1:], atol=1e-12)
        np.testing.assert_allclose(after[:, -1], getattr(forty.final_state, field), atol=1e-12)
    np.testing.assert_allclose(forty.total_reward, np.asarray(forty.reward).sum(1), rtol=1e-12)
    assert forty.alive.all()
    assert forty.converged.all()
    assert (forty.gap <= 1e-10).all()
    assert forty.weights.shape == (40, STEPS, 2)
    np.testing.assert_allclose(forty.weights.sum(-1), 1.0, atol=1e-9)


class Always(eqx.Module):
    """An agent of somebody else's: it always takes one arm, and spends random numbers for nothing."""

    arm: jax.Array
    names: ClassVar = ("always",)

    def start(self):
        return jax.random.key(0)

    def decide(self, key, view, k, memory):
        sure = Certificate(jnp.zeros(()), jnp.zeros(()))
        return Decision(self.arm, jnp.ones(1), sure, jnp.asarray(0), jax.random.split(key)[0])


def test_paired_agents_meet_the_same_weather():
    first, second = (rollout(Always(jnp.asarray(arm)), ARMS, steps=12, episodes=6, seed=4) for arm in (0, 1))
    composed = rollout(CHOOSER, ARMS, steps=12, episodes=6, seed=4)
    for other in (second, composed):
        np.testing.assert_array_equal(first.state.value, other.state.value)
    # what an arm pays does not depend on who asks
    pays = np.where(np.asarray(composed.action) == 0, first.reward, second.reward)
    np.testing.assert_allclose(composed.reward, pays, rtol=1e-12)
    assert set(np.unique(composed.action)) == {0, 1}


def test_what_is_over_stands_still():
    """Its state freezes, its reward is nothing."""
    trace = rollout(WALKER, Walk(), steps=40, episodes=20, seed=0)
    # every step draws anew, both what the agent does and what the world adds
    after = np.concatenate([trace.state.place[:, 1:], trace.final_state.place[:, None]], axis=1)
    noise = (after - trace.state.place - trace.action[..., 0])[np.asarray(trace.alive)]
    assert len(np.unique(noise.round(12))) == len(noise)
    alive, place = np.asarray(trace.alive), np.asarray(trace.state.place)
    assert np.isfinite(place).all()  # from beyond its edge the walk would go on as NaN
    assert alive[:, 0].all()
    assert not alive[:, -1].all()
    assert (np.diff(alive.astype(int), axis=1) <= 0).all()
    np.testing.assert_array_equal(alive, np.abs(place) < 2.0)
    length = alive.sum(1)
    for episode, last in enumerate(length):
        after = place[episode, last:]
        assert (after == trace.final_state.place[episode]).all()
        assert trace.final_state.steps[episode] == last
    np.testing.assert_array_equal(trace.reward, alive.astype(float))
    np.testing.assert_array_equal(trace.total_reward, length)


def test_decisions_that_failed_are_reported():
    """A cost that is not a number, from the fourth trial on and in some blocks only."""

    def price(belief, u, k):
        return jnp.where((k >= 3) & (belief.mean[0] > 0), jnp.nan, 1.0 * u)

    agent = Composer([Categorical(lambda belief, k: jnp.zeros(2)), Table([0.5, 0.5])], Cost(price), Finite(2), 0.1)
    with pytest.warns(UserWarning, match=r"decisions failed.*episode (\d+) at time (\d+)") as seen:
        trace = rollout(agent, ARMS, steps=8, episodes=range(20, 30), seed=0)
    missed = ~np.asarray(trace.converged)
    episode, time = np.argwhere(missed)[0]
    assert time >= 3
    assert not missed[:, :3].any()
    assert f"{missed.sum()} of 80 decisions" in str(seen[0].message)
    assert f"episode {20 + episode} at time {time}" in str(seen[0].message)
    np.testing.assert_array_equal(trace.fallbacks, missed.sum(1))


def test_nothing_is_compiled_twice():
    traces = []

    def counted(belief, k):
        traces.append(None)
        return belief.mean

    agent = Composer([Categorical(counted), Table([0.5, 0.5])], Cost([0.0, 1.0]), Finite(2), 0.1)
    rollout(agent, ARMS, steps=5, episodes=4, seed=0)
    once = len(traces)
    rollout(agent, ARMS, steps=5, episodes=4, seed=1)
    rollout(agent, ARMS, steps=5, episodes=[7, 1, 3, 9], seed=1)
    rollout(agent.replace(eps=0.7, prior=[0.2, 0.8]), ARMS, steps=5, episodes=4, seed=1)  # numbers are not code
    assert len(traces) == once


def test_a_thousand_episodes_in_one_call():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace = rollout(CHOOSER, ARMS, steps=12, episodes=1000, seed=4)
    assert trace.weights.shape == (1000, 12, 3)
    few = rollout(CHOOSER, ARMS, steps=12, episodes=6, seed=4)
    np.testing.assert_allclose(trace.weights[:6], few.weights, atol=1e-9)
    assert trace.reward.mean() > 1.5  # choosing pays


def test_populations_have_an_agent_axis():
    """Two walkers that see the same place; the world takes the first one's step."""

    class Both(Walk):
        def observe(self, state):
            return jnp.stack([state.place, state.place])

        def step(self, key, state, action, k):
            return Walk(self.edge).step(key, state, action[0], k)

    trace = rollout(Population(WALKER, 2), Both(edge=1e9), steps=6, episodes=3)
    assert trace.weights.shape == (3, 6, 2, 2)
    assert trace.action.shape == (3, 6, 2, 1)
    assert trace.gap.shape == (3, 6, 2)
    assert trace.population


COMPLAINTS = {
    "steps": ({"steps": 0}, "steps = 0: pass a whole number of at least 1"),
    "half a step": ({"steps": 1.5}, "steps = 1.5"),
    "no episodes": ({"episodes": 0}, "episodes = 0: pass at least 1"),
    "negative": ({"episodes": [1, -1]}, r"episodes = \[1, -1\]: pass a positive number, or whole numbers"),
    "empty": ({"episodes": []}, r"episodes = \[\]"),
    "halves": ({"episodes": [0.5]}, r"episodes = \[0.5\]"),
}


@pytest.mark.parametrize("name", COMPLAINTS)
@pytest.mark.usefixtures("without_type_checks")
def test_complaints_name_the_argument(name):
    changes, message = COMPLAINTS[name]
    with pytest.raises(ValueError, match=message):
        rollout(**({"agent": WALKER, "env": Walk(), "steps": 2} | changes))
