"""Costs, controllers and values in NumPy: in every place that an error message sends them to, and in one call."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import Composer
from policychord.actions import Finite, Grid, Sampled
from policychord.models import BlackBox, Cost, Rollouts, Value, action_cost
from policychord.primitives import Gaussian, Policy

LINE = Grid(-1.0, 1.0, 5)
HERE = jnp.array([0.4, -0.2])


def move(x, u, k):
    return 0.9 * x + 0.1 * np.sum(u, axis=-1, keepdims=True) + 0.01 * np.asarray(k)[..., None]


def stage(x, u, k):
    return np.sum(x**2, axis=-1) + 0.1 * np.sum(u**2, axis=-1)


def far(x, k):
    return np.sum(np.abs(x), axis=-1) + 0.01 * k


def moved(x, u, k):
    return 0.9 * x + 0.1 * jnp.sum(u) + 0.01 * k


def staged(x, u, k):
    return jnp.sum(x**2) + 0.1 * jnp.sum(u**2)


def away(x, k):
    return jnp.sum(jnp.abs(x)) + 0.01 * k


PLACES = {
    "action cost": (Cost(BlackBox(stage)), Cost(staged)),
    "state cost": (
        Cost(predict=BlackBox(move), state_cost=BlackBox(far)), Cost(predict=moved, state_cost=away),
    ),
    "cost to go": (Cost(predict=moved, cost_to_go=BlackBox(far)), Cost(predict=moved, cost_to_go=away)),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_cost_in_numpy_is_a_black_box_in_every_place(place):
    ours, formula = PLACES[place]
    expected = action_cost(formula, LINE, HERE, 3)
    np.testing.assert_allclose(action_cost(ours, LINE, HERE, 3), expected, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(lambda x: action_cost(ours, LINE, x, 3))(HERE), expected, rtol=1e-12)


@pytest.mark.parametrize("place", ["action_cost", "state_cost", "cost_to_go"])
def test_the_message_that_asks_for_a_black_box_is_right(place):
    plain = (lambda x, u, k: np.sin(u)[0]) if place == "action_cost" else (lambda x, k: np.sin(x)[0])
    rest = {} if place == "action_cost" else {"predict": moved}
    with pytest.raises(ValueError, match=f"{place} uses NumPy .* wrap it in models.BlackBox"):
        action_cost(Cost(**{place: plain}, **rest), LINE, HERE, 0)


def test_a_black_box_that_fails_says_what_it_is_given():
    with pytest.raises(Exception, match=r"given \(states, k\), each with a leading axis, and answers with a number"):
        jax.block_until_ready(
            action_cost(Cost(predict=moved, cost_to_go=BlackBox(lambda x, k: x.sum())), LINE, HERE, 0)
        )


def steer(x, k):
    return np.clip(-2.0 * x[..., :1] + 0.1 * np.asarray(k)[..., None], -0.8, 0.8)


def push(x):
    return 1.5 + 0.0 * x[..., :1]  # more than the action set has


SAME = {
    "steer": Gaussian(lambda x, k: jnp.clip(-2.0 * x[:1] + 0.1 * k, -0.8, 0.8), 0.2),
    "push": Gaussian(lambda x, k: 1.5 + 0.0 * x[:1], 0.2),
}


@pytest.mark.parametrize("follow", ["each", "prior"])
@pytest.mark.parametrize("actions", [LINE, Sampled(-1.0, 1.0, count=16)], ids=["grid", "sampled"])
def test_rollouts_in_numpy_are_those_in_jax_and_one_call(follow, actions):
    calls = []

    def counted(x, u, k):
        calls.append(len(x))
        return move(x, u, k)

    plain = {"steer": Policy(steer, 0.2, batched=True), "push": Policy(push, 0.2)}
    ours = Rollouts(plain, actions, BlackBox(counted), BlackBox(stage), steps=4, follow=follow)
    formula = Rollouts(SAME, actions, moved, staged, steps=4, follow=follow)
    states = jnp.array([[0.4, -0.2], [0.0, 1.0], [-3.0, 0.3]])
    found = jax.jit(jax.vmap(lambda x: ours(x, 2)))(states)
    np.testing.assert_allclose(found, jax.vmap(lambda x: formula(x, 2))(states), rtol=1e-12)
    assert calls == [len(states) * (2 if follow == "each" else 1)] * 4  # every step once, for all of them


def test_a_decision_in_numpy_is_the_one_in_jax():
    def agent(ways, predict, cost):
        later = Rollouts(ways, LINE, predict, cost, steps=5)
        return Composer(ways, Cost(cost, predict=predict, cost_to_go=later), LINE, 0.1, selection="mean")

    plain = {"steer": Policy(steer, 0.2, batched=True), "push": Policy(push, 0.2)}
    ours, theirs = agent(plain, BlackBox(move), BlackBox(stage)), agent(SAME, moved, staged)
    expected = theirs.compiled()(jax.random.key(0), HERE)
    for decide in (ours.compiled(), ours.decide):  # inside a compiled program and outside of one
        found = decide(jax.random.key(0), HERE)
        np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-9)
        np.testing.assert_allclose(found.action, expected.action, rtol=1e-9)


def q_values(x, u):
    return -((u[:, 0] - x[:, 0]) ** 2)


def v_values(x, k):
    return 3.0 - np.abs(x[:, 0]) + 0.1 * k


def test_a_value_is_a_reward_and_costs_its_negative():
    x = jnp.array([0.5, 0.0])
    u = np.asarray(LINE.points)
    price = action_cost(Cost(Value(q_values)), LINE, x, 0)
    np.testing.assert_allclose(price, (u[:, 0] - 0.5) ** 2)
    assert float(LINE.points[jnp.argmin(price)][0]) == 0.5  # the best action is the cheapest one
    later = action_cost(Cost(predict=moved, cost_to_go=Value(v_values, scale=2.0)), LINE, x, 4)
    following = np.array([moved(x, a, 4) for a in u])
    np.testing.assert_allclose(later, -2.0 * v_values(following, np.full(5, 5.0)), rtol=1e-12)
    seen = Value(lambda states: states[:, 0], observe=lambda x, k: x[1:] + k)
    assert float(seen(jnp.array([0.0, 2.0]), 3)) == -5.0


def test_of_several_critics_the_greatest_value_counts():
    left, right = (lambda x, u, s=s: s * u[:, 0] for s in (-1.0, 1.0))
    price = action_cost(Cost(Value([left, right])), LINE, HERE, 0)
    np.testing.assert_allclose(price, -np.abs(np.asarray(LINE.points)[:, 0]))
    agent = Composer(
        {"all": Policy(lambda x: 1, 0.5), "none": Policy(lambda x: 0, 0.5)},
        Cost(Value([lambda x, u: 1.0 * (u == 2), lambda x, u: 2.0 * (u == 0)])), Finite(3), 0.1,
    )  # fmt: skip
    weights = agent.weigh(HERE).weights
    assert weights[1] > 0.9


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Value("critic.zip"), "critic is a str: pass a trained algorithm"),
        (lambda: Value([]), "critic is an empty list"),
        (lambda: Value(q_values, scale=-1.0), "scale = -1.0: pass a positive number"),
    ],
)
@pytest.mark.usefixtures("without_type_checks")
def test_complaints(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_critic_that_does_not_value_each_row_is_told_so():
    with pytest.raises(Exception, match=r"the critic answered with shape \(2,\) to 1 rows"):
        jax.block_until_ready(Value(lambda x: np.zeros(2))(HERE, 0))
