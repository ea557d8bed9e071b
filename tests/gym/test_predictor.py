"""A Composer behind Stable-Baselines3's `predict`: one or many, with and without memory, drawn or certain."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord.actions import Finite, Grid
from policychord.agent import Composer
from policychord.gym import Predictor
from policychord.models import Cost
from policychord.primitives import Gaussian, Table

PUSHES = {
    "towards": Gaussian(lambda x, k: -x[:1], sd=0.4),
    "by the clock": Gaussian(lambda x, k: jnp.array([0.3]) * k, sd=0.4),
}
PUSHER = Composer(PUSHES, Cost(lambda x, u, k: (x[0] + u[0]) ** 2 + x[1] * u[0]), Grid(-1.0, 1.0, 21), eps=0.1)
HABITS = {"first": Table([0.6, 0.3, 0.1]), "last": Table([0.1, 0.2, 0.7])}
CHOOSER = Composer(HABITS, Cost(lambda x, u, k: x[u]), Finite(3), eps=0.1)


@pytest.fixture
def observations(rng):
    return rng.uniform(-1.0, 1.0, (4, 2)).astype(np.float32)


def by_hand(agent, observations, steps=3):
    """The actions of one agent that sees the same observation again and again, without `predict`."""
    actions = []
    memory = agent.start()
    for k in range(steps):
        decision = eqx.filter_jit(agent.decide)(
            jax.random.key(0), jnp.asarray(observations, dtype=float), jnp.asarray(k), memory
        )
        actions.append(np.asarray(decision.action))
        memory = decision.memory
    return np.array(actions)


def test_one_is_a_row_of_many(observations):
    predictor = Predictor(PUSHER)
    actions, state = predictor.predict(observations, deterministic=True)
    assert actions.shape == (4, 1)
    np.testing.assert_array_equal(state.k, 1)
    for observation, action in zip(observations, actions, strict=True):
        alone, _ = predictor.predict(observation, deterministic=True)
        assert alone.shape == (1,)
        np.testing.assert_allclose(alone, action, atol=1e-9)


@pytest.mark.parametrize(("selection", "gate"), [("mean", "one-step"), ("dither", "equilibrium")])
def test_memory_is_passed_on(observations, selection, gate):
    agent = PUSHER.replace(selection=selection, gate=gate)
    predictor, state, actions = Predictor(agent), None, []
    for _ in range(3):
        action, state = predictor.predict(observations[0], state=state, deterministic=True)
        actions.append(action)
    np.testing.assert_allclose(actions, by_hand(agent, observations[0]), atol=1e-9)


def test_an_episode_that_starts_has_no_memory(observations):
    predictor = Predictor(PUSHER.replace(selection="dither", gate="one-step"))
    first, state = predictor.predict(observations)
    second, state = predictor.predict(observations, state=state, episode_start=np.zeros(4, bool))
    third, _ = predictor.predict(observations, state=state)
    mixed, state = predictor.predict(observations, state=state, episode_start=np.array([True, False, False, True]))
    assert not np.any(np.isclose(first, second) & np.isclose(second, third))  # there is something to forget
    np.testing.assert_array_equal(mixed[[0, 3]], first[[0, 3]])
    np.testing.assert_array_equal(mixed[[1, 2]], third[[1, 2]])
    np.testing.assert_array_equal(state.k, [1, 3, 3, 1])
    again, _ = predictor.predict(observations, state=state, episode_start=True)
    np.testing.assert_array_equal(again, first)


def test_deterministic_takes_the_mean(observations):
    predictor = Predictor(PUSHER)
    actions, _ = predictor.predict(observations, deterministic=True)
    again, _ = predictor.predict(observations, deterministic=True)
    np.testing.assert_array_equal(actions, again)
    expected = by_hand(PUSHER.replace(selection="mean"), observations[1], steps=1)
    np.testing.assert_allclose(actions[1:2], expected, atol=1e-9)


@pytest.mark.parametrize("selection", ["sample", "dither"])
def test_deterministic_labels_are_the_most_probable_ones(rng, selection):
    costs = rng.normal(size=(50, 3)).astype(np.float32)
    predictor = Predictor(CHOOSER.replace(selection=selection))
    actions, _ = predictor.predict(costs, deterministic=True)
    assert actions.shape == (50,)
    assert actions.dtype.kind == "i"
    weighed = jax.vmap(CHOOSER.weigh)(jnp.asarray(costs, dtype=float))
    np.testing.assert_array_equal(actions, np.argmax(weighed.problem.pi @ weighed.weights[..., None], axis=1)[:, 0])
    np.testing.assert_array_equal(actions, predictor.predict(costs, deterministic=True)[0])
    assert len(set(actions.tolist())) > 1


def test_sampling_follows_the_mixture():
    """Every call and every member of a batch has random numbers of its own, though no state is passed."""
    predictor, cost = Predictor(CHOOSER), np.zeros(3)
    draws = np.array([predictor.predict(np.tile(cost, (50, 1)))[0] for _ in range(40)])
    assert len({tuple(call) for call in draws}) == 40
    assert len({tuple(member) for member in draws.T}) == 50
    weighed = CHOOSER.weigh(jnp.asarray(cost))
    expected = np.asarray(weighed.problem.pi) @ np.asarray(weighed.weights)
    np.testing.assert_allclose(np.bincount(draws.ravel()) / draws.size, expected, atol=0.04)  # 3.6 sd of 2000 draws


def test_the_seed_decides_what_is_drawn():
    costs = np.zeros((50, 3))
    calls = [[Predictor(CHOOSER, seed=seed).predict(costs)[0] for _ in range(2)] for seed in (1, 2)]
    np.testing.assert_array_equal(calls[0][0], calls[0][1])
    assert not np.array_equal(calls[0][0], calls[1][0])


def test_float32_is_seen_as_float64(observations):
    seen = []

    def observe(observation):
        seen.append(observation.dtype)
        return observation

    predictor = Predictor(PUSHER, observe)
    narrow, _ = predictor.predict(observations, deterministic=True)
    wide, _ = predictor.predict(observations.astype(float), deterministic=True)
    np.testing.assert_array_equal(narrow, wide)
    assert set(seen) == {np.dtype(float)}


def test_observe_makes_the_state(observations):
    swapped, _ = Predictor(PUSHER, lambda observation: observation[::-1]).predict(observations, deterministic=True)
    expected, _ = Predictor(PUSHER).predict(observations[:, ::-1], deterministic=True)
    np.testing.assert_array_equal(swapped, expected)


def test_observations_without_axes():
    rows = {"always": Table([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])}
    predictor = Predictor(Composer(rows, Cost([0.0, 1.0]), Finite(2), eps=0.1), ndim=0)
    np.testing.assert_array_equal(predictor.predict(np.array([0, 1, 1, 0]))[0], [0, 1, 1, 0])
    action, _ = predictor.predict(1)
    assert action == 1
    assert action.shape == ()


@pytest.mark.parametrize("shape", [(), (2, 4, 2)])
def test_wrong_number_of_axes(shape):
    with pytest.raises(ValueError, match="one has 1 axes and a batch 2, or pass ndim"):
        Predictor(PUSHER).predict(np.zeros(shape))


def test_dictionaries_are_refused():
    with pytest.raises(ValueError, match=r"observation is a dict.*FlattenObservation"):
        Predictor(PUSHER).predict({"position": np.zeros(2)})


def test_state_of_another_batch(observations):
    predictor = Predictor(PUSHER)
    _, state = predictor.predict(observations)
    with pytest.raises(ValueError, match="state remembers 4 environments, but there are 1 observations"):
        predictor.predict(observations[0], state=state)
