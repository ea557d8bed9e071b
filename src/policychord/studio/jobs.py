"""Long computations in threads of their own: a page answers messages meanwhile, and drops what nobody waits for."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from typing import Any

from .memory import release_memory

LONG = 1.0  # s, after which a job has probably compiled something
PATIENCE = 0.02  # s that a page waits for an answer before it looks for messages


class StoppedError(Exception):
    """Raised inside a job that was stopped, at its next step."""


class Job:
    """`function(watch, *arguments)` in a thread. `watch(words, done, total)` tells how far it is, and stops it."""

    def __init__(self, function: Callable[..., Any], *arguments: Any):
        self._work = (function, *arguments)
        self._stopped = threading.Event()
        self._later: Future[Any] = Future()
        self.progress: tuple[str, int, int] = ("", 0, 0)
        threading.Thread(target=self._run, name="studio-job", daemon=True).start()

    def _run(self) -> None:
        function, *arguments = self._work
        begun = time.monotonic()
        try:
            self._later.set_result(function(self._watch, *arguments))
        except BaseException as error:
            self._later.set_exception(error)
        if time.monotonic() - begun > LONG:
            release_memory()

    def _watch(self, words: str, done: int, total: int) -> None:
        if self._stopped.is_set():
            raise StoppedError
        self.progress = words, done, total

    def stop(self) -> None:
        """Let it end at its next step; its answer is not used."""
        self._stopped.set()

    def serves(self, *work: Any) -> bool:
        """Whether this is the work that it does, with these very inputs."""
        same = len(work) == len(self._work) and all(a is b for a, b in zip(work, self._work, strict=True))
        return same and not self._stopped.is_set()

    def ended(self) -> bool:
        return bool(wait_for([self._later], PATIENCE).done)

    def result(self) -> Any:
        """The answer; what the function raised is raised here."""
        return self._later.result()


def pursue(job: Job | None, function: Callable[..., Any], *arguments: Any) -> tuple[Job, bool]:
    """The job with these inputs, and whether it has ended.

    One with other inputs is stopped. The new one begins when that has ended, so jobs do not pile up.
    """
    if job is not None and not job.serves(function, *arguments):
        job.stop()
        if not job.ended():
            return job, False
        job = None
    job = job or Job(function, *arguments)
    return job, job.ended()
