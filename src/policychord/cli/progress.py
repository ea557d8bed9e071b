"""How far the work is: a bar for people, lines for logs, on standard error, so that results stay clean."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from .._types import Watch


@contextmanager
def watching() -> "Iterator[Watch]":
    """A function to call with what is done next, how many steps are done, and of how many."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _line
        return
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", style="dim"),
    )  # fmt: skip
    width = max(min(console.width - 45, 60), 10)  # what the bar and the counts leave
    begin = time.monotonic()
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("starting", total=None, left="")

        def watch(words: str, done: int, total: int) -> None:
            shown = words if len(words) <= width else words[: width - 1] + "…"
            rest = left(time.monotonic() - begin, done, total)
            progress.update(bar, description=shown.ljust(width), completed=done, total=total, left=rest)

        yield watch


def _line(words: str, done: int, total: int) -> None:
    shown = f"{done}%" if total == 100 else f"{done + 1}/{total}"
    print(f"[{shown}] {words}", file=sys.stderr, flush=True)


def left(elapsed: float, done: int, total: int) -> str:
    """How long the rest takes if it goes on as it went, once that can be told."""
    from ..runs import duration

    if done < 0.05 * total or elapsed < 3:
        return ""
    return f"about {duration(max(1.0, elapsed * (total - done) / done))} left"


class Pace:
    """How long the rest of a sweep takes, from the episodes that are done.

    The first batch of each worker may compile, so it tells nothing.
    """

    def __init__(self, total: int, workers: int, clock: Callable[[], float] = time.monotonic):
        self.total, self.done, self.batches = total, 0, 0
        self._workers, self._clock = workers, clock
        self._from = (clock(), 0)  # when, and after how many episodes, everybody had compiled
        self._last = self._from

    def add(self, episodes: int) -> None:
        """A batch is done."""
        self.done, self.batches = self.done + episodes, self.batches + 1
        self._last = (self._clock(), self.done)
        if self.batches <= self._workers:
            self._from = self._last

    def left(self) -> float | None:
        """Seconds, counted down between batches; None as long as it is unknown."""
        seconds, episodes = self._last[0] - self._from[0], self._last[1] - self._from[1]
        if episodes == 0 or seconds <= 0:
            return None
        return max(0.0, (self.total - self.done) * seconds / episodes - (self._clock() - self._last[0]))
