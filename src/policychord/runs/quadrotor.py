"""One experiment with a drone: fly every controller, compare, draw, keep."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ..studies.drawing import styled
from ..studies.quadrotor.agents import ALONE, FIXED
from ..studies.quadrotor.experiments import fly_all
from ..studies.quadrotor.figures import draw_comparison, draw_flown
from ..studies.quadrotor.measures import Comparison, compare
from ..studies.quadrotor.report import dataset
from ..studies.quadrotor.settings import Experiment, QuadrotorSettings
from .store import note_earlier, prepare, save_animation, save_figure, write_dataset, write_json

Watcher = Callable[[str, int, int], None]


class Flown(NamedTuple):
    """What an experiment left: a row for each controller, files, and what should be said."""

    rows: list[Comparison]
    against_fixed: Comparison  # the composition beside the fixed mixture
    files: list[Path]
    notes: list[str]


def fly(experiment: Experiment, settings: QuadrotorSettings, out: Path, animation: bool, watch: Watcher) -> Flown:
    """Fly the pair alone, composed and in a fixed mixture; write table.json, figures, data and, if asked, films."""
    notes = note_earlier(prepare(out))
    who = dict.fromkeys(ALONE) | {"composed": settings.composition, FIXED: None}
    total = 2 + animation
    watch(f"flying {len(who)} controllers, {settings.seeds} seeds each", 0, total)
    flights = fly_all(settings, experiment, who)
    watch("comparing and drawing", 1, total)
    rows = [compare(settings, flights, name) for name in flights]
    files = [write_json(out / "table.json", {"settings": settings, "controllers": rows})]
    files += save_figure(out / "figures" / "flights", styled(draw_flown, settings, experiment, flights))
    files += save_figure(out / "figures" / "costs", styled(draw_comparison, experiment, flights))
    files.append(write_dataset(out / "data" / "flights.zarr", dataset(settings, flights)))
    if animation:
        from ..studies.quadrotor.animation import animate, can_write, pictures_per_second

        watch("filming", 2, total)
        for ending in filter(can_write, (".gif", ".mp4")):
            motion = animate(settings, flights["composed"], title=f"{experiment.upper()} pair, composed")
            files.append(save_animation(out / f"animation{ending}", motion, pictures_per_second(settings)))
        if not can_write(".mp4"):
            notes.append("No animation.mp4: ffmpeg is not installed here; animation.gif shows the same.")
    return Flown(rows, compare(settings, flights, "composed", FIXED), files, notes)
