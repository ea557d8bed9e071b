"""What earlier versions measured beside what was just measured, so that a slower one shows.

python -m benchmarks.record compare build/bench.json build/bench-agents.json
python -m benchmarks.record add build/bench.json build/bench-agents.json
"""

import argparse
import json
import sys
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table as Printed

import policychord

from .timing import Record

RECORD = Path(__file__).parent / "record.json"  # version -> what was measured against what -> ratio and both times
WORSE = 0.75  # of the recorded ratio: busy machines move ratios by a tenth or two


class Kept(NamedTuple):
    """What is kept of a line: the ratio, and the microseconds of which it was made on the machine that measured."""

    ratio: float
    ours_us: float | None
    reference_us: float | None


def measured(paths: list[Path]) -> dict[str, Record]:
    """The lines that have a ratio, by what was measured against what."""
    lines = [Record(**line) for path in paths for line in json.loads(path.read_text(encoding="utf-8"))]
    return {f"{line.name} | {line.reference}": line for line in lines if line.ratio is not None}


def recorded() -> dict[str, dict[str, Kept]]:
    """All versions, in the order in which they were added."""
    found = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    return {version: {name: Kept(*kept) for name, kept in lines.items()} for version, lines in found.items()}


def is_worse(line: Record, before: float) -> bool:
    """Whether a ratio has become worse by more than what a busy machine explains."""
    if line.reference == "predicted":
        return False  # a prediction is as good as it is
    better = before / line.ratio if line.less_is_better else line.ratio / before
    return better < WORSE


def compare(paths: list[Path]) -> list[str]:
    """Print each ratio beside the last recorded one; the names of those that became worse."""
    versions = recorded()
    if not versions:
        sys.exit(f"{RECORD.name} is empty: add a first record with `python -m benchmarks.record add`.")
    version, before = list(versions.items())[-1]
    table = Printed(title=f"ratios of {version} and now")
    for name, justify in (("measured | reference", "left"), (version, "right"), ("now", "right"), ("", "left")):
        table.add_column(name, justify=justify, no_wrap=True)
    worse = []
    for name, line in measured(paths).items():
        old = before.get(name)
        falls = old is not None and is_worse(line, old.ratio)
        worse += [name] if falls else []
        table.add_row(name, "" if old is None else f"{old.ratio:,.2f}", f"{line.ratio:,.2f}", "WORSE" if falls else "")
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    return worse


def add(paths: list[Path]) -> None:
    """Record what was measured as that of this version, in place of an earlier measurement."""
    versions = recorded()
    versions.pop(policychord.__version__, None)
    lines = measured(paths)
    versions[policychord.__version__] = {
        name: Kept(*(None if x is None else float(f"{x:.3g}") for x in (line.ratio, line.ours_us, line.reference_us)))
        for name, line in lines.items()
    }
    rows = [
        f" {json.dumps(version)}: {{\n"
        + ",\n".join(f"  {json.dumps(name)}: {json.dumps(kept)}" for name, kept in kept_lines.items())
        + "\n }"
        for version, kept_lines in versions.items()
    ]
    RECORD.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    print(f"{len(lines)} ratios of {policychord.__version__} in {RECORD}")


def all_lines(kept: dict[str, Kept]) -> str:
    """Everything that was recorded and has times, in the order in which it was measured."""
    rows = ["| measured | ours | reference | its time | ratio |", "|---|---|---|---|---|"]
    for name, (ratio, ours, theirs) in kept.items():
        what, reference = name.split(" | ")
        if ours is not None and theirs is not None:
            times = f"{_number(ours)} | {reference} | {_number(theirs)}"
            rows.append(f"| {what} | {times} | {_number(ratio)} |")
    return "\n".join(rows) + "\n"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verb", choices=("compare", "add"))
    parser.add_argument("paths", type=Path, nargs="+", help="what `make bench` wrote")
    given = parser.parse_args()
    if missing := [str(path) for path in given.paths if not path.is_file()]:
        sys.exit(f"{', '.join(missing)}: not there. Measure first: make bench")
    if given.verb == "add":
        add(given.paths)
    elif worse := compare(given.paths):
        sys.exit(f"worse than {1 / WORSE:.2f} times the recorded cost: {'; '.join(worse)}")


if __name__ == "__main__":
    main()
