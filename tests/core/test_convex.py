"""Any convex complexity: five families against independent optimisers, derivatives, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from policychord import (
    ConvergenceError,
    Outcome,
    Tsallis,
    certify,
    complexity,
    dissipation,
    energy,
    flow,
    gate,
    problem,
    solve,
)
from policychord.core.complexities import pool

N, BATCH = 4, 6


def quadratic(w, parameters):
    a, b = parameters
    return 0.5 * w @ (a.T @ a) @ w + b @ w


def proportions(w, likelihood):
    return -jnp.mean(jnp.log(likelihood @ w))


def congestion(w, parameters):
    """Beckmann's integral of link times free + slope * flow, over the links of every route."""
    routes, free, slope = parameters
    load = routes @ w
    return free @ load + 0.5 * slope @ load**2


def transport(w, parameters):
    """Semi-relaxed entropic transport to the sources w, at a fixed cost."""
    cost, demand = parameters
    return -demand @ jax.nn.logsumexp(jnp.log(w + 1e-300) - cost, axis=-1)


def log_sum(w, parameters):
    a, b = parameters
    return jax.nn.logsumexp(a @ w + b)


def draw(name, rng):
    if name == "quadratic":
        return quadratic, (rng.normal(size=(BATCH, N, N)), rng.normal(size=(BATCH, N)))
    if name == "proportions":
        return proportions, rng.gamma(0.7, size=(BATCH, 30, N)) + 1e-3
    if name == "congestion":
        routes = (rng.random((BATCH, 7, N)) < 0.5).astype(float)
        return congestion, (routes, rng.random((BATCH, 7)), 3 * rng.random((BATCH, 7)))
    if name == "transport":
        return transport, (3 * rng.random((BATCH, 8, N)), rng.dirichlet(np.ones(8), BATCH))
    return log_sum, (3 * rng.normal(size=(BATCH, 9, N)), rng.normal(size=(BATCH, 9)))


FAMILIES = ("quadratic", "proportions", "congestion", "transport", "log-sum-exp")


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    rng = np.random.default_rng([1, *map(ord, request.param)])
    function, parameters = draw(request.param, rng)
    eps = 10.0 ** rng.uniform(-1.5, 0.5, BATCH)
    return problem(
        complexity=function, n=N, eps=eps, prior=rng.dirichlet(np.full(N, 3.0), BATCH), parameters=parameters
    )


def one_of(p, k):
    return jax.tree.map(lambda a: a[k], p)


def test_the_optimum_is_a_generic_optimisers(family):
    found = solve(family)
    assert np.all(found.certificate.gap <= 1e-10)
    assert "convex" in found.certificate.assumes[0]
    both = jax.jit(jax.value_and_grad(lambda z, one: energy(one, jax.nn.softmax(z))))
    reached = energy(family, found.weights)
    for k in range(BATCH):
        with jax.enable_x64(True):
            one = one_of(family, k)
            begin = np.zeros(N)
            for _ in range(3):  # a long step may end where a softmax is flat: go on from within
                judged = minimize(both, begin, (one,), jac=True, method="BFGS", options={"gtol": 1e-9})
                begin = np.log(0.9 * jax.nn.softmax(judged.x) + 0.1 / N)
            np.testing.assert_allclose(found.weights[k], jax.nn.softmax(judged.x), atol=2e-6)
        assert reached[k] <= judged.fun + 1e-12


def test_the_theory_holds(family):
    """Simplex, energy bound, dissipation, Bregman-PL and the distance, along the flow and at random weights."""
    best = solve(family, tol=1e-14)
    low = energy(family, best.weights)
    path = flow(family, t1=40.0, save=21)
    assert np.all(path.weights > 0.0)
    assert np.max(np.abs(path.weights.sum(-1) - 1.0)) <= 1e-12
    np.testing.assert_allclose(path.weights[:, -1], best.weights, atol=1e-8)
    excess = path.energy - low[:, None]
    assert np.all(excess <= np.exp(-path.times) * excess[:, :1] + 1e-10)
    w = np.random.default_rng(2).dirichlet(np.ones(N), BATCH)
    bound = certify(family, w)
    assert np.all(energy(family, w) - low <= bound.gap + 1e-12)
    assert np.all(np.abs(w - best.weights).sum(-1) <= bound.distance + 1e-7)
    response = gate(family, w)
    both = np.sum((w - response) * (np.log(w) - np.log(response)), axis=-1)
    np.testing.assert_allclose(dissipation(family, w), -family.eps * both, rtol=1e-7, atol=1e-10)


def test_derivatives_agree_with_differences(family):
    with jax.enable_x64(True):
        one = one_of(jax.tree.map(jnp.asarray, family), 0)
        lean = jnp.arange(float(N))

        def loss(t):
            moved = jax.tree.map(lambda a: a * (1 + 0.3 * t[0] * jnp.cos(jnp.arange(a.size)).reshape(a.shape)),
                                 one.parameters)  # fmt: skip
            prior = jnp.exp(one.log_prior) + t[2] * jnp.array([0.02, -0.02, 0.01, -0.01])
            p = problem(complexity=one.complexity.function, n=N, eps=one.eps * (1 + t[1]), prior=prior,
                        parameters=moved)  # fmt: skip
            return solve(p, tol=1e-15).weights @ lean

        point, step = jnp.array([0.1, 0.1, 0.1]), 1e-5
        both = jax.jit(jax.value_and_grad(loss))
        expected = [(both(point + step * e)[0] - both(point - step * e)[0]) / (2 * step) for e in jnp.eye(3)]
        np.testing.assert_allclose(both(point)[1], expected, rtol=2e-5, atol=1e-7)


def test_a_function_of_the_weights_alone_needs_no_parameters():
    p = problem(complexity=lambda w: jnp.sum(w**2), n=3, eps=0.5)
    np.testing.assert_allclose(solve(p).weights, 1.0 / 3.0, atol=1e-9)
    assert complexity(p, [1.0, 0.0, 0.0]) == 1.0


def test_many_weights_take_conjugate_gradients():
    n = 150
    rng = np.random.default_rng(3)
    parameters = (rng.normal(size=(1, 40, n)), rng.normal(size=(1, n)))
    for regulariser in (None, Tsallis(1.5)):
        p = problem(complexity=quadratic, n=n, eps=[0.1], parameters=parameters, regulariser=regulariser)
        found = solve(p)
        assert certify(p, found.weights).gap[0] <= 1e-10
        np.testing.assert_allclose(gate(p, found.weights), found.weights, atol=1e-6)


def test_the_gradient_of_many_weights_agrees_with_differences():
    """Backwards through conjugate gradients, which raised an error inside JAX."""
    n = 150
    rng = np.random.default_rng(3)
    factors, returns, lean, way = rng.normal(size=(40, n)), *rng.normal(size=(3, n))

    @jax.jit
    @jax.value_and_grad
    def loss(returns):
        return solve(problem(complexity=quadratic, n=n, eps=0.1, parameters=(factors, returns)), 1e-15).weights @ lean

    step = 1e-5
    expected = (loss(returns + step * way)[0] - loss(returns - step * way)[0]) / (2 * step)
    np.testing.assert_allclose(loss(returns)[1] @ way, expected, rtol=1e-6)


def ripple(w):
    return jnp.sum(jnp.cos(9.0 * w))


def dent(w):
    """Concave only near the middle of an edge, which no probe meets: the search does."""
    return -jnp.exp(-80.0 * (w[0] - 0.85) ** 2) + 3.0 * jnp.abs(w[1] - w[2]) ** 2


@pytest.mark.parametrize("function", [ripple, lambda w: -jnp.sum(w**2), lambda w: -jnp.abs(w[0] - 0.3), dent])
def test_what_is_not_convex_gets_its_reason(function):
    p = problem(complexity=function, n=3, eps=0.05)
    with pytest.raises(ConvergenceError, match="not convex"):
        solve(p)
    outcome = jax.jit(lambda p: solve(p).outcome)(jax.tree.map(jnp.asarray, p))
    assert Outcome(int(outcome)) is Outcome.NOT_CONVEX


def kinked(w):
    return jnp.abs(w[0] - 0.5) + 0.1 * w[1]


def test_a_kink_is_no_error_but_stops_newton():
    """The bound holds for any subgradient; at the kink no gradient proves that it is the optimum."""
    p = problem(complexity=kinked, n=3, eps=0.05)
    w = np.array([0.5 + 1e-9, 0.2, 0.3 - 1e-9])
    assert certify(p, w).gap >= energy(p, w) - energy(p, [0.5, 0.0596, 0.4404]) > 0
    with pytest.raises(ConvergenceError, match="kink"):
        solve(p)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"complexity": 3.0, "n": 3}, "pass a function"),
        ({"complexity": kinked}, "number of weights"),
        ({"complexity": lambda w: w, "n": 3}, "one number"),
        ({"complexity": quadratic, "n": 3}, "cannot be evaluated"),
        ({"complexity": kinked, "n": 3, "pi": np.eye(2)}, "one or the other"),
        ({"complexity": quadratic, "n": 3, "eps": [0.1, 0.2], "parameters": (np.eye(3), np.ones(3))}, "batch axes"),
        ({"pi": np.eye(2), "action_cost": [0.0, 0.0], "n": 2}, "belong to a complexity"),
        ({"pi": np.eye(2), "action_cost": [0.0, 0.0], "combine": "sum"}, "combine"),
    ],
)
def test_what_is_wrong_is_said(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        problem(**{"eps": 0.1} | arguments)


# ----------------------------------------------------------------------------- products of experts

GRID = np.linspace(-24.0, 24.0, 1201)  # the tails outside, and the rounding of its sums, are below 1e-13


def log_normal(mean, sd):
    log_p = -0.5 * ((GRID[:, None] - mean) / sd) ** 2
    return log_p - np.log(np.exp(log_p).sum(0))


def test_a_product_of_gaussians_is_the_gaussian_of_the_closed_form():
    mean, sd, w = np.array([-1.0, 0.5, 2.0]), np.array([1.0, 0.7, 1.5]), np.array([0.2, 0.5, 0.3])
    precision = w @ sd**-2.0
    pooled = np.exp(log_normal([w @ (mean / sd**2) / precision], [precision**-0.5]))[:, 0]
    with jax.enable_x64(True):
        np.testing.assert_allclose(pool(log_normal(mean, sd), w), pooled, rtol=0, atol=1e-12)


def gaussian_divergence(w, parameters):
    """KL( N(m, v) || the product of N(mean_a, sd_a^2)^w_a )."""
    mean, sd, m, v = parameters
    precision = w @ sd**-2.0
    centre = w @ (mean / sd**2) / precision
    return 0.5 * (precision * (v + (centre - m) ** 2) - 1.0 - jnp.log(precision * v))


def test_the_divergence_from_a_product_is_convex_and_certified():
    """On a grid as in the closed form of Gaussians: the same value, optimum and certificate."""
    mean, sd, m, v = np.array([-1.0, 0.5, 2.0]), np.array([1.0, 0.7, 1.5]), 0.4, 0.6**2
    on_grid = problem(log_pi=log_normal(mean, sd), action_cost=0.5 * (GRID - m) ** 2 / v, eps=0.3, combine="product")
    closed = problem(complexity=gaussian_divergence, n=3, eps=0.3,
                     parameters=tuple(np.asarray(a) for a in (mean, sd, m, v)))  # fmt: skip
    w = np.array([0.1, 0.2, 0.7])
    np.testing.assert_allclose(complexity(on_grid, w), complexity(closed, w), rtol=0, atol=1e-12)
    found = solve(on_grid)
    np.testing.assert_allclose(found.weights, solve(closed).weights, rtol=0, atol=1e-10)
    assert found.certificate.gap <= 1e-10
    assert found.certificate.assumes == ()


def test_the_other_direction_is_local_and_says_so():
    log_pi = log_normal(np.array([-1.0, 0.5, 2.0]), np.array([1.0, 0.7, 1.5]))
    p = problem(log_pi=log_pi, action_cost=0.5 * GRID**2, eps=0.1, combine="local product")
    found = solve(p)
    assert Outcome(int(found.outcome)) is Outcome.LOCAL
    assert found.certificate.gap == np.inf
    assert "nothing is proved" in found.certificate.assumes[0]
    around = found.weights + 1e-3 * np.random.default_rng(0).normal(size=(200, 3))
    around = np.abs(around) / np.abs(around).sum(-1, keepdims=True)
    assert np.all(energy(p, around) >= energy(p, found.weights) - 1e-12)
    with pytest.raises(ValueError, match="local"):
        flow(p)
