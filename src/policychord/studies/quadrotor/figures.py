"""Figures of the quadrotor study: flights, total costs, weights around the impulse, cost against temperature."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from ...envs.paths import path
from ..drawing import COLOURS, blank
from ..study import Evidence
from .claims import CONTROL, RELEASED, USEFUL, WRITTEN
from .controllers import DT
from .plan import flights_at, sweep_of
from .settings import Experiment, QuadrotorSettings
from .silhouette import silhouette
from .simulate import ALONE, Flight

BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, GREY = COLOURS
BASELINE: dict[Experiment, str] = {"pd": "PID", "lqr": "LQR"}
TITLES = {"pd": "PD pair", "lqr": "LQR pair, impulse"}
BEFORE, AFTER = 25, 75  # steps around the impulse that are shown
TIME = "time (s)"


def draw_flights(
    ax: Axes, settings: QuadrotorSettings, experiment: Experiment, shown: Mapping[str, np.ndarray]
) -> None:
    """Flights (sample, 6) over the path, with the drone drawn along the first of them."""
    row = path(settings.path, steps=settings.steps, scale=settings.scale, period=settings.period)
    ax.plot(row[:, 0], row[:, 2], color="0.75", linewidth=3, label="path")
    for (name, states), colour in reversed(list(zip(shown.items(), (BLUE, PINK, GREEN), strict=False))):
        ax.plot(states[:, 0], states[:, 2], color=colour, linewidth=1.0, label=name)
    drone = next(iter(shown.values()))
    for k in range(10, len(drone), 29):
        lines = silhouette(drone[k, 0], drone[k, 2], drone[k, 4])
        ax.add_collection(LineCollection(lines, colors=BLUE, linewidths=1.3, alpha=0.55, zorder=3))
    ax.plot(*settings.start[0:3:2], "x", color="#C00000", markersize=7, markeredgewidth=2, label="start", zorder=4)
    ax.set(xlabel="x (m)", ylabel="z (m)", aspect="equal")
    ax.set_title(TITLES[experiment], loc="left")


def typical(flights: Mapping[str, Flight], name: str) -> int:
    """The kept episode in which this controller and the baseline both cost about what they do in the median."""
    off = [np.log(flights[one].cost / np.median(flights[one].cost)) ** 2 for one in (name, "baseline")]
    return int(np.argmin(sum(off)[: len(flights[name].states)]))


def trajectories(settings: QuadrotorSettings, evidence: Evidence) -> Figure:
    """A typical flight of the composed controller and of the baseline, through the same disturbances."""
    fig = blank(7.2, 2.35)
    panels = fig.subplots(1, 2, sharex=True, sharey=True)
    for ax, experiment in zip(panels, BASELINE, strict=True):
        flights = flights_at(settings, evidence, experiment, "stale-point")
        one = typical(flights, RELEASED)
        shown = {
            "composed (released gate)": flights[RELEASED].states[one],
            "baseline (PID, LQR)": flights["baseline"].states[one],
        }
        draw_flights(ax, settings, experiment, shown)
        if experiment == "lqr":
            k = int(flights[RELEASED].impulse_time[one])
            x, z = flights[RELEASED].states[one][k, 0:3:2]
            ax.annotate(
                "impulse", (x, z), (16, 24), textcoords="offset points", ha="left", fontsize=8,
                arrowprops={"arrowstyle": "->", "color": "black", "linewidth": 1.0},
            )  # fmt: skip
    panels[1].set_ylabel("")
    fig.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    return fig


def draw_costs(ax: Axes, experiment: Experiment, worlds: Mapping[str, Mapping[str, Flight]]) -> None:
    """Boxes of the total cost, one row for each controller and one colour for each world."""
    names = list(next(iter(worlds.values())))[::-1]
    height = 0.7 / len(worlds)
    for i, (flights, colour) in enumerate(zip(worlds.values(), (ORANGE, BLUE), strict=False)):
        places = np.arange(len(names)) + (len(worlds) / 2 - i - 0.5) * height
        boxes = ax.boxplot(
            [flights[name].cost for name in names], positions=places.tolist(), widths=0.8 * height,
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
    ax.set_title(TITLES[experiment], loc="left")


def costs(settings: QuadrotorSettings, evidence: Evidence) -> Figure:
    """Total cost of all controllers, with forces as recorded and with forces at the centre of mass."""
    fig = blank(7.4, 4.2)
    panels = fig.subplots(1, 2, sharey=True)
    for ax, experiment in zip(panels, BASELINE, strict=True):
        worlds = {world: flights_at(settings, evidence, experiment, world) for world in ("stale-point", "centre")}
        draw_costs(ax, experiment, worlds)
    handles = [panels[0].plot([], [], "s", color=c, alpha=0.55, markersize=8)[0] for c in (ORANGE, BLUE)]
    fig.legend(
        handles, ["forces as recorded (stale point)", "forces at the centre of mass"],
        loc="outside upper center", ncols=2, fontsize=8,
    )  # fmt: skip
    return fig


def around_impulse(flight: Flight, values: np.ndarray) -> np.ndarray:
    """Rows of `values` (episode, time) from 0.5 s before the impulse to 1.5 s after, where there is so much."""
    inside = np.flatnonzero((flight.impulse_time >= BEFORE) & (flight.impulse_time + AFTER < values.shape[1]))
    return np.stack([values[i, flight.impulse_time[i] - BEFORE : flight.impulse_time[i] + AFTER] for i in inside])


def impulse(settings: QuadrotorSettings, evidence: Evidence) -> Figure:
    """Weight of the stabilising primitive, and distance from the path, around the impulse."""
    flights = flights_at(settings, evidence, "lqr", "stale-point")
    time = DT * np.arange(-BEFORE, AFTER)
    fig = blank(7.2, 2.9)
    one, many, far = fig.subplots(1, 3)
    released = around_impulse(flights[RELEASED], flights[RELEASED].stabilising)
    one.plot(time, released[0], ".", markersize=3, color=BLUE)
    one.plot(time, released[0], color=BLUE, linewidth=0.4, alpha=0.6)
    one.set(ylabel="weight of stabilising", ylim=(-0.04, 1.04))
    one.set_title("Released gate, one flight", loc="left")
    for name, colour, label in (
        (RELEASED, BLUE, "released gate"), (WRITTEN, ORANGE, "equilibrium, drawn"), (USEFUL, GREEN, "cost-to-go, warm")
    ):  # fmt: skip
        weight = around_impulse(flights[name], flights[name].stabilising).mean(0)
        # over two steps, or the released gate's turns would hide everything else
        many.plot(time[1:], (weight[1:] + weight[:-1]) / 2, color=colour, label=label)
    many.set(ylim=(-0.04, 1.04), ylabel="its mean, over two steps")
    many.set_title("All flights", loc="left")
    for name, colour, label in (
        ("baseline", PINK, "LQR baseline"), (RELEASED, BLUE, "released gate"), (WRITTEN, ORANGE, "equilibrium, drawn"),
        (CONTROL, GREY, "fixed 50/50"), (USEFUL, GREEN, "cost-to-go, warm"),
    ):  # fmt: skip
        distance = around_impulse(flights[name], flights[name].distance[:, :-1])
        far.plot(time, np.median(distance, axis=0), color=colour, label=label)
    far.axhline(settings.recovered, color="0.6", linewidth=0.8, linestyle=":")
    far.set(ylabel="distance from the path (m)", ylim=(0, None))
    far.set_title("Medians", loc="left")
    for ax in (one, many, far):
        ax.axvline(0.0, color="0.5", linewidth=0.8)
        ax.set_xlabel("time after the impulse (s)")
    handles, labels = far.get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8)
    return fig


def temperature(settings: QuadrotorSettings, evidence: Evidence) -> Figure:
    """Median cost and its quartiles against eps, for the cost of one step and for the cost-to-go."""
    sweep, flights = sweep_of(settings, evidence), flights_at(settings, evidence, "pd", "stale-point")
    fig = blank(4.4, 3.1)
    ax = fig.add_subplot()
    eps = np.array(settings.temperatures)
    for found, colour, label in ((sweep.one_step, ORANGE, "cost of one step"), (sweep.cost_to_go, GREEN, "cost-to-go")):
        low, middle, high = np.quantile([found[t].cost for t in settings.temperatures], [0.25, 0.5, 0.75], axis=1)
        ax.fill_between(eps, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.plot(eps, middle, "o-", color=colour, markersize=4, label=label)
    for name, colour, label in (("baseline", PINK, "PID"), (CONTROL, GREY, "fixed 50/50")):
        ax.axhline(np.median(flights[name].cost), color=colour, linestyle="--", linewidth=1.1, label=label)
    ax.set(xscale="log", xlabel=r"temperature $\epsilon$", ylabel="total cost, median and quartiles")
    ax.set_title("PD pair, mean action, wide grid", loc="left")
    ax.legend(fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    return fig


FIGURES = {"trajectories": trajectories, "costs": costs, "impulse": impulse, "temperature": temperature}


def flown(settings: QuadrotorSettings, experiment: Experiment, flights: Mapping[str, Flight]) -> Figure:
    """A typical flight of a composition beside its baseline."""
    fig = blank(4.4, 2.7)
    one = typical(flights, "composed")
    shown = {
        "composed": flights["composed"].states[one],
        f"{BASELINE[experiment]} baseline": flights["baseline"].states[one],
    }
    ax = fig.add_subplot()
    draw_flights(ax, settings, experiment, shown)
    fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
    return fig


def compared(experiment: Experiment, flights: Mapping[str, Flight]) -> Figure:
    """Total costs of one experiment."""
    fig = blank(4.8, 2.6)
    draw_costs(fig.add_subplot(), experiment, {"here": flights})
    return fig


def one_flight(settings: QuadrotorSettings, experiment: Experiment, data) -> Figure:
    """A single flight of a dataset: where it went, how far from the path it was, and the weights."""
    fig = blank(7.2, 3.2)
    name, composed = str(data.controller.values[0]), str(data.controller.values[0]) not in ALONE
    grid = fig.add_gridspec(2, 2)
    left = fig.add_subplot(grid[:, 0])
    draw_flights(left, settings, experiment, {name: data.state.values[0, 0]})
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=3, fontsize=8)
    distance, weight = data.distance.values[0, 0], data.stabilising.values[0, 0]
    above = fig.add_subplot(grid[0, 1] if composed else grid[:, 1])
    above.plot(DT * np.arange(len(distance)), distance, color=BLUE)
    above.set(ylabel="from the path (m)", ylim=(0, None), xlim=(0, DT * len(weight)), xlabel="" if composed else TIME)
    above.set_title(f"total cost {float(data.cost.values[0, 0]):.1f}", loc="left")
    if composed:
        below = fig.add_subplot(grid[1, 1], sharex=above)
        below.plot(DT * np.arange(len(weight)), weight, color=ORANGE, linewidth=0.8)
        below.set(ylabel="weight of stabilise", ylim=(-0.03, 1.03), xlabel=TIME)
    words = f"{name}, seed {settings.seed}, episode {int(data.episode.values[0])}, forces: {settings.disturbance}"
    fig.suptitle(words, fontsize=9.5, fontweight="bold", x=0.01, ha="left")
    return fig
