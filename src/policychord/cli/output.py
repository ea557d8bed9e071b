"""What a command says: a page for people, or one JSON object for programs. Standard output holds nothing else.

Every command ends with `emit(json_wanted, record, *shown)`. The record has the same shape everywhere: the `command`,
what was found under `results`, `out` and `files` for what was written, `notes` for what somebody should know. Progress,
warnings and errors go to standard error (`aside`). A program that asked for JSON also gets an object if a command
fails: `command`, `error` (the sentence) and `code` (the exit code), so that standard output is never empty.
"""

import json
import os
import shlex
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from ..runs.page import Results

WIDE = 100  # columns in a file or a pipe, where the window cannot be widened
_WHOLE_WORDS: Any = {"break_long_words": False, "break_on_hyphens": False}
RESULTS = "Results"  # the panel of a help page for what is written and printed

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead, for programs.", rich_help_panel=RESULTS)
]


class _Console(Console):
    """A console whose reader may leave early: `main` then ends the command."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def _console(stream: str) -> Console:
    if getattr(sys, stream) is None:  # closed by whoever started us: what is printed goes nowhere
        setattr(sys, stream, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    free = getattr(sys, stream).isatty() or "COLUMNS" in os.environ
    return _Console(width=None if free else WIDE, highlight=False, stderr=stream == "stderr")


screen = _console("stdout")
aside = _console("stderr")


class _Object:
    """The one object on standard output: whether it is there, and whose it is."""

    printed = False
    command = ""


def begin_command(command: str) -> None:
    """A command starts: nothing is on standard output yet. A letter that a stream does not have is not an error."""
    _Object.printed, _Object.command = False, command
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def emit(json_wanted: bool, record: Mapping[str, Any], *shown: RenderableType) -> None:
    """Print the record as JSON, or what is shown to people: tables, and lines of text."""
    if json_wanted:
        _print_object({"command": _Object.command, "results": {}, "files": [], "notes": []} | dict(record))
        return
    for part in shown:
        screen.print(_wrapped(part) if isinstance(part, str) else part, markup=False, soft_wrap=isinstance(part, str))


def fail(words: str, code: int) -> None:
    """Say what went wrong: a sentence for people and, where a program asked for one, an object."""
    aside.print("[red]policychord:[/] ", end="")
    aside.print(words, markup=False, soft_wrap=True)
    tell_programs(words, code)


def tell_programs(words: str, code: int) -> None:
    """The object of a command that failed, where a program waits for one."""
    if "--json" in sys.argv[1:] and not _Object.printed:
        _print_object({"command": _Object.command, "error": words, "code": code})


def _print_object(record: Mapping[str, Any]) -> None:
    from ..runs.store import plain

    _Object.printed = True
    all_letters = (sys.stdout.encoding or "utf").lower().startswith("utf")  # a pipe of Windows has few
    text = json.dumps(plain(record, finite=True), indent=2, ensure_ascii=not all_letters, allow_nan=False)
    print(text, flush=True)


def _wrapped(words: str) -> str:
    """Lines that fit; a long path stays whole, to be copied, and so does a command, which is indented."""
    return "\n".join(line if line.startswith("  ") else textwrap.fill(line, screen.width, **_WHOLE_WORDS)
                     for line in words.split("\n"))  # fmt: skip


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> Table:
    """A table for people, in which the columns named in `right` are numbers; without names it has no head."""
    made = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False,
                 show_header=any(columns))  # fmt: skip
    for k, name in enumerate(columns):
        made.add_column(name, justify="right" if name in right else "left", no_wrap=k == 0, overflow="fold")
    for row in rows:
        made.add_row(*map(Text, row))
    return made


def command_line() -> str:
    """What was typed, to be run again."""
    return shlex.join(["policychord", *sys.argv[1:]])


def tell(json_wanted: bool, results: "Results", record: Mapping[str, Any], *hints: str) -> None:
    """What a fit found: its table, verdict, sentences and warnings, and where its page is."""
    files, out = record["files"], record["out"]
    notes = [results.verdict, *results.sentences, *results.warnings, *record.get("notes", ())]
    emit(
        json_wanted,
        {"command": results.kind, "results": {"verdict": results.verdict, **results.record}, **record, "notes": notes},
        table(results.source, results.columns, results.rows, right=results.columns[1:]),
        results.verdict,
        *(f"Warning: {line}" for line in results.warnings),
        *results.sentences,
        *record.get("notes", ()),
        f"Wrote {counted(len(files), 'file')} to {out}.",
        f"Next: open {files[0]}.",
        *hints,
    )


def counted(number: int, thing: str, things: str = "") -> str:
    """`1 seed`, `8 seeds`; `things` where an s is not enough."""
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"
