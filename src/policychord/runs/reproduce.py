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

from ..studies.claim import judge
from ..studies.drawing import styled
from ..studies.study import Study
from .engine import processes
from .kept import FOLDER, MissingError, forget_others, keep, load, place
from .records import Chapter, Drawn
from .store import prepare, save_figure, write_dataset

FINISH = "judge, draw, write"


class Chosen(NamedTuple):
    """A study and what it was told."""

    study: Study
    settings: Any


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

    missing = {chosen.study.name: _missing(chosen, out, tell) for chosen in all_chosen}
    if any(missing.values()):
        with processes(workers, out / FOLDER / "log.txt") as pool:
            _work(pool, workers, all_chosen, missing, out, tell)
    for chosen in all_chosen:
        places = {place(out, chosen.study.name, step, chosen.settings) for step in steps_of(chosen)}
        forget_others(out, chosen.study.name, places)
    chapters = [load(place(out, study.name, FINISH, settings))[0] for study, settings in all_chosen]
    return Run(chapters, done)


def _missing(chosen: Chosen, out: Path, tell: Watcher) -> list[str]:
    """Steps that no earlier run has done; those that one has are told."""
    study, settings = chosen
    lacking: list[str] = []
    for step in steps_of(chosen):
        try:
            value, seconds = load(place(out, study.name, step, settings))
            if step == FINISH and (lacking or not _complete(value, out)):
                raise MissingError(step)
        except MissingError:
            lacking.append(step)
        else:
            tell(Done(study.name, step, seconds, reused=True))
    return lacking


def _complete(chapter: Chapter, out: Path) -> bool:
    files = [path for figure in chapter.figures for path in (figure.svg, figure.png)]
    return all((out / path).exists() for path in [*files, *chapter.data])


def _work(
    pool: Executor,
    workers: int,
    all_chosen: Sequence[Chosen],
    missing: Mapping[str, list[str]],
    out: Path,
    tell: Watcher,
) -> None:
    """Steps in their order; a study that has all of them is finished next, so that no long step is left for the end."""
    by_name = {chosen.study.name: chosen for chosen in all_chosen}
    left = {name: {step for step in steps if step != FINISH} for name, steps in missing.items()}
    waiting = deque((name, step) for name, steps in missing.items() for step in steps if step != FINISH)
    waiting.extendleft((name, FINISH) for name, steps in missing.items() if steps == [FINISH])
    running: dict[Future, tuple[str, str]] = {}
    while waiting or running:
        while waiting and len(running) < workers:
            name, step = waiting.popleft()
            running[_submitted(pool, by_name[name], step, out)] = (name, step)
        ready, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in ready:
            name, step = running.pop(future)
            tell(Done(name, step, future.result(), reused=False))
            left[name].discard(step)
            if step != FINISH and not left[name]:
                waiting.appendleft((name, FINISH))


def _submitted(pool: Executor, chosen: Chosen, step: str, out: Path) -> Future:
    study, settings = chosen
    # places are found here: a worker that reads other sources than we did must not look elsewhere
    places = {other: place(out, study.name, other, settings) for other in steps_of(chosen)}
    if step == FINISH:
        return pool.submit(finish, study, settings, places, out)
    return pool.submit(do_step, study, settings, step, places[step])


def do_step(study: Study, settings: Any, step: str, path: Path) -> float:
    """One step, in a worker: its result goes to disk, its duration to whoever waits."""
    began = time.perf_counter()
    value = study.experiments(settings)[step]()
    seconds = round(time.perf_counter() - began, 3)
    keep(path, (value, seconds))
    return seconds


def finish(study: Study, settings: Any, places: Mapping[str, Path], out: Path) -> float:
    """Claims, figures, datasets and words of a study whose work is done."""
    began = time.perf_counter()
    results = {step: load(path)[0] for step, path in places.items() if step != FINISH}
    evidence = study.evidence(settings, results)
    chapter = chapter_of(study, settings, evidence, out)
    seconds = round(time.perf_counter() - began, 3)
    keep(places[FINISH], (chapter, seconds))
    return seconds


def shown_settings(settings: Any) -> dict[str, Any]:
    """Settings for readers elsewhere: of a folder they are told the name, not where it is on this machine."""
    folders = {name: value.name for name, value in dict(settings).items() if isinstance(value, Path)}
    return settings.model_dump(mode="json") | folders


def chapter_of(study: Study, settings: Any, evidence: Any, out: Path) -> Chapter:
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
        claims=claims,
        figures=figures,
        controls=list(study.controls(settings, evidence)),
        findings=list(study.findings(settings, evidence)),
        data=data,
    )
