"""Claims are judged by what was measured, figures and films draw, and the command says what is wrong."""

import json
import pickle
import subprocess
import sys

import matplotlib.figure
import numpy as np
import pytest

from policychord.cli import main
from policychord.loops import to_dataset
from policychord.studies.claim import judge
from policychord.studies.drawing import styled
from policychord.studies.flock import claims
from policychord.studies.flock.animation import endings, film
from policychord.studies.flock.claims import LEDGER
from policychord.studies.flock.experiments import groups
from policychord.studies.flock.figures import FIGURES, figures_of
from policychord.studies.flock.scenarios import scenario
from policychord.studies.flock.settings import FlockStudySettings
from policychord.studies.flock.simulate import experiment
from policychord.studies.flock.study import STUDY
from policychord.studies.flock.summary import advice, summary

SMALL = FlockStudySettings(goal_seeds=2, temperature_seeds=2, shorten=0.1)


@pytest.fixture(scope="module")
def flown():
    """A small flock with leaders, 120 steps."""
    return experiment(scenario("leaders", boids=6, leaders=2, steps=120, seeds=2, start_size=1.0))


@pytest.fixture(scope="module")
def evidence(flown):
    """The same flight under the name of every experiment: enough to read and to draw."""
    names = [name for group in groups(SMALL).values() for name in group]
    return dict.fromkeys(names, flown)


@pytest.fixture(scope="module")
def in_groups(flown):
    """The same as the work gives it."""
    return {step: dict.fromkeys(group, flown) for step, group in groups(SMALL).items()}


def with_metrics(found, **series):
    return found._replace(metrics=found.metrics._replace(**series))


def test_the_ledger_and_the_work_are_complete():
    assert [entry.id for entry in LEDGER] == [f"F{k}" for k in range(1, 12)]
    assert all(entry.reported for entry in LEDGER)
    full = STUDY.settings(quick=False)
    assert list(STUDY.work(full)) == list(groups(full))
    flights = {name: flight for group in groups(full).values() for name, flight in group.items()}
    assert len(flights) == 24
    assert flights["temperature 10"].seeds == 30
    assert flights["temperature 10"].eps == 10.0
    assert flights["milling, random start"].collision_term
    assert flights["vicsek, original, no leaders"].leaders == 0
    for quick in (True, False):
        leaderless = groups(STUDY.settings(quick=quick))["leaderless flocks"]["polarization"]
        assert leaderless.seeds >= 8  # the rule of F1
        assert leaderless.start == "square"


def test_the_work_gives_the_experiments_by_name():
    """A tiny study from end to end: groups are flown, found again, judged and kept."""
    tiny = FlockStudySettings(seeds=1, goal_seeds=1, temperature_seeds=1, shorten=0.004)
    group = STUDY.work(tiny)["Vicsek followers"]()
    assert list(group) == [
        f"vicsek, {form}{alone}" for form in ("released", "original") for alone in ("", ", no leaders")
    ]
    assert group["vicsek, original"].leader_sd.shape == (1, 6)
    assert group["vicsek, original, no leaders"].leader_sd.shape == (1, 0)
    assert pickle.loads(pickle.dumps(group)).keys() == group.keys()


@pytest.mark.parametrize("entry", LEDGER, ids=lambda e: e.id)
def test_every_claim_is_measured(entry, evidence):
    claim = judge(entry, SMALL, evidence)
    assert claim.verdict in ("reproduced", "partly", "not reproduced")
    assert all(np.isfinite(v) for v in claim.measured.values() if isinstance(v, float))
    json.dumps(claim._asdict())


def test_verdicts_follow_the_measurements(flown, evidence):
    steps = flown.metrics.polarization.shape[1]
    together = np.ones((8, flown.metrics.groups.shape[1]))
    ordered = with_metrics(flown, polarization=np.full((8, steps), 0.99), largest_group=together)
    assert claims.polarizes(SMALL, evidence | {"polarization": ordered}).verdict == "reproduced"
    few = with_metrics(flown, polarization=np.full((7, steps), 0.99))
    assert claims.polarizes(SMALL, evidence | {"polarization": few}).verdict == "not reproduced"
    falling = flown._replace(imbalance=np.linspace(0.5, 0.0, steps)[None])
    assert claims.balances(SMALL, evidence | {"polarization": falling}).verdict == "reproduced"
    mill, line = (with_metrics(flown, milling=np.full((2, steps), m)) for m in (0.9, 0.1))
    both = {"milling": mill, "milling, no collision term": line}
    assert claims.mills(SMALL, evidence | both).verdict == "reproduced"
    assert claims.mills(SMALL, evidence | both | {"milling, no collision term": mill}).verdict == "not reproduced"
    near, far = (with_metrics(ordered, goal_distance=np.full((8, steps), d)) for d in (1.0, 19.0))
    rule = claims.reaches_goal("10%")
    assert rule(SMALL, evidence | {"leaders 10%": near, "leaders 0%": far}).verdict == "reproduced"
    assert rule(SMALL, evidence | {"leaders 10%": far, "leaders 0%": far}).verdict == "partly"  # polarized only
    guided = {"couzin, released": near, "couzin, released, no leaders": far}
    assert claims.guides("couzin")(SMALL, evidence | guided).verdict == "reproduced"
    assert claims.guides("couzin")(SMALL, evidence).verdict == "not reproduced"


def test_order_is_dated_from_when_it_lasts(flown):
    series = np.array([[0.99, 0.5, 0.96, 0.97], [0.1, 0.1, 0.1, 0.1]])
    np.testing.assert_array_equal(claims.ordered_from(with_metrics(flown, polarization=series)), [2, 4])


def test_the_study_reads_groups(in_groups, flown):
    assert [judge(entry, SMALL, in_groups).id for entry in STUDY.ledger] == [entry.id for entry in LEDGER]
    assert STUDY.controls(SMALL, in_groups)
    assert STUDY.found(SMALL, in_groups)
    kept = STUDY.datasets(SMALL, in_groups)
    assert kept["leaders-10"].sizes["time"] == -(-120 // SMALL.keep_every)
    assert len(kept) == 25
    series = kept["series"].sel(experiment="leaders 10%").goal_distance
    thinned = flown.metrics.goal_distance[:, :: SMALL.keep_every]
    np.testing.assert_array_equal(series.dropna("time"), thinned)


@pytest.mark.parametrize("name", FIGURES)
def test_figures_draw(name, evidence, tmp_path):
    figure = styled(FIGURES[name], SMALL, evidence)
    assert isinstance(figure, matplotlib.figure.Figure)
    figure.savefig(tmp_path / "figure.png", dpi=50)
    assert (tmp_path / "figure.png").stat().st_size > 5_000


def test_a_single_experiment_is_drawn_filmed_summarised_and_kept(flown, tmp_path):
    for name, draw in figures_of(flown).items():
        styled(draw).savefig(tmp_path / f"{name}.png", dpi=50)
    short = flown._replace(shown=flown.shown._replace(state=type(flown.shown.state)(
        *(field[:, :5] for field in flown.shown.state))))  # fmt: skip
    film(short).save(tmp_path / "film.gif", writer="pillow", dpi=40)
    assert (tmp_path / "film.gif").read_bytes().startswith(b"GIF")
    assert ".gif" in endings()
    numbers = summary(flown)
    assert all(np.isfinite(pair).all() for pair in numbers.values())
    assert "distance to goal, nearest (m)" in numbers
    dataset = to_dataset(flown.shown, **flown.settings.model_dump())
    assert dataset["weights"].dims == ("episode", "time", "agent", "primitive")
    assert dataset["position"].dims == ("episode", "time", "boid", "axis")
    assert flown.largest_gap <= 1e-10


def test_a_crowded_start_is_pointed_out():
    assert "--start-size 20" in advice(scenario("polarization", boids=2560))[0]
    assert advice(scenario("polarization")) == []


# ---------------------------------------------------------------------------------- the command


def test_the_command_writes_everything(tmp_path):
    words = ["flock", "polarization", "--boids", "6", "--steps", "6", "--seeds", "2", "--animation", "--out"]
    done = subprocess.run(
        [sys.executable, "-m", "policychord", *words, str(tmp_path / "out")], capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"data.zarr", "overview.png", "overview.svg", "weights.png", "animation.gif"} <= names
    assert "polarization, last" in done.stdout
    assert "Next:" in done.stdout


@pytest.mark.parametrize(
    ("words", "content", "said"),
    [
        ([], "boidz = 3", "did you mean boids?"),
        ([], "boids = -3", "boids = -3"),
        ([], "boids = ", "not valid TOML"),
        (["--leaders", "50"], "", "leaders = 50"),
        (["--form", "original"], "", "form"),
        (["--ablation", "no-collision-term"], "", "no collision term"),
        (["--eps", "0"], "", "eps"),
    ],
)
def test_wrong_settings_get_a_sentence_and_exit_code_2(words, content, said, tmp_path, monkeypatch, capsys):
    (tmp_path / "own.toml").write_text(content)
    command = ["policychord", "flock", "polarization", "--settings", str(tmp_path / "own.toml"), *words]
    monkeypatch.setattr(sys, "argv", [*command, "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert said in capsys.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "out").exists()
