"""Any batch, any layout, any number type: the same answers as one by one."""

import fractions

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import Problem, certify, problem, solve

from .families import DENSE, member, primitives
from .routes import ROUTES

each_route = pytest.mark.parametrize("route", ROUTES)


def one_by_one(p: Problem, tol=1e-18):
    """The weights of a batch, solved separately."""
    batch = p.eps.shape
    found = np.empty(p.log_prior.shape)
    for k in np.ndindex(batch):
        found[k] = solve(Problem(*(np.asarray(field[k]) for field in p)), tol, route="compiled").weights
    return found


@each_route
@pytest.mark.parametrize("batch", [(), (1,), (0,), (2, 3), (2, 0, 3), (1, 2, 1)], ids=str)
def test_batches_of_any_shape(route, batch):
    p = member("generic", batch)
    found = ROUTES[route](p, 1e-18)
    assert found.weights.shape == found.log_weights.shape == (*batch, 5)
    for field in (*found.certificate, found.passes, found.converged):
        assert field.shape == batch
    np.testing.assert_allclose(found.weights, one_by_one(p), rtol=0, atol=1e-10)


@each_route
def test_primitives_shared_by_a_batch(route, rng):
    d, n = 50, 5
    p = problem(pi=primitives(rng, (), d, n), action_cost=rng.normal(size=(12, d)), eps=0.1)
    np.testing.assert_allclose(ROUTES[route](p, 1e-18).weights, one_by_one(p), rtol=0, atol=1e-10)


@each_route
def test_axes_of_length_one_are_spread(route, rng):
    d, n = 50, 5
    p = problem(
        pi=primitives(rng, (2, 1), d, n),
        action_cost=rng.normal(size=(3, d)),
        eps=np.array([[0.1], [1.0]]),
        prior=rng.dirichlet(np.ones(n), size=(1, 3)),
    )
    assert p.eps.shape == (2, 3)
    np.testing.assert_allclose(ROUTES[route](p, 1e-18).weights, one_by_one(p), rtol=0, atol=1e-10)


def as_fortran(a):
    return np.asfortranarray(a)


def as_strided(a):
    spaced = np.zeros((*a.shape[:-1], 2 * a.shape[-1]))
    spaced[..., ::2] = a
    return spaced[..., ::2]


def as_reversed(a):
    return np.ascontiguousarray(a[..., ::-1])[..., ::-1]


def as_swapped(a):
    return np.ascontiguousarray(np.swapaxes(a, 0, -1)).swapaxes(0, -1)


def as_unaligned(a):
    return np.frombuffer(b"\0" + a.tobytes(), np.float64, offset=1).reshape(a.shape)


def as_big_endian(a):
    return a.astype(">f8")


def as_read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


LAYOUTS = [as_fortran, as_strided, as_reversed, as_swapped, as_unaligned, as_big_endian, as_read_only]


@each_route
@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_layout_does_not_matter(route, layout):
    p = member("generic", *DENSE)
    awkward = problem(
        pi=layout(p.pi), action_cost=layout(p.action_cost), eps=layout(p.eps), log_prior=layout(p.log_prior)
    )
    np.testing.assert_allclose(
        ROUTES[route](awkward, 1e-18).weights, ROUTES[route](p, 1e-18).weights, rtol=0, atol=1e-12
    )
    if layout is as_big_endian:
        return  # a type that JAX does not know
    # a problem put together by hand skips the checks, and any copy they make
    by_hand = Problem(*(layout(field) for field in p))
    np.testing.assert_allclose(
        ROUTES[route](by_hand, 1e-18).weights, ROUTES[route](p, 1e-18).weights, rtol=0, atol=1e-12
    )


def test_inputs_are_left_alone():
    p = member("generic", *DENSE)
    before = [field.copy() for field in p]
    start = np.full((12, 5), 0.2)
    solve(p, start=start)
    for field, copy in zip((*p, start), (*before, np.full((12, 5), 0.2)), strict=True):
        assert np.array_equal(field, copy)


@each_route
def test_single_precision_in_double_precision_out(route):
    p = member("generic", *DENSE)
    single = problem(
        pi=p.pi.astype(np.float32), action_cost=p.action_cost.astype(np.float32), eps=p.eps.astype(np.float32)
    )
    assert all(field.dtype == np.float64 for field in single)
    np.testing.assert_allclose(single.pi.sum(-2), 1.0, rtol=0, atol=1e-15)
    found = ROUTES[route](single)
    assert found.weights.dtype == np.float64
    assert np.all(certify(single, np.asarray(found.weights)).gap <= 1.001e-10)


@pytest.mark.parametrize("kind", [list, tuple, "fractions", "jax", "jax single", "integers"])
def test_anything_that_is_numbers(kind):
    pi = np.array([[0.5, 0.25, 0.0], [0.25, 0.25, 1.0], [0.25, 0.5, 0.0]])
    cost = np.array([0.0, 1.0, 2.0])
    wanted = solve(problem(pi=pi, action_cost=cost, eps=0.5), 1e-18).weights
    given = {
        list: lambda a: a.tolist(),
        tuple: lambda a: tuple(map(tuple, a)) if a.ndim == 2 else tuple(a),
        "fractions": lambda a: np.vectorize(fractions.Fraction, otypes=[object])(a),
        "jax": jnp.asarray,
        "jax single": lambda a: jnp.asarray(a, jnp.float32),
        "integers": lambda a: a.astype(int) if a.ndim == 1 else a,
    }[kind]
    found = solve(problem(pi=given(pi), action_cost=given(cost), eps=0.5), 1e-18).weights
    assert isinstance(found, jax.Array if "jax" in str(kind) else np.ndarray)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("without_type_checks")
def test_weights_and_starts_may_be_lists():
    p = problem(pi=[[0.5, 0.2], [0.5, 0.8]], action_cost=[0, 1], eps=1)
    assert np.isfinite(certify(p, [0.25, 0.75]).gap)
    np.testing.assert_allclose(solve(p, 1e-18, start=[1, 0]).weights, solve(p, 1e-18).weights, rtol=0, atol=1e-8)
