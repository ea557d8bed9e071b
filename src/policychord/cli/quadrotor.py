"""`policychord quadrotor`: fly a pair of controllers, composed, against its baseline."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from .app import app, screen
from .progress import watching


class Experiment(StrEnum):
    """Which pair is composed."""

    pd = "pd"
    lqr = "lqr"


class Gate(StrEnum):
    """Where the weights come from."""

    equilibrium = "equilibrium"
    one_step = "one-step"
    prior = "prior"


class Selection(StrEnum):
    """What is done with them."""

    sample = "sample"
    mean = "mean"
    mode = "mode"
    dither = "dither"


class Horizon(StrEnum):
    """How far the generative model looks ahead."""

    one_step = "one-step"
    cost_to_go = "cost-to-go"


class Disturbance(StrEnum):
    """Where the forces act."""

    centre = "centre"
    stale_point = "stale-point"


class Course(StrEnum):
    """What is to be followed."""

    lemniscate = "lemniscate"
    circle = "circle"
    square = "square"
    hover = "hover"


@app.command(
    epilog="Example:  policychord quadrotor pd --horizon cost-to-go --eps 0.5 --margin 0.04 --animation\n\n"
    "Writes table.json, figures/*.svg, *.png, data/*.zarr and, if asked, flight.gif into --out."
)
def quadrotor(
    experiment: Annotated[Experiment, typer.Argument(help="The pair: PD, or LQR under an impulse.")],
    seeds: Annotated[int, typer.Option(help="Episodes for each controller.", min=2)] = 200,
    gate: Annotated[Gate, typer.Option(help="Optimal weights, the released scripts', or 50/50.")] = Gate.equilibrium,
    selection: Annotated[Selection, typer.Option(help="Which action of the mixture is taken.")] = Selection.mean,
    horizon: Annotated[Horizon, typer.Option(help="Price of the next state alone, or of all.")] = Horizon.one_step,
    disturbance: Annotated[
        Disturbance, typer.Option(help="Forces at the centre of mass, or as the paper's simulator has them.")
    ] = Disturbance.centre,
    eps: Annotated[float, typer.Option(help="Temperature.")] = 0.05,
    margin: Annotated[
        float, typer.Option(help="How far the grid reaches past the thrusts' limits (N).", min=0.0)
    ] = 0.0,
    course: Annotated[Course, typer.Option(help="The path to follow.")] = Course.lemniscate,
    impulse: Annotated[float, typer.Option(help="Impulse of the LQR experiment (N, for 20 ms).")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of all random draws.", min=0)] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the results; out/quadrotor-EXPERIMENT unless given.", file_okay=False),
    ] = None,
    animation: Annotated[bool, typer.Option("--animation", help="Also write one flight as flight.gif.")] = False,
    video: Annotated[bool, typer.Option("--video", help="Also write it as flight.mp4, which needs ffmpeg.")] = False,
) -> None:
    """Fly two primitives alone, composed and in a fixed 50/50 mixture against their baseline, in the same weather."""
    from ..runs.store import prepare, save_animation, save_figure, write_dataset, write_json
    from ..studies.drawing import styled
    from ..studies.quadrotor.animation import FPS, animate, can_write
    from ..studies.quadrotor.datasets import dataset
    from ..studies.quadrotor.figures import compared, flown
    from ..studies.quadrotor.metrics import table
    from ..studies.quadrotor.parts import FIXED
    from ..studies.quadrotor.settings import Composition, QuadrotorSettings
    from ..studies.quadrotor.simulate import ALONE, fly_all

    if not 0 < eps < float("inf"):
        raise typer.BadParameter(f"{eps} is not a temperature: pass a positive number.", param_hint="--eps")
    how = Composition(gate=gate.value, selection=selection.value, horizon=horizon.value, eps=eps, margin=margin)
    settings = QuadrotorSettings(
        seed=seed, seeds=seeds, disturbance=disturbance.value, path=course.value, impulse=impulse, composition=how
    )
    out = prepare(Path("out") / f"quadrotor-{experiment}" if out is None else out)
    who = dict.fromkeys(ALONE) | {"composed": how, FIXED: None}
    with watching() as watch:
        watch(f"flying {len(who)} controllers, {seeds} seeds each", 0, 2)
        flights = fly_all(settings, experiment.value, who)
        watch("comparing and drawing", 1, 2)
        rows = table(settings, flights)
        records = [row._asdict() | {"cost": row.cost._asdict(), "against": row.against._asdict()} for row in rows]
        files = [write_json(out / "table.json", {"settings": settings.model_dump(), "controllers": records})]
        files += save_figure(out / "figures" / "flights", styled(flown, settings, experiment.value, flights))
        files += save_figure(out / "figures" / "costs", styled(compared, experiment.value, flights))
        files.append(write_dataset(out / "data" / "flights.zarr", dataset(settings, flights)))
    skipped = ""
    for wanted, ending in ((animation, ".gif"), (video, ".mp4")):
        if wanted and can_write(ending):
            motion = animate(settings, flights["composed"], title=f"{experiment.upper()} pair, composed")
            files.append(save_animation(out / f"flight{ending}", motion, FPS))
        elif wanted:
            skipped = "No flight.mp4: ffmpeg is not installed here. --animation writes a GIF without it."
    title = f"{experiment.upper()} pair, {gate} gate, {selection} action, {disturbance} forces, eps {eps:g}"
    screen.print(_table(rows, title))
    screen.print(
        "delta: Cliff's delta of the cost against the baseline's, with a 95% bootstrap interval; negative is cheaper.\n"
        f"Wrote {files[0]} and {len(files) - 1} more files in {out}.",
        soft_wrap=True,
    )
    if skipped:
        screen.print(skipped)
    screen.print(_next(experiment, horizon), soft_wrap=True)


def _next(experiment: Experiment, horizon: Horizon) -> str:
    if horizon == Horizon.one_step:
        return (
            f"Next: let it look ahead,  policychord quadrotor {experiment} --horizon cost-to-go --eps 0.5 --margin 0.04"
        )
    return "Next: the paper's claims,  policychord reproduce quadrotor"


def _table(rows, title: str) -> Table:
    shown = Table(title=title, title_justify="left")
    shown.add_column("controller", no_wrap=True)
    for name in ("median cost", "quartiles", "delta", "95%", "p", "median difference", "cheaper in", "w stabilise"):
        shown.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        alone = row.name in ("baseline", "stabilise", "track")
        against = row.against
        beside = ("", "", "", "", "") if row.name == "baseline" else (
            f"{against.delta:+.2f}", f"{against.low:+.2f} to {against.high:+.2f}", f"{against.p:.1g}",
            f"{row.difference:+.1f}", f"{100 * row.better:.0f}%",
        )  # fmt: skip
        quartiles = f"{row.cost.low:.1f} to {row.cost.high:.1f}"
        weight = "" if alone else f"{row.stabilising:.2f}"
        shown.add_row(row.name, f"{row.cost.median:.1f}", quartiles, *beside, weight)
    return shown
