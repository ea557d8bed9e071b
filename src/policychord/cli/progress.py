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
    shown = f"{max(done, 0)}%" if total == 100 else f"{done + 1}/{total}"
    print(f"[{shown}] {words}", file=sys.stderr, flush=True)


def left(elapsed: float, done: int, total: int) -> str:
    """How long the rest takes if it goes on as it went, once that is known."""
    from ..runs import duration

    if not 0.05 * total < done < total or elapsed < 3:
        return ""
    return f"about {duration(elapsed * (total - done) / done)} left"


def accumulating(watch: "Watch", total: int) -> Callable[[int, str], None]:
    """A function to call when some of the work is done: how much of it, and what that was."""
    done = 0

    def add(much: int, words: str) -> None:
        nonlocal done
        done += much
        watch(words, done - 1, total)

    return add
