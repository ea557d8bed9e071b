"""One observation that is not a number does not end an agent: what is bad is left out, or the fallback acts."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import Composer, Outcome, Population, rollout
from policychord.actions import Finite, Grid
from policychord.gym import Predictor, play
from policychord.loops import to_dataset
from policychord.models import Cost
from policychord.primitives import Categorical, Gaussian, Table

from .parts import Walk

LINE = Grid(-2.0, 2.0, 41)
GOOD, BAD = jnp.array([0.5, 0.2]), jnp.array([jnp.nan, 0.2])
decide = eqx.filter_jit(lambda agent, key, x, memory: agent.decide(key, x, 0, memory))


def agent_of(kind, **changes):
    """Its first primitive reads x[0], its second x[1], its cost x[0] if it is `anxious`."""
    first = (
        Gaussian(lambda x, k: x[:1], 0.4) if kind != "listed" else Categorical(lambda x, k: x[0] * LINE.points[:, 0])
    )
    second = Gaussian(lambda x, k: -x[1:], 0.4)
    price = (lambda x, u, k: (u[0] - x[0]) ** 2) if kind == "anxious" else (lambda x, u, k: (u[0] - 0.1) ** 2)
    return Composer({"first": first, "second": second}, Cost(price), LINE, 0.3, selection="mean").replace(**changes)


@pytest.mark.parametrize("kind", ["by axes", "listed"])
@pytest.mark.parametrize("gate", ["equilibrium", "one-step", "prior"])
@pytest.mark.parametrize("route", ["auto", "jax"])
def test_a_primitive_that_is_not_a_number_is_left_out(kind, gate, route):
    agent = agent_of(kind, gate=gate, route=route)
    alone = agent.replace(primitives={"second": agent.primitives[1]})
    before = decide(agent, jax.random.key(0), GOOD, agent.start())
    now = decide(agent, jax.random.key(0), BAD, before.memory)
    np.testing.assert_allclose(now.weights, [0.0, 1.0], rtol=0, atol=1e-15)
    assert now.weights[0] == 0
    assert Outcome(int(now.outcome)) == (Outcome.CONVERGED if gate == "equilibrium" else Outcome.NOT_OPTIMISED)
    assert now.certified
    np.testing.assert_allclose(now.action, decide(alone, jax.random.key(0), BAD, alone.start()).action, atol=1e-12)
    np.testing.assert_array_equal(now.memory.weights, before.memory.weights)  # the last good ones
    after = decide(agent, jax.random.key(0), GOOD, now.memory)
    if gate == "equilibrium":
        np.testing.assert_allclose(after.weights, before.weights, atol=1e-4)
        assert after.optimal


@pytest.mark.parametrize("route", ["auto", "jax"])
@pytest.mark.parametrize("gate", ["equilibrium", "one-step", "prior"])
def test_where_nothing_can_be_decided_the_fallback_acts(gate, route):
    nowhere = jnp.full(2, jnp.nan)
    for agent, bad in (agent_of("anxious"), BAD), (agent_of("by axes"), nowhere), (agent_of("listed"), nowhere):
        agent = agent.replace(gate=gate, route=route)
        before = decide(agent, jax.random.key(0), GOOD, agent.start())
        now = decide(agent, jax.random.key(0), bad, before.memory)
        assert now.outcome == Outcome.BAD_INPUT
        assert not now.certified
        assert not now.optimal
        np.testing.assert_array_equal(now.action, before.action)
        np.testing.assert_array_equal(now.weights, before.weights)
        assert all(np.isfinite(part).all() for part in now.memory)
        first = decide(agent, jax.random.key(0), bad, agent.start())
        np.testing.assert_allclose(first.action, [0.0], atol=1e-12)  # the middle of the set
        mixed = decide(agent.replace(fallback="prior"), jax.random.key(0), bad, before.memory)
        assert mixed.outcome == Outcome.BAD_INPUT
        wanted = -0.2 if agent is not None and not np.isnan(bad[1]) else 0.0  # the second primitive, or anything
        np.testing.assert_allclose(mixed.action, [wanted], atol=1e-3)


def test_outside_jit_it_is_said_once():
    agent = agent_of("by axes")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for _ in range(3):
            decision = agent.decide(jax.random.key(0), BAD)
    assert [str(one.message) for one in said] == [
        "primitives['first'] is not a number here, and left out of the decision."
    ]
    assert decision.optimal
    assert agent_of("anxious").decide(jax.random.key(0), BAD).outcome == Outcome.BAD_INPUT
    with pytest.raises(ValueError, match=r"primitives\['first'\] is not a number in"):
        agent.problem(BAD)


def test_a_batch_and_a_population_are_one_by_one():
    agent = agent_of("anxious", selection="dither")
    many = jnp.stack([GOOD, BAD, jnp.full(2, jnp.nan), GOOD])
    together = Population(agent, 4).decide(jax.random.key(0), many)
    assert together.outcome.tolist() == [0, int(Outcome.BAD_INPUT), int(Outcome.BAD_INPUT), 0]
    for i, x in enumerate(many):
        alone = decide(agent, jax.random.key(0), x, agent.start())
        np.testing.assert_allclose(together.action[i], alone.action, atol=1e-9)
        np.testing.assert_allclose(together.weights[i], alone.weights, atol=1e-6)


class Flicker(Walk):
    """A walk that cannot be seen at its third step."""

    def observe(self, state):
        return jnp.where(state.steps == 2, jnp.nan, state.place)


def test_rollout_goes_on_and_counts():
    walker = Composer([Gaussian(lambda x, k: -x[None], 0.3)], Cost(lambda x, u, k: u[0] ** 2), LINE, 0.1)
    with pytest.warns(UserWarning, match=r"3 of 18 decisions failed.*fallback was taken.*episode 0 at time 2"):
        trace = rollout(walker, Flicker(edge=1e9), steps=6, episodes=3)
    assert trace.fallbacks.tolist() == [1, 1, 1]
    np.testing.assert_array_equal(trace.action[:, 2], trace.action[:, 1])
    assert np.isfinite(trace.final_state.place).all()
    assert trace.converged[:, [0, 1, 3, 4, 5]].all()
    kept = to_dataset(trace).outcome
    assert (kept[:, 2] == kept.flag_values[kept.flag_meanings.split().index("bad_input")]).all()


def test_a_primitive_is_named_in_the_trace():
    tables = {"steady": Table([0.5, 0.5]), "shy": Categorical(lambda x, k: jnp.where(k == 1, jnp.nan, x) * jnp.ones(2))}
    agent = Composer(tables, Cost([0.0, 0.1]), Finite(2), 0.1)

    class Labels(Walk):
        def step(self, key, state, action, k):
            return Walk(self.edge).step(key, state, 1.0 * action[None], k)

    with pytest.warns(UserWarning, match="primitive 'shy' was not a number in 2 of 6 decisions, and left out of them"):
        trace = rollout(agent, Labels(edge=1e9), steps=3, episodes=2)
    assert (trace.weights[:, 1, 1] == 0).all()
    assert trace.fallbacks.tolist() == [0, 0]


def test_a_predictor_recovers_and_warns():
    """It answers a number, the same number and its own answer again, not NaN for ever."""
    predictor = Predictor(agent_of("anxious"))
    first, state = predictor.predict(GOOD, deterministic=True)
    with pytest.warns(UserWarning, match="1 of 1 decisions failed"):
        second, state = predictor.predict(BAD, state, deterministic=True)
    third, _ = predictor.predict(GOOD, state, deterministic=True)
    np.testing.assert_array_equal(second, first)
    np.testing.assert_allclose(third, first, atol=1e-3)


def test_play_goes_on():
    from tests.gym.test_play import THREE, World

    cost = Cost(lambda seen, action, k: jnp.where(k == 1, jnp.nan, 1.0) * action)
    agent = Composer([Table(np.full(3, 1 / 3))], cost, Finite(3), eps=1.0)
    with pytest.warns(UserWarning, match="2 of 6 decisions failed.*fallback was taken"):
        trace = play(agent, lambda: World(THREE), seeds=2, steps=3)
    np.testing.assert_array_equal(trace.action[:, 1], trace.action[:, 0])
    assert trace.fallbacks.tolist() == [1, 1]


def test_outside_jit_the_fallback_is_that_of_the_compiled_agent():
    """All primitives are no numbers, and the cost is one."""
    nowhere = np.full(2, np.nan)
    for kind in ("by axes", "listed"):
        for fallback in ("previous", "prior"):
            for gate in ("equilibrium", "prior", "flow"):
                agent = agent_of(kind, fallback=fallback, gate=gate)
                memory = agent.decide(jax.random.key(0), GOOD).memory
                with pytest.warns(UserWarning, match="no primitive is a number here"):
                    eager = agent.decide(jax.random.key(0), nowhere, 0, memory)
                there = agent.compiled()(jax.random.key(0), nowhere, 0, memory)
                assert eager.outcome == there.outcome == Outcome.BAD_INPUT
                np.testing.assert_allclose(eager.action, there.action, atol=1e-12)
                np.testing.assert_allclose(eager.weights, there.weights, atol=1e-12)
        with pytest.raises(ValueError, match=r"primitives\['first', 'second'\] are not a number in"):
            agent.problem(nowhere)
