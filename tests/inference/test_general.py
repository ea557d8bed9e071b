"""The general layer against statsmodels and closed forms: estimates, errors, profiles, groups, held-out scores."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import statsmodels.api as sm

from policychord.inference import comparison, groups, likelihoods, optimise, parameters, search, uncertainty

PEOPLE, EACH = 24, 60


def likelihood(log_prob, data, declared, **settings):
    return likelihoods.likelihood(likelihoods.Model("test", tuple(declared), log_prob), data, **settings)


def by_logit(theta, unit):
    utility = jnp.dot(theta["coef"], unit["x"])
    return jax.nn.log_sigmoid(jnp.where(unit["y"] > 0, utility, -utility))


def by_first(theta, unit):
    utility = theta["slope"] * unit["x"][0]
    return jax.nn.log_sigmoid(jnp.where(unit["y"] > 0, utility, -utility))


@pytest.fixture(scope="module")
def cohort():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(PEOPLE), EACH)
    coef = rng.normal([1.0, -0.5], [0.6, 0.3], size=(PEOPLE, 2))
    x = rng.normal(size=(len(group), 2))
    y = (rng.random(len(group)) < 1 / (1 + np.exp(-(x * coef[group]).sum(1)))).astype(float)
    given = likelihood(by_logit, {"x": x, "y": y}, [parameters.real("coef", labels=("a", "b"))], groups=group)
    return given, coef


@pytest.fixture(scope="module")
def best(cohort):
    return optimise.maximise(cohort[0], starts=3)


def test_scales_are_inverse_to_each_other():
    declared = [
        parameters.positive("eps", 0.5),
        parameters.bounded("lapse", 0.0, 0.2, 0.05),
        parameters.simplex("prior", ("a", "b", "c"), [0.2, 0.5, 0.3]),
        parameters.real("coef", labels=("V", "RU")),
    ]
    theta = {"eps": 3.0, "lapse": 0.01, "prior": [0.1, 0.2, 0.7], "coef": [-1.0, 4.0]}
    with jax.enable_x64(True):
        back = parameters.natural(declared, jnp.asarray(parameters.unconstrained(declared, theta)))
    for name, value in theta.items():
        np.testing.assert_allclose(back[name], value, rtol=1e-12)
    assert parameters.free_names(declared) == (
        "ln eps", "logit lapse", "prior: a over c", "prior: b over c", "coef: V", "coef: RU",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: parameters.positive("eps", -1.0), "declared positive"),
        (lambda: parameters.bounded("lapse", 0.0, 1.0, 2.0), "between 0 and 1"),
        (lambda: parameters.simplex("prior", ("a", "b"), [0.5, 0.6]), "sum to one"),
        (lambda: parameters.simplex("prior", ("a",)), "two or more"),
        (lambda: parameters.unconstrained([parameters.real("x")], {"y": 1.0}), "the parameters are x"),
    ],
)
def test_wrong_parameters_are_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_estimates_and_errors_are_those_of_statsmodels(cohort, best):
    given, _ = cohort
    other = sm.Logit(given.data["y"], given.data["x"])
    plain, clustered = (
        other.fit(disp=0),
        other.fit(disp=0, cov_type="cluster", cov_kwds={"groups": given.group, "use_correction": False}),
    )
    np.testing.assert_allclose(best.z, plain.params, atol=1e-6)
    assert best.log_likelihood == pytest.approx(plain.llf, abs=1e-8)
    found = uncertainty.uncertainty(given, best.z, clusters=given.group)
    np.testing.assert_allclose(found.errors, plain.bse, rtol=1e-5)
    np.testing.assert_allclose(found.robust_errors, clustered.bse * np.sqrt(PEOPLE / (PEOPLE - 1)), rtol=1e-4)
    np.testing.assert_allclose(found.correlation, plain.cov_params() / np.outer(plain.bse, plain.bse), atol=1e-5)
    # at the ends of a profile interval the best of the others is 1.92 nats lower
    for end in found.intervals[0]:
        fixed = sm.GLM(
            given.data["y"], given.data["x"][:, 1], sm.families.Binomial(), offset=end * given.data["x"][:, 0]
        )
        assert best.log_likelihood - fixed.fit().llf == pytest.approx(1.92, abs=0.03)


def test_priors_count_in_a_map_estimate(cohort):
    given, _ = cohort
    held = [parameters.real("coef", labels=("a", "b"), prior=parameters.Normal(0.0, 0.01))]
    strict = likelihood(by_logit, given.data, held)
    assert np.abs(optimise.maximise(strict, starts=1, method="map").z).max() < 0.1
    assert np.abs(optimise.maximise(strict, starts=1).z).max() > 0.4


def test_interrupted_runs_give_the_best_so_far_and_go_on(cohort, best):
    given, _ = cohort

    def stop(what, done, total):
        if done == 2:
            raise KeyboardInterrupt

    part = optimise.maximise(given, starts=3, progress=stop)
    assert not part.complete
    assert np.isfinite(part.log_likelihood)
    whole = optimise.maximise(given, resume=part)
    assert whole.complete
    np.testing.assert_allclose(whole.z, best.z, atol=1e-4)


def test_open_profiles_bounds_and_correlations_are_told():
    """x + y only: neither is identified; a third parameter that does nothing is flat."""
    rng = np.random.default_rng(1)
    data = {"y": rng.normal(1.0, 1.0, size=50)}
    declared = [parameters.real("x"), parameters.real("y"), parameters.positive("idle")]
    given = likelihood(
        lambda theta, unit: -0.5 * (unit["y"] - theta["x"] - theta["y"]) ** 2 + 0.0 * theta["idle"], data, declared
    )
    z = optimise.maximise(given, starts=2).z
    found = uncertainty.uncertainty(given, z, profiles=(2,))
    told = uncertainty.verdicts(declared, z, found, {"y": "its weights do not move"})
    assert [one.grade for one in told] == ["weakly identified", "not identified", "not identified"]
    assert any("correlation with y is -1.00" in reason for reason in told[0].reasons)
    assert "its weights do not move" in told[1].reasons
    assert "open on both sides" in told[2].reasons[0]


@pytest.mark.parametrize("scored", [True, False])
def test_a_profile_does_not_stop_where_its_tangent_leads_astray(scored):
    """a has sd .1 whatever b is; b is at its bound, and all but flat there, so that its covariance with a is noise.

    The tangent led to b = -20, a plateau 50 nats below without any slope, and the interval ended at once.
    """

    def objective(z, which):
        share = 1 / (1 + np.exp(-z[:, 1]))
        slope = np.stack([-100.0 * z[:, 0], 50.0 * share * (1 - share)], axis=1)
        products = np.tile(np.diag([100.0, 1e-6]), (len(z), 1, 1))
        return -50.0 * z[:, 0] ** 2 + 50.0 * share, slope, *([products] if scored else [])

    top = np.array([[0.0, 20.0]])
    inverse = np.array([[[0.01, -90.0], [-90.0, 1e6]]])
    ends = uncertainty.profile(objective, top, objective(top, np.zeros(1, int))[0], inverse, 0)
    np.testing.assert_allclose(ends, [[-0.196, 0.196]], atol=0.002)


def two_modes(theta, unit):
    """Modes at b = -1 and, higher, at b = 1; larger values of a favour the second."""
    a, b = theta["a"], theta["b"]
    return (-0.5 * (a + 1) ** 2 - 0.3 * (b**2 - 1) ** 2 + (a + 1) * (b + 1)) + 0.0 * unit


def test_a_mode_that_a_profile_finds_is_followed():
    given = likelihood(two_modes, np.zeros(4), [parameters.real("a", -1.0), parameters.real("b", -1.0)])
    lower = optimise.maximise(given, starts=1).z
    np.testing.assert_allclose(lower, [-1, -1], atol=1e-3)
    found = uncertainty.uncertainty(given, lower)
    assert found.higher is not None
    assert found.higher[1] > 0
    top = optimise.maximise(given, starts=found.higher[None]).z
    assert uncertainty.uncertainty(given, top).higher is None


@pytest.mark.parametrize(("width", "grade"), [(2.2, "identified"), (2.4, "weakly identified")])
def test_an_interval_that_hides_the_order_of_magnitude_is_weak(width, grade):
    """Beyond a factor of ten; a real number has no unit, so its width says nothing."""
    declared = [parameters.positive("eps"), parameters.real("coef")]
    ends = np.array([[-width / 2, width / 2]] * 2)
    found = uncertainty.Uncertainty(np.eye(2), np.eye(2), np.eye(2), ends, False)
    told = uncertainty.verdicts(declared, np.zeros(2), found)
    assert [one.grade for one in told] == [grade, "identified"]


@pytest.mark.parametrize("scale", [0.05, 1.0, 100.0])
def test_runs_end_as_near_to_the_mode_in_any_unit(cohort, scale):
    """The end is counted in standard errors: the same estimates, whatever the unit of the features."""
    given, _ = cohort
    other = likelihood(
        by_logit, {**given.data, "x": given.data["x"] * [1.0, scale]}, given.parameters, groups=given.group
    )
    found = optimise.maximise(other, starts=1)
    plain = sm.Logit(given.data["y"], given.data["x"]).fit(disp=0)
    np.testing.assert_allclose(found.z * [1.0, scale], plain.params, atol=1e-5)
    assert found.converged


@pytest.mark.parametrize("scored", [True, False])
def test_at_the_border_the_other_numbers_still_reach_their_best(scored):
    """A mode beyond the border, and a ridge towards it: runs crept along the border without arriving."""
    bend, top = np.array([[1.0, 0.95], [0.95, 1.0]]), np.array([30.0, -25.0])

    def objective(z, which):
        offset = z - top
        products = [np.tile(bend, (len(z), 1, 1))] if scored else []
        return -0.5 * np.einsum("gi,ij,gj->g", offset, bend, offset), -offset @ bend, *products

    found = search.maximise_groups(objective, np.zeros((1, 2)))
    assert found.converged.all()
    np.testing.assert_allclose(found.z, [[20.0, -25.0 + 0.95 * 10.0]], atol=1e-2)


def test_a_value_that_jumps_by_its_tolerance_does_not_keep_a_run_from_its_mode():
    """Weights are solved to a tolerance, so the value may be lower by 4e-7 right at the mode: a run never ended."""
    bend, calls = np.array([[1.0, 0.5], [0.5, 2.0]]), []

    def objective(z, which):
        calls.append(1)
        assert len(calls) < 30
        off = z - 1.0
        value = -100.0 - 0.5 * np.einsum("gi,ij,gj->g", off, bend, off) - 0.3 * (off**3).sum(axis=1)
        value -= np.where(np.abs(off).max(axis=1) < 1e-4, 4e-7, 0.0)
        return value, -off @ bend - 0.9 * off**2, np.tile(1.1 * bend, (len(z), 1, 1))

    modes = search.maximise_groups(objective, np.zeros((1, 2)))
    assert modes.converged.all()
    np.testing.assert_allclose(modes.z, 1.0, atol=2e-5)


def test_groups_shrink_and_recover_their_mean(cohort):
    given, coef = cohort
    found = groups.empirical_bayes(given, starts=2)
    alone = search.maximise_groups(optimise.objective_of(given), np.zeros((PEOPLE, 2)))
    assert found.converged
    assert alone.converged.all()
    assert np.abs(found.mean - coef.mean(0)).max() < 3 * found.error.max()
    truth = [np.sum((z - coef) ** 2) for z in (found.z, alone.z)]
    assert truth[0] < 0.9 * truth[1]  # shrunk estimates are closer to the truth
    lonely = search.maximise_groups(optimise.objective_of(given), np.zeros((PEOPLE, 2)), held=1)
    assert np.all(lonely.z[:, 1] == 0)
    assert np.all(lonely.log_posterior <= alone.log_posterior + 1e-6)


def test_frequencies_of_models_follow_who_uses_them():
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(16), 80)
    x = rng.normal(size=(len(group), 2))
    coef = np.where(group[:, None] < 11, [[1.5, 1.5]], [[1.5, 0.0]])
    y = (rng.random(len(group)) < 1 / (1 + np.exp(-(x * coef).sum(1)))).astype(float)
    data = {"x": x, "y": y}
    models = [
        likelihood(by_logit, data, [parameters.real("coef", labels=("a", "b"))], groups=group),
        likelihood(by_first, data, [parameters.real("slope")], groups=group),
    ]
    found = groups.model_frequencies(models, starts=1, tol=1e-2)
    assert abs(found.expected[0] - 11 / 16) < 2 * found.error[0]
    assert np.mean((found.responsibilities[:, 0] > 0.5) == (np.arange(16) < 11)) >= 0.9


def test_folds_keep_groups_together_and_scores_are_held_out(cohort, best):
    given, _ = cohort
    fold = comparison.folds_of(given.group, 4)
    assert all(len(set(fold[given.group == g])) == 1 for g in range(PEOPLE))
    assert np.ptp(np.bincount(fold)) <= EACH
    shared = given._replace(group=np.zeros(given.units, int))
    without = comparison.estimate_without(shared, fold, best.z[None], method="ml")
    held_out = comparison.held_out(shared, fold, without)
    inside = likelihoods.pointwise(given, best.z)
    assert held_out.sum() < inside.sum()
    difference = comparison.paired(inside, held_out, given.group)
    assert 0 < difference.mean < 0.02
    with pytest.raises(ValueError, match="two or more"):
        comparison.folds_of(np.zeros(5))


def test_a_number_at_its_bound_does_not_stop_the_others():
    """y = a + b x with a beyond the bound of 20: b is then the best one for a = 20, though it is correlated with a."""
    rng = np.random.default_rng(4)
    x = 3.0 + rng.normal(size=200)
    y = 30.0 - 2.0 * x + rng.normal(size=200)
    given = likelihood(
        lambda theta, unit: -0.5 * (unit["y"] - theta["a"] - theta["b"] * unit["x"]) ** 2,
        {"x": x, "y": y},
        [parameters.real("a"), parameters.real("b")],
    )
    best = optimise.maximise(given, starts=2)
    np.testing.assert_allclose(best.z, [20.0, x @ (y - 20.0) / (x @ x)], atol=1e-6)
    assert best.converged
    assert all(np.all(np.diff(path) >= -1e-11 * np.abs(path[:-1])) for path in best.paths)
