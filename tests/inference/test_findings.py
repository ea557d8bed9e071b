"""What is said of a comparison: every rule where it holds, and a null that it must reject."""

import numpy as np
import pytest

from policychord import inference as inf
from policychord.inference import findings

CLUSTERS = np.repeat(np.arange(20), 10)
NOISE = np.random.default_rng(5).normal(size=(6, 200))


def score(name, each, parameters=1):
    """A score with these held-out ln p; BIC as if they were inside."""
    total = np.array([each.sum()])
    return inf.Score(name, f"what {name} says", parameters, np.zeros((1, parameters)), total, -2 * total, each)


def comparison(*scores, selection=None, selected=()):
    return inf.Comparison(tuple(sorted(scores, key=lambda one: -one.held_out)), CLUSTERS, selection, selected)


CHANCE = score("chance", np.full(200, -1.0), 0)
GOOD = score("good", -0.5 + 0.1 * NOISE[0], 4)
CLOSE = score("close", -0.5 - 0.003 + 0.1 * NOISE[1], 2)
POOR = score("poor", -0.8 + 0.1 * NOISE[2], 3)


def test_a_lead_is_established_or_not():
    clear = inf.describe_comparison(comparison(GOOD, POOR, CHANCE))
    assert clear[0].startswith("Good has the best held-out score, +0.4")
    assert "its lead over poor is established" in clear[0]
    assert "its lead over close is not established" in inf.describe_comparison(comparison(GOOD, CLOSE, CHANCE))[0]


def test_identical_models_are_never_established_and_are_a_family():
    twin = score("twin", GOOD.each, 4)
    rounded = score("rounded", GOOD.each * (1 + 1e-15), 4)
    assert comparison(GOOD, twin).difference("good", "twin").call == "not established"
    assert comparison(GOOD, rounded).difference("good", "rounded").call == "not established"
    told = inf.describe_comparison(comparison(GOOD, twin, POOR, CHANCE))
    assert "its lead over poor is established" in told[0]  # the twin is the same model, not the next one
    assert any(line.startswith("Good and twin predict nearly the same") for line in told)
    assert not any("nearly the same" in line for line in inf.describe_comparison(comparison(GOOD, POOR, CHANCE)))


def test_leads_of_noise_are_established_in_about_one_of_twenty_comparisons():
    rng, clear = np.random.default_rng(1), 0
    for _ in range(300):
        noise = 0.3 * rng.normal(size=(2, 200))
        told = inf.describe_comparison(comparison(score("a", noise[0]), score("b", noise[1]), CHANCE))[0]
        clear += "is established" in told
    assert 0.02 < clear / 300 < 0.1


@pytest.mark.parametrize(
    ("each", "words"),
    [
        (-1.2 + 0.1 * NOISE[3], "No model predicts held-out trials better than chance: noise, the best of them, is"),
        (-1.0 + 0.1 * NOISE[3], "No model is established to predict held-out trials better than chance, not even no"),
    ],
    ids=["worse", "not established"],
)  # fmt: skip
def test_no_verdict_follows_where_chance_is_not_beaten(each, words):
    told = inf.describe_comparison(comparison(score("noise", each), score("worse", each - 0.5), CHANCE), unit="trial")
    assert len(told) == 1
    assert told[0].startswith(words)
    assert findings.no_verdict(comparison(GOOD, CHANCE)) == ""


def test_a_simpler_model_that_is_not_worse_is_named():
    told = inf.describe_comparison(comparison(GOOD, CLOSE, POOR, CHANCE))
    assert told[1].startswith("Close has 2 instead of 4 parameters and is not established to predict worse (-0.0")
    # clearly worse, or not simpler: nothing is said
    for other in (POOR, CLOSE._replace(parameters=4), CLOSE._replace(parameters=9)):
        assert not any("instead of" in line for line in inf.describe_comparison(comparison(GOOD, other, CHANCE)))


def test_disagreement_of_selection_and_prediction_is_named():
    evidence = np.tile([[0.0, 5.0]], (12, 1))
    names = ("close", "good")
    for columns, disagree in ((evidence[:, ::-1], True), (evidence, False)):
        both = comparison(GOOD, CLOSE, CHANCE, selection=inf.select_models(columns), selected=names)
        told = [line for line in inf.describe_comparison(both) if line.startswith("Group selection by BIC")]
        assert bool(told) == disagree
        if disagree:  # the lead of good over close is not established: no disagreement is claimed
            assert "BIC favours close (PXP 1.00), held-out prediction good" in told[0]
            assert told[0].endswith("held-out prediction does not tell them apart.")
    clear = comparison(GOOD, POOR, CHANCE, selection=inf.select_models(evidence), selected=("good", "poor"))
    assert any(line.endswith("the criteria disagree.") for line in inf.describe_comparison(clear))


def test_without_a_reference_or_an_error_nothing_more_is_said():
    alone = inf.Comparison((GOOD, CHANCE), np.zeros(200, int), None)
    assert inf.describe_comparison(alone)[0].startswith("No model is established")
    assert inf.describe_comparison(comparison(CHANCE)) == ()
    told = inf.describe_comparison(comparison(GOOD, POOR))  # Ctrl-C came before chance
    assert told == (f"Good has the best held-out score; its lead over poor is established "
                    f"({findings.difference_text(comparison(GOOD, POOR).difference('good', 'poor'))}).",)  # fmt: skip


def test_rows_and_table_hold_the_numbers():
    evidence = np.tile([[0.0, 5.0]], (12, 1))
    both = comparison(GOOD, CLOSE, CHANCE, selection=inf.select_models(evidence), selected=("close", "good"))
    rows = inf.comparison_rows(both)
    assert [row["model"] for row in rows] == ["good", "close", "chance"]
    gain = both.difference("good", "chance")
    assert (rows[0]["difference"], rows[0]["error"]) == (gain.mean, gain.error)
    assert rows[0]["held_out"] == GOOD.held_out
    assert rows[0]["frequency"] == both.selection.expected[1]
    assert rows[2]["pxp"] is None
    assert rows[2]["difference"] == 0.0
    columns, lines = inf.comparison_table(both)
    assert columns[-2:] == ["frequency", "PXP"]
    assert {len(line) for line in lines} == {len(columns)}
    columns, lines = inf.comparison_table(comparison(GOOD, POOR))
    assert "PXP" not in columns
    assert {len(line) for line in lines} == {len(columns)}


def test_the_figure_shows_every_difference_with_two_errors():
    both = comparison(GOOD, CLOSE, POOR, CHANCE)
    ax = inf.draw_differences(both, "chance").get_axes()[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["good", "close", "poor"]
    for bar, name in zip(ax.containers, ("good", "close", "poor"), strict=True):
        gain = both.difference(name, "chance")
        (segment,) = bar.lines[2][0].get_segments()
        np.testing.assert_allclose(segment[:, 0], [gain.mean - 2 * gain.error, gain.mean + 2 * gain.error])
    assert "over good" in inf.draw_differences(both).get_axes()[0].get_xlabel()  # the best, unless somebody says so
    assert inf.draw_differences(comparison(GOOD, score("far", GOOD.each - 5.0), CLOSE._replace(each=GOOD.each - 0.02)))
