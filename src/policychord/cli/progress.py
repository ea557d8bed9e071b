"""A bar for people, lines for logs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def watching() -> Iterator[Callable[[str, int, int], None]]:
    """A function to be told what is done next, how many steps are done, and of how many."""
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("starting", total=None)

        def watch(words: str, done: int, total: int) -> None:
            progress.update(bar, description=f"{words:.60}".ljust(60), completed=done, total=total)
            if not progress.console.is_terminal:  # a log has no bar, so it gets lines
                print(f"[{done + 1}/{total}] {words}", file=sys.stderr, flush=True)

        yield watch
