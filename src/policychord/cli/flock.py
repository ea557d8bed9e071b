"""`policychord flock`: one experiment with a flock, the paper's or your own."""

import difflib
import json
import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.table import Table

from .app import app, screen
from .progress import watching


class Scenario(StrEnum):
    """The paper's experiments."""

    polarization = "polarization"
    milling = "milling"
    leaders = "leaders"
    temperature = "temperature"
    couzin = "couzin"
    cucker_smale = "cucker-smale"
    vicsek = "vicsek"


class Update(StrEnum):
    synchronous = "synchronous"
    sequential = "sequential"


class Form(StrEnum):
    released = "released"
    original = "original"


class Ablation(StrEnum):
    fixed_weights = "fixed-weights"
    no_collision_term = "no-collision-term"


@app.command(
    epilog="Examples:  policychord flock milling --animation\n\n"
    "policychord flock leaders --leaders 8 --eps 1 --seeds 4\n\n"
    "policychord flock polarization --boids 10000 --start-size 40 --steps 50 --seeds 1"
)
def flock(
    scenario: Annotated[Scenario, typer.Argument(help="Which experiment; options and --settings change it.")],
    boids: Annotated[int | None, typer.Option(help="Number of boids.")] = None,
    steps: Annotated[int | None, typer.Option(help="Time steps.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Episodes, each from its own random start.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all random draws.")] = None,
    eps: Annotated[float | None, typer.Option(help="Temperature.")] = None,
    leaders: Annotated[int | None, typer.Option(help="Boids that know the goal.")] = None,
    start_size: Annotated[
        float | None, typer.Option(help="Half width of the start square, radius of the ring.")
    ] = None,
    update: Annotated[Update | None, typer.Option(help="All boids at once, or one after another in place.")] = None,
    form: Annotated[Form | None, typer.Option(help="Of followers from the literature.")] = None,
    ablation: Annotated[Ablation | None, typer.Option(help="What to take away.")] = None,
    settings: Annotated[
        Path | None, typer.Option(help="TOML or JSON file with any settings of a flock.", exists=True, dir_okay=False)
    ] = None,
    animation: Annotated[bool, typer.Option("--animation", help="Also a film of the first seed.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results; out/flock/SCENARIO unless given.", file_okay=False)
    ] = None,
) -> None:
    """Let a flock fly: prints its metrics, writes a dataset (Zarr), figures and, if asked, an animation."""
    from ..runs import flock as run

    given = {
        "boids": boids, "steps": steps, "seeds": seeds, "seed": seed, "eps": eps, "leaders": leaders,
        "start_size": start_size, "update": update and str(update), "form": form and str(form),
    }  # fmt: skip
    changes = _from_file(settings) | {name: value for name, value in given.items() if value is not None}
    try:
        chosen = run.chosen(str(scenario), ablation and str(ablation), changes)
    except ValidationError as error:
        raise ValueError(_in_words(error, run.setting_names())) from None
    out = Path("out") / "flock" / scenario if out is None else out
    with watching() as watch:
        result = run.fly(chosen, out, animation, watch)
    screen.print(_metrics_table(str(scenario), chosen, result.summary))
    for note in result.notes:
        screen.print(note, soft_wrap=True)
    screen.print(f"Wrote {', '.join(str(file) for file in result.files)}.", soft_wrap=True)
    screen.print(
        f'Next: open {out / "overview.png"}, or the data with  xarray.open_zarr("{out / "data.zarr"}")', soft_wrap=True
    )


def _from_file(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        text = path.read_text(encoding="utf-8")
        values = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (json.JSONDecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise ValueError(f"{path} is not valid {kind}: {error}.") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path} holds a {type(values).__name__}: write settings as names with values.")
    return values


def _in_words(error: ValidationError, names: list[str]) -> str:
    """What is wrong with the settings: the name, the value and the remedy."""
    sentences = []
    for problem in error.errors():
        name = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}."
            sentences.append(f"{name} is no setting of a flock: {hint}")
        elif problem["type"] == "value_error":
            sentences.append(problem["msg"].removeprefix("Value error, "))
        else:
            message = problem["msg"][0].lower() + problem["msg"][1:]
            sentences.append(f"{name} = {problem['input']!r}: {message}.")
    return " ".join(sentences)


def _metrics_table(name: str, settings, summary: dict[str, tuple[float, float]]) -> Table:
    title = f"{name}: {settings.boids} boids, {settings.steps} steps, eps {settings.eps:g}, {settings.seeds} seeds"
    table = Table(title=title, title_justify="left")
    table.add_column("metric")
    table.add_column("mean over seeds", justify="right")
    table.add_column("sd", justify="right")
    for metric, (mean, sd) in summary.items():
        table.add_row(metric, f"{mean:.3g}", f"{sd:.2g}")
    return table
