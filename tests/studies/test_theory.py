"""The theory study: every claim is measured, judged by its rule, and can fail; the words follow the figures."""

import json
from pathlib import Path

import matplotlib.figure
import numpy as np
import pydantic
import pytest

from policychord import circuit_stability, solve
from policychord.runs import kept
from policychord.studies.claim import Claim, Finding, judge
from policychord.studies.drawing import styled
from policychord.studies.theory import circuits, claims, measure, paths, problems
from policychord.studies.theory.claims import LEDGER
from policychord.studies.theory.controls import controls
from policychord.studies.theory.errors import errors
from policychord.studies.theory.figures import FIGURES
from policychord.studies.theory.found import found
from policychord.studies.theory.settings import TheorySettings
from policychord.studies.theory.study import STUDY

from ..cli.command import run

SETTINGS = TheorySettings()
EXPECTED = {entry.id: "reproduced" for entry in LEDGER} | {"T12": "not reproduced"}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The study as a user runs it, once for all tests: a folder, and what a program is told."""
    out = tmp_path_factory.mktemp("theory")
    told = run("reproduce", "theory", "--out", out, "--json")
    assert told.code == 0, told.err
    return out, json.loads(told.out)


@pytest.fixture(scope="module")
def evidence(done):
    return {step: kept.load(kept.place(done[0], "theory", step, SETTINGS))[0] for step in STUDY.work(SETTINGS)}


def test_the_command_says_what_it_wrote(done):
    out, record = done
    claims = json.loads((out / "claims.json").read_text())
    assert record["command"] == "reproduce"
    assert record["results"] == claims
    assert {claim["id"]: claim["verdict"] for claim in claims} == EXPECTED
    assert {"report.html", "claims.json", "environment.json"} <= {Path(file).name for file in record["files"]}
    assert all(Path(file).is_file() for file in record["files"])
    assert not list(out.rglob("*.part"))


def test_the_command_does_nothing_twice(done):
    out, record = done
    again = run("reproduce", "theory", "--out", out)
    assert again.code == 0, again.err
    for word in (*EXPECTED, "11 reproduced", "1 not reproduced", "report.html", "steps kept from before"):
        assert word in again.out
    assert json.loads((out / "claims.json").read_text()) == record["results"]


def test_ledger_is_complete():
    assert [entry.id for entry in LEDGER] == [f"T{k}" for k in range(1, 13)]
    assert all(entry.reported for entry in LEDGER)
    assert TheorySettings().problems >= 200  # the rule of T1


@pytest.mark.parametrize("entry", LEDGER, ids=lambda e: e.id)
def test_claim(entry, evidence):
    claim = judge(entry, SETTINGS, evidence)
    assert isinstance(claim, Claim)
    assert claim.verdict == EXPECTED[entry.id]
    assert claim.measured
    assert all(np.isfinite(v) for v in claim.measured.values() if isinstance(v, float))
    json.dumps(claim._asdict())


def test_a_second_time_finds_the_same(evidence):
    """To the last bit in one process; between processes, whose threads add in another order, to rounding."""
    work = STUDY.work(SETTINGS)
    for step in ("T9", "T3", "T10"):
        assert work[step]() == work[step]()
    for ours, theirs in zip(work["oscillation"](), evidence["oscillation"], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_a_wrong_solver_would_be_caught(monkeypatch, evidence):
    """The verdicts depend on what is measured: with weights that are a little off, claims fail."""

    def slightly_wrong(problem, tol=1e-10, start=None):
        right = solve(problem, tol)
        return right._replace(weights=0.99 * right.weights + 0.01 / right.weights.shape[-1])

    monkeypatch.setattr(measure, "solve", slightly_wrong)
    assert measure.prior_weighted_gate(SETTINGS).verdict == "not reproduced"
    wrong = evidence | {"certificates": measure.certified(SETTINGS)}
    assert claims.gap_is_certified(SETTINGS, wrong).verdict == "not reproduced"
    moved = {step: _with_optima_moved(evidence[step]) for step in paths.FLOWS}
    assert claims.weights_converge(SETTINGS, evidence | moved).verdict == "not reproduced"
    judged = [0.99 * optima + 0.01 / optima.shape[-1] for optima in evidence["judged optima"]]
    assert claims.equilibria_are_optima(SETTINGS, evidence | {"judged optima": judged}).verdict == "not reproduced"


def _with_optima_moved(flows):
    return flows._replace(
        paths={
            shape: p._replace(optimum=0.99 * p.optimum + 0.01 / p.optimum.shape[-1]) for shape, p in flows.paths.items()
        }
    )


def test_too_few_problems_do_not_reproduce_the_first_claim(evidence):
    fewer = {step: evidence[step]._replace(paths={}) for step in paths.FLOWS}
    shape = (40, 6)
    fewer["flow, six primitives"] = evidence["flow, six primitives"]
    assert list(fewer["flow, six primitives"].paths) == [shape]
    assert claims.simplex_kept(SETTINGS, evidence | fewer).verdict == "not reproduced"


def test_stated_ordering_fails_and_corrected_ordering_holds():
    batch = problems.bandit_problems(0, 50)
    assert not circuit_stability(batch, circuits.geometric_ladder(10.0)).stable.all()
    assert circuit_stability(batch).stable.all()
    settling = circuits.ratio_that_settles(batch)
    assert circuit_stability(batch, circuits.geometric_ladder(settling)).stable.all()


def test_the_plain_circuit_ends_where_the_solver_does(evidence):
    shown = evidence["oscillation"]
    np.testing.assert_allclose(shown.corrected[-1], shown.optimum, atol=1e-6)
    assert np.abs(shown.stated[-200:] - shown.optimum).max() > 0.01


def test_actions_that_nobody_takes_change_nothing():
    small = problems.random_problems(1, 9)[0]
    padded = paths.joined([small, problems.random_problems(1, 9)[1]])
    np.testing.assert_allclose(solve(padded).weights[:3], solve(small).weights, atol=1e-9)


@pytest.mark.parametrize("draw_batch", problems.STUDIES.values(), ids=problems.STUDIES)
def test_study_problems_are_as_in_the_paper(draw_batch):
    batch = draw_batch(1, 5)
    shape = {"flock_problems": (648, 3), "bandit_problems": (2, 3), "quadrotor_problems": (900, 2)}
    assert batch.pi.shape[1:] == shape[draw_batch.__name__]
    assert solve(batch).converged.all()


def test_same_seed_same_problems():
    for a, b in zip(problems.random_problems(3, 9), problems.random_problems(3, 9), strict=True):
        np.testing.assert_array_equal(a.pi, b.pi)


def test_decay_rate_of_an_exponential():
    times = np.linspace(0, 20, 201)
    rates = paths.decay_rate(times, np.exp(-np.array([[0.7], [2.0], [0.01]]) * times), 1e-2, 1e-5)
    np.testing.assert_allclose(rates[:2], [0.7, 2.0], rtol=1e-9)
    assert np.isnan(rates[2])


@pytest.mark.parametrize("name", FIGURES)
def test_figures_draw(name, evidence, tmp_path):
    figure = styled(FIGURES[name], SETTINGS, evidence)
    assert isinstance(figure, matplotlib.figure.Figure)
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5_000


def test_every_claim_has_a_figure_and_every_figure_its_words():
    ids = {entry.id for entry in LEDGER}
    assert {name for plate in STUDY.plates.values() for name in plate.claims} == ids
    assert all(len(plate.caption) > 100 for plate in STUDY.plates.values())
    assert STUDY.title
    assert STUDY.lead


def test_the_worst_figure_of_a_claim_is_shown(evidence):
    rows = {row.id: row for row in errors(SETTINGS, evidence)}
    assert rows["T9"].allowed == 1e-3
    broken = Finding({**evidence["T9"].measured, "F - min F at eps 1e-4": 0.5}, "not reproduced")
    assert {row.id: row for row in errors(SETTINGS, evidence | {"T9": broken})}["T9"].error == 0.5


# --------------------------------------------------------------------------------------- words


def passage(evidence, title):
    return {p.title: p.text for p in found(SETTINGS, evidence)}[title]


def answer(evidence, name):
    return {c.name: c.answer for c in controls(SETTINGS, evidence)}[name]


def test_words_follow_the_figures(evidence):
    ladders, asides, shown = evidence["ladders"], evidence["asides"], evidence["oscillation"]
    title = "The circuit's time scales"
    assert f"{ladders.unstable['bandit']} of 200" in passage(evidence, title)
    assert "does not come to rest" in passage(evidence, title)
    rests = evidence | {"oscillation": shown._replace(stated=shown.corrected)}
    assert "has come to rest" in passage(rests, title)
    none = evidence | {"ladders": ladders._replace(unstable=dict.fromkeys(ladders.unstable, 0))}
    assert "No counter-example" in passage(none, title)

    calm = asides._replace(stuck=0, violations=dict.fromkeys(asides.violations, 0), prior_moves={"any": 0.0})
    quiet = evidence | {"asides": calm}
    for name, usual, other in (
        ("The integrator", "No.", "Yes:"),
        ("A gate that is iterated", "Not always", "it does"),
        ("A prior as an input", "Only where", "Yes,"),
    ):
        assert usual in answer(evidence, name)
        assert other in answer(quiet, name)
    assert "fails to settle" in passage(evidence, "Constants, steps and priors")
    assert "settled on all" in passage(quiet, "Constants, steps and priors")
    assert "had the same effect" in passage(quiet, "Constants, steps and priors")
    assert "none of these" in answer(evidence, "Corrected time scales")
    assert "Not always: 7" in answer(evidence | {"ladders": ladders._replace(failures=7)}, "Corrected time scales")


def test_rates_are_read_off_the_paths(evidence):
    title = "How fast the weights converge"
    assert "faster in the long run" in passage(evidence, title)
    slow = {step: evidence[step]._replace(paths={s: _slowed(p) for s, p in evidence[step].paths.items()})
            for step in paths.FLOWS}  # fmt: skip
    assert "no faster than" in passage(evidence | slow, title)


def _slowed(p):
    return p._replace(times=4.0 * p.times)


def test_datasets_are_small_and_labelled(evidence):
    kept = STUDY.datasets(SETTINGS, evidence)
    assert sum(data.nbytes for data in kept.values()) < 5e6
    flow = kept["flow-12x3"]
    np.testing.assert_allclose(flow.weights.isel(time=-1), flow.optimum, atol=1e-8)
    assert kept["oscillation"].time.attrs["units"] == "tau"


def test_misspelt_setting_is_an_error():
    with pytest.raises(pydantic.ValidationError, match="problms"):
        TheorySettings(problms=10)
