"""The quadrotor study: settings that count, claims that can fail, figures, notes and data."""

import matplotlib.figure
import numpy as np
import pydantic
import pytest

from policychord.studies.claim import judge
from policychord.studies.drawing import styled
from policychord.studies.quadrotor.animation import FPS, animate, can_write
from policychord.studies.quadrotor.claims import LEDGER
from policychord.studies.quadrotor.comparing import beside
from policychord.studies.quadrotor.figures import FIGURES, compared, flown, one_flight
from policychord.studies.quadrotor.metrics import alternation, recovery, table
from policychord.studies.quadrotor.settings import Composition, QuadrotorSettings
from policychord.studies.quadrotor.silhouette import silhouette
from policychord.studies.quadrotor.simulate import roster
from policychord.studies.quadrotor.study import STUDY

from .invented import SMALL, evidence, invented

EVIDENCE = evidence()


@pytest.mark.parametrize("wrong", [{"sedes": 3}, {"composition": {"gait": "prior"}}, {"pd_track": {"x": (1, 2)}}])
def test_a_misspelt_setting_is_an_error(wrong):
    with pytest.raises(pydantic.ValidationError, match="|".join(["sedes", "gait", "pd_track"])):
        QuadrotorSettings(**wrong)


def test_defaults_are_the_tables_of_the_paper():
    given = QuadrotorSettings()
    assert (given.steps, given.force_sd, given.thrust_sd, given.impulse, given.seeds) == (300, 0.03, 0.01, 1.0, 1000)
    assert given.cost.state == (1.0, 0.1, 1.0, 0.1, 0.1, 0.1)
    assert (given.composition.eps, given.composition.points) == (0.05, 30)
    assert given.lqr_stabilise.state[1] == 0.1  # as Table S4; the released script has 0.05
    assert STUDY.settings(quick=True, seed=4).seed == 4
    assert STUDY.settings(quick=False).seeds == 1000 > STUDY.settings(quick=True).seeds


def test_ledger_is_complete():
    assert [entry.id for entry in LEDGER] == ["Q1", "Q2", "Q3", "Q4", "Q5"]


def verdicts(found):
    return {entry.id: judge(entry, SMALL, found).verdict for entry in LEDGER}


def test_claims_are_judged_for_both_gates():
    """Invented: the released gate is cheap, the optimum as written is dearer than the baseline."""
    found = verdicts(EVIDENCE)
    assert found["Q1"] == "reproduced"  # both are below both primitives
    assert found["Q2"] == "partly"
    assert found["Q4"] == "partly"
    assert found["Q5"] == "reproduced"  # the invented baseline stays away


def test_claims_can_fail_and_can_hold():
    bad = verdicts(evidence(**{"one-step gate": 180.0, "equilibrium, sample": 190.0}))
    assert [bad[name] for name in ("Q1", "Q2", "Q3", "Q4")] == ["not reproduced"] * 4
    good = verdicts(evidence(**{"one-step gate": 50.0, "equilibrium, sample": 60.0}))
    assert [good[name] for name in ("Q1", "Q2", "Q3", "Q4")] == ["reproduced"] * 4


def test_recovery_counts_from_the_impulse():
    back = recovery(SMALL, invented(1.0, error=0.2))
    np.testing.assert_allclose(back.time, 1.0)  # 50 steps of 20 ms
    np.testing.assert_allclose(back.peak, 0.6)
    np.testing.assert_allclose(back.error, 0.02 * (50 * 0.6 + 50 * 0.2 + 0.1))
    away = invented(1.0, error=0.3)
    away.distance[:, 130:] = np.where(away.distance[:, 130:] < 0.25, 0.3, away.distance[:, 130:])
    assert np.isinf(recovery(SMALL, away).time).any()
    near = away._replace(distance=np.full_like(away.distance, 0.2))
    np.testing.assert_array_equal(recovery(SMALL, near).time, 0.0)
    late = away._replace(impulse_time=np.full_like(away.impulse_time, 250))
    assert recovery(SMALL, late).time.size == 0


def test_the_table_compares_seed_by_seed():
    flights = {"baseline": invented(100.0, 1), "composed": invented(50.0, 1)}
    base, composed = table(SMALL, flights)
    assert base.against.delta == 0.0
    assert composed.against.delta < -0.9
    assert composed.better == 1.0
    assert composed.difference == pytest.approx(np.median(-flights["composed"].cost))
    assert composed.stabilising == pytest.approx(0.55)


def test_the_test_for_pairs_sees_what_the_weather_hides():
    """Every flight a little cheaper than its neighbour in the same weather, and the weather makes most of the cost."""
    base = invented(100.0, 1)
    flights = {"baseline": base, "composed": base._replace(cost=base.cost - 0.5)}
    same, composed = table(SMALL, flights)
    assert same.paired_p == 1.0
    assert composed.against.p > 0.5
    assert composed.paired_p < 1e-6
    words = beside(SMALL, flights, "composed")
    assert words.verb == "costs less, seed by seed only, than"
    assert not words.cheaper  # the paper's test judges


def test_alternation():
    assert alternation(invented(1.0, swaps=True)) == 1.0
    assert alternation(invented(1.0)) == 0.0


@pytest.mark.parametrize("name", FIGURES)
def test_figures_draw(name, tmp_path):
    figure = styled(FIGURES[name], SMALL, EVIDENCE)
    assert isinstance(figure, matplotlib.figure.Figure)
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5_000


def test_figures_of_one_experiment_and_an_animation(tmp_path):
    flights = {name: invented(90.0, i) for i, name in enumerate(("baseline", "composed"))}
    styled(flown, SMALL, "pd", flights).savefig(tmp_path / "flown.png")
    styled(compared, "lqr", flights).savefig(tmp_path / "compared.png")
    assert can_write(".gif")
    assert not can_write(".avi")
    short = SMALL.model_copy(update={"steps": 12})
    cut = flights["composed"]._replace(states=flights["composed"].states[:, :13])
    animate(short, cut).save(tmp_path / "flight.gif", writer="pillow", fps=FPS)
    assert (tmp_path / "flight.gif").stat().st_size > 2_000
    with pytest.raises(ValueError, match="episode = 16"):
        animate(short, cut, episode=16)


@pytest.mark.parametrize("name", ["baseline", "cost-to-go"])
def test_a_replay_is_named_and_its_axes_too(name):
    data = (
        STUDY.datasets(SMALL, EVIDENCE)["pd_centre"].sel(controller=[name]).isel(episode=[2]).assign_coords(episode=[2])
    )
    figure = styled(one_flight, SMALL, "pd", data)
    assert figure.get_suptitle().startswith(f"{name}, seed {SMALL.seed}, episode 2")
    assert len(figure.axes) == (2 if name == "baseline" else 3)  # a controller alone has no weights
    assert all(ax.get_ylabel() for ax in figure.axes)


def test_the_silhouette_leans_where_it_flies():
    level, leaning = silhouette(0.0, 1.0, 0.0), silhouette(0.0, 1.0, 0.5)
    assert level[0][:, 1].tolist() == [1.0, 1.0]
    assert leaning[0][1, 1] < 1.0 < leaning[0][0, 1]  # the front, towards positive x, is down
    assert np.linalg.norm(leaning[0][1] - leaning[0][0]) == pytest.approx(np.linalg.norm(level[0][1] - level[0][0]))


def test_data_is_labelled():
    kept = STUDY.datasets(SMALL, EVIDENCE)
    assert set(kept) == {"pd_stale_point", "lqr_stale_point", "pd_centre", "lqr_centre"}
    data = kept["pd_centre"]
    assert list(data.controller.values) == list(roster(SMALL))
    assert data.cost.sel(controller="baseline").shape == (SMALL.seeds,)
    assert "wide_margin" in data.attrs["settings"]


def test_every_composition_has_its_line():
    lines = roster(QuadrotorSettings(composition=Composition(points=20), warm_eps=0.7, wide_margin=0.02))
    assert lines["cost-to-go, warm"] == Composition(
        points=20, eps=0.7, margin=0.02, selection="mean", horizon="cost-to-go"
    )
    assert lines["fixed 50/50"] is None
    assert lines["one-step gate"].gate == "one-step"
    assert lines["baseline"] is None
