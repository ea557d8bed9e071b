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

from .._files import PART
from ..drawing import styled
from .batches import Batch, Computed, again, batches_of, check_plan, compute, version_of
from .engine import begin_worker
from .plan import SweepPlan, points_of, read_sweep_plan
from .store import prepare, save_figure, write_dataset, write_json, write_table

PLAN, BATCHES, TRAJECTORIES = "plan.json", "batches", "trajectories"
_SHOWN = 3  # stray files that are named; the rest are counted
AHEAD = 4  # batches for each worker that wait in the queue: enough to stay busy, few enough to be told of


class _Status(NamedTuple):
    """How far a sweep is."""

    batches: int
    done: int
    episodes: int
    done_episodes: int
    outdated: int  # batches of this plan that another version of the code has made
    stray: tuple[str, ...]  # names of files that are no batches of this plan; they do not count


class Shard(NamedTuple):
    """Every `of`-th batch, beginning with number `number` (from 0): the share of one job of an array."""

    number: int = 0
    of: int = 1

    def mine(self, batches: Sequence[Batch]) -> list[Batch]:
        return list(batches[self.number :: self.of])


WHOLE = Shard()
BatchWatcher = Callable[[Batch], None]


def open_sweep(plan: SweepPlan, out: Path) -> None:
    """Make the folder of a sweep, or find that it is the folder of this plan."""
    check_plan(plan)
    prepare(out / BATCHES)
    contents = plan.model_dump(mode="json")
    if (out / PLAN).exists():
        there = load_plan(out)
        if there != plan:
            differing = [name for name in contents if getattr(there, name) != getattr(plan, name)]
            raise ValueError(
                f"{out} holds the sweep of another plan (they differ in {', '.join(differing)}): "
                "choose another folder with --out, or remove this one."
            )
    else:
        write_json(out / PLAN, contents)


def load_plan(out: Path) -> SweepPlan:
    """The plan of a folder."""
    if not (out / PLAN).is_file():
        raise ValueError(f"{out} is not the folder of a sweep (no {PLAN}): begin one with  policychord sweep run")
    try:
        return read_sweep_plan(out / PLAN)
    except ValueError as error:
        raise ValueError(f"{error} Restore it, or begin in another folder.") from None


def missing(plan: SweepPlan, out: Path, shard: Shard = WHOLE) -> list[Batch]:
    """Batches that are not there yet."""
    return [batch for batch in shard.mine(batches_of(plan)) if not _is_whole(_file(out, batch))]


def run_batches(
    plan: SweepPlan, out: Path, pool: Executor, workers: int, todo: Iterable[Batch], watch: BatchWatcher
) -> None:
    """Compute batches on a pool and write each when it comes back."""
    waiting, running = list(todo)[::-1], dict["Future[Computed]", Batch]()
    version = version_of(plan)
    while waiting or running:
        while waiting and len(running) < AHEAD * workers:
            batch = waiting.pop()
            running[pool.submit(_compute, plan, batch, version)] = batch
        ready, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in ready:
            batch = running.pop(future)
            _keep(out, batch, future.result(), version)
            watch(batch)


def _compute(plan: SweepPlan, batch: Batch, version: str) -> Computed:
    """In a worker, which may be elsewhere and have another version of the code."""
    if version_of(plan) != version:
        raise ValueError(
            "a worker runs another version of policychord, or of a package that computes, than this program: install "
            "the same ones for both and start the workers again."
        )
    begin_worker()  # it may have joined after the others were set up
    return compute(plan, batch)


def _keep(out: Path, batch: Batch, computed: Computed, version: str) -> None:
    """Trajectories first: where the table is, all of the batch is."""
    for name, dataset in computed.trajectories.items():
        write_dataset(out / TRAJECTORIES / f"{name}-{batch.id}.zarr", dataset)
    table = computed.table.copy()
    table.attrs["code"] = version  # goes into the file with it
    write_table(_file(out, batch), table)


class _Files(NamedTuple):
    """What lies in the folder of batches."""

    versions: dict[str, dict[Path, Batch]]  # files that the plan names, by the version of the code that made them
    stray: list[Path]


def _files(plan: SweepPlan, out: Path) -> _Files:
    """Which file is which batch. The plan and the version that a file says it is from give its name, so that neither
    a copy nor a file of another sweep can count."""
    present = version_of(plan)
    named = {present: {f"{batch.id}.parquet": batch for batch in batches_of(plan, present)}}
    versions: dict[str, dict[Path, Batch]] = {}
    stray = []
    for path in sorted((out / BATCHES).glob("*")):
        if PART.fullmatch(path.name):  # being written
            continue
        version = present if path.name in named[present] else _made_by(path)
        if version and version not in named:
            named[version] = {f"{batch.id}.parquet": batch for batch in batches_of(plan, version)}
        if not version or path.name not in named[version]:
            stray.append(path)
        elif _is_whole(path):
            versions.setdefault(version, {})[path] = named[version][path.name]
    return _Files(versions, stray)


def _made_by(path: Path) -> str:
    """The version of the code that a batch says it was made by; none of what is no batch."""
    import pyarrow.parquet as pq

    try:
        about = (pq.read_schema(path).pandas_metadata or {}) if _is_whole(path) else {}
        return str(about.get("attributes", {}).get("code", ""))
    except Exception:  # a file that is no Parquet can fail in any way
        return ""


def sweep_status(plan: SweepPlan, out: Path) -> _Status:
    """How far the sweep in a folder is."""
    batches, files = batches_of(plan), _files(plan, out)
    done = list(files.versions.pop(version_of(plan), {}).values())
    asked, made = (sum(batch.episodes for batch in some) for some in (batches, done))
    outdated = sum(map(len, files.versions.values()))
    return _Status(len(batches), len(done), asked, made, outdated, tuple(path.name for path in files.stray))


class _Results(NamedTuple):
    """Every finished episode, ordered by point and episode, and what should be said of them."""

    table: pd.DataFrame
    notes: list[str]


def results(plan: SweepPlan, out: Path) -> _Results:
    """What is there: of this version of the code or, if it has made nothing, of the one that made most."""
    versions, stray = _files(plan, out)
    if not versions:
        raise ValueError(f"{out} has no finished batch: policychord sweep run makes some.")
    present = version_of(plan)
    chosen = present if present in versions else max(
        versions, key=lambda code: sum(batch.episodes for batch in versions[code].values())
    )  # fmt: skip
    tables = [_read(path, plan, batch) for path, batch in versions[chosen].items()]
    table = pd.concat(tables).sort_values(["point", "episode"], ignore_index=True)
    notes, wanted = [], len(points_of(plan)) * plan.episodes
    if len(table) < wanted:
        notes.append(f"Only {len(table):,} of {wanted:,} episodes are done.")
    if chosen != present:
        notes.append("These episodes were computed by another version of the code or of its packages.")
    if stray:
        notes.append(name_stray([path.name for path in stray]))
    return _Results(table, notes)


def name_stray(names: Sequence[str]) -> str:
    """Which files are no batches of the sweep."""
    shown = ", ".join(map(_quoted, names[:_SHOWN])) + (
        f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    )
    return f"Not counted, because the plan does not name them: {shown} in {BATCHES}. Move them elsewhere."


def _quoted(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name)[:80]


class _Rerun(NamedTuple):
    """An episode of a sweep, run again."""

    metrics: dict[str, float]
    files: list[Path]


def rerun_episode(plan: SweepPlan, point: int, episode: int, out: Path) -> _Rerun:
    """Run one episode again and write all of it: data, settings and metrics, a figure."""
    repeated = again(plan, point, episode)
    record = {"settings": repeated.settings.model_dump(mode="json"), "metrics": repeated.metrics}
    files = [
        write_dataset(out / "data.zarr", repeated.measured.dataset([repeated.place])),
        write_json(out / "episode.json", record),
        *save_figure(out / "episode", styled(repeated.measured.draw, repeated.place)),
    ]
    return _Rerun(repeated.metrics, files)


def differing(plan: SweepPlan, out: Path, point: int, episode: int, rerun: _Rerun) -> list[str]:
    """What to say if the sweep had found other numbers for an episode that was run again."""
    if not _files(plan, out).versions:
        return []
    table = results(plan, out).table
    lines = table[(table.point == point) & (table.episode == episode)].to_dict("records")
    if not lines:
        return ["The sweep has not come to this episode yet."]
    moved = [name for name in rerun.metrics if name in lines[0] and lines[0][name] != rerun.metrics[name]]
    if not moved:
        return ["Bit for bit what the sweep found."]
    were = ", ".join(f"{name} = {lines[0][name]:.6g}" for name in moved)
    return [f"The sweep had found {were}: it ran with other versions, or on another machine."]


def _is_whole(path: Path) -> bool:
    """Whether a batch is there to its end: Parquet begins and ends with the same four letters."""
    try:
        if not path.is_file():  # a pipe would never end
            return False
        with open(path, "rb") as file:
            begins = file.read(4)
            file.seek(-4, os.SEEK_END)
            return begins == file.read(4) == b"PAR1"
    except OSError:
        return False


def _read(path: Path, plan: SweepPlan, batch: Batch) -> pd.DataFrame:
    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read ({error}): remove it, and  policychord sweep run  makes it.") from None
    if lacking := {"point", "episode", *plan.axes} - set(table.columns):
        raise ValueError(f"{path} is no batch of this sweep (no {', '.join(sorted(lacking))}): remove it.")
    wanted = [(span.point, span.first + k) for span in batch.spans for k in range(span.size)]
    if list(zip(table["point"], table["episode"], strict=True)) != wanted:
        raise ValueError(f"{path} does not hold the {batch.episodes} episodes of its batch: remove it, and  "
                         "policychord sweep run  makes it.")  # fmt: skip
    return table


def _file(out: Path, batch: Batch) -> Path:
    return out / BATCHES / f"{batch.id}.parquet"
