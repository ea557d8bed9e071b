"""Figures of the quadrotor study with their captions: flights, costs, weights around the impulse, temperatures."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from policychord.drawing import COLOURS, blank
from policychord.worlds.quadrotor import BASELINE, FIXED, Experiment, Flight, Flights, QuadrotorSettings, draw_flights

from ..study import StudyFigure
from .claims import LOOKING_AHEAD, RELEASED, WARM, WRITTEN
from .experiments import Evidence
from .measures import decisions_in

BLUE, ORANGE, GREEN, PINK, _, _, GREY = COLOURS
WORLD_COLOURS = (ORANGE, BLUE, GREEN)
BEFORE, AFTER = 0.5, 1.5  # s around the impulse that are shown
_TRAJECTORIES = """One flight of the released gate (blue), one of the optimum that the text defines (orange) and one of
the baseline (pink) through the same disturbances, over the path (grey), from the red cross; silhouettes show the
pitch of the first. The episode is one in which released gate and baseline cost about as much as in the median. Left,
PD primitives and PID; right, LQR primitives and LQR, with the impulse marked. Look at how far each line parts
from the path, and where."""


def typical(flights: Flights, name: str) -> int:
    """The kept episode in which this controller and the baseline both cost about what they do in the median."""
    costs = [flights[controller].cost for controller in (name, "baseline")]
    off = [np.log(cost / np.median(cost)) ** 2 for cost in costs]
    return int(np.argmin(sum(off)[: len(flights[name].states)]))


def draw_costs(ax: Axes, experiment: Experiment, worlds: Sequence[Flights]) -> None:
    """Boxes of the total cost, one row for each controller and one colour for each world in which it flew."""
    names = list(worlds[0])[::-1]
    height = 0.8 / len(worlds)
    for i, (flights, colour) in enumerate(zip(worlds, WORLD_COLOURS, strict=False)):
        places = [row + (len(worlds) / 2 - i - 0.5) * height for row, name in enumerate(names) if name in flights]
        boxes = ax.boxplot(
            [flights[name].cost for name in names if name in flights], positions=places, widths=0.8 * height,
            orientation="horizontal", showfliers=False, patch_artist=True, manage_ticks=False,
            medianprops={"color": "black", "linewidth": 1.2},
            whiskerprops={"color": colour}, capprops={"color": colour},
        )  # fmt: skip
        for box in boxes["boxes"]:
            box.set(facecolor=colour, edgecolor=colour, alpha=0.55)
        middle = float(np.median(flights["baseline"].cost))
        ax.axvline(middle, color=colour, linewidth=0.9, linestyle=":", zorder=0)
    ax.set(xscale="log", xlabel="total cost of an episode")
    ax.set_yticks(np.arange(len(names)), names)
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("")
    ax.set_title("PD pair" if experiment == "pd" else "LQR pair, impulse", loc="left")


def _trajectories(settings: QuadrotorSettings, evidence: Evidence) -> Figure:
    """A typical flight of both gates and of the baseline, through the same disturbances."""
    figure = blank(7.2, 2.5)
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for ax, experiment, flights in zip(panels, BASELINE, evidence.stale_point, strict=True):
        seed = typical(flights, RELEASED)
        shown = {
            "composed (released gate)": flights[RELEASED].states[seed],
            "baseline (PID, LQR)": flights["baseline"].states[seed],
            "composed (optimum)": flights[WRITTEN].states[seed],
        }
        draw_flights(ax, settings, experiment, shown)
        if experiment == "lqr":
            k = int(flights[RELEASED].impulse_time[seed])
            x, z = flights[RELEASED].states[seed][k, 0:3:2]
            ax.annotate(
                "impulse", (x, z), (16, 24), textcoords="offset points", ha="left", fontsize=8,
                arrowprops={"arrowstyle": "->", "color": "black", "linewidth": 1.0},
            )  # fmt: skip
    panels[1].set_ylabel("")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    return figure


_COSTS = f"""Total cost of an episode for every controller: boxes from the lower to the upper quartile with the median,
whiskers without outliers, on a logarithmic scale; dotted lines continue the baseline's median. Orange: forces as in
the paper's simulator; blue: the same forces at the centre of mass; green: the text's own disturbances, accelerations
at the centre of mass, for those that are judged by them. `baseline`, `stabilise` and `track` fly alone.
`one-step gate` is what the paper's scripts compute, `equilibrium, sample` what its text defines; `wide` is a grid
past the motors' limits, `fixed 50/50` a mixture without any gate, `cost-to-go` a model that looks ahead, and
`{LOOKING_AHEAD}` the same at a higher temperature, eps = {WARM:g}. Compare each composition with the dotted line of its
colour, and then with `fixed 50/50`."""


def _costs(settings: QuadrotorSettings, evidence: Evidence) -> Figure:
    """Total cost of all controllers under the forces of the scripts, and under those that the text may mean."""
    figure = blank(7.4, 5.0)
    panels = figure.subplots(1, 2, sharey=True)
    for ax, experiment, *worlds in zip(panels, BASELINE, *evidence[:3], strict=True):
        draw_costs(ax, experiment, worlds)
    handles = [panels[0].plot([], [], "s", color=c, alpha=0.55, markersize=8)[0] for c in WORLD_COLOURS]
    figure.legend(
        handles, ["the scripts' forces (stale point)", "forces at the centre of mass", "accelerations (the text)"],
        loc="outside upper center", ncols=3, fontsize=8,
    )  # fmt: skip
    return figure


def _around_impulse(settings: QuadrotorSettings, flight: Flight, values: np.ndarray) -> np.ndarray:
    """Rows of `values` (episode, time) from 0.5 s before the impulse to 1.5 s after, where there is so much."""
    before, after = (decisions_in(settings, time) for time in (BEFORE, AFTER))
    inside = np.flatnonzero((flight.impulse_time >= before) & (flight.impulse_time + after < values.shape[1]))
    rows = [values[i, flight.impulse_time[i] - before : flight.impulse_time[i] + after] for i in inside]
    return np.stack(rows or [np.full(before + after, np.nan)])  # lines that are not drawn, if there is no such flight


_IMPULSE = f"""LQR pair, around the impulse (vertical line). Left: the stabilising weight of the released gate in one
flight, a dot for each decision; where dots lie on both borders, the two controllers take turns. Middle: its mean over
all flights of the released gate, of the optimum and of the gate that looks ahead (`{LOOKING_AHEAD}`:
cost-to-go, eps = {WARM:g}), averaged over two neighbouring steps so that the turns do not hide it. Right: median
distance from the path; the dotted line is the radius that counts as back. Faster recovery means a line that returns
below it earlier."""


def _impulse(settings: QuadrotorSettings, evidence: Evidence) -> Figure:
    """Weight of the stabilising primitive, and distance from the path, around the impulse."""
    flights = evidence.stale_point.lqr
    time = settings.dt * np.arange(-decisions_in(settings, BEFORE), decisions_in(settings, AFTER))
    figure = blank(7.2, 2.9)
    single, many, far = figure.subplots(1, 3)
    released = _around_impulse(settings, flights[RELEASED], flights[RELEASED].stabilising)
    single.plot(time, released[0], ".", markersize=3, color=BLUE)
    single.plot(time, released[0], color=BLUE, linewidth=0.4, alpha=0.6)
    single.set(ylabel="weight of stabilising", ylim=(-0.04, 1.04))
    single.set_title("Released gate, one flight", loc="left")
    labels = {
        "baseline": (PINK, "LQR baseline"), RELEASED: (BLUE, "released gate"), WRITTEN: (ORANGE, "optimum"),
        FIXED: (GREY, FIXED), LOOKING_AHEAD: (GREEN, LOOKING_AHEAD),
    }  # fmt: skip
    for name in (RELEASED, WRITTEN, LOOKING_AHEAD):
        weight = _around_impulse(settings, flights[name], flights[name].stabilising).mean(0)
        # over two steps, or the released gate's turns would hide everything else
        many.plot(time[1:], (weight[1:] + weight[:-1]) / 2, color=labels[name][0])
    many.set(ylim=(-0.04, 1.04), ylabel="its mean, over two steps")
    many.set_title("All flights", loc="left")
    for name, (colour, label) in labels.items():
        distance = _around_impulse(settings, flights[name], flights[name].distance[:, :-1])
        far.plot(time, np.median(distance, axis=0), color=colour, label=label)
    far.axhline(settings.recovered, color="0.6", linewidth=0.8, linestyle=":")
    far.set(ylabel="distance from the path (m)", ylim=(0, None))
    far.set_title("Medians", loc="left")
    for ax in (single, many, far):
        ax.axvline(0.0, color="0.5", linewidth=0.8)
        ax.set_xlabel("time after the impulse (s)")
    figure.legend(*far.get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    return figure


_TEMPERATURE = """Median cost (dots) and quartiles (bands) of the PD pair against the temperature, for a model that
prices one step and for one that prices all that follow; mean action, wide grid. Dashed: PID and the fixed mixture
over the same seeds.
Where a line does not go below the grey one, the gate adds nothing to an average; at high temperatures every gate
becomes it."""


def _temperature(settings: QuadrotorSettings, evidence: Evidence) -> Figure:
    """Median cost and its quartiles against eps, for the cost of one step and for the cost-to-go."""
    flights = evidence.stale_point.pd
    figure = blank(4.4, 3.1)
    ax = figure.add_subplot()
    eps = np.array(settings.temperatures)
    for by_eps, colour, label in (
        (evidence.one_step, ORANGE, "cost of one step"),
        (evidence.cost_to_go, GREEN, "cost-to-go"),
    ):
        low, middle, high = np.quantile([by_eps[t].cost for t in settings.temperatures], [0.25, 0.5, 0.75], axis=1)
        ax.fill_between(eps, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.plot(eps, middle, "o-", color=colour, markersize=4, label=label)
    # only the first seeds were flown at every temperature: a median over others would lie elsewhere by chance
    seeds = len(evidence.one_step[settings.temperatures[0]].cost)
    for name, colour, label in (("baseline", PINK, "PID"), (FIXED, GREY, "fixed 50/50")):
        ax.axhline(np.median(flights[name].cost[:seeds]), color=colour, linestyle="--", linewidth=1.1, label=label)
    ax.set(xscale="log", xlabel=r"temperature $\epsilon$", ylabel="total cost, median and quartiles")
    ax.set_title(f"PD pair, mean action, wide grid, {seeds} seeds", loc="left")
    ax.legend(fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    return figure


FIGURES = {
    "trajectories": StudyFigure(_trajectories, _TRAJECTORIES, ("Q1", "Q5"), {"5b": ("Q1",), "S7a": ("Q5", "Q6")}),
    "costs": StudyFigure(_costs, _COSTS, ("Q1", "Q2", "Q3", "Q4"), {"5c": ("Q2", "Q3"), "S7b": ("Q4",)}),
    "impulse": StudyFigure(_impulse, _IMPULSE, ("Q5", "Q6", "Q7"), {"S7a": ("Q5", "Q6", "Q7")}),
    "temperature": StudyFigure(_temperature, _TEMPERATURE, ("Q2",)),
}
