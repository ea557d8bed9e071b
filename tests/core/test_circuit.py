"""The circuit settles at the optimum, its reduction is exact, and its stability is known before it runs."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.special import logsumexp

from policychord import (
    Problem,
    TimeScales,
    circuit,
    circuit_stability,
    flow,
    primitive_cost,
    problem,
    solve,
    time_scales,
)
from policychord.core.circuit import _full_circuit, _reduced_circuit

STATED = TimeScales(1e-3, 1e-2, 1e-1, 1.0)  # each layer ten times faster than the next


def draw(seed, eps, batch=4, d=2, n=3, scale=1.0):
    rng = np.random.default_rng(seed)
    pi = rng.dirichlet(np.ones(d), (batch, n)).swapaxes(1, 2) * 0.98 + 0.02 / d
    return problem(
        pi=pi,
        action_cost=rng.normal(scale=scale, size=(batch, d)),
        eps=eps,
        prior=rng.dirichlet(np.full(n, 5.0), batch),
    )


def one_of(p, k=0):
    return Problem(*(jnp.asarray(np.asarray(field)[k]) for field in p))


@pytest.mark.parametrize("eps", [pytest.param(1e-3, marks=pytest.mark.thorough), 1e-2, 0.1, 1.0, 10.0])
def test_settles_at_the_optimum_at_any_temperature(eps):
    p = draw(1, eps)
    path = circuit(p)
    best = solve(p, tol=1e-20).weights
    np.testing.assert_allclose(path.layers.w[:, -1], best, atol=1e-6)
    np.testing.assert_allclose(path.weights.sum(-1), 1.0, atol=1e-12)
    assert np.all(path.certificate.gap[:, -1] <= 1e-9)
    # every layer has settled where the theory puts it
    y = p.log_prior - primitive_cost(p, best) / p.eps[:, None]
    np.testing.assert_allclose(path.layers.y[:, -1], y, atol=1e-5 / eps)
    np.testing.assert_allclose(path.layers.log_m[:, -1], logsumexp(y, axis=-1), atol=1e-5 / eps)
    np.testing.assert_allclose(path.layers.r[:, -1], np.log(best), atol=1e-5 / eps)
    np.testing.assert_allclose(path.layers.a[:, -1], np.einsum("bdn,bn->bd", p.pi, best), atol=1e-6)


def test_follows_the_flow_when_its_layers_are_fast():
    p = draw(2, 0.5)
    fast = circuit(p, t1=4.0, time_scales=time_scales(p.eps, ratio=300.0))
    np.testing.assert_allclose(fast.layers.w, flow(p, t1=4.0).weights, atol=5e-3)


def test_prior_enters_exactly():
    """Identical primitives leave nothing to the cost: the circuit must return the prior."""
    p = draw(3, 0.2)
    same = p._replace(pi=np.broadcast_to(p.pi[..., :1], p.pi.shape))
    np.testing.assert_allclose(circuit(same).layers.w[:, -1], np.exp(p.log_prior), atol=1e-7)


def test_reduction_is_exact():
    """At a = Pi v and beta = Pi^T b the reduced circuit moves exactly as the full one."""
    p = one_of(draw(4, 0.3, d=6))
    rng = np.random.default_rng(4)
    v = jnp.asarray(rng.dirichlet(np.ones(3)))
    b, y, r, w = (jnp.asarray(rng.normal(size=k)) for k in (6, 3, 3, 3))
    log_m = jnp.asarray(0.3)
    scales = TimeScales(*(jnp.asarray(t) for t in STATED))
    full, _ = _full_circuit(p, scales, v)
    reduced, _ = _reduced_circuit(p, scales, v)
    da, db, *rest = full(0.0, (p.pi @ v, b, y, log_m, r, w), None)
    dv, dbeta, *same = reduced(0.0, (v, p.pi.T @ b, y, log_m, r, w), None)
    np.testing.assert_allclose(p.pi @ dv, da, rtol=1e-13)
    np.testing.assert_allclose(dbeta, p.pi.T @ db, rtol=1e-12)
    for ours, theirs in zip(same, rest, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_full_circuit_gives_the_same_path():
    p = draw(5, 0.5, batch=1)
    small, all_neurons = circuit(p, t1=1.0, save=3), circuit(p, t1=1.0, save=3, reduced=False)
    np.testing.assert_allclose(small.layers.w, all_neurons.layers.w, atol=1e-5)
    np.testing.assert_allclose(small.layers.a, all_neurons.layers.a, atol=1e-5)
    projected = np.einsum("bdn,btd->btn", p.pi, all_neurons.layers.b)
    np.testing.assert_allclose(small.layers.b, projected, atol=1e-5)


def test_large_costs_neither_overflow_nor_underflow():
    """exp(y) would overflow here; carrying ln m does not."""
    p = draw(6, 0.01, scale=300.0)
    path = circuit(p)
    assert np.all(np.isfinite(path.layers.log_m))
    assert np.abs(path.layers.log_m).max() > 745
    np.testing.assert_allclose(path.layers.w[:, -1], solve(p, tol=1e-20).weights, atol=1e-6)


@pytest.mark.parametrize("eps", [1e-3, 0.05, 2.0])
def test_spectrum_is_that_of_the_jacobian(eps):
    p = draw(7, eps)
    scales = time_scales(p.eps)
    verdict = circuit_stability(p, scales)
    assert verdict.spectrum.shape == (4, 5 * 3 + 1)
    one = one_of(p)
    velocity, begin = _reduced_circuit(
        one, TimeScales(*(t[0] for t in scales)), jnp.asarray(solve(p, tol=1e-22).weights[0])
    )
    state, restore = ravel_pytree(begin)
    jacobian = jax.jacfwd(lambda x: ravel_pytree(velocity(0.0, restore(x), None))[0])(state)
    expected = np.linalg.eigvals(np.asarray(jacobian))
    for root in verdict.spectrum[0]:
        assert np.abs(expected - root).min() <= 1e-3 * abs(root)
    assert verdict.growth[0] == pytest.approx(expected.real.max(), rel=1e-4)


def test_spectrum_solves_the_characteristic_polynomials():
    eps = 0.2
    pi = np.array([[1.0, 0.15], [0.0, 0.85]])
    p = problem(pi=pi, action_cost=[0.0, 0.0], eps=eps)
    w = solve(p, tol=1e-24).weights
    mu = np.linalg.eigvals(w[:, None] * (pi.T @ (pi / (pi @ w)[:, None]))).real.min()
    g, gradient, s, tau = 0.01, 0.05, 0.2, 1.0
    roots = circuit_stability(p, TimeScales(g, gradient, s, tau)).spectrum
    modes = (1 + tau * roots) * (1 + s * roots) * (1 + g * roots) ** 2 * (eps + gradient * roots) + mu
    mass = (1 + tau * roots) * (1 + s * roots) ** 2 * (1 + g * roots) ** 2 * (eps + gradient * roots) + s * roots
    assert np.abs(modes[:5]).max() < 1e-6
    assert np.abs(mass[5:]).max() < 1e-8


def test_stable_rule_is_stable():
    rng = np.random.default_rng(8)
    p = problem(
        pi=rng.dirichlet(np.ones(5), (500, 4)).swapaxes(1, 2),
        action_cost=rng.normal(scale=3, size=(500, 5)),
        eps=10 ** rng.uniform(-3, 1, 500),
    )
    assert circuit_stability(p).stable.all()
    assert not circuit_stability(p, STATED).stable.all()


@pytest.mark.thorough
def test_unstable_time_scales_warn_and_oscillate():
    pi = np.array([[0.99, 0.5, 0.1], [0.01, 0.5, 0.9]])
    p = problem(pi=pi, action_cost=-np.log([0.6, 0.4]), eps=0.01)
    verdict = circuit_stability(p, STATED)
    assert not verdict.stable
    assert verdict.growth > 0
    with pytest.warns(UserWarning, match="time_scales"):
        path = circuit(p, t1=40.0, time_scales=STATED, save=401)
    assert np.ptp(path.layers.w[-100:], axis=0).max() > 0.05  # never settles
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        settled = circuit(p, t1=40.0, save=401)
    assert np.ptp(settled.layers.w[-100:], axis=0).max() < 1e-6


def test_time_scales_follow_the_rule():
    hot, cold = time_scales(2.0, tau=3.0, ratio=5.0), time_scales(0.1, tau=3.0, ratio=5.0)
    np.testing.assert_allclose(hot, (3 / 125, 3 / 25, 3 / 5, 3))
    np.testing.assert_allclose(cold, (0.01 * 3 / 125, 0.01 * 3 / 25, 0.1 * 3 / 5, 3))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"t1": -1.0}, "t1 = -1"),
        ({"time_scales": TimeScales(0.0, 0.1, 0.1, 1.0)}, "time_scales.hidden = 0"),
        ({"time_scales": TimeScales(0.1, np.nan, 0.1, 1.0)}, "time_scales.gradient = nan"),
        ({"start": [0.2, 0.2, 0.2]}, "start sums to 0.6"),
        ({"time_scales": 0.1}, "pass TimeScales"),
        ({"t1": "2"}, "t1 = '2'"),
        ({"time_scales": TimeScales(1e-12, 1e-3, 1e-2, 1.0)}, "too short"),
    ],
)
@pytest.mark.usefixtures("without_type_checks")
def test_refuses_what_makes_no_sense(given, words):
    with pytest.raises(ValueError, match=words):
        circuit(draw(1, 0.5), **given)


@pytest.mark.parametrize(
    ("given", "words"),
    [((0.1, 1.0, 1.0), "ratio = 1"), ((0.0,), "eps = 0"), ((-1.0,), "eps = -1"), ((0.1, np.nan), "tau = nan")],
)
def test_time_scales_refuse_what_makes_no_sense(given, words):
    with pytest.raises(ValueError, match=words):
        time_scales(*given)


def test_stability_of_nothing_and_of_nonsense():
    assert circuit_stability(draw(1, 0.5, batch=0)).stable.shape == (0,)
    with pytest.raises(ValueError, match=r"time_scales\.hidden = -1"):
        circuit_stability(draw(1, 0.5), TimeScales(-1.0, 1.0, 1.0, 1.0))


def test_too_cold_to_integrate_is_refused_at_once():
    with pytest.raises(ValueError, match=r"too short.*raise eps"):
        circuit(draw(1, 1e-4))
