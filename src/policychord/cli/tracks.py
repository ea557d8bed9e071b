"""`policychord tracks`: do these animals gate? The card of a file, the fit with its rivals, and the film."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from . import options
from .app import Pages, app
from .output import Json, counted, emit
from .progress import watching

if TYPE_CHECKING:
    from ..runs.tracks import TrackPlan

tracks = typer.Typer(
    cls=Pages,
    help="Tracks of animals or people that move in groups. Which social forces do they follow, and do the weights of "
    "these forces change with the situation? Reads long tables (trial, frame, id, x, y), idtracker.ai's HDF5 and CSV, "
    "numeric .npy arrays, and datasets of the package movement.",
    short_help="Tracks of real groups: which forces, and do they gate?",
    epilog=options.examples(
        "policychord tracks card fish.csv --rate 32",
        "policychord tracks fit trajectories.h5 --out out/fish",
        "policychord tracks film sheep.csv --rate 10 --leave-out 14,15",
    ),
)
app.add_typer(tracks, name="tracks", no_args_is_help=True)
FILE, FORCES = "The file", "Forces"

File = Annotated[Path, typer.Argument(metavar="FILE", help="The tracks.")]
Rate = Annotated[
    float | None,
    options.option("Frames a second, where the file does not say.", "HZ", "", "--rate", rich_help_panel=FILE),
]
Scale = Annotated[
    float | None,
    options.option("Length of one unit of the file.", "LENGTH", "1", "--scale", rich_help_panel=FILE),
]
Unit = Annotated[str | None, options.option("Name of that length.", "NAME", "", "--unit", rich_help_panel=FILE)]
Columns = Annotated[
    str | None,
    options.option(
        "What a long table calls our columns: trial, frame or time, id, x, y. Such as id=fish,x=pos_x.", "PAIRS",
        "guessed", "--columns", rich_help_panel=FILE,
    ),
]  # fmt: skip
Smooth = Annotated[
    float | None,
    options.option("Seconds under the smoothing polynomial.", "SECONDS", "0.3", "--smooth", rich_help_panel=FILE),
]
Causal = Annotated[bool, typer.Option("--causal", help="Smooth without looking ahead in time.", rich_help_panel=FILE)]
Settings = Annotated[
    Path | None,
    options.option("TOML file with everything that a plan can say; options win.", "FILE", "", "--settings",
                   exists=True, dir_okay=False),
]  # fmt: skip
Every = Annotated[
    float | None,
    options.option("Seconds from one decision to the next.", "SECONDS", "0.25", "--every", rich_help_panel=FORCES),
]
Names = Annotated[
    str | None,
    options.option(
        "Which forces: persist, separation, alignment, cohesion, wall, goal, predator, leader.", "LIST",
        "the first four", "--forces", rich_help_panel=FORCES,
    ),
]  # fmt: skip
Predator = Annotated[
    str | None, options.option("The individual that others flee.", "ID", "", "--predator", rich_help_panel=FORCES)
]
LeaveOut = Annotated[
    str | None,
    options.option("Individuals that belong to no group.", "IDS", "", "--leave-out", rich_help_panel=FORCES),
]
Most = Annotated[
    int | None,
    options.option(
        "Use so many decisions at most, spread evenly in time.", "N", "20000", "--most", rich_help_panel=FORCES
    ),
]
Seed = Annotated[int | None, options.seed()]


def _plan(
    settings: Path | None, changes: dict[str, Any], columns: str | None = None, causal: bool = False
) -> "TrackPlan":
    from ..runs.tracks import read_plan

    given = {name: value for name, value in changes.items() if value is not None}
    for name in ("forces.forces", "forces.leave_out"):
        if name in given:
            given[name] = [part.strip() for part in given[name].split(",") if part.strip()]
    if columns is not None:
        pairs = [part.partition("=") for part in columns.split(",") if part.strip()]
        if any(not equals or not theirs.strip() for _, equals, theirs in pairs):
            raise ValueError(f"--columns {columns!r}: write OURS=THEIRS for each column, such as id=fish,x=pos_x.")
        given["columns"] = {ours.strip(): theirs.strip() for ours, _, theirs in pairs}
    if causal:
        given["smoothing.causal"] = True
    return read_plan(settings, given)


@tracks.command(
    short_help="What a file holds: numbers, gaps, speeds, order.",
    epilog=options.examples(
        "policychord tracks card fish.csv --rate 32 --unit px",
        "policychord tracks card poses.nc --out out/card --json",
    ),
)
def card(
    file: File,
    rate: Rate = None,
    scale: Scale = None,
    unit: Unit = None,
    columns: Columns = None,
    smooth: Smooth = None,
    causal: Causal = False,
    settings: Settings = None,
    out: Annotated[Path | None, options.out("none: only print")] = None,
    json: Json = False,
) -> None:
    """Print the card of a file of tracks: how many and for how long, gaps, how velocities are found, speeds, nearest
    neighbours, polarization and milling. With --out also a figure.
    """
    from ..runs.tracks import run_card
    from ..tracks.motion import describe

    plan = _plan(settings, {"rate": rate, "scale": scale, "unit": unit, "smoothing.window": smooth}, columns, causal)
    found, files = run_card(file, plan, out)
    rows = describe(found)
    table = Table(title=found.source, title_justify="left", box=box.SIMPLE_HEAD, show_header=False)
    for what, much in rows:
        table.add_row(what, much)
    record = {"command": "tracks card", "settings": plan, "results": dict(rows), "files": files, "notes": found.notes}
    said = [f"Wrote {counted(len(files), 'file')} to {out}."] if files else []
    emit(json, record, table, *found.notes, *said)


@tracks.command(
    short_help="Which forces, and do they gate? With rivals.",
    epilog=options.examples(
        "policychord tracks fit fish.csv --rate 32",
        "policychord tracks fit sheep.csv --rate 10 --every 1 --smooth 1 \\\n    --forces "
        "persist,separation,alignment,cohesion,predator --predator 14 --leave-out 15",
    ),
)
def fit(
    file: File,
    rate: Rate = None,
    scale: Scale = None,
    unit: Unit = None,
    columns: Columns = None,
    smooth: Smooth = None,
    causal: Causal = False,
    every: Every = None,
    forces: Names = None,
    predator: Predator = None,
    leave_out: LeaveOut = None,
    most: Most = None,
    settings: Settings = None,
    seed: Seed = None,
    out: Annotated[Path | None, options.out("out/tracks")] = None,
    json: Json = False,
) -> None:
    """Fit individuals that mix social forces to how they change their velocity. Compares weights that a gate chooses
    at every decision with constant weights, single forces, a regression on the forces, a free softmax gate and a
    random walk, on decisions that were held out; and says whether gating is needed.

    Writes a page, a summary, figures and a labelled tree.
    """
    from ..runs.compiled import keep_programs
    from ..runs.tracks import run_tracks
    from ..tracks.compare import score_rows

    changes = {"rate": rate, "scale": scale, "unit": unit, "smoothing.window": smooth, "forces.every": every,
               "forces.forces": forces, "forces.predator": predator, "forces.leave_out": leave_out,
               "most": most, "seed": seed}  # fmt: skip
    plan = _plan(settings, changes, columns, causal)
    target = Path("out") / "tracks" if out is None else out
    keep_programs()
    with watching() as watch:
        made = run_tracks(file, plan, target, watch)
    found, rows = made.answer, score_rows(made.answer)
    table = Table(title=counted(found.decisions.size, "decision"), title_justify="left", box=box.SIMPLE_HEAD)
    for column in ("account", "parameters", "held out", "above a random walk"):
        table.add_column(column, justify="left" if column == "account" else "right")
    for row in rows:
        above = f"{row['over_random_walk']:+.4f} ± {row['error']:.4f}"
        table.add_row(row["account"], str(row["parameters"]), f"{row['held_out']:.4f}", above)
    record = {
        "command": "tracks fit", "settings": plan, "out": target, "files": made.files,
        "results": {"call": found.call, "accounts": rows, "gain_over_constant": found.gain._asdict(),
                    "decisions": found.decisions.size, "cpu_seconds": made.seconds, "megabytes": made.megabytes},
        "notes": [found.sentence, *made.notes],
    }  # fmt: skip
    emit(
        json,
        record,
        table,
        found.sentence,
        *made.notes,
        f"Wrote {counted(len(made.files), 'file')} to {target}.",
        f"Next: open {made.files[0]}.",
    )


@tracks.command(
    short_help="A film of a trial, coloured by the weights.",
    epilog=options.examples(
        "policychord tracks film fish.csv --rate 32",
        "policychord tracks film sheep.csv --rate 10 --trial 3 --leave-out 14,15",
    ),
)
def film(
    file: File,
    trial: Annotated[int, typer.Option(help="Which trial, counted from 0.", metavar="N")] = 0,
    rate: Rate = None,
    scale: Scale = None,
    unit: Unit = None,
    columns: Columns = None,
    smooth: Smooth = None,
    every: Every = None,
    forces: Names = None,
    predator: Predator = None,
    leave_out: LeaveOut = None,
    settings: Settings = None,
    out: Annotated[Path | None, options.out("out/tracks")] = None,
    json: Json = False,
) -> None:
    """Fit the weights and film one trial: every individual in the colour of the forces that it follows."""
    from ..runs.compiled import keep_programs
    from ..runs.tracks import run_film

    changes = {"rate": rate, "scale": scale, "unit": unit, "smoothing.window": smooth, "forces.every": every,
               "forces.forces": forces, "forces.predator": predator, "forces.leave_out": leave_out}  # fmt: skip
    plan = _plan(settings, changes, columns)
    target = Path("out") / "tracks" if out is None else out
    keep_programs()
    with watching() as watch:
        files = run_film(file, plan, trial, target, watch)
    record = {"command": "tracks film", "settings": plan, "out": target, "files": files, "results": {"trial": trial}}
    emit(json, record, f"Wrote {', '.join(str(path) for path in files)}.")
