"""What commands say when all goes well: a page that fits for people, one JSON object for programs."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

from policychord.cli.output import counted
from policychord.effect_size import EffectSize, Spread
from policychord.runs import plain
from policychord.worlds.quadrotor.settings import QuadrotorSettings
from policychord_paper.commands import quadrotor
from policychord_paper.quadrotor.measures import CostComparison

from .command import run


def record_of(answer):
    """The JSON object that is all of standard output, with what every command has."""
    assert answer.code == 0, answer.err
    record = json.loads(answer.out)
    assert {"command", "results", "files", "notes"} <= set(record)
    assert all(os.path.exists(file) for file in record["files"])
    return record


def test_a_stream_with_few_letters_is_no_error():
    """As a pipe of Windows: people get a question mark, programs what JSON writes for the letter."""
    code = (
        "from policychord.cli.output import begin_command, emit\n"
        "begin_command('x'); emit(False, {}, 'one \u2212 two'); emit(True, {'results': 'one \u2212 two'})"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, env=os.environ | {"PYTHONIOENCODING": "cp1252"}
    ).stdout.decode("ascii")
    assert shown.startswith("one ? two")
    assert json.loads(shown.partition("\n")[2])["results"] == "one \u2212 two"


SMALL = ("flock", "polarization", "--boids", "5", "--steps", "8")


def test_flock_for_programs(tmp_path):
    answer = run(*SMALL, "--seeds", "2", "--json", "--out", tmp_path / "out")
    record = record_of(answer)
    assert record["settings"]["boids"] == 5
    measured = record["results"]["polarization, last 8 steps"]
    assert 0 < measured["mean"] < 1
    assert measured["sd"] > 0
    assert {os.path.basename(file) for file in record["files"]} >= {"data.zarr", "overview.png"}
    assert "[1/3]" in answer.err  # what is going on stays visible


def test_flock_for_people(here, tmp_path):
    answer = here(*SMALL, "--seeds", "1", "--out", tmp_path / "out")
    assert answer.code == 0, answer.err
    assert answer.out.splitlines()[0].rstrip() == "polarization: 5 boids, 8 steps, eps 0.5, 1 seed"
    assert "sd over seeds" not in answer.out  # one seed has none
    assert "1: all fly the same way" in " ".join(answer.out.split())
    assert len([line for line in answer.out.splitlines() if str(tmp_path) in line]) <= 3


def test_choices_for_programs(here, tmp_path):
    made = tmp_path / "choices.csv"
    assert record_of(here("choices", "simulate", made, "--subjects", 4, "--json"))["results"]["trials"] == 800
    head, first, *rest = made.read_text().splitlines()
    slow = [f"{head},RT", f"{first},20000", *(f"{line},400" for line in rest)]
    made.write_text("\n".join(slow))
    record = record_of(here("choices", "fit", made, "--out", tmp_path / "out", "--json"))
    models = {row["model"]: row for row in record["results"]["models"]}
    assert set(models) == {"UCB", "Thompson", "Hybrid", "Value", "Composed"}
    assert sum(row["PXP"] for row in models.values()) == pytest.approx(1.0)
    assert "synthetic" in record["results"]["data"]
    assert "Trials of 20000 ms or more: 1, learned from but not scored." in record["notes"]
    header = (tmp_path / "out" / "subjects.csv").read_text().splitlines()[0]
    assert header.startswith("subject,model,coef_V,se_V,low_V,high_V,coef_RU,")
    assert header.endswith("log_likelihood,BIC,AIC,trials,chance,accuracy,R2,held_out,separated,at_bound,local")
    summary = (tmp_path / "out" / "summary.md").read_text()
    assert "standard error over people" in summary
    assert record["results"]["verdict"] in summary
    shown = record_of(here("choices", "show", tmp_path / "out", "--json"))
    assert shown["results"]["verdict"] == record["notes"][0]
    assert len(set(shown["notes"])) == len(shown["notes"])  # nothing twice
    assert "taken as ties" not in summary


WALKER = """
import jax
import jax.numpy as jnp
import numpy as np
from policychord import inference, problem

steps = jnp.linspace(-1.0, 1.0, 7)
log_pi = jax.nn.log_softmax(-8.0 * (steps[:, None] - jnp.array([-0.5, 0.5])) ** 2, axis=0)


def build(theta):
    def pose(target, k):
        return problem(log_pi=log_pi, action_cost=(steps - target[0]) ** 2, eps=theta["eps"], prior=jnp.ones(2) / 2)
    return pose


def simulate(theta, decisions, seed):
    rng = np.random.default_rng(seed)
    return inference.observations(rng.uniform(-1, 1, (decisions, 1)), rng.integers(0, 7, decisions))


def design():
    return inference.Design(inference.Family("walker", build, (inference.positive("eps", 1.0),)), simulate)
"""


def test_a_family_of_ones_own_is_found_in_the_current_folder(here, tmp_path, monkeypatch):
    """The console script does not look there by itself, as `python -m` does."""
    (tmp_path / "own_walker.py").write_text(WALKER)
    (tmp_path / "plan.toml").write_text('family = "python"\nstarts = 1\ndraws = 4\n[simulate]\ndecisions = 60\n')
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", os.getcwd())])
    monkeypatch.chdir(tmp_path)
    record = record_of(here("fit", "plan.toml", "--python", "own_walker:design", "--out", "out", "--json"))
    assert record["results"]["decisions"] == 60


def flown(name, delta, better=0.5, median=170.5):
    return CostComparison(
        name,
        Spread(median, 143.61, 1200.9),
        EffectSize(delta, delta - 0.1, delta + 0.1, 0.01),
        1.0,
        better,
        0.5,
        0.01,
        170.0,
    )


def rows(delta):
    alone = [flown(name, 0.64) for name in ("baseline", "stabilise", "track")]
    return [*alone, flown("composed", delta), flown("fixed 50/50", delta)]


@pytest.mark.parametrize("width", [80, 100])
def test_the_table_of_flights_fits(width):
    console = Console(width=width, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(quadrotor._table("lqr", QuadrotorSettings(), rows(-0.64)))
    shown = console.export_text()
    assert "…" not in shown
    assert "-0.64 (-0.74, -0.54)" in shown
    assert "144 to 1.2e+03" in shown
    assert max(map(len, shown.splitlines())) <= width


@pytest.mark.parametrize(
    ("delta", "fixed", "horizon", "said", "unsaid"),
    [
        (-0.5, -0.5, "one-step", "beats the baseline", "50/50"),
        (0.05, -0.5, "one-step", "No difference", "loses"),
        (0.5, -0.5, "one-step", "known for this horizon", "50/50"),
        (0.5, 0.5, "cost-to-go", "a fixed 50/50 mixture costs less (delta +0.50; +0.40, +0.60)", "horizon"),
        (-0.5, 0.05, "one-step", "over a fixed 50/50 mixture is open", "gain nothing"),
    ],
)
def test_flights_in_words(delta, fixed, horizon, said, unsaid):
    settings = QuadrotorSettings(composition={"horizon": horizon})
    (words,) = quadrotor._in_words(settings, rows(delta), flown("composed", fixed))
    assert said in words
    assert unsaid not in words


def test_two_flights_are_no_comparison():
    settings = QuadrotorSettings(seeds=2)
    (words,) = quadrotor._in_words(settings, rows(-0.5), flown("composed", 0.5))
    assert words == "2 episodes: too few to compare by; --seeds 10 is the least."
    assert quadrotor._machine(flown("composed", 0.5), 2)["cliffs_delta"] == {"value": 0.5, "low": None, "high": None}
    console = Console(width=100, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(quadrotor._table("lqr", settings, rows(-0.64)))
    assert "-0.64 (too few)" in console.export_text()


def test_records_become_json():
    value = {"a": np.float64("nan"), 1: Spread(1.0, 0.5, float("inf")), "p": np.arange(2), "s": QuadrotorSettings()}
    found = plain(value, finite=True)
    assert found["a"] is None
    assert found["1"] == {"median": 1.0, "low": 0.5, "high": None}
    assert found["p"] == [0, 1]
    assert found["s"]["composition"]["eps"] == 0.05
    json.dumps(found, allow_nan=False)


def test_one_seed_many_seeds():
    assert [counted(n, "seed") for n in (0, 1, 8, 10_000)] == ["0 seeds", "1 seed", "8 seeds", "10,000 seeds"]
    assert [counted(n, "person", "people") for n in (1, 2)] == ["1 person", "2 people"]
