"""Cost-to-go from a matrix and from a fit, and what `diagnose` says about horizon, model and selection."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import Composer
from policychord.actions import Grid
from policychord.models import Cost, Random, Rollouts, diagnose, fit_cost_to_go, linearise, riccati
from policychord.primitives import Gaussian

A, B = np.array([[1.0, 0.3], [0.0, 1.0]]), np.array([[0.0], [0.3]])
Q, R = np.diag([1.0, 0.1]), np.array([[0.1]])
LINE = Grid(-1.0, 1.0, 21)


def predict(x, u, k):
    return jnp.asarray(A) @ x + jnp.asarray(B) @ u


def stage(x, u, k):
    return x @ jnp.asarray(Q) @ x + 0.1 * u[0] ** 2


def test_riccati_is_the_cost_of_its_own_controller():
    gain, P = riccati(A, B, Q, R)
    x, total = np.array([0.7, -0.4]), 0.0
    for _ in range(400):
        u = -gain @ x
        total += x @ Q @ x + u @ R @ u
        x = A @ x + B @ u
    np.testing.assert_allclose(total, np.array([0.7, -0.4]) @ P @ np.array([0.7, -0.4]), rtol=1e-10)
    found = linearise(predict, [0.2, 0.1], [0.3])
    np.testing.assert_allclose(found[0], A, atol=1e-12)
    np.testing.assert_allclose(found[1], B, atol=1e-12)
    with pytest.raises(ValueError, match="no controller keeps the cost finite"):
        riccati(2 * np.eye(2), [[1.0], [0.0]], np.eye(2), [[1.0]])
    with pytest.raises(ValueError, match="Q has shape"):
        riccati(A, B, np.eye(3), R)


def test_a_fit_to_rollouts_is_as_good_as_it_says(rng):
    pair = [Gaussian(lambda x, k: -x[1:], 0.1), Gaussian(lambda x, k: -0.2 * x[:1] - 0.5 * x[1:], 0.1)]
    rollouts = Rollouts(pair, Grid(-50.0, 50.0, 3), predict, stage, steps=5)
    states = jnp.asarray(rng.uniform(-1, 1, (200, 2)))
    exact = fit_cost_to_go(rollouts, states, degree=2)  # linear controllers in a linear world: a quadratic
    assert exact.error < 1e-6
    assert exact.explained > 1 - 1e-9
    fresh = jnp.asarray(rng.uniform(-1, 1, (50, 2)))
    np.testing.assert_allclose(
        jax.vmap(lambda x: exact(x, 0))(fresh), jax.vmap(lambda x: rollouts(x, 0))(fresh), atol=1e-5
    )
    poor = fit_cost_to_go(rollouts, states, degree=1)
    off = np.asarray(
        jax.vmap(lambda x: poor._values(jnp.asarray(x)))(fresh) - jax.vmap(lambda x: rollouts.each(x, 0))(fresh)
    )
    assert poor.error == pytest.approx(np.sqrt(np.mean(off**2)), rel=0.4)  # and it says so
    network = fit_cost_to_go(rollouts, states, features=lambda x: x, hidden=16)
    assert network.explained > 0.95 > poor.explained
    with pytest.raises(ValueError, match=r"held_out = 1\.5"):
        fit_cost_to_go(rollouts, states, held_out=1.5)


PUSHES = {"left": Gaussian([-0.8], 0.15), "right": Gaussian([0.8], 0.15)}


def pushed(steps, price=stage):
    later = Rollouts(PUSHES, LINE, predict, price, steps=steps)
    return Composer(PUSHES, Cost(predict=predict, cost_to_go=later), LINE, 0.05, selection="mean")


def test_diagnose_tells_a_short_horizon_from_a_long_one(rng):
    states = jnp.asarray(rng.uniform(-1, 1, (12, 2)))
    short = diagnose(pushed(1, lambda x, u, k: 100 * x[0] ** 2), states)  # a push shows two steps later
    assert short.moved > 0.1
    assert short.trials["twice the steps"].helps
    assert any("1 steps are too few" in one for one in short.warnings)
    assert "weights move by" in str(short)
    ends = diagnose(pushed(20, lambda x, u, k: jnp.where(k < 4, 5 * x[0] ** 2, 0.0)), states)
    assert ends.moved < 1e-6
    assert not any("too few" in one for one in ends.warnings)
    ways = {"home": Gaussian(lambda x: -x[:1] - 1.5 * x[1:], 0.15), "stay": Gaussian([0.0], 0.15)}
    price = Cost(predict=predict, state_cost=lambda x, k: 100 * x[0] ** 2)
    near = Composer(ways, price, LINE, 0.05, selection="mean")
    found = diagnose(near, jnp.asarray(rng.uniform(-1, 1, (40, 2))), tried=40)
    assert any("one step" in one for one in found.warnings)
    assert found.trials["rollouts"].helps


def test_more_steps_are_not_asked_for_where_the_models_own_cost_does_not_fall(rng):
    """Steps far away cost at random, so a longer horizon moves the weights and saves nothing."""

    def stage(x, u, k):
        return jnp.where(k < 2, 5 * (x[0] - u[0]) ** 2, 40.0 * jnp.sin(1e4 * (x[0] + 3 * x[1]) + k))

    states = jnp.asarray(rng.uniform(-1, 1, (12, 2)))
    found = diagnose(pushed(2, stage), states)
    assert found.moved > 0.1
    assert not found.trials["twice the steps"].helps
    assert not any("Raise steps" in one for one in found.warnings)


def test_states_in_which_nothing_differs_do_not_count(rng):
    """Where all primitives do the same, or all that they do costs the same, weights say nothing about the cost."""

    def agent(unit=1.0):
        ways = {"left": Gaussian(lambda x: -0.8 * x[1:], 0.15), "right": Gaussian(lambda x: 0.8 * x[1:], 0.15)}
        return Composer(ways, Cost(lambda x, u, k: unit * x[1] * (x[0] - u[0]) ** 2), LINE, 0.05)

    x = rng.uniform(0.5, 1, 10)
    differ, same = np.stack([x, np.ones(10)], axis=1), np.stack([np.tile(x, 9), np.zeros(90)], axis=1)
    alone, together = (diagnose(agent(), jnp.asarray(s)) for s in (differ, np.concatenate([differ, same])))
    assert alone.counts == 1.0
    assert together.counts == pytest.approx(0.1)
    assert together.contrast == pytest.approx(alone.contrast)
    assert together.moved_by_cost == pytest.approx(alone.moved_by_cost)
    assert together.moved_by_cost > 0.1
    assert not any("hardly counts" in one for one in together.warnings)
    nowhere = diagnose(agent(), jnp.asarray(same))
    assert nowhere.counts == 0.0
    assert any("do the same in all of these states" in one for one in nowhere.warnings)


def test_every_change_that_diagnose_asks_for_does_what_it_says(rng):
    """Applied, the warning is gone or the model's own cost is lower."""
    states = jnp.asarray(rng.uniform(-1, 1, (12, 2)))

    def flat(unit):
        return Composer(PUSHES, Cost(lambda x, u, k: unit * (x[0] - u[0]) ** 2), LINE, 0.5)

    before = diagnose(flat(0.3), states)
    assert f"Multiply all costs by about {before.unit:.0f}." in before.warnings[0]
    assert before.unit > 1
    assert "not known until the cost counts" in str(before)
    assert not before.trials  # and nothing else is asked for
    assert len(before.warnings) == 1
    assert not any("hardly counts" in one for one in diagnose(flat(0.3 * before.unit), states).warnings)

    def loose(sd):
        ways = {"follow": Gaussian(lambda x: 0.9 * x[:1], sd), "lag": Gaussian(lambda x: 0.1 * x[:1], sd)}
        return Composer(ways, Cost(lambda x, u, k: 20 * (x[0] - u[0]) ** 2), Grid(-2.0, 2.0, 201), 0.05)

    states = jnp.asarray(rng.uniform(-1, 1, (60, 2)))
    wide = diagnose(loose(0.3), states, tried=60)
    assert any("with 0.25 times the spread" in one and "Lower sd" in one for one in wide.warnings)
    narrow = diagnose(loose(0.3 * 0.25), states, tried=60)
    saved = wide.trials["0.25 times the spread"]
    assert saved.cost - saved.saved == pytest.approx(next(iter(narrow.trials.values())).cost)  # as was promised
    assert saved.saved > 0


def test_where_the_primitives_are_the_limit_the_posterior_is_named_and_the_model_asked_for(rng):
    """Both pushes are too strong, and their narrow spreads leave little between them."""
    ways = {"left": Gaussian([-0.8], 0.3), "far left": Gaussian([-0.5], 0.3)}

    def agent(predict=predict):
        model = Cost(predict=predict, state_cost=lambda x, k: 30 * (x[0] + x[1]) ** 2)
        return Composer(ways, model, Grid(-2.0, 2.0, 81), 0.05, selection="mean")

    states = jnp.asarray(rng.uniform(-1, 0, (12, 2)))
    found = diagnose(agent(), states)
    assert found.trials["posterior"].helps
    assert any("Check the model first" in one and "selection='posterior'" in one for one in found.warnings)
    actions = rng.uniform(-1, 1, (12, 1))
    after = jax.vmap(lambda x, u: predict(x, u, 0))(states, jnp.asarray(actions))
    checked = diagnose(agent(), states, actions=actions, following=after)
    assert any("selection='posterior'" in one for one in checked.warnings)
    assert not any("Check the model first" in one for one in checked.warnings)
    wrong = diagnose(agent(lambda x, u, k: predict(x, -u, k)), states, actions=actions, following=after)
    assert any("model is off" in one for one in wrong.warnings)
    assert not any("posterior" in one for one in wrong.warnings)


def test_a_world_with_chance_is_looked_at_and_nothing_is_tried_in_it(rng):
    model = Cost(predict=Random(lambda x, u, k, key: predict(x, u, k) + 0.1 * jax.random.normal(key, (2,)), samples=4),
                 state_cost=lambda x, k: 10 * x[1] ** 2)  # fmt: skip
    found = diagnose(Composer(PUSHES, model, LINE, 0.05), jnp.asarray(rng.uniform(-1, 1, (12, 2))))
    assert found.trials == {}
    assert found.contrast > 0


def test_diagnose_says_when_a_cost_is_too_flat_to_count(rng):
    """Costs are in nats: in too small a unit the weights are those without any cost."""
    states = jnp.asarray(rng.uniform(-1, 1, (12, 2)))
    for unit, said in ((0.01, True), (10.0, False)):
        agent = Composer(PUSHES, Cost(lambda x, u, k, unit=unit: unit * (x[0] - u[0]) ** 2), LINE, 0.05)
        found = diagnose(agent, states)
        assert any("the cost hardly counts" in one for one in found.warnings) == said
        assert found.contrast == pytest.approx(unit * float(np.mean(np.abs(4 * 0.8 * states[:, 0]))), rel=0.05)
    assert found.moved_by_cost > 0.1


def test_diagnose_measures_the_model_and_warns_of_hollow_means(rng):
    states, actions = jnp.asarray(rng.uniform(-1, 1, (12, 2))), rng.uniform(-1, 1, (12, 1))
    agent = pushed(2)
    truly = jax.vmap(lambda x, u: predict(x, u, 0))(states, jnp.asarray(actions))
    assert diagnose(agent, states, actions=actions, following=truly).model_error < 1e-12
    late = states + 0.3 * (truly - states)
    off = diagnose(agent, states, actions=actions, following=late)
    assert off.model_error == pytest.approx(0.7 / 0.3, rel=1e-6)
    assert any("model is off" in one for one in off.warnings)
    # what is missed everywhere is learned by a planner that is given `like`; what comes and goes is not
    for error, learned in ((jnp.array([0.0, 0.01]), True), (0.01 * rng.normal(size=(12, 2)), False)):
        seen = diagnose(agent, states, actions=actions, following=truly + error)
        assert seen.constant == learned
        assert any("like=observation" in one for one in seen.warnings) == learned
    # either push is good, none is not: the mean of both is the worst of all
    apart = Composer(PUSHES, Cost(lambda x, u, k: -4.0 * u[0] ** 2), LINE, 0.5, selection="mean")
    found = diagnose(apart, states)
    assert found.hollow == 1.0
    assert found.suits == "mode"
    assert any("no primitive wants" in one for one in found.warnings)
    assert not diagnose(apart.replace(selection="mode"), states).warnings
    with pytest.raises(ValueError, match="belong together"):
        diagnose(agent, states, actions=actions)


def test_diagnose_says_where_the_grid_cuts_a_primitive_off():
    """Compiled loops do not look at it, since some agents are defined on a grid that cuts; `diagnose` does."""
    push = {"follow": Gaussian(lambda x, k: x, 0.2), "rest": Gaussian([0.0], 0.2)}
    agent = Composer(push, Cost(lambda x, u, k: u[0] ** 2), Grid(-1.0, 1.0, 41), 0.5)
    states = jnp.array([[0.0], [0.3], [1.0], [1.0]])  # twice on the border: half of the Gaussian is cut off
    found = diagnose(agent, states)
    assert found.cut == {"follow": 0.5}
    assert any("in 50% of the states the grid cuts primitive 'follow' off" in one for one in found.warnings)
    inside = diagnose(agent, 0.5 * states)
    assert inside.cut == {}
    assert not any("grid" in one for one in inside.warnings)
