"""Sampled actions: the same weights as a fine grid, in any dimension, with an error bar."""

from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm, qmc
from scipy.stats import t as student

from policychord import Composer, Outcome, certify, problem, solve
from policychord.actions import Finite, Grid, Sampled
from policychord.agent import Flow
from policychord.models import Cost
from policychord.primitives import Categorical, Gaussian, Table

TWO = {"low": Gaussian([-0.8], 0.5), "high": Gaussian([0.9], 0.4)}
bumpy = Cost(lambda x, u, k: 2.0 * (u[0] - 0.3) ** 2 + jnp.sin(3 * u[0]))
weigh = eqx.filter_jit(lambda agent, x: agent.weigh(x, 0))


def both(actions, grid, primitives=TWO, model=bumpy, on_grid=None, **options):
    sampled = weigh(Composer(primitives, model, actions, 0.3, prior=[0.4, 0.6], **options), None)
    exact = weigh(Composer(on_grid or primitives, model, grid, 0.3, prior=[0.4, 0.6], **options), None)
    return sampled, np.asarray(exact.weights)


def test_on_the_line_it_agrees_with_a_fine_grid():
    sampled, exact = both(Sampled(dim=1, seed=1), Grid(-5.0, 5.0, 801))
    np.testing.assert_allclose(sampled.weights, exact, atol=0.01)
    assert np.all(np.abs(np.asarray(sampled.weights) - exact) <= student.ppf(0.999, 3) * sampled.standard_error)
    assert sampled.outcome == Outcome.CONVERGED
    # the certificate is of the problem on the points
    assert certify(jax.tree.map(np.asarray, sampled.problem), np.asarray(sampled.weights)).gap <= 1.01e-10
    assert weigh(Composer(TWO, bumpy, Grid(-5.0, 5.0, 41), 0.3), None).standard_error is None


def test_a_quadratic_cost_needs_few_points():
    square = Cost(lambda x, u, k: 2.0 * (u[0] - 0.3) ** 2)
    sampled, exact = both(Sampled(dim=1, count=64, seed=2), Grid(-5.0, 5.0, 801), model=square)
    np.testing.assert_allclose(sampled.weights, exact, atol=0.01)


def test_in_a_box_gaussians_are_cut_as_on_a_grid():
    sampled, exact = both(Sampled(-1.0, 1.0, count=1024), Grid(-1.0, 1.0, 2001))
    np.testing.assert_allclose(sampled.weights, exact, atol=0.01)
    assert np.all(np.abs(sampled.drawn.actions.points) <= 1.0)


def test_squashed_actions_have_the_density_of_the_change_of_variables():
    line = np.linspace(-1.0, 1.0, 4001)[1:-1]
    y = np.arctanh(line)

    def log_pi(mean, sd, x, k):
        return jnp.asarray(-0.5 * ((y - mean) / sd) ** 2 - np.log(1 - line**2))

    on_grid = {
        name: Categorical(eqx.Partial(log_pi, *given)) for name, given in (("low", (-0.8, 0.5)), ("high", (0.9, 0.4)))
    }
    sampled, exact = both(Sampled(-1.0, 1.0, squash=True, count=1024), Finite(line[:, None]), on_grid=on_grid)
    np.testing.assert_allclose(sampled.weights, exact, atol=0.01)
    assert np.all(np.abs(sampled.drawn.actions.points) < 1.0)


def judge(case, cost):
    """Weights on 2^15 points by importance sampling alone: nothing of columns, control variates or error bars."""
    means, sds, _, eps = (np.asarray(part) for part in case)
    n, dim = means.shape
    rng = np.random.default_rng(0)
    drawn = [qmc.Sobol(dim, scramble=True, rng=rng).random(2**15 // n) for _ in range(n)]
    u = np.concatenate(
        [m + s * norm.ppf(np.clip(z, 1e-12, 1 - 1e-12)) for m, s, z in zip(means, sds, drawn, strict=True)]
    )
    log_pi = np.stack([norm.logpdf(u, m, s).sum(axis=1) for m, s in zip(means, sds, strict=True)], axis=1)
    log_q = logsumexp(log_pi, axis=1) - np.log(n)
    pi = np.exp(log_pi - log_q[:, None])
    price = np.asarray(jax.vmap(lambda one: cost(case, one, 0))(jnp.asarray(u)))
    return solve(problem(pi=pi / pi.sum(0), action_cost=price + log_q, eps=float(eps))).weights


def coupled(x, u, k):
    return (u - 0.4) @ x[2] @ (u - 0.4)


def bent(x, u, k):
    return jnp.sqrt(1 + coupled(x, u, k)) + jnp.mean(jnp.sin(3 * u))


@pytest.mark.parametrize("cost", [coupled, bent])
def test_weights_and_error_bars_hold_in_six_dimensions(cost):
    """Primitives that overlap and ones that hardly do: half of |dw| is below .005, and 95% intervals are just that."""
    primitives = [Gaussian(lambda x, k, a=a: x[0][a], lambda x, k, a=a: x[1][a]) for a in range(3)]
    agent = Composer(primitives, Cost(cost), Sampled(dim=6), lambda x, k: x[3], tol=1e-12, route="jax")

    @eqx.filter_jit
    def many(agent, case, uniforms):
        def one(own):
            found = eqx.tree_at(lambda a: a.actions.uniforms, agent, own).weigh(case)
            return found.weights, *agent.interval(found)

        return jax.lax.map(one, uniforms)

    sets = jnp.stack([Sampled(dim=6, seed=s).uniforms for s in range(40)])
    off, held = [], []
    for number, (apart, eps) in enumerate(product((1.0, 3.0), (0.3, 1.0))):
        rng = np.random.default_rng(number)
        root = rng.normal(size=(6, 6))
        bend = root @ root.T / 6 + 0.1 * np.eye(6)
        means, sds = rng.normal(size=(3, 6)) * apart / np.sqrt(6), np.exp(0.2 * rng.normal(size=(3, 6)))
        case = tuple(jnp.asarray(part) for part in (means, sds, 2 * bend / np.trace(bend), eps))
        weights, low, high = (np.asarray(part) for part in many(agent, case, sets))
        right = np.asarray(judge(case, cost))
        off.append(np.abs(weights - right))
        held.append((low <= right) & (right <= high))
    assert np.median(off) <= 0.005
    # 160 repeats: two standard errors of a binomial around .92 and .98
    assert 0.92 - 0.035 <= np.mean(held) <= 0.995


@pytest.mark.parametrize("far", [1.0, 3.0, 5.0, 8.0, 9.0])
def test_intervals_of_weights_that_are_next_to_nothing(far):
    """From 1e-1 to 1e-235: a square of the smallest is zero, and one minus it is one."""
    apart = {"near": Gaussian([0.0], 0.5), "far": Gaussian([far], 0.6)}
    square = Cost(lambda x, u, k: 2.0 * u[0] ** 2)
    right = np.asarray(weigh(Composer(apart, square, Grid(-6.0, 16.0, 4401), 0.3, tol=1e-12), None).weights)
    held = []
    for seed in range(12):
        agent = Composer(apart, square, Sampled(dim=1, seed=seed), 0.3, tol=1e-12)
        found = weigh(agent, None)
        low, high = (np.asarray(end) for end in agent.interval(found))
        assert np.all(np.asarray(found.standard_error) > 0)
        assert np.all((low >= 0) & (low <= found.weights) & (found.weights <= high) & (high <= 1))
        held.append((low <= right) & (right <= high))
    assert np.mean(held) >= 0.75


def test_intervals_belong_to_sampled_actions():
    agent = Composer(TWO, bumpy, Sampled(dim=1), 0.3)
    found = weigh(agent, None)
    narrow, wide = (agent.interval(found, level) for level in (0.5, 0.99))
    assert np.all((wide[0] < narrow[0]) & (narrow[1] < wide[1]))
    # where they are short they are those of the weights themselves
    half = student.ppf(0.75, 3) * np.asarray(found.standard_error)
    np.testing.assert_allclose(narrow[1] - narrow[0], 2 * half, rtol=1e-2)
    alone = Composer({"low": TWO["low"]}, bumpy, Sampled(dim=1), 0.3)
    np.testing.assert_allclose(alone.interval(weigh(alone, None)), 1.0)
    with pytest.raises(ValueError, match="level = 95"):
        agent.interval(found, 95.0)
    grid = agent.replace(actions=Grid(-5.0, 5.0, 201))
    with pytest.raises(ValueError, match=r"no standard error.*certificate\.distance"):
        grid.interval(weigh(grid, None))


def test_other_gates_and_selections_see_the_cost_and_the_prior_as_they_are():
    base = Composer(TWO, bumpy, Sampled(dim=1), 0.3, prior=[0.4, 0.6])
    np.testing.assert_allclose(weigh(base.replace(gate="prior"), None).weights, [0.4, 0.6], rtol=1e-12)
    assert weigh(base.replace(gate="cheapest"), None).weights[1] > 0.99
    flown, best = weigh(base.replace(gate=Flow(40.0)), None), weigh(base, None)
    np.testing.assert_allclose(flown.weights, best.weights, atol=1e-5)
    decide = eqx.filter_jit(lambda agent, key: agent.decide(key, None))
    mode = decide(base.replace(selection="mode", gate="prior"), jax.random.key(0))
    assert float(mode.action[0]) == pytest.approx(0.9, abs=0.1)  # the narrower and more probable of the two
    mean = decide(base.replace(selection="mean", gate="prior"), jax.random.key(0))
    assert float(mean.action[0]) == pytest.approx(0.4 * -0.8 + 0.6 * 0.9, abs=1e-12)  # the primitives' own means
    assert mean.action.shape == (1,)


def test_a_primitive_that_is_not_a_number_is_left_out():
    broken = {"low": TWO["low"], "high": Gaussian(lambda x, k: x / 0.0 * 0.0, 0.4)}
    found = weigh(Composer(broken, bumpy, Sampled(dim=1), 0.3), jnp.zeros(1))
    np.testing.assert_allclose(found.weights, [1.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("count", [4, 8, 16])
def test_a_few_points_serve(count):
    """Rollouts from every point are dear; with few points the standard error is large and says so."""
    actions = Sampled(dim=1, count=count)
    assert actions.size == count
    assert len(actions.uniforms) == (4 if count == 16 else 2)
    found = weigh(Composer(TWO, bumpy, actions, 0.3), jnp.zeros(1))
    many = weigh(Composer(TWO, bumpy, Sampled(dim=1, count=1024), 0.3), jnp.zeros(1))
    assert np.all(np.isfinite(found.standard_error))
    assert np.all(np.asarray(many.standard_error) < np.asarray(found.standard_error))
    np.testing.assert_allclose(found.weights, many.weights, atol=0.3)


def test_complaints():
    with pytest.raises(ValueError, match=r"primitives\['table'\] is a Table, from which no actions can be drawn"):
        Composer({"table": Table(np.full(256, 1 / 256))}, bumpy, Sampled(dim=1), 0.3)
    with pytest.raises(ValueError, match="squash needs a box"):
        Sampled(dim=2, squash=True)
    with pytest.raises(ValueError, match="at least 2 scrambles"):
        Sampled(dim=2, scrambles=1)
    with pytest.raises(ValueError, match="2 scrambles of 2 points do not suffice for 3 primitives: pass count=6"):
        Composer([TWO["low"]] * 3, bumpy, Sampled(dim=1, count=4), 0.3).weigh(jnp.zeros(1))
    with pytest.raises(ValueError, match="low < high"):
        Sampled(1.0, -1.0)
    tilted = Gaussian([0.0, 0.0], covariance=[[1.0, 0.5], [0.5, 1.0]])
    agent = Composer([tilted], bumpy, Sampled([-1.0] * 2, 1.0), 0.3)
    with pytest.raises(ValueError, match="cannot be cut at the sides of a box"):
        agent.weigh(None)
