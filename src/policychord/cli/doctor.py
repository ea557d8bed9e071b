"""`policychord doctor`: is everything there, and does it work?"""

import typer
from rich.table import Table
from rich.text import Text

from . import options
from .app import app
from .output import Json, emit
from .progress import watching

COLOUR = {"ok": "green", "missing": "yellow", "problem": "red"}


@app.command(
    "doctor",
    short_help="Is everything there, and does it work?",
    epilog=options.examples("policychord doctor", "policychord doctor --json"),
)
def _doctor_command(json: Json = False) -> None:
    """Look at this machine: versions, devices, data, the compile cache, tools for films and pictures; then solve one
    problem and check its proof. Each line is ok, missing (something optional) or a problem, with the remedy. The exit
    code is 0 if the core works.
    """
    with watching() as watch:
        watch("looking around, and solving one problem", 0, 1)
        from ..runs import doctor as run

        checks = run.examine_machine()
    works = run.works(checks)
    table = Table(box=None, show_header=False, pad_edge=False)
    for wide in (False, False, True):
        table.add_column(no_wrap=not wide, overflow="fold" if wide else "ellipsis")
    for check in checks:
        remedy = (f"\n-> {check.remedy}", "dim") if check.remedy else ""
        table.add_row(Text(check.state, style=COLOUR[check.state]), check.name, Text.assemble(check.found, remedy))
    record = {
        "results": {
            "works": works, "checks": checks, "packages": run.packages(), "hardware": run.hardware(),
            "devices": run.devices(),
        },
        "notes": [f"{check.name}: {check.remedy}" for check in checks if check.remedy],
    }  # fmt: skip
    if works:
        wanting = any(check.name == "extra: studies" and check.remedy for check in checks)
        last = "The core works. Next:\n  " + (
            "pip install 'policychord[studies]'" if wanting else "policychord reproduce theory"
        )
    else:
        last = "The core does not work: see the lines marked problem or missing."
    emit(json, record, table, last)
    raise typer.Exit(0 if works else 1)
