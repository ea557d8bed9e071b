"""A bar for people, lines for logs; both on standard error, so that results stay clean."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def watching() -> Iterator[Callable[[str, int, int], None]]:
    """A function to be told what is done next, how many steps are done, and of how many."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _line
        return
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    width = max(min(console.width - 45, 60), 10)  # what the bar and the counts leave
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("starting", total=None)

        def watch(words: str, done: int, total: int) -> None:
            shown = words if len(words) <= width else words[: width - 1] + "…"
            progress.update(bar, description=shown.ljust(width), completed=done, total=total)

        yield watch


def _line(words: str, done: int, total: int) -> None:
    print(f"[{done + 1}/{total}] {words}", file=sys.stderr, flush=True)
