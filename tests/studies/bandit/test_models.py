"""Models with fit, predict_proba and score; validation and recovery on people whose model is known."""

import numpy as np
import pytest

from policychord.stats import select_models
from policychord.studies.bandit.analysis import OURS
from policychord.studies.bandit.beliefs import believe, take
from policychord.studies.bandit.cohort import draw_people, simulate, synthetic
from policychord.studies.bandit.controls import RULES
from policychord.studies.bandit.features import CLASSIC
from policychord.studies.bandit.models import Classic, Composed, Control
from policychord.studies.bandit.recovery import recover
from policychord.studies.bandit.settings import GROUPS, TASKS, BanditSettings, Task
from policychord.studies.bandit.validation import controls, cross_validate, sweep

MODELS = {
    **{name: lambda name=name, **more: Classic(name, **more) for name in CLASSIC},
    OURS: lambda **more: Composed(**more),
    **{rule: lambda rule=rule, **more: Control(rule, **more) for rule in RULES},
}


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_the_contract_of_every_model(name, pooled, cohort):
    trials = cohort["2"]
    model = MODELS[name](pooled=pooled)
    with pytest.raises(ValueError, match=r"call fit"):
        model.predict_proba(trials)
    assert model.fit(trials) is model
    prob = model.predict_proba(trials)
    assert prob.shape == (len(trials.choice), 2)
    np.testing.assert_allclose(prob.sum(1), 1.0, atol=1e-9)
    chosen = np.log(prob[np.arange(len(prob)), trials.choice])
    assert model.score(trials) == pytest.approx(chosen.mean())
    assert model.log_likelihood_.shape == model.bic_.shape == (8,)
    assert model.log_likelihood_.sum() == pytest.approx(chosen.sum())
    n = np.bincount(trials.subject)[1:]
    np.testing.assert_allclose(model.bic_, model.parameters * np.log(n) - 2 * model.log_likelihood_)
    np.testing.assert_allclose(model.aic_, 2 * model.parameters - 2 * model.log_likelihood_)
    np.testing.assert_allclose(model.log_evidence_, -model.bic_ / 2)


def test_strangers_need_a_pooled_fit(cohort):
    trials = cohort["2"]
    known = take(trials, trials.subject < 5)
    with pytest.raises(ValueError, match=r"subject 5 .*pooled=True"):
        Classic().fit(known).predict_proba(trials)
    assert Classic(pooled=True).fit(known).predict_proba(trials).shape == (len(trials.choice), 2)


def test_own_coefficients_fit_better_by_their_own_likelihood(cohort):
    trials = take(cohort["2"], cohort["2"].subject < 4)
    borrowed, own = Composed().fit(trials), Composed(coefficients="own").fit(trials)
    assert (own.log_likelihood_ >= borrowed.log_likelihood_ - 1e-9).all()


def test_counted_parameters_cost(cohort):
    trials = cohort["2"]
    two, three = Composed().fit(trials), Composed(parameters=3).fit(trials)
    n = np.bincount(trials.subject)[1:]
    np.testing.assert_allclose(three.bic_ - two.bic_, np.log(n))


def test_bad_names_are_refused():
    with pytest.raises(ValueError, match=r"'Softmax'.*UCB"):
        Classic("Softmax")
    with pytest.raises(ValueError, match=r"'guess'.*'own'"):
        Composed(coefficients="guess")
    with pytest.raises(ValueError, match="'squash'"):
        Control("squash")


def test_three_arms_by_softmax_only():
    task = Task("own", (50.0,) * 3)
    people = np.tile([1.2, 0.2], (4, 1))
    trials = believe(simulate(task, Classic("Hybrid", "logit"), people, blocks=5, trials=8, seed=2))
    for name in CLASSIC:
        assert Classic(name, "logit").fit(trials).predict_proba(trials).shape == (160, 3)
    with pytest.raises(ValueError, match=r"probit.*3 options.*logit"):
        Classic("Hybrid", "probit").fit(trials)
    with pytest.raises(ValueError, match=r"hull.*3 arms"):
        Control("hull", link="logit").fit(trials)
    assert set(controls(trials, "logit", 0.01, own=False)) == {
        "Hybrid clipped to [.01, .99]", "0.97 Hybrid + .01", "Hybrid, ours counted with 3 parameters"}  # fmt: skip


def test_simulated_people_are_the_same_again_and_learn():
    settings = BanditSettings(seed=1)
    once, again = synthetic("2", settings, 5), synthetic("2", settings, 5)
    np.testing.assert_array_equal(once.choice, again.choice)
    assert once.source == "synthetic cohort"
    assert (synthetic("2", BanditSettings(seed=2), 5).choice != once.choice).any()
    late = once.trial > 5
    assert once.reward[late].mean() > once.reward[once.trial == 1].mean() + 2  # the better arm is found
    fixed = synthetic("1", settings, 5)
    assert (fixed.reward[fixed.choice == 1] == 0).all()


def test_coefficients_are_recovered():
    people = draw_people(GROUPS["2"]["Hybrid"], 12, 4)
    trials = believe(simulate(TASKS["2"], Classic("Hybrid"), people, blocks=60, seed=5))
    found = Classic("Hybrid").fit(trials).coef_
    assert np.corrcoef(people[:, 0], found[:, 0])[0, 1] > 0.9
    assert np.corrcoef(people[:, 1], found[:, 1])[0, 1] > 0.9


def test_recovery_tables(small):
    found = recover("2", small)
    np.testing.assert_allclose(found.best.sum(1), 1.0)
    np.testing.assert_allclose(found.won.sum(1), 1.0)
    np.testing.assert_allclose(found.frequency.sum(1), 1.0)
    assert [(p.model, p.coefficient) for p in found.parameters][-2:] == [(OURS, "V/TU"), (OURS, "RU")]
    assert all(len(p.true) == 8 and np.isfinite([p.correlation, p.bias, p.rmse]).all() for p in found.parameters)
    assert found.best[1, 1] > 0.5  # Thompson is mostly seen as Thompson


def test_cross_validation_predicts_strangers_who_are_alike():
    alike = np.tile([1.0, 0.2], (8, 1))
    trials = believe(simulate(TASKS["2"], Classic("Hybrid"), alike, blocks=10, trials=8, seed=1))
    more = {"eps": 0.01, "folds": 3, "splits": 2, "seed": 0}
    found = cross_validate(trials, "probit", **more)
    assert found.models == (*CLASSIC, OURS)
    assert found.score.shape == (2, 5)
    assert (found.score > np.log(0.5)).all()  # better than tossing a coin
    assert found.mean("Hybrid") > found.mean("Value")
    assert sum(found.best_in(model) for model in found.models) == 2
    np.testing.assert_array_equal(found.score, cross_validate(trials, "probit", **more).score)
    with pytest.raises(ValueError, match="folds = 9"):
        cross_validate(trials, "probit", **(more | {"folds": 9}))


def test_a_hot_composition_loses(cohort):
    swept = sweep(cohort["2"], "probit", (0.01, 1.0))
    assert swept.pxp[1] < swept.pxp[0]
    assert swept.log_likelihood[1] < swept.log_likelihood[0]


def test_evidence_is_what_group_selection_takes(cohort):
    table = np.stack([Classic(name).fit(cohort["2"]).log_evidence_ for name in CLASSIC], axis=1)
    assert select_models(table).responsibilities.shape == table.shape
