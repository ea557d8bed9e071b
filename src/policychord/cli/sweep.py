"""`policychord sweep`: many episodes over a plan of settings, and any one of them again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from .._plugins import EPISODES, installed
from . import options
from .app import Pages, app
from .interrupt import resumable
from .output import Json, counted, emit, table
from .progress import accumulating, watching

if TYPE_CHECKING:
    from ..worlds.episodes import EpisodeSetting

    StudyName = str
else:
    StudyName = Literal[tuple(installed(EPISODES))]

sweep = typer.Typer(
    cls=Pages,
    help="Many episodes over a plan of settings: on the cores here, or on a cluster. A plan is a TOML file: a "
    "study, what varies, how many episodes, what to keep; two are in plans/.",
    short_help="Many episodes over a plan of settings: on the cores here, or on a cluster.",
    epilog=options.examples(
        "policychord sweep run plans/flock_phases.toml",
        "policychord sweep status out/sweeps/flock_phases",
        "policychord sweep plot out/sweeps/flock_phases",
    ),
)
app.add_typer(sweep, name="sweep", no_args_is_help=True)

LARGE = 1_000_000  # episodes that nobody should start by a slip of the pen
FOLDER = typer.Argument(help="The folder of a sweep.", metavar="DIR", exists=True, file_okay=False)


@sweep.command(
    "settings",
    epilog=options.examples("policychord sweep settings flock", "policychord sweep settings quadrotor --json"),
)
def _settings_command(
    study: Annotated[StudyName, typer.Argument(help=f"{' or '.join(installed(EPISODES))}.", metavar="STUDY")],
    json: Json = False,
) -> None:
    """What a plan may name: the settings of a study with their defaults, and what is measured."""
    from ..runs.plan import episodes_of

    offered = episodes_of(study)
    known, notes = offered.known_settings, ["Another scenario has other defaults."] * ("scenario" in offered.names)
    rows = {varies: [_described(setting) for setting in known if setting.varies is varies] for varies in (True, False)}
    columns = ("name", "default", "meaning")
    emit(
        json,
        {"study": study, "results": {"settings": known, "metrics": offered.metrics}, "notes": notes},
        table("Settings, to vary in [grid] or [random] or to fix in [settings]", columns, rows[True]),
        *notes,
        "",
        table("Settings that can only be fixed, in [settings]", columns, rows[False]),
        "",
        table("Metrics, for metrics = [...]", ("name", "meaning"), offered.metrics.items()),
        "",
        "Next: write a plan;  policychord sweep run --help  shows one.",
    )


def _described(setting: "EpisodeSetting") -> tuple[str, str, str]:
    one_of = f" [{', '.join(setting.choices)}]" if setting.choices else ""
    return setting.name, _short(setting.default), setting.meaning + one_of


def _short(value: Any) -> str:
    """A default in one line; of a table, what its names are."""
    if hasattr(value, "model_fields_set"):
        return ", ".join(type(value).model_fields)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_short, value))}]"
    if isinstance(value, bool):
        return str(value).lower()  # as plans have it
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


@sweep.command(
    "run",
    epilog=options.examples(
        "policychord sweep run plans/flock_phases.toml",
        "policychord sweep run plan.toml --engine dask --scheduler tcp://host:8786",
        "policychord sweep run plan.toml --shard $SLURM_ARRAY_TASK_ID/20",
    ),
)
@options.with_settings(work=options.offer(options.Work))
def _run_command(
    plan: Annotated[Path, typer.Argument(help="The plan, as TOML.", metavar="PLAN.toml", exists=True, dir_okay=False)],
    work: options.Given,
    shard: Annotated[
        str, options.option("Do every n-th batch from the i-th on, i from 0: a job of an array.", "I/N", "", "--shard")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help=f"Compute even more than {LARGE:,} episodes.")] = False,
    out: Annotated[Path | None, options.out("out/sweeps/PLAN")] = None,
    json: Json = False,
) -> None:
    """Compute all episodes of a plan, or those that an earlier run did not get to.

    A batch is written as soon as it is done: a sweep may be stopped at any time, and goes on with the same command.

    A plan, with every value of one setting at every value of the other:
      study = "flock"
      episodes = 8                  # of every point
      metrics = \\["milling"]         # all, if left out
      \\[settings]                    # what does not vary
      scenario = "milling"
      \\[grid]
      collision_strength = \\[1.0, 4.0]
      eps = { low = 0.01, high = 10, points = 5, scale = "log" }
    or, in place of \\[grid], points drawn over ranges:
      \\[random]
      points = 100
      design = "latin-hypercube"    # or "sobol", or "uniform"
      over.collision_strength = { low = 1, high = 16 }
      over.eps = { low = 0.01, high = 10, scale = "log" }
    policychord sweep settings STUDY  lists settings and metrics.
    """
    from ..runs import sweep as runs
    from ..runs.plan import read_sweep_plan

    how = options.work_of(work)
    chosen = read_sweep_plan(plan)
    part = _shard(shard)
    out = Path("out") / "sweeps" / plan.stem if out is None else out
    runs.open_sweep(chosen, out)
    todo = runs.missing(chosen, out, part)
    if (wanted := sum(batch.episodes for batch in todo)) > LARGE and not yes:
        raise ValueError(
            f"this plan has {wanted:,} episodes to compute: run a plan with fewer first, which shows how long they "
            "take; then --yes starts this one."
        )
    resumable()
    if todo:
        with options.start_workers(how, out / "log.txt") as (pool, count), watching() as watch:
            watch("workers start", -1, wanted)
            finished = accumulating(watch, wanted)
            runs.run_batches(
                chosen, out, pool, count, todo, lambda batch: finished(batch.episodes, f"batch {batch.id}")
            )
    progress = runs.sweep_status(chosen, out)
    record = {"results": progress, "out": out, "computed": len(todo)}
    did = f"Computed {counted(len(todo), 'batch', 'batches')}." if todo else "Nothing was missing."
    emit(json, record, did, *_progress_lines(out, progress))


@sweep.command(
    "status",
    epilog=options.examples(
        "policychord sweep status out/sweeps/flock_phases", "policychord sweep status out/sweeps/flock_phases --json"
    ),
)
def _status_command(folder: Annotated[Path, FOLDER], json: Json = False) -> None:
    """How far a sweep is."""
    from ..runs import sweep as runs

    progress = runs.sweep_status(runs.load_plan(folder), folder)
    emit(json, {"results": progress, "out": folder}, *_progress_lines(folder, progress))


@sweep.command(
    "export",
    epilog=options.examples(
        "policychord sweep export out/sweeps/flock_phases",
        "policychord sweep export out/sweeps/flock_phases --to episodes.parquet",
    ),
)
def _export_command(
    folder: Annotated[Path, FOLDER],
    to: Annotated[
        Path | None, options.option("File to write: .csv or .parquet.", "FILE", "DIR/episodes.csv", "--to")
    ] = None,
    json: Json = False,
) -> None:
    """Write all finished episodes as one table: a line for each, with its settings and metrics."""
    from ..choices.data import as_csv
    from ..runs import sweep as runs
    from ..runs.store import write_table, write_text

    to = folder / "episodes.csv" if to is None else to
    if to.suffix not in (".csv", ".parquet"):
        raise typer.BadParameter(f"{to}: the name must end in .csv or .parquet.", param_hint="--to")
    episodes, notes = runs.results(runs.load_plan(folder), folder)
    file = write_text(to, as_csv(episodes)) if to.suffix == ".csv" else write_table(to, episodes)
    results = {"episodes": len(episodes), "columns": list(episodes.columns)}
    record = {"results": results, "out": file.parent, "files": [file], "notes": notes}
    wrote = f"Wrote {counted(len(episodes), 'episode')} to {file}."
    emit(json, record, *notes, wrote, f"Next, in Python:  pandas.read_{to.suffix[1:]}('{file}')")


@sweep.command(
    "plot",
    epilog=options.examples(
        "policychord sweep plot out/sweeps/flock_phases",
        "policychord sweep plot out/sweeps/flock_phases --metric milling --x eps",
    ),
)
def _plot_command(
    folder: Annotated[Path, FOLDER],
    metric: Annotated[list[str] | None, options.option("What to draw.", "NAME", "all kept", "--metric")] = None,
    x: Annotated[str | None, options.option("Setting along x.", "NAME", "the last that is a number", "--x")] = None,
    y: Annotated[str | None, options.option("Setting along y, or as lines.", "NAME", "the one before", "--y")] = None,
    json: Json = False,
) -> None:
    """Draw a heat map where two settings vary over numbers, else lines with bands."""
    from ..drawing import styled
    from ..runs import sweep as runs
    from ..runs.phase_maps import draw_sweep
    from ..runs.plan import episodes_of
    from ..runs.store import save_figure

    plan = runs.load_plan(folder)
    episodes, notes = runs.results(plan, folder)
    words = episodes_of(plan.study).metrics
    files: list[Path] = []
    for name in metric or plan.metrics or tuple(words):
        if name not in episodes:
            kept = ", ".join(n for n in words if n in episodes)
            raise typer.BadParameter(f"{name} was not kept: there are {kept}.", param_hint="--metric")
        files += save_figure(
            folder / "figures" / name, styled(draw_sweep, episodes, plan.axes, name, words[name], x, y)
        )
    record = {"out": folder, "files": files, "notes": notes}
    drawn = [str(file) for file in files if file.suffix == ".png"]
    emit(json, record, *notes, f"Wrote {', '.join(drawn)} (and as SVG).", f"Next: open {drawn[0]}.")


@sweep.command(
    "rerun",
    epilog=options.examples(
        "policychord sweep rerun out/sweeps/flock_phases 12/3",
        "policychord sweep rerun out/sweeps/flock_phases 12/3 --out out/a-mill",
    ),
)
def _rerun_command(
    folder: Annotated[Path, FOLDER],
    episode: Annotated[str, typer.Argument(help="Point and episode, such as 12/3.", metavar="ID")],
    out: Annotated[Path | None, options.out("DIR/reruns/ID")] = None,
    json: Json = False,
) -> None:
    """Run one episode of a sweep again, bit for bit, with its full trace and a figure.

    Points and episodes are numbered from 0, as in the table of  policychord sweep export.
    """
    from ..runs import sweep as runs
    from ..runs.engine import processes

    plan = runs.load_plan(folder)
    point, number = _pair(episode, "pass point and episode, such as 12/3.", "ID")
    out = folder / "reruns" / f"{point}-{number}" if out is None else out
    with processes(1, folder / "log.txt") as pool:  # as it ran before: a worker takes sums in an order of its own
        again = pool.submit(runs.rerun_episode, plan, point, number, out).result()
    lines = [f"{name} = {value:.6g}" for name, value in again.metrics.items()]
    notes = runs.differing(plan, folder, point, number, again)
    record = {"episode": episode, "results": again.metrics, "out": out, "files": again.files, "notes": notes}
    emit(
        json,
        record,
        f"Episode {number} of point {point}: {', '.join(lines)}",
        *notes,
        f"Wrote its data, settings and figure to {out}.",
        f"Next: open {next((file for file in again.files if file.suffix == '.png'), out)}.",
    )


def _progress_lines(folder: Path, progress: Any) -> list[str]:
    lines = [
        f"{folder}: {progress.done} of {progress.batches} batches, {progress.done_episodes:,} of "
        f"{progress.episodes:,} episodes."
    ]
    if progress.outdated:
        lines.append(
            f"{progress.outdated} more were computed by another version of the code or of its packages; they stay."
        )
    if progress.stray:
        from ..runs.sweep import name_stray

        lines.append(name_stray(progress.stray))
    if progress.done < progress.batches:
        return [*lines, "Next: the same  policychord sweep run  does the rest."]
    return [*lines, f"Next:  policychord sweep plot {folder}  or  policychord sweep export {folder}"]


def _shard(text: str) -> slice:
    """Every n-th batch from the i-th on."""
    first, step = _pair(text or "0/1", "pass i/n with i from 0 to n - 1, such as 0/4.", "--shard")
    if first >= step:
        raise typer.BadParameter(f"{text}: pass i/n with i from 0 to n - 1, such as 0/4.", param_hint="--shard")
    return slice(first, None, step)


def _pair(text: str, remedy: str, hint: str) -> tuple[int, int]:
    first, _, second = text.partition("/")
    if not (first.isdecimal() and second.isdecimal()):
        raise typer.BadParameter(f"{text}: {remedy}", param_hint=hint)
    return int(first), int(second)
