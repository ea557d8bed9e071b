"""One experiment with a flock: simulate, measure, draw, store."""

from pathlib import Path
from typing import NamedTuple

from policychord.drawing import film_endings, styled
from policychord.loops import to_dataset
from policychord.runs import Watch, note_earlier, prepare, save_animation, save_figure, write_dataset
from policychord.worlds.flock import FlockSettings, advise, describe_flock, measure_flight, simulate_flock, summarise


class _Flown(NamedTuple):
    """What an experiment left: mean and sd over the seeds of each measure, the same in words, files, and notes."""

    summary: dict[str, tuple[float, float]]
    sentences: list[str]
    files: list[Path]
    notes: list[str]


def fly_flock(settings: FlockSettings, out: Path, animation: bool, watch: Watch) -> _Flown:
    """Run the experiment and write data.zarr, figures and, if asked, films into `out`."""
    from policychord.worlds.flock import flock_figures

    earlier = note_earlier(prepare(out))
    total = 3 + animation
    several = "s" if settings.seeds > 1 else ""
    watch(f"flying: {settings.boids} boids, {settings.steps} steps, {settings.seeds} seed{several}", 0, total)
    trace = simulate_flock(settings)
    watch("measuring", 1, total)
    flight = measure_flight(settings, trace)
    files = [write_dataset(out / "data.zarr", to_dataset(trace, **settings.model_dump()))]
    watch("drawing", 2, total)
    for name, draw in flock_figures(flight).items():
        files += save_figure(out / name, styled(draw))
    notes = [*advise(settings), *earlier]
    if animation:
        from policychord.worlds.flock import FRAMES_PER_SECOND, animate_flock

        watch("filming", 3, total)
        for ending in film_endings():
            files.append(save_animation(out / f"animation{ending}", animate_flock(flight), FRAMES_PER_SECOND))
        if ".mp4" not in film_endings():
            notes.append("No animation.mp4: ffmpeg is not installed here; animation.gif shows the same.")
    return _Flown(summarise(settings, flight.measured), describe_flock(settings, flight.measured), files, notes)
