"""Inside jit, vmap and scan the answers are those of a direct call; what cannot be raised there is reported."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import Outcome, certify, complexity, energy, gate, primitive_cost, problem, solve

from .families import member

TOL = 1e-18
BATCH, D, N = 4, 20, 4

each_route = pytest.mark.parametrize("route", ["auto", "jax"])
_traced = {route: jax.jit(partial(solve, tol=TOL, route=route)) for route in ("auto", "compiled", "jax")}


@pytest.fixture(scope="module")
def p():
    return member("generic", (BATCH,), D, N)


@pytest.fixture(scope="module")
def direct(p):
    return solve(p, TOL)


def assert_same(found, direct, atol=1e-12):
    np.testing.assert_allclose(found.weights, direct.weights, rtol=0, atol=atol)
    np.testing.assert_allclose(found.log_weights, direct.log_weights, rtol=0, atol=1e3 * atol)
    assert np.all(np.asarray(found.certificate.gap) <= TOL)
    assert np.all(found.converged)


@pytest.mark.parametrize("route", ["auto", "compiled", "jax"])
def test_jit(p, direct, route):
    assert_same(_traced[route](p), direct)


@each_route
def test_vmap(p, direct, route):
    assert_same(jax.vmap(lambda p: solve(p, TOL, route=route))(p), direct)


@each_route
def test_scan(p, direct, route):
    found = jax.lax.scan(lambda carry, one: (carry, solve(one, TOL, route=route)), 0, jax.tree.map(jnp.asarray, p))[1]
    assert_same(found, direct)


@each_route
def test_warm_start_in_scan(p, route):
    """A drifting cost, each step started from the weights of the last, beside cold starts."""
    one = jax.tree.map(lambda a: a[0], p)
    costs = one.action_cost + np.linspace(0.0, 0.5, 6)[:, None] * np.cos(np.arange(D))
    cold = solve(problem(pi=one.pi, action_cost=costs, eps=one.eps), TOL)

    def step(weights, cost):
        found = solve(one._replace(action_cost=cost, eps=jnp.asarray(one.eps)), TOL, start=weights, route=route)
        return found.weights, found

    start = jnp.full(N, 1 / N)
    assert_same(jax.jit(lambda costs: jax.lax.scan(step, start, costs)[1])(costs), cold, atol=1e-8)


def test_arrays_of_jax_from_outside_a_trace(p, direct):
    """Their values are there, but what JAX computes from them inside is not."""
    pi, twice, prior = jnp.asarray(p.pi), jnp.asarray(2.0 * p.pi), jnp.exp(jnp.asarray(p.log_prior))
    found = jax.jit(lambda cost: solve(problem(pi=pi, action_cost=cost, eps=p.eps, prior=prior), TOL))(p.action_cost)
    assert_same(found, direct)
    with pytest.raises(ValueError, match=r"pi\[0, :, 0\] sums to 2"):
        jax.jit(lambda cost: solve(problem(pi=twice, action_cost=cost, eps=p.eps)))(p.action_cost)


@pytest.mark.parametrize("mapped", ["pi", "action_cost", "eps", "log_prior"])
def test_vmap_over_one_argument(p, mapped):
    one = jax.tree.map(lambda a: np.asarray(a[0]), p)
    many = one._replace(**{mapped: getattr(p, mapped)})
    axes = one._replace(**{name: 0 if name == mapped else None for name in one._fields})
    found = jax.vmap(lambda p: solve(p, TOL), in_axes=(axes,))(many)
    spread = problem(pi=many.pi, action_cost=many.action_cost, eps=many.eps, log_prior=many.log_prior)
    assert_same(found, solve(spread, TOL))


@each_route
def test_vmap_over_the_start_alone(p, direct, route):
    one = jax.tree.map(lambda a: jnp.asarray(a[0]), p)
    starts = np.random.default_rng(0).dirichlet(np.ones(N), size=3)
    found = jax.vmap(lambda start: solve(one, TOL, start=start, route=route))(starts)
    assert found.weights.shape == (3, N)
    np.testing.assert_allclose(found.weights, np.tile(direct.weights[0], (3, 1)), rtol=0, atol=1e-8)


def test_nested_vmap(p, direct):
    tempered = jax.vmap(lambda eps: jax.vmap(lambda p: solve(p._replace(eps=eps * p.eps), TOL))(p))
    found = tempered(jnp.asarray([1.0, 2.0]))
    assert found.weights.shape == (2, BATCH, N)
    assert_same(jax.tree.map(lambda a: a[0], found), direct)
    assert_same(jax.tree.map(lambda a: a[1], found), solve(p._replace(eps=2 * p.eps), TOL))


def test_the_whole_objective_can_be_traced(p, direct):
    @jax.jit
    def everything(pi, cost, eps, prior):
        traced = problem(pi=pi, action_cost=cost, eps=eps, prior=prior)
        w = solve(traced, TOL).weights
        return energy(traced, w), gate(traced, w), certify(traced, w)

    value, response, certificate = everything(p.pi, p.action_cost, p.eps, np.exp(p.log_prior))
    np.testing.assert_allclose(value, energy(p, direct.weights), rtol=1e-12)
    np.testing.assert_allclose(response, direct.weights, rtol=0, atol=1e-8)
    assert np.all(certificate.gap <= 2 * TOL)


@pytest.mark.parametrize("verb", [primitive_cost, complexity, energy, gate, certify])
@pytest.mark.parametrize("field", ["pi", "action_cost", "eps", "log_prior"])
def test_one_field_may_be_traced_beside_numpy_arrays(p, verb, field):
    w = np.full((BATCH, N), 1 / N)
    found = jax.jit(lambda value: verb(p._replace(**{field: value}), w))(getattr(p, field))
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(verb(p, w)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


DAMAGE = {
    "pi": lambda v: v.at[1, 0, 0].set(jnp.nan),
    "action_cost": lambda v: v.at[1, 0].set(jnp.nan),
    "eps": lambda v: v.at[1].set(jnp.nan),
    "log_prior": lambda v: v.at[1, 0].set(jnp.nan),
}


@each_route
def test_nothing_is_raised_for_what_is_not_a_number(p, direct, route):
    """Under tracing only `outcome` can tell, for the damaged problem alone, and its gap claims nothing."""
    for argument, damage in DAMAGE.items():
        found = _traced[route](p._replace(**{argument: damage(jnp.asarray(getattr(p, argument)))}))
        assert list(np.asarray(found.outcome)) == [Outcome.CONVERGED, Outcome.BAD_INPUT, *2 * [Outcome.CONVERGED]], (
            argument
        )
        assert not found.certificate.gap[1] <= 1e300, argument
        others = np.array([0, 2, 3])
        np.testing.assert_allclose(found.weights[others], direct.weights[others], rtol=0, atol=1e-12)


@each_route
def test_a_temperature_that_is_not_positive_does_not_converge(p, route):
    found = _traced[route](p._replace(eps=np.array([0.0, -1.0, 0.0, -0.1])))
    assert np.all(found.outcome == Outcome.BAD_INPUT)


def test_single_precision_in_a_trace_is_refused(p):
    with jax.enable_x64(False):
        for transformed in (jax.jit, jax.vmap):
            with pytest.raises(ValueError, match=r"policychord\.enable_x64\(\).*or pass NumPy arrays"):
                transformed(lambda c: solve(problem(pi=p.pi[0], action_cost=c, eps=0.1)).weights)(jnp.ones((2, D)))
        with pytest.raises(ValueError, match=r"policychord\.enable_x64"):
            jax.grad(lambda c: solve(problem(pi=p.pi[0], action_cost=c, eps=0.1)).weights[0])(jnp.ones(D))
        with pytest.raises(ValueError, match=r"policychord\.enable_x64"):
            jax.jit(lambda p: solve(p).weights)(p)


@pytest.mark.parametrize("route", ["auto", "compiled", "jax"])
def test_single_precision_arrays_are_widened(p, route):
    """Values that are there can be read, whatever JAX is restricted to."""
    with jax.enable_x64(False):
        given = problem(
            pi=jnp.asarray(p.pi),
            action_cost=jnp.asarray(p.action_cost),
            eps=jnp.asarray(p.eps),
            prior=np.full(N, 1 / N),
        )
        found = solve(given, TOL, route=route)
        certificate = certify(given, found.weights)
    assert all(isinstance(field, np.ndarray) and field.dtype == np.float64 for field in given)
    assert found.weights.dtype == np.float64
    assert np.all(certificate.gap <= 1.001 * TOL)
    np.testing.assert_allclose(found.weights, solve(given, TOL).weights, rtol=0, atol=1e-12)


@pytest.mark.parametrize("route", ["auto", "jax"])
@pytest.mark.parametrize(
    ("pi", "eps", "good"),
    [
        ([[0.9, 0.2], [0.1, 0.8]], 0.1, True),
        ([[0.9, 0.2], [0.1, 0.8]], -0.1, False),
        ([[0.9, 0.2], [0.1, 0.8]], 0.0, False),
        ([[1.9, 0.2], [0.1, 0.8]], 0.1, False),
        ([[1.1, 0.2], [-0.1, 0.8]], 0.1, False),
    ],
)
def test_what_would_be_refused_never_converges_in_a_trace(route, pi, eps, good):
    found = jax.jit(lambda pi, eps: solve(problem(pi=pi, action_cost=[0.0, 1.0], eps=eps), route=route))(
        np.array(pi), eps
    )
    assert found.outcome == (Outcome.CONVERGED if good else Outcome.BAD_INPUT)
    assert bool(np.isfinite(found.certificate.gap)) is good
