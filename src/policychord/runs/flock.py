"""One experiment with a flock: simulate, measure, draw, store."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ..loops import to_dataset
from ..studies.drawing import styled
from ..studies.flock.experiments import measure_flight, simulate
from ..studies.flock.measures import describe, summarise
from ..studies.flock.settings import FlockSettings, advise
from .store import note_earlier, prepare, save_animation, save_figure, write_dataset

Watcher = Callable[[str, int, int], None]


class Flown(NamedTuple):
    """What an experiment left: mean and sd over the seeds of each measure, the same in words, files, and notes."""

    summary: dict[str, tuple[float, float]]
    sentences: list[str]
    files: list[Path]
    notes: list[str]


def fly(settings: FlockSettings, out: Path, animation: bool, watch: Watcher) -> Flown:
    """Run the experiment and write data.zarr, figures and, if asked, films into `out`."""
    from ..studies.flock.figures import figures_of

    earlier = note_earlier(prepare(out))
    total = 3 + animation
    several = "s" if settings.seeds > 1 else ""
    watch(f"flying: {settings.boids} boids, {settings.steps} steps, {settings.seeds} seed{several}", 0, total)
    trace = simulate(settings)
    watch("measuring", 1, total)
    flight = measure_flight(settings, trace)
    files = [write_dataset(out / "data.zarr", to_dataset(trace, **settings.model_dump()))]
    watch("drawing", 2, total)
    for name, draw in figures_of(flight).items():
        files += save_figure(out / name, styled(draw))
    notes = [*advise(settings), *earlier]
    if animation:
        from ..studies.flock.animation import FRAMES_PER_SECOND, endings, film

        watch("filming", 3, total)
        for ending in endings():
            files.append(save_animation(out / f"animation{ending}", film(flight), FRAMES_PER_SECOND))
        if ".mp4" not in endings():
            notes.append("No animation.mp4: ffmpeg is not installed here; animation.gif shows the same.")
    return Flown(summarise(settings, flight.measured), describe(settings, flight.measured), files, notes)
