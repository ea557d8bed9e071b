"""The app that the paper's commands add themselves to when they are imported, and the settings that they offer."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, NamedTuple

import typer

from policychord.cli import options

app = typer.Typer()


class Setting(NamedTuple):
    """An option that changes one setting, named as there: `--gate` changes `composition.gate`."""

    place: str
    kind: Any
    option: Any  # as Typer declares it

    @property
    def argument(self) -> str:
        return self.place.rpartition(".")[2]


def offer(panel: str, place: str, kind: Any, words: str, metavar: str, default: str) -> Setting:
    """A setting in a panel of the help page."""
    return Setting(place, kind, options.option(words, metavar, default, rich_help_panel=panel))


def with_settings(*offered: Setting) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command that takes `flags` gets, in its place, an option for each setting; `merge_settings` takes the flags."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**values: Any) -> None:
            flags = {f"--{s.argument.replace('_', '-')}": (s.place, values.pop(s.argument)) for s in offered}
            command(flags=flags, **values)

        parts = []
        for part in signature(command).parameters.values():
            rows = [(s.argument, None, Annotated[s.kind | None, s.option]) for s in offered]
            rows = rows if part.name == "flags" else [(part.name, part.default, part.annotation)]
            parts += [Parameter(name, Parameter.KEYWORD_ONLY, default=d, annotation=a) for name, d, a in rows]
        run.__dict__["__signature__"] = Signature(parts)
        run.__annotations__ = {part.name: part.annotation for part in parts}
        return run

    return decorate
