"""Figures of one analysis: who wins, and the weights along the experiment."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from .compare import OURS, Analysis, Comparison, weights_in_course

# Okabe-Ito: told apart by colour-blind readers and in print
_SPARE = ("#0072B2", "#D55E00", "#E69F00", "#56B4E9", "#999999", "#009E73", "#CC79A7")
SCHEMA_COLOURS = {"exploit": "#009E73", "uncertainty": "#CC79A7", "risk": "#999999"}


def comparison(found: Analysis) -> Figure:
    """PXP of every model for one set of choices."""
    figure = Figure(figsize=(4.6, 2.8), layout="constrained")
    draw_pxp(figure.add_subplot(), found.everything, _SPARE[0], "")
    entitle(figure, f"Which model is the most frequent? ({found.link})", found.trials.source)
    return figure


def weights(found: Analysis) -> Figure:
    """Weights along one experiment."""
    figure = Figure(figsize=(7.4, 3.0), layout="constrained")
    ax: Any = figure.add_subplot()
    draw_course(ax, found)
    ax.set_xlabel("trial, blocks one after the other")
    entitle(figure, f"Weights of the primitives ({found.link})", found.trials.source)
    return figure


def draw_pxp(ax: Any, compared: Comparison, colour: str, title: str) -> None:
    """A bar for each model's PXP, and the Bayes omnibus risk above."""
    values = compared.selection.pxp
    bars = ax.bar(compared.models, values, 0.6, color=colour)
    for bar, model, value in zip(bars, compared.models, values, strict=True):
        bar.set_alpha(1.0 if model == OURS else 0.45)
        ax.text(bar.get_x() + 0.3, value + 0.02, probability_label(float(value)), ha="center", fontsize=8)
    ax.set(ylim=(0, 1.14), ylabel="PXP", yticks=(0, 0.5, 1))
    ax.set_title(title, loc="left", fontweight="normal")
    # above the axes, where no bar and no number can be
    ax.set_title(f"BOR {compared.selection.bor:.2g}", loc="right", fontweight="normal", fontsize=8, color="0.35")


def draw_course(ax: Any, found: Analysis) -> None:
    """Mean and sd over people for every primitive; the first block again, larger, in an inset on the right."""
    course = weights_in_course(found)
    first = course.block == course.block.min()
    # an empty moment between blocks: beliefs start anew, so lines do not go on
    breaks = np.flatnonzero(np.diff(course.block)) + 1
    moments = np.insert(np.arange(1.0, len(course.block) + 1), breaks, breaks + 0.5)
    shown_mean, low, high = (
        np.insert(values, breaks, np.nan, axis=0)
        for values in (course.mean, np.maximum(course.mean - course.sd, 0), np.minimum(course.mean + course.sd, 1))
    )
    zoomed = np.arange(len(moments)) < first.sum()
    inset = ax.inset_axes((1.05, 0.12, 0.26, 0.76))
    for k, (name, colour) in enumerate(zip(found.primitives, colours(found.primitives), strict=True)):
        for panel, shown in ((ax, slice(None)), (inset, zoomed)):
            panel.fill_between(moments[shown], low[shown, k], high[shown, k], color=colour, alpha=0.16, linewidth=0)
            panel.plot(moments[shown], shown_mean[shown, k], color=colour, linewidth=1.1, label=name)
    ax.set(ylabel="weight", ylim=(-0.02, 1.02), xlim=(0.5, len(course.block) + 0.5))
    ax.legend(loc="upper center", ncols=len(found.primitives), fontsize=8, bbox_to_anchor=(0.62, 1.2))
    inset.set_title("first block", fontsize=8, fontweight="normal")
    inset.set(ylim=(-0.02, 1.02), yticks=(0, 0.5, 1), xlim=(0.7, first.sum() + 1.0))  # room for the last label
    inset.locator_params(axis="x", nbins=5, integer=True, steps=(1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10))
    inset.tick_params(labelsize=7)


def colours(primitives: tuple[str, ...]) -> list[str]:
    """A colour for each primitive: those of the paper keep theirs."""
    spare = iter(_SPARE * (1 + len(primitives) // len(_SPARE)))
    return [SCHEMA_COLOURS.get(name) or next(spare) for name in primitives]


def probability_label(value: float) -> str:
    """Three digits, and never certainty."""
    return f"{value:.3f}" if 0.0005 <= value < 0.9995 else "<.001" if value < 0.5 else ">.999"


def entitle(figure: Figure, title: str, source: str) -> None:
    """Title and source above a figure; the source may come from a table, so that it is never read as mathematics."""
    text = f"{title}\n{source}"
    figure.suptitle(text, fontsize=9.5, fontweight="bold", x=0.01, ha="left", parse_math=False)
