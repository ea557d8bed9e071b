"""Tables of pages: what a benchmark measured, kept as numbers beside the page that shows it.

`keep` adds a table to a file of tables, in place of an earlier one of that name. A line `% generated: measured
how-to/which_gate.json sampled` of a page becomes the table, with the command and the day that made it.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import jax

import policychord


def keep(path: Path, name: str, command: str, columns: Mapping[str, str], rows: Sequence[Sequence[object]]) -> None:
    """Add a table. `columns` are titles and how their numbers are written, such as `.3f`; cells may be text too."""
    tables = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    tables[name] = {
        "command": command, "date": date.today().isoformat(),
        "versions": f"policychord {policychord.__version__}, jax {jax.__version__}",
        "columns": dict(columns), "rows": [list(row) for row in rows],
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(tables, indent=1) + "\n", encoding="utf-8")
