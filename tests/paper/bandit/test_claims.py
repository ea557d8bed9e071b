"""Claims follow the evidence: every rule says yes to evidence that fulfils it, and no, part by part, to the rest."""

import numpy as np
import pytest

from policychord.choices.models import OURS
from policychord_paper.bandit.claims import CLAIMS
from policychord_paper.bandit.report import STUDY
from policychord_paper.claim import Quantity, judge_claim

from .editing import with_links, with_pxp, with_scores, with_weights

BY_ID = {claim.id: claim for claim in CLAIMS}
# mean weights of exploitation, uncertainty and risk at the eight trials of a block, as the paper has them
FIRST = np.tile([0.3, 0.5, 0.2], (8, 1))
SECOND = np.array([[1 / 3, 1 / 3, 1 / 3], [0.37, 0.45, 0.18], [0.65, 0.17, 0.18], *([[0.37, 0.13, 0.5]] * 5)])


def verdict(name, settings, evidence):
    return judge_claim(BY_ID[name], settings, evidence).verdict


def in_first(evidence, change):
    """A change of Experiment 1 alone, with both links."""
    return evidence._replace(first=with_links(evidence, change).first)


def in_second(evidence, change):
    return evidence._replace(second=with_links(evidence, change).second)


def test_every_claim_has_a_rule_and_numbers(small, evidence):
    assert list(BY_ID) == [f"B{k}" for k in range(1, 13)]
    for claim in CLAIMS:
        judged = judge_claim(claim, small, evidence)
        assert judged.reported
        assert all(isinstance(value, Quantity) and np.isfinite(value.value) for value in judged.measured.values())


AGAINST = {"B1": ("against_reference",), "B2": ("against_others",), "B7": ("against_reference", "against_others")}


@pytest.mark.parametrize("claim", AGAINST)
def test_ahead_and_established(claim, small, evidence):
    def lead(pxp, bor=0.01):
        def change(found):
            for against in AGAINST[claim]:
                found = with_pxp(found, against, pxp, bor)
            return found

        return change

    def holds(found):
        return [held for name, held in judge_claim(BY_ID[claim], small, found).holds.items() if "Exp 1" in name]

    sure = with_links(evidence, lead(0.96))
    assert verdict(claim, small, sure) == "reproduced"
    times = len(AGAINST[claim])
    assert holds(in_first(sure, lead(0.94))) == [True, False] * times  # higher, and not established
    assert holds(in_first(sure, lead(0.96, bor=0.26))) == [True, False] * times  # chance is not excluded
    assert verdict(claim, small, in_first(sure, lead(0.94))) == "partly"
    assert verdict(claim, small, in_first(sure, lead(0.1))) == "partly"
    assert verdict(claim, small, with_links(evidence, lead(0.1))) == "not reproduced"


@pytest.mark.parametrize(("claim", "even"), [("B1", 0.5), ("B2", 0.25)])
def test_an_even_share_is_not_ahead(claim, even, small, evidence):
    alike = with_links(evidence, lambda found: with_pxp(found, AGAINST[claim][0], even))
    assert verdict(claim, small, alike) == "not reproduced"


def test_b7_needs_the_hybrid_and_the_others(small, evidence):
    half = with_links(evidence, lambda f: with_pxp(with_pxp(f, "against_reference", 0.9), "against_others", 0.1))
    assert verdict("B7", small, half) == "partly"


def test_order_of_weights_in_the_first_experiment(small, evidence):
    def course(mean):
        return in_first(evidence, lambda found: with_weights(found, mean))

    once = FIRST.copy()
    once[4] = [0.6, 0.3, 0.1]  # of eight trials one at which uncertainty is not the largest: fewer than 9 of 10
    assert verdict("B3", small, course(FIRST)) == "reproduced"
    assert verdict("B3", small, course(once)) == "partly"
    assert verdict("B3", small, course(FIRST[:, [1, 2, 0]])) == "not reproduced"


BROKEN_COURSES = {  # what is changed in the two halves of a block, and the part that then fails
    "exploitation dominates early": ([0.40, 0.17, 0.43], [0.37, 0.13, 0.50]),
    "risk-aversion rises": ([0.50, 0.20, 0.30], [0.65, 0.05, 0.30]),
    "uncertainty stays small": ([0.60, 0.20, 0.20], [0.25, 0.26, 0.49]),
}


@pytest.mark.parametrize("part", BROKEN_COURSES)
def test_course_of_weights_in_the_second_experiment(part, small, evidence):
    broken = np.repeat(BROKEN_COURSES[part], 4, axis=0)
    for name in ("B4", "B8"):
        right = in_first(evidence, lambda found: with_weights(found, FIRST))
        assert verdict(name, small, in_second(right, lambda found: with_weights(found, SECOND))) == "reproduced"
        judged = judge_claim(BY_ID[name], small, in_second(right, lambda found: with_weights(found, broken)))
        assert judged.verdict == "partly"
        assert [name for name, holds in judged.holds.items() if not holds] == [part, f"{part}, beyond the task"]
        for beyond in (0.0, -0.05):  # people without an attitude to uncertainty have the same course, or more of it
            alike = in_second(right, lambda found, beyond=beyond: with_weights(found, SECOND, beyond))
            held = judge_claim(BY_ID[name], small, alike).holds
            assert [part for part, it in held.items() if not it] == [
                f"{part}, beyond the task" for part in BROKEN_COURSES
            ]


def test_courses_that_hold_nowhere(small, evidence):
    wrong = np.tile([0.2, 0.5, 0.3], (8, 1))
    nowhere = in_second(evidence, lambda found: with_weights(found, wrong))
    assert verdict("B4", small, nowhere) == "not reproduced"
    nowhere = in_first(nowhere, lambda found: with_weights(found, FIRST[:, [1, 2, 0]]))
    assert verdict("B8", small, nowhere) == "not reproduced"


def test_people_differ_on_the_same_trials_or_they_do_not(small, evidence):
    spread = np.random.default_rng(0).dirichlet([9.0, 9.0, 9.0], (8, 2))
    same = with_links(evidence, lambda found: found._replace(same=spread))
    assert verdict("B11", small, same) == "not reproduced"
    assert judge_claim(BY_ID["B11"], small, same).measured["p on the same trials"].value == 1.0
    shift = np.array([0.3, -0.2, -0.1])
    apart = in_second(same, lambda found: found._replace(same=spread + shift))
    assert verdict("B11", small, apart) == "reproduced"


def test_weights_are_estimates_where_they_follow_what_was_planted(small, evidence):
    def planted(change):
        return type(evidence)(*(
            experiment._replace(planted=experiment.planted._replace(weights=change(*experiment.planted.coefficients.T)))
            for experiment in evidence
        ))  # fmt: skip

    follow = planted(lambda value, seek: np.stack([value, seek, -seek], axis=1))
    assert verdict("B12", small, follow) == "reproduced"
    assert (
        verdict("B12", small, planted(lambda value, seek: -np.stack([value, seek, -seek], axis=1))) == "not reproduced"
    )
    half = judge_claim(BY_ID["B12"], small, planted(lambda value, seek: np.stack([seek, seek, -seek], axis=1)))
    assert [part for part, held in half.holds.items() if not held] == ["Exp 1: exploitation", "Exp 2: exploitation"]


def test_every_changed_rule_has_its_history():
    revised = {"B1", "B2", "B3", "B4", "B5", "B6", "B7", "B8", "B9", "B10", "B11", "B12"}
    assert {claim.id for claim in CLAIMS if claim.rule.history} == revised


@pytest.mark.parametrize("claim", ["B5", "B9"])
def test_predictions_of_people_left_out(claim, small, evidence):
    best = with_links(evidence, lambda found: with_scores(found, -0.50, -0.55))
    assert verdict(claim, small, best) == "reproduced"
    # 5% behind the best is not about as well; 0.5% behind is
    behind = in_second(best, lambda found: with_scores(found, -0.525, -0.5))
    judged = judge_claim(BY_ID[claim], small, behind)
    assert judged.holds == {"best in Exp 1": True, "close to the best in Exp 2": False}
    assert judged.measured["Exp 2: behind the best mean, relative"].value == pytest.approx(0.05)
    assert verdict(claim, small, in_second(best, lambda found: with_scores(found, -0.5025, -0.5))) == "reproduced"
    assert verdict(claim, small, with_links(evidence, lambda f: with_scores(f, -0.6, -0.5))) == "not reproduced"


def test_half_of_the_splits_is_not_more_than_half(small, evidence):
    def half(found):
        score = with_scores(found, -0.5, -0.55).cross_validation.score
        score[0] -= np.arange(5) == 4  # of two splits, one is lost
        return found._replace(cross_validation=found.cross_validation._replace(score=score))

    judged = judge_claim(BY_ID["B5"], small, in_first(evidence, half))
    assert judged.measured["Exp 1: splits in which composed is best"] == Quantity(1, of=2)
    assert not judged.holds["best in Exp 1"]


@pytest.mark.parametrize("claim", ["B6", "B10"])
def test_heat(claim, small, evidence):
    def curve(cold, hot):
        return lambda found: found._replace(temperature=found.temperature._replace(pxp=np.array([cold, hot])))

    assert verdict(claim, small, with_links(evidence, curve(0.7, 0.1))) == "reproduced"
    assert verdict(claim, small, in_first(with_links(evidence, curve(0.7, 0.1)), curve(0.1, 0.7))) == "partly"
    assert verdict(claim, small, with_links(evidence, curve(0.4, 0.4))) == "not reproduced"


def test_measured_numbers_are_those_of_the_evidence(small, evidence):
    found = judge_claim(BY_ID["B1"], small, evidence).measured
    assert found["Exp 2: PXP of composed"].value == evidence.second.probit.fit.ours.against_reference.pxp(OURS)
    assert found["Exp 1: gain in log-likelihood"] == Quantity(evidence.first.probit.gain.total, "nat")
    logit = judge_claim(BY_ID["B7"], small, evidence).measured
    assert logit["Exp 2: PXP of composed"].value == evidence.second.logit.fit.ours.against_reference.pxp(OURS)


def test_people_are_drawn_anew(small, evidence):
    told, drawn = STUDY.redraw(small, evidence, 0)
    assert told.permutations == 200
    once = {claim.id: judge_claim(claim, told, drawn) for claim in CLAIMS}
    assert all(np.isfinite(it.value) for judged in once.values() for it in judged.measured.values())
    before, after = evidence.first.probit, drawn.first.probit
    people = len(before.fit.models[OURS].subjects)
    assert len(np.unique(after.fit.trials.subject)) == people
    assert after.fit.ours.against_reference.pxp(OURS) != before.fit.ours.against_reference.pxp(OURS)
    _, same = STUDY.redraw(small, evidence, 0)
    np.testing.assert_array_equal(same.first.probit.temperature.pxp, after.temperature.pxp)
