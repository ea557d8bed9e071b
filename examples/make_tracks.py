"""Tracks of a group with known weights: eight animals that gate four social forces, filmed with errors and gaps."""

import csv

import numpy as np
from style import BLUE, FOLDER, figure, save

import policychord as pc

pc.enable_x64()

ANIMALS, RATE, FILE = 8, 32, FOLDER / "school.csv"
ZONES = pc.worlds.Zones(1.0, 3.0, 12.0, 320.0)  # radii of separation, alignment and cohesion; blind angle in degrees
LAYOUT = pc.tracks.Layout(
    ZONES, None, speed=1.0, change=0.15, every=0.25, arena=(), goal=None, reach=24.0
)  # lengths in body lengths, times in seconds
TRUTH = {"eps": 0.2, "prior": [0.25] * 4, "gain": [3.0, 4.0, 4.0, 4.0], "sd": 0.5, "tail": 8.0}


def simulate(decisions: int = 240):
    """Positions of the group, eight frames from one decision to the next, as a camera would see them."""
    rng = np.random.default_rng(0)
    cells = pc.tracks.cells_of(1.3 * rng.standard_t(4, size=(5000, 2)))
    angle = rng.uniform(0, 2 * np.pi, ANIMALS)
    start = rng.uniform(-2, 2, (ANIMALS, 2)), np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    blank = pc.tracks.blank_decisions(LAYOUT, cells, pc.tracks.USUAL)
    group = pc.tracks.simulate_group(blank, TRUTH, start, steps=decisions, seed=3)
    return pc.tracks.as_tracks(group, LAYOUT, frames=8, noise=0.001, gaps=0.02)


def main():
    tracks = simulate()
    (trial,) = tracks.trials
    FOLDER.mkdir(parents=True, exist_ok=True)
    with FILE.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["frame", "time", "id", "x", "y"])
        for frame, places in enumerate(trial.position):
            rows.writerows([frame, frame / RATE, who, *place] for who, place in enumerate(places))
    fig = figure(4.5, 3.5)
    ax = fig.subplots()
    ax.plot(*np.moveaxis(trial.position, -1, 0), color=BLUE, linewidth=0.8)
    ax.set(xlabel="x (body lengths)", ylabel="y (body lengths)", aspect="equal", title="eight animals, one minute")
    save(fig, "school")
    print(f"{len(trial.position)} frames of {ANIMALS} animals: {FILE}")
    print(f"next: policychord tracks fit {FILE}")


if __name__ == "__main__":
    main()
