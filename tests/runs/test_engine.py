"""Where work is done: what is said when it is lost."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from policychord.runs import engine
from policychord.runs.engine import _WorkerError, dask_cluster

ROOT = Path(__file__).parents[2]


WITHOUT_POLICYCHORD = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "policychord":
            raise ModuleNotFoundError("No module named 'policychord'", name="policychord")

sys.meta_path.insert(0, Hidden())
"""


class Dask:
    """A scheduler of Dask and its workers, each in a process of its own."""

    def __init__(self, folder):
        self.folder, self.started = folder, []
        self.file = folder / "scheduler.json"
        self.scheduler = self.start("scheduler", "--port", "0")
        while not (self.file.exists() and self.file.read_text()):
            time.sleep(0.05)
        self.address = json.loads(self.file.read_text())["address"]

    def start(self, what, *more, **options):
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--scheduler-file", str(self.file)]
        process = subprocess.Popen([*command, "--no-dashboard", *more], stderr=-3, **options)
        self.started.append(process)
        return process

    def end(self):
        for process in self.started:
            process.kill()
            process.wait()

    def worker(self):
        return self.start("worker", "--nthreads", "1", "--no-nanny")

    def worker_without_policychord(self):
        (self.folder / "sitecustomize.py").write_text(WITHOUT_POLICYCHORD)
        hidden = os.environ | {"PYTHONPATH": str(self.folder)}
        return self.start("worker", "--nthreads", "1", "--no-nanny", "--name", "bare", env=hidden, cwd=self.folder)


@pytest.fixture
def dask(tmp_path):
    made = Dask(tmp_path)
    yield made
    made.end()


def test_a_scheduler_that_dies_is_named_with_the_way_on(dask):
    dask.worker()
    said = rf"the Dask scheduler at {dask.address} has ended .* finished batches are kept\. Run the same command again"
    with pytest.raises(_WorkerError, match=said):
        sleep_through(dask.address, dask.scheduler.pid)


def sleep_through(address, scheduler):
    with dask_cluster(address, 1) as cluster:
        assert cluster.workers == 1
        waiting = cluster.pool.submit(time.sleep, 600)
        os.kill(scheduler, signal.SIGKILL)
        waiting.result(timeout=300)


def test_its_death_is_one_sentence_and_no_traceback(dask):
    """Dask itself would print two, and that it could not reconnect."""
    dask.worker()
    code = (
        "import sys; from tests.runs.test_engine import sleep_through\n"
        "try: sleep_through(sys.argv[1], int(sys.argv[2]))\n"
        "except OSError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, dask.address, str(dask.scheduler.pid)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.startswith(f"the Dask scheduler at {dask.address} has ended")
    assert done.stderr == ""


def test_a_scheduler_without_workers_says_so_and_waits(dask, capfd):
    with dask_cluster_later(dask) as cluster:
        assert cluster.workers == 1
    said = capfd.readouterr().err
    assert f"the Dask scheduler at {dask.address} has no workers yet; waiting for one for up to 600 s" in said
    assert f"dask worker {dask.address} --nthreads 1" in said


@contextmanager
def dask_cluster_later(dask):
    late = threading.Timer(6.0, dask.worker)
    late.start()
    with dask_cluster(dask.address, 1) as cluster:
        yield cluster
    late.join()


def test_waiting_for_workers_ends(dask, monkeypatch):
    monkeypatch.setattr(engine, "WITHOUT_WORKERS", 0.2)
    monkeypatch.setattr(engine, "MOST_WITHOUT_WORKERS", 0.5)
    with pytest.raises(
        _WorkerError, match=rf"scheduler at {dask.address} has had no workers for 0\.5 s: nothing was done"
    ):
        dask_cluster(dask.address, 1).__enter__()


def test_a_worker_without_policychord_is_named(dask):
    dask.worker_without_policychord()
    with pytest.raises(
        _WorkerError, match=r"^the Dask worker at tcp://\S+ has no policychord .*install policychord \d"
    ):
        dask_cluster(dask.address, 1).__enter__()


def test_a_scheduler_without_policychord_is_named(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_POLICYCHORD)
    with monkeypatch.context() as hidden:
        hidden.setenv("PYTHONPATH", str(tmp_path))
        made = Dask(tmp_path)
    try:
        made.worker()
        with pytest.raises(
            _WorkerError, match=rf"scheduler at {made.address} has no policychord.*install policychord \d"
        ):
            count_cores(made.address)
    finally:
        made.end()


def count_cores(address):
    with dask_cluster(address, 1) as cluster:
        cluster.pool.submit(engine.available_cores).result(timeout=60)


def test_a_worker_whose_main_process_died_before_it_began_ends(monkeypatch):
    ended = []
    monkeypatch.setattr(engine.os, "_exit", ended.append)
    engine._exit_with_parent(parent=-1)  # nobody's child is ours
    assert ended == [1]


def test_workers_know_the_process_that_started_them(tmp_path):
    with engine.processes(1, tmp_path / "log.txt") as pool:
        assert pool._initargs == (str(tmp_path / "log.txt"), os.getpid())


def test_a_scheduler_that_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"--scheduler tcp://127\.0\.0\.1:9: no scheduler answers there"):
        dask_cluster("tcp://127.0.0.1:9", 1).__enter__()
