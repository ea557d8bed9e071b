"""One experiment with a drone: fly every controller, compare, draw, keep."""

from pathlib import Path
from typing import NamedTuple

from policychord.drawing import film_endings, styled
from policychord.runs import Watch, note_earlier, prepare, save_animation, save_figure, write_dataset, write_json
from policychord.worlds.quadrotor import (
    ALONE,
    FIXED,
    CostComparison,
    Experiment,
    QuadrotorSettings,
    compare_costs,
    dataset,
    draw_comparison,
    draw_flown,
    fly_all,
)


class _Flown(NamedTuple):
    """What an experiment left: a row for each controller, files, and what should be said."""

    rows: list[CostComparison]
    against_fixed: CostComparison  # the composition beside the fixed mixture
    files: list[Path]
    notes: list[str]


def fly_pair(experiment: Experiment, settings: QuadrotorSettings, out: Path, animation: bool, watch: Watch) -> _Flown:
    """Fly the pair alone, composed and in a fixed mixture; write table.json, figures, data and, if asked, films."""
    notes = note_earlier(prepare(out))
    who = dict.fromkeys(ALONE) | {"composed": settings.composition, FIXED: None}
    total = 2 + animation
    watch(f"flying {len(who)} controllers, {settings.seeds} seeds each", 0, total)
    flights = fly_all(settings, experiment, who)
    watch("comparing and drawing", 1, total)
    rows = [compare_costs(settings, flights, name) for name in flights]
    files = [write_json(out / "table.json", {"settings": settings, "controllers": rows})]
    files += save_figure(out / "figures" / "flights", styled(draw_flown, settings, experiment, flights))
    files += save_figure(out / "figures" / "costs", styled(draw_comparison, experiment, flights))
    files.append(write_dataset(out / "data" / "flights.zarr", dataset(settings, flights)))
    if animation:
        from policychord.worlds.quadrotor import animate, pictures_per_second

        watch("filming", 2, total)
        for ending in film_endings():
            motion = animate(settings, flights["composed"], title=f"{experiment.upper()} pair, composed")
            files.append(save_animation(out / f"animation{ending}", motion, pictures_per_second(settings)))
        if ".mp4" not in film_endings():
            notes.append("No animation.mp4: ffmpeg is not installed here; animation.gif shows the same.")
    return _Flown(rows, compare_costs(settings, flights, "composed", FIXED), files, notes)
