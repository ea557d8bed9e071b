"""Regressions on choices: the two engines against each other, against statsmodels, and where no maximum exists."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import approx_fprime
from statsmodels.discrete.conditional_models import ConditionalLogit

from policychord.choices import fit_choices, log_choice_prob
from policychord.choices.glm import log_choice_slope

LINKS = ("probit", "logit")


def play(rng, options=2, coef=(1.0, -0.6), link="logit", trials=300):
    x = rng.normal(size=(trials, options, len(coef)))
    prob = np.exp(log_choice_prob(x, np.asarray(coef), link))
    choice = (np.cumsum(prob, axis=1) < rng.random((trials, 1))).sum(1)
    return x, np.minimum(choice, options - 1)


@pytest.mark.parametrize("link", LINKS)
def test_engines_agree(rng, link):
    x, y = play(rng, link=link)
    ours, theirs = fit_choices(x, y, link, engine="scoring"), fit_choices(x, y, link)
    np.testing.assert_allclose(ours.coef, theirs.coef, atol=1e-5)
    assert ours.log_likelihood == pytest.approx(theirs.log_likelihood, abs=1e-8)
    assert (ours.separated, theirs.separated) == (False, False)


@pytest.mark.parametrize("link", LINKS)
def test_likelihood_is_that_of_statsmodels(rng, link):
    x, y = play(rng, link=link)
    family = sm.families.Binomial(sm.families.links.Probit() if link == "probit" else sm.families.links.Logit())
    judge = sm.GLM((y == 0).astype(float), x[:, 0] - x[:, 1], family=family).fit()
    assert fit_choices(x, y, link).log_likelihood == pytest.approx(judge.llf, abs=1e-8)


def test_more_options_are_the_conditional_logit(rng):
    x, y = play(rng, options=4, trials=120)
    chosen = (np.arange(4) == y[:, None]).astype(float)
    judge = ConditionalLogit(chosen.ravel(), x.reshape(-1, 2), groups=np.repeat(np.arange(120), 4)).fit(disp=False)
    found = fit_choices(x, y)
    np.testing.assert_allclose(found.coef, judge.params, atol=1e-4)
    assert found.log_likelihood == pytest.approx(judge.llf, abs=1e-6)


def test_coefficients_are_found_again(rng):
    x, y = play(rng, options=3, trials=20_000)
    np.testing.assert_allclose(fit_choices(x, y).coef, [1.0, -0.6], atol=0.05)


@pytest.mark.parametrize(("link", "options"), [("probit", 2), ("logit", 2), ("logit", 4)])
def test_slope_is_the_derivative(rng, link, options):
    x, coef = rng.normal(size=(5, options, 2)), np.array([0.7, -1.2])
    slope = log_choice_slope(x, coef, link)
    for t in range(5):
        for o in range(options):
            numeric = approx_fprime(coef, lambda c, t=t, o=o: log_choice_prob(x, c, link)[t, o], 1e-7)
            np.testing.assert_allclose(slope[t, o], numeric, atol=1e-5)


def test_tails_are_exact():
    x = np.array([[[40.0], [0.0]], [[0.0], [40.0]]])
    log_prob = log_choice_prob(x, [1.0], "probit")
    assert np.isfinite(log_prob).all()
    assert log_prob[0, 1] == pytest.approx(-804.608, abs=1e-3)  # ln Phi(-40)
    assert log_prob[0, 0] == 0.0


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("engine", ["statsmodels", "scoring"])
def test_perfect_separation_gives_finite_coefficients_and_says_so(rng, link, engine):
    x = rng.normal(size=(60, 2, 1))
    y = (x[:, 0, 0] < x[:, 1, 0]).astype(int)
    found = fit_choices(x, y, link, engine=engine)
    assert found.separated
    assert np.isfinite(found.coef).all()
    assert found.coef[0] > 0
    assert -12 < found.log_likelihood < 0


@pytest.mark.parametrize(("engine", "options"), [("statsmodels", 2), ("scoring", 2), ("scoring", 3)])
def test_separation_is_seen_where_some_trials_say_nothing(rng, engine, options):
    """Half of the trials are coin flips between equal options; along the others the coefficient grows without end."""
    x = 0.1 * rng.normal(size=(80, options, 1))
    y = x[..., 0].argmax(1)
    x[40:], y[40:] = 0.0, rng.integers(0, options, 40)
    found = fit_choices(x, y, engine=engine)
    assert found.separated
    assert found.log_likelihood == pytest.approx(-40 * np.log(options), abs=3.0)
    y[0] = x[0, :, 0].argmin()  # one choice against the feature
    assert not fit_choices(x, y, engine=engine).separated


@pytest.mark.parametrize("link", LINKS)
def test_strong_but_honest_effects_are_not_called_separated(rng, link):
    x, y = play(rng, coef=(8.0, 0.0), link=link)
    for engine in ("statsmodels", "scoring"):
        assert not fit_choices(x, y, link, engine=engine).separated


@pytest.mark.parametrize("link", LINKS)
def test_the_prior_of_a_separated_fit_has_a_deviation_of_ten(rng, link):
    """At its maximum the slope of the likelihood equals the pull of the prior: coef scale^2 / 10^2."""
    x = 0.3 * rng.normal(size=(60, 2, 1))
    y = (x[:, 0, 0] < x[:, 1, 0]).astype(int)
    coef = fit_choices(x, y, link).coef
    scale = np.sqrt(np.mean((x - x.mean(1, keepdims=True)) ** 2))
    slope = log_choice_slope(x, coef, link)[np.arange(60), y].sum(0)
    np.testing.assert_allclose(slope, coef * scale**2 / 100.0, rtol=1e-3)


def test_fits_in_threads_leave_warning_filters_alone(rng):
    import warnings
    from concurrent.futures import ThreadPoolExecutor

    cases = [play(rng, trials=60) for _ in range(8)]
    separated = [(x, (x[:, 0, 0] < x[:, 1, 0]).astype(int)) for x, _ in cases]
    before = list(warnings.filters)
    with warnings.catch_warnings(record=True) as said, ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("always")
        inside = list(warnings.filters)
        list(pool.map(lambda case: fit_choices(*case), cases + separated))
        assert warnings.filters == inside
    assert said == []
    assert warnings.filters == before


def test_always_the_same_option():
    x = np.tile([[1.0], [0.0]], (40, 1, 1)) * np.linspace(1, 2, 40)[:, None, None]
    found = fit_choices(x, np.zeros(40, dtype=int), "probit")
    assert found.separated
    assert np.isfinite(found.coef).all()


def test_features_that_say_nothing_are_harmless(rng):
    x, y = play(rng)
    x = np.concatenate([x, np.ones((*x.shape[:2], 1))], axis=-1)  # the same for all options
    found = fit_choices(x, y)
    assert found.log_likelihood == pytest.approx(fit_choices(x[..., :2], y).log_likelihood, abs=1e-8)


@pytest.mark.parametrize(
    ("features", "choice", "link", "words"),
    [
        (np.zeros((3, 2)), [0, 1, 0], "logit", "features has shape"),
        (np.full((3, 2, 1), np.nan), [0, 1, 0], "logit", "finite"),
        (np.zeros((3, 2, 1)), [0, 1, 2], "logit", "index from 0 to 1"),
        (np.zeros((3, 2, 1)), [0.0, 1.0, 0.0], "logit", "dtype float64"),
        (np.zeros((3, 2, 1)), [0, 1], "logit", "3 trials"),
        (np.zeros((3, 3, 1)), [0, 1, 2], "probit", "use link='logit'"),
        (np.zeros((3, 2, 1)), [0, 1, 0], "cauchit", "'probit' or 'logit'"),
    ],
)
def test_bad_arguments_are_named(features, choice, link, words):
    with pytest.raises(ValueError, match=words):
        fit_choices(features, np.asarray(choice), link)
