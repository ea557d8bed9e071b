"""Options that several commands share, the settings that they change, and the workers that they ask for."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import typer
from pydantic import BaseModel, Field

from ..wording import Sources, in_words
from .output import RESULTS, aside, counted

if TYPE_CHECKING:
    from concurrent.futures import Executor


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


def animation(of: str) -> Any:
    words = f"Also film {of}: animation.gif, and animation.mp4 where ffmpeg is installed."
    return typer.Option("--animation", help=words, rich_help_panel=RESULTS)


def require(holds: bool, name: str, value: Any, remedy: str) -> None:
    """Say what is wrong with an option that no settings check."""
    if not holds:
        raise ValueError(f"{name} {value}: {remedy}.")


class Shown(NamedTuple):
    """How a setting looks as an option: what stands for its value, and what its default depends on, if on anything."""

    metavar: str = ""
    default: str = ""
    panel: str = ""
    name: str = ""  # where the command has another word for it


class Offer(NamedTuple):
    """An option that changes one setting, named as there: `--gate` changes `composition.gate`.

    Type, default, limits and help are the setting's own.
    """

    model: type[BaseModel]
    place: str
    shown: Shown

    @property
    def argument(self) -> str:
        return self.shown.name or self.place.rpartition(".")[2]

    @property
    def flag(self) -> str:
        return f"--{self.argument.replace('_', '-')}"


class Given(NamedTuple):
    """What the options of a command say of its settings: flag -> (the setting, its value or None), and a file."""

    model: type[BaseModel]
    flags: dict[str, tuple[str, Any]]
    file: Path | None = None

    @property
    def chosen(self) -> dict[str, tuple[str, Any]]:
        """The options that were given."""
        return {flag: (place, value) for flag, (place, value) in self.flags.items()
                if value is not None and value is not False}  # fmt: skip


def repeat(command: str, files: Sequence[Path], given: Given) -> str:
    """A command for the same files with the same options."""
    parts = [*command.split(), *map(str, files), *(["--settings", str(given.file)] if given.file else [])]
    for flag, (_, value) in given.chosen.items():
        text = str(value).removesuffix(".0") if isinstance(value, float) else str(value)
        parts += [flag] if value is True else [flag, text]
    return shlex.join(parts)


def offer(model: type[BaseModel], shown: Mapping[str, str | Shown] | None = None, panel: str = "") -> list[Offer]:
    """Settings as options, by their places, each with a metavar; all of a model that says how its fields look."""
    if shown is None:
        fields = model.model_fields.items()
        shown = {name: next(rule for rule in field.metadata if isinstance(rule, Shown)) for name, field in fields}
    looks = {place: Shown(look) if isinstance(look, str) else look for place, look in shown.items()}
    return [Offer(model, place, look._replace(panel=look.panel or panel)) for place, look in looks.items()]


def with_settings(file: str = "", **offered: list[Offer]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command that takes `given` gets, in its place, the options in `given=[...]`, and likewise for other names.

    With `file`, which says of what, the first of them also come from a file: --settings.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**values: Any) -> None:
            path = values.pop("settings", None)
            for name, offers in offered.items():
                flags = {each.flag: (each.place, values.pop(each.argument)) for each in offers}
                values[name] = Given(offers[0].model, flags, path)
                path = None
            command(**values)

        parts = list[Parameter]()
        for part in signature(command).parameters.values():
            if part.name not in offered:
                parts.append(part.replace(kind=Parameter.KEYWORD_ONLY))
            parts += map(_parameter, offered.get(part.name, ()))
            if file and part.name == next(iter(offered)):
                parts.append(Parameter("settings", Parameter.KEYWORD_ONLY, default=None, annotation=_file(file)))
        run.__dict__["__signature__"] = Signature(parts)
        run.__annotations__ = {part.name: part.annotation for part in parts}
        return run

    return decorate


def _file(of: str) -> Any:
    words = f"TOML or JSON file with any settings of {of}; options on the command line win."
    return Annotated[Path | None, option(words, "FILE", "", "--settings", exists=True, dir_okay=False)]


def field_at(model: Any, place: str) -> Any:
    """The field of a setting."""
    *outer, last = place.split(".")
    for name in outer:
        model = model.model_fields[name].annotation
    return model.model_fields[last]


def _kind(annotation: Any) -> Any:
    """The one type that a setting has besides None."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _kind(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return _kind(next(part for part in get_args(annotation) if part is not type(None)))
    return annotation


def _parameter(offered: Offer) -> Parameter:
    """What Typer reads in the signature of a command."""
    field, shown = field_at(offered.model, offered.place), offered.shown
    kind, words = _kind(field.annotation), field.description
    more: dict[str, Any] = {"rich_help_panel": shown.panel} if shown.panel else {}
    words = f"{words if re.match(r'[a-z]+:', words) else words[:1].upper() + words[1:]}"
    words += "" if words.endswith("?") else "."
    if kind is bool:
        look: Any = Annotated[bool, typer.Option(offered.flag, help=words, **more)]
        return Parameter(offered.argument, Parameter.KEYWORD_ONLY, default=False, annotation=look)
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    if any(choice not in words for choice in choices):
        words += f" One of {', '.join(choices)}."
    text = kind if kind in (int, float, str) or choices else str
    look = Annotated[text | None, option(words, shown.metavar, shown.default or _default(field.default),
                                         offered.flag, **more)]  # fmt: skip
    return Parameter(offered.argument, Parameter.KEYWORD_ONLY, default=None, annotation=look)


def _default(value: Any) -> str:
    if isinstance(value, tuple | list):
        return ",".join(map(_default, value))
    return "" if value in (None, {}) else f"{value:g}" if isinstance(value, float) else str(value)


def _read(flag: str, text: Any, annotation: Any) -> Any:
    """The value of an option: lists and tables are written with commas."""
    kind = _kind(annotation)
    origin = get_origin(kind)
    if not isinstance(text, str) or origin not in (tuple, list, dict):
        return text
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if origin is dict:
        pairs = [part.partition("=") for part in parts]
        if any(not equals or not theirs.strip() for _, equals, theirs in pairs):
            raise ValueError(f"{flag} {text!r}: write OURS=THEIRS for each, with commas between them.")
        return {ours.strip(): theirs.strip() for ours, _, theirs in pairs}
    if float in get_args(kind):
        with suppress(ValueError):
            return [float(part) for part in parts]
        raise ValueError(f"{flag} {text!r}: write numbers with commas between them, such as 0,0,50.")
    return parts


class Work(BaseModel):
    """Where the work of a command is done: processes of this machine, or a Dask cluster."""

    engine: Annotated[Literal["local", "dask"], Shown("NAME")] = Field(
        default="local", description="local: processes of this machine; dask: a cluster"
    )
    scheduler: Annotated[str | None, Shown("ADDRESS", "a cluster on this machine")] = Field(
        default=None, description="address of a Dask scheduler"
    )
    jobs: Annotated[int | None, Shown("N", "one for each core")] = Field(
        default=None, ge=1, description="processes that work side by side"
    )


def work_of(given: Given) -> Work:
    """Where the work is done; some of the three options do not go together."""
    work: Work = settle(given)
    if work.scheduler and work.engine != "dask":
        raise typer.BadParameter("a scheduler is Dask's: add --engine dask.", param_hint="--scheduler")
    if work.scheduler and work.jobs:
        raise typer.BadParameter("a scheduler has its own workers: leave --jobs out.", param_hint="--jobs")
    return work


@contextmanager
def start_workers(work: Work, log: Path) -> "Iterator[tuple[Executor, int]]":
    """A pool, and how many work in it; processes of this machine write to `log`."""
    from ..runs.engine import available_cores, dask_cluster, processes

    count = work.jobs or available_cores()
    if work.engine == "local":
        with processes(count, log) as pool:
            yield pool, count
    else:
        with dask_cluster(work.scheduler, count) as cluster:
            aside.print(f"{counted(cluster.workers, 'worker')}; dashboard: {cluster.dashboard}", soft_wrap=True)
            yield cluster.pool, cluster.workers


def settle(given: Given, build: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """Settings from a file and, above it, from options; `build` makes them of the changes, else their model does."""
    from pydantic import ValidationError

    from ..runs.store import read_settings

    try:
        changes = read_settings(given.file) if given.file else {}
    except ValueError as error:
        raise ValueError(f"--settings {error}") from None
    for flag, (place, value) in given.chosen.items():
        _put(changes, place.split("."), _read(flag, value, field_at(given.model, place).annotation))
    try:
        return (build or given.model.model_validate)(changes)
    except ValidationError as error:
        sources = Sources({place: flag for flag, (place, _) in given.chosen.items()}, given.file)
        raise ValueError(in_words(error, given.model, sources)) from None


def _put(values: dict[str, Any], place: Sequence[str], value: Any) -> None:
    for part in place[:-1]:
        inner = values.setdefault(part, {})
        if not isinstance(inner, dict):  # wrong in the file, and the check will say so
            return
        values = inner
    values[place[-1]] = value
