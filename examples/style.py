"""How the examples' figures look, and where they go."""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
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
_given = _parser.parse_args()
FOLDER: Path = _given.out
SEEDS: int | None = _given.seeds


def save(fig: Figure, name: str) -> None:
    """Write the figure into the folder given by `--out` on the command line, and say where."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    fig.savefig(FOLDER / f"{name}.png", dpi=200, metadata={"Software": None})
    print(f"figure: {FOLDER / name}.png")


def show(found, name: str) -> None:
    """Print a contest, and draw the return of every episode, a row for each agent."""
    print(found)
    fig = figure(6.4, 0.36 * len(found.returns) + 1.1)
    ax, rng = fig.subplots(), np.random.default_rng(0)
    for place, (agent, values) in enumerate(found.returns.items()):
        colour = GREEN if agent == found.ours else GREY if agent.endswith("alone") else BLUE
        ax.plot(values, place + rng.uniform(-0.2, 0.2, len(values)), ".", color=colour, markersize=4, alpha=0.6)
        ax.plot(np.mean(values), place, "|", color="black", markersize=16, markeredgewidth=1.6)
    ax.set(xlabel="return of an episode", yticks=range(len(found.returns)), yticklabels=list(found.returns))
    ax.invert_yaxis()
    ax.set_title(f"{len(values)} episodes each; bar: mean")
    save(fig, name)
