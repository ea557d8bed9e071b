"""Validation and recovery on people whose model is known."""

import numpy as np
import pytest

from policychord.choices.data import TASKS
from policychord.choices.learners import believe
from policychord.choices.models import CLASSIC, OURS, classic
from policychord.choices.simulate import simulate_choices
from policychord.runs import cache
from policychord_paper.bandit.experiments import (
    _choices_of,
    _learn_factored,
    _predict_as_released,
    _predict_others,
    _recover,
    _sweep,
)
from policychord_paper.bandit.report import STUDY


def test_recovery_tables(small):
    found = _recover(small, "2")
    np.testing.assert_allclose(found.people.sum(1), 1.0)
    np.testing.assert_allclose(found.won.sum(1), 1.0)
    np.testing.assert_allclose(found.frequency.sum(1), 1.0)
    assert [(p.model, p.name) for p in found.parameters][-2:] == [(OURS, "V/TU"), (OURS, "RU")]
    assert all(np.isfinite([p.correlation, p.bias, p.rmse]).all() for p in found.parameters)
    assert found.people[1, 1] > 0.5  # Thompson is mostly seen as Thompson


def test_cross_validation_predicts_strangers_who_are_alike():
    alike = np.tile([1.0, 0.2], (8, 1))
    trials = believe(simulate_choices(TASKS["2"], classic("Hybrid"), alike, blocks=10, trials=8, seed=1))
    more = {"eps": 0.01, "folds": 3, "splits": 2, "seed": 0}
    found = _predict_others(trials, "2", "probit", **more)
    assert found.models == (*CLASSIC, OURS)
    assert found.score.shape == (2, 5)
    assert (found.score > np.log(0.5)).all()  # better than tossing a coin
    assert found.mean("Hybrid") > found.mean("Value")
    assert sum(found.best_in(model) for model in found.models) == 2
    np.testing.assert_array_equal(found.score, _predict_others(trials, "2", "probit", **more).score)
    with pytest.raises(ValueError, match="folds = 9"):
        _predict_others(trials, "2", "probit", **(more | {"folds": 9}))


def test_a_hot_composition_loses(cohort):
    swept = _sweep(cohort["2"], "probit", (0.01, 1.0))
    assert swept.pxp[1] < swept.pxp[0]
    warm, hot = swept.log_evidence[:, :, 1].sum(axis=1)  # of ours, with as many parameters at every temperature
    assert hot < warm


def test_rounding_is_measured(small, evidence):
    """In Experiment 1 an arm that pays zero ties with one that has paid nothing; the order of operations shows."""
    found = evidence.first.rounding
    choices = _choices_of(small, "1")
    apart = believe(choices), believe(choices, _learn_factored)
    np.testing.assert_allclose(apart[0].mean, apart[1].mean, rtol=1e-9, atol=1e-12)
    assert np.any(apart[0].variance != apart[1].variance)
    ours = evidence.first.probit.fit.models[OURS].log_likelihood.sum()
    assert found.log_likelihood == pytest.approx(ours, abs=1e-5)


def test_only_the_first_are_fitted_and_scored(cohort):
    """Whatever the others choose, the score of the script's reading stays; that of the whole does not."""
    trials = cohort["2"]
    folds = np.array_split(np.random.default_rng((0, 0)).permutation(np.unique(trials.subject)), 2)
    others = ~np.isin(trials.subject, [fold.min() for fold in folds])
    changed = trials._replace(choice=np.where(others, 1 - trials.choice, trials.choice))
    how = {"eps": 0.01, "folds": 2, "splits": 1, "seed": 0}
    before, after = (_predict_as_released(some, **how).score for some in (trials, changed))
    np.testing.assert_allclose(before, after, rtol=1e-3)
    before, after = (_predict_others(some, "2", "probit", **how).score for some in (trials, changed))
    assert not np.allclose(before, after, rtol=1e-3)


def test_steps_give_the_same_in_any_order_and_as_data(small, results, tmp_path):
    """To the last bit: what was done before in the same process does not matter, nor that it went through a file."""
    again = {name: step() for name, step in reversed(STUDY.experiments(small).items())}
    for name, found in results.items():
        files = []
        for k, value in enumerate((found, again[name])):
            cache.save_result(tmp_path / f"{k}.npz", name, cache.Result(value, 0.0))
            files.append(cache.load_result(tmp_path / f"{k}.npz").value)
        assert same(found, files[0])
        assert same(*files)


def same(one, other) -> bool:
    """Whether two trees of records, tables and arrays are equal bit by bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return np.array_equal(one, other, equal_nan=isinstance(one, np.ndarray) and one.dtype.kind == "f")
