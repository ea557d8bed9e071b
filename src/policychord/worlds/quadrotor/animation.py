"""One flight in motion: the drone over its path, the weight of the stabilising primitive beside it."""

from typing import Any

import matplotlib
import numpy as np
from matplotlib.animation import FuncAnimation
from matplotlib.collections import LineCollection

from ...drawing import COLOURS, STYLE, blank
from .agents import reference_path
from .figures import silhouette
from .flights import Flight
from .settings import QuadrotorSettings

EVERY = 4  # decisions from one picture to the next


def pictures_per_second(settings: QuadrotorSettings) -> float:
    """So many that the drone moves as fast as it flew."""
    return 1 / (EVERY * settings.dt)


def animate(settings: QuadrotorSettings, flight: Flight, episode: int = 0, title: str = "") -> FuncAnimation:
    """An animation of one kept episode, in our style."""
    with matplotlib.rc_context(STYLE):
        return _animate(settings, flight, episode, title)


def _animate(settings: QuadrotorSettings, flight: Flight, episode: int, title: str) -> FuncAnimation:
    if not 0 <= episode < len(flight.states):
        raise ValueError(f"episode = {episode}: whole flights are kept of episodes 0 to {len(flight.states) - 1}.")
    states, weight = flight.states[episode], flight.stabilising[episode]
    row = reference_path(settings)
    fig = blank(5.6, 2.8)
    air, gauge = fig.subplots(1, 2, width_ratios=[12, 1])
    air.plot(row[:, 0], row[:, 2], color="0.8", linewidth=3)
    low, high = np.minimum(states.min(0), row.min(0)), np.maximum(states.max(0), row.max(0))
    air.set(xlim=(low[0] - 0.2, high[0] + 0.2), ylim=(low[2] - 0.2, high[2] + 0.2), aspect="equal")
    air.set(xlabel="x (m)", ylabel="z (m)")
    air.set_title(title, loc="left")
    (trail,) = air.plot([], [], color=COLOURS[0], linewidth=1.2)
    (target,) = air.plot([], [], "o", color=COLOURS[1], markersize=5)
    drone = LineCollection([], colors="black", linewidths=1.8, zorder=3)
    air.add_collection(drone)
    clock = air.text(0.99, 0.99, "", transform=air.transAxes, ha="right", va="top")
    (bar,) = gauge.bar([0], [0.0], color=COLOURS[0])
    gauge.set(ylim=(0, 1), xticks=[], yticks=[0, 0.5, 1])
    gauge.set_ylabel("weight of stabilising")
    gauge.yaxis.set_label_position("right")

    def show(k: int) -> list[Any]:
        trail.set_data(states[: k + 1, 0], states[: k + 1, 2])
        target.set_data(row[k : k + 1, 0], row[k : k + 1, 2])
        drone.set_segments(silhouette(states[k, 0], states[k, 2], states[k, 4]))
        bar.set_height(weight[min(k, len(weight) - 1)])
        clock.set_text(f"{settings.dt * k:.1f} s")
        return [trail, target, drone, bar, clock]

    between = 1000 / pictures_per_second(settings)  # ms
    return FuncAnimation(fig, show, frames=range(0, len(states), EVERY), interval=between, blit=False)
