"""`policychord quadrotor`: fly a pair of controllers, composed, against its baseline."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich import box
from rich.table import Table

from policychord.cli import Json, counted, emit, merge_settings, options, watching

from .app import Setting, app, offer, with_settings

if TYPE_CHECKING:
    from policychord.worlds.quadrotor import QuadrotorSettings

    from ..quadrotor.measures import CostComparison

COMPOSITION, WORLD = "How they are composed", "The world"
SEEDS = 200
FEW = 10  # episodes below which resampling them says nothing: the interval of two flights is a point
AHEAD = "--horizon cost-to-go --eps 0.5 --margin 0.04"


# The values that settings know stand here too, because settings load what a help page does not need.
Experiment = Literal["pd", "lqr"]


@app.command(
    "quadrotor",
    rich_help_panel="Compose policies",
    short_help="Fly a drone with two controllers, composed, against a third.",
    epilog=options.examples(
        "policychord quadrotor pd",
        f"policychord quadrotor pd {AHEAD}",
        "policychord quadrotor lqr --impulse 2 --seeds 50 --animation",
    ),
)
@with_settings(
    offer(COMPOSITION, "composition.gate", Literal["equilibrium", "flow", "circuit", "one-step", "prior", "cheapest"],
          "Where the weights come from: equilibrium (the optimal ones), flow or circuit (the paper's dynamics, from "
          "the last decision on), one-step (as its scripts compute them), prior (always 50/50) or cheapest (the "
          "primitive with the lowest expected cost).", "GATE", "equilibrium"),
    offer(COMPOSITION, "composition.horizon", Literal["one-step", "cost-to-go"],
          "What an action is judged by: one-step (the cost of the next state, as in the paper) or cost-to-go (of all "
          "that follow).", "HORIZON", "one-step"),
    offer(COMPOSITION, "composition.selection", Literal["sample", "mean", "mode", "dither"],
          "The action taken: mean of the mixture, mode (the most probable), sample (drawn, as in the paper) or "
          "dither (one controller at a time, in turns that match the weights).", "ACTION", "mean"),
    offer(COMPOSITION, "composition.margin", float,
          "How far the grid of thrusts reaches past what the motors can do, so that it cuts no controller short.",
          "NEWTON", "0"),
    offer(WORLD, "path", Literal["lemniscate", "circle", "square", "hover"],
          "The path to follow: lemniscate (a figure of eight), circle, square or hover.", "PATH", "lemniscate"),
    offer(WORLD, "disturbance", Literal["centre", "stale-point"],
          "Where random forces act: centre (of mass), or stale-point (where the drone was when the step began, as in "
          "the paper's simulator; this also turns the drone).", "WHERE", "centre"),
    offer(WORLD, "impulse", float, "lqr: force of the push, for one decision.", "NEWTON", "1"),
    Setting("seeds", int, options.seeds(str(SEEDS), "Episodes, each with random forces of its own.")),
    Setting("seed", int, options.seed()),
    Setting("composition.eps", float, options.eps("0.05")),
)  # fmt: skip
def _quadrotor_command(
    experiment: Annotated[Experiment, typer.Argument(metavar="PAIR", help="Which pair of controllers.")],
    flags: dict[str, tuple[str, Any]],
    settings: Annotated[Path | None, options.settings("quadrotor")] = None,
    out: Annotated[Path | None, options.out("out/quadrotor-PAIR")] = None,
    animation: Annotated[bool, options.animation("the first episode")] = False,
    json: Json = False,
) -> None:
    """Fly a planar drone along a path while random forces push it. One controller stabilises, one tracks the path;
    they fly alone, composed, and in a fixed 50/50 mixture, against a baseline controller under the same forces.
    Prints what each flight costs; writes a table, figures, data (Zarr) and, if asked, an animation.

    Pairs, with the paper's numbers:
      pd    two PD controllers; the baseline is a PID
      lqr   two LQRs that are pushed once in every episode; the baseline is an LQR
    A flight of 6 s costs what it strays from the path and what its motors do.
    """
    from policychord.runs import keep_programs
    from policychord.worlds.quadrotor import QuadrotorSettings

    from ..quadrotor import scenario as run

    options.require_eps(flags["--eps"][1])
    chosen = merge_settings(_build, QuadrotorSettings, flags, settings)
    pushed = experiment == "lqr" or "impulse" not in chosen.model_fields_set
    options.require(pushed, "--impulse", f"{chosen.impulse:g}", "only the lqr pair is pushed; with pd leave it out")
    out = Path("out") / f"quadrotor-{experiment}" if out is None else out
    keep_programs()
    with watching() as watch:
        result = run.fly_pair(experiment, chosen, out, animation, watch)
    record = {
        "command": "quadrotor", "pair": experiment, "settings": chosen,
        "results": {row.name: _machine(row, chosen.seeds) for row in result.rows},
        "out": out, "files": result.files, "notes": result.notes,
    }  # fmt: skip
    emit(
        json,
        record,
        _table(experiment, chosen, result.rows),
        "",
        "cost: median over episodes, and where their middle half lies. delta: how often a flight costs more than one "
        "of the baseline, less how often it costs less (Cliff's delta, with its 95% bootstrap interval). cheaper: "
        "episodes in which it beats the baseline under the same forces. weight: of the stabilising controller.",
        *_in_words(chosen, result.rows, result.against_fixed),
        *result.notes,
        f"Wrote {counted(len(result.files), 'file')} to {out}; its table.json has p-values: Mann-Whitney, "
        "and Wilcoxon for pairs of flights under the same forces.",
        _next(experiment, chosen, out),
    )


def _build(changes: dict[str, Any]) -> "QuadrotorSettings":
    from policychord.worlds.quadrotor import own_settings

    return own_settings(**{"seeds": SEEDS, **changes})


def _machine(row: "CostComparison", seeds: int) -> dict[str, Any]:
    low, high = (None, None) if seeds < FEW else (row.against.low, row.against.high)
    return {
        "cost": {"median": row.cost.median, "lower_quartile": row.cost.low, "upper_quartile": row.cost.high},
        "cliffs_delta": {"value": row.against.delta, "low": low, "high": high},
        "mann_whitney_p": row.against.p,
        "wilcoxon_p": row.paired_p,
        "median_difference": row.difference,
        "cheaper_in": row.better,
        "weight_of_stabilise": row.stabilising,
    }


def _table(experiment: Experiment, settings: "QuadrotorSettings", rows: "list[CostComparison]") -> Table:
    how = settings.composition
    cost = "cost of one step" if how.horizon == "one-step" else how.horizon
    title = (
        f"{experiment.upper()} pair: {counted(settings.seeds, 'seed')}, {how.gate} gate, {cost}, "
        f"{how.selection} action, eps {how.eps:g}"
    )
    shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    shown.add_column("controller", no_wrap=True)
    for name in ("cost", "middle half", "delta (95%)", "cheaper", "weight"):
        shown.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        against, base = row.against, row.name == "baseline"
        shown.add_row(
            row.name,
            f"{row.cost.median:.3g}",
            f"{row.cost.low:.3g} to {row.cost.high:.3g}",
            "" if base else f"{against.delta:+.2f} ({_interval(row) if settings.seeds >= FEW else 'too few'})",
            "" if base else f"{100 * row.better:.0f}%",
            "" if row.name in ("baseline", "stabilise", "track") else f"{row.stabilising:.2f}",
        )
    return shown


def _interval(comparison: "CostComparison") -> str:
    return f"{comparison.against.low:+.2f}, {comparison.against.high:+.2f}"


def _in_words(settings: "QuadrotorSettings", rows: "list[CostComparison]", fixed: "CostComparison") -> list[str]:
    """Whether composing was worth it, and what the likely reason is if it was not."""
    if settings.seeds < FEW:
        return [f"{counted(settings.seeds, 'episode')}: too few to compare by; --seeds {FEW} is the least."]
    ours = next(row for row in rows if row.name == "composed")
    often = f"it is cheaper in {100 * ours.better:.0f}% of the episodes."
    if ours.against.high < 0:
        words = f"The composition beats the baseline: {often}"
    elif ours.against.low <= 0:
        words = "No difference between the composition and the baseline is established: the interval of delta holds 0."
    else:
        words = f"The composition loses to the baseline: {often}"
    if settings.composition.gate == "prior":
        return [words]
    beside = f"(delta {fixed.against.delta:+.2f}; {_interval(fixed)})"
    if fixed.against.low > 0:
        words += f" So far the weights gain nothing: a fixed 50/50 mixture costs less {beside}."
    elif fixed.against.high >= 0:
        words += f" Whether the weights gain anything over a fixed 50/50 mixture is open {beside}."
    if ours.against.low > 0 and settings.composition.horizon == "one-step":
        words += (
            " That is known for this horizon: a thrust changes speeds within a step and the place only later, which "
            "the cost of the next state does not see."
        )
    return [words]


def _next(experiment: Experiment, settings: "QuadrotorSettings", out: Path) -> str:
    if settings.composition.horizon == "one-step":
        return f"Next: let it look ahead\n  policychord quadrotor {experiment} {AHEAD}"
    return (
        f"Next: open {out / 'figures' / 'flights.png'}; for the paper's claims run\n  policychord reproduce quadrotor"
    )
