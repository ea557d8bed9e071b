"""Figures of fits, comparisons and recoveries."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..drawing import COLOURS, blank
from .comparison import SURE, Comparison
from .fits import Fit
from .recovery import Recovery
from .uncertainty import MOST_CORRELATED

GREY, DARK = "0.55", "0.25"
LINEAR = 0.01  # nats per decision: a figure that spans much more is linear within this and logarithmic beyond
SPAN = 30.0  # largest over smallest established difference from which it is so


def draw_estimates(fit: Fit) -> Figure:
    """Estimates on the unconstrained scale with their profile intervals; grey where a parameter is not identified."""
    figure, ax = _rows(5.4, 0.9, 0.36, [verdict.name for verdict in fit.verdicts])
    ends = fit.uncertainty.intervals
    colours = {"identified": COLOURS[0], "weakly identified": COLOURS[4], "not identified": GREY}
    finite = ends[np.isfinite(ends)]
    low, high = (finite.min() - 0.5, finite.max() + 0.5) if finite.size else (-5.0, 5.0)
    for row, (verdict, z) in enumerate(zip(fit.verdicts, fit.optimum.z, strict=True)):
        begin, end = np.clip(ends[row], low, high)
        ax.plot([begin, end], [row, row], color=colours[verdict.grade], linewidth=3, solid_capstyle="butt")
        for place, wanted in ((begin, ends[row, 0]), (end, ends[row, 1])):
            if np.isinf(wanted):
                ax.plot(place, row, marker="<" if wanted < 0 else ">", color=colours[verdict.grade], markersize=7)
        ax.plot(
            np.clip(z, low, high), row, "o", markeredgecolor=DARK, markerfacecolor=colours[verdict.grade], markersize=6
        )
    ax.set(xlim=(low - 0.2, high + 0.2), xlabel="unconstrained scale")
    for grade, colour in colours.items():
        ax.plot([], [], color=colour, linewidth=3, label=grade)
    ax.legend(fontsize=7.5, ncols=3, loc="lower center", bbox_to_anchor=(0.4, 1.0), frameon=False)
    return figure


def draw_differences(comparison: Comparison, reference: str | None = None, unit: str = "decision") -> Figure:
    """Held-out difference of every model to the reference, or to the best, with bars of two errors; grey: not clear."""
    base = comparison.names[0] if reference is None else reference
    gains = {name: comparison.difference(name, base) for name in comparison.names if name != base}
    figure, ax = _rows(5.6, 0.9, 0.32, list(gains))
    colours = {"better": COLOURS[0], "worse": COLOURS[1], "not established": GREY}
    for row, gain in enumerate(gains.values()):
        ax.errorbar(gain.mean, row, xerr=SURE * gain.error, fmt="o", color=colours[gain.call], markersize=5)
    ax.axvline(0.0, color=DARK, linewidth=0.8)
    sizes = [abs(gain.mean) for gain in gains.values() if gain.clear]
    if sizes and max(sizes) > SPAN * max(min(sizes), LINEAR / 10):
        ax.set_xscale("symlog", linthresh=LINEAR)
        ax.minorticks_off()
    ax.set(xlabel=f"held out: nats per {unit} over {base}")
    return figure


def draw_correlations(names: Sequence[str], correlation: np.ndarray, needed: np.ndarray | None = None) -> Figure:
    """Which numbers are identifiable: correlations of estimates (bold beyond .9), and decisions for an error of .1."""
    figure, ax = _blank(6.4 if needed is None else 8.2, 1.4 + 0.42 * len(names), 1 if needed is None else 2)
    first = ax if needed is None else ax[0]
    others = np.where(np.eye(len(names), dtype=bool), np.nan, correlation)  # that with itself says nothing
    image = first.imshow(others, cmap="RdBu_r", vmin=-1, vmax=1)
    for i in range(len(names)):
        for j in range(len(names)):
            if i == j:
                continue
            dark, twins = abs(correlation[i, j]) > 0.6, abs(correlation[i, j]) > MOST_CORRELATED
            first.text(j, i, f"{correlation[i, j]:.2f}", ha="center", va="center", fontsize=7.5,
                       color="white" if dark else "black", weight="bold" if twins else "normal")  # fmt: skip
    first.set_xticks(range(len(names)), names, rotation=30, ha="right")
    first.set_yticks(range(len(names)), names)
    figure.colorbar(image, ax=first, shrink=0.8, label="correlation")
    if needed is not None:
        # dots: a logarithmic axis has no zero where bars could begin
        ax[1].plot(needed, range(len(names)), "o", color=COLOURS[0], markersize=6)
        ax[1].set(xscale="log", xlabel="decisions for an error of .1", ylim=(len(names) - 0.5, -0.5), yticks=[])
        ax[1].grid(axis="x", color="0.9")
        for j, value in enumerate(needed):
            ax[1].annotate(f"{value:,.0f}", (value, j), (6, 0), textcoords="offset points", va="center", fontsize=7.5)
        ax[1].set_xlim(float(np.min(needed)) / 3, float(np.max(needed)) * 12)
    return figure


def draw_weights(fit: Fit) -> Figure:
    """How the weights are spread over the decisions: a constant mixture would be one bar."""
    count = len(fit.primitives)
    figure, axes = _blank(2.3 * count, 2.2, count)
    for a, name in enumerate(fit.primitives):
        ax = axes[a] if count > 1 else axes
        ax.hist(fit.weights[:, a], np.linspace(0, 1, 31), color=COLOURS[a % len(COLOURS)])
        ax.set(title=name, xlabel="weight", xlim=(0, 1), yticks=[])
        ax.spines["left"].set_visible(False)
    return figure


def draw_people(fit: Fit) -> Figure:
    """With groups: everybody's estimate around the group's mean, which has a band of two of the group's sd."""
    assert fit.group is not None
    group, sd = fit.group, np.sqrt(np.diag(fit.group.covariance))
    figure, ax = _rows(5.4, 0.8, 0.42, [verdict.name for verdict in fit.verdicts])
    for j, mean in enumerate(group.mean):
        ax.plot([mean - 2 * sd[j], mean + 2 * sd[j]], [j, j], color=COLOURS[5], linewidth=12, alpha=0.5,
                solid_capstyle="butt")  # fmt: skip
    _scatter(ax, group.z, group.mean, alpha=0.7, markersize=5)
    ax.set(xlabel="unconstrained scale (dots: people, bar: mean, band: 2 sd of the group)")
    return figure


def draw_recovery(recovery: Recovery) -> Figure:
    """Estimates of all simulated experiments around the truth, in units of the unconstrained scale."""
    figure, ax = _rows(5.4, 0.8, 0.42, recovery.names)
    offset = recovery.estimates - recovery.truth
    _scatter(ax, offset, recovery.bias, alpha=0.45, markersize=4)
    ax.axvline(0.0, color=DARK, linewidth=0.8)
    spread = float(np.quantile(np.abs(offset), 0.99)) * 1.15
    ax.set(xlim=(-spread, spread), xlabel="estimate less truth (bar: bias)")
    return figure


def _scatter(ax: Any, values: np.ndarray, means: np.ndarray, **marks: Any) -> None:
    """Values (many, rows) as dots around their rows, and a bar at each mean."""
    rng = np.random.default_rng(0)
    for j, mean in enumerate(means):
        ax.plot(values[:, j], j + rng.uniform(-0.22, 0.22, len(values)), ".", color=COLOURS[0], **marks)
        ax.plot([mean] * 2, [j - 0.3, j + 0.3], color=DARK, linewidth=1.6)


def _rows(width: float, margin: float, height: float, names: Sequence[str]) -> tuple[Figure, Any]:
    """A panel with a row for each name, the first on top."""
    figure, ax = _blank(width, margin + height * len(names))
    ax.set_yticks(range(len(names)), names)
    ax.set(ylim=(len(names) - 0.5, -0.5))
    return figure, ax


def _blank(width: float, height: float, columns: int = 1) -> tuple[Figure, Any]:
    figure = blank(width, height)
    ax: Any = figure.subplots(1, columns)
    for panel in np.atleast_1d(ax):
        panel.spines[["top", "right"]].set_visible(False)
    return figure, ax
