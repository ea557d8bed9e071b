"""Sweeps: compute the batches that are missing, wherever there are workers, and keep each as soon as it is there.

A folder holds plan.json, a Parquet file for each finished batch and, if wanted, trajectories. A batch is there as a
whole or not at all, its name says what it depends on, and no other process writes it: a restart redoes what is missing.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from .._files import PART
from ..drawing import styled
from .engine import run_tasks
from .plan import (
    Batch,
    Computed,
    SweepPlan,
    batches_of,
    check_plan,
    compute,
    modules_of,
    points_of,
    read_sweep_plan,
    run_span,  # fmt: skip
)
from .store import prepare, save_figure, write_dataset, write_json, write_table
from .versions import code_version

PLAN, BATCHES, TRAJECTORIES = "plan.json", "batches", "trajectories"
_SHOWN = 3  # stray files that are named; the rest are counted
ALL = slice(None)


class _Status(NamedTuple):
    """How far a sweep is."""

    batches: int
    done: int
    episodes: int
    done_episodes: int
    outdated: int  # batches of this plan that another version of the code has made
    stray: tuple[str, ...]  # names of files that are no batches of this plan; they do not count


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


def missing(plan: SweepPlan, out: Path, shard: slice = ALL) -> list[Batch]:
    """Batches that are not there yet, of all or of those that one job of an array does."""
    return [batch for batch in batches_of(plan)[shard] if not _is_whole(_file(out, batch))]


def run_batches(
    plan: SweepPlan, out: Path, pool: Executor, workers: int, todo: Iterable[Batch], watch: Callable[[Batch], None]
) -> None:
    """Compute batches on a pool and write each when it comes back."""
    tasks, version = ((batch, (plan, batch)) for batch in todo), _version_of(plan)
    for batch, computed in run_tasks(pool, workers, modules_of(plan), compute, tasks):
        _keep(out, batch, computed, version)
        watch(batch)


def _version_of(plan: SweepPlan) -> str:
    """The version of the code that the episodes of a plan depend on."""
    return code_version(*modules_of(plan))


def _keep(out: Path, batch: Batch, computed: Computed, version: str) -> None:
    """Trajectories first: where the table is, all of the batch is."""
    for name, dataset in computed.trajectories.items():
        write_dataset(out / TRAJECTORIES / f"{name}-{batch.id}.zarr", dataset)
    table = computed.table.copy()
    table.attrs["code"] = version  # goes into the file with it
    write_table(_file(out, batch), table)


def _files(plan: SweepPlan, out: Path) -> tuple[dict[str, dict[Path, Batch]], tuple[str, ...]]:
    """(batches by the version of the code that made them, names of files that are none of the plan's).

    The plan and the version that a file says it is from give its name, so that neither a copy nor a file of another
    sweep can count.
    """
    present = _version_of(plan)
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
            stray.append(path.name)
        elif _is_whole(path):
            versions.setdefault(version, {})[path] = named[version][path.name]
    return versions, tuple(stray)


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
    batches, (versions, stray) = batches_of(plan), _files(plan, out)
    done = versions.pop(_version_of(plan), {}).values()
    asked, made = (sum(batch.episodes for batch in some) for some in (batches, done))
    return _Status(len(batches), len(done), asked, made, sum(map(len, versions.values())), stray)


class _Results(NamedTuple):
    """Every finished episode, ordered by point and episode, and notes about them."""

    table: pd.DataFrame
    notes: list[str]


def results(plan: SweepPlan, out: Path) -> _Results:
    """What is there: of this version of the code or, if it has made nothing, of the one that made most."""
    versions, stray = _files(plan, out)
    if not versions:
        raise ValueError(f"{out} has no finished batch: policychord sweep run makes some.")
    present = _version_of(plan)
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
        notes.append(name_stray(stray))
    return _Results(table, notes)


def name_stray(names: Sequence[str]) -> str:
    """Which files are no batches of the sweep."""
    shown = ["".join(c if c.isprintable() else "?" for c in name)[:80] for name in names[:_SHOWN]]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (
        f"Not counted, because the plan does not name them: {', '.join(shown)}{more} in {BATCHES}. Move them elsewhere."
    )


class _Rerun(NamedTuple):
    """An episode of a sweep, run again."""

    metrics: dict[str, float]
    files: list[Path]


def rerun_episode(plan: SweepPlan, point: int, episode: int, out: Path) -> _Rerun:
    """Run one episode again, bit for bit as in the sweep, and write all of it: data, settings and metrics, a figure.

    Its neighbours are computed too: sums are taken in another order in a batch of another size, and a flock is chaotic.
    """
    points = points_of(plan)
    if not (0 <= point < len(points) and 0 <= episode < plan.episodes):
        raise ValueError(
            f"episode {point}/{episode}: points are 0 to {len(points) - 1}, episodes 0 to {plan.episodes - 1}."
        )
    span = next(
        span for batch in batches_of(plan) for span in batch.spans
        if span.point == point and span.first <= episode < span.first + span.size
    )  # fmt: skip
    settings, measured = run_span(plan, points, span)
    place = episode - span.first
    metrics = {name: float(np.asarray(values)[place]) for name, values in measured.metrics.items()}
    files = [
        write_dataset(out / "data.zarr", measured.dataset([place])),
        write_json(out / "episode.json", {"settings": settings, "metrics": metrics}),
        *save_figure(out / "episode", styled(measured.draw, place)),
    ]
    return _Rerun(metrics, files)


def differing(plan: SweepPlan, out: Path, point: int, episode: int, rerun: _Rerun) -> list[str]:
    """A note if the sweep had found other numbers for an episode that was run again."""
    if not _files(plan, out)[0]:
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
