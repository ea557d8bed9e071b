"""`policychord compare`: what moved from one run to another."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from policychord.cli import Json, counted, emit, options

from .app import app

if TYPE_CHECKING:
    from ..compare import RunComparison

STEP = " / "  # between a study and its setting
LONGEST = 40  # lines of a table; --json has all
COLOUR = {"reproduced": "green", "partly": "yellow", "not reproduced": "red"}


@app.command(
    "compare",
    rich_help_panel="The paper",
    short_help="See which claims and figures moved between two runs.",
    epilog=options.examples(
        "policychord compare out/monday out/friday",
        "policychord compare report.html out/paper/report.html --rtol 0.01",
        "policychord compare out/before out/after --strict --json",
    ),
)
def _compare_command(
    first: Annotated[Path, typer.Argument(help="A run: its folder, report.html or claims.json.", metavar="RUN_A")],
    second: Annotated[Path, typer.Argument(help="The run to compare it with.", metavar="RUN_B")],
    rtol: Annotated[
        float, typer.Option(help="Numbers have moved if they differ by more, relatively.", metavar="NUMBER")
    ] = 1e-9,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if any verdict changed.")] = False,
    json: Json = False,
) -> None:
    """Say which verdicts, measured numbers and figures of two runs differ, and which settings and versions do.

    A report.html that somebody sent is enough; figures are compared where they are in the same folder.
    """
    from ..compare import compare as run

    comparison = run(first, second, rtol)
    results = comparison._asdict()
    notes = results.pop("notes")
    emit(json, {"results": results, "notes": notes}, *_shown(comparison))
    if strict and comparison.verdicts:
        raise typer.Exit(1)


def _shown(comparison: "RunComparison") -> list[Any]:
    """A table for every kind of difference there is, and the sum of it."""
    from ..claim import number

    moved = [
        (m.claim, m.name, *("" if value is None else number(value) for value in (m.a, m.b)), _percent(m.relative))
        for m in comparison.moved
    ]
    shared = [figure for figure in comparison.figures if not figure.state.startswith("only")]
    drawn = [
        (figure.name, f"{_percent(figure.share)} of its pixels" if figure.state == "different" else figure.state)
        for figure in shared
        if figure.state != "identical"
    ]
    both = ("first", "second")
    tables = [
        _table("Verdicts that changed", ("claim", *both), comparison.verdicts),
        _table(
            "Parts of rules that changed", ("part", *both), [(c.name, *map(number, c[1:])) for c in comparison.parts]
        ),
        _table("In one run only", ("run", "what"), _alone(comparison)),
        _table("Claims in other words", ("claim", *both), comparison.wording),
        _table("Measured values that moved", ("claim", "value", *both, "by"), moved),
        _table("Figures that differ", ("figure", "by"), drawn),
        _table("Settings that differ", ("setting", *both), [c for c in comparison.settings if None not in c]),
        _table("Seeds that differ", ("seed", *both), [c for c in comparison.seeds if None not in c]),
        _table("Versions that differ", ("package", *both), comparison.versions),
        _table("Machines that differ", ("part", *both), comparison.machine),
    ]
    words = [
        f"{counted(comparison.claims, 'claim')} in both runs: {counted(len(comparison.verdicts), 'verdict')} changed, "
        f"{counted(len(moved), 'measured value')} moved, {len(drawn)} of {len(shared)} figures differ.",
        *(f"Note: {note}" for note in comparison.notes),
        *(["Next: open report.html of both runs at these claims."] if comparison.verdicts or moved else []),
    ]
    return [part for table in tables for part in table] + words


def _alone(comparison: "RunComparison") -> list[tuple[str, str]]:
    """What only one run has, in a line for each: a partial run lacks much, and that is expected."""
    rows = []
    for run, claims, other in (("first", comparison.only_a, 2), ("second", comparison.only_b, 1)):
        figures = [figure.name for figure in comparison.figures if figure.state == f"only in the {run}"]
        settings = [change.name for change in (*comparison.settings, *comparison.seeds) if change[other] is None]
        what = [
            f"claims {_spans(claims)}" if claims else "",
            f"{counted(len(figures), 'figure')} of {_studies(figures, '/')}" if figures else "",
            f"{counted(len(settings), 'setting')} of {_studies(settings, STEP)}" if settings else "",
        ]
        if any(what):
            rows.append((run, "; ".join(filter(None, what))))
    return rows


def _studies(names: list[str], step: str) -> str:
    return ", ".join(dict.fromkeys(name.partition(step)[0] for name in names))


def _spans(ids: list[str]) -> str:
    """`T1 to T12, F8`."""
    spans: list[list[str]] = []
    for claim in ids:
        before = spans[-1][-1] if spans else ""
        letters, number = claim.rstrip("0123456789"), claim.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        if number.isdecimal() and before == f"{letters}{int(number) - 1}":
            spans[-1].append(claim)
        else:
            spans.append([claim])
    return ", ".join(span[0] if len(span) == 1 else f"{span[0]} to {span[-1]}" for span in spans)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2g}%" if share < 0.995 else f"{100 * share:.0f}%"


def _table(title: str, columns: tuple[str, ...], rows: list[Any]) -> list[Any]:
    if not rows:
        return []
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows[:LONGEST]:
        words = ["" if cell is None else str(cell) for cell in row]
        table.add_row(*(Text(word, style=COLOUR.get(word, "")) for word in words))
    left = len(rows) - LONGEST
    more = [f"... and {left} more: --json has them all."] if left > 0 else []
    return [Text(title, style="bold"), table, *more, ""]
