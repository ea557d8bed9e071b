"""Models with fit, predict_proba and score; validation and recovery on people whose model is known."""

from functools import partial

import numpy as np
import pytest

from policychord.choices.compare import OURS, analyse, compare_models, fit_rivals, plan_models
from policychord.choices.data import TASKS, Task
from policychord.choices.estimate import coefficients_of, fit
from policychord.choices.learners import believe, take
from policychord.choices.models import CLASSIC, FLOORS, classic, composed, log_proba
from policychord.choices.simulate import GROUPS, draw_people, simulate_choices, synthetic

MODELS = {
    **{name: partial(classic, name) for name in CLASSIC},
    OURS: composed,
    **{rule: partial(lambda rule, **how: floored(rule, **how), rule) for rule in FLOORS},
}


def floored(rule, link="probit", pooled=False):
    """The Hybrid with a floor and no primitive."""
    return classic("Hybrid", link, pooled=pooled)._replace(change=rule)


def predict(model, found, trials):
    return np.exp(log_proba(model, trials, coefficients_of(found, trials)))


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_the_contract_of_every_model(name, pooled, cohort):
    trials = cohort["2"]
    model = MODELS[name](pooled=pooled)
    found = fit(model, trials)
    prob = predict(model, found, trials)
    assert prob.shape == (len(trials.choice), 2)
    np.testing.assert_allclose(prob.sum(1), 1.0, atol=1e-9)
    chosen = np.log(prob[np.arange(len(prob)), trials.choice])
    assert found.log_likelihood.shape == found.bic.shape == (8,)
    assert found.log_likelihood.sum() == pytest.approx(chosen.sum())
    n = np.bincount(trials.subject)[1:]
    np.testing.assert_allclose(found.bic, model.parameters * np.log(n) - 2 * found.log_likelihood)
    np.testing.assert_allclose(found.aic, 2 * model.parameters - 2 * found.log_likelihood)
    np.testing.assert_allclose(found.log_evidence, -found.bic / 2)
    plain = (str, bool, int, tuple, type(None), np.ndarray)  # nothing that could not be written to a file
    assert all(isinstance(value, plain) for value in found)


def test_strangers_need_a_pooled_fit(cohort):
    trials = cohort["2"]
    known = take(trials, trials.subject < 5)
    with pytest.raises(ValueError, match=r"subject 5 .*pooled=True"):
        predict(classic(), fit(classic(), known), trials)
    pooled = classic(pooled=True)
    assert predict(pooled, fit(pooled, known), trials).shape == (len(trials.choice), 2)


def test_own_coefficients_fit_better_by_their_own_likelihood(cohort):
    trials = take(cohort["2"], cohort["2"].subject < 4)
    borrowed, own = fit(composed(), trials), fit(composed(coefficients="own"), trials)
    assert (own.log_likelihood >= borrowed.log_likelihood - 1e-9).all()
    assert own.log_likelihood.sum() > borrowed.log_likelihood.sum() + 0.01


def test_counted_parameters_cost(cohort):
    trials = cohort["2"]
    two, three = fit(composed(), trials), fit(composed(parameters=3), trials)
    n = np.bincount(trials.subject)[1:]
    np.testing.assert_allclose(three.bic - two.bic, np.log(n))


def test_bad_names_are_refused():
    with pytest.raises(ValueError, match=r"'Softmax'.*UCB"):
        classic("Softmax")
    with pytest.raises(ValueError, match=r"'guess'.*'own'"):
        composed(coefficients="guess")


def test_three_arms_by_softmax_only():
    task = Task("own", (50.0,) * 3)
    people = np.tile([1.2, 0.2], (4, 1))
    trials = believe(simulate_choices(task, classic("Hybrid", "logit"), people, blocks=5, trials=8, seed=2))
    for model in (classic(name, "logit") for name in CLASSIC):
        assert predict(model, fit(model, trials), trials).shape == (160, 3)
    with pytest.raises(ValueError, match=r"probit.*more than two arms.*logit"):
        fit(classic("Hybrid", "probit"), trials)
    with pytest.raises(ValueError, match=r"hull.*3 arms"):
        fit(floored("hull", link="logit"), trials)
    assert {rival.name for rival in fit_rivals(trials, "logit", 0.01).known()} == {
        "Hybrid clipped to [.01, .99]", "0.97 Hybrid + .01", "Hybrid, ours counted with 3 parameters"}  # fmt: skip


def test_simulated_people_are_the_same_again_and_learn():
    once, again = synthetic("2", 5, seed=1), synthetic("2", 5, seed=1)
    np.testing.assert_array_equal(once.choice, again.choice)
    assert once.source == "synthetic cohort"
    assert (synthetic("2", 5, seed=2).choice != once.choice).any()
    late = once.trial > 5
    assert once.reward[late].mean() > once.reward[once.trial == 1].mean() + 2  # the better arm is found
    fixed = synthetic("1", 5, seed=1)
    assert (fixed.reward[fixed.choice == 1] == 0).all()


def test_coefficients_are_recovered():
    people = draw_people(GROUPS["2"]["Hybrid"], 12, 4)
    trials = believe(simulate_choices(TASKS["2"], classic("Hybrid"), people, blocks=60, seed=5))
    found = fit(classic("Hybrid"), trials).coef
    assert np.corrcoef(people[:, 0], found[:, 0])[0, 1] > 0.9
    assert np.corrcoef(people[:, 1], found[:, 1])[0, 1] > 0.9


def test_evidence_is_what_group_selection_takes(cohort):
    found = compare_models({name: fit(classic(name), cohort["2"]) for name in CLASSIC}, CLASSIC)
    assert found.selection.responsibilities.shape == (8, 4)
    assert sum(found.pxp(name) for name in CLASSIC) == pytest.approx(1.0)


def test_only_named_models_are_compared_and_their_order_changes_nothing(cohort):
    """Chance is the one model that enters unasked, and only as a reference."""
    choices = synthetic("2", 8, blocks=4, seed=3)
    one, other = (
        analyse(choices, plan=plan_models(choices.task, models=names, reference="Value"))
        for names in (("Value", "delta", OURS), (OURS, "delta", "Value"))
    )
    plain = analyse(choices, plan=plan_models(choices.task, models=("Value", "delta")))
    assert set(plain.models) == {"Value", "delta"}
    assert plain.composed is None
    for name in ("Value", "delta", OURS):
        assert one.everything.pxp(name) == other.everything.pxp(name)
    with pytest.raises(ValueError, match=r"comes close to one of Value, delta"):
        plan_models(choices.task, models=("Value", "delta", OURS))
    with pytest.raises(ValueError, match=r"name Composed among them"):
        plain.ours  # noqa: B018
