"""The composed policy: the general solver, the exact reduction, and the agents' own replay give the same weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from benchmarks.reduction import two_arm_weights
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from policychord import Composer, replay
from policychord.actions import Finite
from policychord.choices.data import TASKS, Task
from policychord.choices.estimate import coefficients_of, fit
from policychord.choices.learners import believe, prior_belief, take
from policychord.choices.models import (
    FEATURES,
    KNOWN,
    LEAST,
    PAPER,
    classic,
    columns,
    compose,
    composed,
    exploit,
    log_proba,
    schemas_by_name,
    weigh,
)
from policychord.choices.simulate import simulate_choices
from policychord.models import Reference
from policychord.primitives import Categorical
from policychord.worlds.bandit import Belief, update_belief


@pytest.mark.parametrize("experiment", TASKS)
@pytest.mark.parametrize(("eps", "every"), [(0.01, 1), (0.001, 8), (1.0, 8)])
def test_solver_and_reduction_agree(people, experiment, eps, every):
    """At the paper's temperature on every trial, at others on some."""
    trials = take(people[experiment], np.arange(0, len(people[experiment].choice), every))
    ours = composed(PAPER, eps=eps)
    coef = coefficients_of(fit(ours, trials), trials)
    # with few trials some people are separated, and their Hybrid surer than any number: the floor is part of the model
    log_q = np.maximum(log_proba(classic("Hybrid"), trials, coef), np.log(LEAST))
    exact = two_arm_weights(columns(PAPER, trials)[:, 0], log_q[:, 0] - log_q[:, 1], eps)
    found = weigh(ours, trials, coef)
    np.testing.assert_allclose(found.weights, exact, atol=1e-9)
    assert found.distance.max() <= 1e-9


@given(
    first=st.lists(st.floats(0.001, 0.999), min_size=2, max_size=5),
    log_odds=st.floats(-300.0, 300.0),
    eps=st.floats(1e-3, 10.0),
)
def test_solver_and_reduction_agree_anywhere(first, log_odds, eps):
    a = np.array([first])
    log_q = -np.logaddexp(0.0, np.array([[-log_odds, log_odds]]))
    found = compose(np.stack([a, 1 - a], axis=1), log_q, eps).weights
    np.testing.assert_allclose(found, two_arm_weights(a, np.array([log_odds]), eps), atol=1e-8)


def test_the_exact_reference_is_copied_where_primitives_can(rng):
    """Two primitives that are the arms themselves: p = softmax of ln q / (1 + eps)."""
    log_q = np.log(rng.dirichlet([1.0, 1.0], 20))
    eps = 0.3
    found = compose(np.tile(np.eye(2), (20, 1, 1)), log_q, eps)
    expected = np.exp(log_q / (1 + eps))
    np.testing.assert_allclose(np.exp(found.log_prob), expected / expected.sum(1, keepdims=True), atol=1e-9)


def test_very_cold_and_very_sure_compositions_are_certified_all_the_same(rng):
    first, log_odds = rng.uniform(size=(500, 3)), rng.uniform(-600.0, 600.0, 500)
    log_q = -np.logaddexp(0.0, np.stack([-log_odds, log_odds], axis=1))
    for eps in (1e-7, 1e-4):
        found = compose(np.stack([first, 1 - first], axis=1), log_q, eps)
        assert np.isfinite(found.weights).all()
        assert (found.distance <= np.sqrt(2e-12 / eps) * 1.01).all()


def test_slope_is_the_derivative(cohort, rng):
    trials = cohort["2"]
    pi = columns(KNOWN, trials)[:6]
    log_q = np.log(rng.dirichlet([2.0, 2.0], 6))
    choice = trials.choice[:6]

    def chosen(log_q):
        return jnp.take_along_axis(compose(jnp.asarray(pi), log_q, 0.05).log_prob, choice[:, None], axis=1).sum()

    with jax.enable_x64(True):
        by_solver = jax.grad(chosen)(jnp.asarray(log_q))
    for t in range(6):

        def value(row, t=t):
            return compose(pi[t : t + 1], row[None], 0.05).log_prob[0, choice[t]]

        np.testing.assert_allclose(by_solver[t], approx_fprime(log_q[t], value, 1e-6), atol=1e-4)


def test_one_filter_for_one_person_and_for_many_in_numpy_and_in_jax(rng):
    belief = Belief(*prior_belief(TASKS["2"], 7)[:2])
    single = [Belief(jnp.zeros(2), jnp.asarray(TASKS["2"].variance)) for _ in range(7)]
    for _ in range(5):
        choice, reward = rng.integers(0, 2, 7), rng.normal(scale=5.0, size=7)
        belief = update_belief(belief, choice, reward, 10.0)
        single = [update_belief(b, c, r, 10.0) for b, c, r in zip(single, choice, reward, strict=True)]
        assert isinstance(belief.mean, np.ndarray)
        np.testing.assert_array_equal(belief.mean, np.stack([b.mean for b in single]))
        np.testing.assert_array_equal(belief.variance, np.stack([b.variance for b in single]))


def test_beliefs_start_anew_and_remember(cohort):
    trials = cohort["1"]
    first = trials.trial == 1
    assert (trials.mean[first] == 0).all()
    assert (trials.previous[first] == -1).all()
    np.testing.assert_array_equal(trials.previous[~first], trials.choice[np.flatnonzero(~first) - 1])
    assert (trials.variance[:, 1] == 0).all()


def test_replay_with_a_composer_gives_the_same_weights():
    """One person's choices, explained by the agents' layer: `policychord.replay` over a `Composer`."""
    person = np.array([[0.9, 0.2]])
    choices = simulate_choices(TASKS["2"], classic("Hybrid"), person, blocks=3, trials=6, seed=11)
    trials = believe(choices)

    def log_q(belief, k):
        total = jnp.sqrt(belief.variance.sum())
        z = 0.9 * (belief.mean[0] - belief.mean[1]) / total + 0.2 * (jnp.sqrt(belief.variance) @ jnp.array([1.0, -1.0]))
        from jax.scipy.special import log_ndtr

        return jnp.stack([log_ndtr(z), log_ndtr(-z)])

    def by_sign(belief, k):
        better = jnp.sign(belief.mean[0] - belief.mean[1])
        return jnp.log(0.5 + 0.49 * better * jnp.array([1.0, -1.0]))

    composer = Composer(
        {
            "exploit": Categorical(by_sign),
            "uncertainty": Categorical(lambda belief, k: jnp.log(belief.variance)),
            "risk": Categorical(lambda belief, k: -belief.variance),
        },
        Reference(Categorical(log_q)),
        Finite(2),
        eps=0.01,
        tol=1e-22,
    )
    start = Belief(jnp.zeros(2), jnp.asarray(TASKS["2"].variance))
    trace = replay(
        composer,
        start,
        lambda belief, choice, reward, k: update_belief(belief, choice, reward, 10.0),
        choices=choices.choice.reshape(3, 6),
        observed=choices.reward.reshape(3, 6),
    )
    found = weigh(composed(PAPER), trials, np.repeat(person, len(trials.choice), axis=0))
    np.testing.assert_allclose(np.asarray(trace.weights).reshape(-1, 3), found.weights, atol=1e-8)
    chosen = found.log_prob[np.arange(18), trials.choice]
    np.testing.assert_allclose(np.asarray(trace.log_prob).ravel(), chosen, atol=1e-8)


@pytest.mark.parametrize("arms", [2, 3, 5])
def test_schemas_are_policies_for_any_number_of_arms(arms, rng):
    task = Task("own", (40.0,) * arms)
    coef = np.tile([0.8, 0.2], (3, 1))
    trials = believe(simulate_choices(task, classic("Hybrid", "logit"), coef, blocks=2, trials=6, seed=1))
    pi = columns(KNOWN, trials)
    assert pi.shape == (36, arms, len(KNOWN))
    np.testing.assert_allclose(pi.sum(1), 1.0, atol=1e-12)
    assert (pi >= 0).all()
    first = trials.trial == 1
    np.testing.assert_allclose(pi[first], 1.0 / arms)  # nothing is known, so nobody prefers anything
    model = composed(tuple(KNOWN), link="logit")
    found = fit(model, trials)
    np.testing.assert_allclose(np.exp(log_proba(model, trials, coefficients_of(found, trials))).sum(1), 1.0, atol=1e-9)
    np.testing.assert_allclose(weigh(model, trials, coefficients_of(found, trials)).weights.sum(1), 1.0, atol=1e-12)


def test_exploitation_shares_ties(cohort):
    trials = cohort["2"]
    tied = trials._replace(mean=np.array([[1.0, 1.0], [1.0, 1.0 + 1e-12], [0.0, 2.0]]))
    np.testing.assert_allclose(exploit(tied), [[0.5, 0.5], [0.01, 0.99], [0.01, 0.99]])
    np.testing.assert_allclose(exploit(tied, ties=1e-9), [[0.5, 0.5], [0.5, 0.5], [0.01, 0.99]])


def test_own_schemas_by_function_and_bad_ones_are_named(cohort):
    trials = cohort["2"]
    stay = {"first": lambda t: np.tile([0.9, 0.1], (len(t.choice), 1)), "risk": PAPER["risk"]}
    model = composed(stay)
    coef = coefficients_of(fit(model, trials), trials)
    assert weigh(model, trials, coef).weights.shape == (len(trials.choice), 2)
    with pytest.raises(ValueError, match="only a composed model has weights"):
        weigh(classic(), trials, coef)
    with pytest.raises(ValueError, match=r"'sing'.*known are exploit"):
        schemas_by_name(["exploit", "sing"])
    with pytest.raises(ValueError, match="primitive 'short' answered with shape"):
        columns({"short": lambda t: np.ones(3)}, trials)
    with pytest.raises(ValueError, match="empty"):
        schemas_by_name([])


def test_every_classic_model_names_its_features():
    assert {name: list(parts) for name, parts in FEATURES.items()} == {
        "UCB": ["V", "RU"],
        "Thompson": ["V/TU"],
        "Hybrid": ["V/TU", "RU"],
        "Value": ["V"],
        "Habit": [],
    }


def test_a_primitive_has_one_colour_in_figures_and_on_the_page():
    """The light theme's tokens and the page's classes against the figures' table."""
    import re
    from importlib import resources

    from policychord.choices.figures import SCHEMA_COLOURS

    root = resources.files("policychord")
    tokens, style, script = (
        root.joinpath(name).read_text()
        for name in ("runs/templates/tokens.css", "studio/static/style.css", "studio/static/choices.js")
    )
    classes = dict(re.findall(r'(\w+): "(\w+)"', re.search(r"CLASSES = \{(.*?)\}", script)[1]))
    first = dict(reversed(re.findall(r"--(\w+): (#\w{6})", tokens + style)))
    assert {name: first[classes[name]].upper() for name in SCHEMA_COLOURS} == SCHEMA_COLOURS
