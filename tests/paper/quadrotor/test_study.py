"""The quadrotor study: settings that count, claims that can fail, figures, notes and data."""

import matplotlib.figure
import numpy as np
import pydantic
import pytest

from policychord.drawing import film_endings, styled
from policychord.worlds.quadrotor.agents import roster
from policychord.worlds.quadrotor.figures import draw_one_flight, silhouette
from policychord.worlds.quadrotor.settings import CompositionSettings, QuadrotorSettings
from policychord_paper.claim import Quantity, _parts_that_hold, judge_claim
from policychord_paper.quadrotor import scenario
from policychord_paper.quadrotor.ablation import Clamped
from policychord_paper.quadrotor.claims import CLAIMS, apart_from_paper
from policychord_paper.quadrotor.figures import FIGURES
from policychord_paper.quadrotor.measures import alternation, compare_costs, recovery, stabilising_rises
from policychord_paper.quadrotor.report import STUDY

from .invented import SMALL, evidence, invented

RELEASED, WRITTEN = "one-step gate", "equilibrium, sample"
EVIDENCE = evidence()


@pytest.mark.parametrize(
    "wrong", [{"sedes": 3}, {"composition": {"gait": "prior"}}, {"pd_track": {"x": (1, 2)}}, {"temperatures": ()}]
)
def test_a_misspelt_setting_is_an_error(wrong):
    with pytest.raises(pydantic.ValidationError, match=r"sedes|gait|pd_track|temperatures"):
        QuadrotorSettings(**wrong)


def test_defaults_are_the_tables_of_the_paper():
    given = QuadrotorSettings()
    assert (given.steps, given.force_sd, given.thrust_sd, given.impulse, given.seeds) == (300, 0.03, 0.01, 1.0, 1000)
    assert given.cost.state == (1.0, 0.1, 1.0, 0.1, 0.1, 0.1)
    assert (given.composition.eps, given.composition.points) == (0.05, 30)
    assert (given.dt, given.composition.tau) == (0.02, 1.0)
    assert given.lqr_stabilise.state[1] == 0.1  # as Table S4; the released script has 0.05
    assert STUDY.settings(quick=True, seed=4).seed == 4
    assert STUDY.settings(quick=False).seeds == 1000 > STUDY.settings(quick=True).seeds


def test_claims_are_complete():
    assert [claim.id for claim in CLAIMS] == ["Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7"]
    assert all(claim.rule.history for claim in CLAIMS)  # none was fixed before the measurement
    assert {claim.id: len(claim.rule.parts) for claim in CLAIMS} == {
        "Q1": 3,
        "Q2": 9,
        "Q3": 3,
        "Q4": 9,
        "Q5": 3,
        "Q6": 6,
        "Q7": 3,
    }


def verdicts(found, settings=SMALL):
    return {claim.id: judge_claim(claim, settings, found).verdict for claim in CLAIMS}


WORLDS = ("stale_point", "accelerations")


def replaced(experiment, baseline, released, written, **others):
    """The invented evidence with other flights of one pair, under the scripts' forces and the text's."""
    found = EVIDENCE
    for world in WORLDS:
        pairs = getattr(found, world)
        flights = {**getattr(pairs, experiment), "baseline": baseline, RELEASED: released, WRITTEN: written, **others}
        found = found._replace(**{world: pairs._replace(**{experiment: flights})})
    return found


def test_claims_are_judged_for_both_gates():
    """Invented: the released gate is cheap, the optimum as written is dearer than the baseline."""
    found = verdicts(EVIDENCE)
    assert found["Q1"] == "reproduced"  # both are below both primitives, and near the path
    assert found["Q2"] == "partly"
    assert found["Q4"] == "partly"
    assert found["Q5"] == "reproduced"  # the invented baseline stays away


def holds(name, found, settings=SMALL):
    return judge_claim(next(claim for claim in CLAIMS if claim.id == name), settings, found).holds


def test_claims_can_fail_and_can_hold():
    bad = verdicts(evidence(**{RELEASED: 180.0, WRITTEN: 190.0}))
    assert [bad[name] for name in ("Q1", "Q2", "Q3", "Q4")] == ["not reproduced"] * 4
    good = verdicts(evidence(**{RELEASED: 40.0, WRITTEN: 40.0}))
    assert [good[name] for name in ("Q1", "Q3")] == ["reproduced"] * 2
    # far below the baseline is another size than the paper's
    assert [good[name] for name in ("Q2", "Q4")] == ["partly"] * 2
    for name in ("Q2", "Q4"):
        assert {
            part.rpartition(": ")[2]
            for part, it in holds(name, evidence(**{RELEASED: 50.0, WRITTEN: 60.0})).items()
            if not it
        } == {"size"}


@pytest.mark.parametrize(("experiment", "name", "shift"), [("pd", "Q2", 0.955), ("lqr", "Q4", 0.905)])
def test_sign_size_and_p_of_the_paper(experiment, name, shift):
    """Costs a few percent below the baseline's have the paper's delta, and with 60 seeds too large a p for 1000."""
    base = invented(100.0, 1)
    near = base._replace(cost=base.cost * shift)
    found = holds(name, replaced(experiment, baseline=base, released=near, written=near))
    assert all(found[f"{gate}: {part}"] for gate in (RELEASED, WRITTEN) for part in ("sign", "size"))
    rule = next(claim for claim in CLAIMS if claim.id == name).rule
    condition = next(c for part in rule.parts for c in part.conditions if c.quantity == f"p, {RELEASED}")
    assert condition.limit == 1e-3  # the paper's p is its delta over again
    assert condition.fewer.limit == 0.05


def test_p_is_judged_more_strictly_with_the_paper_s_seeds():
    rule = CLAIMS[1].rule
    measured = judge_claim(CLAIMS[1], SMALL, EVIDENCE).measured | {f"p, {RELEASED}": Quantity(0.01)}
    assert _parts_that_hold(rule, measured)[f"{RELEASED}: established"]
    assert not _parts_that_hold(rule, measured | {"seeds": Quantity(1000)})[f"{RELEASED}: established"]


@pytest.mark.parametrize(("gate", "other"), [(RELEASED, WRITTEN), (WRITTEN, RELEASED)])
def test_one_gate_alone_is_partly(gate, other):
    found = verdicts(evidence(**{gate: 30.0, other: 190.0}))
    assert [found[name] for name in ("Q1", "Q2", "Q3", "Q4")] == ["partly"] * 4


def test_the_text_s_own_disturbances_count():
    found = verdicts(evidence(**{RELEASED: 50.0, WRITTEN: 60.0} | {
        f"{e}, accelerations: {WRITTEN}": 190.0 for e in ("pd", "lqr")}))  # fmt: skip
    assert [found[name] for name in ("Q1", "Q3")] == ["partly"] * 2


@pytest.mark.parametrize("primitive", ["stabilise", "track"])
def test_both_primitives_must_cost_more(primitive):
    """Q1 and Q4: cheaper than the baseline, and dearer than one of the primitives."""
    found = evidence(**{"baseline": 300.0, RELEASED: 80.0, WRITTEN: 80.0, primitive: 50.0})
    assert verdicts(found)["Q1"] == "not reproduced"
    assert all(it for part, it in holds("Q2", found).items() if part.endswith("sign"))
    assert not any(it for part, it in holds("Q4", found).items() if part.endswith("sign"))


def test_who_costs_less_but_flies_far_from_the_path_does_not_track():
    far = invented(50.0)
    far = far._replace(distance=np.full_like(far.distance, 0.26))
    found = replaced("pd", baseline=invented(100.0, 1), released=far, written=far)
    assert verdicts(found)["Q1"] == "not reproduced"


def test_what_the_recovery_owes_to_the_stabilising_primitive():
    """It is needed where flights with its weight at zero are worse, and its rise where they are with it held."""

    def clamped(without, held):
        flights = Clamped(*(invented(80.0, error=error) for error in (0.1, without, held)))
        return EVIDENCE._replace(clamped=dict.fromkeys(EVIDENCE.clamped, flights))

    assert verdicts(clamped(0.3, 0.2))["Q6"] == "reproduced"
    assert verdicts(clamped(0.1, 0.1))["Q6"] == "not reproduced"  # a clamp that changes nothing
    assert {part.rpartition(": ")[2]: held for part, held in holds("Q6", clamped(0.3, 0.05)).items()} == {
        "without the primitive": True, "without its rise": False,
    }  # fmt: skip
    assert verdicts(clamped(0.05, 0.05))["Q6"] == "not reproduced"  # better without


def test_a_size_is_judged_by_the_errors_of_both_samples():
    """A delta of our interval's border is compatible with the paper's sample; the sign alone is not its size."""
    assert apart_from_paper(-0.2, -0.244, -0.157, -0.14) == pytest.approx(1.76, abs=0.01)
    assert apart_from_paper(-0.14, -0.2, -0.1, -0.14) == 0.0
    base = invented(100.0, 1)
    same = holds("Q2", replaced("pd", baseline=base, released=base, written=base))
    assert not any(held for part, held in same.items() if "accelerations" not in part)


def away(seconds, metres, peak_after=0.0):
    """A flight that the impulse throws off by so much, for so long."""
    flight = invented(1.0)
    distance = np.full_like(flight.distance, 0.1)
    for i, k in enumerate(flight.impulse_time):
        distance[i, k + round(peak_after / 0.02) : k + round(seconds / 0.02)] = metres
    return flight._replace(distance=distance)


@pytest.mark.parametrize(
    ("released", "written", "verdict"),
    [
        (away(0.5, 0.5), away(0.5, 0.5), "reproduced"),
        (away(0.5, 0.5), away(1.5, 0.9), "partly"),
        (away(1.5, 0.9), away(0.5, 0.5), "partly"),
        (away(0.5, 3.0), away(0.5, 3.0), "not reproduced"),  # sooner, but farther away
        (away(1.4, 0.3), away(1.4, 0.3), "not reproduced"),  # nearer, but later
        (away(1.5, 0.9), away(1.5, 0.9), "not reproduced"),
        (away(1.0, 0.6), away(1.0, 0.6), "not reproduced"),  # the same
    ],
)
def test_recovery_is_sooner_and_nearer(released, written, verdict):
    found = replaced("lqr", baseline=away(1.0, 0.6), released=released, written=written)
    assert verdicts(found)["Q5"] == verdict


def test_who_stays_away_never_recovers_faster():
    flight = away(1.0, 0.6)
    never = flight._replace(distance=np.full_like(flight.distance, 0.5))
    found = replaced("lqr", baseline=never, released=never, written=never)
    assert verdicts(found)["Q5"] == "not reproduced"
    measured = judge_claim(CLAIMS[4], SMALL, found).measured
    assert measured["time until back, one-step gate"].value == np.inf
    assert measured["time until back, one-step gate"].unit == "s"


def test_deltas_have_their_interval():
    measured = judge_claim(CLAIMS[1], SMALL, EVIDENCE).measured
    for name in (RELEASED, WRITTEN, "fixed 50/50", "cost-to-go, warm"):
        low, high = measured[f"delta, {name}"].interval
        assert low <= measured[f"delta, {name}"].value <= high


@pytest.mark.parametrize(
    "change",
    [
        {"steps": 60},
        {"steps": 1},
        {"temperatures": (2.0,)},
        {"temperatures": (0.05,), "composition": CompositionSettings(eps=7.0)},
        {"seeds": 2},
    ],
    ids=str,
)
def test_settings_that_leave_little_to_see_are_judged_and_drawn(change):
    """What is too short for its impulse, or has one temperature, ends in a report and not in an error."""
    settings = SMALL.model_copy(update=change)
    found = evidence(settings)
    if settings.steps < 150:
        assert judge_claim(CLAIMS[4], settings, found).verdict == "not reproduced"
    assert len(STUDY.findings(settings, found)) == 8
    assert len(STUDY.controls(settings, found)) == 7
    for figure in FIGURES.values():
        styled(figure.draw, settings, found).canvas.draw()


def test_recovery_counts_from_the_impulse():
    back = recovery(SMALL, invented(1.0, error=0.2))
    np.testing.assert_allclose(back.time, 1.0)  # 50 steps of 20 ms
    np.testing.assert_allclose(back.peak, 0.6)
    np.testing.assert_allclose(back.error, 0.02 * (50 * 0.6 + 50 * 0.2 + 0.1))
    late = invented(1.0)._replace(impulse_time=np.full(SMALL.seeds, 250))
    assert recovery(SMALL, late).time.size == 0


def test_recovery_begins_at_the_peak_of_the_first_second():
    np.testing.assert_allclose(recovery(SMALL, away(0.8, 0.6, peak_after=0.4)).time, 0.8)
    # who never leaves the radius needs no time, wherever its peak is
    np.testing.assert_array_equal(recovery(SMALL, away(0.8, 0.2, peak_after=0.4)).time, 0.0)
    # what happens after the first second is another excursion
    np.testing.assert_array_equal(recovery(SMALL, away(1.8, 0.6, peak_after=1.4)).time, 0.0)
    never = invented(1.0)._replace(distance=np.full((SMALL.seeds, SMALL.steps + 1), 0.3))
    assert np.isinf(recovery(SMALL, never).time).all()
    edge = never._replace(distance=np.full((SMALL.seeds, SMALL.steps + 1), SMALL.recovered))
    np.testing.assert_array_equal(recovery(SMALL, edge).time, 0.0)


def test_costs_are_compared_seed_by_seed():
    flights = {"baseline": invented(100.0, 1), "composed": invented(50.0, 1)}
    base, composed = (compare_costs(SMALL, flights, name) for name in flights)
    assert base.against.delta == 0.0
    assert composed.against.delta < -0.9
    assert composed.better == 1.0
    assert composed.difference == pytest.approx(np.median(-flights["composed"].cost))
    assert composed.stabilising == pytest.approx(0.55)
    assert composed.other == base.cost.median


def test_the_test_for_pairs_sees_what_disturbances_hide():
    """Every flight costs a little less than that of the same seed, and disturbances make most of the cost."""
    base = invented(100.0, 1)
    flights = {"baseline": base, "composed": base._replace(cost=base.cost - 0.5)}
    same, composed = (compare_costs(SMALL, flights, name) for name in flights)
    assert same.paired_p == 1.0
    assert composed.against.p > 0.5
    assert composed.paired_p < 1e-6
    dearer = compare_costs(SMALL, flights | {"composed": base._replace(cost=base.cost + 0.5)}, "composed")
    assert dearer.paired_p == pytest.approx(composed.paired_p)  # both sides count
    assert same.verb == "is not distinguished from"
    assert composed.verb == "costs less, seed by seed only, than"
    assert not composed.cheaper  # the paper's test judges


def test_who_takes_turns_does_not_rise_by_rounding():
    """Means before and after the impulse that differ by rounding alone are equal."""
    turns, rises = invented(1.0, swaps=True), invented(1.0, rises=True)
    lifted = turns._replace(stabilising=turns.stabilising + 1e-12 * np.arange(SMALL.steps))
    assert stabilising_rises(SMALL, lifted).value == 0
    counted = stabilising_rises(SMALL, rises)
    assert counted.value == counted.of == np.sum((rises.impulse_time >= 50) & (rises.impulse_time <= 250))


def test_the_interval_of_delta_includes_rounding():
    """The same seeds, flown again from a start that rounding moved, widen the interval and may put the paper's in."""
    measured = judge_claim(CLAIMS[1], SMALL, EVIDENCE).measured
    low, high = measured[f"delta, {RELEASED}"].interval
    gate, pid = (EVIDENCE.stale_point.pd[name] for name in (RELEASED, "baseline"))
    moved = EVIDENCE._replace(beside={RELEASED: gate._replace(cost=gate.cost * 1.1), "baseline": pid})
    wider = judge_claim(CLAIMS[1], SMALL, moved).measured
    assert wider[f"delta, {RELEASED}"].value == measured[f"delta, {RELEASED}"].value
    assert wider[f"delta, {RELEASED}"].interval[0] == low
    assert wider[f"delta, {RELEASED}"].interval[1] > high
    assert wider[f"start 1e-15 m beside: delta, {RELEASED}"].value > measured[f"delta, {RELEASED}"].value


def test_times_are_seconds_whatever_the_sampling_time():
    half = SMALL.model_copy(update={"dt": 0.04})
    np.testing.assert_allclose(recovery(half, invented(1.0, error=0.2)).time, 2.0)  # 50 decisions of 40 ms
    with pytest.raises(pydantic.ValidationError, match=r"dt = 0\.0205"):
        QuadrotorSettings(dt=0.0205)


def test_alternation():
    assert alternation(invented(1.0, swaps=True)) == 1.0
    assert alternation(invented(1.0)) == 0.0


@pytest.mark.parametrize("name", FIGURES)
def test_figures_draw(name, tmp_path):
    figure = styled(FIGURES[name].draw, SMALL, EVIDENCE)
    assert isinstance(figure, matplotlib.figure.Figure)
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5_000


def test_figures_of_one_experiment_and_an_animation(tmp_path):
    flights = {name: invented(90.0, i) for i, name in enumerate(("baseline", "composed"))}
    styled(scenario._draw_flown, SMALL, "pd", flights).savefig(tmp_path / "flown.png")
    styled(scenario._draw_comparison, "lqr", flights).savefig(tmp_path / "compared.png")
    assert ".gif" in film_endings()
    short = SMALL.model_copy(update={"steps": 12})
    cut = flights["composed"]._replace(states=flights["composed"].states[:, :13])
    scenario._animate(short, cut, "").save(tmp_path / "flight.gif", writer="pillow", fps=10)
    assert (tmp_path / "flight.gif").stat().st_size > 2_000


@pytest.mark.parametrize("name", ["baseline", "cost-to-go"])
def test_a_single_flight_is_named_and_its_axes_too(name):
    data = (
        STUDY.datasets(SMALL, EVIDENCE)["pd_centre"].sel(controller=[name]).isel(episode=[2]).assign_coords(episode=[2])
    )
    figure = styled(draw_one_flight, SMALL, "pd", data)
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
    lines = roster(QuadrotorSettings(composition=CompositionSettings(points=20), warm_eps=0.7, wide_margin=0.02))
    assert lines["cost-to-go, warm"] == CompositionSettings(
        points=20, eps=0.7, margin=0.02, selection="mean", horizon="cost-to-go"
    )
    assert lines["fixed 50/50"] is None
    assert lines["one-step gate"].gate == "one-step"
    assert lines["baseline"] is None
