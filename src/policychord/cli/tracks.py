"""`policychord tracks`: do weights of social forces change? Check, fit, every trial, film, groups of known kinds."""

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel, Field

from .._names import SEED
from ..tracks.settings import NEEDS, USUAL, TrackPlan
from . import options
from .app import Pages, app
from .interrupt import resumable
from .output import Json, command_line, counted, emit, screen, table, tell
from .progress import watching

tracks = typer.Typer(
    cls=Pages,
    help="Tracks of animals or people that move in groups. Which social forces do they follow, and do the weights of "
    "these forces change with the situation? Reads long tables (trial, frame, id, x, y), sessions of "
    "idtracker.ai and their HDF5 and CSV, numeric .npy arrays, and datasets of the package movement.",
    short_help="Tracks of real groups: which forces, and do their weights change?",
    epilog=options.examples(
        "policychord tracks check fish.csv --rate 32",
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


_FILE = options.offer(TrackPlan, {
    "rate": "HZ", "scale": "LENGTH", "unit": "NAME", "columns": options.Shown("OURS=THEIRS", "guessed"),
    "smoothing.window": options.Shown("SECONDS", name="smooth"), "smoothing.causal": "", "smoothing.jump": "N",
}, FILE)  # fmt: skip
_FORCES = options.offer(TrackPlan, {
    "forces.every": "SECONDS",
    "forces.forces": options.Shown("NAMES", "the first four, and those that the options below name"),
    "forces.predator": "ID", "forces.reach": options.Shown("LENGTH", "twice the cohesion radius"),
    "forces.leader": "ID", "forces.goal": "X,Y", "forces.arena": options.Shown("X,Y,R or X,Y,X,Y", "none"),
    "forces.leave_out": "IDS", "forces.radii": options.Shown("R,R,R", "1, 3 and 12 median distances to neighbours"),
    "forces.nearest": options.Shown("K", "all within the radii"), "most": "N", "surrogates": "N",
}, FORCES)  # fmt: skip
_PLAN = [*_FILE, *_FORCES, *options.offer(TrackPlan, {"seed": "N"})]


def _build(changes: dict[str, Any]) -> TrackPlan:
    """The plan, in which whoever names a predator, say, means that it is fled from."""
    forces = changes.get("forces", {})
    named = [force for force, needs in NEEDS.items() if isinstance(forces, dict) and needs in forces]
    if named and "forces" not in forces:
        forces["forces"] = [*USUAL, *named]
    return TrackPlan.model_validate(changes)


def _plan_of(given: options.Given) -> TrackPlan:
    plan: TrackPlan = options.settle(given, _build)
    return plan


@tracks.command(
    "check",
    short_help="What a file holds: numbers, gaps, speeds, order.",
    epilog=options.examples(
        "policychord tracks check fish.csv --rate 32 --unit px",
        "policychord tracks check poses.nc --out out/check --json",
    ),
)
@options.with_settings(file="a plan", given=_FILE)
def _check_command(
    files: File,
    given: options.Given,
    out: Annotated[Path | None, options.out("none: only print")] = None,
    json: Json = False,
) -> None:
    """Print the card of a file of tracks: how many and for how long, gaps, how velocities are found, speeds, nearest
    neighbours, polarization and milling. With --out also a figure.
    """
    from ..runs.tracks import run_card
    from ..tracks.motion import describe

    plan = _plan_of(given)
    file_card, written = run_card(files, plan, out)
    rows = describe(file_card)
    record = {"settings": plan, "results": dict(rows), "files": written, "notes": file_card.notes}
    wrote = [f"Wrote {counted(len(written), 'file')} to {out}."] if written else []
    again = options.repeat("policychord tracks fit", files, given)
    emit(
        json,
        record,
        table(file_card.source, ("", ""), rows),
        *file_card.notes,
        *wrote,
        f"Next, if this looks like your animals:\n  {again}",
    )


@tracks.command(
    "fit",
    short_help="Which forces, and do their weights change?",
    epilog=options.examples(
        "policychord tracks fit fish.csv --rate 32",
        "policychord tracks fit sheep.csv --rate 10 --every 1 --smooth 1 --predator 14 --leave-out 15",
        "policychord tracks fit session_*/ --nearest 6",
    ),
)
@options.with_settings(file="a plan", given=_PLAN)
def _fit_command(
    files: File,
    given: options.Given,
    out: Annotated[Path | None, options.out("out/tracks")] = None,
    json: Json = False,
) -> None:
    """Fit social forces to how individuals change their velocity. Compares constant weights with weights that depend on
    the situation, that solve a gating problem, or that have hidden states, on decisions that were held out, above a
    baseline of own motion; and says whether weights change. A gain counts only if it is larger than in surrogates
    without company and in draws from constant weights.

    Writes a page, a summary and figures.
    """
    from ..runs.compiled import keep_programs
    from ..runs.tracks import run_tracks

    plan, target = _plan_of(given), Path("out") / "tracks" if out is None else out
    keep_programs()
    with watching() as watch:
        _, results, written = run_tracks(files, plan, target, watch, command_line())
    tell(json, results, {"settings": plan, "out": target, "files": written})


@tracks.command(
    "trials",
    short_help="Every trial for itself, on many cores or a cluster.",
    epilog=options.examples(
        "policychord tracks trials sheep.csv --rate 10 --every 1 --leave-out 14,15",
        "policychord tracks trials session_*/trajectories/trajectories.h5 --engine dask \\\n    --scheduler "
        "tcp://host:8786",
    ),
)
@options.with_settings(file="a plan", given=_PLAN, work=options.offer(options.Work))
def _trials_command(
    files: File,
    given: options.Given,
    work: options.Given,
    out: Annotated[Path | None, options.out("out/trials")] = None,
    json: Json = False,
) -> None:
    """Ask of every trial whether its weights change: gates against constant weights, held out over blocks of its
    time. Trials are fitted side by side, and each is kept as soon as it is done: the same command goes on.

    Writes a page, and a table with a line for each trial.
    """
    from ..runs.page import write_results
    from ..runs.store import prepare
    from ..runs.tracks import load_motion
    from ..runs.trials import page_of_trials, run_trials

    plan, how = _plan_of(given), options.work_of(work)
    target = Path("out") / "trials" if out is None else out
    read, motion = load_motion(files, plan)  # a broken file leaves nothing behind, and no log
    resumable()
    prepare(target)
    with options.start_workers(how, target / "log.txt") as (pool, count), watching() as watch:
        rows = run_trials(motion, plan, target, pool, count, watch)
    results = page_of_trials(rows, read, motion, plan)
    tell(json, results, {"settings": plan, "out": target, "files": write_results(target, results, command_line())})


@tracks.command(
    "film",
    short_help="A film of a trial, coloured by the weights.",
    epilog=options.examples(
        "policychord tracks film fish.csv --rate 32",
        "policychord tracks film sheep.csv --rate 10 --trial 3 --leave-out 14,15",
    ),
)
@options.with_settings(file="a plan", given=_PLAN)
def _film_command(
    files: File,
    given: options.Given,
    trial: Annotated[int, typer.Option(help="Which trial, counted from 0.", metavar="N")] = 0,
    out: Annotated[Path | None, options.out("out/tracks")] = None,
    json: Json = False,
) -> None:
    """Fit the weights and film one trial: every individual in the colour of the forces that it follows."""
    from ..runs.compiled import keep_programs
    from ..runs.tracks import run_film

    plan, target = _plan_of(given), Path("out") / "tracks" if out is None else out
    keep_programs()
    with watching() as watch:
        files = run_film(files, plan, trial, target, watch)
    record = {"command": "tracks film", "settings": plan, "out": target, "files": files, "results": {"trial": trial}}
    emit(json, record, f"Wrote {', '.join(str(path) for path in files)}.", f"Next: open {files[0]} in a browser.")


def _list_kinds(wanted: bool) -> None:
    if wanted:
        from ..tracks.kinds import KINDS

        rows = [(name, "change" if kind.changes else "constant", kind.description) for name, kind in KINDS.items()]
        screen.print(table("", ("kind", "weights", "rule"), rows))
        raise typer.Exit


class GroupSettings(BaseModel):
    """A simulated group."""

    kind: Annotated[str, options.Shown("KIND")] = Field(default="zones", description="the rule by which they move")
    individuals: Annotated[int, options.Shown("N")] = Field(default=10, ge=2, le=500, description="how many")
    seconds: Annotated[float, options.Shown("SECONDS")] = Field(default=45.0, ge=1, le=3600, description="for how long")
    seed: Annotated[int, options.Shown("N")] = Field(default=0, ge=0, lt=2**31, description=SEED)


@tracks.command(
    "simulate",
    short_help="Tracks of a group with known rules, to try the commands with.",
    epilog=options.examples(
        "policychord tracks simulate fish.csv",
        "policychord tracks simulate swimmers.csv --kind burst-and-coast --seconds 90",
    ),
)
@options.with_settings(given=options.offer(GroupSettings))
def _simulate_command(
    out: options.ToWrite,
    given: options.Given,
    kinds: Annotated[
        bool, typer.Option("--kinds", callback=_list_kinds, is_eager=True, help="List the rules, and do nothing else.")
    ] = False,
    json: Json = False,
) -> None:
    """Write tracks of one group that moves by a known rule, as a table (trial, frame, id, x, y), 20 frames a second."""
    from ..runs.tracks import write_tracks
    from ..tracks.kinds import KINDS, RATE, simulate_kind

    settings: GroupSettings = options.settle(given)
    kind = settings.kind
    files = [write_tracks(out, simulate_kind(**settings.model_dump()))]
    record = {"files": files,
              "settings": settings,
              "results": {"weights change": KINDS[kind].changes, "rule": KINDS[kind].description}}  # fmt: skip
    emit(json, record, f"Wrote {counted(settings.individuals, 'individual')} in {settings.seconds:g} s to {out}; "
         f"rule {kind}: {KINDS[kind].description}.",
         f"Next: policychord tracks fit {out} --rate {RATE:g}")  # fmt: skip
