"""The words of the quadrotor study: they tell the figures of the run, and other figures change them."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from policychord.studies.quadrotor.claims import LEDGER
from policychord.studies.quadrotor.plan import SCRIPT_WEIGHT, flights_at
from policychord.studies.quadrotor.study import STUDY
from policychord.studies.quadrotor.words import expected_p

from .invented import SMALL, evidence

EVIDENCE = evidence()


def passages(found):
    return {passage.title: " ".join(passage.text.split()) for passage in STUDY.found(SMALL, found)}


def answers(found):
    return {control.name: control.answer for control in STUDY.controls(SMALL, found)}


def test_words_tell_the_figures_of_this_run():
    text = passages(EVIDENCE)["The released gate takes turns"]
    assert "changes at 100% of the steps with that gate, and at 0% at the optimum" in text
    flights = flights_at(SMALL, EVIDENCE, "pd", "stale-point")
    ours, pid = (np.median(flights[name].cost) for name in ("one-step gate", "baseline"))
    assert f"costs less than PID ({ours:.0f} against {pid:.0f}, delta -0." in text


def test_a_gate_that_does_not_take_turns_is_not_said_to():
    steady = evidence()
    for where, flights in steady["others"].items():
        if "one-step gate" in flights:
            flight = flights["one-step gate"]
            steady["others"][where]["one-step gate"] = flight._replace(
                stabilising=np.full_like(flight.stabilising, 0.7)
            )
    assert "The released gate is a single undamped step" in passages(steady)


@pytest.mark.parametrize(
    ("levels", "title"),
    [
        ({"fixed 50/50": 60.0}, "The average does better"),
        ({"fixed 50/50": 150.0}, "The average is not all of it"),
        ({"equilibrium, sample": 50.0}, "The optimum as the text defines it holds up"),
        ({"equilibrium, sample": 150.0}, "The optimum as the text defines it does not give the published result"),
        ({"fixed 50/50": 90.0, "cost-to-go, warm": 50.0}, "What makes the gate useful"),
        ({"fixed 50/50": 50.0, "cost-to-go, warm": 90.0}, "What was tried to make the gate useful"),
        ({"fixed 50/50": 90.0, "equilibrium, mean, wide": 50.0}, "One step sees little of where a thrust leads"),
        ({"fixed 50/50": 50.0}, "One step does not see where a thrust leads"),
    ],
)
def test_titles_follow_the_figures(levels, title):
    assert title in passages(evidence(**levels))


def test_sentences_follow_the_figures():
    near, far = evidence(), evidence(**{"lqr, centre: baseline": 20.0, "one-step gate": 30.0})
    beaten = next(text for title, text in passages(near).items() if "the gate useful" in title)
    assert "linear model, is beaten by equilibrium" in beaten
    assert "; one-step gate;" in beaten
    safe = next(text for title, text in passages(far).items() if "the gate useful" in title)
    assert "beaten by no composition here" in safe
    assert "the paper's -0.14 lies outside" in passages(far)["This run beside the paper's numbers"]
    other = evidence(**{f"{SCRIPT_WEIGHT}: one-step gate": 200.0})
    assert "with the script's weight (40 seeds) the released gate costs more" in " ".join(passages(other).values())


def test_answers_follow_the_figures():
    no, yes = answers(evidence(**{"fixed 50/50": 60.0})), answers(evidence(**{"fixed 50/50": 150.0}))
    assert no["Fixed 50/50 mixture"].startswith("For the released gate that is not shown")
    assert yes["Fixed 50/50 mixture"].startswith("For the released gate yes")
    assert yes["Fixed 50/50 mixture"].endswith("With a model that looks ahead it does, in both.")
    assert answers(EVIDENCE)["Forces at the centre of mass"].startswith("No:")
    lost = evidence(**{"lqr, centre: one-step gate": 200.0, "pd, centre: one-step gate": 200.0})
    assert answers(lost)["Forces at the centre of mass"].startswith("Yes:")
    half = evidence(**{"lqr, centre: one-step gate": 200.0})
    assert answers(half)["Forces at the centre of mass"].startswith("Partly: the released gate costs less than PID")
    apart = evidence(**{"equilibrium, sample": 60.0, "equilibrium, mean": 90.0})
    assert answers(EVIDENCE)["Drawn, mean or dithered thrust"].startswith("Yes: with the same weights, mean and dither")
    assert answers(apart)["Drawn, mean or dithered thrust"].startswith("Not clearly")


def test_few_seeds_are_said_to_be_few():
    """The expected p-value is that of a Mann-Whitney test on samples with that delta."""
    a, b = np.arange(500.0), np.arange(500.0) + 35.3
    delta = 2 * mannwhitneyu(a, b).statistic / 500**2 - 1
    assert expected_p(delta, 500) == pytest.approx(mannwhitneyu(a, b).pvalue, rel=0.1)
    assert expected_p(-0.14, 1000) < 1e-7  # as the paper reports
    assert "would then not count as one" in passages(EVIDENCE)["What 40 seeds can show"]


def test_plates_and_claims_name_each_other():
    shown = {claim for plate in STUDY.plates.values() for claim in plate.claims}
    assert shown == {entry.id for entry in LEDGER}
    assert all(len(plate.caption) > 100 for plate in STUDY.plates.values())
    assert all(entry.reported for entry in LEDGER)
    assert STUDY.title
    assert STUDY.lead
