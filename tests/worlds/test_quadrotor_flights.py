"""Real flights, few and short: what is set is what is flown."""

import jax.numpy as jnp
import numpy as np
import pytest

from policychord.actions import Grid
from policychord.loops import rollout
from policychord.models import Cost, action_cost
from policychord.worlds.quadrotor.agents import (  # fmt: skip
    _hover_model,
    _pilot,
    _regulator,
    agent_and_world,
    composer,
    controllers,
    quadrotor_world,
)
from policychord.worlds.quadrotor.flights import fly_controller
from policychord.worlds.quadrotor.physics import HOVER, LARGEST_THRUST, LEAST_THRUST, QuadrotorView, saturated
from policychord.worlds.quadrotor.settings import CompositionSettings, CostWeights, Gains, QuadrotorSettings

SHORT = QuadrotorSettings(seeds=6, steps=40)
VIEW = QuadrotorView(jnp.array([0.1, 0.4, 1.1, 0.2, -0.1, 0.3]), jnp.array(-0.08))


def test_a_prior_of_the_controllers_can_be_set():
    weights = [
        composer(SHORT, "pd", CompositionSettings(prior=prior, eps=5.0)).weigh(VIEW).weights
        for prior in ((1.0, 1.0), (3.0, 1.0))
    ]
    assert weights[1][0] > weights[0][0] + 0.1
    with pytest.raises(ValueError, match="takes no notice of prior"):
        CompositionSettings(gate="cheapest", prior=(3.0, 1.0))


@pytest.mark.parametrize("horizon", ["one-step", "cost-to-go"])
def test_the_price_of_a_thrust_is_that_of_the_predicted_state(horizon):
    """The short form of the quadratic against the model with a matrix and a prediction."""
    how = CompositionSettings(horizon=horizon, points=7)
    agent = composer(SHORT, "pd", how)
    A, B = _hover_model()
    M = _regulator(SHORT.lqr_baseline)[1] if horizon == "cost-to-go" else np.diag(SHORT.cost.state)
    long = Cost(
        lambda view, u, k: SHORT.cost.thrust * jnp.sum((u - HOVER) ** 2),
        predict=lambda view, u, k: A @ view.x + B @ (u - HOVER),
        state_cost=M,
        target=lambda k: quadrotor_world(SHORT, "pd").path[k],
    )
    ours, theirs = (action_cost(model, agent.actions, VIEW, 5) for model in (agent.model, long))
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_cost_to_go_solves_its_equation():
    """P = Q + A^T P A - A^T P B K: what is to come is this step and what is to come from the next."""
    weights = SHORT.lqr_baseline
    (A, B), (K, P) = _hover_model(), _regulator(weights)
    np.testing.assert_allclose(P, np.diag(weights.state) + A.T @ P @ A - A.T @ P @ B @ K, rtol=1e-8, atol=1e-10)
    assert np.abs(np.linalg.eigvals(A - B @ K)).max() < 1


def test_the_exact_model_is_the_limit_of_small_steps():
    A, B = _hover_model(exact=True)
    euler_a, _ = _hover_model()
    assert A[0, 4] == pytest.approx(9.8 * 0.02**2 / 2)
    assert euler_a[0, 4] == 0.0
    assert B[2, 0] == pytest.approx(0.02**2 / 2 / 0.027)


@pytest.mark.parametrize("experiment", ["pd", "lqr"])
def test_stabilising_goes_nowhere_and_tracking_does(experiment):
    """At rest, away from the path, the one hangs in the air and the other sets out."""
    flown = controllers(SHORT, experiment)
    still = QuadrotorView(jnp.array([0.3, 0.0, 1.4, 0.0, 0.0, 0.0]), jnp.zeros(()))
    np.testing.assert_allclose(flown["stabilise"](still, 3), HOVER, rtol=1e-9)
    assert np.abs(np.asarray(flown["track"](still, 3)) - HOVER).max() > 0.01


def test_a_wide_grid_does_not_move_the_mean():
    """Cut at the limits, a primitive's mean is not its command; on the wide grid it is."""
    steep = QuadrotorView(jnp.array([0.0, 0.0, 2.5, 0.0, 0.0, 0.0]), jnp.zeros(()))
    asked = np.asarray(composer(SHORT, "lqr", CompositionSettings()).primitives[1].mean(steep, 3))
    off = {}
    for margin in (0.0, 0.04):
        agent = composer(SHORT, "lqr", CompositionSettings(margin=margin))
        pi = np.asarray(agent.problem(steep, 3).pi)[:, 1]
        off[margin] = np.abs(np.asarray(agent.actions.mean(jnp.asarray(pi))) - asked).max()
    assert isinstance(agent.actions, Grid)
    assert off[0.0] > 0.005  # N; most of a standard deviation
    assert off[0.04] < 1e-5


@pytest.fixture(scope="module")
def flights():
    who = {"baseline": None, "track": None, "mixture": CompositionSettings(gate="prior", selection="mean")}
    return {name: fly_controller(SHORT, "pd", name, how) for name, how in who.items()}


def test_all_meet_the_same_disturbances(flights):
    assert list(flights) == ["baseline", "track", "mixture"]
    times = [flight.impulse_time for flight in flights.values()]
    np.testing.assert_array_equal(times[0], times[1])
    np.testing.assert_array_equal(times[0], times[2])
    np.testing.assert_array_equal(flights["mixture"].stabilising, 0.5)
    again = fly_controller(SHORT, "pd", "baseline", None)
    np.testing.assert_array_equal(again.cost, flights["baseline"].cost)
    assert flights["baseline"].distance.shape == (6, 41)
    assert flights["baseline"].distance[0, 0] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("baseline", {"pid_baseline": Gains(x=(0.5, 0.05, 0.2), z=(1.25, 0.05, 0.5), pitch=(70000.0, 20000.0))}),
        ("baseline", {"cost": CostWeights(state=(2.0, 0.1, 1.0, 0.1, 0.1, 0.1), thrust=0.1)}),
        ("baseline", {"disturbance": "centre"}),
        ("baseline", {"scale": 0.5}),
        ("baseline", {"force_sd": 0.05}),
        ("baseline", {"thrust_sd": 0.02}),
        ("baseline", {"drag": 0.04}),
        ("baseline", {"start": (0.0, 0.0, 1.1, 0.0, 0.0, 0.0)}),
        ("baseline", {"seed": 1}),
        ("mixture", {"pd_stabilise": Gains(x=(0.0, 0.0, 0.1), z=(0.0, 0.0, 0.1), pitch=(70000.0, 20000.0))}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else value,
)
def test_what_is_set_changes_what_happens(flights, name, change):
    how = CompositionSettings(gate="prior", selection="mean") if name == "mixture" else None
    changed = fly_controller(SHORT.model_copy(update=change), "pd", name, how)
    assert np.abs(changed.cost - flights[name].cost).max() > 1e-3


def test_a_pilot_is_an_agent_with_fixed_weights():
    flown = controllers(SHORT, "lqr")
    alone, mixed = (_pilot(SHORT, "lqr", name) for name in ("baseline", "fixed 50/50"))
    decision = alone.decide(None, VIEW, 0, alone.start())
    np.testing.assert_allclose(decision.action, np.clip(flown["baseline"](VIEW, 0), LEAST_THRUST, LARGEST_THRUST))
    np.testing.assert_array_equal(decision.weights, [1.0, 0.0])
    half = (saturated(flown["stabilise"](VIEW, 0)) + saturated(flown["track"](VIEW, 0))) / 2
    np.testing.assert_allclose(mixed.decide(None, VIEW, 0, mixed.start()).action, half)


@pytest.mark.parametrize("name", ["baseline", "fixed 50/50"])
def test_fixed_weights_claim_no_optimum(name):
    """They solve no problem, so that no gap is known."""
    agent, env = agent_and_world(SHORT, "pd", name, None)
    trace = rollout(agent, env, steps=3, episodes=2)
    assert np.isnan(trace.gap).all()
    assert np.isnan(trace.distance).all()


def test_the_fixed_mixture_is_the_composer_without_its_gate(flights):
    """On the wide grid, where the mean of a primitive is its command."""
    wide = fly_controller(SHORT, "pd", "", CompositionSettings(gate="prior", selection="mean", margin=0.04))
    np.testing.assert_allclose(fly_controller(SHORT, "pd", "fixed 50/50", None).cost, wide.cost, rtol=1e-3)
