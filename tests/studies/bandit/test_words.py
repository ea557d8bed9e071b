"""The words of the bandit study: they tell the figures of the run, whose choices these are, and can be otherwise."""

import pickle

import numpy as np
import pytest

from policychord.studies.bandit.analysis import OURS
from policychord.studies.bandit.beliefs import believe
from policychord.studies.bandit.claims import LEDGER
from policychord.studies.bandit.cohort import synthetic
from policychord.studies.bandit.settings import BanditSettings
from policychord.studies.bandit.study import STUDY
from policychord.studies.bandit.validation import FLOORED, OWN, TIED, Controlled, Rounding, counted, cross_validate

HUMAN = {"data": "."}  # a folder makes the choices human; the words do not read it


def passages(settings, evidence):
    return {passage.title: passage.text for passage in STUDY.found(settings, evidence)}


def answers(settings, evidence):
    return {control.name: control.answer for control in STUDY.controls(settings, evidence)}


def with_control(evidence, name, pxp, bor=0.01, log_likelihood=-100.0):
    """The same evidence with another outcome of one control, everywhere."""
    rival = {name: Controlled(log_likelihood, pxp, bor)}
    return {key: found | rival if key.startswith("controls") else found for key, found in evidence.items()}


def with_all(evidence, start, value):
    return {key: value if key.startswith(start) else found for key, found in evidence.items()}


def test_simulated_choices_are_said_to_be_simulated(small, evidence):
    first, *rest = STUDY.found(small, evidence)
    assert first.title == "These choices are simulated"
    assert "say nothing about people" in first.text
    assert "8 and 8 people" in first.text
    assert all(passage.text.startswith("*Simulated choices.*") for passage in rest)
    assert all(control.answer.endswith("(Simulated choices.)") for control in STUDY.controls(small, evidence))
    assert "simulated" in STUDY.lead


def test_human_choices_are_not(small, evidence):
    human = BanditSettings(**(small.model_dump() | HUMAN))
    text = " ".join(passages(human, evidence).values())
    assert "*Simulated choices.*" not in text
    assert "No human data" not in text


def test_words_tell_the_figures_of_this_run(small, evidence):
    text = passages(small, with_control(evidence, FLOORED, 0.37, 0.7))["A floor under rare choices"]
    gain, rare = evidence["rare choices 1 probit"]
    assert f"is {gain:+.1f} from the Hybrid's" in text
    assert f"contribute {rare:+.1f}" in text
    assert "PXP of 0.37 (BOR 0.70)" in text


def test_the_floor_follows_the_figures(small, evidence):
    won = with_control(evidence, FLOORED, 0.99)
    assert (
        "It is better than a mere floor in both experiments."
        in passages(small, won)["More than a floor under rare choices"]
    )
    assert answers(small, won)["Floors without primitives"].startswith("Yes")
    lost = with_control(evidence, FLOORED, 0.3)
    assert "not shown" in passages(small, lost)["A floor under rare choices"]
    assert "Experiment 1: no; Experiment 2: no" in answers(small, lost)["Floors without primitives"]
    open_ones = with_control(evidence, FLOORED, 0.7, bor=0.6)
    assert "Experiment 1: not shown" in answers(small, open_ones)["Floors without primitives"]
    carried = passages(small, with_all(lost, "rare choices", (10.0, 9.0)))["A floor under rare choices"]
    assert "carry the gain in both experiments" in carried
    spread = passages(small, with_all(lost, "rare choices", (10.0, 1.0)))["A floor under rare choices"]
    assert "do not carry the gain" in spread
    nothing = passages(small, with_all(lost, "rare choices", (-3.0, 1.0)))["A floor under rare choices"]
    assert "no gain over the Hybrid" in nothing


def test_the_count_follows_the_figures(small, evidence):
    fits = {key: found for key, found in evidence.items() if key.startswith("fit")}
    won = {}
    for key, fit in fits.items():
        order = np.where(np.array(fit.against_hybrid.models) == OURS, 0.9, 0.1)
        selection = fit.against_hybrid.selection._replace(pxp=order, bor=0.01)
        won[key] = fit._replace(against_hybrid=fit.against_hybrid._replace(selection=selection))
    turned = passages(small, with_control(evidence | won, counted(3), 0.0001))["One parameter more decides"]
    assert "0.900 as counted by the paper, below 0.001 with one more" in turned
    assert "turns the comparison around, in both" in turned
    kept = passages(small, with_control(evidence | won, counted(3), 0.8))
    assert "does not turn the comparison around" in kept["One parameter more"]
    assert "chance is an unlikely explanation" in kept["How sure the comparison is"]
    tied = passages(small, with_control(evidence | won, TIED, 0.1))["Ties, and the order of a subtraction"]
    assert "Taking ties as ties changes which model is ahead" in tied


def test_recovery_follows_the_figures(small, evidence):
    found = evidence["recovery 1"]
    good = with_all(evidence, "recovery", found._replace(best=np.eye(5), won=np.eye(5)))
    assert (
        "100% are given back to it and 0% to the Hybrid" in passages(small, good)["The composed model can be recovered"]
    )
    bad = with_all(evidence, "recovery", found._replace(best=np.full((5, 5), 0.2)))
    assert (
        "20% are given back to it and 20% to the Hybrid"
        in passages(small, bad)["The composed model is hard to recover"]
    )


def test_cross_validation_follows_the_figures(small, evidence):
    found = evidence["cross-validation 1 probit"]
    ours = found.models.index(OURS)
    best = found._replace(score=np.where(np.arange(5) == ours, -0.1, -0.5) + 0.01 * np.arange(2)[:, None])
    worst = found._replace(score=-best.score)
    good = passages(small, with_all(evidence, "cross-validation", best))
    assert "it is best in 2." in good["Predicting other people"]
    assert "has the highest mean" in good["Predicting other people"]
    bad = passages(small, with_all(evidence, "cross-validation", worst))["Predicting other people depends on the split"]
    assert "the highest mean is that of UCB" in bad
    assert "it is best in 0 (UCB in 2)" in bad


def test_own_likelihood_is_told_where_it_was_fitted(small, evidence):
    assert "With coefficients of its own" not in passages(small, evidence)
    assert "Own likelihood" not in answers(small, evidence)
    fitted = with_control(evidence, OWN, 0.8, log_likelihood=-321.0)
    assert "becomes -321.0 instead of" in passages(small, fitted)["With coefficients of its own"]
    assert "2 of 2 experiments" in answers(small, fitted)["Own likelihood"]


def test_rounding_is_measured(small, evidence):
    """In Experiment 1 an arm that pays zero ties with one that has paid nothing; the order of operations shows."""
    found = evidence["rounding 1"]
    assert isinstance(found, Rounding)
    apart = believe(synthetic("1", small)), believe(synthetic("1", small), factored=True)
    np.testing.assert_allclose(apart[0].mean, apart[1].mean, rtol=1e-9, atol=1e-12)
    assert np.any(apart[0].variance != apart[1].variance)
    ours = evidence["fit 1 probit"].models[OURS].log_likelihood_.sum()
    assert found.log_likelihood == pytest.approx(ours, abs=1e-5)


def test_only_the_first_are_fitted_and_scored(cohort):
    """Whatever the others choose, the score of the script's reading stays; that of the whole does not."""
    trials = cohort["2"]
    folds = np.array_split(np.random.default_rng((0, 0)).permutation(np.unique(trials.subject)), 2)
    others = ~np.isin(trials.subject, [fold.min() for fold in folds])
    changed = trials._replace(choice=np.where(others, 1 - trials.choice, trials.choice))
    for only_first in (True, False):
        before, after = (
            cross_validate(some, "probit", eps=0.01, folds=2, splits=1, seed=0, only_first=only_first).score
            for some in (trials, changed)
        )
        assert np.allclose(before, after, rtol=1e-3) == only_first


def test_plates_and_claims_name_each_other():
    shown = {claim for plate in STUDY.plates.values() for claim in plate.claims}
    assert shown == {entry.id for entry in LEDGER}
    assert all(len(plate.caption) > 100 for plate in STUDY.plates.values())
    assert all(entry.reported for entry in LEDGER)


def test_steps_give_the_same_in_any_order(small, evidence):
    """To the last bit: what was done before in the same process does not matter."""
    again = {name: step() for name, step in reversed(STUDY.work(small).items())}
    for name, found in evidence.items():
        if not name.startswith(("fit", "recovery")):
            assert pickle.dumps(again[name]) == pickle.dumps(found)
    for e in small.experiments:
        np.testing.assert_array_equal(
            again[f"fit {e} probit"].composition.weights, evidence[f"fit {e} probit"].composition.weights
        )
        np.testing.assert_array_equal(again[f"recovery {e}"].frequency, evidence[f"recovery {e}"].frequency)
