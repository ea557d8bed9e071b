"""What the report says of the flights: findings and controls tell the numbers of the run, and follow them."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from policychord_paper.claim import MINUS, Quantity
from policychord_paper.quadrotor.measures import compare_costs, expected_p
from policychord_paper.quadrotor.report import STUDY, _about_size

from .invented import SMALL, evidence

EVIDENCE = evidence()


def with_deltas(**shifts):
    """The evidence in which the released gate costs this share of what the baseline costs, seed by seed."""
    stale = EVIDENCE.stale_point
    changed = {
        pair: {**flights, "one-step gate": flights["baseline"]._replace(cost=flights["baseline"].cost * shifts[pair])}
        for pair, flights in stale._asdict().items()
    }
    beside = {name: changed["pd"][name] for name in EVIDENCE.beside}
    return EVIDENCE._replace(stale_point=stale._replace(**changed), beside=beside)


ALIKE = with_deltas(pd=0.955, lqr=0.905)


def findings(found):
    return {finding.title: " ".join(finding.text.split()) for finding in STUDY.findings(SMALL, found)}


def controls(found):
    return {control.name: control for control in STUDY.controls(SMALL, found)}


def answers(found):
    return {name: control.answer for name, control in controls(found).items()}


def test_findings_tell_the_numbers_of_this_run():
    text = findings(EVIDENCE)["The released gate takes turns"]
    assert "changes at 100% of the steps with that gate, and at 0% at the optimum" in text
    ours, pid = (np.median(EVIDENCE.stale_point.pd[name].cost) for name in ("one-step gate", "baseline"))
    assert f"costs less than PID ({ours:.0f} against {pid:.0f}, delta -0." in text


def test_a_gate_that_does_not_take_turns_is_not_said_to():
    flight = EVIDENCE.stale_point.pd["one-step gate"]
    steady = flight._replace(stabilising=np.full_like(flight.stabilising, 0.7))
    pairs = EVIDENCE.stale_point._replace(pd={**EVIDENCE.stale_point.pd, "one-step gate": steady})
    assert "The released gate is a single undamped step" in findings(EVIDENCE._replace(stale_point=pairs))


@pytest.mark.parametrize(
    ("levels", "title"),
    [
        ({"equilibrium, sample": 50.0}, "The optimum as the text defines it holds up"),
        ({"equilibrium, sample": 150.0}, "The optimum as the text defines it does not give the published result"),
        ({"fixed 50/50": 90.0, "cost-to-go, warm": 50.0}, "What makes the gate useful"),
        ({"fixed 50/50": 50.0, "cost-to-go, warm": 90.0}, "What was tried to make the gate useful"),
        ({"fixed 50/50": 90.0, "equilibrium, mean, wide": 50.0}, "One step sees little of where a thrust leads"),
        ({"fixed 50/50": 50.0}, "One step does not see where a thrust leads"),
    ],
)
def test_titles_follow_the_numbers(levels, title):
    assert title in findings(evidence(**levels))


def test_the_summary_follows_the_numbers():
    def summary(**levels):
        return " ".join(STUDY.summary(SMALL, evidence(**levels)).split())

    delta, low, high = compare_costs(SMALL, EVIDENCE.stale_point.lqr, "one-step gate").against[:3]
    assert f"{delta:+.2f} ({low:+.2f} to {high:+.2f}) |".replace("-", MINUS) in summary()
    assert f"| the paper | {MINUS}0.14 | {MINUS}0.34 |" in summary()
    assert "is shown to cost less than PID and LQR" in summary(**{"equilibrium, sample": 50.0})
    assert "is not shown to cost less than either" in summary(**{"equilibrium, sample": 150.0})
    assert "without a gate, costs less than the released gate" in summary(**{"fixed 50/50": 60.0})
    assert "without a gate" not in summary(**{"fixed 50/50": 150.0})


def test_sentences_follow_the_numbers():
    near, far = evidence(), evidence(**{"lqr, centre: baseline": 20.0, "one-step gate": 30.0})
    beaten = next(text for title, text in findings(near).items() if "the gate useful" in title)
    assert "linear model, is beaten by equilibrium" in beaten
    assert "; one-step gate;" in beaten
    safe = next(text for title, text in findings(far).items() if "the gate useful" in title)
    assert "beaten by no composition here" in safe
    apart, alike = (findings(found)["This run and the paper's numbers"] for found in (far, ALIKE))
    assert apart.startswith("The delta of the PD and of the LQR pair differs from the paper's.")
    assert alike.startswith("That a delta differs from the paper's is established for neither pair")
    other = evidence(**{"script's weight: one-step gate": 200.0})
    assert "with the script's weight (40 seeds) the released gate costs more" in " ".join(findings(other).values())
    assert "The same holds for the fixed mixture" in findings(near)["After the impulse"]


def test_answers_follow_the_numbers():
    no, yes = answers(evidence(**{"fixed 50/50": 60.0})), answers(evidence(**{"fixed 50/50": 150.0}))
    assert no["Fixed 50/50 mixture"].startswith("For the released gate that is not shown")
    assert yes["Fixed 50/50 mixture"].startswith("For the released gate yes")
    assert yes["Fixed 50/50 mixture"].endswith("For the gate whose model looks ahead yes, in both.")
    assert no["Fixed 50/50 mixture"].endswith("For the gate whose model looks ahead it is shown in neither.")
    assert answers(EVIDENCE)["Forces at the centre of mass"].startswith("No:")
    lost = evidence(**{"lqr, centre: one-step gate": 200.0, "pd, centre: one-step gate": 200.0})
    assert answers(lost)["Forces at the centre of mass"].startswith("Yes:")
    half = evidence(**{"lqr, centre: one-step gate": 200.0})
    assert answers(half)["Forces at the centre of mass"].startswith("Partly: the released gate costs less than PID")
    apart = evidence(**{"equilibrium, sample": 60.0, "equilibrium, mean": 90.0})
    assert answers(EVIDENCE)["Drawn, mean or dithered thrust"].startswith("Yes: with the same weights, mean and dither")
    assert answers(apart)["Drawn, mean or dithered thrust"].startswith("Not clearly")
    assert answers(EVIDENCE)["Temperature"].startswith("The lowest median is at eps = 5 for the cost of one step")
    grid = {f"equilibrium, {action}, wide": 50.0 for action in ("sample", "mean")}
    assert "in 4 of 4 comparisons. The cut at the limits is part" in answers(evidence(**grid))["Grid past the limits"]
    assert answers(evidence(**{"cost-to-go": 50.0}))["How far the model sees"] == "It is shown to in 4 of 4."
    assert answers(evidence(**{"cost-to-go": 150.0}))["How far the model sees"] == "It is shown to in none."
    texts = answers(evidence(**{"script's weight: one-step gate": 200.0}))["Text and scripts"]
    assert texts.endswith("With the script's LQR weight, the released gate costs more than LQR.")


def test_the_finding_has_the_interval_of_the_claim():
    """One interval of delta, which includes what rounding does, and says so. Equal digits are said to be equal."""
    far = EVIDENCE.stale_point.pd["one-step gate"]
    moved = EVIDENCE._replace(beside=EVIDENCE.beside | {"one-step gate": far._replace(cost=1.15 * far.cost)})
    title = "This run and the paper's numbers"
    for found in (EVIDENCE, moved):
        q2 = next(claim for claim in STUDY.claims if claim.id == "Q2")
        low, high = q2.measure(SMALL, found)["delta, one-step gate"].interval
        assert f"(95% interval {low:+.2f} to {high:+.2f}, with what rounding does)" in findings(found)[title]
    median = np.median(far.cost)
    assert f"the gate's median cost {median:.2f} in both" in findings(EVIDENCE)[title]
    assert f"the gate's median cost {1.15 * median:.2f} instead of {median:.2f}" in findings(moved)[title]


def test_objections_follow_the_numbers():
    def said(found, claims, reader="author"):
        objections = STUDY.objections(SMALL, found)
        return next((one.says for one in objections if one.claims == claims and one.reader == reader), None)

    assert "is larger in size than ours (-0.14)" in said(EVIDENCE, ("Q2",))
    assert "is not ours (-0.14)" in said(evidence(**{"one-step gate": 120.0}), ("Q2",))
    assert _about_size(-0.13).endswith("(-0.13) is smaller in size than ours (-0.14), and has its sign.")
    assert _about_size(-0.1399) == "Your delta of the released gate is ours (-0.14)."
    assert said(evidence(**{"fixed 50/50": 60.0}), ("Q2", "Q4"), "reviewer").startswith("A fixed average does as well")
    assert said(evidence(**{"fixed 50/50": 150.0}), ("Q2", "Q4"), "reviewer") is None


def test_controls_measure_numbers():
    for control in controls(EVIDENCE).values():
        assert all(isinstance(value, Quantity | float | int) for value in control.measured.values())
    delta = controls(EVIDENCE)["Fixed 50/50 mixture"].measured["delta, 50/50 against the released gate, PD"]
    assert delta.interval[0] < delta.value < delta.interval[1]


def test_few_seeds_are_said_to_be_few():
    """The expected p-value is that of a Mann-Whitney test on samples with that delta."""
    a, b = np.arange(500.0), np.arange(500.0) + 35.3
    delta = 2 * mannwhitneyu(a, b).statistic / 500**2 - 1
    assert expected_p(delta, 500) == pytest.approx(mannwhitneyu(a, b).pvalue, rel=0.1)
    assert expected_p(-0.14, 1000) < 1e-7  # as the paper reports
    assert "would then not count as one" in findings(EVIDENCE)["What 40 seeds can show"]


def test_figures_and_claims_name_each_other():
    shown = {claim for figure in STUDY.figures.values() for claim in figure.claims}
    assert shown == {claim.id for claim in STUDY.claims}
    assert all(len(figure.caption) > 100 for figure in STUDY.figures.values())
    assert all(claim.reported for claim in STUDY.claims)
    assert STUDY.title
    assert STUDY.introduction
