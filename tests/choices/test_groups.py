"""What groups and conditions differ in, whether weights are attitudes, and whole sequences of choices."""

import numpy as np
import pytest

from policychord.choices.attitudes import describe_attitudes, plant_attitudes
from policychord.choices.checks import CrossValidation
from policychord.choices.compare import analyse, believe_by, plan_models
from policychord.choices.data import Choices, Task
from policychord.choices.effects import MEAN, describe_effects, effect_table, fit_effects
from policychord.choices.estimate import fit
from policychord.choices.learners import believe
from policychord.choices.measure import measure_task
from policychord.choices.models import classic, model_by_name
from policychord.choices.predictive import predict_sequences
from policychord.choices.report import describe_groups
from policychord.choices.schedules import moves, schedule_of
from policychord.choices.simulate import simulate_choices

TASK = Task("own data", (16.0, 16.0), 4.0, (0.0, 0.0))
MODELS = ("UCB",)


def played(coef, seed=1, blocks=12, trials=8):
    return simulate_choices(TASK, classic("UCB"), np.asarray(coef, float), blocks=blocks, trials=trials, seed=seed)


def in_two_conditions(people, first, second, seed=1):
    """Odd blocks are played with the first coefficients, even ones with the second."""
    rng = np.random.default_rng(seed)
    own = np.array([0.4, 0.2]) + rng.normal(size=(people, 2)) * [0.1, 0.1]
    parts = [played(own + np.asarray(shift), seed=(seed, k)) for k, shift in enumerate((first, second))]
    odd = parts[0].block % 2 == 1
    rows = {name: np.where(odd, getattr(parts[0], name), getattr(parts[1], name)) for name in ("choice", "reward")}
    return parts[0]._replace(**rows, condition=np.where(odd, "A", "B"))


@pytest.fixture(scope="module")
def conditions():
    return in_two_conditions(24, [0.0, -0.25], [0.0, 0.25])


def effects_of(choices: Choices, by):
    plan = plan_models(TASK, models=MODELS)
    return fit_effects(choices, plan, believe_by(plan, choices), by)


def test_an_effect_of_condition_is_found_where_it_is_and_nowhere_else(conditions):
    table = effect_table(effects_of(conditions, ("condition",))).set_index(["coefficient", "contrast"])
    bonus, value = table.loc[("RU", "B - A")], table.loc[("V", "B - A")]
    assert bonus["low"] > 0
    assert bonus["low"] < 0.5 < bonus["high"]
    assert value["low"] < 0 < value["high"]
    assert set(table.index.get_level_values("contrast")) == {MEAN, "B - A"}


def test_groups_and_conditions_together_have_an_interaction(conditions):
    groups = np.where(conditions.subject % 2 == 0, "even", "odd")
    (each,) = effects_of(conditions._replace(group=groups), ("group", "condition"))
    assert {MEAN, "odd - even", "B - A", "B - A, odd - even"} == set(each.contrasts)
    assert each.groups == {"even": 12, "odd": 12}
    words = " ".join(describe_effects(each))
    # no difference is claimed without the smallest one that would have been found
    assert "No difference was found in" in words
    assert "smaller ones are not excluded" in words


def test_what_cannot_be_compared_is_named(conditions):
    with pytest.raises(ValueError, match="no column of groups"):
        effects_of(conditions, ("group",))
    with pytest.raises(ValueError, match="everybody is in the group 'all'"):
        effects_of(conditions._replace(group=np.full(len(conditions.choice), "all")), ("group",))
    with pytest.raises(ValueError, match="no column of conditions"):
        effects_of(conditions._replace(condition=None), ("condition",))
    with pytest.raises(ValueError, match="changes within block"):
        effects_of(conditions._replace(condition=conditions.trial.astype(str)), ("condition",))
    with pytest.raises(ValueError, match="name the column as a group"):
        effects_of(conditions._replace(condition=(conditions.subject % 2).astype(str)), ("condition",))


def test_frequencies_of_small_groups_are_not_called_the_same():
    """Twelve people of one kind in two groups: nothing differs, and what would have been found is said."""
    choices = played(np.tile([0.4, 0.2], (12, 1)), blocks=4)
    groups = np.where(choices.subject % 2 == 0, "even", "odd")
    found = analyse(choices, plan=plan_models(TASK, models=("UCB", "Value", "Thompson")))
    (words,) = describe_groups(choices._replace(group=groups), found)
    assert "They use the models with" not in words
    assert "distinguished with a probability of .8" in words


# ---------------------------------------------------------------------------------- flags and errors


def test_estimates_at_a_bound_or_without_information_have_no_error():
    """A person who always repeats, and a lapse that nothing tells: an interval at most, and no standard error."""
    choices = played(np.tile([0.5, 0.0], (3, 1)), blocks=3)
    rng = np.random.default_rng(2)
    flips = rng.integers(0, 2, len(choices.choice))
    fitted = fit(model_by_name("delta", TASK), believe(choices._replace(choice=flips)))
    assert (fitted.low[:, 0] < 0.01).all()  # rates that may be anything
    assert (fitted.high[:, 0] > 0.99).all()
    assert np.isnan(fitted.error[:, 0]).all()
    assert not fitted.at_bound.any()
    assert fitted.local.shape == (3,)
    known = fit(classic("UCB"), believe(choices))
    assert np.isfinite(known.error).all()
    np.testing.assert_allclose((known.high - known.low) / 3.92, known.error, rtol=1e-3)


# ------------------------------------------------------------------------------ attitudes, sequences, people


@pytest.fixture(scope="module")
def hybrid():
    coef = np.tile([1.0, 0.0], (16, 1))
    choices = simulate_choices(TASK, classic("Hybrid"), coef, blocks=10, trials=8, seed=4)
    plan = plan_models(TASK, models=("Hybrid", "Composed"))
    return choices, plan, analyse(choices, plan=plan)


def test_people_without_an_attitude_are_not_given_one(hybrid):
    choices, plan, found = hybrid
    control = plant_attitudes(choices, plan, found, repeats=6)
    risk = control.primitives.index("risk")
    assert control.explained("change")[risk]
    assert control.explained("late")[risk]
    words = " ".join(describe_attitudes(control))
    assert words.count("no attitude follows from it") >= 1
    # and the control can tell: averse people get other weights
    averse = control.planted[2]
    assert averse.bonus < 0
    assert averse.halves.early[:, risk].mean() > control.planted[0].halves.early[:, risk].max()


def test_people_with_an_attitude_are_told_from_those_without(hybrid):
    plan = hybrid[1]
    seekers = simulate_choices(TASK, classic("Hybrid"), np.tile([1.0, 0.6], (16, 1)), blocks=10, trials=8, seed=4)
    control = plant_attitudes(seekers, plan, analyse(seekers, plan=plan), repeats=4)
    assert not control.explained("early")[control.primitives.index("risk")]
    assert "it differs in the direction of uncertainty-seeking people" in " ".join(describe_attitudes(control))


def test_a_model_without_a_bonus_has_no_control(hybrid):
    choices = hybrid[0]
    plan = plan_models(TASK, models=("Value", "Composed"))
    assert plant_attitudes(choices, plan, analyse(choices, plan=plan)) is None


def test_simulated_arms_pay_as_the_recorded_ones(hybrid):
    choices = hybrid[0]
    payoff = schedule_of(choices, (0, 1)).payoff
    assert not moves(measure_task(choices))
    value = payoff.mean(axis=1)
    assert value.var() == pytest.approx(16.0 + 4.0 / 8, rel=0.25)
    assert (payoff - value[:, None]).var() == pytest.approx(4.0 * 7 / 8, rel=0.2)
    walk = np.cumsum(np.random.default_rng(0).normal(size=len(choices.choice)))
    assert moves(measure_task(choices._replace(reward=walk)))


def test_whole_sequences_hold_what_their_own_model_makes_and_not_what_another_does(hybrid):
    choices, plan, found = hybrid
    check = predict_sequences(choices, plan, found.models, found.trials, draws=12)
    assert {row.name: row.inside for row in check.predictions["Hybrid"]}["repeats"]
    # people who always repeat are outside of what coin flippers do
    sticky = choices._replace(choice=np.zeros_like(choices.choice))
    alone = plan_models(TASK, models=("none",))
    trials = believe(sticky)
    flips = predict_sequences(sticky, alone, {"none": fit(alone.models["none"], trials)}, trials, draws=12)
    repeats = flips.predictions["none"][0]
    assert repeats.observed == 1.0
    assert repeats.high < 0.6
    assert not repeats.inside
    with pytest.raises(ValueError, match="pass at least 2"):
        predict_sequences(choices, plan, found.models, found.trials, draws=1)


def test_a_lead_on_other_people_has_an_error_over_people():
    person = np.array([[-0.5, -0.52], [-0.4, -0.4], [-0.6, -0.63]])
    others = CrossValidation(("UCB", "Value"), np.array([[-0.5, -0.51]]), person, np.array([10, 10, 10]))
    lead = others.lead("UCB", "Value")
    assert lead.mean == pytest.approx(np.mean(person[:, 0] - person[:, 1]))
    assert lead.error == pytest.approx(np.std(person[:, 0] - person[:, 1], ddof=1) / np.sqrt(3))
    assert CrossValidation(("UCB",), np.zeros((1, 1))).lead("UCB", "UCB") is None


def test_units_of_the_rewards_change_no_effect_and_no_flag(conditions):
    other = Task("own data", (16e4, 16e4), 4e4, (50.0, 50.0))
    scaled = conditions._replace(reward=100.0 * conditions.reward + 50.0, task=other)
    (here,) = effects_of(conditions, ("condition",))
    plan = plan_models(other, models=MODELS)
    (there,) = fit_effects(scaled, plan, believe_by(plan, scaled), ("condition",))
    for one, two in zip(here.effects, there.effects, strict=True):
        assert one.value / one.sd == pytest.approx(two.value / two.sd, rel=1e-6)
        assert one.value / one.error == pytest.approx(two.value / two.error, rel=1e-6)
    before, after = (fit(classic("UCB"), believe(rows)) for rows in (conditions, scaled))
    for flag in ("separated", "at_bound", "local"):
        np.testing.assert_array_equal(getattr(before, flag), getattr(after, flag))
