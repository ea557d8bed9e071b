"""Options that several commands share: the same word for the same thing, said in the same words."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any

import typer

from .output import RESULTS


def examples(*lines: str) -> str:
    """The foot of a help page: two or three commands to copy."""
    return "\n".join(["[bold]Examples[/]", *(f"[not dim]  {line}[/]" for line in lines)])


def option(words: str, metavar: str, default: str = "", *names: str, **more: Any) -> Any:
    """An option whose default is found out later, from a scenario or a file, and is still shown."""
    shown = f"{words} [dim]\\[default: {default}][/dim]" if default else words
    return typer.Option(*names, help=shown, metavar=metavar, show_default=False, **more)


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
