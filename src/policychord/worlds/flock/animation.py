"""A film of a flock."""

from typing import Any

import numpy as np
from matplotlib.animation import FuncAnimation
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection

from ...drawing import COLOURS, blank
from .flights import FlockFlight
from .measures import Numbers

TAIL = 20  # steps that stay visible behind a boid
FRAMES_PER_SECOND = 25
MOST_FRAMES = 300  # browsers do not open longer ones


def animate_flock(flight: FlockFlight) -> FuncAnimation:
    """The first seed: boids as arrows with a tail, leaders in another colour, the goal as a star."""
    settings, (position, velocity) = flight.settings, (field[0] for field in flight.shown.state)
    every = -(-len(position) // MOST_FRAMES)
    shown = np.arange(0, len(position), every)
    fig = blank(4.2, 4.4)
    FigureCanvasAgg(fig)
    ax = fig.add_subplot()
    low, high = _window(position, settings.goal if settings.leaders else None)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel="x (m)", ylabel="y (m)", aspect="equal")
    colours = [COLOURS[1]] * settings.leaders + [COLOURS[0]] * (settings.boids - settings.leaders)
    tails = LineCollection([], colors=colours, linewidths=0.6, alpha=0.35)
    ax.add_collection(tails)
    size = (high - low).max()
    arrows = ax.quiver(
        *position[0].T, *_arrow(velocity[0]).T, color=colours, pivot="mid", scale_units="width",
        scale=max(28.0, 1.5 * size), width=min(0.006, 0.12 / size), headwidth=4, headlength=5, headaxislength=4.5,
        zorder=3,
    )  # fmt: skip
    if settings.leaders:
        ax.plot(*settings.goal, "*", color="black", markersize=11, markeredgecolor="white", zorder=2)
    clock = ax.set_title("", loc="left")

    def draw(frame: int) -> list[Any]:
        now = int(shown[frame])
        arrows.set_offsets(position[now])
        arrows.set_UVC(*_arrow(velocity[now]).T)
        tails.set_segments(list(position[max(now - TAIL, 0) : now + 1].swapaxes(0, 1)))
        order = flight.measured.polarization[0, now], flight.measured.milling[0, now]
        clock.set_text(f"{settings.dt * now:5.1f} s   polarization {order[0]:.2f}   milling {order[1]:.2f}")
        return [arrows, tails, clock]

    return FuncAnimation(fig, draw, frames=len(shown), interval=1000 / FRAMES_PER_SECOND)


def _window(position: Numbers, goal: tuple[float, float] | None) -> tuple[Numbers, Numbers]:
    """A square that holds everything that happens."""
    points = position.reshape(-1, 2) if goal is None else np.concatenate([position.reshape(-1, 2), [goal]])
    low, high = points.min(axis=0), points.max(axis=0)
    half = max((high - low).max() / 2 * 1.06, 3.0)
    centre = (low + high) / 2
    return centre - half, centre + half


def _arrow(velocity: Numbers) -> Numbers:
    return velocity / np.maximum(np.linalg.norm(velocity, axis=-1, keepdims=True), 1e-12)
