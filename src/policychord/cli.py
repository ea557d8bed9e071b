"""The `policychord` command: parse, call, print."""

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from . import __version__

app = typer.Typer(
    help="Compose reusable behaviours: optimal mixture weights, with a proof, at every step.",
    epilog="Start with:  policychord reproduce theory --out out/theory",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
# in a file or a pipe nobody can widen the window, so tables get room
screen = Console() if Console().is_terminal else Console(width=140)
COLOUR = {"reproduced": "green", "partly": "yellow", "not reproduced": "red"}


class Study(StrEnum):
    """The studies that can be reproduced."""

    theory = "theory"


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


@app.command(
    epilog="Example:  policychord reproduce theory --out out/theory\n\n"
    "Writes claims.json (one record for each claim) and figures/*.svg, *.png into the folder given by --out."
)
def reproduce(
    study: Annotated[Study, typer.Argument(help="Which part of the paper.")],
    out: Annotated[Path, typer.Option(help="Folder for the results.", file_okay=False)] = Path("out/theory"),
    seed: Annotated[int, typer.Option(help="Seed of all random draws.", min=0)] = 0,
) -> None:
    """Check the paper's claims by measurement: each gets a figure, a rule fixed beforehand and a verdict."""
    from .runs.reproduce import reproduce_theory
    from .studies.theory.settings import TheorySettings

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("starting", total=None)

        def watch(words: str, done: int, total: int) -> None:
            progress.update(bar, description=f"{words:.60}".ljust(60), completed=done, total=total)
            if not progress.console.is_terminal:  # a log has no bar, so it gets lines
                print(f"[{done + 1}/{total}] {words}", file=sys.stderr, flush=True)

        result = reproduce_theory(TheorySettings(seed=seed), out, watch)
    screen.print(_claims_table(result.claims))
    counts = {verdict: sum(c.verdict == verdict for c in result.claims) for verdict in COLOUR}
    screen.print(", ".join(f"[{COLOUR[v]}]{n} {v}[/]" for v, n in counts.items() if n))
    screen.print(
        f"Wrote {result.files[0]} and {len(result.files) - 1} figure files in {out / 'figures'}.", soft_wrap=True
    )
    screen.print(
        "Next: open the figures, or read a claim with  python -m json.tool " + str(result.files[0]), soft_wrap=True
    )


def _claims_table(claims) -> Table:
    table = Table(title="Claims of the paper", title_justify="left", show_lines=True)
    for name, options in (
        ("id", {"no_wrap": True}), ("claim", {"ratio": 3}), ("measured", {"ratio": 4}), ("rule", {"ratio": 3}),
        ("verdict", {}), ("s", {"justify": "right", "no_wrap": True}),
    ):  # fmt: skip
        table.add_column(name, **options)
    for claim in claims:
        measured = "\n".join(f"{name}: {_short(value)}" for name, value in claim.measured.items())
        verdict = f"[{COLOUR[claim.verdict]}]{claim.verdict}[/]"
        table.add_row(claim.id, claim.statement, measured, claim.rule, verdict, f"{claim.seconds:.1f}")
    return table


def _short(value) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def main() -> None:
    """Run the command; people get a sentence instead of a traceback."""
    try:
        app()
    except (ValueError, OSError) as error:
        Console(stderr=True).print(f"[red]policychord:[/] {error}", highlight=False, soft_wrap=True)
        sys.exit(2 if isinstance(error, ValueError) else 1)
    except (KeyboardInterrupt, SystemExit) as stop:
        if isinstance(stop, SystemExit) and stop.code != 130:
            raise
        print("\npolicychord: interrupted; files written so far are complete.", file=sys.stderr, flush=True)
        os._exit(130)  # at once: an orderly exit would pull the rug from under compilations still running


if __name__ == "__main__":
    main()
