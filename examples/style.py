"""How the examples' figures look, and where they go."""

import argparse
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

# Okabe-Ito: distinct for colour-blind readers and in print
BLUE, ORANGE, GREEN, PINK, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#666666"

matplotlib.rcParams.update(
    {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 9,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "legend.frameon": False,
        "legend.fontsize": 8,
        "lines.linewidth": 1.4,
    }
)


def figure(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    return Figure(figsize=(width, height), layout="constrained")


# read at once: a misspelt option should not cost half a minute
_parser = argparse.ArgumentParser()
_parser.add_argument("--out", type=Path, default=Path("out/examples"), help="the folder for figures")
_parser.add_argument("--seeds", type=int, default=None, help="how many episodes, where an example compares agents")
_parser.add_argument("--record", type=Path, default=None, help="a file that keeps returns, to go on from and to show")
_given = _parser.parse_args()
FOLDER: Path = _given.out
SEEDS: int | None = _given.seeds
RECORD: Path | None = _given.record


def save(fig: Figure, name: str) -> None:
    """Write the figure into the folder given by `--out` on the command line, and say where."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    fig.savefig(FOLDER / f"{name}.png", dpi=200, metadata={"Software": None})
    print(f"figure: {FOLDER / name}.png")
