"""The theorems about the flow, on random problems, and what `flow` accepts and refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from policychord import ConvergenceError, Entropy, Tsallis, certify, dissipation, energy, flow, gate, problem, solve
from policychord.core.stability import curvatures

SEEDS = st.integers(0, 2**32 - 1)
BATCH, D, N = 12, 10, 3  # one shape, so that one compilation serves all


def draw(seed):
    rng = np.random.default_rng(seed)
    pi = rng.gamma(10 ** rng.uniform(-0.5, 1, (BATCH, 1, 1)), size=(BATCH, D, N)) + 1e-6
    p = problem(
        pi=pi / pi.sum(1, keepdims=True),
        action_cost=rng.normal(scale=2, size=(BATCH, D)),
        eps=10 ** rng.uniform(-1.7, 0.7, BATCH),
        prior=rng.dirichlet(np.full(N, 3.0), BATCH),
    )
    return p, rng.dirichlet(np.ones(N), BATCH)


@given(SEEDS)
@examples(max_examples=8)
def test_stays_on_the_simplex(seed):
    p, start = draw(seed)
    weights = flow(p, start=start).weights
    assert np.abs(weights.sum(-1) - 1).max() <= 1e-12
    assert weights.min() > 0


@given(SEEDS)
@examples(max_examples=8)
def test_energy_and_weights_obey_their_bounds(seed):
    p, start = draw(seed)
    path = flow(p, start=start)
    best = solve(p, tol=1e-20)
    gap = path.energy - energy(p, best.weights)[:, None]
    assert np.all(gap <= np.exp(-path.times) * gap[:, :1] + 1e-10)
    distance = np.linalg.norm(path.weights - best.weights[:, None], axis=-1)
    assert np.all(distance <= np.sqrt(2 / p.eps[:, None] * gap[:, :1]) * np.exp(-path.times / 2) + 1e-8)
    # the certificate along the path bounds the same gap
    assert np.all(gap <= path.certificate.gap + 1e-12)


@given(SEEDS)
@examples(max_examples=8)
def test_dissipation_is_the_slope_of_the_energy(seed):
    p, start = draw(seed)
    path = flow(p, t1=1.0, start=start, save=2001)
    slope = np.gradient(path.energy, path.times, axis=-1, edge_order=2)[:, 1:-1]
    np.testing.assert_allclose(slope, path.dissipation[:, 1:-1], rtol=1e-2, atol=1e-5)  # finite differences are coarse
    exact = jax.jvp(lambda w: energy(p, w), (start,), (gate(p, start) - start,))[1]
    np.testing.assert_allclose(exact, dissipation(p, start), rtol=1e-6, atol=1e-10)


def test_ends_at_the_optimum_whatever_the_start():
    p, _ = draw(5)
    one = problem(pi=p.pi[0], action_cost=p.action_cost[0], eps=p.eps[0])
    starts = np.vstack([np.eye(N), np.full((1, N), 1 / N)])  # vertices included
    path = flow(one, t1=40.0, start=starts)
    assert path.weights.shape == (4, 101, N)
    np.testing.assert_allclose(path.weights[:, -1], np.tile(solve(one, tol=1e-20).weights, (4, 1)), atol=1e-9)
    assert np.all(path.weights[:, 1:] > 0)  # the flow leaves the border at once


def test_tau_only_stretches_time():
    p, start = draw(6)
    np.testing.assert_allclose(
        flow(p, t1=6.0, start=start, tau=3.0).weights, flow(p, t1=2.0, start=start).weights, atol=1e-8
    )


def test_the_energy_falls_more_slowly_with_a_longer_time_constant():
    p, start = draw(6)
    exact = jax.jvp(lambda w: energy(p, w), (start,), ((gate(p, start) - start) / 2.5,))[1]
    np.testing.assert_allclose(dissipation(p, start, tau=2.5), exact, rtol=1e-6, atol=1e-10)
    path = flow(p, t1=2.5, start=start, tau=2.5, save=11)
    np.testing.assert_allclose(path.dissipation[:, 4], dissipation(p, path.weights[:, 4]) / 2.5, rtol=1e-6, atol=1e-12)


def test_certificates_along_the_path_are_certify():
    p, start = draw(7)
    path = flow(p, start=start)
    again = certify(p, path.weights[:, 10])
    np.testing.assert_allclose(path.certificate.gap[:, 10], again.gap, rtol=1e-6, atol=1e-15)


def test_local_rates_are_one_plus_mu_over_eps():
    """At the optimum the flow has the real eigenvalues -(1 + mu/eps)/tau, and -1/tau for the mass."""
    p, _ = draw(8)
    eps = 0.5
    one = problem(pi=p.pi[1], action_cost=p.action_cost[1], eps=eps)
    w = jnp.asarray(solve(one, tol=1e-24).weights)
    rates = np.linalg.eigvals(jax.jacfwd(lambda w: gate(one, w) - w)(w))
    curvature = one.pi.T @ (one.pi / (one.pi @ w)[:, None])
    mu = np.sort(np.linalg.eigvals(w[:, None] * curvature).real)
    assert mu[-1] == pytest.approx(1.0)
    np.testing.assert_allclose(np.sort(rates.real), np.sort([-1.0, *(-1 - mu[:-1] / eps)]), rtol=1e-9)
    assert np.abs(rates.imag).max() < 1e-12


def test_curvatures_come_largest_first_without_that_of_the_mass():
    p, _ = draw(8)
    w = solve(p, tol=1e-24).weights
    hessian = np.swapaxes(p.pi, -1, -2) @ (p.pi / (p.pi @ w[..., None]))
    expected = np.sort(np.linalg.eigvals(w[..., None] * hessian).real)[:, -2::-1]
    np.testing.assert_allclose(curvatures(p), expected, atol=1e-5)
    assert np.median(np.ptp(expected, axis=-1)) > 0.01


def test_speaks_numpy_and_jax_and_traces():
    p, start = draw(9)
    plain = flow(p, start=start)
    assert isinstance(plain.weights, np.ndarray)
    traced = jax.jit(lambda q, w: flow(q, start=w).weights)(jax.tree.map(jnp.asarray, p), start)
    np.testing.assert_allclose(traced, plain.weights, atol=1e-12)
    assert isinstance(flow(jax.tree.map(jnp.asarray, p)).weights, jax.Array)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"t1": 0}, "t1 = 0"),
        ({"t1": np.nan}, "t1 = nan"),
        ({"tau": -1}, "tau = -1"),
        ({"save": 1}, "save = 1"),
        ({"save": 2.5}, "save = 2.5"),
        ({"start": [0.5, 0.6, 0.1]}, "start sums to 1.2"),
        ({"start": [0.5, 0.5]}, "start has shape"),
        ({"start": [1.5, -0.5, 0.0]}, r"start\[1\] = -0.5"),
        ({"start": np.full((5, 3), 1 / 3)}, "start has batch axes"),
    ],
)
@pytest.mark.usefixtures("without_type_checks")
def test_refuses_what_makes_no_sense(given, words):
    with pytest.raises(ValueError, match=words):
        flow(draw(1)[0], **given)


def test_gives_up_in_words_when_too_stiff(monkeypatch):
    monkeypatch.setattr("policychord.core.flow._MAX_STEPS", 50)
    rng = np.random.default_rng(0)
    pi = rng.dirichlet(np.ones(4), 2).T  # a shape of its own, compiled with the limit above
    stiff = problem(pi=pi, action_cost=rng.normal(size=4), eps=1e-4)
    with pytest.raises(ConvergenceError, match="raise eps"):
        flow(stiff)


def test_the_energy_falls_infinitely_fast_from_where_a_weight_is_zero():
    """KL(S || w) is infinite there: the slope of w ln w is. A sparse regulariser has a finite one."""
    pi = np.array([[0.5, 0.2, 0.1], [0.25, 0.3, 0.1], [0.125, 0.4, 0.3], [0.125, 0.1, 0.5]])
    parts = {"pi": pi, "action_cost": np.arange(4.0), "eps": 0.5}
    corners = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.4, 0.3, 0.3]])
    own = problem(complexity=lambda w: jnp.sum(w**2), n=3, eps=0.5)
    capped = problem(**parts, regulariser=Entropy(caps=[1.0, 0.9, 0.9]))
    for p in (problem(**parts), problem(**parts, combine="product"), own, capped):
        rate = dissipation(p, corners)
        assert rate[0] == rate[1] == -np.inf
        assert np.isfinite(rate[2])
        np.testing.assert_array_equal(jax.jit(lambda w, p=p: dissipation(p, w))(corners)[:2], rate[:2])
        assert flow(p, 1.0, start=corners[0], save=3).dissipation[0] == -np.inf
    sparse = problem(**parts, regulariser=Tsallis(1.5))
    assert np.isfinite(dissipation(sparse, corners)).all()
    assert np.isfinite(energy(problem(**parts), corners)).all()


def test_dissipation_where_the_response_underflows():
    """eps (KL(w || S) + KL(S || w)) with ln S of -1e5, of which S itself knows nothing."""
    p = problem(pi=np.eye(2), action_cost=[0.0, 100.0], eps=1e-3)
    np.testing.assert_allclose(dissipation(p, [0.5, 0.5]), -0.5 * 100.0, rtol=1e-12)
    np.testing.assert_allclose(dissipation(p, [0.5, 0.5], tau=[1.0, 2.0]), [-50.0, -25.0], rtol=1e-12)


@pytest.mark.usefixtures("without_type_checks")
@pytest.mark.parametrize("tau", [0.0, -1.0, np.nan, np.inf, "fast", None])
def test_dissipation_refuses_a_time_that_is_none(tau):
    p = problem(pi=np.eye(2), action_cost=[0.0, 1.0], eps=0.1)
    with pytest.raises(ValueError, match="tau"):
        dissipation(p, [0.5, 0.5], tau)
    with pytest.raises(ValueError, match=r"weights has shape \(3,\): the last axis needs one weight"):
        dissipation(p, [0.5, 0.25, 0.25])
