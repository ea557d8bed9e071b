"""Where work is done, behind the interface of `concurrent.futures`: processes of this machine, or a Dask cluster."""

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from itertools import islice
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import loky
from loky.backend import resource_tracker as loky_tracker

from .. import __version__
from .store import is_alive
from .versions import code_version

Key = TypeVar("Key")
Returned = TypeVar("Returned")
AHEAD = 4  # tasks for each worker that wait in the queue: enough to stay busy, few enough to report
# One thread for each worker, whatever their number: sums are then taken in the same order, and results are the same bit
# for bit. A device is shared by all of them, so no worker takes all of its memory. Compiled programs stay in memory
# until a worker ends: loky would take them for a leak and replace it, and the next one would compile them again.
WORKER = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "LOKY_MAX_MEMORY_LEAK_SIZE": "3e9",
}
# Seconds that a Dask scheduler may have no workers: a message tells it, and later an error. Clusters take minutes to
# start machines.
WITHOUT_WORKERS, MOST_WITHOUT_WORKERS = 3.0, 600.0


class _WorkerError(OSError):
    """A worker died; the message says what is kept and what to do."""


def available_cores() -> int:
    """Cores that this process may use, which containers and job schedulers limit."""
    return loky.cpu_count()


def run_tasks(
    pool: Executor,
    workers: int,
    modules: Sequence[str],
    compute: Callable[..., Returned],
    tasks: Iterable[tuple[Key, tuple[Any, ...]]],
) -> Iterator[tuple[Key, Returned]]:
    """Compute tasks (key, arguments) on a pool: (key, what `compute` returned), as they are done.

    Workers must have the same code in these modules as this process.
    """
    version, running, left = code_version(*modules), dict[Future[Returned], Key](), iter(tasks)
    while True:
        for key, arguments in islice(left, AHEAD * workers - len(running)):
            running[pool.submit(_run_task, modules, version, compute, *arguments)] = key
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED)[0]:
            yield running.pop(future), future.result()


def _run_task(modules: Sequence[str], version: str, compute: Callable[..., Returned], *arguments: Any) -> Returned:
    """In a worker, which may be elsewhere, have joined late and have another version of the code."""
    if code_version(*modules) != version:
        raise ValueError(
            "a worker runs another version of policychord, or of a package that computes, than this program: install "
            "the same ones for both and start the workers again."
        )
    _begin_worker()
    return compute(*arguments)


@contextmanager
def processes(workers: int, log: Path) -> Iterator[Executor]:
    """Workers that are gone when the block is left, also when it is left by Ctrl-C. Their stderr goes to `log`."""
    _start_trackers()
    flags = " ".join(filter(None, [os.environ.get("XLA_FLAGS"), WORKER["XLA_FLAGS"]]))
    pool = _Pool(
        max_workers=workers, env=WORKER | {"XLA_FLAGS": flags}, initializer=_begin, initargs=(str(log), os.getpid())
    )
    try:
        yield pool
    except loky.process_executor.BrokenProcessPool as error:
        pool.shutdown(wait=True, kill_workers=True)
        raise _WorkerError(
            "a worker died, killed by the system or by hand (is there memory for all of them?): what was finished is "
            f"kept. Run the same command again to go on, with fewer --jobs if memory is short; {log} has its last "
            "words."
        ) from error
    except BaseException:
        pool.shutdown(wait=True, kill_workers=True)
        raise
    pool.shutdown()


def _start_trackers() -> None:
    """Start the processes that remove what workers leave behind, before there are workers.

    Python unblocks SIGINT when it starts its own, so that a worker started next would receive Ctrl-C. Ctrl-C pressed
    twice leaves semaphores to them: they remove these without a warning. Windows has neither.
    """
    if os.name == "nt":
        return
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [before, "ignore:resource_tracker"]))
    try:
        resource_tracker.ensure_running()
        loky_tracker.ensure_running()
    finally:
        del os.environ["PYTHONWARNINGS"]
        os.environ.update({} if before is None else {"PYTHONWARNINGS": before})


class _Pool(loky.ProcessPoolExecutor):
    """Its workers start with the first task that is submitted."""

    def submit(self, *task: Any, **named: Any) -> Any:
        with _block_sigint():
            return super().submit(*task, **named)


@contextmanager
def _block_sigint() -> Iterator[None]:
    """What is started within never receives Ctrl-C, also not before it is set up; this process gets it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Cluster(NamedTuple):
    """Workers of Dask: where to send work, how many they are, where they can be watched."""

    pool: Executor
    workers: int
    dashboard: str


@contextmanager
def dask_cluster(scheduler: str | None, workers: int) -> Iterator[_Cluster]:
    """Workers that a scheduler at an address has, or a cluster on this machine for as long as the block lasts."""
    try:
        from distributed import Client, LocalCluster
    except ModuleNotFoundError:
        raise ValueError("--engine dask needs Dask: pip install 'policychord[cluster]'") from None
    if scheduler is None:
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1) as own,
            Client(own) as client,
            _explain_lost_work("on this machine"),
        ):
            yield _joined(client, own.scheduler_address)
        return
    try:
        client = Client(scheduler, timeout="10s")
    except (OSError, ValueError) as error:
        raise ValueError(
            f"--scheduler {scheduler}: no scheduler answers there ({error}). Start one with  dask scheduler  and "
            f"workers with  dask worker {scheduler} --nthreads 1"
        ) from None
    with _without_tracebacks(), client, _explain_lost_work(f"at {scheduler}"):
        yield _joined(client, scheduler)


@contextmanager
def _without_tracebacks() -> Iterator[None]:
    """Keep Dask from printing how it failed to close what is gone already: one sentence says it."""
    loggers = [logging.getLogger(f"distributed.{name}") for name in ("client", "batched")]
    for logger in loggers:
        logger.addFilter(_is_news)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    from distributed.comm import CommClosedError

    lost = record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError | CommClosedError)
    return not (lost or record.getMessage().startswith("Failed to reconnect to scheduler"))


@contextmanager
def _explain_lost_work(which: str) -> Iterator[None]:
    """Say what it means when work is lost with a scheduler, or kills every worker that takes it up."""
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    rest = "finished batches are kept. Run the same command again to go on"
    try:
        yield
    except _WorkerError:
        raise
    except (CancelledError, CommClosedError) as error:
        raise _WorkerError(
            f"the Dask scheduler {which} has ended or cannot be reached any more: {rest}, once it is back."
        ) from error
    except KilledWorker as error:
        raise _WorkerError(
            f"a batch ended several workers of Dask one after another (is there memory for it?): {rest}, with a "
            "smaller batch in the plan or larger workers."
        ) from error
    except Exception as error:
        if not _is_missing_package(error):
            raise
        raise _WorkerError(
            f"the Dask scheduler {which} has no policychord, which it needs to hand work on: install policychord "
            f"{__version__} in its environment and start it again; {rest}."
        ) from error


def _is_missing_package(error: BaseException) -> bool:
    """Whether something could not be imported, of an error that may have lost its type on the way."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return any("No module named 'policychord" in str(link) for link in chain)


def _joined(client: Any, scheduler: str) -> _Cluster:
    _wait_for_workers(client, scheduler)
    began = client.run(_begin_worker, on_error="return")  # those that are there; tasks see to those that join later
    for address, error in began.items():
        if isinstance(error, BaseException):
            obstacle = "has no policychord" if _is_missing_package(error) else "cannot begin"
            raise _WorkerError(
                f"the Dask worker at {address} {obstacle} ({error}): install policychord {__version__} in its "
                "environment with what this one has, or end that worker."
            ) from error
    count = len(client.scheduler_info(n_workers=-1)["workers"])
    # the batches of a worker that dies are done by others; after three lost workers Dask gives a batch up
    return _Cluster(client.get_executor(pure=False), count, client.dashboard_link)


def _wait_for_workers(client: Any, scheduler: str) -> None:
    """Wait for the first worker, and print that it waits."""
    none, start = f"the Dask scheduler at {scheduler} has", f"Start some with  dask worker {scheduler} --nthreads 1"
    limit = f"{MOST_WITHOUT_WORKERS:g} s"
    try:
        client.wait_for_workers(1, timeout=WITHOUT_WORKERS)
    except TimeoutError:
        notice = f"policychord: {none} no workers yet; waiting for one for up to {limit}. {start}"
        print(notice, file=sys.stderr, flush=True)
        try:
            client.wait_for_workers(1, timeout=MOST_WITHOUT_WORKERS)
        except TimeoutError:
            raise _WorkerError(f"{none} had no workers for {limit}: nothing was done. {start}") from None


def _begin(log: str, parent: int) -> None:
    """Set up a worker of ours: the main process handles Ctrl-C and the screen."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with open(log, "a", encoding="utf-8") as file:
        os.dup2(file.fileno(), 2)
    threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()
    _begin_worker()


def _exit_with_parent(parent: int) -> None:
    """End when the main process is gone, which cannot say so when it is killed; it may be gone before this begins.

    Unix hands orphans to another parent; Windows goes on naming one that is gone.
    """
    while os.getppid() == parent and is_alive(parent):
        time.sleep(1.0)
    os._exit(1)


def _begin_worker() -> None:
    """Set up any process that computes, before it computes anything."""
    for name, value in WORKER.items():  # in a worker of somebody else's, who did not set these
        os.environ.setdefault(name, value)
    import jax

    from .compiled import keep_programs

    # certificates are honest in float64 only
    jax.config.update("jax_enable_x64", True)
    keep_programs()
