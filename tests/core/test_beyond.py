"""Uses beyond policies, each against a method of its own field, and the circuit of rectifying units."""

from functools import partial
from pathlib import Path

import cvxpy
import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import root
from scipy.special import softmax

from policychord import TimeScales, Tsallis, circuit_stability, problem, solve, time_scales


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


# ------------------------------------------------------------------ the circuit of rectifying units

D, N = 8, 4


def layered(x, pi, s, eps, scales):
    """Layers a, b, y, mu and w, the prior being even."""
    a, b, y, mu, w = jnp.split(x, [D, 2 * D, 2 * D + N, 2 * D + N + 1])
    units = jnp.maximum(y - mu, 0.0)
    return jnp.concatenate([
        (pi @ w - a) / scales.hidden, (jnp.log(a) - b) / scales.hidden,
        (eps * (1 / N - y) - (b + s) @ pi) / scales.gradient,
        (jnp.sum(units, keepdims=True) - 1.0) / scales.softmax, (units - w) / scales.weights,
    ])  # fmt: skip


def instantaneous(x, pi, s, eps, scales):
    """The same with a gradient that needs no time: mu and w."""
    a = pi @ x[1:]
    full = jnp.concatenate([a, jnp.log(a), 1 / N - (jnp.log(a) + s) @ pi / eps, x])
    return layered(full, pi, s, eps, scales)[2 * D + N :]


def at_rest(w, pi, s, eps):
    a = pi @ w
    y = 1 / N - (jnp.log(a) + s) @ pi / eps
    return jnp.concatenate([a, jnp.log(a), y, jnp.max(jnp.where(w > 0.0, y - w, -jnp.inf))[None], w])


@jax.jit
@partial(jax.vmap, in_axes=(0, 0, 0, None, None))
def linearised(w, pi, s, eps, scales):
    rest = at_rest(w, pi, s, eps)
    small = rest[2 * D + N :]
    return (
        layered(rest, pi, s, eps, scales), jax.jacfwd(layered)(rest, pi, s, eps, scales),
        jax.jacfwd(instantaneous)(small, pi, s, eps, scales),
    )  # fmt: skip


def ladders(eps):
    plain = [TimeScales(ratio**-3.0, ratio**-2.0, ratio**-1.0, 1.0) for ratio in (2.0, 4.0, 10.0, 100.0)]
    return [*plain, TimeScales(*map(float, time_scales(eps)))]


def drawn(eps):
    rng = np.random.default_rng([5, round(1e4 * eps)])
    return np.swapaxes(rng.dirichlet(np.ones(D), (200, N)), 1, 2), rng.normal(size=(200, D))


def unstable(eps):
    """How many of 200 random problems are: sparse with a gradient in no time, sparse, the entropy's two circuits."""
    pi, s = drawn(eps)
    given = {"pi": pi, "action_cost": s, "eps": np.full(200, eps)}
    best = solve(problem(**given, regulariser=Tsallis(2.0)), tol=1e-13).weights
    rows = []
    for scales in ladders(eps):
        with jax.enable_x64(True):
            moving, all_layers, gate_alone = (np.asarray(a) for a in linearised(best, pi, s, eps, scales))
        assert np.abs(moving[:, -N:]).max() <= 1e-5  # it rests at the optimum
        growth = [np.linalg.eigvals(jacobian).real.max(-1) for jacobian in (gate_alone, all_layers)]
        verdicts = [
            circuit_stability(problem(**given, regulariser=kind), scales) for kind in (Tsallis(2.0), Tsallis(1.0), None)
        ]
        assert np.array_equal(verdicts[0].stable, growth[1] < 0.0)
        rows.append([*((g > 0.0).sum() for g in growth), *((~v.stable).sum() for v in verdicts[1:])])
    return np.transpose(rows)


def test_stability_of_circuits_with_a_threshold_is_the_table_of_the_page():
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "mechanisms.md").read_text()
    for eps in (1.0, 0.1, 0.01, 0.001):
        instant, *counted = unstable(eps)
        assert not instant.any()
        for name, counts in zip(("sparse", "threshold", "softmax"), counted, strict=True):
            if name == "threshold" or eps == 1.0:  # the page says so below the table
                assert not np.any(counts)
            else:
                assert f"| {eps:g} | {name} | {' | '.join(map(str, counts))} |" in page


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
