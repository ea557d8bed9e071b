"""`policychord tracks`: do these animals gate? The card of a file, the fit, every trial, the film."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich import box
from rich.table import Table

from . import options
from .app import Pages, app
from .interrupt import resumable
from .output import Json, aside, counted, emit
from .progress import watching

if TYPE_CHECKING:
    from ..runs.tracks import TrackPlan

tracks = typer.Typer(
    cls=Pages,
    help="Tracks of animals or people that move in groups. Which social forces do they follow, and do the weights of "
    "these forces change with the situation? Reads long tables (trial, frame, id, x, y), sessions of "
    "idtracker.ai and their HDF5 and CSV, numeric .npy arrays, and datasets of the package movement.",
    short_help="Tracks of real groups: which forces, and do they gate?",
    epilog=options.examples(
        "policychord tracks card fish.csv --rate 32",
        "policychord tracks fit trajectories.h5 --out out/fish",
        "policychord tracks film sheep.csv --rate 10 --leave-out 14,15",
    ),
)
app.add_typer(tracks, name="tracks", no_args_is_help=True)
FILE, FORCES = "The file", "Forces"

File = Annotated[
    list[Path],
    typer.Argument(metavar="FILE", help="The tracks; of several files each is a trial (or more) of the same kind."),
]
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
        "the first four, and those that the options below name", "--forces", rich_help_panel=FORCES,
    ),
]  # fmt: skip
Predator = Annotated[
    str | None, options.option("The individual that others flee.", "ID", "", "--predator", rich_help_panel=FORCES)
]
Leader = Annotated[
    str | None, options.option("The individual that others follow.", "ID", "", "--leader", rich_help_panel=FORCES)
]
Goal = Annotated[
    str | None, options.option("A place that all may head for.", "X,Y", "", "--goal", rich_help_panel=FORCES)
]
Arena = Annotated[
    str | None,
    options.option("The wall: a circle, or the corners of a box.", "X,Y,R or X,Y,X,Y", "", "--arena",
                   rich_help_panel=FORCES),
]  # fmt: skip
Radii = Annotated[
    str | None,
    options.option("Of separation, alignment and cohesion.", "R,R,R", "1, 3 and 12 median distances to neighbours",
                   "--radii", rich_help_panel=FORCES),
]  # fmt: skip
Nearest = Annotated[
    int | None,
    options.option("Only so many nearest neighbours count.", "K", "all within the radii", "--nearest",
                   rich_help_panel=FORCES),
]  # fmt: skip
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
    from ..runs.tracks import read_track_plan
    from ..tracks.forces import NEEDS, USUAL

    plan_changes = {name: value for name, value in changes.items() if value is not None}
    for name in ("goal", "arena", "radii"):
        if f"forces.{name}" in plan_changes:
            plan_changes[f"forces.{name}"] = _numbers(name, plan_changes[f"forces.{name}"])
    if settings is None and "forces.forces" not in plan_changes:  # who names a predator means that it is fled from
        more = [force for force, needs in NEEDS.items() if f"forces.{needs}" in plan_changes]
        plan_changes |= {"forces.forces": ",".join((*USUAL, *more))} if more else {}
    for name in ("forces.forces", "forces.leave_out"):
        if name in plan_changes:
            plan_changes[name] = [part.strip() for part in plan_changes[name].split(",") if part.strip()]
    if columns is not None:
        pairs = [part.partition("=") for part in columns.split(",") if part.strip()]
        if any(not equals or not theirs.strip() for _, equals, theirs in pairs):
            raise ValueError(f"--columns {columns!r}: write OURS=THEIRS for each column, such as id=fish,x=pos_x.")
        plan_changes["columns"] = {ours.strip(): theirs.strip() for ours, _, theirs in pairs}
    if causal:
        plan_changes["smoothing.causal"] = True
    return read_track_plan(settings, plan_changes)


def _numbers(name: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--{name} {text!r}: write numbers with commas between them, such as 0,0,50.") from None


@tracks.command(
    "card",
    short_help="What a file holds: numbers, gaps, speeds, order.",
    epilog=options.examples(
        "policychord tracks card fish.csv --rate 32 --unit px",
        "policychord tracks card poses.nc --out out/card --json",
    ),
)
def _card_command(
    files: File,
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
    file_card, written = run_card(files, plan, out)
    rows = describe(file_card)
    table = Table(title=file_card.source, title_justify="left", box=box.SIMPLE_HEAD, show_header=False)
    for what, much in rows:
        table.add_row(what, much)
    record = {
        "command": "tracks card",
        "settings": plan,
        "results": dict(rows),
        "files": written,
        "notes": file_card.notes,
    }
    wrote = [f"Wrote {counted(len(written), 'file')} to {out}."] if written else []
    again = " ".join(["policychord tracks fit", *map(str, files), *([] if rate is None else [f"--rate {rate:g}"])])
    emit(json, record, table, *file_card.notes, *wrote, f"Next, if this looks like your animals:\n  {again}")


@tracks.command(
    "fit",
    short_help="Which forces, and do they gate?",
    epilog=options.examples(
        "policychord tracks fit fish.csv --rate 32",
        "policychord tracks fit sheep.csv --rate 10 --every 1 --smooth 1 --predator 14 --leave-out 15",
        "policychord tracks fit session_*/ --nearest 6",
    ),
)
def _fit_command(
    files: File,
    rate: Rate = None,
    scale: Scale = None,
    unit: Unit = None,
    columns: Columns = None,
    smooth: Smooth = None,
    causal: Causal = False,
    every: Every = None,
    forces: Names = None,
    predator: Predator = None,
    leader: Leader = None,
    goal: Goal = None,
    arena: Arena = None,
    leave_out: LeaveOut = None,
    radii: Radii = None,
    nearest: Nearest = None,
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
    from ..inference import comparison_table
    from ..runs.compiled import keep_programs
    from ..runs.tracks import results_of, run_tracks
    from ..tracks.family import WALK

    changes = {"rate": rate, "scale": scale, "unit": unit, "smoothing.window": smooth, "forces.every": every,
               "forces.forces": forces, "forces.predator": predator, "forces.leader": leader, "forces.goal": goal,
               "forces.arena": arena, "forces.leave_out": leave_out, "forces.radii": radii,
               "forces.nearest": nearest, "most": most, "seed": seed}  # fmt: skip
    plan = _plan(settings, changes, columns, causal)
    target = Path("out") / "tracks" if out is None else out
    keep_programs()
    with watching() as watch:
        made = run_tracks(files, plan, target, watch)
    found = made.answer
    heads, rows = comparison_table(found.comparison, WALK)
    table = Table(title=counted(found.decisions.size, "decision"), title_justify="left", box=box.SIMPLE_HEAD)
    for head in heads:
        table.add_column(head, justify="left" if head == "model" else "right")
    for row in rows:
        table.add_row(*row)
    record = {
        "command": "tracks fit", "settings": plan, "out": target, "files": made.files,
        "results": {**results_of(found), "cpu_seconds": made.seconds, "megabytes": made.megabytes},
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
    "trials",
    short_help="Every trial for itself, on many cores or a cluster.",
    epilog=options.examples(
        "policychord tracks trials sheep.csv --rate 10 --every 1 --leave-out 14,15",
        "policychord tracks trials session_*/trajectories/trajectories.h5 --engine dask \\\n    --scheduler "
        "tcp://host:8786",
    ),
)
def _trials_command(
    files: File,
    rate: Rate = None,
    scale: Scale = None,
    unit: Unit = None,
    columns: Columns = None,
    smooth: Smooth = None,
    causal: Causal = False,
    every: Every = None,
    forces: Names = None,
    predator: Predator = None,
    leader: Leader = None,
    goal: Goal = None,
    arena: Arena = None,
    leave_out: LeaveOut = None,
    radii: Radii = None,
    nearest: Nearest = None,
    most: Most = None,
    settings: Settings = None,
    seed: Seed = None,
    engine: Annotated[
        Literal["local", "dask"],
        options.option("local: processes of this machine. dask: a cluster.", "NAME", "local", "--engine"),
    ] = "local",
    scheduler: Annotated[
        str | None,
        options.option("Address of a Dask scheduler.", "ADDRESS", "a cluster on this machine", "--scheduler"),
    ] = None,
    workers: Annotated[
        int | None, options.option("Processes that work side by side.", "N", "one for each core", "--workers", min=1)
    ] = None,
    out: Annotated[Path | None, options.out("out/trials")] = None,
    json: Json = False,
) -> None:
    """Ask of every trial whether its animals gate: the composed agent against constant weights, held out over blocks
    of its time. Trials are fitted side by side, and each is kept as soon as it is done: the same command goes on.

    Writes a table with a line for each trial, and a figure.
    """
    from ..runs.engine import available_cores, dask_cluster, processes
    from ..runs.store import prepare
    from ..runs.tracks import load_motion as read_motion
    from ..runs.trials import run_trials

    if scheduler and engine != "dask":
        raise typer.BadParameter("a scheduler is Dask's: add --engine dask.", param_hint="--scheduler")
    if scheduler and workers:
        raise typer.BadParameter("a scheduler has its own workers: leave --workers out.", param_hint="--workers")
    changes = {"rate": rate, "scale": scale, "unit": unit, "smoothing.window": smooth, "forces.every": every,
               "forces.forces": forces, "forces.predator": predator, "forces.leader": leader, "forces.goal": goal,
               "forces.arena": arena, "forces.leave_out": leave_out, "forces.radii": radii,
               "forces.nearest": nearest, "most": most, "seed": seed}  # fmt: skip
    plan = _plan(settings, changes, columns, causal)
    target = Path("out") / "trials" if out is None else out
    _, motion = read_motion(files, plan)  # a broken file leaves nothing behind, and no log
    count = available_cores() if workers is None else workers
    resumable()
    if engine == "local":
        prepare(target)
        with processes(count, target / "log.txt") as pool, watching() as watch:
            result = run_trials(motion, plan, target, pool, count, watch)
    else:
        with dask_cluster(scheduler, count) as cluster, watching() as watch:
            aside.print(f"{counted(cluster.workers, 'worker')}; dashboard: {cluster.dashboard}", soft_wrap=True)
            result = run_trials(motion, plan, target, cluster.pool, cluster.workers, watch)
    table = Table(title=counted(len(result.rows), "trial"), title_justify="left", box=box.SIMPLE_HEAD)
    for column in ("trial", "decisions", "call", "acts", "gain over constant"):
        table.add_column(column, justify="right" if column in ("decisions", "gain over constant") else "left")
    for row in result.rows:
        table.add_row(row.trial, f"{row.decisions:,}", row.call, row.acts, f"{row.gain:+.4f} ± {row.error:.4f}")
    record = {"command": "tracks trials", "settings": plan, "out": target, "files": result.files,
              "results": {"trials": [row._asdict() for row in result.rows]},
              "notes": [result.sentence, *result.notes]}  # fmt: skip
    emit(json, record, table, result.sentence, *result.notes,
         f"Wrote {counted(len(result.files), 'file')} to {target}.", f"Next: open {result.files[-1]}.")  # fmt: skip


@tracks.command(
    "film",
    short_help="A film of a trial, coloured by the weights.",
    epilog=options.examples(
        "policychord tracks film fish.csv --rate 32",
        "policychord tracks film sheep.csv --rate 10 --trial 3 --leave-out 14,15",
    ),
)
def _film_command(
    files: File,
    trial: Annotated[int, typer.Option(help="Which trial, counted from 0.", metavar="N")] = 0,
    rate: Rate = None,
    scale: Scale = None,
    unit: Unit = None,
    columns: Columns = None,
    smooth: Smooth = None,
    causal: Causal = False,
    every: Every = None,
    forces: Names = None,
    predator: Predator = None,
    leader: Leader = None,
    goal: Goal = None,
    arena: Arena = None,
    leave_out: LeaveOut = None,
    radii: Radii = None,
    nearest: Nearest = None,
    most: Most = None,
    settings: Settings = None,
    seed: Seed = None,
    out: Annotated[Path | None, options.out("out/tracks")] = None,
    json: Json = False,
) -> None:
    """Fit the weights and film one trial: every individual in the colour of the forces that it follows."""
    from ..runs.compiled import keep_programs
    from ..runs.tracks import run_film

    changes = {"rate": rate, "scale": scale, "unit": unit, "smoothing.window": smooth, "forces.every": every,
               "forces.forces": forces, "forces.predator": predator, "forces.leader": leader, "forces.goal": goal,
               "forces.arena": arena, "forces.leave_out": leave_out, "forces.radii": radii,
               "forces.nearest": nearest, "most": most, "seed": seed}  # fmt: skip
    plan = _plan(settings, changes, columns, causal)
    target = Path("out") / "tracks" if out is None else out
    keep_programs()
    with watching() as watch:
        files = run_film(files, plan, trial, target, watch)
    record = {"command": "tracks film", "settings": plan, "out": target, "files": files, "results": {"trial": trial}}
    emit(json, record, f"Wrote {', '.join(str(path) for path in files)}.", f"Next: open {files[0]} in a browser.")
