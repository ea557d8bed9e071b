"""Sweeps: compute the batches that are missing, wherever there are workers, and keep each as soon as it is there.

A folder holds plan.json, a Parquet file for each finished batch and, if wanted, trajectories. A batch is there as a
whole or not at all, its name says what it depends on, and no other process writes it: a restart redoes what is missing.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from ..studies.drawing import styled
from .batches import Batch, Computed, again, batches_of, check, compute
from .cache import code_version
from .engine import begin
from .plan import Plan, points_of, read_plan
from .store import prepare, save_figure, write_dataset, write_json, write_table

PLAN, BATCHES, TRAJECTORIES = "plan.json", "batches", "trajectories"
AHEAD = 4  # batches for each worker that wait in the queue: enough to stay busy, few enough to be told of


class Status(NamedTuple):
    """How far a sweep is."""

    batches: int
    done: int
    episodes: int
    done_episodes: int
    outdated: int  # files of batches that this plan, or this version of the code, does not ask for


class Shard(NamedTuple):
    """Every `of`-th batch, beginning with number `number` (from 0): the share of one job of an array."""

    number: int = 0
    of: int = 1

    def mine(self, batches: Sequence[Batch]) -> list[Batch]:
        return list(batches[self.number :: self.of])


WHOLE = Shard()
Watcher = Callable[[Batch], None]


def open_sweep(plan: Plan, out: Path) -> None:
    """Make the folder of a sweep, or find that it is the folder of this plan."""
    check(plan)
    prepare(out / BATCHES)
    given = plan.model_dump(mode="json")
    if (out / PLAN).exists():
        there = load_plan(out)
        if there != plan:
            differing = [name for name in given if getattr(there, name) != getattr(plan, name)]
            raise ValueError(
                f"{out} holds the sweep of another plan (they differ in {', '.join(differing)}): "
                "choose another folder with --out, or remove this one."
            )
    else:
        write_json(out / PLAN, given)


def load_plan(out: Path) -> Plan:
    """The plan of a folder."""
    if not (out / PLAN).is_file():
        raise ValueError(f"{out} is not the folder of a sweep (no {PLAN}): begin one with  policychord sweep run")
    try:
        return read_plan(out / PLAN)
    except ValueError as error:
        raise ValueError(f"{error} Restore it, or begin in another folder.") from None


def missing(plan: Plan, out: Path, shard: Shard = WHOLE) -> list[Batch]:
    """Batches that are not there yet."""
    return [batch for batch in shard.mine(batches_of(plan)) if not _is_whole(_file(out, batch))]


def run(plan: Plan, out: Path, pool: Executor, workers: int, todo: Iterable[Batch], watch: Watcher) -> None:
    """Compute batches on a pool and write each when it comes back."""
    waiting, running = list(todo)[::-1], dict["Future[Computed]", Batch]()
    version = code_version()
    while waiting or running:
        while waiting and len(running) < AHEAD * workers:
            batch = waiting.pop()
            running[pool.submit(_compute, plan, batch, version)] = batch
        ready, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in ready:
            batch = running.pop(future)
            keep(out, batch, future.result())
            watch(batch)


def _compute(plan: Plan, batch: Batch, version: str) -> Computed:
    """In a worker, which may be elsewhere and have another version of the code."""
    if code_version() != version:
        raise ValueError(
            "a worker runs another version of policychord, or of a package that computes, than this program: install "
            "the same ones for both and start the workers again."
        )
    begin()  # it may have joined after the others were set up
    return compute(plan, batch)


def keep(out: Path, batch: Batch, computed: Computed) -> None:
    """Trajectories first: where the table is, all of the batch is."""
    for name, dataset in computed.trajectories.items():
        write_dataset(out / TRAJECTORIES / f"{name}-{batch.id}.zarr", dataset)
    table = computed.table.copy()
    table.attrs["code"] = code_version()  # goes into the file with it
    write_table(_file(out, batch), table)


def status(plan: Plan, out: Path) -> Status:
    """How far the sweep in a folder is."""
    batches = batches_of(plan)
    there = {path.name for path in (out / BATCHES).glob("*.parquet") if _is_whole(path)}
    done = [batch for batch in batches if _file(out, batch).name in there]
    asked, made = (sum(batch.episodes for batch in some) for some in (batches, done))
    return Status(len(batches), len(done), asked, made, outdated=len(there) - len(done))


class Results(NamedTuple):
    """Every finished episode, ordered by point and episode, and what should be said of them."""

    table: pd.DataFrame
    notes: list[str]


def results(plan: Plan, out: Path) -> Results:
    """What is there: of this version of the code or, if it has made nothing, of the one that made most."""
    versions: dict[str, list[pd.DataFrame]] = {}
    for path in sorted(filter(_is_whole, (out / BATCHES).glob("*.parquet"))):
        table = _read(path, plan)
        versions.setdefault(str(table.attrs.get("code", "")), []).append(table)
    if not versions:
        raise ValueError(f"{out} has no finished batch: policychord sweep run makes some.")
    present = code_version()
    chosen = present if present in versions else max(versions, key=lambda code: sum(map(len, versions[code])))
    table = pd.concat(versions[chosen]).sort_values(["point", "episode"], ignore_index=True)
    notes, wanted = [], len(points_of(plan)) * plan.episodes
    if len(table) < wanted:
        notes.append(f"Only {len(table):,} of {wanted:,} episodes are done.")
    if chosen != present:
        notes.append("These episodes were computed by another version of the code or of its packages.")
    return Results(table, notes)


class Rerun(NamedTuple):
    """An episode of a sweep, run again."""

    metrics: dict[str, float]
    files: list[Path]


def rerun(plan: Plan, point: int, episode: int, out: Path) -> Rerun:
    """Run one episode again and write all of it: data, settings and metrics, a figure."""
    found = again(plan, point, episode)
    record = {"settings": found.settings.model_dump(mode="json"), "metrics": found.metrics}
    files = [
        write_dataset(out / "data.zarr", found.measured.dataset([found.place])),
        write_json(out / "episode.json", record),
        *save_figure(out / "episode", styled(found.measured.draw, found.place)),
    ]
    return Rerun(found.metrics, files)


def differing(plan: Plan, out: Path, point: int, episode: int, found: Rerun) -> list[str]:
    """What to say if the sweep had found other numbers for an episode that was run again."""
    if not any((out / BATCHES).glob("*.parquet")):
        return []
    table = results(plan, out).table
    lines = table[(table.point == point) & (table.episode == episode)].to_dict("records")
    if not lines:
        return ["The sweep has not come to this episode yet."]
    moved = [name for name in found.metrics if name in lines[0] and lines[0][name] != found.metrics[name]]
    if not moved:
        return ["Bit for bit what the sweep found."]
    were = ", ".join(f"{name} = {lines[0][name]:.6g}" for name in moved)
    return [f"The sweep had found {were}: it ran with other versions, or on another machine."]


def _is_whole(path: Path) -> bool:
    """Whether a batch is there to its end: Parquet begins and ends with the same four letters."""
    try:
        with open(path, "rb") as file:
            begins = file.read(4)
            file.seek(-4, os.SEEK_END)
            return begins == file.read(4) == b"PAR1"
    except OSError:
        return False


def _read(path: Path, plan: Plan) -> pd.DataFrame:
    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read ({error}): remove it, and  policychord sweep run  makes it.") from None
    if lacking := {"point", "episode", *plan.axes} - set(table.columns):
        raise ValueError(f"{path} is no batch of this sweep (no {', '.join(sorted(lacking))}): remove it.")
    return table


def _file(out: Path, batch: Batch) -> Path:
    return out / BATCHES / f"{batch.id}.parquet"
