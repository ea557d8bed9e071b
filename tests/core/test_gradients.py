"""Derivatives of the optimum against central differences of the solver itself."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.nn import log_softmax, softmax
from scipy import special

from policychord import energy, problem, solve

# Cholesky below forty primitives, conjugate gradients above
SIZES = {"dense": (12, 4), "wide": (60, 44)}
TOL = 1e-20

ROUTES = ("compiled", "jax")

each_route = pytest.mark.parametrize("route", ROUTES)


class Inputs(NamedTuple):
    """Everything the weights depend on, without constraints, so that any direction is allowed."""

    cost: jax.Array
    logits: jax.Array  # of the primitives, which are given as log_pi
    log_eps: jax.Array
    prior_logits: jax.Array


def inputs(size, seed=0):
    d, n = SIZES[size]
    rng = np.random.default_rng([seed, d])
    return Inputs(rng.normal(size=d), rng.normal(size=(d, n)), np.array(-1.0), rng.normal(size=n))


def directions(size, seed=1):
    """A direction for each input alone."""
    rng, zero = np.random.default_rng(seed), jax.tree.map(np.zeros_like, inputs(size))
    return {name: zero._replace(**{name: rng.normal(size=getattr(zero, name).shape)}) for name in zero._fields}


def built(given: Inputs):
    return problem(
        log_pi=log_softmax(given.logits, axis=-2),
        action_cost=given.cost,
        eps=jnp.exp(given.log_eps),
        prior=softmax(given.prior_logits),
    )


def built_without_jax(given: Inputs):
    return problem(
        log_pi=special.log_softmax(given.logits, axis=-2),
        action_cost=given.cost,
        eps=np.exp(given.log_eps),
        prior=special.softmax(given.prior_logits),
    )


def loss(given: Inputs, on_weights, on_log_weights, route):
    """Any functional of the weights and their logarithms."""
    found = solve(built(given), TOL, route=route)
    return on_weights @ jnp.sin(3.0 * found.weights) + on_log_weights @ found.log_weights


def loss_without_jax(given: Inputs, on_weights, on_log_weights):
    found = solve(built_without_jax(given), TOL, route="compiled")
    return on_weights @ np.sin(3.0 * found.weights) + on_log_weights @ found.log_weights


_gradients = {route: jax.jit(jax.grad(partial(loss, route=route))) for route in ROUTES}


def readouts(size):
    n, rng = SIZES[size][1], np.random.default_rng(2)
    direct, logarithmic = rng.normal(size=(2, n))
    return {"weights": (direct, np.zeros(n)), "log_weights": (np.zeros(n), logarithmic), "both": (direct, logarithmic)}


def moved(given, direction, step):
    return jax.tree.map(lambda x, v: x + step * v, given, direction)


def central(function, given, direction, step=1e-4):
    """Central difference, extrapolated once, so that truncation is of the fourth order."""

    def slope(h):
        return (function(moved(given, direction, h)) - function(moved(given, direction, -h))) / (2 * h)

    return (4 * slope(step / 2) - slope(step)) / 3


def inner(gradient, direction):
    return sum(np.sum(np.asarray(g) * v) for g, v in zip(gradient, direction, strict=True))


@pytest.mark.parametrize("size", ["dense", pytest.param("wide", marks=pytest.mark.thorough)])
def test_gradients_match_central_differences_and_each_other(size):
    given = inputs(size)
    for readout, seen in readouts(size).items():
        gradients = {route: _gradients[route](given, *seen) for route in ROUTES}
        for name, direction in directions(size).items():
            expected = central(lambda x, seen=seen: loss_without_jax(x, *seen), given, direction)
            for route in ROUTES:
                found = inner(gradients[route], direction)
                case = f"d {readout} / d {name} by {route}"
                np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8, err_msg=case)
        for one, other in zip(*gradients.values(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


def test_gradient_in_probabilities_along_the_simplex():
    """pi and prior are given as probabilities; directions keep their sums."""
    p = built_without_jax(inputs("dense"))
    rng, (d, n) = np.random.default_rng(3), p.pi.shape
    seen = rng.normal(size=n)
    turn, tilt = rng.normal(size=(d, n)), rng.normal(size=n)
    turn, tilt = p.pi * (turn - (p.pi * turn).sum(0)), (tilt - tilt.mean()) / (10 * n)

    def value(pi, prior):
        return seen @ solve(problem(pi=pi, action_cost=p.action_cost, eps=p.eps, prior=prior), TOL).weights

    given = (p.pi, np.exp(p.log_prior))
    gradient = jax.jit(jax.grad(value, argnums=(0, 1)))(*given)
    for direction in ((turn, np.zeros(n)), (np.zeros((d, n)), tilt)):
        expected = central(lambda x: value(*x), given, direction)
        np.testing.assert_allclose(inner(gradient, direction), expected, rtol=1e-6, atol=1e-8)


def test_envelope_theorem():
    """The gradient of the optimal energy is its partial gradient: dV*/ds = Pi w."""
    p = built_without_jax(inputs("dense"))

    def optimal_energy(cost):
        moving = p._replace(action_cost=cost)
        return energy(moving, solve(moving, TOL).weights)

    gradient = jax.jit(jax.grad(optimal_energy))(p.action_cost)
    np.testing.assert_allclose(gradient, p.pi @ solve(p, TOL).weights, rtol=0, atol=1e-10)


@each_route
def test_gradient_under_vmap(route):
    batch = [inputs("dense", seed) for seed in range(3)]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *batch)
    seen = readouts("dense")["both"]
    together = jax.jit(jax.vmap(lambda x: jax.grad(loss)(x, *seen, route)))(stacked)
    for k, given in enumerate(batch):
        for field, alone in zip(together, _gradients[route](given, *seen), strict=True):
            np.testing.assert_allclose(field[k], alone, rtol=1e-9, atol=1e-12)


@each_route
def test_jacobian(route):
    """Reverse mode maps over cotangents alone; for the cost the Jacobian of ln w is known."""
    p = built_without_jax(inputs("dense"))

    def log_weights(cost):
        return solve(p._replace(action_cost=cost), TOL, route=route).log_weights

    found = jax.jit(jax.jacrev(log_weights))(p.action_cost)
    # (K D + eps) d ln w + c = -Pi^T ds, with w . d ln w = 0
    w = solve(p, TOL).weights
    curvature = p.pi.T @ (p.pi / (p.pi @ w)[:, None])
    system = np.block([[curvature * w + p.eps * np.eye(4), np.ones((4, 1))], [w[None], np.zeros((1, 1))]])
    expected = np.linalg.solve(system, np.vstack([-p.pi.T, np.zeros((1, 12))]))[:4]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@each_route
def test_gradient_under_vmap_over_the_cost_alone(route):
    p, costs = built_without_jax(inputs("dense")), np.stack([inputs("dense", seed).cost for seed in range(3)])
    seen = readouts("dense")["weights"][0]

    def value(cost, pi):
        return seen @ solve(problem(pi=pi, action_cost=cost, eps=0.3), TOL, route=route).weights

    slope = jax.grad(value, argnums=(0, 1))
    together = jax.jit(jax.vmap(slope, in_axes=(0, None)))(costs, p.pi)
    spread = jax.jit(jax.vmap(slope))(costs, np.broadcast_to(p.pi, (3, *p.pi.shape)))
    for one, other in zip(together, spread, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@each_route
def test_gradient_of_a_batch_with_shared_primitives(route):
    """The gradient of what is shared is the sum over those who share it."""
    p, costs = built_without_jax(inputs("dense")), np.stack([inputs("dense", seed).cost for seed in range(3)])
    seen = readouts("dense")["weights"][0]

    def value(pi, seen):
        found = solve(problem(pi=pi, action_cost=costs, eps=0.3), TOL, route=route)
        return jnp.sum(found.weights * seen)

    slope = jax.jit(jax.grad(value))
    together = slope(p.pi, np.tile(seen, (3, 1)))
    apart = sum(slope(p.pi, np.eye(3)[:, k : k + 1] * seen) for k in range(3))
    np.testing.assert_allclose(together, apart, rtol=1e-9, atol=1e-12)


@each_route
def test_gradient_inside_scan(route):
    """A chain in which each step's cost depends on the weights before, started warm from them."""
    p = built_without_jax(inputs("dense"))
    seen = readouts("dense")["weights"][0]

    def step(weights, push):
        cost = p.action_cost + push * (p.pi @ weights)
        after = solve(p._replace(action_cost=cost), TOL, start=weights, route=route).weights
        return after, seen @ after

    def value(drive):
        return jnp.sum(jax.lax.scan(step, jnp.exp(p.log_prior), drive)[1])

    drive, direction = np.array([0.5, -1.0, 2.0]), np.array([1.0, 0.3, -0.7])
    both = jax.jit(jax.value_and_grad(value))
    gradient, expected = both(drive)[1], central(lambda x: both(*x)[0], (drive,), (direction,))
    np.testing.assert_allclose(gradient @ direction, expected, rtol=1e-6, atol=1e-8)


@each_route
def test_forward_mode(route):
    given, seen = inputs("dense"), readouts("dense")["both"]
    forward = jax.jit(lambda x, v: jax.jvp(lambda y: loss(y, *seen, route), (x,), (v,))[1])
    for name, direction in directions("dense").items():
        expected = central(lambda x: loss_without_jax(x, *seen), given, direction)
        np.testing.assert_allclose(forward(given, direction), expected, rtol=1e-6, atol=1e-8, err_msg=name)


def test_forward_mode_of_a_batch_that_shares_its_primitives():
    """Maps over tangents and over problems: the Jacobian by columns is the one by rows."""
    p, costs = built_without_jax(inputs("dense")), np.stack([inputs("dense", seed).cost for seed in range(2)])

    def log_weights(cost, pi):
        return solve(problem(pi=pi, action_cost=cost, eps=0.3), TOL).log_weights

    for argument in (0, 1):
        by_columns, by_rows = (
            jax.jit(jax.vmap(jacobian(log_weights, argnums=argument), in_axes=(0, None)))(costs, p.pi)
            for jacobian in (jax.jacfwd, jax.jacrev)
        )
        np.testing.assert_allclose(by_columns, by_rows, rtol=1e-9, atol=1e-11)


def test_forward_and_backward_are_transposes_of_each_other():
    p = built_without_jax(inputs("dense"))
    seen = readouts("dense")["weights"][0]

    def log_weights(cost):
        return solve(p._replace(action_cost=cost), TOL).log_weights

    way = directions("dense")["cost"].cost
    forward = jax.jit(lambda v: jax.jvp(log_weights, (p.action_cost,), (v,))[1])
    back = jax.jit(lambda v: jax.vjp(log_weights, p.action_cost)[1](v)[0])
    np.testing.assert_allclose(seen @ forward(way), back(seen) @ way, rtol=1e-10)
    # both are linear, so each has a derivative and a transpose: the other one
    np.testing.assert_allclose(jax.jvp(back, (seen,), (seen,))[1], back(seen), rtol=1e-12)
    (turned,) = jax.linear_transpose(back, seen)(way)
    np.testing.assert_allclose(turned, forward(way), rtol=1e-10)


def test_second_derivatives_of_the_compiled_route_say_where_to_find_them():
    p = built_without_jax(inputs("dense"))

    def first(cost):
        return solve(p._replace(action_cost=cost), TOL).log_weights[0]

    with pytest.raises(TypeError, match='second derivatives of `solve` need route="jax"'):
        jax.hessian(first)(p.action_cost)


@pytest.mark.thorough
def test_second_derivatives():
    """The matrix of second derivatives along four directions, one for each input."""
    given, seen = inputs("dense"), readouts("dense")["both"]
    ways = list(directions("dense").values())

    def along(steps, loss):
        point = given
        for step, direction in zip(steps, ways, strict=True):
            point = moved(point, direction, step)
        return loss(point)

    found = jax.jit(jax.hessian(lambda steps: along(steps, lambda x: loss(x, *seen, "jax"))))(np.zeros(4))
    np.testing.assert_allclose(found, found.T, rtol=1e-8, atol=1e-10)

    def value(steps):
        return along(steps, lambda x: loss_without_jax(x, *seen))

    for row, one in zip(found, np.eye(4), strict=True):
        for entry, other in zip(row, np.eye(4), strict=True):
            expected = central(
                lambda x, other=other: central(lambda y: value(*y), x, (other,), 1e-3), (np.zeros(4),), (one,), 1e-3
            )
            np.testing.assert_allclose(entry, expected, rtol=1e-5, atol=1e-5)


@each_route
def test_gradient_is_finite_where_weights_vanish(route):
    """A primitive that costs 1e4 more gets weight exp(-1e5): its derivative is zero, not a number made of 0/0."""
    pi, cost = np.eye(3), np.array([0.0, 1.0, 1e4])

    def value(cost):
        return jnp.sum(jnp.arange(3.0) * solve(problem(pi=pi, action_cost=cost, eps=0.1), route=route).weights)

    gradient = jax.jit(jax.grad(value))(cost)
    w = np.exp(-np.array([0.0, 1.0]) / 1.1)
    w = w / w.sum()
    expected = np.array([1.0, -1.0, 0.0]) * w[0] * w[1] / 1.1
    np.testing.assert_allclose(gradient, expected, rtol=1e-8, atol=1e-12)


def test_the_start_has_no_influence_on_the_gradient():
    p = built_without_jax(inputs("dense"))
    gradient = jax.jit(jax.grad(lambda w: solve(p, start=w).weights[0]))(np.full(4, 0.25))
    assert np.array_equal(gradient, np.zeros(4))
