"""One experiment with a flock: simulate, measure, draw, film, store."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.animation import FuncAnimation
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from policychord.drawing import COLOURS, blank, film_endings, styled
from policychord.loops import to_dataset
from policychord.runs import Watch, note_earlier, prepare, save_animation, save_figure, write_dataset
from policychord.worlds.flock import (
    ARRIVED,
    LAST_STEPS,
    FlockFlight,
    FlockSettings,
    Measures,
    at_end,
    measure_flight,
    overview,
    simulate_flock,
)

from .figures import all_weights

CROWDED = 400  # boids from which a start denser than the paper's costs more than it shows
DENSITY = 40 / 5.0**2  # boids per square metre at the paper's start
ORDERED, DISORDERED = 0.9, 0.3  # polarization or milling above which a summary calls it order, below which none
TAIL = 20  # steps that stay visible behind a boid
FRAMES_PER_SECOND = 25
MOST_FRAMES = 300  # browsers do not open longer ones


class _Flown(NamedTuple):
    """What an experiment left: mean and sd over the seeds of each measure, the same in words, files, and notes."""

    summary: dict[str, tuple[float, float]]
    sentences: list[str]
    files: list[Path]
    notes: list[str]


def fly_flock(settings: FlockSettings, out: Path, animation: bool, watch: Watch) -> _Flown:
    """Run the experiment and write data.zarr, figures and, if asked, films into `out`."""
    earlier = note_earlier(prepare(out))
    total = 3 + animation
    several = "s" if settings.seeds > 1 else ""
    watch(f"flying: {settings.boids} boids, {settings.steps} steps, {settings.seeds} seed{several}", 0, total)
    trace = simulate_flock(settings)
    watch("measuring", 1, total)
    flight = measure_flight(settings, trace)
    files = [write_dataset(out / "data.zarr", to_dataset(trace, **settings.model_dump()))]
    watch("drawing", 2, total)
    for name, draw in _figures(flight).items():
        files += save_figure(out / name, styled(draw))
    notes = [*_advise(settings), *earlier]
    if animation:
        watch("filming", 3, total)
        for ending in film_endings():
            files.append(save_animation(out / f"animation{ending}", _animate(flight), FRAMES_PER_SECOND))
        if ".mp4" not in film_endings():
            notes.append("No animation.mp4: ffmpeg is not installed here; animation.gif shows the same.")
    return _Flown(_summarise(settings, flight.measured), _describe(settings, flight.measured), files, notes)


def _animate(flight: FlockFlight) -> FuncAnimation:
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


def _window(position: np.ndarray, goal: tuple[float, float] | None) -> tuple[np.ndarray, np.ndarray]:
    """A square that holds everything that happens."""
    points = position.reshape(-1, 2) if goal is None else np.concatenate([position.reshape(-1, 2), [goal]])
    low, high = points.min(axis=0), points.max(axis=0)
    half = max((high - low).max() / 2 * 1.06, 3.0)
    centre = (low + high) / 2
    return centre - half, centre + half


def _arrow(velocity: np.ndarray) -> np.ndarray:
    return velocity / np.maximum(np.linalg.norm(velocity, axis=-1, keepdims=True), 1e-12)


def _figures(flight: FlockFlight) -> dict[str, Callable[[], Figure]]:
    """What is drawn of a single experiment."""
    drawn: dict[str, Callable[[], Figure]] = {"overview": partial(overview, flight)}
    if flight.shown.weights.shape[2] > 1:
        drawn["weights"] = partial(all_weights, flight)
    return drawn


def _summarise(settings: FlockSettings, measured: Measures) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation over the seeds, by what was measured."""
    last = min(LAST_STEPS, settings.steps)
    values = {
        f"polarization, last {last} steps": at_end(measured.polarization),
        f"milling, last {last} steps": at_end(measured.milling),
        "smallest distance of any two, ever (m)": measured.pair_distance.min(axis=1),
        "mean distance from the centre, end (m)": measured.spread[:, -1],
        "groups, end": measured.groups[:, -1],
        "share of the largest group, end": measured.largest_group[:, -1],
    }
    if settings.boids < 2:
        del values["smallest distance of any two, ever (m)"]
    if settings.leaders:
        distance = measured.goal_distance
        values |= {
            "distance to goal, nearest (m)": distance.min(axis=1),
            "distance to goal, end (m)": distance[:, -1],
            f"came within {ARRIVED:g} m of the goal": (distance.min(axis=1) < ARRIVED) * 1.0,
            "leaders' weights, sd over time": measured.leader_sd.mean(axis=1),
            "the same until they arrive": measured.leader_sd_before.mean(axis=1),
        }
    if measured.follower_sd.shape[1]:
        whose = "other boids'" if settings.leaders else "boids'"
        values[f"{whose} weights, sd over time"] = measured.follower_sd.mean(axis=1)
        values[f"farthest weight from 1/3, last {last} steps"] = at_end(measured.imbalance)
    return {name: (float(np.mean(each)), float(np.std(each))) for name, each in values.items()}


def _describe(settings: FlockSettings, measured: Measures) -> list[str]:
    """What the flock did, for readers who do not know these measures."""
    aligned, turning = float(at_end(measured.polarization).mean()), float(at_end(measured.milling).mean())
    if aligned >= ORDERED:
        verdict = "the flock flies as one"
    elif turning >= ORDERED:
        verdict = "the flock has become a mill"
    elif max(aligned, turning) < DISORDERED:
        verdict = "there is no common motion"
    else:
        verdict = "order is partial"
    lines = [
        f"Polarization {aligned:.2f} (1: all fly the same way, 0: no common way), milling {turning:.2f} (1: all circle "
        f"their centre, 0: no common turn): {verdict}."
    ]
    if settings.leaders:
        near = measured.goal_distance.min(axis=1) < ARRIVED
        seeds = "1 seed" if near.size == 1 else f"{near.size} seeds"
        lines.append(
            f"Its centre came within {ARRIVED:g} m of the goal in {near.sum()} of {seeds}. Nothing tells it to stop "
            "there, so the nearest distance says more than the last."
        )
    return lines


def _advise(settings: FlockSettings) -> list[str]:
    """What a user of such settings might not expect."""
    usual = math.sqrt(settings.boids / DENSITY) / 2
    if settings.boids <= CROWDED or settings.start != "square" or settings.start_size >= usual / 2:
        return []
    return [
        f"{settings.boids} boids started in a square of half width {settings.start_size:g} m, where each sees all "
        f"others: --start-size {usual:.0f} keeps the density of the paper's flock, and is faster."
    ]
