"""`policychord quadrotor`: fly a pair of controllers, composed, against its baseline."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from policychord.cli import Json, counted, emit, options, watching
from policychord.worlds.quadrotor import Experiment, QuadrotorSettings, own_settings

from .app import app

if TYPE_CHECKING:
    from ..quadrotor.measures import CostComparison

SEEDS = 200
FEW = 10  # episodes below which resampling them says nothing: the interval of two flights is a point
AHEAD = "--horizon cost-to-go --eps 0.5 --margin 0.04"


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
@options.with_settings(
    file="a flight",
    given=[
        *options.offer(QuadrotorSettings, {
            "composition.gate": "GATE", "composition.horizon": "HORIZON",
            "composition.selection": options.Shown("ACTION", "mean"), "composition.margin": "NEWTON",
        }, "How they are composed"),
        *options.offer(QuadrotorSettings, {
            "path": "PATH", "disturbance": options.Shown("WHERE", "centre"), "impulse": "NEWTON",
        }, "The world"),
        *options.offer(QuadrotorSettings, {
            "seeds": options.Shown("N", str(SEEDS)), "seed": "N", "composition.eps": "NUMBER",
        }),
    ],
)  # fmt: skip
def _quadrotor_command(
    experiment: Annotated[Experiment, typer.Argument(metavar="PAIR", help="Which pair of controllers.")],
    given: options.Given,
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

    from ..quadrotor import scenario as run

    chosen = options.settle(given, _build)
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


def _build(changes: dict[str, Any]) -> QuadrotorSettings:
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


def _table(experiment: Experiment, settings: QuadrotorSettings, rows: "list[CostComparison]") -> Table:
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


def _in_words(settings: QuadrotorSettings, rows: "list[CostComparison]", fixed: "CostComparison") -> list[str]:
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


def _next(experiment: Experiment, settings: QuadrotorSettings, out: Path) -> str:
    if settings.composition.horizon == "one-step":
        return f"Next: let it look ahead\n  policychord quadrotor {experiment} {AHEAD}"
    return (
        f"Next: open {out / 'figures' / 'flights.png'}; for the paper's claims run\n  policychord reproduce quadrotor"
    )
