"""From weights to an action: drawn, averaged, most probable, or in turns."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from policychord import Composer
from policychord.actions import Finite, Grid
from policychord.agent.decision import _draw, _first_above
from policychord.models import Cost
from policychord.primitives import Gaussian, Table

TABLES = {
    "low": Table([0.0, 0.6, 0.4, 0.0, 0.0, 0.0]),
    "high": Table([0.0, 0.0, 0.1, 0.0, 0.9, 0.0]),
    "flat": Table([0.0, 0.3, 0.3, 0.0, 0.4, 0.0]),
}
AGENT = Composer(TABLES, Cost([0.0, 0.5, 0.2, 0.1, 0.4, 0.0]), Finite(6), 0.3)
LINE = Grid(-2.0, 2.0, 41)
MOVER = Composer(
    {name: Gaussian([mean], 0.3) for name, mean in (("left", -1.0), ("here", 0.1), ("right", 1.5))},
    Cost(lambda x, u, k: (u[0] - 0.2) ** 2), LINE, 0.5, selection="mean",
)  # fmt: skip

decide = eqx.filter_jit(lambda agent, key, memory: agent.decide(key, None, 0, memory))


def mixture(agent):
    weighed = agent.weigh(None)
    return np.asarray(weighed.problem.pi @ weighed.weights)


def test_draws_follow_the_mixture():
    draws = jax.jit(jax.vmap(lambda key: AGENT.decide(key, None).action))(jax.random.split(jax.random.key(7), 20_000))
    counts = np.bincount(np.asarray(draws), minlength=6)
    prob = mixture(AGENT)
    assert (counts[prob == 0] == 0).all()
    assert chisquare(counts[prob > 0], 20_000 * prob[prob > 0] / prob.sum()).pvalue > 1e-3


def test_an_action_without_probability_is_never_drawn(monkeypatch, rng):
    """Whatever the uniform number is, also exactly where the distribution function stands still."""
    prob = rng.random(900) * (rng.random(900) < 0.5)
    prob[-3:] = prob[:3] = 0.0
    prob = jnp.asarray(prob / prob.sum())
    # a parallel sum is not monotone in its last digit, so its own values are the levels to try
    levels = np.asarray(jnp.cumsum(prob)).repeat(3)
    levels[::3], levels[2::3] = np.nextafter(levels[::3], 0), np.nextafter(levels[2::3], 2)
    levels = np.concatenate([[0.0, 5e-324, 1 - 2**-53], np.minimum(levels, 1 - 2**-53)])
    monkeypatch.setattr(jax.random, "uniform", lambda key, dtype: key)
    drawn = jax.jit(jax.vmap(lambda level: _draw(level, prob)))(levels)
    assert (np.asarray(prob)[np.asarray(drawn)] > 0).all()
    # blocks of 30 are summed one by one; over all 900 the sum also rises, by rounding, where the probability is zero
    assert (np.diff(np.asarray(jnp.cumsum(prob)))[np.asarray(prob)[1:] == 0] > 0).any()
    drawn = jax.jit(jax.vmap(lambda level: _first_above(prob, level)[0]))(levels)
    assert (np.asarray(prob)[np.asarray(drawn)] > 0).all()


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, lambda f: lambda x: jax.vmap(f)(x[None])[0]])
def test_a_level_that_rounding_took_below_zero_draws_what_can_be(wrap):
    """The number less the sum of the blocks before can be -1e-17, and 0 > -1e-17."""
    prob = jnp.array([0.0, 0.0, 0.5, 0.0, 0.5, 0.0])
    for level, index in ((-1e-17, 2), (0.0, 2), (0.5, 4), (1.0, 4), (1.1, 4)):
        assert wrap(lambda level: _first_above(prob, level)[0])(jnp.asarray(level)) == index


def test_mean_is_the_mean_of_the_mixture():
    decision = MOVER.decide(jax.random.key(0), None)
    np.testing.assert_allclose(decision.action, mixture(MOVER) @ np.asarray(LINE.points), rtol=1e-12)
    assert decision.action.shape == (1,)


def test_mode_is_the_most_probable_action():
    assert AGENT.replace(selection="mode").decide(jax.random.key(0), None).action == np.argmax(mixture(AGENT))
    decision = MOVER.replace(selection="mode").decide(jax.random.key(0), None)
    np.testing.assert_array_equal(decision.action, LINE.points[np.argmax(mixture(MOVER))])


def test_only_drawing_depends_on_the_key():
    for selection in ("mean", "mode", "dither"):
        agent = MOVER.replace(selection=selection)
        actions = {float(decide(agent, jax.random.key(seed), agent.start()).action[0]) for seed in range(5)}
        assert len(actions) == 1
    drawn = {
        float(decide(MOVER.replace(selection="sample"), jax.random.key(s), MOVER.start()).action[0]) for s in range(5)
    }
    assert len(drawn) > 1


@pytest.mark.parametrize("n", [2, 3, 7])
def test_dither_takes_turns_as_often_as_the_weights_say(n, rng):
    """Debts stay bounded, so frequencies approach the weights like 1/time.

    Nobody is ahead by a whole turn; who is owed most is served first, so a debt is at most a harmonic number.
    """
    means = np.linspace(-1.8, 1.8, n)
    agent = Composer(
        [Gaussian([mean], 0.05) for mean in means], Cost(np.zeros(41)), LINE, 0.5, prior=rng.dirichlet(np.ones(n)),
        selection="dither", gate="prior",
    )  # fmt: skip

    def turn(memory, k):
        decision = agent.decide(jax.random.key(0), None, k, memory)
        return decision.memory, (decision.action[0], decision.memory.debt)

    steps = 500
    _, (actions, debts) = jax.jit(lambda memory: jax.lax.scan(turn, memory, jnp.arange(steps)))(agent.start())
    whose = np.argmin(np.abs(np.asarray(actions)[:, None] - means), axis=1)
    counts = np.cumsum(np.eye(n)[whose], axis=0)
    promised = np.arange(1, steps + 1)[:, None] * np.exp(np.asarray(agent.log_prior))
    np.testing.assert_allclose(debts, promised - counts, atol=1e-9)
    assert np.min(debts) > -1
    assert np.max(debts) < np.sum(1 / np.arange(2, n + 1)) + 1e-9


def test_dither_acts_by_the_mean_of_one_primitive():
    agent = MOVER.replace(selection="dither")
    decision = agent.decide(jax.random.key(0), None)
    turn = int(np.argmax(decision.weights))
    column = np.asarray(agent.problem(None).pi)[:, turn]
    np.testing.assert_allclose(decision.action, column @ np.asarray(LINE.points), rtol=1e-12)


def test_dither_draws_labels_of_the_primitive_whose_turn_it_is():
    agent = AGENT.replace(selection="dither", prior=[0.1, 0.8, 0.1], gate="prior")
    drawn = {int(decide(agent, jax.random.key(seed), agent.start()).action) for seed in range(30)}
    assert drawn == {2, 4}


def test_debts_are_kept_by_dither_alone():
    for selection in ("sample", "mode"):
        decision = AGENT.replace(selection=selection).decide(jax.random.key(0), None)
        np.testing.assert_array_equal(decision.memory.debt, np.zeros(3))
        np.testing.assert_array_equal(decision.memory.weights, decision.weights)
