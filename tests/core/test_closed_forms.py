"""Problems whose optimum can be written down, on every route."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from policychord import complexity, energy, problem

from .families import DENSE, member
from .routes import ROUTES

BATCH, D, N = DENSE
TOL = 1e-18

each_route = pytest.mark.parametrize("route", ROUTES)


@each_route
def test_disjoint_supports(route):
    p = member("disjoint", *DENSE)
    alone = np.sum(np.where(p.pi > 0, p.pi * (np.log(np.where(p.pi > 0, p.pi, 1.0)) + p.action_cost[..., None]), 0), -2)
    expected = softmax(-alone / (1.0 + p.eps[..., None]), axis=-1)
    np.testing.assert_allclose(ROUTES[route](p, TOL).weights, expected, rtol=0, atol=1e-10)


@each_route
def test_disjoint_supports_with_a_prior(route, rng):
    p = member("disjoint", *DENSE)
    p = p._replace(log_prior=np.log(rng.dirichlet(np.ones(N), size=BATCH)))
    alone = np.sum(np.where(p.pi > 0, p.pi * (np.log(np.where(p.pi > 0, p.pi, 1.0)) + p.action_cost[..., None]), 0), -2)
    temperature = p.eps[..., None]
    expected = softmax((temperature * p.log_prior - alone) / (1.0 + temperature), axis=-1)
    np.testing.assert_allclose(ROUTES[route](p, TOL).weights, expected, rtol=0, atol=1e-10)


@each_route
def test_one_primitive_per_action(route, rng):
    p = problem(pi=np.eye(N), action_cost=rng.normal(size=(*BATCH, N)), eps=10.0 ** rng.uniform(-3, 1, size=BATCH))
    found = ROUTES[route](p, TOL)
    scaled = -p.action_cost / (1.0 + p.eps[..., None])
    np.testing.assert_allclose(found.weights, softmax(scaled, axis=-1), rtol=0, atol=1e-12)
    # a uniform prior adds eps ln n to the entropy form of the energy
    best = -(1.0 + p.eps) * logsumexp(scaled, axis=-1) + p.eps * np.log(N)
    np.testing.assert_allclose(energy(p, np.asarray(found.weights)), best, rtol=0, atol=1e-12)


@each_route
def test_identical_primitives_leave_the_prior(route, rng):
    p = member("identical", *DENSE)
    prior = rng.dirichlet(np.ones(N), size=BATCH)
    found = ROUTES[route](p._replace(log_prior=np.log(prior)), TOL)
    np.testing.assert_allclose(found.weights, prior, rtol=0, atol=1e-12)


@each_route
def test_great_heat_leaves_the_prior(route, rng):
    p, prior = member("generic", *DENSE), rng.dirichlet(np.ones(N), size=BATCH)
    found = ROUTES[route](p._replace(eps=np.full(BATCH, 1e8), log_prior=np.log(prior)), 1e-10)
    np.testing.assert_allclose(found.weights, prior, rtol=0, atol=1e-6)


@each_route
def test_great_cold_leaves_the_minimiser_of_the_complexity(route):
    p = member("generic", *DENSE)
    found = ROUTES[route](p._replace(eps=np.full(BATCH, 1e-6)), 1e-10)
    value = complexity(p, np.asarray(found.weights))
    for k in range(0, BATCH[0], 4):
        one = p.__class__(*(field[k : k + 1] for field in p))
        judge = minimize(
            lambda w, one=one: complexity(one, w[None])[0], np.full(N, 1 / N), method="SLSQP", bounds=[(0, 1)] * N,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0}, options={"ftol": 1e-13, "maxiter": 1000},
        )  # fmt: skip
        # eps KL(w || prior) is at most eps ln n
        assert value[k] <= judge.fun + 1e-6 * np.log(N) + 1e-9
        assert value[k] >= judge.fun - 1e-6


@each_route
def test_one_primitive_gets_all_the_weight(route, rng):
    p = problem(
        pi=rng.dirichlet(np.ones(6), size=(3, 1)).swapaxes(-1, -2), action_cost=1e4 * rng.normal(size=(3, 6)), eps=0.1
    )
    found = ROUTES[route](p, TOL)
    assert np.array_equal(found.weights, np.ones((3, 1)))
    assert np.array_equal(found.log_weights, np.zeros((3, 1)))
    assert np.all(np.asarray(found.certificate.gap) <= TOL)


@each_route
def test_one_action_leaves_the_prior(route, rng):
    prior = rng.dirichlet(np.ones(4), size=3)
    p = problem(pi=np.ones((1, 4)), action_cost=1e4 * rng.normal(size=(3, 1)), eps=[1e-3, 0.1, 10.0], prior=prior)
    found = ROUTES[route](p, TOL)
    np.testing.assert_allclose(found.weights, prior, rtol=1e-14, atol=0)


@each_route
def test_one_primitive_and_one_action(route):
    found = ROUTES[route](problem(pi=np.ones((1, 1)), action_cost=np.full((3, 1), 7.0), eps=[1e-3, 0.1, 10.0]), TOL)
    assert np.array_equal(found.weights, np.ones((3, 1)))
