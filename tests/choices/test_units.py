"""The unit and the zero of the rewards change nothing on own data; what has a meaningful zero is exempt, and named."""

import numpy as np
import pytest

from policychord.choices.checks import examine
from policychord.choices.compare import analyse, plan_models
from policychord.choices.data import TASKS, Task, measure_task
from policychord.choices.estimate import fit
from policychord.choices.learners import BetaBernoulli, TwoRates, believe
from policychord.choices.models import KNOWN, PAPER, classic, columns, model_by_name
from policychord.choices.report import remarks_on
from policychord.choices.simulate import simulate_choices

MODELS = ("UCB", "Thompson", "Hybrid", "Value", "Composed")


@pytest.fixture(scope="module")
def own():
    """People in a task of nobody's."""
    people = np.array([[0.3, 0.2], [0.1, -0.2], [0.5, 0.0], [0.2, 0.4], [0.05, 0.1], [0.4, 0.3]])
    task = Task("own data", (20.0, 8.0), 6.0, (3.0, 4.0))
    choices = simulate_choices(task, classic("UCB"), people, blocks=4, trials=8, seed=2)
    return choices._replace(reward=np.round(choices.reward), task=task)


def in_unit(choices, factor, shift, measured):
    """The same choices with rewards in another unit, and the task transformed alike, or measured again."""
    moved = choices._replace(reward=factor * choices.reward + shift)
    task = choices.task
    alike = Task(task.name, tuple(factor**2 * v for v in task.variance), factor**2 * task.noise,
                 tuple(factor * m + shift for m in task.numbers.mean))  # fmt: skip
    return moved._replace(task=measure_task(moved) if measured else alike)


def numbers(choices, models=MODELS):
    """All that must not depend on the unit."""
    plan = plan_models(choices.task, models=models)
    found = analyse(choices, plan=plan)
    examined = examine(choices, found, plan)
    return np.concatenate([
        *(fit.log_likelihood for fit in found.models.values()), *examined.held_out.values(),
        found.everything.selection.pxp, found.ours.composition.weights.ravel(),
        found.models["Thompson"].coef.ravel(),
    ]), found  # fmt: skip


@pytest.mark.parametrize("measured", [False, True])
def test_the_unit_and_the_zero_of_rewards_change_nothing(own, measured):
    start = in_unit(own, 1.0, 0.0, measured)
    expected, base = numbers(start)
    for factor, shift in ((0.01, 0.0), (100.0, 0.0), (1.0, 50.0)):
        same, found = numbers(in_unit(own, factor, shift, measured))
        np.testing.assert_allclose(same, expected, atol=1e-6)
        # a value's coefficient is per unit of reward
        np.testing.assert_allclose(factor * found.models["Value"].coef, base.models["Value"].coef, rtol=1e-6)


def test_learners_with_free_rates_and_variances_keep_their_likelihood(own):
    """A rate stays, and a variance that is fitted is in squared units of the rewards."""
    both = [believe(in_unit(own, *unit, False)) for unit in ((1.0, 0.0), (100.0, 50.0))]
    for free, power in (("delta", 0), ("kalman/drift:UCB", 2)):
        here, there = (
            fit(model_by_name(free, task, "probit"), trials)
            for trials, task in zip(both, (own.task, in_unit(own, 100.0, 50.0, False).task), strict=True)
        )
        np.testing.assert_allclose(there.log_likelihood, here.log_likelihood, atol=1e-6)
        inner = ~(here.coef[:, 0] < 1e-3)
        np.testing.assert_allclose((there.coef[:, 0] / 100.0**power)[inner], here.coef[inner, 0], rtol=1e-3)


def test_the_definitions_of_the_paper_depend_on_the_unit_and_say_so(own):
    """They are those of its experiments, and on other data only by name."""
    small, plain = (believe(in_unit(own, factor, 0.0, False)) for factor in (0.1, 1.0))
    assert np.abs(columns(PAPER, small) - columns(PAPER, plain)).max() > 0.1
    np.testing.assert_allclose(columns(KNOWN, small), columns(KNOWN, plain), atol=1e-12)
    assert plan_models(TASKS["2"]).primitives == dict(PAPER)
    assert plan_models(own.task).primitives == {name: KNOWN[name] for name in PAPER}
    by_name = plan_models(own.task, primitives=("paper",))
    assert by_name.primitives == dict(PAPER)
    models = {"models": ("Hybrid", "Composed")}
    for plan, says in ((by_name._replace(reference="Hybrid"), True), (plan_models(own.task, **models), False)):
        lines = remarks_on(own, plan, analyse(own, plan=plan))
        assert any("squared units of the rewards" in line for line in lines) == says


def test_learners_with_a_meaningful_zero_are_exempt_from_the_shift(own):
    """Gains and losses are told apart at 0, and wins are rewards above 0."""
    trials, moved = believe(own), believe(in_unit(own, 1.0, 50.0, False))
    for learner, shift in ((TwoRates(0.5, 0.1, by="outcome"), 50.0), (BetaBernoulli(), 0.0)):
        here, there = (believe(one, learner) for one in (own, in_unit(own, 1.0, 50.0, False)))
        assert np.abs(there.mean - shift - here.mean).max() > 0.01
    np.testing.assert_allclose(moved.mean - 50.0, trials.mean, atol=1e-9)


def test_risk_is_the_mirror_of_uncertainty(own):
    """With two arms exactly; an arm that is known comes first, and with nothing uncertain all are the same."""
    trials = believe(own)
    uncertainty, risk = (KNOWN[name](trials) for name in ("uncertainty", "risk"))
    np.testing.assert_allclose(risk, uncertainty[:, ::-1], rtol=1e-12)
    known = trials._replace(variance=np.zeros_like(trials.variance))
    assert (KNOWN["risk"](known) == 0.5).all()
    known.variance[:, 0] = 2.0
    assert (KNOWN["risk"](known) == [0.0, 1.0]).all()
