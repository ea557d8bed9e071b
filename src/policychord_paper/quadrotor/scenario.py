"""One experiment with a drone: fly every controller, compare, draw, film, store."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.animation import FuncAnimation
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from policychord.drawing import COLOURS, STYLE, blank, film_endings, styled
from policychord.runs import Watch, note_earlier, prepare, save_animation, save_figure, write_dataset, write_json
from policychord.worlds.quadrotor import (
    ALONE,
    BASELINE,
    FIXED,
    Experiment,
    Flight,
    Flights,
    QuadrotorSettings,
    Roster,
    dataset,
    draw_flights,
    fly_controller,
    reference_path,
    silhouette,
)

from .experiments import by_program
from .figures import draw_costs, typical
from .measures import CostComparison, compare_costs

EVERY = 4  # decisions from one picture to the next


class _Flown(NamedTuple):
    """What an experiment left: a row for each controller, files, and messages."""

    rows: list[CostComparison]
    against_fixed: CostComparison  # the composition against the fixed mixture
    files: list[Path]
    notes: list[str]


def fly_pair(experiment: Experiment, settings: QuadrotorSettings, out: Path, animation: bool, watch: Watch) -> _Flown:
    """Fly the pair alone, composed and in a fixed mixture; write table.json, figures, data and, if asked, films."""
    notes = note_earlier(prepare(out))
    who = dict.fromkeys(ALONE) | {"composed": settings.composition, FIXED: None}
    total = 2 + animation
    watch(f"flying {len(who)} controllers, {settings.seeds} seeds each", 0, total)
    flights = _fly_all(settings, experiment, who)
    watch("comparing and drawing", 1, total)
    rows = [compare_costs(settings, flights, name) for name in flights]
    files = [write_json(out / "table.json", {"settings": settings, "controllers": rows})]
    files += save_figure(out / "figures" / "flights", styled(_draw_flown, settings, experiment, flights))
    files += save_figure(out / "figures" / "costs", styled(_draw_comparison, experiment, flights))
    files.append(write_dataset(out / "data" / "flights.zarr", dataset(settings, flights)))
    if animation:
        watch("filming", 2, total)
        for ending in film_endings():
            motion = _animate(settings, flights["composed"], f"{experiment.upper()} pair, composed")
            files.append(save_animation(out / f"animation{ending}", motion, _pictures_per_second(settings)))
        if ".mp4" not in film_endings():
            notes.append("No animation.mp4: ffmpeg is not installed here; animation.gif shows the same.")
    return _Flown(rows, compare_costs(settings, flights, "composed", FIXED), files, notes)


def _pictures_per_second(settings: QuadrotorSettings) -> float:
    """So many that the drone moves as fast as it flew."""
    return 1 / (EVERY * settings.dt)


@matplotlib.rc_context(STYLE)
def _animate(settings: QuadrotorSettings, flight: Flight, title: str) -> FuncAnimation:
    """The first episode: the drone over its path, and the weight of the stabilising primitive."""
    states, weight = flight.states[0], flight.stabilising[0]
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

    between = 1000 / _pictures_per_second(settings)  # ms
    return FuncAnimation(fig, show, frames=range(0, len(states), EVERY), interval=between, blit=False)


def _draw_flown(settings: QuadrotorSettings, experiment: Experiment, flights: Flights) -> Figure:
    """A typical flight of a composition and of its baseline."""
    figure = blank(4.4, 2.7)
    episode = typical(flights, "composed")
    shown = {
        "composed": flights["composed"].states[episode],
        f"{BASELINE[experiment]} baseline": flights["baseline"].states[episode],
    }
    ax = figure.add_subplot()
    draw_flights(ax, settings, experiment, shown)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
    return figure


def _draw_comparison(experiment: Experiment, flights: Flights) -> Figure:
    """Total costs of one experiment."""
    figure = blank(4.8, 2.6)
    draw_costs(figure.add_subplot(), experiment, [flights])
    return figure


def _fly_all(settings: QuadrotorSettings, experiment: Experiment, who: Roster) -> dict[str, Flight]:
    """Every controller of a roster. Those that share a program take turns, the others fly side by side."""

    def in_turn(names: Sequence[str]) -> dict[str, Flight]:
        return {name: fly_controller(settings, experiment, name, who[name]) for name in names}

    groups = by_program(who.items()).values()
    longest_first = sorted(groups, key=lambda names: -sum(who[name] is not None for name in names))
    with ThreadPoolExecutor(2) as pool:  # two at once: one compiles while the other flies
        flights = {name: flight for some in pool.map(in_turn, longest_first) for name, flight in some.items()}
    return {name: flights[name] for name in who}
