"""Where the work of a command is done: processes of this machine, or a Dask cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from . import options
from .output import aside, counted

if TYPE_CHECKING:
    from concurrent.futures import Executor

EngineName = Literal["local", "dask"]
Engine = Annotated[
    EngineName, options.option("local: processes of this machine. dask: a cluster.", "NAME", "local", "--engine")
]
Scheduler = Annotated[
    str | None, options.option("Address of a Dask scheduler.", "ADDRESS", "a cluster on this machine", "--scheduler")
]
Workers = Annotated[
    int | None, options.option("Processes that work side by side.", "N", "one for each core", "--workers", min=1)
]


def check_engine(engine: EngineName, scheduler: str | None, workers: int | None) -> None:
    """Say which of the three options do not go together."""
    if scheduler and engine != "dask":
        raise typer.BadParameter("a scheduler is Dask's: add --engine dask.", param_hint="--scheduler")
    if scheduler and workers:
        raise typer.BadParameter("a scheduler has its own workers: leave --workers out.", param_hint="--workers")


@contextmanager
def start_workers(
    engine: EngineName, scheduler: str | None, workers: int | None, log: Path
) -> "Iterator[tuple[Executor, int]]":
    """A pool, and how many work in it; processes of this machine write to `log`."""
    from ..runs.engine import available_cores, dask_cluster, processes

    count = available_cores() if workers is None else workers
    if engine == "local":
        with processes(count, log) as pool:
            yield pool, count
    else:
        with dask_cluster(scheduler, count) as cluster:
            aside.print(f"{counted(cluster.workers, 'worker')}; dashboard: {cluster.dashboard}", soft_wrap=True)
            yield cluster.pool, cluster.workers
