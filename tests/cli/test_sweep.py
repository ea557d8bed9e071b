"""`policychord sweep` as people use it: what may vary, stopped by Ctrl-C, gone on with, looked at."""

import json
import os
import signal
import subprocess
from contextlib import suppress

import pytest

from policychord._plugins import EPISODES, installed
from policychord.cli.progress import accumulating, left
from policychord.runs import duration
from policychord.runs.plan import episodes_of

from .command import process, run

PLAN = """
study = "quadrotor"
episodes = 2
batch = 2
metrics = ["cost"]
[settings]
steps = 3
controller = "baseline"
[grid]
force_sd = [0.0, 0.02, 0.04]
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The episodes of the plan, by a sweep that nobody stopped."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "plan.toml").write_text(PLAN)
    assert run("sweep", "run", folder / "plan.toml", "--jobs", 1, "--out", folder / "out").code == 0
    assert run("sweep", "export", folder / "out").code == 0
    return (folder / "out" / "episodes.csv").read_bytes()


@pytest.mark.parametrize("engine", ["local", "dask"])
def test_a_sweep_that_is_killed_between_batches_goes_on_with_the_same_command(here, tmp_path, undisturbed, engine):
    (tmp_path / "plan.toml").write_text(PLAN)
    words = ("sweep", "run", tmp_path / "plan.toml", "--jobs", 1, "--json", "--out")
    command = process(*words, tmp_path / "out", "--engine", engine)
    with subprocess.Popen(command, stdout=-3, stderr=-1, text=True) as sweeping:
        while not sweeping.stderr.readline().startswith("[2/6] batch "):
            assert sweeping.poll() is None
        sweeping.kill()  # the workers are not asked
    # a worker may be writing at this moment: what it leaves is never read, and removed by a later command
    done = json.loads(here(*words, tmp_path / "out").out)
    assert done["computed"] < 3
    here("sweep", "export", tmp_path / "out")
    assert (tmp_path / "out" / "episodes.csv").read_bytes() == undisturbed


def test_a_million_episodes_do_not_start_by_a_slip(here, tmp_path, monkeypatch):
    (tmp_path / "plan.toml").write_text(PLAN.replace("episodes = 2", "episodes = 400_000").replace("batch = 2", ""))
    monkeypatch.setattr("policychord.runs.sweep.run_batches", lambda *_: pytest.fail("it started"))
    refused = here("sweep", "run", tmp_path / "plan.toml", "--out", tmp_path / "out")
    assert refused.code == 2
    assert "1,200,000 episodes to compute" in refused.err
    assert "--yes" in refused.err


def test_a_sweep_that_is_stopped_goes_on_with_the_same_command(here, tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    out = tmp_path / "out"
    words = ("sweep", "run", tmp_path / "plan.toml", "--jobs", 1, "--out", out, "--json")
    with subprocess.Popen(
        process(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as sweeping:
        assert sweeping.stderr.readline() == "[0/6] workers start\n"
        assert sweeping.stderr.readline().startswith("[2/6] batch ")
        os.killpg(sweeping.pid, signal.SIGINT)  # as a terminal does: workers get it too
        with suppress(ProcessLookupError):  # pressed twice: semaphores of the workers are left to others
            os.killpg(sweeping.pid, signal.SIGINT)
        said, told = sweeping.stderr.read(), json.loads(sweeping.stdout.read())
    assert sweeping.returncode == told["code"] == 130
    assert "the same command goes on" in said
    assert told["error"] in said
    assert "leaked" not in said
    assert "Traceback" not in said

    left = json.loads(here("sweep", "status", out, "--json").out)["results"]
    assert 1 <= left["done"] < left["batches"] == 3
    done = json.loads(here(*words).out)
    assert (done["command"], done["computed"], done["results"]["done"]) == ("sweep run", 3 - left["done"], 3)

    export = json.loads(here("sweep", "export", out, "--json").out)
    assert (export["command"], export["results"]["episodes"]) == ("sweep export", 6)
    plot = json.loads(here("sweep", "plot", out, "--json").out)
    assert plot["command"] == "sweep plot"
    assert all(os.path.exists(file) for file in (*plot["files"], *export["files"]))


@pytest.mark.parametrize("study", installed(EPISODES))
def test_all_that_a_plan_may_name_is_listed(here, study):
    record = json.loads(here("sweep", "settings", study, "--json").out)
    offered = episodes_of(study)
    told = {setting["name"]: setting for setting in record["results"]["settings"]}
    assert tuple(told) == offered.names
    assert record["results"]["metrics"] == dict(offered.metrics)
    assert all(setting["meaning"] for setting in told.values())
    # what is said to be the default is: to name it changes nothing
    for name, setting in told.items():
        if setting["default"] is not None:
            assert offered.settings(**{name: setting["default"]}) == offered.settings(), name
    page = here("sweep", "settings", study)
    assert page.code == 0
    assert all(name in page.out for name in (*told, *offered.metrics))


def test_what_is_left_is_told_from_what_was_done():
    assert left(2.0, 50, 100) == left(60.0, 1, 100) == ""  # nothing is known yet
    assert left(60.0, 50, 100) == f"about {duration(60.0)} left"
    assert left(60.0, 100, 100) == ""


def test_parts_of_the_work_add_up():
    seen = []
    add = accumulating(lambda *step: seen.append(step), 5)
    add(2, "a")
    add(3, "b")
    assert seen == [("a", 1, 5), ("b", 4, 5)]
