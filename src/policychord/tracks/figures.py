"""Figures of tracks: the card, weights where neighbours are, leadership, predictions, and the film."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.animation import FuncAnimation
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from ..drawing import COLOURS, blank
from .decisions import Decisions, hold
from .motion import Card, Leadership, Motion, lengths
from .simulate import Predicted
from .verdict import Rank

GREY, DARK = "#B0B0B0", "#333333"
TAIL = 12  # frames that stay visible behind an individual
FRAMES_PER_SECOND = 20
MOST_FRAMES = 240
MOST_DOTS = 6000  # decisions in the figure of one trial
LEAST = 10  # decisions in a bin of the map, at least


def draw_card(card: Card, motion: Motion) -> Figure:
    """The tracks of the first trial, order in time, speeds and distances."""
    figure = blank(8.4, 4.6)
    grid = figure.add_gridspec(2, 3)
    trial = motion.trials[0]
    ax = figure.add_subplot(grid[:, 0])
    ax.set_prop_cycle(color=COLOURS)
    ax.plot(trial.position[..., 0], trial.position[..., 1], linewidth=0.5, alpha=0.7)
    ax.set(aspect="equal", xlabel=f"x ({card.unit})", ylabel=f"y ({card.unit})", title=f"Trial {trial.name}")
    ax = figure.add_subplot(grid[0, 1:])
    for number in np.unique(card.series["trial"]):
        rows = card.series["trial"] == number
        for name, colour in (("polarization", COLOURS[0]), ("milling", COLOURS[1])):
            label = name if number == card.series["trial"].min() else None
            ax.plot(card.series["time"][rows], card.series[name][rows], color=colour, linewidth=0.7, label=label,
                    alpha=1.0 if card.trials == 1 else 0.4)  # fmt: skip
    ax.set(xlabel="time (s)", ylim=(0, 1), title="Order")
    ax.legend(ncols=2, fontsize=7.5)
    speeds = [lengths(trial.velocity) for trial in motion.trials], f"speed ({card.unit}/s)"
    turns = [lengths(trial.acceleration) for trial in motion.trials], f"acceleration ({card.unit}/s²)"
    for column, (parts, label) in enumerate((speeds, turns)):
        ax, values = figure.add_subplot(grid[1, column + 1]), np.concatenate(parts)
        values = values[np.isfinite(values)]
        ax.hist(values, list(np.linspace(0, np.quantile(values, 0.99), 40)), color=COLOURS[column])
        ax.set(xlabel=label, yticks=[])
    return figure


def draw_weights(names: Sequence[str], weights: np.ndarray) -> Figure:
    """Weights over all decisions on a simplex: the three forces whose weights move most, and how each is spread."""
    figure = blank(7.6, 3.4)
    grid = figure.add_gridspec(len(names), 2, width_ratios=(1.2, 1))
    if len(names) > 2:
        ax, order = figure.add_subplot(grid[:, 0]), _liveliest(weights)
        _frame_simplex(ax, [names[a] for a in order])
        places = _on_simplex(weights[:, order])
        some = places[np.random.default_rng(0).permutation(len(places))[:3000]]
        ax.scatter(some[:, 0], some[:, 1], s=3, alpha=0.25, color=COLOURS[0], linewidths=0, rasterized=True)
        ax.plot(*places.mean(axis=0), "o", color=COLOURS[1], markersize=6, markeredgecolor="white")
    for a, name in enumerate(names):
        ax = figure.add_subplot(grid[a, 1])
        ax.hist(weights[:, a], list(np.linspace(0, 1, 41)), color=_colour(a))
        ax.set(xlim=(0, 1), yticks=[])
        ax.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
        if a < len(names) - 1:
            ax.set_xticklabels([])
    ax.set_xlabel("weight")
    return figure


def _colour(force: int) -> str:
    return COLOURS[force % len(COLOURS)]


CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])


def _liveliest(weights: np.ndarray) -> np.ndarray:
    """The three forces whose weights move most over the decisions, for a simplex."""
    return np.argsort(-weights.std(axis=0), kind="stable")[:3]


def _on_simplex(weights: np.ndarray) -> np.ndarray:
    """Places of weights of three forces in the plane, as shares of what the three have."""
    return weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-12) @ CORNERS


def _frame_simplex(ax: Any, names: list[str]) -> None:
    """An empty simplex."""
    ax.plot(*np.vstack([CORNERS, CORNERS[:1]]).T, color=DARK, linewidth=0.8)
    places = ((0, -0.06, "left", "top"), (1, -0.06, "right", "top"), (0.5, 0.9, "center", "bottom"))
    for (x, y, across, up), name in zip(places, names, strict=True):
        ax.text(x, y, name, ha=across, va=up)
    ax.set(aspect="equal", xlim=(-0.05, 1.05), ylim=(-0.16, 1.0))
    ax.axis("off")


def draw_tracks(given: Decisions, names: Sequence[str], weights: np.ndarray, motion: Motion) -> Figure:
    """The tracks of the first trial in the colours of the weights, and the mean weights of its individuals in time."""
    trial = motion.trials[0]
    rows = np.flatnonzero(given.trial == 0)
    figure = blank(8.4, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.1))
    left.plot(trial.position[..., 0], trial.position[..., 1], linewidth=0.4, color=GREY, alpha=0.6, zorder=0)
    some = rows if len(rows) <= MOST_DOTS else rows[np.linspace(0, len(rows) - 1, MOST_DOTS).astype(int)]
    left.scatter(*given.position[some].T, s=5, c=_colours_of(weights[some]), linewidths=0, rasterized=True)
    left.set(aspect="equal", xlabel=f"x ({motion.unit})", ylabel=f"y ({motion.unit})", title=f"Trial {trial.name}")
    frames, index = np.unique(given.frame[rows], return_inverse=True)
    count = np.bincount(index)
    for a, name in enumerate(names):
        mean = np.bincount(index, weights[rows, a]) / count
        right.plot(frames / motion.rate, mean, color=_colour(a), linewidth=1.0, label=name)
    right.set(xlabel="time (s)", ylabel="mean weight", ylim=(0, 1))
    right.legend(ncols=2, fontsize=7.5)
    return figure


def draw_map(given: Decisions, names: Sequence[str], weights: np.ndarray) -> Figure:
    """Mean weight of each force, by where the nearest neighbour is: ahead is up."""
    together = np.isfinite(given.neighbour[:, 0])
    weights, (distance, bearing) = weights[together], given.neighbour[together].T
    figure = blank(2.3 * len(names), 2.9)
    if len(distance) < LEAST:
        figure.text(0.5, 0.5, "nobody has a neighbour", ha="center")
        return figure
    rings = np.array([0.0, *np.quantile(distance, [0.2, 0.4, 0.6, 0.8, 0.95])])
    # few decisions fill few bins
    sectors = np.linspace(-np.pi, np.pi, int(np.clip(len(distance) // (15 * LEAST), 4, 12)) + 1)
    counts, *_ = np.histogram2d(distance, bearing, (rings, sectors))
    for a, name in enumerate(names):
        ax: Any = figure.add_subplot(1, len(names), a + 1, projection="polar")
        total, *_ = np.histogram2d(distance, bearing, (rings, sectors), weights=weights[:, a])
        mean = np.where(counts >= LEAST, total / np.maximum(counts, 1), np.nan)
        image = ax.pcolormesh(sectors, rings, mean, cmap="viridis")
        ax.set_theta_zero_location("N")
        ax.set_xticks(np.radians([0, 90, 180, 270]), ["ahead", "left", "", "right"], fontsize=7)
        ax.set_yticks([rings[-1]], [f"{rings[-1]:.3g}"] if a == 0 else [""], fontsize=7)
        ax.set_rlabel_position(-45)
        ax.set_title(name)
        ax.grid(visible=False)
        bar = figure.colorbar(image, ax=ax, orientation="horizontal", shrink=0.8, pad=0.08)
        bar.ax.tick_params(labelsize=7)
        bar.ax.locator_params(nbins=3)
    return figure


def draw_leadership(ranking: Leadership) -> Figure:
    """Individuals by how early their heading comes, and the delays of all pairs."""
    order = np.argsort(-np.where(np.isfinite(ranking.lead), ranking.lead, -np.inf), kind="stable")
    names = [ranking.ids[i] for i in order]
    figure = blank(7.2, 3.4)
    left, right = figure.subplots(1, 2)
    left.barh(range(len(order)), np.nan_to_num(ranking.lead[order]), color=COLOURS[0])
    left.axvline(0.0, color=DARK, linewidth=0.8)
    shown = np.arange(0, len(names), max(1, len(names) // 20))
    left.set_yticks(shown, [names[i] for i in shown], fontsize=7)
    left.set(ylim=(len(order) - 0.5, -0.5), xlabel="mean delay of the others (s)", ylabel="individual")
    finite = np.abs(ranking.delay[np.isfinite(ranking.delay)])
    limit = float(np.quantile(finite, 0.95)) if finite.size else 1.0
    image = right.imshow(ranking.delay[np.ix_(order, order)], cmap="RdBu_r", vmin=-(limit or 1.0), vmax=limit or 1.0)
    right.set(xlabel="follows", ylabel="leads", xticks=[], yticks=[])
    figure.colorbar(image, ax=right, label="delay (s)", shrink=0.8)
    return figure


def draw_rank(rank: Rank) -> Figure:
    """The gain of the judged gate among those of surrogates and of draws from constant weights."""
    figure = blank(5.6, 2.4)
    ax = figure.add_subplot()
    for row, (values, colour) in enumerate(((rank.constant, COLOURS[2]), (rank.surrogates, COLOURS[0]))):
        ax.plot(values, np.full(len(values), row), "o", color=colour, markersize=5, alpha=0.7)
    ax.axvline(rank.real, color=COLOURS[1], linewidth=1.5, label="the data")
    ax.set_yticks([0, 1], ["drawn from\nconstant weights", "surrogates\nwithout company"], fontsize=8)
    ax.set(ylim=(-0.6, 1.6), xlabel="gain in ln p of all decisions over constant weights (nats)")
    ax.legend(fontsize=7.5)
    return figure


def draw_predicted(predicted: tuple[Predicted, ...]) -> Figure:
    """Distributions of the data and of groups simulated with the estimates."""
    figure = blank(2.3 * len(predicted), 2.3)
    for ax, measure in zip(np.atleast_1d(figure.subplots(1, len(predicted))), predicted, strict=True):
        both = np.concatenate([measure.data, measure.simulated])
        bins = np.linspace(both.min(), np.quantile(both, 0.99) + 1e-12, 31)
        for values, colour, label in ((measure.data, DARK, "data"), (measure.simulated, COLOURS[1], "simulated")):
            ax.hist(values, bins, density=True, histtype="step", color=colour, label=label, linewidth=1.3)
        ax.set(title=f"{measure.name}\nKS {measure.distance:.2f}", yticks=[])
    ax.legend(fontsize=7)
    return figure


def draw_trials(gains: Sequence[tuple[str, float, float, str]]) -> Figure:
    """What gating adds in each trial, (name, gain, error, call), with 95% intervals."""
    order = sorted(gains, key=lambda row: -row[1])
    figure = blank(5.6, 0.9 + 0.22 * len(order))
    ax = figure.add_subplot()
    for row, (_, gain, error, call) in enumerate(order):
        colour = COLOURS[1] if call == "re-weighting" else COLOURS[0]
        ax.errorbar(gain, row, xerr=1.96 * error, fmt="o", color=colour, markersize=4, linewidth=1)
    ax.axvline(0.0, color=DARK, linewidth=0.8)
    ax.set_yticks(range(len(order)), [name for name, *_ in order], fontsize=7)
    ax.set(ylim=(len(order) - 0.5, -0.5), xlabel="nats per decision over constant weights (held out)", ylabel="trial")
    return figure


def _colours_of(weights: np.ndarray) -> np.ndarray:
    """A colour for each row of weights: a mixture of the forces' colours, sharpened so that it is no grey."""
    tones = np.array([to_rgb(_colour(a)) for a in range(weights.shape[-1])])
    share = weights**2 / np.maximum((weights**2).sum(axis=-1, keepdims=True), 1e-12)
    return share @ tones


def film(given: Decisions, weights: np.ndarray, motion: Motion, number: int = 0) -> FuncAnimation:
    """One trial: individuals as arrows in the colour of their weights at their last decision, and on a simplex.

    The simplex has the three forces whose weights move most over all decisions.
    """
    trial = motion.trials[number]
    held = hold(given, weights, trial, number)
    known = np.isfinite(held[..., 0])
    tint = np.where(known[..., None], _colours_of(np.nan_to_num(held)), to_rgb(GREY))
    shown = np.arange(0, len(trial.position), -(-len(trial.position) // MOST_FRAMES))
    simplex = len(given.names) > 2
    figure = blank(8.6 if simplex else 5.0, 5.2)
    FigureCanvasAgg(figure)
    panels: Any = figure.subplots(1, 2, width_ratios=(1.5, 1)) if simplex else [figure.add_subplot()]
    ax = panels[0]
    low, high = (np.nanquantile(trial.position.reshape(-1, 2), q, axis=0) for q in (0.0, 1.0))
    half, middle = float((high - low).max()) / 2 * 1.06 or 1.0, (low + high) / 2
    ax.set(xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half), aspect="equal",
           xlabel=f"x ({motion.unit})", ylabel=f"y ({motion.unit})")  # fmt: skip
    for a, name in enumerate(given.names):
        ax.plot([], [], "o", color=_colour(a), label=name)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.06), ncols=4, fontsize=7.5)
    tails = [ax.plot([], [], linewidth=0.6, color=GREY)[0] for _ in trial.ids]
    arrows = ax.quiver(*np.zeros((2, len(trial.ids))), *np.zeros((2, len(trial.ids))), pivot="mid", scale=26,
                       width=0.006, headwidth=4, headlength=5, headaxislength=4.5)  # fmt: skip
    clock = ax.set_title("", loc="left")
    dots = None
    if simplex:
        order = _liveliest(weights)
        _frame_simplex(panels[1], [given.names[a] for a in order])
        places = _on_simplex(held[..., order])
        dots = panels[1].scatter(*np.zeros((2, len(trial.ids))), s=22, linewidths=0.4, edgecolors="white")

    def draw(picture: int) -> list[Any]:
        now = int(shown[picture])
        there = np.isfinite(trial.velocity[now]).all(axis=-1)
        speed = np.linalg.norm(trial.velocity[now], axis=-1, keepdims=True)
        heading = np.where(there[:, None], trial.velocity[now] / np.where(speed > 0, speed, 1.0), 0.0)
        arrows.set_offsets(np.where(there[:, None], trial.position[now], middle + 10 * half))
        arrows.set_UVC(*heading.T)
        arrows.set_facecolor(list(map(tuple, tint[now])))
        for i, tail in enumerate(tails):
            tail.set_data(*trial.position[max(now - TAIL, 0) : now + 1, i].T)
        clock.set_text(f"trial {trial.name}   {now / motion.rate:6.1f} s")
        if dots is None:
            return [arrows, *tails, clock]
        dots.set_offsets(np.where((there & known[now])[:, None], places[now], np.nan))
        dots.set_facecolor(list(map(tuple, tint[now])))
        return [arrows, *tails, clock, dots]

    return FuncAnimation(figure, draw, frames=len(shown), interval=1000 / FRAMES_PER_SECOND)
