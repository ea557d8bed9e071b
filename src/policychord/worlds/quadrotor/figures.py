"""Figures of flights: where the drone went, and what each controller cost."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from ...drawing import COLOURS, blank
from .agents import ALONE, reference_path
from .settings import Experiment, QuadrotorSettings

BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, GREY = COLOURS
TITLES = {"pd": "PD pair", "lqr": "LQR pair, impulse"}
TIME = "time (s)"
SPAN = 0.16  # m; drawn larger than the drone is (0.08), so that its pitch can be read


def silhouette(x: float, z: float, pitch: float) -> list[Float[np.ndarray, "point 2"]]:
    """Arm, two rotors on their masts: polylines of a drone at (x, z). A positive pitch leans towards positive x."""
    half, mast, rotor = SPAN / 2, SPAN / 7, SPAN / 4.5
    shape = [np.array([[-half, 0.0], [half, 0.0]])]
    for side in (-half, half):
        shape += [np.array([[side, 0.0], [side, mast]]), np.array([[side - rotor, mast], [side + rotor, mast]])]
    c, s = np.cos(pitch), np.sin(pitch)
    turn = np.array([[c, s], [-s, c]])
    return [line @ turn.T + [x, z] for line in shape]


def draw_flights(
    ax: Axes, settings: QuadrotorSettings, experiment: Experiment, shown: Mapping[str, np.ndarray]
) -> None:
    """Flights (sample, 6) over the path, with the drone drawn along the first of them."""
    row = reference_path(settings)
    ax.plot(row[:, 0], row[:, 2], color="0.75", linewidth=3, label="path")
    for (name, states), colour in reversed(list(zip(shown.items(), (BLUE, PINK, ORANGE), strict=False))):
        ax.plot(states[:, 0], states[:, 2], color=colour, linewidth=1.0, label=name)
    drone = next(iter(shown.values()))
    for k in range(10, len(drone), 29):
        lines = silhouette(drone[k, 0], drone[k, 2], drone[k, 4])
        ax.add_collection(LineCollection(lines, colors=BLUE, linewidths=1.3, alpha=0.55, zorder=3))
    ax.plot(*settings.start[0:3:2], "x", color="#C00000", markersize=7, markeredgewidth=2, label="start", zorder=4)
    ax.set(xlabel="x (m)", ylabel="z (m)", aspect="equal")
    ax.set_title(TITLES[experiment], loc="left")


def draw_one_flight(settings: QuadrotorSettings, experiment: Experiment, data: Any) -> Figure:
    """A single flight of an xarray dataset: where it went, how far from the path it was, and the weights."""
    figure = blank(7.2, 3.2)
    name, composed = str(data.controller.values[0]), str(data.controller.values[0]) not in ALONE
    grid = figure.add_gridspec(2, 2)
    left = figure.add_subplot(grid[:, 0])
    draw_flights(left, settings, experiment, {name: data.state.values[0, 0]})
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.42), ncols=3, fontsize=8)  # below the label of x
    distance, weight = data.distance.values[0, 0], data.stabilising.values[0, 0]
    above = figure.add_subplot(grid[0, 1] if composed else grid[:, 1])
    above.plot(settings.dt * np.arange(len(distance)), distance, color=BLUE)
    above.set(ylabel="from the path (m)", ylim=(0, None), xlim=(0, settings.dt * len(weight)))
    above.set_xlabel("" if composed else TIME)
    above.set_title(f"total cost {float(data.cost.values[0, 0]):.1f}", loc="left")
    if composed:
        below = figure.add_subplot(grid[1, 1], sharex=above)
        below.plot(settings.dt * np.arange(len(weight)), weight, color=ORANGE, linewidth=0.8)
        below.set(ylabel="weight of stabilise", ylim=(-0.03, 1.03), xlabel=TIME)
    words = f"{name}, seed {settings.seed}, episode {int(data.episode.values[0])}, forces: {settings.disturbance}"
    figure.suptitle(words, fontsize=9.5, fontweight="bold", x=0.01, ha="left")
    return figure
