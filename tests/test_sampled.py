"""Sampled actions: the same weights as a fine grid, in any dimension, with an error bar."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import t as student

from policychord import Composer, Outcome, certify
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


def test_error_bars_cover_in_six_dimensions(rng):
    primitives = [Gaussian(rng.normal(size=6), rng.uniform(0.4, 0.8, 6)) for _ in range(3)]
    model = Cost(lambda x, u, k: jnp.sum(u**2) + jnp.sum(jnp.abs(u - 0.4)))
    agent = Composer(primitives, model, Sampled(dim=6), 0.5, tol=1e-13, route="jax")

    @eqx.filter_jit
    def many(agent, uniforms):
        def one(own):
            found = eqx.tree_at(lambda a: a.actions.uniforms, agent, own).weigh(None)
            return found.weights, found.standard_error

        return jax.lax.map(one, uniforms)

    weights, error = many(agent, jnp.stack([Sampled(dim=6, seed=s).uniforms for s in range(60)]))
    truth = np.asarray(many(agent, Sampled(dim=6, count=16384, seed=99).uniforms[None])[0][0])
    off = np.abs(np.asarray(weights) - truth)
    assert np.median(off) < 0.02
    assert 0.85 <= np.mean(off <= student.ppf(0.975, 3) * np.asarray(error)) <= 1.0


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
    assert float(mean.action[0]) == pytest.approx(0.4 * -0.8 + 0.6 * 0.9, abs=0.02)
    assert mean.action.shape == (1,)


def test_a_primitive_that_is_not_a_number_is_left_out():
    broken = {"low": TWO["low"], "high": Gaussian(lambda x, k: x / 0.0 * 0.0, 0.4)}
    found = weigh(Composer(broken, bumpy, Sampled(dim=1), 0.3), jnp.zeros(1))
    np.testing.assert_allclose(found.weights, [1.0, 0.0], atol=1e-12)


def test_complaints():
    with pytest.raises(ValueError, match=r"primitives\['table'\] is a Table, from which no actions can be drawn"):
        Composer({"table": Table(np.full(256, 1 / 256))}, bumpy, Sampled(dim=1), 0.3)
    with pytest.raises(ValueError, match="squash needs a box"):
        Sampled(dim=2, squash=True)
    with pytest.raises(ValueError, match="at least 2 scrambles"):
        Sampled(dim=2, scrambles=1)
    with pytest.raises(ValueError, match="low < high"):
        Sampled(1.0, -1.0)
    tilted = Gaussian([0.0, 0.0], covariance=[[1.0, 0.5], [0.5, 1.0]])
    agent = Composer([tilted], bumpy, Sampled([-1.0] * 2, 1.0), 0.3)
    with pytest.raises(ValueError, match="cannot be cut at the sides of a box"):
        agent.weigh(None)
