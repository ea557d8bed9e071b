"""Figures of a sweep: a heat map where two settings vary over numbers, lines with bands where one does."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..drawing import COLOURS, blank

FEW = 6  # values up to which a setting is shown as lines
BAND = (0.25, 0.75)  # quantiles over episodes


def draw_sweep(
    table: pd.DataFrame, axes: Sequence[str], metric: str, words: str, x: str | None = None, y: str | None = None
) -> Figure:
    """One metric over one or two settings; medians over episodes and over every setting that is not shown."""
    x, y = _chosen(table, axes, x, y)
    if y is None or not _numeric(table, y) or table[y].nunique() <= FEW:
        figure = blank(4.6, 3.2)
        _draw_lines(figure.subplots(), table, x, y, metric)
    else:
        figure = blank(4.8, 3.6)
        _draw_colours(figure.subplots(), table, x, y, metric)
    figure.axes[0].set_title(words, loc="left")
    return figure


def _chosen(table: pd.DataFrame, axes: Sequence[str], x: str | None, y: str | None) -> tuple[str, str | None]:
    if unknown := [name for name in (x, y) if name not in (None, *axes)]:
        raise ValueError(f"{unknown[0]} does not vary in this sweep: there are {', '.join(axes)}.")
    # numbers go along x; the setting named last varies fastest, and is the one that people think of as x
    numbers = [name for name in axes if _numeric(table, name) and name != y]
    x = x or (numbers or [name for name in axes if name != y] or list(axes))[-1]
    return x, y or next((name for name in reversed(axes) if name != x), None)


def _numeric(table: pd.DataFrame, name: str) -> bool:
    return pd.api.types.is_numeric_dtype(table[name]) and not pd.api.types.is_bool_dtype(table[name])


def _words(name: str) -> str:
    return " ".join(name.replace("_", " ").split(".")).replace("eps", "temperature")


def _is_log(values: np.ndarray) -> bool:
    """Whether numbers are spread as on a log scale: then they are shown on one."""
    if len(values) < 3 or values.min() <= 0:
        return False
    even, ratio = np.diff(np.sort(values)), np.diff(np.log(np.sort(values)))
    return bool(ratio.std() / ratio.mean() < even.std() / even.mean())


def _draw_lines(ax: Axes, table: pd.DataFrame, x: str, y: str | None, metric: str) -> None:
    groups = [("", table)] if y is None else list(table.groupby(y, sort=_numeric(table, y)))
    for (value, part), colour in zip(groups, (COLOURS * 3)[: len(groups)], strict=True):
        quantiles = part.groupby(x)[metric].quantile([*BAND, 0.5]).unstack()
        label = None if y is None else f"{_words(y)} = {value:g}" if _numeric(table, y) else str(value)
        ax.plot(quantiles.index, quantiles[0.5], color=colour, marker=".", label=label)
        ax.fill_between(quantiles.index, quantiles[BAND[0]], quantiles[BAND[1]], color=colour, alpha=0.18, linewidth=0)
    if _numeric(table, x) and _is_log(np.unique(table[x])):
        ax.set_xscale("log")
    if table[metric].min() > 0 and table[metric].quantile(0.99) > 30 * table[metric].quantile(0.01):
        ax.set_yscale("log")
    ax.set(xlabel=_words(x), ylabel=f"median and quartiles\nof {_episodes(table, [x, *([y] if y else [])])}")
    if y is not None:
        ax.legend(title=None if _numeric(table, y) else _words(y), fontsize=8)


def _draw_colours(ax: Axes, table: pd.DataFrame, x: str, y: str, metric: str) -> None:
    """A heat map where every value of one setting meets every value of the other, dots where points were drawn."""
    x_log, y_log = (_is_log(np.unique(table[name])) for name in (x, y))
    ax.set(xlabel=_words(x), ylabel=_words(y), xscale="log" if x_log else "linear", yscale="log" if y_log else "linear")
    grid = table.groupby([y, x])[metric].median().unstack()
    if len(table.groupby([x, y])) < grid.size:
        by = ["point"]
        medians = table.groupby("point").agg({x: "first", y: "first", metric: "median"})
        drawn: Any = ax.scatter(medians[x], medians[y], c=medians[metric], cmap="viridis", s=24)
    else:
        by, columns, rows = [x, y], grid.columns.to_numpy(float), grid.index.to_numpy(float)
        edges = _edges(columns, x_log), _edges(rows, y_log)
        drawn = ax.pcolormesh(*edges, grid.to_numpy(), cmap="viridis", rasterized=True)
    ax.figure.colorbar(drawn, ax=ax, label=f"median of {_episodes(table, by)}")


def _edges(centres: np.ndarray, log: bool) -> np.ndarray:
    """Borders half way between the values."""
    at = np.log(centres) if log else centres
    middle = (at[1:] + at[:-1]) / 2
    edges = np.concatenate([[2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]])
    return np.exp(edges) if log else edges


def _episodes(table: pd.DataFrame, by: list[str]) -> str:
    least, most = table.groupby(by).size().agg(["min", "max"])
    return f"{least} episodes" if least == most else f"{least} to {most} episodes"
