"""Figures of one flight of a flock: paths, weights on the simplex, order and distances."""

from typing import Any

import mpltern  # noqa: F401  registers the ternary projection
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from ..._types import Array
from ...drawing import COLOURS, blank
from .flights import FlockFlight
from .measures import Numbers

TIME = "viridis"
ORDER = (0, 1.03)  # limits of an axis for order parameters
LEADER, FOLLOWER = COLOURS[1], COLOURS[0]
INITIALS = ("sep", "ali", "coh")


def draw_paths(ax: Axes, flight: FlockFlight, title: str) -> LineCollection:
    """Where the boids of the first seed went: crosses where they begin, time as colour, dots where they end."""
    settings = flight.settings
    position = np.concatenate([flight.shown.state.position[0], flight.shown.final_state.position], axis=0)
    seconds = settings.dt * np.arange(len(position))
    pieces = np.stack([position[:-1], position[1:]], axis=2)  # (time, boid, end, axis)
    lines = LineCollection(
        list(pieces.reshape(-1, 2, 2)), array=np.repeat(seconds[:-1], position.shape[1]), cmap=TIME, linewidths=0.5,
        alpha=0.7, rasterized=True,
    )  # fmt: skip
    ax.add_collection(lines)
    ax.plot(*position[0].T, "x", color="0.35", markersize=2.5, markeredgewidth=0.6, zorder=3)
    for colour, who in ((FOLLOWER, slice(settings.leaders, None)), (LEADER, slice(settings.leaders))):
        ax.plot(
            *position[-1, who].T, "o", color=colour, markersize=3.2, markeredgecolor="white", markeredgewidth=0.3,
            zorder=4,
        )  # fmt: skip
    if settings.leaders:
        ax.plot(*settings.goal, "*", color="black", markersize=10, markeredgecolor="white", zorder=5)
    ax.set_aspect("equal", adjustable="datalim")
    ax.autoscale_view()
    ax.set(xlabel="x (m)", ylabel="y (m)")
    ax.set_title(title, loc="left")
    return lines


def draw_simplex(fig: Figure, place: Any, weights: Array, title: str, labels: bool = True, **how: Any) -> None:
    """Weights (time, 3) as dots on the simplex, time as colour; a cross marks the balanced mixture."""
    ax: Any = fig.add_subplot(place, projection="ternary")
    ax.scatter(*weights.T, c=np.arange(len(weights)), cmap=TIME, s=3, linewidths=0, rasterized=True)
    ax.plot([1 / 3], [1 / 3], [1 / 3], "+", color=COLOURS[1], markersize=7, markeredgewidth=1.2)
    for axis in (ax.taxis, ax.laxis, ax.raxis):
        axis.set_ticks([])
    sides = (("center", "bottom"), ("right", "center"), ("left", "center"))
    for corner, name, (side, up) in zip(np.eye(3), INITIALS if labels else (), sides, strict=False):
        ax.text(*corner, f" {name} ", ha=side, va=up, fontsize=8)
    ax.set_title(title, **how)


def draw_band(
    ax: Axes, flight: FlockFlight, series: Numbers, colour: str, label: str | None = None, **line: Any
) -> None:
    """Mean over the seeds (seed, time) and one standard deviation around it."""
    seconds = flight.settings.dt * np.arange(series.shape[1])
    mean, sd = series.mean(axis=0), series.std(axis=0)
    ax.plot(seconds, mean, color=colour, label=label, **line)
    ax.fill_between(seconds, mean - sd, mean + sd, color=colour, alpha=0.2, linewidth=0)
    ax.set_xlim(0, max(seconds[-1], flight.settings.dt))


def overview(flight: FlockFlight) -> Figure:
    """One experiment at a glance: paths, order parameters, distances, weights of a leader and of a follower."""
    settings, measured, weights = flight.settings, flight.measured, flight.shown.weights[0]
    fig = blank(7.4, 4.6)
    grid = fig.add_gridspec(2, 3, width_ratios=(1.5, 1.1, 1.0))
    ax = fig.add_subplot(grid[:, 0])
    episode = flight.shown.labels.episodes[0]
    lines = draw_paths(ax, flight, f"{settings.boids} boids, seed {settings.seed}, episode {episode}")
    fig.colorbar(lines, ax=ax, orientation="horizontal", shrink=0.8, aspect=30, label="time (s)")
    order = fig.add_subplot(grid[0, 1])
    draw_band(order, flight, measured.polarization, COLOURS[0], "polarization")
    draw_band(order, flight, measured.milling, COLOURS[1], "milling")
    order.set(ylim=ORDER, ylabel="order parameter")
    order.legend(fontsize=7, loc="center right")
    seeds = len(measured.polarization)  # a single episode of a sweep has one, whatever the settings say
    order.set_title(f"mean ± sd of {seeds} seeds" if seeds > 1 else "order of this episode", loc="left")
    apart = fig.add_subplot(grid[1, 1])
    draw_band(apart, flight, measured.goal_distance if settings.leaders else measured.spread, COLOURS[2])
    apart.set(ylim=(0, None), xlabel="time (s)", ylabel=f"distance to {'goal' if settings.leaders else 'centre'} (m)")
    shown = {"a leader": 0, "a follower": settings.leaders} if settings.leaders else {"one boid": 0}
    for row, (name, who) in enumerate(shown.items()):
        if who < weights.shape[1]:
            draw_simplex(fig, grid[row, 2], weights[:, who], f"weights of {name}", pad=14)
    return fig
