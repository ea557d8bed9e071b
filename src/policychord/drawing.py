"""How all figures look: one style, colours for every reader, a blank figure."""

from collections.abc import Callable
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

__all__ = ["COLOURS", "OUTLINE", "STYLE", "blank", "film_endings", "save", "styled"]

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "legend.frameon": False,
    "svg.fonttype": "path",  # looks the same everywhere, whatever fonts there are
    "svg.hashsalt": "policychord",  # the same figure gives the same file
    "lines.linewidth": 1.4,
}
OUTLINE = withStroke(linewidth=2.5, foreground="white")  # keeps a label readable on any shade
# Okabe-Ito: distinct for colour-blind readers and in print
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999")


def blank(width: float, height: float) -> Figure:
    """An empty figure, in inches, that no window manager knows of."""
    return Figure(figsize=(width, height), layout="constrained")


def styled(draw: Callable[..., Figure], *arguments: Any) -> Figure:
    """A figure drawn in our style."""
    with matplotlib.rc_context(STYLE):
        return draw(*arguments)


def save(figure: Figure, target: Any, **how: Any) -> None:
    """A figure on disk in our style, part of which counts only now."""
    with matplotlib.rc_context(STYLE):
        figure.savefig(target, **how)


def film_endings() -> tuple[str, ...]:
    """Files that an animation can be written to here: .gif always, .mp4 where ffmpeg is installed."""
    from matplotlib.animation import writers

    return (".gif", ".mp4") if writers.is_available("ffmpeg") else (".gif",)
