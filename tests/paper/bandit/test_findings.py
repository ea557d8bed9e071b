"""Findings and controls of the bandit study: they tell the numbers of the run, whose choices these are, and more."""

import numpy as np

from policychord.choices.models import OURS
from policychord_paper.bandit.experiments import BanditSettings, Gain
from policychord_paper.bandit.report import STUDY

from .editing import with_links, with_pxp, with_rival

HUMAN = {"data": "."}  # a folder makes the choices human; the findings do not read it


def findings(settings, evidence):
    return {finding.title: finding.text for finding in STUDY.findings(settings, evidence)}


def answers(settings, evidence):
    return {control.name: control.answer for control in STUDY.controls(settings, evidence)}


def with_gain(evidence, total, rare):
    return with_links(evidence, lambda found: found._replace(gain=Gain(total, rare)))


def with_experiments(evidence, **changes):
    """The same change of both experiments."""
    return evidence._replace(**{name: found._replace(**changes) for name, found in evidence._asdict().items()})


def test_simulated_choices_are_said_to_be_simulated(small, evidence):
    first, *rest = STUDY.findings(small, evidence)
    assert first.title == "These choices are simulated"
    assert "say nothing about people" in first.text
    assert "8 and 8 people" in first.text
    assert all(finding.text.startswith("*Simulated choices.*") for finding in rest)
    assert all(control.answer.endswith("(Simulated choices.)") for control in STUDY.controls(small, evidence))
    assert "simulated" in STUDY.introduction


def test_human_choices_are_not(small, evidence):
    human = BanditSettings(**(small.model_dump() | HUMAN))
    text = " ".join(findings(human, evidence).values())
    assert "*Simulated choices.*" not in text
    assert "No human data" not in text


def test_words_tell_the_figures_of_this_run(small, evidence):
    text = findings(small, with_rival(evidence, "clipped", 0.37, 0.7))["A floor under rare choices"]
    gain, rare = evidence.first.probit.gain
    assert f"is {gain:+.1f} from the Hybrid's" in text
    assert f"contribute {rare:+.1f}" in text
    assert "PXP of 0.37 (BOR 0.70)" in text


def test_the_floor_follows_the_figures(small, evidence):
    won = with_rival(evidence, "clipped", 0.99)
    assert (
        "It is better than a mere floor in both experiments."
        in findings(small, won)["More than a floor under rare choices"]
    )
    assert answers(small, won)["Floors without primitives"].startswith("Yes")
    lost = with_rival(evidence, "clipped", 0.3)
    assert "not shown" in findings(small, lost)["A floor under rare choices"]
    assert "Experiment 1: no; Experiment 2: no" in answers(small, lost)["Floors without primitives"]
    open_ones = with_rival(evidence, "clipped", 0.7, bor=0.6)
    assert "Experiment 1: not shown" in answers(small, open_ones)["Floors without primitives"]
    behind = with_rival(evidence, "clipped", 0.37, bor=0.74)  # behind, but the comparison is open
    assert "Experiment 1: not shown; Experiment 2: not shown" in answers(small, behind)["Floors without primitives"]
    carried = findings(small, with_gain(lost, 10.0, 9.0))["A floor under rare choices"]
    assert "carry the gain in both experiments" in carried
    spread = findings(small, with_gain(lost, 10.0, 1.0))["A floor under rare choices"]
    assert "do not carry the gain" in spread
    nothing = findings(small, with_gain(lost, -3.0, 1.0))["A floor under rare choices"]
    assert "no gain over the Hybrid" in nothing


def test_the_summary_follows_the_figures(small, evidence):
    human = BanditSettings(**(small.model_dump() | HUMAN))
    ahead = with_links(evidence, lambda found: with_pxp(found, "against_reference", 0.99))
    won = STUDY.summary(human, with_rival(with_rival(ahead, "counted", 0.8), "clipped", 0.99))
    assert "| PXP against the Hybrid (BOR) | 0.990 (0.010) | 0.990 (0.010) |" in won
    assert "Over the Hybrid it is established in both experiments" in won
    assert "no primitives, in both experiments" in won
    assert "the Hybrid is ahead in neither experiment" in won
    lost = STUDY.summary(human, with_rival(with_rival(ahead, "counted", 0.1), "clipped", 0.99, bor=0.5))
    assert "no primitives, in neither experiment" in lost
    assert "the Hybrid is ahead in both experiments" in lost
    first = ahead._replace(second=with_rival(evidence, "clipped", 0.4, bor=0.5).second)
    assert "established in Experiment 1 only" in STUDY.summary(human, first)
    assert "Simulated" not in won
    assert STUDY.summary(small, ahead).startswith("*Simulated choices.*")


def test_ties_follow_the_figures(small, evidence):
    won = with_links(evidence, lambda found: with_pxp(found, "against_reference", 0.9))
    tied = findings(small, with_rival(won, "tied", 0.1))["Ties, and the order of a subtraction"]
    assert "Taking ties as ties changes which model is ahead" in tied


def test_recovery_follows_the_figures(small, evidence):
    found = evidence.first.recovery
    good = with_experiments(evidence, recovery=found._replace(people=np.eye(5), won=np.eye(5)))
    assert (
        "100% are given back to it and 0% to the Hybrid" in findings(small, good)["The composed model can be recovered"]
    )
    bad = with_experiments(evidence, recovery=found._replace(people=np.full((5, 5), 0.2)))
    assert (
        "20% are given back to it and 20% to the Hybrid"
        in findings(small, bad)["The composed model is hard to recover"]
    )


def test_one_cohort_is_said_to_be_too_few(small, evidence):
    found = evidence.first.recovery
    good = with_experiments(evidence, recovery=found._replace(people=np.eye(5), won=np.eye(5)))
    for cohorts, said in (
        (1, "The one cohort of such people is won by the composed model; one cohort is too few"),
        (6, "Of 6 cohorts of such people, the composed model wins 6 and the Hybrid 0"),
    ):
        told = findings(small.model_copy(update={"recovery_cohorts": cohorts}), good)
        assert said in told["The composed model can be recovered"]


def test_chance_depends_on_the_number_of_models():
    reasons = {claim.id: claim.rule.history[0].reason for claim in STUDY.claims if claim.id in ("B1", "B2")}
    assert "PXP of one half" in reasons["B1"]
    assert "PXP of one quarter" in reasons["B2"]


def test_cross_validation_follows_the_figures(small, evidence):
    found = evidence.first.probit.cross_validation
    ours = found.models.index(OURS)
    best = found._replace(score=np.where(np.arange(5) == ours, -0.1, -0.5) + 0.01 * np.arange(2)[:, None])
    worst = found._replace(score=-best.score)

    def with_scores(scores):
        changed = with_links(evidence, lambda one: one._replace(cross_validation=scores))
        return findings(small, with_experiments(changed, as_released=scores))

    good = with_scores(best)
    assert "it is best in 2." in good["Predicting other people"]
    assert "has the highest mean" in good["Predicting other people"]
    bad = with_scores(worst)["Predicting other people depends on the split"]
    assert "the highest mean is that of UCB" in bad
    assert "it is best in 0 (UCB in 2)" in bad


def test_own_likelihood_is_told_where_it_was_fitted(small, evidence):
    assert "With coefficients of its own" not in findings(small, evidence)
    assert "Own likelihood" not in answers(small, evidence)
    fitted = with_rival(evidence, "own", 0.8, log_likelihood=-321.0)
    assert "becomes -321.0 instead of" in findings(small, fitted)["With coefficients of its own"]
    assert "2 of 2 experiments" in answers(small, fitted)["Own likelihood"]
