"""A boid as an agent, and a flock in chunks, in turn and by a tree: the same decisions by every route."""

from typing import get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pydantic
import pytest

from policychord.population import Population
from policychord.worlds import FlockState
from policychord.worlds.flock.agents import FORCES, boid, flock_agents, flock_world
from policychord.worlds.flock.flights import simulate_flock
from policychord.worlds.flock.settings import ABLATIONS, SCENARIOS, Ablation, FlockSettings, Scenario, scenario
from policychord_paper.commands import flock as cli

TABLE_S1 = {
    "dt": 0.05, "boids": 40, "grid": 30, "max_speed": 1, "max_acceleration": 3, "vision_angle": 320,
    "separation_radius": 1, "alignment_radius": 3, "cohesion_radius": 12, "separation_variance": 0.1,
    "alignment_variance": 0.1, "cohesion_variance": 0.1, "predicted_variance": 0.01, "desired_variance": 0.01,
    "eps": 0.5,
}  # fmt: skip


@eqx.filter_jit
def seen(env, key):
    return env.observe(env.reset(key))


@eqx.filter_jit
def weigh(composer, view):
    return composer.weigh(view)


def test_defaults_are_table_s1():
    settings = FlockSettings()
    assert {name: getattr(settings, name) for name in TABLE_S1} == TABLE_S1


def test_the_grid_keeps_648_cells_and_leaders_differ_in_numbers_only():
    settings = scenario("leaders")
    env = flock_world(settings)
    agents = flock_agents(settings, env)
    assert isinstance(agents, Population)
    assert agents.count == 40
    assert agents.members.tree.actions.size == 648
    assert sum(agents.members.differs) == 2  # who knows the goal, in the wanted velocity and in the wanted position
    assert agents.names == FORCES


def test_the_position_term_belongs_to_the_energy_and_changes_no_weight():
    settings = scenario("leaders", boids=6, leaders=2)
    env = flock_world(settings)
    leader = boid(settings, env, True)
    view = jax.tree.map(lambda a: a[0], seen(env, jax.random.key(1)))
    terms = eqx.filter_jit(leader.terms)(view)
    np.testing.assert_allclose(np.ptp(terms["position.distance"]), 0.0, atol=1e-9)
    distance = np.asarray(view.position + 0.05 * view.velocity) - np.array(settings.goal)
    np.testing.assert_allclose(terms["position.distance"][0], 50 * distance @ distance)
    both, alone = (weigh(one, view) for one in (leader, leader.replace(model=leader.model.models["velocity"])))
    np.testing.assert_allclose(both.weights, alone.weights, atol=1e-9)


def test_collisions_raise_the_weight_of_separation():
    settings = scenario("milling", boids=2, start="square")
    env = flock_world(settings)
    crash = FlockState(jnp.array([[0.0, 0.0], [0.25, 0.1]]), jnp.full((2, 2), 0.5))
    view = eqx.filter_jit(env.view)(crash, 0)
    careful, careless = (boid(settings.model_copy(update={"collision_term": c}), env, False) for c in (True, False))
    assert weigh(careful, view).weights[0] > weigh(careless, view).weights[0] + 0.05


@pytest.mark.thorough
def test_cells_and_chunks_take_the_flock_the_same_way(monkeypatch):
    common = {"boids": 12, "steps": 8, "seeds": 1, "start_size": 2.0, "collision_term": True}
    pairs = simulate_flock(scenario("polarization", search="pairs", **common))
    monkeypatch.setattr("policychord.worlds.flock.agents.CHUNK", 5)
    cells = simulate_flock(scenario("polarization", search="cells", **common))
    np.testing.assert_allclose(cells.state.position, pairs.state.position, atol=1e-9)
    np.testing.assert_allclose(cells.weights, pairs.weights, atol=1e-8)


@pytest.mark.parametrize(
    ("followers", "update", "leaders"),
    [
        ("couzin", "synchronous", 0),
        ("vicsek", "synchronous", 2),
    ],
)
def test_followers_of_the_literature_fly_with_and_without_leaders(followers, update, leaders):
    trace = simulate_flock(scenario(followers, boids=7, leaders=leaders, steps=5, seeds=2, update=update))
    assert trace.weights.shape == (2, 5, leaders, 3)
    assert np.isfinite(trace.final_state.position).all()
    np.testing.assert_allclose(np.linalg.norm(trace.final_state.velocity[:, leaders:], axis=-1), 1.0)


def test_where_all_lead_nobody_follows():
    env = flock_world(scenario("couzin", boids=7, leaders=7))
    assert (env.agents, env.follower) == (7, None)


def test_a_prior_and_all_900_cells_can_be_set():
    """A bias draws the weights, and the square has the cells of Table S1's d_u = 30^2."""
    env, key = flock_world(FlockSettings(boids=6)), jax.random.key(0)
    view = jax.tree.map(lambda a: a[0], seen(env, key))
    plain, biased, square = (
        boid(FlockSettings(**changes), env, False) for changes in ({}, {"prior": (6.0, 3.0, 1.0)}, {"cells": "square"})
    )
    np.testing.assert_allclose(np.exp(biased.log_prior), [0.6, 0.3, 0.1])
    assert weigh(biased, view).weights[0] > weigh(plain, view).weights[0]
    assert (plain.actions.size, square.actions.size) == (648, 900)
    assert weigh(square, view).mixture.shape == (900,)
    with pytest.raises(pydantic.ValidationError, match="takes no notice of prior"):
        FlockSettings(gate="cheapest", prior=(1.0, 2.0, 1.0))


@pytest.mark.thorough
def test_fixed_weights_stay_a_third():
    fixed = simulate_flock(scenario("polarization", "fixed-weights", boids=6, steps=4, seeds=2))
    np.testing.assert_allclose(fixed.weights, 1 / 3)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_is_valid(name):
    assert scenario(name).steps == SCENARIOS[name]["steps"]


def test_misspelt_and_contradictory_settings_are_errors():
    for given in ({"boidz": 3}, {"separation_radius": 4.0}, {"leaders": 50}, {"form": "original"}, {"eps": 0.0},
                  {"dt": float("nan")}, {"grid": 2}, {"fixed_weights": True, "collision_term": True},
                  {"search": "tree", "update": "sequential"}):  # fmt: skip
        with pytest.raises(pydantic.ValidationError):
            FlockSettings(**given)
    with pytest.raises(ValueError, match="no collision term"):
        scenario("polarization", "no-collision-term")
    with pytest.raises(ValueError, match="scenario = 'herd'"):
        scenario("herd")
    with pytest.raises(ValueError, match="ablation"):
        scenario("milling", "no-wings")


def test_what_can_be_chosen_is_named_the_same_everywhere():
    assert get_args(Scenario) == tuple(SCENARIOS) == get_args(cli.Scenario)
    assert get_args(Ablation) == tuple(ABLATIONS) == get_args(cli.Ablation)
