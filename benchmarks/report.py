"""What all benchmarks share: run the parts, print a table, judge targets, write the records."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from .timing import Record

Parts = dict[str, Callable[[], list[Record]]]  # what is measured, by name


class Target(NamedTuple):
    """A ratio that was promised; `most` turns it into an upper bound."""

    name: str
    reference: str
    bound: float
    most: bool = False


def measure(parts: Parts, console: Console) -> list[Record]:
    """Run every part, saying which."""
    lines = []
    columns = (SpinnerColumn(), TextColumn("{task.completed}/{task.total} {task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(parts))
        for name, part in parts.items():
            progress.update(task, description=name)
            lines += part()
            progress.advance(task)
    return lines


def duration(microseconds: float | None) -> str:
    """Microseconds, but seconds for what takes that long."""
    if microseconds is None:
        return ""
    return f"{microseconds:,.1f}" if microseconds < 3e5 else f"{1e-6 * microseconds:.1f} s"


def show(lines: list[Record], title: str, console: Console) -> None:
    """Print the table."""
    table = Table(title=title)
    for name, justify in (
        ("measured", "left"), ("ours", "right"), ("reference", "left"), ("its time", "right"), ("ratio", "right"),
        ("certificate", "right"), ("note", "left"),
    ):  # fmt: skip
        table.add_column(name, justify=justify, no_wrap=True)
    for line in lines:
        ratio = "" if line.ratio is None else f"{line.ratio:.2f}" if line.ratio < 100 else f"{line.ratio:,.0f}"
        gap = "" if line.certificate is None else f"{line.certificate:.0e}"
        times = duration(line.ours_us), line.reference or "", duration(line.reference_us)
        table.add_row(line.name, *times, ratio, gap, line.note)
    console.print(table)


def judge(lines: list[Record], targets: list[Target], console: Console) -> list[str]:
    """Print which targets are met; the names of those that are not. What was not measured is neither."""
    measured = {(line.name, line.reference): line.ratio for line in lines}
    missed = []
    table = Table(title="targets")
    for name, justify in (("target", "left"), ("bound", "right"), ("measured", "right"), ("", "left")):
        table.add_column(name, justify=justify, no_wrap=True)
    for target in targets:
        ratio = measured.get((target.name, target.reference))
        if ratio is None:
            continue
        met = ratio <= target.bound if target.most else ratio >= target.bound
        against = f"times the {target.reference}" if target.most else f"times faster than {target.reference}"
        bound = f"{'<=' if target.most else '>='} {target.bound:g}"
        table.add_row(f"{target.name}: {against}", bound, f"{ratio:,.2f}", "met" if met else "MISSED")
        missed += [] if met else [target.name]
    console.print(table)
    return missed


def report(about: str, parts: Callable[[int], Parts], title: str, targets: list[Target], out: str) -> None:
    """Read the command line, measure the parts that a seed gives, write and print; a missed target is an error."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(out), help="where to write the records")
    parser.add_argument("--seed", type=int, default=0, help="which problems to draw")
    parser.add_argument(
        "--only", default="", help="measure parts with these words in their names; others keep their lines"
    )
    given = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140)
    begun = time.perf_counter()
    lines = measure({name: part for name, part in parts(given.seed).items() if given.only in name}, console)
    if given.only and given.out.is_file():
        now = {(line.name, line.reference) for line in lines}
        before = [Record(**line) for line in json.loads(given.out.read_text(encoding="utf-8"))]
        lines = [line for line in before if (line.name, line.reference) not in now] + lines
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps([line._asdict() for line in lines], indent=2))
    show(lines, title, console)
    missed = judge(lines, targets, console)
    console.print(f"{time.perf_counter() - begun:.0f} s; written to {given.out}. Next: make bench-compare")
    if missed:
        sys.exit(f"missed: {', '.join(missed)}. On a busy machine measure again before you believe it.")
