"""`policychord tracks`: do weights of social forces change? Check, fit, every trial, film, groups of known kinds."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich import box
from rich.table import Table

from . import options
from .app import Pages, app
from .interrupt import resumable
from .output import Json, counted, emit, screen
from .output import table as shown_table
from .progress import watching

if TYPE_CHECKING:
    from ..runs.tracks import TrackPlan

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


class _Option(NamedTuple):
    """An option that sets one place of a plan, named as there: `--leave-out` sets `forces.leave_out`."""

    place: str
    kind: type
    words: str
    metavar: str
    default: str = ""
    name: str = ""  # where the command has another word for it

    @property
    def argument(self) -> str:
        return self.name or self.place.rpartition(".")[2]

    def parameter(self, panel: str) -> Parameter:
        """What Typer reads in the signature of a command."""
        more: dict[str, Any] = {"rich_help_panel": panel} if panel else {}
        flag, unset = f"--{self.argument.replace('_', '-')}", False if self.kind is bool else None
        if self.kind is bool:
            kind: Any = Annotated[bool, typer.Option(flag, help=self.words, **more)]
        else:
            more |= {"exists": True, "dir_okay": False} if self.kind is Path else {}
            kind = Annotated[self.kind | None, options.option(self.words, self.metavar, self.default, flag, **more)]
        return Parameter(self.argument, Parameter.KEYWORD_ONLY, default=unset, annotation=kind)


_FILE = (
    _Option("rate", float, "Frames a second, where the file does not say.", "HZ"),
    _Option("scale", float, "Length of one unit of the file.", "LENGTH", "1"),
    _Option("unit", str, "Name of that length.", "NAME"),
    _Option(
        "columns", str, "What a long table calls our columns: trial, frame or time, id, x, y. Such as "
        "id=fish,x=pos_x.", "PAIRS", "guessed",
    ),
    _Option("smoothing.window", float, "Seconds under the smoothing polynomial.", "SECONDS", "0.2", "smooth"),
    _Option("smoothing.causal", bool, "Smooth without looking ahead in time.", ""),
    _Option("smoothing.jump", float, "Cut tracks at so many usual deviations from going straight; 0: never.", "N", "8"),
)  # fmt: skip
_FORCES = (
    _Option("forces.every", float, "Seconds from one decision to the next.", "SECONDS", "0.25"),
    _Option(
        "forces.forces", str, "Which forces: persist, separation, alignment, cohesion, wall, goal, predator, leader, "
        "drag.",
        "LIST", "the first four, and those that the options below name",
    ),
    _Option("forces.predator", str, "The individual that others flee.", "ID"),
    _Option("forces.reach", float, "How far a predator is seen.", "LENGTH", "twice the cohesion radius"),
    _Option("forces.leader", str, "The individual that others follow.", "ID"),
    _Option("forces.goal", str, "A place that all may head for.", "X,Y"),
    _Option("forces.arena", str, "The wall: a circle, or the corners of a box.", "X,Y,R or X,Y,X,Y"),
    _Option("forces.leave_out", str, "Individuals that belong to no group.", "IDS"),
    _Option(
        "forces.radii", str, "Of separation, alignment and cohesion.", "R,R,R",
        "1, 3 and 12 median distances to neighbours",
    ),
    _Option("forces.nearest", int, "Only so many nearest neighbours count.", "K", "all within the radii"),
    _Option("most", int, "Use so many decisions at most, spread evenly in time.", "N", "20000"),
)  # fmt: skip
_SURROGATES = _Option("surrogates", int, "Surrogates of each kind at most; 0 makes none.", "N", "19")
_SETTINGS = _Option("settings", Path, "TOML file with everything that a plan can say; options win.", "FILE")
_SEED = _Option("seed", int, "Seed of all random draws: the same seed, the same result.", "N", "0")


def _with_plan(forces: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command that takes `plan` gets, in its place, the options that say one."""
    offered = [
        (_FILE, FILE),
        *([((*_FORCES, _SURROGATES), FORCES)] if forces else []),
        ((_SETTINGS, *([_SEED] if forces else [])), ""),
    ]
    taken = [(option, panel) for group, panel in offered for option in group]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**values: Any) -> None:
            changes = {option.place: values.pop(option.argument) for option, _ in taken}
            command(plan=_plan(changes.pop("settings"), changes), **values)

        own = [part.replace(kind=Parameter.KEYWORD_ONLY) for part in signature(command).parameters.values()]
        place = next(n for n, part in enumerate(own) if part.name == "plan")
        parts = [*own[:place], *(option.parameter(panel) for option, panel in taken), *own[place + 1 :]]
        run.__dict__["__signature__"] = Signature(parts)
        run.__annotations__ = {part.name: part.annotation for part in parts}
        return run

    return decorate


def _plan(settings: Path | None, changes: dict[str, Any]) -> "TrackPlan":
    from ..runs.tracks import read_track_plan
    from ..tracks.forces import NEEDS, USUAL

    plan_changes = {place: value for place, value in changes.items() if value is not None and value is not False}
    for name in ("goal", "arena", "radii"):
        if f"forces.{name}" in plan_changes:
            plan_changes[f"forces.{name}"] = _numbers(name, plan_changes[f"forces.{name}"])
    if settings is None and "forces.forces" not in plan_changes:  # who names a predator means that it is fled from
        more = [force for force, needs in NEEDS.items() if f"forces.{needs}" in plan_changes]
        plan_changes |= {"forces.forces": ",".join((*USUAL, *more))} if more else {}
    for place in ("forces.forces", "forces.leave_out"):
        if place in plan_changes:
            plan_changes[place] = [part.strip() for part in plan_changes[place].split(",") if part.strip()]
    if "columns" in plan_changes:
        plan_changes["columns"] = _columns(plan_changes["columns"])
    return read_track_plan(settings, plan_changes)


def _as_options(plan: "TrackPlan") -> str:
    """The options of the file that a plan has and the defaults have not, to repeat them in another command."""
    from ..runs.tracks import TrackPlan

    usual, words = TrackPlan(), ""
    for option in _FILE:
        outer, _, inner = option.place.rpartition(".")
        value, default = (getattr(getattr(each, outer) if outer else each, inner) for each in (plan, usual))
        if value != default:
            pairs = (
                ",".join(f"{ours}={theirs}" for ours, theirs in value.items()) if option.argument == "columns" else ""
            )
            text = "" if value is True else f" {pairs or (f'{value:g}' if isinstance(value, float) else value)}"
            words += f" --{option.argument.replace('_', '-')}{text}"
    return words


def _columns(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if any(not equals or not theirs.strip() for _, equals, theirs in pairs):
        raise ValueError(f"--columns {text!r}: write OURS=THEIRS for each column, such as id=fish,x=pos_x.")
    return {ours.strip(): theirs.strip() for ours, _, theirs in pairs}


def _numbers(name: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--{name} {text!r}: write numbers with commas between them, such as 0,0,50.") from None


@tracks.command(
    "check",
    short_help="What a file holds: numbers, gaps, speeds, order.",
    epilog=options.examples(
        "policychord tracks check fish.csv --rate 32 --unit px",
        "policychord tracks check poses.nc --out out/check --json",
    ),
)
@_with_plan(forces=False)
def _check_command(
    files: File,
    plan: "TrackPlan",
    out: Annotated[Path | None, options.out("none: only print")] = None,
    json: Json = False,
) -> None:
    """Print the card of a file of tracks: how many and for how long, gaps, how velocities are found, speeds, nearest
    neighbours, polarization and milling. With --out also a figure.
    """
    from ..runs.tracks import run_card
    from ..tracks.motion import describe

    file_card, written = run_card(files, plan, out)
    rows = describe(file_card)
    table = Table(title=file_card.source, title_justify="left", box=box.SIMPLE_HEAD, show_header=False)
    for what, much in rows:
        table.add_row(what, much)
    record = {"command": "tracks check", "settings": plan, "results": dict(rows), "files": written,
              "notes": file_card.notes}  # fmt: skip
    wrote = [f"Wrote {counted(len(written), 'file')} to {out}."] if written else []
    again = f"policychord tracks fit {' '.join(map(str, files))}{_as_options(plan)}"
    emit(json, record, table, *file_card.notes, *wrote, f"Next, if this looks like your animals:\n  {again}")


@tracks.command(
    "fit",
    short_help="Which forces, and do their weights change?",
    epilog=options.examples(
        "policychord tracks fit fish.csv --rate 32",
        "policychord tracks fit sheep.csv --rate 10 --every 1 --smooth 1 --predator 14 --leave-out 15",
        "policychord tracks fit session_*/ --nearest 6",
    ),
)
@_with_plan()
def _fit_command(
    files: File,
    plan: "TrackPlan",
    out: Annotated[Path | None, options.out("out/tracks")] = None,
    json: Json = False,
) -> None:
    """Fit social forces to how individuals change their velocity. Compares constant weights with weights that depend on
    the situation, that solve a gating problem, or that have hidden states, on decisions that were held out, above a
    baseline of own motion; and says whether weights change. A gain counts only if it is larger than in surrogates
    without company and in draws from constant weights.

    Writes a page, a summary and figures.
    """
    from ..inference import comparison_table
    from ..runs.compiled import keep_programs
    from ..runs.tracks import results_of, run_tracks
    from ..tracks.rivals import ALONE

    target = Path("out") / "tracks" if out is None else out
    keep_programs()
    with watching() as watch:
        explained = run_tracks(files, plan, target, watch)
    result = explained.verdict
    heads, rows = comparison_table(result.comparison, ALONE)
    table = Table(title=counted(result.decisions.size, "decision"), title_justify="left", box=box.SIMPLE_HEAD)
    for head in heads:
        table.add_column(head, justify="left" if head == "model" else "right")
    for row in rows:
        table.add_row(*row)
    record = {
        "command": "tracks fit", "settings": plan, "out": target, "files": explained.files,
        "results": {**results_of(result), "cpu_seconds": explained.seconds, "megabytes": explained.megabytes},
        "notes": [result.sentence, *explained.notes],
    }  # fmt: skip
    wrote = f"Wrote {counted(len(explained.files), 'file')} to {target}."
    emit(json, record, table, result.sentence, *explained.notes, wrote, f"Next: open {explained.files[0]}.")


@tracks.command(
    "trials",
    short_help="Every trial for itself, on many cores or a cluster.",
    epilog=options.examples(
        "policychord tracks trials sheep.csv --rate 10 --every 1 --leave-out 14,15",
        "policychord tracks trials session_*/trajectories/trajectories.h5 --engine dask \\\n    --scheduler "
        "tcp://host:8786",
    ),
)
@_with_plan()
@options.expand_records
def _trials_command(
    files: File,
    plan: "TrackPlan",
    work: options.Work,
    out: Annotated[Path | None, options.out("out/trials")] = None,
    json: Json = False,
) -> None:
    """Ask of every trial whether its weights change: gates against constant weights, held out over blocks of its
    time. Trials are fitted side by side, and each is kept as soon as it is done: the same command goes on.

    Writes a table with a line for each trial, and a figure.
    """
    from ..runs.store import prepare
    from ..runs.tracks import load_motion
    from ..runs.trials import run_trials

    options.check_work(work)
    target = Path("out") / "trials" if out is None else out
    _, motion = load_motion(files, plan)  # a broken file leaves nothing behind, and no log
    resumable()
    prepare(target)
    with options.start_workers(work, target / "log.txt") as (pool, count), watching() as watch:
        result = run_trials(motion, plan, target, pool, count, watch)
    table = Table(title=counted(len(result.rows), "trial"), title_justify="left", box=box.SIMPLE_HEAD)
    for column in ("trial", "decisions", "call", "gate", "gain over constant"):
        table.add_column(column, justify="right" if column in ("decisions", "gain over constant") else "left")
    for row in result.rows:
        table.add_row(row.trial, f"{row.decisions:,}", row.call, row.gate, f"{row.gain:+.4f} ± {row.error:.4f}")
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
@_with_plan()
def _film_command(
    files: File,
    plan: "TrackPlan",
    trial: Annotated[int, typer.Option(help="Which trial, counted from 0.", metavar="N")] = 0,
    out: Annotated[Path | None, options.out("out/tracks")] = None,
    json: Json = False,
) -> None:
    """Fit the weights and film one trial: every individual in the colour of the forces that it follows."""
    from ..runs.compiled import keep_programs
    from ..runs.tracks import run_film

    target = Path("out") / "tracks" if out is None else out
    keep_programs()
    with watching() as watch:
        files = run_film(files, plan, trial, target, watch)
    record = {"command": "tracks film", "settings": plan, "out": target, "files": files, "results": {"trial": trial}}
    emit(json, record, f"Wrote {', '.join(str(path) for path in files)}.", f"Next: open {files[0]} in a browser.")


def _list_kinds(wanted: bool) -> None:
    if wanted:
        from ..tracks.kinds import KINDS

        rows = [(name, "change" if kind.changes else "constant", kind.description) for name, kind in KINDS.items()]
        screen.print(shown_table("", ("kind", "weights", "rule"), rows))
        raise typer.Exit


@tracks.command(
    "simulate",
    short_help="Tracks of a group with known rules, to try the commands with.",
    epilog=options.examples(
        "policychord tracks simulate fish.csv",
        "policychord tracks simulate swimmers.csv --kind burst-and-coast --seconds 90",
    ),
)
def _simulate_command(
    out: options.ToWrite,
    kind: Annotated[str, typer.Option(help="The rule by which they move.", metavar="KIND")] = "zones",
    kinds: Annotated[
        bool, typer.Option("--kinds", callback=_list_kinds, is_eager=True, help="List the rules, and do nothing else.")
    ] = False,
    individuals: Annotated[int, typer.Option(help="How many.", metavar="N", min=2, max=500)] = 10,
    seconds: Annotated[float, typer.Option(help="For how long.", metavar="SECONDS", min=1.0, max=3600.0)] = 45.0,
    seed: Annotated[int, options.seed()] = 0,
    json: Json = False,
) -> None:  # fmt: skip
    """Write tracks of one group that moves by a known rule, as a table (trial, frame, id, x, y), 20 frames a second."""
    from ..runs.tracks import write_tracks
    from ..tracks.kinds import KINDS, RATE, simulate_kind

    simulated = simulate_kind(kind, seed=seed, individuals=individuals, seconds=seconds)
    files = [write_tracks(out, simulated)]
    record = {"files": files,
              "settings": {"kind": kind, "individuals": individuals, "seconds": seconds, "seed": seed},
              "results": {"weights change": KINDS[kind].changes, "rule": KINDS[kind].description}}  # fmt: skip
    emit(json, record, f"Wrote {out}: {KINDS[kind].description}.",
         f"Next: policychord tracks fit {out} --rate {RATE:g}")  # fmt: skip
