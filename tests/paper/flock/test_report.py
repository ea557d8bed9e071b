"""Controls and findings follow the numbers: the opposite outcome gives another sentence. Every claim has a figure."""

import numpy as np
import pytest

from policychord_paper.flock.claims import CLAIMS, controls
from policychord_paper.flock.experiments import FlockStudySettings, Forms
from policychord_paper.flock.report import STUDY, _findings, _summary

from .flights import STEPS, as_claimed, everywhere, made, put

QUICK, FULL = (STUDY.settings(quick=quick) for quick in (True, False))


def answer(evidence, name):
    return {control.name: control.answer for control in controls(QUICK, evidence)}[name]


def text(evidence, title, settings=QUICK):
    return {finding.title: finding.text for finding in _findings(settings, evidence)}[title]


def test_every_claim_has_a_figure_and_every_figure_a_caption():
    assert {name for figure in STUDY.figures.values() for name in figure.claims} == {claim.id for claim in CLAIMS}
    assert all(len(figure.caption) > 100 for figure in STUDY.figures.values())


def test_controls_measure_numbers():
    for control in controls(QUICK, as_claimed()):
        values = [getattr(quantity, "value", quantity) for quantity in control.measured.values()]
        assert np.isfinite(values).all()
        assert control.question.endswith("?")


def test_fixed_weights():
    ordered, lost = made(polarization=0.99), made(polarization=0.2)
    slow = made(polarization=np.where(np.arange(STEPS) < 30, 0.1, 0.99))
    later, same, never = (put(as_claimed(), "leaderless", gated=ordered, fixed=one) for one in (slow, ordered, lost))
    assert answer(later, "Fixed weights").startswith("Yes, more slowly")
    assert "no more slowly" in answer(same, "Fixed weights")
    assert answer(never, "Fixed weights").startswith("No:")
    title = "Balance and polarization"
    assert "not the cause" in text(later, title)
    assert "from step 30, with the gate from step 0" in text(later, title)
    assert "separation ahead" in text(later, title)
    assert "does not polarize" in text(never, title)
    assert "| 0 | 30 (weights fixed at 1/3) |" in _summary(QUICK, later)
    assert "the gate is not needed for it" in _summary(QUICK, later)
    assert "not needed" not in _summary(QUICK, never)


def test_milling():
    mill, line = made(milling=0.95, polarization=0.1), made(milling=0.05, polarization=0.98)
    usual = put(as_claimed(), "milling", ring=mill, no_term=line, random_start=line)
    assert "None of 8 random starts became a mill" in _summary(QUICK, usual)
    assert "| 0.95 | 0.05 (no collision term) |" in _summary(QUICK, usual)
    assert "polarized flock" in answer(usual, "No collision term")
    assert answer(usual, "A random start").startswith("No.")
    anywhere = put(usual, "milling", random_start=mill)
    assert "random starts became" not in _summary(QUICK, anywhere)
    assert "| 8 of 8 |  |" in _summary(QUICK, anywhere)
    assert answer(anywhere, "A random start").startswith("Yes")
    sometimes = put(usual, "milling", random_start=made(milling=np.where(np.arange(8) < 2, 0.95, 0.05)))
    assert answer(sometimes, "A random start").startswith("In some seeds")
    bare = put(usual, "milling", no_term=mill)
    assert answer(bare, "No collision term").startswith("Yes")
    assert "does not mill either" in answer(put(usual, "milling", ring=line), "No collision term")


def test_leaders():
    near, far = made(goal_distance=1.0), made(goal_distance=19.0)
    nearer = made(goal_distance=0.1)
    for none, tenth, said in (
        (far, near, "No."), (far, far, "No, but the flock"), (near, near, "In 8 of 8"), (near, nearer, "In 8 of 8"),
    ):  # fmt: skip
        assert answer(put(as_claimed(), "leaders", none=none, tenth=tenth), "No leaders").startswith(said)
    title = "Arriving, and not stopping"
    away = made(goal_distance=np.where(np.arange(STEPS) < STEPS - 1, 1.0, 9.0))
    assert "overshoots" in text(put(as_claimed(), "leaders", tenth=away), title)
    assert "overshoots" not in text(as_claimed(), title)
    assert "before arrival as well" in text(as_claimed(), title)
    same = near._replace(measured=near.measured._replace(leader_sd_before=near.measured.follower_sd_before))
    assert "it arises at the goal" in text(put(as_claimed(), "leaders", tenth=same), title)


def test_temperatures():
    def heated(*distances):
        spread = (0.0, 0.1, 0.0) * np.arange(8.0)[:, None]  # seeds differ a little
        flights = (made(goal_distance=distance + own) for distance, own in zip(distances, spread.T, strict=True))
        return put(as_claimed(), "temperatures", **dict(zip(("cold", "middle", "hot"), flights, strict=True)))

    title = "Temperature, part by part"
    assert "but no sweet spot" in text(heated(1.0, 1.05, 14.0), title)
    assert "sweet spot between: its rule does not hold" in text(heated(1.0, 1.05, 14.0), title)
    assert "So both sides are worse" in text(heated(9.0, 1.0, 14.0), title)
    assert "sweet spot between: its rule holds" in text(heated(9.0, 1.0, 14.0), title)
    assert "do not tell" in text(heated(1.0, 1.05, 1.0), title)
    assert "at eps 10 stay farther" in _summary(QUICK, heated(1.0, 1.05, 14.0))
    assert "neither is a sweet spot" in _summary(QUICK, heated(1.0, 1.05, 14.0))
    assert "Both eps 0.1 and eps 10 end farther" in _summary(QUICK, heated(9.0, 1.0, 14.0))
    assert "do not separate" in _summary(QUICK, heated(1.0, 1.05, 1.0))


def test_followers():
    near, far = (made(goal_distance=1.0), made()), (made(), made())
    name, title = "Couzin followers without leaders", "Followers: released constants and original forms"
    neither, one, both = (as_claimed()._replace(couzin=Forms(*two)) for two in ((far, far), (far, near), (near, near)))
    assert "neither form" in answer(neither, name)
    assert "original form only" in answer(one, name)
    assert "more seeds arrive with Couzin followers" in text(one, title)
    assert "both forms" in answer(both, name)
    assert "no model is guided more reliably" in text(both, title)
    assert "| Couzin | 1.0 m, 100% | 19.0 m | 1.0 m, 100% | 19.0 m |" in text(both, title)


@pytest.mark.parametrize("seeds", [1, 2])
@pytest.mark.filterwarnings("error")
def test_a_study_of_few_seeds_and_steps_is_judged_to_the_end(seeds):
    """Sizes that settings allow must not fail once the work is done."""
    tiny = everywhere(made(seeds, 2))
    two = made(2, 2)
    tiny = put(tiny, "temperatures", cold=two, middle=two, hot=two)  # settings ask for two there
    settings = FlockStudySettings(seeds=seeds, goal_seeds=seeds, temperature_seeds=2, shorten=0.001)
    assert len([claim.measure(settings, tiny) for claim in CLAIMS]) == 16
    assert controls(settings, tiny)
    assert _findings(settings, tiny)
    assert _summary(settings, tiny)


@pytest.mark.parametrize(("settings", "said"), [(QUICK, "; the paper has 30."), (FULL, ", as in the paper.")])
def test_the_seeds_of_the_run_are_told(settings, said):
    answer = next(one.answer for one in STUDY.objections(settings, as_claimed()) if "F8" in one.claims[1:])
    assert answer.endswith(f"F8 has {settings.temperature_seeds} seeds for each temperature in this run{said}")


@pytest.mark.parametrize(("leaders", "said"), [(0.1, "still weigh otherwise"), (0.02, "weigh as followers do")])
def test_hot_leaders_are_compared_before_they_are_called_like_followers(leaders, said):
    hot = made(goal_distance=14.0, leader_imbalance=leaders)
    hot = hot._replace(measured=hot.measured._replace(follower_imbalance=np.full_like(hot.measured.imbalance, 0.01)))
    found = _findings(QUICK, put(as_claimed(), "temperatures", hot=hot))
    assert said in next(one.text for one in found if one.title == "Temperature, part by part")
