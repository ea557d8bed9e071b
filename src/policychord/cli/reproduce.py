"""`policychord reproduce`: the paper's claims, measured."""

from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from .app import app, screen
from .progress import watching

COLOUR = {"reproduced": "green", "partly": "yellow", "not reproduced": "red"}


class Study(StrEnum):
    """The studies that can be reproduced."""

    theory = "theory"
    flock = "flock"
    bandit = "bandit"
    quadrotor = "quadrotor"


@app.command(
    epilog="Example:  policychord reproduce theory --out out/theory\n\n"
    "Writes claims.json (one record for each claim), figures/*.svg, *.png and data/*.zarr into --out."
)
def reproduce(
    study: Annotated[Study, typer.Argument(help="Which part of the paper.")],
    quick: Annotated[bool, typer.Option("--quick/--full", help="Fewer seeds, or the paper's counts.")] = True,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results; out/STUDY unless given.", file_okay=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random draws.", min=0)] = 0,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the choice data (bandit only).", exists=True, file_okay=False)
    ] = None,
) -> None:
    """Check the paper's claims by measurement: each gets a figure, a rule fixed beforehand and a verdict."""
    from ..runs.reproduce import reproduce as run

    chosen = import_module(f"policychord.studies.{study}.study").STUDY
    if data is not None and study != "bandit":
        raise typer.BadParameter("only the bandit study reads data.", param_hint="--data")
    more = {} if data is None else {"data": data}
    settings = chosen.settings(quick=quick, seed=seed, **more)
    out = Path("out") / study if out is None else out
    with watching() as watch:
        result = run(chosen, settings, out, watch)
    screen.print(_claims_table(result.claims))
    counts = {verdict: sum(c.verdict == verdict for c in result.claims) for verdict in COLOUR}
    screen.print(", ".join(f"[{COLOUR[v]}]{n} {v}[/]" for v, n in counts.items() if n))
    screen.print(
        f"Wrote {result.files[0]} and {len(result.files) - 1} more files (figures, data) in {out}.", soft_wrap=True
    )
    screen.print(
        "Next: open the figures, or read a claim with  python -m json.tool " + str(result.files[0]), soft_wrap=True
    )


def _claims_table(claims) -> Table:
    table = Table(title="Claims of the paper", title_justify="left", show_lines=True)
    for name, options in (
        ("id", {"no_wrap": True}), ("claim", {"ratio": 3}), ("measured", {"ratio": 4}), ("rule", {"ratio": 3}),
        ("verdict", {}),
    ):  # fmt: skip
        table.add_column(name, **options)
    for claim in claims:
        measured = "\n".join(f"{name}: {_short(value)}" for name, value in claim.measured.items())
        verdict = f"[{COLOUR[claim.verdict]}]{claim.verdict}[/]"
        table.add_row(claim.id, claim.statement, measured, claim.rule, verdict)
    return table


def _short(value) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
