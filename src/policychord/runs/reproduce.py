"""Reproducing studies: do their work side by side, judge their claims, draw their figures, keep everything.

A step's result is on disk as soon as the step is done, so a run that was stopped goes on where it was.
"""

import shutil
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from ..studies.claim import judge
from ..studies.drawing import styled
from ..studies.study import Study
from .cache import FOLDER, MissingError, Result, forget_others, load, places, save
from .engine import processes
from .records import Chapter, Drawn
from .store import prepare, save_figure, write_dataset

FINISH = "judge, draw, write"
# How a study fails on results of another form than its steps return. If an earlier run left them, they are made again.
MISFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class Chosen(NamedTuple):
    """A study and what it was told."""

    study: Study[Any, Any]
    settings: Any


class Task(NamedTuple):
    """A study, what it was told, and the file for the result of each step."""

    study: Study[Any, Any]
    settings: Any
    files: dict[str, Path]


class Finished(NamedTuple):
    """The result of the last step: the chapter, and the bytes of every figure and dataset that belongs to it."""

    chapter: Chapter
    sizes: dict[str, int]


class Done(NamedTuple):
    """A step that is done: for whom, how long it took, and whether an earlier run had done it."""

    study: str
    step: str
    seconds: float
    reused: bool


class Run(NamedTuple):
    """What studies found, in the order in which they were asked for, and every step that it took."""

    chapters: list[Chapter]
    steps: list[Done]


Watcher = Callable[[Done], None]


def steps_of(chosen: Chosen) -> list[str]:
    """The names of all steps, the last being the one that needs all others."""
    return [*chosen.study.experiments(chosen.settings), FINISH]


def reproduce(
    all_chosen: Sequence[Chosen],
    out: Path,
    *,
    workers: int = 1,
    fresh: bool = False,
    watch: Watcher = lambda done: None,
) -> Run:
    """Do what is not done yet, in `workers` processes, and write figures and datasets into `out`."""
    prepare(out / FOLDER)
    if fresh:
        for chosen in all_chosen:
            shutil.rmtree(out / FOLDER / chosen.study.name, ignore_errors=True)
    done: list[Done] = []

    def tell(item: Done) -> None:
        done.append(item)
        watch(item)

    # files are named here: a worker that reads other sources than we did must not look elsewhere
    tasks = [Task(*chosen, places(out, chosen.study.name, steps_of(chosen), chosen.settings)) for chosen in all_chosen]
    missing = {task.study.name: _missing(task, out, tell) for task in tasks}
    if any(missing.values()):
        with processes(workers, out / FOLDER / "log.txt") as pool:
            _work(pool, workers, tasks, missing, out, tell)
    for task in tasks:
        forget_others(out, task.study.name, task.files.values())
    return Run([load(task.files[FINISH]).value.chapter for task in tasks], done)


def _missing(task: Task, out: Path, tell: Watcher) -> list[str]:
    """Steps that no earlier run has done; those that one has are told."""
    lacking: list[str] = []
    for step, path in task.files.items():
        try:
            value, seconds = load(path)
            if step == FINISH and (lacking or not _complete(value, out)):
                raise MissingError(step)
        except MissingError:
            lacking.append(step)
        else:
            tell(Done(task.study.name, step, seconds, reused=True))
    return lacking


def _complete(value: Any, out: Path) -> bool:
    """Whether this is what `finish` writes, and every file that belongs to it is there as a whole."""
    try:
        TypeAdapter(Finished).validate_python(value)
    except ValidationError:
        return False
    return all(_size(out / path) == size for path, size in value.sizes.items())


def _size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder; -1 if it is not there."""
    try:
        return sum(map(_size, path.iterdir())) if path.is_dir() else path.stat().st_size
    except OSError:
        return -1


def _work(
    pool: Executor,
    workers: int,
    tasks: Sequence[Task],
    missing: Mapping[str, list[str]],
    out: Path,
    tell: Watcher,
) -> None:
    """Steps in their order; a study that has all of them is finished next, so that no long step is left for the end."""
    by_name = {task.study.name: task for task in tasks}
    left = {name: {step for step in steps if step != FINISH} for name, steps in missing.items()}
    reused = {name: by_name[name].files.keys() - left[name] - {FINISH} for name in missing}
    waiting = deque((name, step) for name, steps in missing.items() for step in steps if step != FINISH)
    waiting.extendleft((name, FINISH) for name, steps in missing.items() if steps == [FINISH])
    running: dict[Future[float], tuple[str, str]] = {}
    while waiting or running:
        while waiting and len(running) < workers:
            name, step = waiting.popleft()
            running[_submit(pool, by_name[name], step, out)] = (name, step)
        ready, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in ready:
            name, step = running.pop(future)
            if step == FINISH and reused[name] and isinstance(future.exception(), MISFIT):
                left[name], reused[name] = set(reused[name]), set()
                waiting.extendleft((name, again) for again in left[name])
                continue
            tell(Done(name, step, future.result(), reused=False))
            left[name].discard(step)
            if step != FINISH and not left[name]:
                waiting.appendleft((name, FINISH))


def _submit(pool: Executor, task: Task, step: str, out: Path) -> "Future[float]":
    if step == FINISH:
        return pool.submit(finish, task, out)
    return pool.submit(do_step, task, step)


def do_step(task: Task, step: str) -> float:
    """One step, in a worker: its result goes to disk, its duration to whoever waits."""
    began = time.perf_counter()
    value = task.study.experiments(task.settings)[step]()
    seconds = round(time.perf_counter() - began, 3)
    save(task.files[step], step, Result(value, seconds))
    return seconds


def finish(task: Task, out: Path) -> float:
    """Claims, figures, datasets and findings of a study whose steps are done."""
    began = time.perf_counter()
    results = {step: load(path).value for step, path in task.files.items() if step != FINISH}
    chapter = chapter_of(task.study, task.settings, task.study.evidence(task.settings, results), out)
    files = [path for figure in chapter.figures for path in (figure.svg, figure.png)]
    finished = Finished(chapter, {path: _size(out / path) for path in [*files, *chapter.data]})
    seconds = round(time.perf_counter() - began, 3)
    save(task.files[FINISH], FINISH, Result(finished, seconds))
    return seconds


def shown_settings(settings: Any) -> dict[str, Any]:
    """Settings for readers elsewhere: of a folder they are told the name, not where it is on this machine."""
    folders = {name: value.name for name, value in dict(settings).items() if isinstance(value, Path)}
    return settings.model_dump(mode="json") | folders


def chapter_of(study: Study[Any, Any], settings: Any, evidence: Any, out: Path) -> Chapter:
    """Judge, draw and write."""
    claims = [judge(claim, settings, evidence) for claim in study.claims]
    figures = []
    for name, figure in study.figures.items():
        stem = out / "figures" / study.name / name
        svg, png = (
            path.relative_to(out).as_posix() for path in save_figure(stem, styled(figure.draw, settings, evidence))
        )
        figures.append(Drawn(name, svg, png, figure.caption, figure.claims))
    data = [
        write_dataset(out / "data" / study.name / f"{name}.zarr", dataset).relative_to(out).as_posix()
        for name, dataset in study.datasets(settings, evidence).items()
    ]
    return Chapter(
        study=study.name,
        title=study.title,
        introduction=study.introduction,
        settings=shown_settings(settings),
        source=getattr(settings, "source", ""),
        claims=claims,
        figures=figures,
        controls=list(study.controls(settings, evidence)),
        findings=list(study.findings(settings, evidence)),
        data=data,
    )
