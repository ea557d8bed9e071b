"""Everybody's coefficients: against statsmodels, where no maximum exists, and against many independent starts."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import approx_fprime
from statsmodels.discrete.conditional_models import ConditionalLogit

from policychord.choices.data import Task
from policychord.choices.estimate import EFFECT, WEAK, choice_likelihood, coefficients_of, fit
from policychord.choices.learners import Trials, believe
from policychord.choices.models import classic, features, log_proba, log_reference
from policychord.choices.simulate import cohort as cohort_of
from policychord.choices.tasks import Arms
from policychord.inference import estimate
from policychord.inference.optimise import log_posterior
from policychord.worlds.bandit import Belief

LINKS = ("probit", "logit")


def of_beliefs(mean, variance, choice):
    """Trials of one person in one block, with beliefs that are known."""
    rows = len(choice)
    return Trials(
        subject=np.ones(rows, int), block=np.ones(rows, int), trial=np.arange(1, rows + 1), choice=np.asarray(choice),
        previous=np.full(rows, -1), mean=np.asarray(mean, float), variance=np.asarray(variance, float), source="test",
        reward=np.zeros(rows), prior=Arms(*(value * np.ones_like(mean) for value in (0.0, 1.0, 10.0, 0.0, 1.0))),
    )  # fmt: skip


def play(rng, arms=2, coef=(1.0, -0.6), link="logit", rows=300):
    """Choices of a Hybrid person whose beliefs are random."""
    trials = of_beliefs(2 * rng.normal(size=(rows, arms)), rng.uniform(0.1, 4.0, (rows, arms)), np.zeros(rows, int))
    prob = np.exp(log_proba(classic("Hybrid", link), trials, np.tile(coef, (rows, 1))))
    choice = (np.cumsum(prob, axis=1) < rng.random((rows, 1))).sum(1)
    return trials._replace(choice=np.minimum(choice, arms - 1))


@pytest.mark.parametrize("link", LINKS)
def test_coefficients_likelihood_and_errors_are_those_of_statsmodels(rng, link):
    trials = play(rng, link=link)
    x = features("Hybrid", trials)
    family = sm.families.Binomial(sm.families.links.Probit() if link == "probit" else sm.families.links.Logit())
    judge = sm.GLM((trials.choice == 0).astype(float), x[:, 0] - x[:, 1], family=family).fit(method="newton")
    fitted = fit(classic("Hybrid", link), trials)
    np.testing.assert_allclose(fitted.coef[0], judge.params, rtol=1e-3)
    assert fitted.log_likelihood[0] == pytest.approx(judge.llf, abs=1e-5)
    np.testing.assert_allclose(fitted.error[0], judge.bse, rtol=0.02)
    assert not fitted.separated[0]


def test_more_arms_are_the_conditional_logit(rng):
    trials = play(rng, arms=4, rows=120)
    chosen = (np.arange(4) == trials.choice[:, None]).astype(float)
    x = features("Hybrid", trials).reshape(-1, 2)
    judge = ConditionalLogit(chosen.ravel(), x, groups=np.repeat(np.arange(120), 4)).fit(disp=False)
    fitted = fit(classic("Hybrid", "logit"), trials)
    np.testing.assert_allclose(fitted.coef[0], judge.params, rtol=2e-3)
    assert fitted.log_likelihood[0] == pytest.approx(judge.llf, abs=1e-5)


@pytest.mark.parametrize(("link", "arms"), [("probit", 2), ("logit", 2), ("logit", 4)])
def test_the_policy_is_the_same_in_numpy_and_jax_and_has_a_derivative(rng, link, arms):
    trials = play(rng, arms=arms, link=link, rows=5)
    model = classic("Hybrid", link, stickiness=True, lapse=True)
    coef = np.array([0.7, -1.2, 0.4, 0.1])
    belief = Belief(trials.mean, trials.variance)

    def policy(coef, xp):
        theta = dict(zip(model.coefficients, coef, strict=True))
        return log_reference(model.link, theta, Belief(*(xp.asarray(part) for part in belief)), trials.previous)

    with jax.enable_x64(True):
        np.testing.assert_allclose(policy(coef, np), policy(jax.numpy.asarray(coef), jax.numpy), atol=1e-13)
        slope = jax.jacfwd(lambda coef: policy(coef, jax.numpy))(jax.numpy.asarray(coef))
    numeric = approx_fprime(coef, lambda coef: policy(coef, np).ravel(), 1e-7)
    np.testing.assert_allclose(np.asarray(slope).reshape(-1, 4), numeric, atol=1e-5)


def test_tails_are_exact():
    trials = of_beliefs([[40.0, 0.0], [0.0, 40.0]], np.ones((2, 2)), [0, 0])
    log_p = log_proba(classic("Value", "probit"), trials, np.ones((2, 1)))
    assert np.isfinite(log_p).all()
    assert log_p[0, 1] == pytest.approx(-804.608, abs=1e-3)  # ln Phi(-40)
    assert log_p[0, 0] == 0.0


@pytest.mark.parametrize("link", LINKS)
def test_perfect_separation_gives_finite_coefficients_and_says_so(rng, link):
    mean = rng.normal(size=(60, 2))
    trials = of_beliefs(mean, np.ones((60, 2)), mean.argmax(1))
    fitted = fit(classic("Value", link), trials)
    assert fitted.separated[0]
    assert np.isnan(fitted.error[0]).all()
    assert 0 < fitted.coef[0, 0] < np.inf
    assert -12 < fitted.log_likelihood[0] < 0


@pytest.mark.parametrize("arms", [2, 3])
def test_separation_is_seen_where_some_trials_say_nothing(rng, arms):
    """Half of the trials are coin flips between equal arms; along the others the coefficient grows without end."""
    mean = 0.1 * rng.normal(size=(80, arms))
    choice = mean.argmax(1)
    mean[40:], choice[40:] = 0.0, rng.integers(0, arms, 40)
    fitted = fit(classic("Value", "logit"), of_beliefs(mean, np.ones((80, arms)), choice))
    assert fitted.separated[0]
    assert fitted.log_likelihood[0] == pytest.approx(-40 * np.log(arms), abs=3.0)
    choice[0] = mean[0].argmin()  # one choice against the feature
    assert not fit(classic("Value", "logit"), of_beliefs(mean, np.ones((80, arms)), choice)).separated[0]


@pytest.mark.parametrize("link", LINKS)
def test_strong_but_honest_effects_are_not_called_separated(rng, link):
    assert not fit(classic("Hybrid", link), play(rng, coef=(8.0, 0.0), link=link)).separated[0]


@pytest.mark.parametrize("link", LINKS)
def test_the_weak_prior_is_the_declared_one(rng, link):
    """At the estimate the slope of the likelihood equals the pull of N(0, 30^2) on coefficient times spread."""
    mean = 0.3 * rng.normal(size=(60, 2))
    trials = of_beliefs(mean, np.ones((60, 2)), mean.argmax(1))
    model = classic("Value", link)
    fitted = fit(model, trials)
    with jax.enable_x64(True):
        _, slope = log_posterior(choice_likelihood(model, trials), fitted.z[0])
    np.testing.assert_allclose(slope, fitted.z[0] / WEAK.sd**2, rtol=1e-3)
    spread = np.sqrt(np.mean((mean - mean.mean(1, keepdims=True)) ** 2))
    np.testing.assert_allclose(fitted.z[0], fitted.coef[0] * spread / EFFECT, rtol=1e-9)
    assert EFFECT * WEAK.sd == 30.0


def test_fits_in_threads_leave_warning_filters_alone(rng):
    cases = [play(rng, rows=60) for _ in range(4)]
    fit(classic("Hybrid", "logit"), cases[0])
    before = list(warnings.filters)
    with warnings.catch_warnings(record=True) as said, ThreadPoolExecutor(2) as pool:
        warnings.simplefilter("always")
        inside = list(warnings.filters)
        list(pool.map(lambda trials: fit(classic("Hybrid", "logit"), trials), cases))
        assert warnings.filters == inside
    assert said == []
    assert warnings.filters == before


def test_always_the_same_arm_and_features_that_say_nothing_are_harmless(rng):
    mean = np.tile([1.0, 0.0], (40, 1)) * np.linspace(1, 2, 40)[:, None]
    fitted = fit(classic("Value", "probit"), of_beliefs(mean, np.ones((40, 2)), np.zeros(40, int)))
    assert fitted.separated[0]
    assert np.isfinite(fitted.coef).all()
    trials = play(rng)
    still = trials._replace(variance=np.ones_like(trials.variance))  # RU is the same for all arms
    hybrid, thompson = (fit(classic(name, "logit"), still) for name in ("Hybrid", "Thompson"))
    np.testing.assert_allclose(hybrid.log_likelihood, thompson.log_likelihood, atol=1e-8)


@pytest.mark.parametrize("name", ["delta", "Value+stickiness+lapse", "kalman/noise:UCB"])
def test_nobody_is_left_below_the_best_of_many_starts(name):
    with jax.enable_x64(True):
        task = Task("own data", (4.0,) * 3, 1.0)
        choices, model, _ = cohort_of(task, name, (), 6, blocks=2, trials=30, seed=5)
        trials = believe(choices)
        given = choice_likelihood(model, trials)
        mine = fit(model, trials)
        starts = np.random.default_rng(1).normal(scale=(2.0 if name == "delta" else 1.0), size=(40, mine.z.shape[1]))
        best = estimate(given, starts=starts)
        here = estimate(given, starts=mine.z[None])
    assert (here.log_posterior >= best.log_posterior - 0.05).all()
    assert np.isfinite(log_proba(model, trials, coefficients_of(mine, trials))).all()


def test_bad_requests_are_named(rng):
    with pytest.raises(ValueError, match="use 'probit' or 'logit'"):
        classic("Value", "cauchit")
    with pytest.raises(ValueError, match="use link='logit'"):
        fit(classic("Value", "probit"), play(rng, arms=3))
    with pytest.raises(ValueError, match="make them by `believe`"):
        fit(classic("Value"), play(rng)._replace(prior=None))
