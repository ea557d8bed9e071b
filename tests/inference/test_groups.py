"""Groups with predictors: against NumPyro, and how often intervals hold the truth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import inference as inf
from policychord.inference import search

SPREAD = np.array([0.5, 0.5])


def log_prob(theta, unit):
    x, y = unit
    utility = theta["a"] + theta["b"] * x
    return jax.nn.log_sigmoid(jnp.where(y > 0, utility, -utility))


MODEL = inf.Model("logistic", (inf.real("a"), inf.real("b", scale=2.0)), log_prob)


def cohort(seed, people, trials, beta=(0.0, 0.8)):
    """People of two groups, half of each, whose second coefficient differs."""
    rng = np.random.default_rng(seed)
    group = np.arange(people) % 2 - 0.5
    z = np.array([0.3, 1.0]) + group[:, None] * beta + SPREAD * rng.normal(size=(people, 2))
    x = rng.normal(size=(people, trials))
    y = 1.0 * (rng.random((people, trials)) < 1.0 / (1.0 + np.exp(-z[:, :1] - z[:, 1:] * x)))
    given = inf.likelihood(MODEL, (x.ravel(), y.ravel()), groups=np.repeat(np.arange(people), trials), at_once=1024)
    return group, x, y, given


def test_a_regression_of_people_agrees_with_numpyro():
    numpyro = pytest.importorskip("numpyro")
    from numpyro import distributions as dist

    group, x, y, given = cohort(3, 24, 120)
    found = inf.empirical_bayes(given, group, starts=1)
    ours = {(each.parameter, each.predictor): each for each in inf.effects_of(found, given, ("group",))}

    def model():
        beta = numpyro.sample("beta", dist.Normal(0.0, 5.0).expand([2, 2]).to_event(2))
        sd = numpyro.sample("sd", dist.HalfNormal(2.0).expand([2]).to_event(1))
        offset = numpyro.sample("offset", dist.Normal(0.0, 1.0).expand([24, 2]).to_event(2))
        z = beta[0] + group[:, None] * beta[1] + sd * offset
        numpyro.sample("y", dist.Bernoulli(logits=z[:, :1] + z[:, 1:] * x).to_event(2), obs=y)

    sampler = numpyro.infer.MCMC(numpyro.infer.NUTS(model), num_warmup=200, num_samples=500, progress_bar=False)
    sampler.run(jax.random.key(0))
    draws = sampler.get_samples()
    for k, name in enumerate(("a", "b")):
        for p, predictor in enumerate(("", "group")):
            mine, theirs = ours[name, predictor], np.asarray(draws["beta"][:, p, k])
            assert abs(mine.value - theirs.mean()) < 0.25 * theirs.std()
            assert mine.error == pytest.approx(theirs.std(), rel=0.2)
        assert ours[name, "group"].sd == pytest.approx(float(draws["sd"][:, k].mean()), rel=0.2)


def test_intervals_of_differences_hold_the_truth():
    """Of 80 small cohorts: 95% intervals, and a difference of the detectable size is found about as often as said."""
    inside, errors, estimates, least = [], [], [], []
    for seed in range(80):
        group, _, _, given = cohort(seed, 16, 40)
        rows = inf.effects_of(inf.empirical_bayes(given, group, starts=1), given, ("group",))[2:]
        inside.append([row.low <= truth <= row.high for row, truth in zip(rows, (0.0, 0.8), strict=True)])
        errors.append([row.error for row in rows])
        estimates.append([row.value for row in rows])
        least.append(rows[0].detectable)
    share = np.mean(inside)
    assert share > 0.89  # three and a half standard errors of 160 intervals below .95
    np.testing.assert_allclose(np.mean(errors, axis=0), np.std(estimates, axis=0), rtol=0.25)
    found = np.mean(np.abs(np.mean(least) + np.array(estimates)[:, 0]) > 2.145 * np.array(errors)[:, 0])
    assert 0.64 < found < 0.94


def test_the_error_of_a_mean_knows_that_people_are_hardly_measured():
    """Few trials: the error is as wide as the spread of means over cohorts; it was that of well measured people."""
    means, errors = [], []
    for seed in range(60):
        group = inf.empirical_bayes(cohort(seed, 20, 8, (0.0, 0.0))[-1], starts=1)
        means.append(group.mean)
        errors.append(group.error)
    np.testing.assert_allclose(np.mean(errors, axis=0), np.std(means, axis=0), rtol=0.25)


def test_predictors_that_say_nothing_are_refused():
    given = cohort(0, 6, 5)[-1]
    for wrong, words in (
        (np.ones(6), "constant"),
        (np.zeros(5), "a row for each of 6"),
        (np.stack([np.arange(6), 2 * np.arange(6)], axis=1), "follows from the others"),
    ):
        with pytest.raises(ValueError, match=words):
            inf.empirical_bayes(given, wrong)
    group = inf.empirical_bayes(given, np.arange(6) % 2, starts=1)
    with pytest.raises(ValueError, match="pass one for each of the 1 predictors"):
        inf.effects_of(group, given)
    with pytest.raises(ValueError, match="there is nothing to compare"):
        inf.contrasts_of(["a", "a"])
    with pytest.raises(ValueError, match="is no real number"):
        inf.by_condition(MODEL, ("B - A",), ("c",))


def test_contrasts_have_the_mean_over_labels_as_their_zero():
    found = inf.contrasts_of(["a", "b", "c", "c"])
    assert found.names == ("b - a", "c - a")
    np.testing.assert_allclose(found.values[:3].sum(axis=0), 0.0, atol=1e-15)
    beta = np.array([2.0, -1.0])
    values = found.values @ beta
    np.testing.assert_allclose(values[1:3] - values[0], beta)


@pytest.mark.parametrize("scored", [False, True])
def test_a_run_that_ends_on_a_kink_ends(scored):
    """At the ridge of -|z| no step is higher and no slope is zero: the curvature was measured again without end."""
    calls = []

    def objective(z, which):
        calls.append(1)
        assert len(calls) < 1000
        answer = -np.abs(z).sum(axis=1), -np.sign(z + 1e-300)
        return (*answer, np.tile(np.eye(z.shape[1]), (len(z), 1, 1))) if scored else answer

    modes = search.maximise_groups(objective, np.array([[0.3, -0.7]]))
    np.testing.assert_allclose(modes.z, 0.0, atol=1e-6)


def test_starts_that_came_as_high_are_counted():
    def objective(z, which):
        """Two modes, of which the second start alone reaches the higher one."""
        left, right = -((z + 2.0) ** 2) - 1.0, -((z - 2.0) ** 2)
        value = np.where(left > right, left, right)[:, 0]
        return value, np.where(left > right, -2 * (z + 2.0), -2 * (z - 2.0))

    starts = np.array([-2.5, 1.5, -1.5])[:, None, None]
    best = search.maximise_from_starts(objective, starts)
    assert best.z[0, 0] == pytest.approx(2.0, abs=1e-4)
    assert best.reached.tolist() == [1]
