"""Acting by the posterior of a mixture, and the gate that belongs to it."""

import flint
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policychord as pc
from policychord import Composer
from policychord.actions import Finite, Grid, Sampled
from policychord.core.complexities import tilt
from policychord.models import Cost
from policychord.primitives import Gaussian, Table

KEY = jax.random.key(0)
LINE = Grid(-2.0, 2.0, 41)
HABITS = {"left": Gaussian([-1.0], 0.3), "right": Gaussian([1.0], 0.4)}
BOWL = Cost(lambda x, u, k: 3.0 * (u[0] - 0.2) ** 2)
MOVER = Composer(HABITS, BOWL, LINE, 0.5, selection="posterior mean")
TABLES = {"low": Table([0.0, 0.6, 0.4, 0.0]), "high": Table([0.0, 0.1, 0.1, 0.8])}
CHOOSER = Composer(TABLES, Cost([0.0, 0.5, 2.0, 0.1]), Finite(4), 0.3, selection="posterior")


def by_hand(agent, beta):
    weighed = agent.weigh(None)
    p = np.asarray(weighed.problem.pi @ weighed.weights) * np.exp(-beta * np.asarray(weighed.cost))
    return p / p.sum()


# ------------------------------------------------------------- acting


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 30), st.floats(0.01, 300.0), st.floats(0.0, 3.0), st.floats(0.0, 3.0), st.integers(0, 2**32 - 1))
def test_a_stronger_posterior_never_expects_a_higher_cost(size, scale, first, second, seed):
    """dE_p[s]/dbeta = -Var_p(s): with beta = 0 the mixture itself."""
    rng = np.random.default_rng(seed)
    log_mixture, cost = np.log(rng.dirichlet(np.full(size, 0.3)) + 1e-300), scale * rng.normal(size=size)
    weak, strong = sorted((first, second))
    expected = [float(np.exp(tilt(log_mixture, cost, beta)) @ cost) for beta in (0.0, weak, strong)]
    assert expected[2] <= expected[1] + 1e-9 * scale <= expected[0] + 2e-9 * scale


def test_its_slope_is_the_variance(rng):
    log_mixture, cost = jnp.log(rng.dirichlet(np.ones(9))), jnp.asarray(rng.normal(size=9))
    p = np.exp(tilt(log_mixture, cost, 0.7))
    slope = jax.grad(lambda beta: jnp.exp(tilt(log_mixture, cost, beta)) @ cost)(0.7)
    assert float(slope) == pytest.approx(-float(p @ cost**2 - (p @ cost) ** 2), rel=1e-10)


def test_the_posterior_is_the_least_of_its_objective(rng):
    """KL(p || mixture) + beta E_p[s] is lower than at any other distribution, and is -ln of the sum that normalises."""
    mixture, cost, beta = rng.dirichlet(np.ones(6)), rng.normal(size=6), 1.7

    def objective(p):
        return float(np.sum(p * (np.log(p) - np.log(mixture))) + beta * p @ cost)

    least = objective(np.exp(np.asarray(tilt(np.log(mixture), cost, beta))))
    assert least == pytest.approx(-np.log(mixture @ np.exp(-beta * cost)), abs=1e-12)
    assert all(objective(rng.dirichlet(np.ones(6))) > least for _ in range(50))


def test_the_mean_of_a_posterior_may_cost_more_than_that_of_the_mixture():
    """Of a cost that is not convex: the mixture's mean lies in a valley, the posterior's on the ridge beside it."""
    points = jnp.array([[-1.0], [0.0], [3.0]])
    habit = Table([0.45, 0.0, 0.55])

    def price(x, u, k):
        return jnp.interp(u[0], jnp.array([-1.0, 0.0, 1.2, 3.0]), jnp.array([0.0, 2.0, 0.0, 1.0]))

    agent = Composer({"habit": habit}, Cost(price), Finite(points), 0.5, selection="posterior mean")
    weighed = agent.weigh(None)
    mixture, posterior = np.asarray(weighed.mixture), np.asarray(agent.policy(weighed))
    means = [p @ np.asarray(points)[:, 0] for p in (mixture, posterior)]
    assert posterior @ weighed.cost < mixture @ weighed.cost
    assert price(None, means[1:], 0) > price(None, means[:1], 0) + 0.5


@pytest.mark.parametrize("beta", [0.0, 0.5, 4.0])
def test_the_mean_action_by_hand(beta):
    agent = MOVER.replace(beta=beta)
    expected = by_hand(agent, beta) @ np.asarray(LINE.points)
    np.testing.assert_allclose(agent.decide(KEY, None).action, expected, rtol=1e-12)


def test_no_strength_is_the_mixture():
    np.testing.assert_allclose(
        MOVER.replace(beta=0.0).decide(KEY, None).action, MOVER.replace(selection="mean").decide(KEY, None).action
    )


def test_draws_follow_the_posterior():
    keys = jax.random.split(jax.random.key(3), 20_000)
    draws = np.asarray(jax.jit(jax.vmap(lambda key: CHOOSER.decide(key, None).action))(keys))
    share, expected = np.bincount(draws, minlength=4) / len(draws), by_hand(CHOOSER, 1.0)
    np.testing.assert_allclose(share, expected, atol=4 * np.sqrt(0.25 / len(draws)))
    assert share[0] == 0.0  # nobody takes it, however cheap it is


def test_what_it_would_do_is_its_posterior():
    np.testing.assert_allclose(np.exp(CHOOSER.log_prob(CHOOSER.actions, None, 0)), by_hand(CHOOSER, 1.0), rtol=1e-10)
    trace = pc.replay(CHOOSER, 0.0, lambda belief, choice, seen, k: belief, choices=[[1, 3, 2]])
    np.testing.assert_allclose(np.exp(trace.log_prob[0]), by_hand(CHOOSER, 1.0)[[1, 3, 2]], rtol=1e-8)


def test_sampled_actions_agree_with_a_grid():
    """Points that primitives draw stand for all actions, and so do those of a fine grid that reaches far enough."""
    fine = MOVER.replace(actions=Grid(-4.0, 4.0, 801), beta=2.0)
    for gate in ("equilibrium", "posterior"):
        drawn = fine.replace(actions=Sampled(dim=1, count=2048), gate=gate)
        one, other = fine.replace(gate=gate).decide(KEY, None), drawn.decide(KEY, None)
        np.testing.assert_allclose(other.action, one.action, atol=5e-3)
        np.testing.assert_allclose(other.weights, one.weights, atol=2e-3)


def test_a_cost_that_is_no_number_takes_the_fallback():
    broken = Composer(HABITS, Cost(lambda x, u, k: x * u[0]), LINE, 0.5, selection="posterior mean", fallback="prior")
    action = jax.jit(lambda x: broken.decide(KEY, x).action)(jnp.nan)
    mixture = broken.replace(selection="mean", gate="prior").decide(KEY, 0.0).action
    np.testing.assert_allclose(action, mixture, atol=1e-12)


# ------------------------------------------------------------- the gate


def posed(pi, cost, eps, prior=None):
    return pc.problem(pi=pi, action_cost=cost, eps=eps, prior=prior, combine="posterior")


def evidence(pi, cost):
    return np.asarray(pi).T @ np.exp(-np.asarray(cost))


def two_by_bisection(pi, cost, eps, prior):
    """The first weight, where the gate's own equation changes sign, to fifty digits."""
    flint.ctx.dps = 60
    z = [sum(flint.arb(float(p)) * (-flint.arb(float(s))).exp() for p, s in zip(column, cost, strict=True))
         for column in np.asarray(pi).T]  # fmt: skip
    eps, first, second = flint.arb(float(eps)), flint.arb(float(prior[0])), flint.arb(float(prior[1]))

    def off(w):  # ln(w/(1 - w)) less what the gate makes of it: it rises with w
        return (w / (1 - w)).log() - (first / second).log() - (z[0] - z[1]) / (eps * (w * z[0] + (1 - w) * z[1]))

    low, high = flint.arb(10) ** -50, 1 - flint.arb(10) ** -50
    assert off(low) < 0 < off(high)
    for _ in range(180):
        middle = ((low + high) / 2).mid()
        low, high = (middle, high) if off(middle) < 0 else (low, middle)
    return float(low.mid())


def test_two_primitives_against_a_bracketed_root(rng):
    for eps in (0.05, 0.3, 2.0):
        pi, cost, prior = rng.dirichlet(np.ones(5), 2).T, 2.0 * rng.normal(size=5), rng.dirichlet([3.0, 3.0])
        prior[1] = 1.0 - prior[0]
        found = pc.solve(posed(pi, cost, eps, prior), tol=1e-13)
        assert found.weights[0] == pytest.approx(two_by_bisection(pi, cost, eps, prior), abs=1e-9)


def test_the_weights_are_a_softmax_of_the_evidence(rng):
    """w ~ w_hat exp(z_a / (eps sum_b w_b z_b)), certified, in two hundred problems of all temperatures and scales."""
    eps, scale = 10 ** rng.uniform(-2, 1, 200), 10 ** rng.uniform(-1, 2.5, 200)
    pi = rng.dirichlet(np.full(12, 0.3), (200, 4)).swapaxes(1, 2)
    cost, prior = scale[:, None] * rng.normal(size=(200, 12)), rng.dirichlet(np.ones(4), 200)
    problem = posed(pi, cost, eps, prior)
    found = pc.solve(problem, tol=1e-10)
    w, best = found.weights, np.min(cost, axis=1, keepdims=True)
    z = np.einsum("bia,bi->ba", pi, np.exp(best - cost))
    z = z / z.max(axis=1, keepdims=True)
    y = np.log(prior) + z / (eps * np.sum(w * z, axis=1))[:, None]
    expected = np.exp(y - y.max(axis=1, keepdims=True))
    np.testing.assert_allclose(pc.gate(problem, w), expected / expected.sum(axis=1, keepdims=True), atol=1e-9)
    others = rng.dirichlet(np.ones(4), (20, 200))
    energies = np.stack([pc.energy(problem, other) for other in others])
    assert np.all(energies >= pc.energy(problem, w) - found.certificate.gap)
    bounds = np.stack([pc.certify(problem, other).gap for other in others])
    assert np.all(bounds >= energies - pc.energy(problem, w) - 1e-9)
    shifted = pc.solve(posed(pi, cost + 500.0, eps, prior))
    np.testing.assert_allclose(shifted.weights, w, atol=1e-8)


def test_limits(rng):
    pi, cost, prior = rng.dirichlet(np.ones(6), 3).T, rng.normal(size=6), np.array([0.2, 0.5, 0.3])
    np.testing.assert_allclose(pc.solve(posed(pi, cost, 1e6, prior)).weights, prior, atol=1e-5)
    cold = pc.solve(posed(pi, cost, 1e-3, prior)).weights
    assert cold[np.argmax(evidence(pi, cost))] > 1 - 1e-6
    same = pc.solve(posed(np.repeat(pi[:, :1], 3, axis=1), cost, 0.1, prior)).weights
    np.testing.assert_allclose(same, prior, atol=1e-9)


def test_the_flow_descends_to_it(rng):
    problem = posed(rng.dirichlet(np.ones(6), 3).T, rng.normal(size=6), 0.3)
    path, found = pc.flow(problem, 40.0, save=41), pc.solve(problem)
    assert np.all(np.diff(path.energy) <= 1e-9)
    np.testing.assert_allclose(path.weights[-1], found.weights, atol=1e-6)
    slope = np.gradient(path.energy, path.times)[1:4]
    assert np.all(np.sign(slope) == np.sign(path.dissipation[1:4]))


def test_the_derivative_of_the_weights(rng):
    pi, cost = jnp.asarray(rng.dirichlet(np.ones(6), 3).T), jnp.asarray(rng.normal(size=6))

    def first(beta):
        return pc.solve(posed(pi, beta * cost, 0.3), tol=1e-13).weights[0]

    assert float(jax.grad(first)(1.0)) == pytest.approx(float(first(1.0 + 1e-4) - first(1.0 - 1e-4)) / 2e-4, rel=1e-6)


def test_a_composer_uses_its_gate():
    agent = MOVER.replace(gate="posterior", beta=2.0)
    decision = agent.decide(KEY, None)
    problem = agent.problem(None)
    assert decision.optimal
    assert pc.certify(problem, decision.weights).gap <= 1e-9
    z = evidence(problem.pi, 2.0 * np.asarray(agent.weigh(None).cost))
    w = np.asarray(decision.weights)
    np.testing.assert_allclose(np.log(w[0] / w[1]), (z[0] - z[1]) / (0.5 * w @ z), rtol=1e-6)
    # together they attain a lower objective than with the paper's weights
    paper = np.asarray(agent.replace(gate="equilibrium").decide(KEY, None).weights)
    assert pc.energy(problem, w) < pc.energy(problem, paper)
    capped = agent.replace(regulariser=pc.Entropy(caps=0.6)).decide(KEY, None)
    assert float(capped.weights.max()) == pytest.approx(min(0.6, w.max()), abs=1e-9)


def test_a_primitive_that_is_no_number_is_left_out():
    broken = HABITS | {"broken": Gaussian(lambda x, k: jnp.array([x]), 0.3)}
    agent = Composer(broken, BOWL, LINE, 0.5, selection="posterior mean", gate="posterior")
    decision = jax.jit(lambda x: agent.decide(KEY, x))(jnp.nan)
    assert decision.weights[2] == 0.0
    whole = MOVER.replace(gate="posterior").decide(KEY, None)
    np.testing.assert_allclose(decision.weights[:2], whole.weights, atol=1e-8)
    np.testing.assert_allclose(decision.action, whole.action, atol=1e-8)


def test_settings_that_nobody_reads():
    with pytest.raises(ValueError, match=r"beta = 2\.0 is the strength of the posterior"):
        Composer(HABITS, BOWL, LINE, 0.5, beta=2.0)
    with pytest.raises(ValueError, match="one finite number of at least 0"):
        MOVER.replace(beta=-1.0)
    with pytest.raises(ValueError, match='use selection="posterior"'):
        Composer(HABITS, BOWL, LINE, 0.5, gate="posterior")
    with pytest.raises(ValueError, match='Use gate="posterior" with combine="mixture"'):
        MOVER.replace(combine="posterior")
    with pytest.raises(ValueError, match='Use gate="posterior" with combine="mixture"'):
        MOVER.replace(combine="product", gate="posterior")
    with pytest.raises(ValueError, match="labels"):
        CHOOSER.replace(selection="posterior mean")
    assert MOVER.replace(beta=3.0).replace(selection="mean").replace(selection="posterior mean").beta == 1.0
    assert MOVER.replace(beta=3.0).replace(gate="prior").beta == 3.0
