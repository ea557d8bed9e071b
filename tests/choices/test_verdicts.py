"""What a verdict may say: nothing where chance wins, the sign of a bonus, and who is far below chance."""

import numpy as np
import pytest

from policychord.choices.checks import CrossValidation, _explosions, examine
from policychord.choices.compare import analyse, plan_models
from policychord.choices.data import Task
from policychord.choices.models import classic
from policychord.choices.report import details, verdict
from policychord.choices.simulate import simulate_choices

TASK = Task("own data", (20.0, 8.0), 6.0, (3.0, 4.0))
MODELS = ("UCB", "Thompson", "Value", "none")


def describe(fit, rivals, examined, said=(), *checks):
    """All that a page says of the models, in one text."""
    return "\n\n".join([verdict(fit, examined), *(words for _, words in details(fit, rivals, *checks))])


def analysed(people, models=MODELS, **size):
    choices = simulate_choices(TASK, classic("UCB"), np.asarray(people), seed=5, **size)
    plan = plan_models(TASK, models=models)
    found = analyse(choices, plan=plan)
    return found, examine(choices, found, plan)


@pytest.fixture(scope="module")
def averse():
    """People who avoid what is uncertain."""
    return analysed(np.tile([0.3, -0.5], (12, 1)), blocks=15, trials=10)


def test_there_is_no_verdict_where_the_best_model_loses_to_chance():
    found, examined = analysed(np.zeros((12, 2)), blocks=5, trials=8)
    words = verdict(found, examined)
    assert words.startswith("No verdict. No model")
    assert "is the most frequent: its" not in describe(found, None, examined)
    # chance is among the models of the group selection, too, and wins there
    assert found.models["none"].parameters == 0
    assert found.everything.pxp("none") == max(found.everything.pxp(name) for name in MODELS)


def test_the_sign_of_a_bonus_is_said_beside_the_model(averse):
    found, examined = averse
    assert found.everything.pxp("UCB") > 0.95
    size = found.models["UCB"].coef[:, 1]
    said = f"UCB is negative in {(size < 0).sum()} of 12 people (median {np.median(size):.3g}): most are averse"
    assert said in verdict(found, examined)
    seekers = analysed(np.tile([0.3, 0.5], (12, 1)), ("UCB", "Value"), blocks=15, trials=10)
    assert "UCB is positive in" in verdict(*seekers)


def test_people_whose_score_explodes_are_named(averse):
    examined = averse[1]
    assert not any("worse than chance, each with" in line for line in examined.warnings)
    spoilt = {name: np.where(examined.people == 3, -9.4, values) for name, values in examined.held_out.items()}
    (line,) = _explosions(examined._replace(held_out=examined.held_out | {"UCB": spoilt["UCB"]}))
    assert "of 1 of 12 people" in line
    assert "3 (UCB -9.40)" in line
    rest = examined.people != 3
    gain = (examined.trials * examined.held_out["UCB"] - examined.chance)[rest].sum() / examined.trials[rest].sum()
    assert f"Without them, over chance: UCB {gain:+.3f}" in line


def test_scores_of_other_people_that_differ_by_nothing_are_not_told_apart(averse):
    close = CrossValidation(("UCB", "Value"), np.array([[-0.5, -0.5002], [-0.4, -0.4002]]))
    clear = close._replace(score=close.score - np.array([0.0, 0.1]))
    words = describe(averse[0], None, None, (), close)
    assert "in 2 of 2 random splits of the same people" in words
    assert "UCB and Value are only 0.0002 apart" in words
    assert "apart: take them" not in describe(averse[0], None, None, (), clear)


def test_a_lead_on_other_people_is_judged_by_its_error_over_people(averse):
    """Best in all splits, and nothing is established: the splits are of the same people."""
    person = np.array([[-0.5, -0.9], [-0.5, -0.2], [-0.5, -0.6]])
    others = CrossValidation(("UCB", "Value"), np.full((5, 2), [-0.5, -0.567]), person, np.array([20, 20, 20]))
    words = describe(averse[0], None, None, (), others)
    assert "in 5 of 5 random splits" in words
    assert "Its lead over Value, +0.0667 ± 0.2028 over people, is not established." in words
