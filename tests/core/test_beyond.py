"""Uses beyond policies, each against a method of its own field, and the circuit of rectifying units."""

import cvxpy
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import root
from scipy.special import softmax

from policychord import Tsallis, problem, solve


def proportions(w, likelihood):
    return -jnp.mean(jnp.log(likelihood @ w))


def beckmann(load, links):
    routes, free, slope = links
    flow = routes @ load
    return free @ flow + 0.5 * slope @ flow**2


def allocation(w, market):
    factors, returns = market
    return 2.0 * jnp.sum((factors @ w) ** 2) - returns @ w


def transport(w, given):
    cost, demand = given
    return -demand @ jnp.log(jnp.exp(-cost) @ w)


def test_proportions_of_a_mixture_are_those_of_expectation_maximisation():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(-1, 1, 300), rng.normal(2, 1, 100)])
    likelihood = np.exp(-0.5 * (x[:, None] - np.array([-1.0, 2.0, 3.0])) ** 2)
    w = np.full(3, 1 / 3)
    for _ in range(20_000):
        shares = likelihood * w
        w = (shares / shares.sum(1, keepdims=True)).mean(0)
    found = solve(problem(complexity=proportions, n=3, eps=1e-9, parameters=likelihood), tol=1e-12)
    np.testing.assert_allclose(found.weights, w, atol=1e-6)


def successive_averages(routes, free, slope, eps, steps):
    """The stochastic user equilibrium by averaging logit responses to the times, with steps 1/k."""
    load = np.full(routes.shape[1], 1.0 / routes.shape[1])
    for k in range(1, steps):
        times = routes.T @ (free + slope * (routes @ load))
        response = np.exp(-(times - times.min()) / eps)
        load = load + (response / response.sum() - load) / (k + 1)
    return load


def by_link_flows(routes, free, slope, eps):
    """The same as a root in the flows on the links: they must be those of the routes that they make travellers take."""

    def response(flow):
        return softmax(-(free + slope * flow) @ routes / eps)

    start = routes @ successive_averages(routes, free, slope, eps, 50)
    found = root(lambda flow: routes @ response(flow) - flow, start, tol=1e-13)
    assert found.success
    return response(found.x)


BRAESS = np.array([[1.0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1]])


def test_braess_as_the_method_of_successive_averages_finds_it():
    free, slope = np.array([0.0, 1, 1, 0, 0]), np.array([1.0, 0, 0, 1, 0])
    mean = []
    for n in (2, 3):
        network = (BRAESS[:, :n], free, slope)
        load = solve(problem(complexity=beckmann, n=n, eps=0.1, parameters=network)).weights
        np.testing.assert_allclose(load, successive_averages(*network, 0.1, 20_000), atol=1e-4)
        mean.append(load @ (network[0].T @ (free + slope * (network[0] @ load))))
    assert mean[1] > mean[0] + 0.1  # the new link makes everybody slower


def test_a_network_of_more_than_500_routes():
    """All 924 ways through a grid of 7 x 7 crossings."""
    size, paths = 6, [()]
    for _ in range(2 * size):
        paths = [(*p, m) for p in paths for m in (0, 1) if p.count(m) < size]
    links = {}
    rows = []
    for path in paths:
        at, used = (0, 0), []
        for move in path:
            used.append(links.setdefault((at, move), len(links)))
            at = (at[0] + 1 - move, at[1] + move)
        rows.append(used)
    routes = np.zeros((len(links), len(paths)))
    for k, used in enumerate(rows):
        routes[used, k] = 1.0
    rng = np.random.default_rng(1)
    network = (routes, rng.random(len(links)), 2 * rng.random(len(links)))
    found = solve(problem(complexity=beckmann, n=len(paths), eps=0.5, parameters=network))
    assert len(paths) == 924
    assert found.certificate.gap <= 1e-10
    judged = by_link_flows(*network, 0.5)
    np.testing.assert_allclose(found.weights, judged, atol=1e-6)
    np.testing.assert_allclose(judged, successive_averages(*network, 0.5, 2000), atol=1e-4)  # it converges as 1/steps


def test_an_allocation_is_the_cone_solvers():
    rng = np.random.default_rng(2)
    factors, returns = rng.normal(size=(30, 6)) / 5, np.array([0.3, 0.25, 0.2, 0.1, 0.0, -0.2])
    w = cvxpy.Variable(6)
    value = 2 * cvxpy.sum_squares(factors @ w) - returns @ w + 0.01 * cvxpy.sum_squares(w)
    cvxpy.Problem(cvxpy.Minimize(value), [w >= 0, w <= 0.4, cvxpy.sum(w) == 1]).solve(solver="CLARABEL")
    ours = problem(complexity=allocation, n=6, eps=0.02, parameters=(factors, returns), regulariser=Tsallis(2.0, 0.4))
    np.testing.assert_allclose(solve(ours).weights, w.value, atol=1e-5)


def test_semi_relaxed_transport_is_sinkhorn_on_one_side():
    """At eps = 0 the sources that cost least deliver what they hold: scaling one side, then setting w, is EM."""
    rng = np.random.default_rng(3)
    cost, demand = 3 * rng.random((8, 4)), rng.dirichlet(np.ones(8))
    w = np.full(4, 0.25)
    for _ in range(20_000):
        plan = w * np.exp(-cost)
        w = (plan * (demand / plan.sum(1))[:, None]).sum(0)
    found = solve(problem(complexity=transport, n=4, eps=1e-9, parameters=(cost, demand)), tol=1e-13)
    np.testing.assert_allclose(found.weights, w, atol=1e-5)


def test_a_circuit_of_rectifying_units_rests_at_the_sparse_optimum():
    """tau_s dmu/dt = sum [w_hat - g/eps - mu]_+ - 1, tau dw/dt = -w + [w_hat - g/eps - mu]_+."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        pi, s, eps = rng.dirichlet(np.ones(8), 4).T, rng.normal(size=8), 10 ** rng.uniform(-1, 0.5)
        best = solve(problem(pi=pi, action_cost=s, eps=eps, regulariser=Tsallis(2.0))).weights

        def move(t, x, pi=pi, s=s, eps=eps):
            w, mu = x[:-1], x[-1]
            units = np.maximum(0.25 - (np.log(np.maximum(pi @ w, 1e-20)) + s) @ pi / eps - mu, 0.0)
            return np.append(units - w, (units.sum() - 1.0) * 10.0 / min(eps, 1.0))

        end = solve_ivp(move, (0.0, 60.0), [0.25] * 4 + [0.0], method="LSODA", rtol=1e-8, atol=1e-10).y[:, -1]
        np.testing.assert_allclose(end[:-1], best, atol=1e-5)
