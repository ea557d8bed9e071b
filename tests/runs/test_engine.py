"""Where work is done: what is said when it is lost."""

import json
import os
import subprocess
import sys
import time

import pytest

from policychord.runs import engine
from policychord.runs.engine import WorkerError, dask_cluster


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler of Dask with one worker, each in a process of its own: its address and its process."""
    file = tmp_path / "scheduler.json"
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    started = [
        subprocess.Popen([sys.executable, "-m", f"distributed.cli.dask_{what}", *common, *more], stderr=-3)
        for what, more in (("scheduler", ["--port", "0"]), ("worker", ["--nthreads", "1", "--no-nanny"]))
    ]
    try:
        while not (file.exists() and file.read_text()):
            time.sleep(0.05)
        yield json.loads(file.read_text())["address"], started[0]
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_a_scheduler_that_dies_is_named_with_the_way_on(scheduler):
    address, process = scheduler
    said = rf"the Dask scheduler at {address} has ended .* finished batches are kept\. Run the same command again"
    with pytest.raises(WorkerError, match=said):
        sleep_through(address, process)


def sleep_through(address, process):
    with dask_cluster(address, 1) as cluster:
        assert cluster.workers == 1
        waiting = cluster.pool.submit(time.sleep, 600)
        process.kill()
        waiting.result(timeout=300)


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
