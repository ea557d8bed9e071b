"""The `policychord` command itself: options for all, and what people see when something goes wrong."""

import os
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from .. import __version__

app = typer.Typer(
    help="Compose reusable behaviours: optimal mixture weights, with a proof, at every step.",
    epilog="Start with:  policychord reproduce theory --out out/theory",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
# in a file or a pipe nobody can widen the window, so tables get room
screen = Console() if Console().is_terminal else Console(width=140)


def _version(wanted: bool) -> None:
    if wanted:
        screen.print(f"policychord {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    import jax

    # certificates are honest in float64 only; programs decide this, and this is the program
    jax.config.update("jax_enable_x64", True)


def main() -> None:
    """Run the command; people get a sentence instead of a traceback."""
    try:
        app()
    except (ValueError, OSError) as error:
        Console(stderr=True).print(f"[red]policychord:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2 if isinstance(error, ValueError) else 1)
    except (KeyboardInterrupt, SystemExit) as stop:
        if isinstance(stop, SystemExit) and stop.code != 130:
            raise
        print("\npolicychord: interrupted; files written so far are complete.", file=sys.stderr, flush=True)
        os._exit(130)  # at once: an orderly exit would pull the rug from under compilations still running
