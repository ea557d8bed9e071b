"""The objective's theorems, on problems that hypothesis looks for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from policychord import Problem, certify, complexity, energy, gate, primitive_cost, problem, solve

from .families import FAMILIES, member
from .strategies import problems, problems_and_weights


def divergence(p, q):
    """KL(p || q) along the last axis; terms without mass count nothing."""
    terms = np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0) / np.where(p > 0, q, 1.0)), 0.0)
    return terms.sum(-1)


@given(problems_and_weights())
@settings(max_examples=150)
def test_gap_bounds_the_energy_from_above_and_the_divergence_from_below(drawn):
    p, w = drawn
    best = solve(p, 1e-18).weights
    excess = energy(p, w) - energy(p, best)
    assert np.all(excess <= certify(p, w).gap + 1e-12)
    assert np.all(excess >= p.eps * divergence(w, best) - 1e-12)


@given(problems_and_weights())
def test_distance_bounds_the_way_to_the_optimum(drawn):
    p, w = drawn
    best = solve(p, 1e-18)
    way = np.abs(w - best.weights).sum(-1)
    assert np.all(way <= certify(p, w).distance + best.certificate.distance)


@given(problems_and_weights())
def test_certificate_is_the_divergence_from_the_gate(drawn):
    p, w = drawn
    response = gate(p, w)
    assume(response.min() > 1e-290)  # else its logarithm is out of reach
    np.testing.assert_allclose(certify(p, w).gap, p.eps * divergence(w, response), rtol=1e-9, atol=1e-12)


_gradient = jax.jit(jax.grad(lambda w, p: complexity(p, w)[0]))
_curvature = jax.jit(jax.hessian(lambda w, p: complexity(p, w)[0]))


@given(problems_and_weights(d=6, n=4, faintest=-5.0, holes=False))
def test_gradient_and_curvature_of_the_complexity(drawn):
    p, w = drawn
    slope = _gradient(jnp.asarray(w), p)
    np.testing.assert_allclose(slope, primitive_cost(p, w) + 1.0, rtol=0, atol=1e-10)

    curvature = np.asarray(_curvature(jnp.asarray(w), p))[0, :, 0, :]
    eigenvalues = np.linalg.eigvalsh(curvature)
    bound = w.shape[-1] * p.pi.max() / p.pi.min()
    assert eigenvalues.min() >= -1e-10 * bound
    assert eigenvalues.max() <= bound * (1.0 + 1e-10)


@given(problems(largest_cost=3.0))
def test_optimum_is_the_fixed_point_of_the_gate(p):
    w = solve(p, 1e-24).weights
    np.testing.assert_allclose(gate(p, w), w, rtol=0, atol=1e-10)


def mirror(p, w):
    z = (np.log(w) - primitive_cost(p, w) + p.eps[..., None] * p.log_prior) / (1.0 + p.eps[..., None])
    w = np.exp(z - z.max(-1, keepdims=True))
    return w / w.sum(-1, keepdims=True)


@given(problems_and_weights())
def test_mirror_step_descends_and_contracts(drawn):
    p, w = drawn
    best = solve(p, 1e-18).weights
    start, contraction = divergence(best, w), 1.0
    for _ in range(5):
        after = mirror(p, w)
        if after.min() < 1e-290:
            return  # the next logarithm would be of an underflow
        contraction /= 1.0 + p.eps
        assert np.all(energy(p, after) <= energy(p, w) + 1e-12)
        assert np.all(divergence(best, after) <= contraction * start + 1e-10)
        w = after


@given(problems(), st.randoms(use_true_random=False))
def test_permuting_primitives_permutes_the_weights(p, random):
    order = random.sample(range(p.pi.shape[-1]), p.pi.shape[-1])
    permuted = p._replace(pi=p.pi[..., order], log_prior=p.log_prior[..., order])
    np.testing.assert_allclose(solve(permuted, 1e-20).weights, solve(p, 1e-20).weights[..., order], rtol=0, atol=1e-10)


@given(problems(), st.floats(-1e3, 1e3))
def test_a_constant_in_the_cost_moves_the_energy_alone(p, constant):
    raised = p._replace(action_cost=p.action_cost + constant)
    before, after = solve(p, 1e-18).weights, solve(raised, 1e-18).weights
    # adding the constant rounds the costs by up to 1e-13, which the temperature magnifies
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-10)
    np.testing.assert_allclose(energy(raised, after), energy(p, before) + constant, rtol=1e-12, atol=1e-10)


@given(problems_and_weights(d=5, n=4, log_eps=(-0.5, 1.0)))
@settings(max_examples=40)
def test_gate_is_the_prox_of_entropy_minus_half_the_square(drawn):
    p, w = drawn
    target = (p.log_prior - primitive_cost(p, w) / p.eps[..., None])[0]

    def objective(u):
        barrier = np.sum(u * np.log(u)) - 0.5 * np.sum(u**2)
        return barrier + 0.5 * np.sum((u - target) ** 2), np.log(u) + 1.0 - target

    found = minimize(
        objective, np.full(4, 0.25), jac=True, method="SLSQP", bounds=[(1e-12, 1.0)] * 4,
        constraints={"type": "eq", "fun": lambda u: u.sum() - 1.0, "jac": np.ones_like},
        options={"ftol": 1e-15, "maxiter": 500},
    )  # fmt: skip
    np.testing.assert_allclose(gate(p, w)[0], found.x, rtol=0, atol=1e-5)


@given(problems_and_weights())
def test_energy_is_the_mean_of_its_gradient(drawn):
    p, w = drawn
    slope = primitive_cost(p, w) + p.eps[..., None] * (np.log(w) - p.log_prior)
    np.testing.assert_allclose(energy(p, w), np.sum(w * slope, -1), rtol=1e-12, atol=1e-12)


@given(problems_and_weights(largest_cost=1e4, log_eps=(-3.0, 1.0)))
def test_gate_stays_on_the_simplex(drawn):
    p, w = drawn
    response = gate(p, w)
    assert np.all(response >= 0)
    np.testing.assert_allclose(response.sum(-1), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_corners_of_the_simplex_have_finite_energy_and_certificate(name):
    p = member(name, (5,))  # problem k meets corner k
    corners = np.eye(5)
    assert np.all(np.isfinite(energy(p, corners)))
    assert np.all(np.isfinite(primitive_cost(p, corners)))
    alone = np.einsum("kik->ki", p.pi)
    surprise = np.log(np.where(alone > 0, alone, 1.0)) + p.action_cost
    expected = np.sum(alone * surprise, -1) - p.eps * np.diag(p.log_prior)
    np.testing.assert_allclose(energy(p, corners), expected, rtol=1e-12, atol=1e-12)
    gap, distance = certify(p, corners)
    assert np.all(gap >= 0)
    assert np.all((distance >= 0) & (distance <= 2))


@pytest.mark.parametrize("name", FAMILIES)
def test_jax_arrays_give_jax_arrays_of_the_same_value(name, rng):
    p = member(name, (12,))
    in_jax = jax.tree.map(jnp.asarray, p)
    w = rng.dirichlet(np.ones(5), size=12)
    for verb in (primitive_cost, complexity, energy, gate):
        ours, theirs = verb(p, w), verb(in_jax, jnp.asarray(w))
        assert isinstance(ours, np.ndarray)
        assert isinstance(theirs, jax.Array)
        np.testing.assert_allclose(theirs, ours, rtol=1e-11, atol=1e-12)
    gap, distance = certify(in_jax, jnp.asarray(w))
    assert isinstance(gap, jax.Array)
    assert isinstance(distance, jax.Array)
    np.testing.assert_allclose(gap, certify(p, w).gap, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("verb", [primitive_cost, complexity, energy, gate, certify, solve])
@pytest.mark.parametrize("to", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
def test_a_single_problem_is_a_batch_without_axes(verb, to):
    p = member("generic", (1,))
    single = jax.tree.map(lambda a: to(a[0]), p)
    w = np.full((1, 5), 0.2)
    arguments = ((single,), (p,)) if verb is solve else ((single, to(w[0])), (p, w))
    one, many = (jax.tree.leaves(verb(*given)) for given in arguments)
    for lone, row in zip(one, many, strict=True):
        assert np.shape(lone) == row.shape[1:]
        np.testing.assert_allclose(lone, row[0], rtol=1e-9, atol=1e-12)


def test_log_pi_shows_zeros_as_minus_infinity_and_goes_back():
    p = member("sparse", (12,))
    assert np.isneginf(p.log_pi).any()
    again = problem(log_pi=p.log_pi, action_cost=p.action_cost, eps=p.eps, log_prior=p.log_prior)
    for field, before in zip(again, p, strict=True):
        np.testing.assert_allclose(field, before, rtol=1e-14, atol=0)


def test_weights_broadcast_against_the_batch(rng):
    p = member("generic", (12,))
    w = rng.dirichlet(np.ones(5))
    together = energy(p, w)
    apart = [energy(Problem(*(field[k : k + 1] for field in p)), w)[0] for k in range(12)]
    np.testing.assert_allclose(together, apart, rtol=1e-14)
