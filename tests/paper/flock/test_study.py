"""What is stored and drawn of the study and of one flight, and the command `policychord flock`."""

import subprocess
import sys

import matplotlib.text
import numpy as np
import pytest

from policychord.cli import main
from policychord.drawing import film_endings, styled
from policychord.loops import to_dataset
from policychord.worlds.flock.flights import measure_flight, simulate_flock
from policychord.worlds.flock.settings import scenario
from policychord_paper.flock.experiments import NAMES
from policychord_paper.flock.figures import FIGURES
from policychord_paper.flock.report import STUDY
from policychord_paper.flock.scenario import _advise, _animate, _figures, _summarise

from .flights import STUDY_SIZE, everywhere


@pytest.fixture(scope="module")
def flown():
    """A small flock with leaders, 120 steps."""
    settings = scenario("leaders", boids=6, leaders=2, steps=120, seeds=2, start_size=1.0)
    return measure_flight(settings, simulate_flock(settings))


@pytest.fixture(scope="module")
def evidence(flown):
    """The same flight in every place: enough to store and to draw."""
    return everywhere(flown)


def test_the_study_stores_every_flight_and_the_series_of_all(evidence, flown):
    stored = STUDY.datasets(STUDY_SIZE, evidence)
    assert list(stored) == [*NAMES, "series"]
    assert stored["leaders-10"].sizes["time"] == -(-120 // STUDY_SIZE.keep_every)
    assert stored["leaders-10"].attrs["boids"] == 6
    series = stored["series"].sel(experiment="leaders-10").goal_distance
    np.testing.assert_array_equal(series.dropna("time"), flown.measured.goal_distance[:, :: STUDY_SIZE.keep_every])


DRAWN = {  # panels, and words that must stand in the figure
    "behaviours": (12, {"No leaders", "With the collision term", "10% leaders", "leader", "follower"}),
    "weights_of_all": (2, {"sep", "ali", "coh", "6 s"}),
    "order": (4, {"composed", "fixed w = 1/3", "ring, no term", "random start", "20%", "none", "distance to goal (m)"}),
    "informed": (12, {"100% informed", "20% informed", "no leaders", "led", "an uninformed boid"}),
    "temperatures": (11, {"separation", "cohesion", r"$\epsilon$ = 10", "mean ± sd, 2 seeds", "leader", "follower"}),
    "followers": (18, {"Couzin", "Cucker-Smale", "Vicsek", "an informed boid"}),
    "forms": (3, {"Couzin", "Cucker-Smale", "Vicsek", "released", "original", "6 leaders", "none"}),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_draw(name, evidence, tmp_path):
    figure = styled(FIGURES[name].draw, STUDY_SIZE, evidence)
    figure.savefig(tmp_path / "figure.png", dpi=50)
    panels, words = DRAWN[name]
    assert len(figure.axes) == panels
    assert words <= {text.get_text().strip() for text in figure.findobj(matplotlib.text.Text)}


def test_a_single_experiment_is_drawn_filmed_summarised_and_kept(flown, tmp_path):
    for name, draw in _figures(flown).items():
        styled(draw).savefig(tmp_path / f"{name}.png", dpi=50)
    short = flown._replace(shown=flown.shown._replace(state=type(flown.shown.state)(
        *(field[:, :5] for field in flown.shown.state))))  # fmt: skip
    _animate(short).save(tmp_path / "film.gif", writer="pillow", dpi=40)
    assert (tmp_path / "film.gif").read_bytes().startswith(b"GIF")
    assert ".gif" in film_endings()
    numbers = _summarise(flown.settings, flown.measured)
    assert all(np.isfinite(pair).all() for pair in numbers.values())
    assert "distance to goal, nearest (m)" in numbers
    dataset = to_dataset(flown.shown, **flown.settings.model_dump())
    assert dataset["weights"].dims == ("episode", "time", "agent", "primitive")
    assert dataset["position"].dims == ("episode", "time", "boid", "axis")
    assert flown.measured.largest_gap <= 1e-10


def test_a_crowded_start_is_pointed_out():
    assert "--start-size 20" in _advise(scenario("polarization", boids=2560))[0]
    assert _advise(scenario("polarization")) == []


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
