"""`policychord flock`: one experiment with a flock, the paper's or your own."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich import box
from rich.table import Table

from policychord.cli import Json, counted, emit, options, watching
from policychord.worlds.flock import ABLATIONS, SCENARIOS, FlockSettings
from policychord.worlds.flock import scenario as settings_of

from .app import app

if TYPE_CHECKING:
    Scenario = str
    Ablation = str
else:
    Scenario, Ablation = Literal[tuple(SCENARIOS)], Literal[tuple(ABLATIONS)]

COMPARISON = "For comparison"


@app.command(
    "flock",
    rich_help_panel="Compose policies",
    short_help="Let a flock fly: the paper's scenarios, or one of your own.",
    epilog=options.examples(
        "policychord flock milling --animation",
        "policychord flock leaders --leaders 8 --eps 1 --seeds 4",
        "policychord flock polarization --ablation fixed-weights --json",
    ),
)
@options.with_settings(
    file="a flock",
    given=[
        *options.offer(FlockSettings, {
            "boids": options.Shown("N", "40; milling 60"), "steps": options.Shown("N", "440 to 1560, by scenario"),
            "leaders": options.Shown("N", "0, 4 or 6, by scenario"),
            "start_size": options.Shown("METRES", "2.5; milling 5, vicsek 1.5"),
        }, "Flock"),
        *options.offer(FlockSettings, {
            "update": options.Shown("HOW", "synchronous; sequential for the last three scenarios"), "form": "WHOSE",
        }, COMPARISON),
        *options.offer(FlockSettings, {"seeds": "N", "seed": "N", "eps": "NUMBER"}),
    ],
)  # fmt: skip
def _flock_command(
    scenario: Annotated[
        Scenario, typer.Argument(metavar="SCENARIO", help="Which of these.", show_choices=False)
    ],
    given: options.Given,
    ablation: Annotated[
        Ablation | None,
        options.option(
            "Take something away: fixed-weights (all primitives weigh 1/3 for ever) or no-collision-term (milling).",
            "WHAT", rich_help_panel=COMPARISON,
        ),
    ] = None,
    out: Annotated[Path | None, options.out("out/flock-SCENARIO")] = None,
    animation: Annotated[bool, options.animation("the first seed")] = False,
    json: Json = False,
) -> None:  # fmt: skip
    """Simulate a flock. At every step each boid re-weights three primitives: keep apart, align, stay together.
    Prints what the flock did; writes data (Zarr), figures and, if asked, an animation.

    Scenarios, with the paper's numbers:
      polarization   40 boids from a random start agree on a direction
      milling        60 boids from a turning ring form a mill
      leaders        4 of 40 boids know a goal at (-15, -15) m
      temperature    the same for longer; try --eps 0.1, 1 and 10
      couzin         6 composed leaders among followers of Couzin's model
      cucker-smale   the same among those of Cucker and Smale
      vicsek         the same among those of Vicsek
    Options change any of these numbers, and --settings everything else.
    """
    from policychord.runs import keep_programs

    from ..flock import scenario as run

    chosen = options.settle(given, lambda changes: settings_of(scenario, ablation, **changes))
    out = Path("out") / f"flock-{scenario}" if out is None else out
    keep_programs()
    with watching() as watch:
        result = run.fly_flock(chosen, out, animation, watch)
    measured = {
        name: {"mean": mean, "sd": sd if chosen.seeds > 1 else None} for name, (mean, sd) in result.summary.items()
    }
    record = {
        "command": "flock", "scenario": scenario, "ablation": ablation, "settings": chosen, "results": measured,
        "out": out, "files": result.files, "notes": result.notes,
    }  # fmt: skip
    film = f" and {out / 'animation.gif'}" if animation else ""
    emit(
        json,
        record,
        _table(scenario, ablation, chosen, result.summary),
        *result.sentences,
        *result.notes,
        f"Wrote {counted(len(result.files), 'file')} to {out}.",
        f"Next: open {out / 'overview.png'}{film}. The data are for Python:\n  xarray.open_zarr('{out / 'data.zarr'}')",
    )


def _table(name: str, ablation: str | None, settings: FlockSettings, summary: dict[str, tuple[float, float]]) -> Table:
    what = f"{name}, {ablation}" if ablation else name
    title = f"{what}: {settings.boids} boids, {settings.steps} steps, eps {settings.eps:g}, "
    table = Table(title=title + counted(settings.seeds, "seed"), title_justify="left", box=box.SIMPLE_HEAD)
    several = settings.seeds > 1
    table.add_column("measured")
    table.add_column("mean over seeds" if several else "value", justify="right")
    if several:
        table.add_column("sd over seeds", justify="right")
    for metric, (mean, sd) in summary.items():
        table.add_row(metric, f"{mean:.3g}", *([f"{sd:.2g}"] if several else []))
    return table
