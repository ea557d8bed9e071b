"""The simulation against a slow, plainly written one: 20 steps of 10 boids, both updates, every kind of cost."""

import jax
import numpy as np
import pytest

from policychord.loops import streams_of
from policychord.worlds.flock.flights import simulate_flock
from policychord.worlds.flock.settings import scenario

from .flock_reference import GRID, fly

STEPS, BOIDS = 20, 10


def uniforms(seed):
    """The numbers that the agents' draws use: one for each step and boid."""
    own = streams_of(jax.random.key(seed), 0).agent

    def number(k, i):
        return jax.random.uniform(jax.random.fold_in(jax.random.fold_in(own, k), i), dtype=float)

    return np.array(jax.vmap(lambda k: jax.vmap(lambda i: number(k, i))(np.arange(BOIDS)))(np.arange(STEPS)))


def test_grid_has_648_cells():
    assert len(GRID) == 648


CASES = {
    "leaders": ({"leaders": 3, "start_size": 2.0}, {"leaders": 3, "goal": np.array([-15.0, -15.0])}),
    # a start that is close enough to collide
    "milling": ({"start": "square", "start_size": 1.2}, {"collision_term": True}),
}


@pytest.mark.parametrize(
    ("name", "update", "selection", "tol", "atol"),
    [
        # the goal is far, and rounding of its cost allows no smaller gap
        ("leaders", "sequential", "sample", 1e-16, 1e-7),
        ("milling", "synchronous", "mean", 1e-18, 1e-9),
    ],
)
def test_agrees_with_the_plain_simulation(name, update, selection, tol, atol):
    changes, given = CASES[name]
    settings = scenario(
        name, boids=BOIDS, steps=STEPS, seeds=1, seed=7, selection=selection, update=update, tol=tol, **changes
    )
    trace = simulate_flock(settings)
    assert trace.converged.all()
    position, velocity, weights = fly(
        trace.state.position[0, 0], trace.state.velocity[0, 0], STEPS, sequential=update == "sequential",
        uniforms=uniforms(7) if selection == "sample" else None, **given,
    )  # fmt: skip
    np.testing.assert_allclose(trace.state.position[0], position, rtol=0, atol=atol)
    np.testing.assert_allclose(trace.state.velocity[0], velocity, rtol=0, atol=atol)
    np.testing.assert_allclose(trace.weights[0], weights, rtol=0, atol=atol)
