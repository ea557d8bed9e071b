"""Runs: nothing is done twice, nothing is lost, and the number of workers changes nothing."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from importlib import metadata
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
import pytest

import policychord
from policychord.runs import cache
from policychord.runs.engine import _WorkerError
from policychord_paper import load_study
from policychord_paper.reproduce import FINISH, Chosen, Run, environment, reproduce

from .toy import run


def contents(folder: Path) -> dict[str, bytes]:
    """Every file that a run leaves for people, by its path."""
    files = [path for path in folder.rglob("*") if path.is_file() and cache.FOLDER not in path.parts]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture
def diary(tmp_path):
    return tmp_path / "diary.txt"


class Begun(NamedTuple):
    """A folder in which a run has been, and the diary of what is done from now on."""

    out: Path
    diary: Path
    first: Run

    def again(self, **more) -> Run:
        return run(self.out, self.diary, **more)

    @property
    def noted(self) -> list[str]:
        return sorted(self.diary.read_text().split())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    begun = Begun(folder / "out", folder / "diary.txt", run(folder / "out", folder / "diary.txt", 2))
    assert begun.noted == ["first", "second", "third"]
    return begun


@pytest.fixture
def begun(whole, tmp_path):
    """A copy of the run; the diary, which is one of its settings, starts anew."""
    whole.diary.write_text("")
    return whole._replace(out=shutil.copytree(whole.out, tmp_path / "out"))


def test_a_run_leaves_claims_figures_data_and_words(whole):
    (chapter,), steps = whole.first
    assert [claim.id for claim in chapter.claims] == ["X1"]
    assert chapter.figures[0].claims == ("X1",)
    assert (chapter.title, chapter.findings[0].text, chapter.controls[0].measured) == ("A toy", "Nothing.", {"x": 1.0})
    for path in (chapter.figures[0].svg, chapter.figures[0].png, *chapter.data):
        assert (whole.out / path).exists()
    assert sorted(done.step for done in steps) == sorted(["first", "second", "third", FINISH])
    assert not any(done.reused for done in steps)


def test_the_environment_of_a_run_needs_no_installation(whole, monkeypatch):
    def none(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", none)
    monkeypatch.setattr(metadata, "requires", none)
    found = environment([], whole.first, workers=1, quick=True, seed=0, seconds=1.0)
    assert (found.policychord, found.packages, found.settings) == (policychord.__version__, {}, {})


def test_a_second_run_does_nothing_again(begun):
    before = contents(begun.out)
    second = begun.again()
    assert begun.noted == []
    assert second.chapters == begun.first.chapters
    assert all(done.reused for done in second.steps)
    assert contents(begun.out) == before


def test_fresh_does_everything_again(begun):
    begun.again(fresh=True)
    assert begun.noted == ["first", "second", "third"]


def test_another_seed_is_other_work(begun):
    second = begun.again(seed=1)
    assert begun.noted == ["first", "second", "third"]
    assert begun.first.chapters[0].claims != second.chapters[0].claims
    assert len(list((begun.out / cache.FOLDER / "toy").iterdir())) == 4, "what nobody asks for any more is dropped"


def test_what_was_deleted_or_cut_short_is_made_again_and_nothing_else(begun):
    figure = begun.out / "figures" / "toy" / "curve.svg"
    before = figure.read_bytes()
    figure.unlink()
    again = begun.again()
    assert figure.read_bytes() == before
    assert [done.step for done in again.steps if not done.reused] == [FINISH]
    assert begun.noted == []
    (path,) = (begun.out / cache.FOLDER / "toy").glob("first-*")
    path.write_bytes(path.read_bytes()[:50])
    begun.again()
    assert begun.noted == ["first"]


@pytest.mark.parametrize(
    ("name", "left"),
    [("figures/toy/curve.png", 0), ("figures/toy/curve.svg", 30), ("data/toy/draws.zarr/zarr.json", 0)],
)
def test_a_figure_or_dataset_that_was_cut_short_is_made_again(begun, name, left):
    file = begun.out / name
    before = file.read_bytes()
    file.write_bytes(before[:left])
    again = begun.again()
    assert file.read_bytes() == before
    assert [done.step for done in again.steps if not done.reused] == [FINISH]


@pytest.mark.parametrize(("step", "value"), [("second", np.zeros((2, 2, 2))), (FINISH, None), (FINISH, [[], {}])])
def test_a_result_of_another_form_is_made_again(begun, step, value):
    """A file may be well formed and still not hold what the step returns."""
    files = {path.name.partition("-")[0]: path for path in (begun.out / cache.FOLDER / "toy").iterdir()}
    files["judge"].unlink()
    cache.save_result(files[step.split(",")[0]], step, cache.Result(value, 0.0))
    again = begun.again()
    assert again.chapters == begun.first.chapters
    assert step in {done.step for done in again.steps if not done.reused}


def test_what_a_step_complains_of_is_said_and_the_rest_is_kept(tmp_path, diary):
    wanted, alive = tmp_path / "wanted", tmp_path / "alive"
    told = {"fail_without": str(wanted), "die_without": str(alive)}
    with pytest.raises(ValueError, match="make this file first"):
        run(tmp_path / "out", diary, **told)
    assert diary.read_text().split() == ["first"]
    wanted.touch()
    with pytest.raises(_WorkerError, match="Run the same command again"):  # and a worker that is killed
        run(tmp_path / "out", diary, **told)
    alive.touch()
    run(tmp_path / "out", diary, **told)
    assert sorted(diary.read_text().split()) == ["first", "second", "third"]


@pytest.mark.parametrize(
    "how", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.thorough)], ids=["Ctrl-C", "kill"]
)
def test_a_run_that_is_stopped_takes_its_workers_along_and_keeps_what_was_done(tmp_path, diary, how):
    wanted = tmp_path / "wanted"
    command = [sys.executable, "-m", "tests.paper.toy", str(tmp_path / "out"), str(diary), str(wanted)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=Path(__file__).parents[2],
        # a test run in the background ignores SIGINT, and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler), start_new_session=True,
    ) as process:  # fmt: skip
        done = {process.stdout.readline().strip() for _ in range(2)}  # the other one waits for a file
        assert done == {"first", "third"}
        family = psutil.Process(process.pid).children(recursive=True)
        if how == signal.SIGINT:
            os.killpg(process.pid, how)  # as a terminal does: everybody hears it
        else:
            process.kill()
        process.wait(timeout=60)
    gone, alive = psutil.wait_procs(family, timeout=30)
    # where nobody collects orphans, those that have ended stay on the list
    alive = [one for one in alive if one.status() != psutil.STATUS_ZOMBIE and "tracker" not in " ".join(one.cmdline())]
    assert process.returncode != 0
    assert not alive, f"{len(gone)} workers gone, others live on"
    wanted.touch()
    again = run(tmp_path / "out", diary, 2, wait_for=str(wanted))
    assert sorted(diary.read_text().split()) == ["first", "second", "third"]
    assert {done.step for done in again.steps if done.reused} == {"first", "third"}


def test_watchers_hear_of_steps_as_they_are_done(tmp_path, diary):
    wanted, heard = tmp_path / "wanted", []

    def watch(done):
        heard.append(done.step)
        if len(heard) == 2:  # nothing is left but the one that waits
            threading.Timer(0.1, wanted.touch).start()

    run(tmp_path / "out", diary, 2, wait_for=str(wanted), watch=watch)
    assert set(heard[:2]) == {"first", "third"}
    assert heard[2:] == ["second", FINISH]


def some(study, *names):
    """A study with a few of its steps, and nothing to judge or draw."""
    whole = study.experiments

    def nothing(settings, evidence):
        return {}

    return study._replace(
        experiments=lambda settings: {name: call for name, call in whole(settings).items() if name in names},
        evidence=nothing, claims=(), figures={}, datasets=nothing, controls=nothing, findings=nothing,
        objections=nothing, redraw=None,
    )  # fmt: skip


@pytest.mark.thorough
def test_the_number_of_workers_changes_no_bit_of_the_evidence(tmp_path):
    flock, bandit = load_study("flock"), load_study("bandit")
    short = flock.settings().model_copy(update={"goal_seeds": 2, "shorten": 0.02})
    few = bandit.settings().model_copy(update={"subjects": 6, "blocks": 4})
    chosen = [
        Chosen(some(flock, next(iter(flock.experiments(short)))), short),
        Chosen(some(bandit, "fit 1 probit", "temperature 2 probit"), few),
    ]
    for workers in (1, 2):
        reproduce(chosen, tmp_path / str(workers), workers=workers)
    names = [path.relative_to(tmp_path / "1") for path in sorted((tmp_path / "1").rglob("*.npz"))]
    assert len(names) == 5
    for name in names:
        one, two = (bits(cache.load_result(tmp_path / folder / name).value) for folder in ("1", "2"))
        assert one == two, name


def bits(value):
    """All that a value holds, down to the bytes of its arrays."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, dict):
        return {name: bits(part) for name, part in value.items()}
    return [bits(part) for part in value] if isinstance(value, tuple | list) else value


def test_the_number_of_workers_changes_no_bit_of_the_files(whole, tmp_path):
    run(tmp_path, whole.diary, 3)
    assert contents(tmp_path) == contents(whole.out)
