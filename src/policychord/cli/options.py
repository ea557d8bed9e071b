"""Options that several commands share, the settings that they change, and the workers that they ask for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

import typer

from ..wording import Sources, in_words
from .output import RESULTS, aside, counted

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pydantic import BaseModel

Settled = TypeVar("Settled")


def examples(*lines: str) -> str:
    """The foot of a help page: two or three commands to copy."""
    return "\n".join(["[bold]Examples[/]", *(f"[not dim]  {line}[/]" for line in lines)])


def option(words: str, metavar: str, default: str = "", *names: str, **more: Any) -> Any:
    """An option whose default is found out later, from a scenario or a file, and is still shown."""
    shown = f"{words} [dim]\\[default: {default}][/dim]" if default else words
    return typer.Option(*names, help=shown, metavar=metavar, show_default=False, **more)


ToWrite = Annotated[Path, typer.Argument(help="The file to write.", metavar="FILE", dir_okay=False)]


def out(default: str) -> Any:
    return option("Folder for the results.", "DIR", default, "--out", file_okay=False, rich_help_panel=RESULTS)


def seeds(default: str, words: str = "Episodes, each with random draws of its own.") -> Any:
    return option(words, "N", default, "--seeds")


def seed() -> Any:
    return option("Seed of all random draws: the same seed, the same result.", "N", "0", "--seed")


def eps(default: str, words: str = "Temperature: low follows the model, high the prior (even weights).") -> Any:
    return option(words, "NUMBER", default, "--eps")


def settings(of: str) -> Any:
    words = f"TOML or JSON file with any settings of a {of}; options on the command line win."
    return option(words, "FILE", "", "--settings", exists=True, dir_okay=False)


def animation(of: str) -> Any:
    words = f"Also film {of}: animation.gif, and animation.mp4 where ffmpeg is installed."
    return typer.Option("--animation", help=words, rich_help_panel=RESULTS)


def require_eps(eps: float | None) -> None:
    """Say so before anything is written, where settings know only that a temperature is positive."""
    if eps is not None:
        require(1e-9 <= eps <= 1e9, "--eps", f"{eps:g}", "must lie between 1e-09 and 1e+09")


def require(holds: bool, name: str, value: Any, remedy: str) -> None:
    """Say what is wrong with an option that no settings check."""
    if not holds:
        raise ValueError(f"{name} {value}: {remedy}.")


def expand_records(command: Callable[..., None]) -> Callable[..., None]:
    """A command with parameters that are records gets the options that annotate their fields, in their place."""
    records, parts = {}, list[Parameter]()
    for part in signature(command).parameters.values():
        kind = part.annotation
        if not hasattr(kind, "_fields"):
            parts.append(part.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        records[part.name] = kind
        for field in kind._fields:
            default = kind._field_defaults.get(field, Parameter.empty)
            parts.append(
                Parameter(field, Parameter.KEYWORD_ONLY, default=default, annotation=kind.__annotations__[field])
            )

    @wraps(command)
    def run(**values: Any) -> None:
        for name, kind in records.items():
            values[name] = kind(**{field: values.pop(field) for field in kind._fields})
        command(**values)

    run.__dict__["__signature__"] = Signature(parts)
    run.__annotations__ = {part.name: part.annotation for part in parts}
    return run


class Work(NamedTuple):
    """Where the work of a command is done: processes of this machine, or a Dask cluster."""

    engine: Annotated[
        Literal["local", "dask"],
        option("local: processes of this machine. dask: a cluster.", "NAME", "local", "--engine"),
    ] = "local"
    scheduler: Annotated[
        str | None, option("Address of a Dask scheduler.", "ADDRESS", "a cluster on this machine", "--scheduler")
    ] = None
    workers: Annotated[
        int | None, option("Processes that work side by side.", "N", "one for each core", "--workers", min=1)
    ] = None


def check_work(work: Work) -> None:
    """Say which of the three options do not go together."""
    if work.scheduler and work.engine != "dask":
        raise typer.BadParameter("a scheduler is Dask's: add --engine dask.", param_hint="--scheduler")
    if work.scheduler and work.workers:
        raise typer.BadParameter("a scheduler has its own workers: leave --workers out.", param_hint="--workers")


@contextmanager
def start_workers(work: Work, log: Path) -> "Iterator[tuple[Executor, int]]":
    """A pool, and how many work in it; processes of this machine write to `log`."""
    from ..runs.engine import available_cores, dask_cluster, processes

    count = work.workers or available_cores()
    if work.engine == "local":
        with processes(count, log) as pool:
            yield pool, count
    else:
        with dask_cluster(work.scheduler, count) as cluster:
            aside.print(f"{counted(cluster.workers, 'worker')}; dashboard: {cluster.dashboard}", soft_wrap=True)
            yield cluster.pool, cluster.workers


def merge_settings(
    build: Callable[[dict[str, Any]], Settled],
    model: "type[BaseModel]",
    options: Mapping[str, tuple[str, Any]],
    file: Path | None = None,
) -> Settled:
    """Settings from a file and, above it, from options: option -> (its setting, its value or None)."""
    from pydantic import ValidationError

    from ..runs.store import read_settings

    chosen = {name: (place, value) for name, (place, value) in options.items() if value is not None}
    try:
        changes = read_settings(file) if file else {}
    except ValueError as error:
        raise ValueError(f"--settings {error}") from None
    for place, value in chosen.values():
        _put(changes, place.split("."), value)
    try:
        return build(changes)
    except ValidationError as error:
        sources = Sources({place: name for name, (place, _) in chosen.items()}, file)
        raise ValueError(in_words(error, model, sources)) from None


def _put(values: dict[str, Any], place: Sequence[str], value: Any) -> None:
    for part in place[:-1]:
        inner = values.setdefault(part, {})
        if not isinstance(inner, dict):  # wrong in the file, and the check will say so
            return
        values = inner
    values[place[-1]] = value
