"""Reproducing studies: do their work side by side, judge their claims, draw their figures, keep everything.

A step's result is on disk as soon as the step is done, so a run that was stopped goes on where it was.
"""

import platform
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from policychord import Problem, __version__
from policychord.drawing import styled
from policychord.runs import (
    FOLDER,
    MissingError,
    PageFigure,
    Result,
    devices,
    forget_others,
    hardware,
    load_result,
    packages,
    prepare,
    processes,
    save_figure,
    save_result,
    step_files,
    write_dataset,
)

from .claim import Check, JudgedClaim, check_claim, judge_claim
from .study import Chapter, Choices, Environment, Recorded, Study

FINISH = "judge, draw, write"
DRAWS = 50  # of seeds or people, to see how often a verdict is the same
# How a study fails on results of another form than its steps return. If an earlier run left them, they are made again.
MISFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class Chosen(NamedTuple):
    """A study and its settings."""

    study: Study[Any, Any]
    settings: Any


class _Task(NamedTuple):
    """A study, its settings, the file for the result of each step, and whose recorded problems it gets.

    A study that only lends its problems has no last step.
    """

    study: Study[Any, Any]
    settings: Any
    files: dict[str, Path]
    lenders: "tuple[_Task, ...]" = ()


class _Finished(NamedTuple):
    """The result of the last step: the chapter, and the bytes of every figure and dataset that belongs to it."""

    chapter: Chapter
    sizes: dict[str, int]


class _Done(NamedTuple):
    """A step that is done: for whom, how long it took, and whether an earlier run had done it."""

    study: str
    step: str
    seconds: float
    reused: bool


class Run(NamedTuple):
    """What studies found, in the order in which they were asked for, and every step that it took."""

    chapters: list[Chapter]
    steps: list[_Done]


Watcher = Callable[[_Done], None]


def _files(chosen: Chosen, out: Path, names: Iterable[str] = (), lenders: "Sequence[_Task]" = ()) -> dict[str, Path]:
    """The file for the result of each step, or of those in `names`, the last being the one that needs all others.

    It is named after the modules that the step uses and the settings, those of its lenders included.
    """
    study = chosen.study
    modules = {
        **dict.fromkeys(study.experiments(chosen.settings), (study.experiments.__module__,)),
        **dict.fromkeys(_borrowing(chosen), (study.on_recorded.__module__,)),
        FINISH: (__name__, *_modules_of(study)),
    }
    theirs = tuple(lender.study.experiments.__module__ for lender in lenders)
    steps = {name: modules[name] + theirs for name in names or modules}
    return step_files(out, study.name, steps, chosen.settings, *(lender.settings for lender in lenders))


def _modules_of(study: Study[Any, Any]) -> tuple[str, ...]:
    """The modules that the functions of a study are from."""
    functions = [
        *study,
        *(world.evidence for world in study.worlds),
        *(claim.measure for claim in study.claims),
        *(figure.draw for figure in study.figures.values()),
    ]
    return tuple(sorted({made.__module__ for made in functions if callable(made)}))


def _borrowing(chosen: Chosen | _Task) -> Mapping[str, Callable[[Recorded], Any]]:
    """The steps of a study that need problems of others."""
    return chosen.study.on_recorded(chosen.settings)


def _lent(chosen: Chosen | _Task) -> Sequence[str]:
    """The steps of a study that its recorded problems are read from."""
    recording = chosen.study.recording
    return recording.steps(chosen.settings) if recording else ()


def tasks_of(all_chosen: Sequence[Chosen], lenders: Sequence[Chosen], out: Path) -> list[_Task]:
    """The studies with their files, then those that only lend their recorded problems to one of them."""
    lending = [lender for lender in lenders if _lent(lender)] if any(map(_borrowing, all_chosen)) else []
    # files are named here: a worker that reads other sources than we did must not look elsewhere
    tasks = {chosen.study.name: _Task(*chosen, _files(chosen, out)) for chosen in all_chosen}
    alone = [lender for lender in lending if lender.study.name not in tasks]
    tasks |= {lender.study.name: _Task(*lender, _files(lender, out, _lent(lender))) for lender in alone}
    theirs = tuple(tasks[lender.study.name] for lender in lending)
    for chosen in all_chosen:
        if borrowed := _borrowing(chosen):
            name = chosen.study.name
            if not theirs:
                raise ValueError(f"the {name} study needs problems of other studies: pass these as lenders.")
            files = tasks[name].files | _files(chosen, out, (*borrowed, FINISH), theirs)
            tasks[name] = tasks[name]._replace(files=files, lenders=theirs)
    return list(tasks.values())


def reproduce(
    all_chosen: Sequence[Chosen],
    out: Path,
    *,
    lenders: Sequence[Chosen] = (),
    workers: int = 1,
    fresh: bool = False,
    watch: Watcher = lambda done: None,
) -> Run:
    """Do what is not done yet, in `workers` processes, and write figures and datasets into `out`.

    Of `lenders` only the steps are done whose gating problems one of the studies asks for.
    """
    prepare(out / FOLDER)
    tasks = tasks_of(all_chosen, lenders, out)
    if fresh:
        for task in tasks:
            shutil.rmtree(out / FOLDER / task.study.name, ignore_errors=True)
    done: list[_Done] = []

    def tell(item: _Done) -> None:
        done.append(item)
        watch(item)

    missing = {task.study.name: _missing(task, out, tell) for task in tasks}
    if any(missing.values()):
        with processes(workers, out / FOLDER / "log.txt") as pool:
            _work(pool, workers, tasks, missing, out, tell)
    finished = [task for task in tasks if FINISH in task.files]
    for task in finished:
        forget_others(out, task.study.name, task.files.values())
    return Run([load_result(task.files[FINISH]).value.chapter for task in finished], done)


def _missing(task: _Task, out: Path, tell: Watcher) -> list[str]:
    """Steps that no earlier run has done; those that one has are listed."""
    lacking: list[str] = []
    for step, path in task.files.items():
        try:
            value, seconds = load_result(path)
            if step == FINISH and (lacking or not _complete(value, out)):
                raise MissingError(step)
        except MissingError:
            lacking.append(step)
        else:
            tell(_Done(task.study.name, step, seconds, reused=True))
    return lacking


def _complete(value: Any, out: Path) -> bool:
    """Whether this is what `_finish` writes, and every file that belongs to it is there as a whole."""
    try:
        TypeAdapter(_Finished).validate_python(value)
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
    pool: Executor, workers: int, tasks: Sequence[_Task], missing: Mapping[str, list[str]], out: Path, tell: Watcher
) -> None:
    """Steps in their order; a study that has all of them is finished next, so that no long step is left for the end."""
    by_name = {task.study.name: task for task in tasks}
    left = {name: {step for step in steps if step != FINISH} for name, steps in missing.items()}
    reused = {name: by_name[name].files.keys() - left[name] - {FINISH} for name in missing}
    waiting = deque((name, step) for name, steps in missing.items() for step in steps if step != FINISH)
    waiting.extendleft((name, FINISH) for name, steps in missing.items() if steps == [FINISH])
    running: dict[Future[float], tuple[str, str]] = {}
    while waiting or running:
        while len(running) < workers and (begun := _next(waiting, by_name, left)):
            waiting.remove(begun)
            running[pool.submit(_do_step, by_name[begun[0]], begun[1], out)] = begun
        ready, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in ready:
            name, step = running.pop(future)
            if step == FINISH and reused[name] and isinstance(future.exception(), MISFIT):
                left[name], reused[name] = set(reused[name]), set()
                waiting.extendleft((name, again) for again in left[name])
                continue
            tell(_Done(name, step, future.result(), reused=False))
            left[name].discard(step)
            if step != FINISH and not left[name] and FINISH in by_name[name].files:
                waiting.appendleft((name, FINISH))


def _next(
    waiting: Iterable[tuple[str, str]], by_name: Mapping[str, _Task], left: Mapping[str, set[str]]
) -> tuple[str, str] | None:
    """The first step that can begin: one that needs problems of other studies waits until these have flown."""

    def can_begin(name: str, step: str) -> bool:
        task = by_name[name]
        if step not in _borrowing(task):
            return True
        return not any(left[lender.study.name] & {*_lent(lender)} for lender in task.lenders)

    return next((step for step in waiting if can_begin(*step)), None)


def _do_step(task: _Task, step: str, out: Path) -> float:
    """One step, in a worker: its result goes to disk, its duration to whoever waits."""
    began = time.perf_counter()
    if step == FINISH:
        value = _finish(task, out)
    elif borrowed := _borrowing(task).get(step):
        value = borrowed(_recorded_by(task.lenders))
    else:
        value = task.study.experiments(task.settings)[step]()
    seconds = round(time.perf_counter() - began, 3)
    save_result(task.files[step], step, Result(value, seconds))
    return seconds


def _recorded_by(lenders: Iterable[_Task]) -> Recorded:
    """The gating problems of these studies' runs, whose steps are done."""
    recorded: dict[str, Problem] = {}
    for lender in lenders:
        if lender.study.recording is not None:
            results = {step: load_result(lender.files[step]).value for step in _lent(lender)}
            recorded |= lender.study.recording.problems(lender.settings, results)
    return recorded


def _finish(task: _Task, out: Path) -> _Finished:
    """Claims, figures, datasets and findings of a study whose steps are done."""
    results = {step: load_result(path).value for step, path in task.files.items() if step != FINISH}
    chapter = _chapter_of(task.study, task.settings, task.study.evidence(task.settings, results), out)
    files = [path for figure in chapter.figures for path in (figure.svg, figure.png)]
    return _Finished(chapter, {path: _size(out / path) for path in [*files, *chapter.data]})


def _shown_settings(settings: Any) -> dict[str, Any]:
    """Settings for readers elsewhere: a folder is given by its name, not by its place on this machine."""
    folders = {name: value.name for name, value in dict(settings).items() if isinstance(value, Path)}
    return settings.model_dump(mode="json") | folders


def _judge_again(
    study: Study[Any, Any], settings: Any, evidence: Any, claims: Sequence[JudgedClaim]
) -> list[JudgedClaim]:
    """The claims with how often each verdict is the same if seeds or people are resampled with replacement."""
    if study.redraw is None:
        return list(claims)
    same = dict.fromkeys((claim.id for claim in claims), 0)
    for draw in range(DRAWS):
        drawn = study.redraw(settings, evidence, draw)
        for claim, judged in zip(study.claims, claims, strict=True):
            same[claim.id] += judge_claim(claim, *drawn).verdict == judged.verdict
    return [c._replace(robustness=c.robustness._replace(same=int(same[c.id]), draws=DRAWS)) for c in claims]


def _check_rules(
    study: Study[Any, Any], settings: Any, evidence: Any, claims: Sequence[JudgedClaim]
) -> list[JudgedClaim]:
    """The claims with what their rules say of the study's nulls and alternatives."""
    checks: dict[str, list[Check]] = {claim.id: [] for claim in claims}
    by_id = {claim.id: claim for claim in study.claims}
    for world in study.worlds:
        known = world.evidence(settings, evidence)
        for name in world.claims:
            checks[name].append(check_claim(by_id[name], *known, world.name, world.what, world.expected))
    return [claim._replace(checks=tuple(checks[claim.id])) for claim in claims]


def _chapter_of(study: Study[Any, Any], settings: Any, evidence: Any, out: Path) -> Chapter:
    """Judge, draw and write."""
    judged = [judge_claim(claim, settings, evidence) for claim in study.claims]
    claims = _check_rules(study, settings, evidence, _judge_again(study, settings, evidence, judged))
    figures = []
    for name, figure in study.figures.items():
        stem = out / "figures" / study.name / name
        svg, png = (
            path.relative_to(out).as_posix() for path in save_figure(stem, styled(figure.draw, settings, evidence))
        )
        panels = {panel: list(about) for panel, about in figure.panels.items()}
        figures.append(PageFigure(name, svg, png, figure.caption, figure.claims, panels))
    data = [
        write_dataset(out / "data" / study.name / f"{name}.zarr", dataset).relative_to(out).as_posix()
        for name, dataset in study.datasets(settings, evidence).items()
    ]
    return Chapter(
        study=study.name,
        title=study.title,
        introduction=study.introduction,
        settings=_shown_settings(settings),
        source=getattr(settings, "source", ""),
        claims=claims,
        figures=figures,
        controls=list(study.controls(settings, evidence)),
        findings=list(study.findings(settings, evidence)),
        data=data,
        objections=list(study.objections(settings, evidence)),
        summary=study.summary(settings, evidence),
        shown=study.shown,
    )


def environment(
    chosen: Sequence[Chosen], run: Run, *, workers: int, quick: bool, seed: int, seconds: float, choices: Choices = ""
) -> Environment:
    """Where and how a run took place that has just ended."""
    processor, cores, memory = hardware()
    began = datetime.fromtimestamp(datetime.now(UTC).timestamp() - seconds, UTC)
    return Environment(
        policychord=__version__, python=platform.python_version(), packages=packages(), platform=platform.platform(),
        processor=processor, cores=cores, memory_gib=memory, devices=devices(), workers=workers, quick=quick, seed=seed,
        data=next((chapter.source for chapter in run.chapters if chapter.source), ""),
        settings={study.name: _shown_settings(settings) for study, settings in chosen},
        started=began.isoformat(timespec="seconds"), seconds=round(seconds, 1),
        steps={f"{done.study}: {done.step}": done.seconds for done in run.steps},
        reused=sum(done.reused for done in run.steps), choices=choices,
    )  # fmt: skip
