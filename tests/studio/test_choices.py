"""The page Choices finds what `analyse` finds, one person after another."""

import re

import numpy as np
import pytest

from policychord.choices.compare import analyse
from policychord.choices.data import as_table
from policychord.choices.report import verdict, weight_table
from policychord.studio.pages.choices import page
from policychord.studio.pages.choices.frames import _examine
from policychord.studio.uploads import Upload

SMALL = {"subjects": 6, "blocks": 4}


def drawn(state):
    """The state when nothing is left to draw, and the last frame of each part."""
    frames = {}
    while not page.CHOICES.settled(state):
        state, frame = page._frame(state)
        frames |= {} if frame is None else {frame.part: frame}
    return state, frames


def table(state, source=None):
    """The state's choices as somebody would upload them."""
    frame = as_table(state.fitting.choices)
    return (frame if source is None else frame.assign(source=source)).to_csv(index=False).encode()


@pytest.fixture(scope="module")
def small():
    return drawn(page._change(page._begin(), SMALL))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"experiment": "experiment 1", "link": "logit", "eps": 0.1, "repeat": True, "risk": False},
        {"experiment": "custom", "arms": 3, "link": "logit", "noise": 5.0},
    ],
)
def test_numbers_are_those_of_the_study(small, changes):
    state, frames = drawn(page._change(small[0], {**changes, "participant": 3}))
    view = state.view
    known = analyse(state.fitting.choices, view.link, state.view.eps, view.primitives)
    pairs = [(state.analysis.everything, known.everything)]
    pairs += [(getattr(state.analysis.ours, name), getattr(known.ours, name))
              for name in ("against_reference", "against_others")]  # fmt: skip
    for mine, theirs in pairs:
        for found, wanted in zip(mine.selection, theirs.selection, strict=True):
            np.testing.assert_array_equal(found, wanted)
    shown = {**small[1], **frames}
    pxp = [model["pxp"] for model in shown["group"].header["models"]]
    np.testing.assert_array_equal(pxp, known.everything.selection.pxp)
    rows = weight_table(known).query("subject == 3")
    person = shown["person"].arrays
    np.testing.assert_array_equal(person["weights"], rows.filter(like="weight_"))
    np.testing.assert_array_equal(person["p_choice"], rows["p_choice"])
    np.testing.assert_array_equal(person["choice"], rows["choice"])
    assert shown["person"].header["distance"] == rows["certified_distance"].max() < 1e-6


def test_a_new_temperature_or_primitive_needs_no_new_fits(small):
    state, _ = small
    for changes in ({"eps": 0.5}, {"random": True}):
        after = page._change(state, changes)
        assert after.fitting.fits is state.fitting.fits
        assert after.left == ("fit", "group", "person")
    looked = page._change(state, {"participant": 2})
    assert looked.analysis is state.analysis
    assert looked.left == ("person",)


def test_work_is_told_model_by_model_and_left_for_something_new():
    state = page._change(page._begin(), SMALL)
    words = []
    while len(state.fitting.fits) < 3:
        state, frame = page._frame(state)
        words += [frame.header["words"]] if frame is not None and frame.part == "progress" else []
    assert words[-3:] == [
        f"Fitting {name} to 6 people, model {k} of 4" for k, name in ((2, "Thompson"), (3, "Hybrid"), (4, "Value"))
    ]
    other = page._change(state, {"seed": 1})
    assert other.fitting.fits == ()
    assert other.left == page.EVERYTHING


def test_a_table_is_read_and_a_snippet_gives_the_same(small, tmp_path, monkeypatch):
    state, frames = drawn(page._act(small[0], {"file": Upload("mine.csv", table(small[0], "=1+1"))}))
    header = frames["data"].header
    assert (header["file"], header["source"], header["simulated"]) == ("mine.csv", "mine.csv, =1+1", False)
    (tmp_path / "mine.csv").write_bytes(state.upload.content)
    monkeypatch.chdir(tmp_path)
    for one in (state, small[0]):
        names: dict = {}
        exec(page._describe(one)["snippet"], names)
        np.testing.assert_array_equal(
            names["analysis"].everything.selection.pxp, one.analysis.everything.selection.pxp, strict=True
        )
    custom, _ = drawn(page._change(small[0], {"experiment": "custom", "arms": 3, "link": "logit"}))
    exec(page._describe(custom)["snippet"], names)
    np.testing.assert_array_equal(names["analysis"].everything.selection.pxp, custom.analysis.everything.selection.pxp)
    with pytest.raises(ValueError, match="simulated people"):
        page._change(state, {"seed": 7})


def test_a_simulated_table_stays_simulated(small):
    state = page._act(small[0], {"file": Upload("mine.csv", table(small[0], "synthetic cohort"))})
    assert page.data_frame(state).header["simulated"]


def test_a_file_with_other_arms_or_rewards_is_measured_without_any_setting(small):
    three, _ = drawn(page._change(small[0], {"experiment": "custom", "arms": 3, "link": "logit"}))
    state = page._act(small[0], {"file": Upload("three.csv", table(three))})
    assert (state.view.experiment, state.view.link, state.fault) == ("measured", "logit", "")
    assert state.fitting.choices.task.arms == 3
    with pytest.raises(ValueError, match="choice must be 1 or 2"):
        page._change(state, {"experiment": "experiment 2", "link": "probit"})
    assert page._restart(state).fitting.choices.task.arms == 3
    assert page._act(state, {"cohort": True}).upload is None


def test_columns_are_chosen_where_names_say_nothing(small):
    rows = [f"p{s},{t},{1 + (t // (2 + s)) % 2},{(7 * t * s) % 11},{t % 2}" for s in (1, 2, 3) for t in range(24)]
    upload = Upload("odd.csv", "\n".join(["who,n,took,got,lost", *rows]).encode())
    state = page._act(small[0], {"file": upload})
    assert "missing columns subject, choice, reward" in state.fault
    offered = page.data_frame(state).header["table"]
    assert offered["columns"] == ["who", "n", "took", "got", "lost"]
    assert offered["ours"]["subject"] == ""
    state, frames = drawn(page._change(state, {"columns": "subject=who,choice=took,reward=got+lost"}))
    assert (state.fault, state.upload.name) == ("", "odd.csv")
    header = frames["data"].header
    assert header["table"]["ours"]["reward"] == "got+lost"
    assert header["people"] == 3
    np.testing.assert_array_equal(state.fitting.choices.reward[:3], [0, 8, 3])
    assert "Reading(" in page._describe(state)["snippet"]
    with pytest.raises(ValueError, match="columns says subject='nobody'"):
        page._change(state, {"columns": "subject=nobody,choice=took,reward=got"})
    with pytest.raises(ValueError, match="OURS=THEIRS"):
        page._change(state, {"columns": "person:who"})
    with pytest.raises(ValueError, match="choose one first"):
        page._change(small[0], {"columns": "subject=who"})


def test_learner_and_models_are_those_of_the_command(small):
    """A delta rule for all, and models with habits: the same numbers as by `analyse` with the same plan."""
    upload = Upload("mine.csv", table(small[0]))
    state = page._change(page._act(small[0], {"file": upload}), {"learner": "delta", "sticky": True})
    assert state.view.models == ("Value", "Value+stickiness", "Composed")  # the others need an uncertainty
    assert state.view.primitives == ("exploit", "repeat", "random")
    state, frames = drawn(state)
    known = analyse(state.fitting.choices, plan=state.view.plan(state.fitting.choices.task))
    pxp = [model["pxp"] for model in frames["group"].header["models"]]
    np.testing.assert_allclose(pxp, known.everything.selection.pxp, atol=1e-6)
    names: dict = {}
    text = page._describe(state)["snippet"].replace("pc.choices.read_choices('mine.csv', None)", "given")
    exec(text, {"given": state.fitting.choices, "names": names}, names)
    np.testing.assert_allclose(names["analysis"].everything.selection.pxp, pxp, atol=1e-6)
    back = page._change(state, {"learner": "kalman"})
    assert back.view.primitives == ("exploit", "uncertainty", "risk")
    with pytest.raises(ValueError, match="no model is left"):
        page._change(state, {"value": False, "sticky": False})


def test_recovery_and_predictive_checks_are_parts_that_are_asked_for(small):
    state, frames = drawn(page._act(page._act(small[0], {"ppc": True}), {"recovery": True}))
    assert state.analysis is small[0].analysis
    best = np.array(frames["recovery"].header["best"])
    np.testing.assert_allclose(best.sum(1), 1.0)
    shares = {row["who"]: row["shares"] for row in frames["ppc"].header["rows"]}
    assert list(shares) == ["people", *small[0].analysis.models]
    assert all(0 <= share <= 1 for row in shares.values() for share in row)


def test_a_link_with_a_file_falls_back_and_says_so(small):
    state = page._change(small[0], {"file": "../mine.csv", "participant": 2})
    assert page._describe(state)["settings"]["file"] == "mine.csv"
    header = page.data_frame(state).header
    assert (header["missing"], header["simulated"]) == ("mine.csv", True)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"noise": 5}, ["noise = 5", "custom first"]),
        ({"experiment": "custom", "arms": 3}, ["probit", "3 arms", "logit"]),
        ({"exploit": False, "uncertainty": False, "risk": False}, ["at least one", "exploit"]),
        ({"eps": 0}, ["eps = 0", "more than 0"]),
        ({"subjects": 10**6}, ["subjects", "3 to 100"]),
        ({"data": "/etc"}, ["data is not a setting"]),
        ({"participant": 0}, ["participant = 0"]),
    ],
)
def test_a_wrong_setting_is_named(small, changes, said):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        page._change(small[0], changes)
    assert all(word in str(error.value) for word in said), error.value


def test_what_cannot_be_done_is_said(small):
    for what in ({"file": "/etc/passwd"}, {"report": 1.5}, {}, {"cohort": True, "report": True}):
        with pytest.raises(ValueError, match="use file, cohort, report, recovery, ppc or cancel"):
            page._act(small[0], what)


def test_the_report_is_the_page_of_the_command(small):
    state, _ = drawn(page._act(small[0], {"file": Upload("<b>.csv", table(small[0]))}))
    _, frames = drawn(page._act(state, {"report": True}))
    report = frames["report"].header["html"]
    assert verdict(state.analysis, _examine(state.fitting, state.analysis)).partition(". ")[0] in report
    assert len(re.findall('src="data:image/', report)) > 2
    assert "<b>.csv" not in report
    assert not re.search(r'src="(?!data:)', report)


def test_a_table_of_another_lab_is_read_with_its_warnings(small):
    rows = [f"p{s}\t{'LR'[(t // (2 + s)) % 2]}\t{50 + (7 * t * s) % 11}" for s in (1, 2, 3) for t in range(24)]
    upload = Upload("theirs.tsv", "\n".join(["ppt\tresponse\toutcome", *rows]).encode())
    state, frames = drawn(page._act(small[0], {"file": upload}))
    assert state.view.experiment == "measured"
    assert any("Read ppt as subject" in line for line in frames["data"].header["notes"])
    assert frames["group"].header["subjects"] == ["p1", "p2", "p3"]
    assert "3 people are few" in " ".join(frames["group"].header["warnings"])
    _, frames = drawn(page._change(state, {"experiment": "experiment 2"}))  # who insists is warned
    assert "--prior-mean" in " ".join(frames["group"].header["warnings"])
