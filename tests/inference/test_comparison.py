"""One comparison for all toolboxes: the same numbers by every road, in any order, with honest errors."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import statsmodels.api as sm

import policychord as pc
from policychord import inference as inf
from policychord.inference.comparison import estimate_without, try_modes_of_other_folds
from policychord.inference.likelihoods import pointwise, restrict
from policychord.inference.optimise import objective_of
from policychord.inference.search import maximise_groups

PEOPLE, BLOCKS, TRIALS = 8, 4, 12
WEAK = inf.Normal(0.0, 5.0)


def _two(theta, unit):
    z = unit["x"] @ theta["b"]
    return jax.nn.log_sigmoid(jnp.where(unit["y"] == 1, z, -z))


def _one(theta, unit):
    z = unit["x"][..., 0] * theta["b"]
    return jax.nn.log_sigmoid(jnp.where(unit["y"] == 1, z, -z))


def _chance(theta, unit):
    return jnp.full(unit["y"].shape, jnp.log(0.5))


TWO = inf.Model("two", (inf.real("b", labels=("first", "second"), prior=WEAK),), _two)
ONE = inf.Model("one", (inf.real("b", prior=WEAK),), _one)
CHANCE = inf.Model("chance", (), _chance)


@pytest.fixture(scope="module", autouse=True)
def _x64():
    pc.enable_x64()


def simulate(model, theta, seed):
    rng = np.random.default_rng(seed)
    b = np.asarray(theta["b"]).reshape(PEOPLE, -1)
    subject, block = np.repeat(np.arange(PEOPLE), BLOCKS), np.tile(np.arange(BLOCKS), PEOPLE)
    x = rng.normal(size=(len(subject), TRIALS, 2))
    z = np.einsum("utf,uf->ut", x[..., : b.shape[1]], b[subject])
    return inf.Data({"x": x, "y": (rng.random(z.shape) < 1 / (1 + np.exp(-z))).astype(int)}, subject, block)


@pytest.fixture(scope="module")
def data():
    return simulate(TWO, {"b": np.random.default_rng(0).normal(1.0, 0.7, size=(PEOPLE, 2))}, 1)


@pytest.fixture(scope="module")
def compared(data):
    return inf.compare([TWO, ONE, CHANCE], data, own=True)


def test_the_order_of_models_changes_nothing(data, compared):
    again = inf.compare([CHANCE, ONE, TWO], data, own=True)
    assert [score.name for score in again.scores] == [score.name for score in compared.scores]
    for score in compared.scores:
        np.testing.assert_array_equal(again.score(score.name).each, score.each)
    np.testing.assert_array_equal(again.selection.pxp, compared.selection.pxp)


def test_chance_is_a_reference_and_not_selected(compared):
    assert compared.selected == ("one", "two")
    np.testing.assert_allclose(compared.score("chance").each, np.log(0.5))
    assert compared.difference("two", "chance").call == "better"
    assert compared.difference("chance", "two").call == "worse"


def test_estimates_are_those_of_statsmodels(data):
    given = inf.likelihood(TWO, data.units, groups=data.subject)
    found = inf.estimate(given, method="ml", starts=3)
    for person in range(PEOPLE):
        rows = data.subject == person
        x, y = data.units["x"][rows].reshape(-1, 2), data.units["y"][rows].ravel()
        judge = sm.Logit(y, x).fit(disp=0)
        np.testing.assert_allclose(found.z[person], judge.params, atol=1e-4)
        assert found.log_posterior[person] == pytest.approx(judge.llf, abs=1e-7)


def test_folds_by_hand_give_the_same_scores(data, compared):
    """Person by person and fold by fold, with nothing of the batch."""
    fold = inf.folds_within(data.subject, data.block)
    for person in (0, 5):
        mine = data.subject == person
        expected = np.empty((int(mine.sum()), TRIALS))
        units = jax.tree.map(lambda leaf, mine=mine: leaf[mine], data.units)
        for k in np.unique(fold[mine]):
            train, test = fold[mine] != k, fold[mine] == k
            given = inf.likelihood(TWO, jax.tree.map(lambda leaf, train=train: leaf[train], units))
            z = inf.maximise(given, starts=1, method="map").z
            expected[test] = jax.vmap(lambda unit, z=z: _two({"b": z}, unit))(
                jax.tree.map(lambda leaf, test=test: jnp.asarray(leaf[test]), units)
            )
        each = compared.score("two").each.reshape(len(data.subject), TRIALS)[mine]
        np.testing.assert_allclose(each, expected, atol=1e-4)


def test_folds_of_trials_inside_a_unit_and_trials_that_do_not_count(data):
    """A fold may cut a unit, and what has no weight is neither fitted nor scored."""
    fold = np.tile(np.arange(TRIALS) % 3, (len(data.subject), 1))
    weight = np.ones(fold.shape)
    weight[:, 0] = 0.0
    spoiled = {**data.units, "y": np.where(weight > 0, data.units["y"], 1 - data.units["y"])}
    both = [inf.compare([TWO, CHANCE], data._replace(units=units), own=True, fold=fold, weight=weight)
            for units in (data.units, spoiled)]  # fmt: skip
    assert len(both[0].score("two").each) == int(weight.sum())
    np.testing.assert_allclose(both[0].score("two").each, both[1].score("two").each, atol=1e-9)
    np.testing.assert_allclose(both[0].score("two").bic, both[1].score("two").bic, atol=1e-7)


def test_a_model_that_borrows_has_the_estimates_of_the_other(data, compared):
    hotter = inf.Model("hotter", TWO.parameters, lambda theta, unit: _two({"b": 2 * theta["b"]}, unit), borrows=TWO)
    found = inf.compare([TWO, hotter], data, own=True)
    np.testing.assert_array_equal(found.score("hotter").z, found.score("two").z)
    assert found.difference("two", "hotter").mean > 0


def test_twins_are_a_family_and_others_are_not(data, compared):
    twin = TWO._replace(name="twin")
    assert inf.near_duplicates(inf.compare([TWO, twin, CHANCE], data, own=True)) == (("twin", "two"),)
    assert inf.near_duplicates(compared) == ()


def test_nothing_is_established_between_a_model_and_noise():
    """The null: two models that do not differ are called different in about one of twenty experiments."""
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(40), 10)
    calls = [inf.paired(rng.normal(size=400), rng.normal(size=400), clusters).call for _ in range(400)]
    assert 0.02 < np.mean([call != "not established" for call in calls]) < 0.09


def test_models_and_parameters_are_recovered(compared):
    found = inf.recover_models([ONE, TWO], compared, simulate, cohorts=2)
    assert found.models == ("one", "two")
    np.testing.assert_allclose(found.people.sum(axis=1), 1.0)
    assert np.all(np.diag(found.people) > 0.5)
    by_name = {row.name: row for row in found.parameters if row.model == "two"}
    assert by_name["b: first"].correlation > 0.8
    assert 0.7 <= by_name["b: first"].coverage <= 1.0


def test_a_model_that_misses_what_people_do_is_seen_in_its_predictions(data):
    """Simulated people of `one` ignore the second feature, and their choices do not follow it."""

    def follows(data):
        return float(np.mean(data.units["x"][..., 1] * (data.units["y"] - 0.5)))

    right, wrong = (
        inf.predict(given, inf.estimate(given).z, data, simulate, {"follows the second": follows}, draws=40)[0]
        for given in (inf.likelihood(model, data.units, groups=data.subject) for model in (TWO, ONE))
    )
    assert right.observed == wrong.observed == follows(data)
    assert right.inside
    assert 0.05 < right.share < 0.95
    assert not wrong.inside
    assert wrong.share == 0.0
    assert wrong.low < 0.0 < wrong.high
    with pytest.raises(ValueError, match="draws = 1"):
        inf.predict(inf.likelihood(ONE, data.units), np.zeros((1, 1)), data, simulate, {}, draws=1)


def test_arviz_and_numpyro_take_the_same_likelihood(data, compared):
    import arviz

    given = inf.likelihood(TWO, data.units, groups=data.subject)
    found = inf.estimate(given)
    tree = inf.to_arviz(given, found, draws=60)
    assert tree.posterior["b"].shape == (1, 60, PEOPLE, 2)
    assert arviz.loo(tree).elpd_loo == pytest.approx(compared.score("two").each.sum(), rel=0.1)
    numpyro = pytest.importorskip("numpyro")
    seeded = numpyro.handlers.seed(inf.to_numpyro(given), 0)
    trace = numpyro.handlers.trace(seeded).get_trace()
    theta = jnp.asarray(trace["b"]["value"])
    each = jax.vmap(lambda b, unit: _two({"b": b}, unit))(theta[data.subject], jax.tree.map(jnp.asarray, data.units))
    assert float(trace["decisions"]["fn"].log_factor) == pytest.approx(float(each.sum()), rel=1e-12)


def test_people_of_a_group_are_scored_by_empirical_bayes(data):
    """Estimates are pulled towards the group's, and so predict better than everybody's own without a prior."""
    loose = TWO._replace(parameters=(inf.real("b", labels=("first", "second")),))
    own, group = (inf.compare([loose, CHANCE], data, own=True, method=method) for method in ("ml", "group"))
    assert np.ptp(group.score("two").z) < np.ptp(own.score("two").z)
    assert inf.paired(group.score("two").each, own.score("two").each, own.clusters).mean > 0
    whole = inf.empirical_bayes(inf.likelihood(loose, data.units, groups=data.subject), rounds=10, starts=2)
    np.testing.assert_allclose(group.score("two").z, whole.z, atol=1e-6)
    fold = inf.folds_within(data.subject, data.block)
    rows = fold != 1
    part = inf.likelihood(loose, jax.tree.map(lambda leaf: leaf[rows], data.units), groups=data.subject[rows])
    without = inf.empirical_bayes(part, rounds=6, starts=2).z
    expected = jax.vmap(lambda b, unit: _two({"b": b}, unit))(
        jnp.asarray(without[data.subject[~rows]]), jax.tree.map(lambda leaf: jnp.asarray(leaf[~rows]), data.units)
    )
    np.testing.assert_allclose(group.score("two").each.reshape(-1, TRIALS)[~rows], expected, atol=1e-6)
    with pytest.raises(ValueError, match="own=True"):
        inf.compare([loose], data, method="group")


def test_estimates_of_a_caller_are_where_the_search_begins(data):
    """From a mode of its own, and not from the declared values: the likelihood of |b| has two."""
    folded = inf.Model("folded", (inf.real("b", 1.0),), lambda theta, unit: _one({"b": jnp.abs(theta["b"])}, unit))
    for begin in (-1.0, 1.0):
        found = inf.compare([folded, CHANCE], data, method="ml", begin={"folded": np.array([[begin]])})
        assert np.sign(found.score("folded").z[0, 0]) == np.sign(begin)


def test_a_model_that_brings_its_own_search_is_folded_like_the_others(data):
    """The same model by both roads: estimates, held-out scores, differences."""
    flat = inf.Data(jax.tree.map(lambda leaf: leaf[:, 0], data.units), data.subject, data.block)
    given = inf.likelihood(ONE, flat.units)

    def without(fold, z):
        return np.stack([inf.maximise(restrict(given, fold != k), starts=z[None], method="map").z for k in range(4)])

    def search():
        return inf.maximise(given, starts=2, method="map").z

    own = inf.Estimator("own", 1, search, without, partial(pointwise, given), "the same, by its own search")
    found = inf.compare([ONE, own, CHANCE], flat)
    assert set(found.names) == {"one", "own", "chance"}
    ours, theirs = found.score("one"), found.score("own")
    np.testing.assert_allclose(theirs.z, ours.z, atol=1e-5)
    np.testing.assert_allclose(theirs.each, ours.each, atol=1e-5)
    np.testing.assert_allclose(theirs.bic, ours.bic, rtol=1e-7)
    with pytest.raises(ValueError, match="every name once"):
        inf.compare([ONE, own._replace(name="one")], flat)
    with pytest.raises(ValueError, match=r"'own' predicts an array \(3,\)"):
        inf.compare([own._replace(predict=lambda z: np.zeros(3)), ONE], flat)


def test_a_fold_ends_at_the_mode_that_other_folds_know():
    """Two modes, -1 and 2: from -0.9 a fold's own search ends at the lower one, unless another fold has the higher."""
    units = {"x": np.zeros(6)}
    given = inf.likelihood(inf.Model("two modes", (inf.real("b"),), _two_modes), units)
    fold = np.repeat([0, 1], 3)
    without = estimate_without(given, fold, np.array([[-0.9]]), method="ml")
    assert without[:, 0, 0] == pytest.approx([-1.0, -1.0], abs=1e-3)
    objective = objective_of(given._replace(group=fold), "ml", 2)
    found = maximise_groups(objective, np.array([[-0.9], [1.9]]))
    try_modes_of_other_folds(objective, found, 2)
    assert found.z[:, 0] == pytest.approx([2.0, 2.0], abs=1e-3)


def _two_modes(theta, unit):
    return jnp.logaddexp(-2.0 * (theta["b"] + 1.0) ** 2, 1.0 - 2.0 * (theta["b"] - 2.0) ** 2) + unit["x"]


def test_ctrl_c_gives_what_is_done_to_those_who_ask_and_ends_all_others(data):
    def stop(what, done, total):
        if what == "comparing: one":
            raise KeyboardInterrupt

    found = inf.compare([TWO, CHANCE, ONE], data, own=True, partial=True, progress=stop)
    assert set(found.names) == {"two", "chance"}
    assert found.missing == ("one",)
    assert found.selection is None
    with pytest.raises(KeyboardInterrupt):
        inf.compare([TWO, CHANCE, ONE], data, own=True, progress=stop)


def test_a_model_of_noise_loses_to_chance(data):
    """Nothing but noise to predict from: held out it is worse than chance, and that is all that is said."""
    rng = np.random.default_rng(9)
    random = {**data.units, "x": rng.normal(size=(*data.units["x"].shape[:2], 9))}
    nine = inf.Model("noise", (inf.real("b", labels=tuple("abcdefghi")),), _two)
    found = inf.compare([nine, CHANCE], data._replace(units=random), own=True, method="ml")
    assert found.difference("noise", "chance").call == "worse"
    assert len(told := inf.describe_comparison(found)) == 1
    assert told[0].startswith("No model predicts held-out decisions better than chance: noise")


@pytest.mark.parametrize(
    ("models", "words"), [([], "called nothing"), ([TWO, TWO], "every name once")], ids=["none", "twice"]
)
def test_lists_that_make_no_sense_are_refused(data, models, words):
    with pytest.raises(ValueError, match=words):
        inf.compare(models, data)


def test_a_model_that_was_not_compared_is_named(compared):
    with pytest.raises(ValueError, match="'three' was not compared: there are two, one, chance"):
        compared.score("three")
