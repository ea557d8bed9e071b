"""Words follow the figures: the opposite outcome gives another sentence, and every claim has a figure."""

import numpy as np
import pytest

from policychord.studies.flock.claims import LEDGER
from policychord.studies.flock.controls import controls
from policychord.studies.flock.experiments import groups
from policychord.studies.flock.found import found
from policychord.studies.flock.scenarios import scenario
from policychord.studies.flock.settings import FlockStudySettings
from policychord.studies.flock.simulate import experiment
from policychord.studies.flock.study import STUDY

QUICK, FULL = (STUDY.settings(quick=quick) for quick in (True, False))


@pytest.fixture(scope="module")
def flight():
    return experiment(scenario("leaders", boids=4, leaders=1, steps=120, seeds=2, start_size=1.0))


@pytest.fixture
def evidence(flight):
    names = [name for group in groups(QUICK).values() for name in group]
    return dict.fromkeys(names, flight)


def with_series(one, **values):
    """The experiment with constant series."""
    shape = one.metrics.polarization.shape
    return one._replace(metrics=one.metrics._replace(**{name: np.full(shape, v) for name, v in values.items()}))


def answer(evidence, name):
    return {c.name: c.answer for c in controls(QUICK, evidence)}[name]


def passage(evidence, title, settings=QUICK):
    return {p.title: p.text for p in found(settings, evidence)}[title]


def test_every_claim_has_a_figure_and_every_figure_its_words():
    assert {name for plate in STUDY.plates.values() for name in plate.claims} == {entry.id for entry in LEDGER}
    assert all(len(plate.caption) > 100 for plate in STUDY.plates.values())
    assert STUDY.title
    assert STUDY.lead


def test_fixed_weights(evidence, flight):
    ordered, lost = with_series(flight, polarization=0.99), with_series(flight, polarization=0.2)
    late = ordered.metrics.polarization.copy()
    late[:, :30] = 0.1
    slow = ordered._replace(metrics=ordered.metrics._replace(polarization=late))
    key, title = "polarization, fixed weights", "Balance and polarization"
    assert "more slowly" in answer(evidence | {"polarization": ordered, key: slow}, "Fixed weights")
    assert "no more slowly" in answer(evidence | {"polarization": ordered, key: ordered}, "Fixed weights")
    assert answer(evidence | {"polarization": ordered, key: lost}, "Fixed weights").startswith("No:")
    assert "not the cause" in passage(evidence | {key: slow}, title)
    assert "does not polarize" in passage(evidence | {key: lost}, title)


def test_milling(evidence, flight):
    mill, line = (
        with_series(flight, milling=0.95, polarization=0.1),
        with_series(flight, milling=0.05, polarization=0.98),
    )
    usual = evidence | {"milling": mill, "milling, no collision term": line, "milling, random start": line}
    title = "Milling: the start and the term"
    assert "needs both" in passage(usual, title)
    assert "polarized flock" in answer(usual, "No collision term")
    assert answer(usual, "A random start").startswith("No.")
    anywhere = usual | {"milling, random start": mill}
    assert "the term is needed" in passage(anywhere, title)
    assert answer(anywhere, "A random start").startswith("Yes")
    bare = usual | {"milling, no collision term": mill}
    assert "the term is not" in passage(bare, title)
    assert answer(bare, "No collision term").startswith("Yes")
    assert "does not mill either" in passage(usual | {"milling": line}, title)


def test_leaders(evidence, flight):
    near, far = with_series(flight, goal_distance=1.0), with_series(flight, goal_distance=19.0)
    assert answer(evidence | {"leaders 0%": far, "leaders 10%": near}, "No leaders").startswith("No.")
    assert "not come much nearer" in answer(evidence | {"leaders 0%": far, "leaders 10%": far}, "No leaders")
    assert answer(evidence | {"leaders 0%": near, "leaders 10%": near}, "No leaders").startswith("In 2 of 2")
    circling = near.metrics.goal_distance.copy()
    circling[:, -1] = 9.0
    away = near._replace(metrics=near.metrics._replace(goal_distance=circling))
    assert "overshoots" in passage(evidence | {"leaders 10%": away}, "Arriving, and not stopping")
    assert "overshoots" not in passage(evidence | {"leaders 10%": near}, "Arriving, and not stopping")


def test_temperatures(evidence, flight):
    def heated(*distances):
        flights = {}
        for eps, distance in zip(("0.1", "1", "10"), distances, strict=True):
            one = with_series(flight, goal_distance=distance)
            shift = np.array([[0.0], [0.1 * (eps != "1")]])  # seeds differ a little
            flights[f"temperature {eps}"] = one._replace(
                metrics=one.metrics._replace(goal_distance=one.metrics.goal_distance + shift)
            )
        return evidence | flights

    title = "Temperature, part by part"
    assert "no sweet spot" in passage(heated(1.0, 1.05, 14.0), title)
    assert "a sweet spot" in passage(heated(9.0, 1.0, 14.0), title).replace("no sweet spot", "")
    assert "do not tell" in passage(heated(1.0, 1.05, 1.0), title)
    assert "sweet spot between: its rule does not hold" in passage(heated(1.0, 1.05, 14.0), title)


def test_followers(evidence, flight):
    near, far = with_series(flight, goal_distance=1.0), with_series(flight, goal_distance=19.0)
    base = {f"couzin, {form}{alone}": far for form in ("released", "original") for alone in ("", ", no leaders")}
    name, title = "Couzin followers without leaders", "Followers: released constants and original forms"
    assert "neither form" in answer(evidence | base, name)
    one = evidence | base | {"couzin, original": near}
    assert "original form only" in answer(one, name)
    assert "with Couzin followers" in passage(one, title)
    both = one | {"couzin, released": near}
    assert "both forms" in answer(both, name)
    assert "no model is guided more reliably" in passage(both, title)


def test_the_report_says_where_seeds_are_few(evidence):
    quick, full = (passage(evidence, "How many seeds", settings) for settings in (QUICK, FULL))
    assert "fewer seeds" in quick
    assert f"followers of other models {QUICK.goal_seeds} (a full run 8)" in quick
    assert f"temperatures {QUICK.temperature_seeds} (the paper 30)" in quick
    assert "as the rules ask" in full
    assert "its rule asks for 8" in passage(evidence, "How many seeds", FlockStudySettings(seeds=4))
