"""Figures of the flock study: paths, weights on the simplex, order parameters, temperature, followers."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import mpltern  # noqa: F401  registers the ternary projection
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from ..drawing import COLOURS, blank
from ..study import Evidence
from .experiments import FORMS, MODELS
from .metrics import ARRIVED
from .parts import FORCES
from .scenarios import TEMPERATURES
from .settings import FlockStudySettings
from .simulate import Experiment

TIME = "viridis"
LEADER, FOLLOWER = COLOURS[1], COLOURS[0]
INITIALS = ("sep", "ali", "coh")


# ------------------------------------------------------------------------------------ panels


def draw_paths(ax: Axes, found: Experiment, title: str) -> LineCollection:
    """Where the boids of the first seed went: crosses where they begin, time as colour, dots where they end."""
    settings = found.settings
    position = np.concatenate([found.shown.state.position[0], found.shown.final_state.position], axis=0)
    seconds = settings.dt * np.arange(len(position))
    pieces = np.stack([position[:-1], position[1:]], axis=2)  # (time, boid, end, axis)
    lines = LineCollection(
        list(pieces.reshape(-1, 2, 2)), array=np.repeat(seconds[:-1], position.shape[1]), cmap=TIME, linewidths=0.5,
        alpha=0.7, rasterized=True,
    )  # fmt: skip
    ax.add_collection(lines)
    ax.plot(*position[0].T, "x", color="0.35", markersize=2.5, markeredgewidth=0.6, zorder=3)
    for colour, who in ((FOLLOWER, slice(settings.leaders, None)), (LEADER, slice(settings.leaders))):
        ax.plot(
            *position[-1, who].T, "o", color=colour, markersize=3.2, markeredgecolor="white", markeredgewidth=0.3,
            zorder=4,
        )  # fmt: skip
    if settings.leaders:
        ax.plot(*settings.goal, "*", color="black", markersize=10, markeredgecolor="white", zorder=5)
    ax.set_aspect("equal", adjustable="datalim")
    ax.autoscale_view()
    ax.set(xlabel="x (m)", ylabel="y (m)")
    ax.set_title(title, loc="left")
    return lines


def draw_simplex(
    ax: Any, weights: np.ndarray, *, labels: bool = True, size: float = 3.0, in_layout: bool = True
) -> Any:
    """Weights (time, 3) as dots on the simplex, time as colour; a cross marks the balanced mixture."""
    dots = ax.scatter(*weights.T, c=np.arange(len(weights)), cmap=TIME, s=size, linewidths=0, rasterized=True)
    ax.plot([1 / 3], [1 / 3], [1 / 3], "+", color=COLOURS[1], markersize=4 + size, markeredgewidth=1.2)
    for axis in (ax.taxis, ax.laxis, ax.raxis):
        axis.set_ticks([])
    if labels:
        for at, name, side, up in (
            ((1, 0, 0), INITIALS[0], "center", "bottom"), ((0, 1, 0), INITIALS[1], "right", "center"),
            ((0, 0, 1), INITIALS[2], "left", "center"),
        ):  # fmt: skip
            ax.text(*at, f" {name} ", ha=side, va=up, fontsize=8).set_in_layout(in_layout)
    return dots


def draw_series(ax: Axes, found: Experiment, name: str, colour: str, label: str | None = None) -> None:
    """Mean over the seeds and one standard deviation around it."""
    series = getattr(found.metrics, name)
    seconds = found.settings.dt * np.arange(series.shape[1])
    mean, sd = series.mean(axis=0), series.std(axis=0)
    ax.plot(seconds, mean, color=colour, label=label)
    ax.fill_between(seconds, mean - sd, mean + sd, color=colour, alpha=0.2, linewidth=0)
    ax.set_xlim(0, seconds[-1])


def _weights(found: Experiment) -> np.ndarray:
    """Of the first seed: (time, boid, primitive)."""
    return np.asarray(found.shown.weights[0])


def _order_axis(ax: Axes, label: str) -> None:
    ax.set(ylim=(0, 1.03), ylabel=label)


# ------------------------------------------------------------------------ one experiment (the command `flock`)


def overview(found: Experiment) -> Figure:
    """One experiment at a glance: paths, order parameters, distances, weights of a leader and of a follower."""
    settings, weights = found.settings, _weights(found)
    fig = blank(7.4, 4.6)
    grid = fig.add_gridspec(2, 3, width_ratios=(1.5, 1.1, 1.0))
    ax = fig.add_subplot(grid[:, 0])
    episode = found.shown.labels.episodes[0]
    lines = draw_paths(ax, found, f"{settings.boids} boids, seed {settings.seed}, episode {episode}")
    fig.colorbar(lines, ax=ax, orientation="horizontal", shrink=0.8, aspect=30, label="time (s)")
    order = fig.add_subplot(grid[0, 1])
    draw_series(order, found, "polarization", COLOURS[0], "polarization")
    draw_series(order, found, "milling", COLOURS[1], "milling")
    _order_axis(order, "order parameter")
    order.legend(fontsize=7, loc="center right")
    seeds = len(found.metrics.polarization)  # a replay has one, whatever the settings say
    order.set_title(f"mean ± sd of {seeds} seeds" if seeds > 1 else "order of this episode", loc="left")
    apart = fig.add_subplot(grid[1, 1])
    which = ("goal_distance", "distance to goal (m)") if settings.leaders else ("spread", "distance to centre (m)")
    draw_series(apart, found, which[0], COLOURS[2])
    apart.set(ylim=(0, None), xlabel="time (s)", ylabel=which[1])
    shown = [("leader", 0)] if settings.leaders else []
    shown += [("follower" if settings.leaders else "one boid", settings.leaders)] * (
        weights.shape[1] > settings.leaders
    )
    for row, (name, who) in enumerate(shown):
        simplex = fig.add_subplot(grid[row, 2], projection="ternary")
        draw_simplex(simplex, weights[:, who])
        simplex.set_title(f"weights of a {name}" if "boid" not in name else f"weights of {name}", pad=14)
    return fig


def all_weights(found: Experiment) -> Figure:
    """Fig. S1: a simplex for every boid; plain triangles, as forty ternary axes would take ten times as long."""
    weights = _weights(found)[:, :40]
    boids = weights.shape[1]
    columns = min(8, boids)
    rows = -(-boids // columns)
    fig = blank(7.2, 0.86 * rows + 0.6)
    ax = fig.add_subplot()
    corners = np.array([[0.0, np.sqrt(0.75)], [-0.5, 0.0], [0.5, 0.0]])  # separation, alignment, cohesion
    centre = corners.mean(axis=0)
    outline = corners[[0, 1, 2, 0]]
    for i in range(boids):
        at = np.array([1.15 * (i % columns), -1.08 * (i // columns)])
        ax.plot(*(outline + at).T, color="0.2", linewidth=0.7)
        x, y = (weights[:, i] @ corners + at).T
        dots = ax.scatter(x, y, c=np.arange(len(weights)), cmap=TIME, s=1.6, linewidths=0, rasterized=True)
        ax.plot(*(centre + at), "+", color=COLOURS[1], markersize=5, markeredgewidth=1.0)
    for (x, y), name, side, up in zip(
        corners, INITIALS, ("left", "center", "center"), ("center", "top", "top"), strict=True
    ):
        ax.text(x + 0.06 * (side == "left"), y - 0.02 * (up == "top"), name, ha=side, va=up, fontsize=6)
    ax.set_aspect("equal")
    ax.margins(0.02)
    ax.set_axis_off()
    bar = fig.colorbar(dots, ax=ax, orientation="horizontal", shrink=0.4, aspect=40, pad=0.02)
    bar.set_ticks([0, len(weights) - 1], labels=["start", f"{found.settings.dt * len(weights):g} s"])
    more = f" (the first {boids} of {found.settings.boids})" if boids < found.settings.boids else ""
    fig.suptitle(f"Weights of all boids over time{more}; + is the balanced mixture", fontsize=9, fontweight="bold")
    return fig


# --------------------------------------------------------------------------------- the study


def behaviours(settings: FlockStudySettings, evidence: Evidence) -> Figure:
    """Fig. 3b-d: polarization, milling and soft control, with the weights of representative boids."""
    fig = blank(7.4, 4.4)
    grid = fig.add_gridspec(2, 3, height_ratios=(1.7, 1))
    names = {"polarization": "No leaders", "milling": "With the collision term", "leaders 10%": "10% leaders"}
    for column, (name, title) in enumerate(names.items()):
        found = evidence[name]
        ax = fig.add_subplot(grid[0, column])
        lines = draw_paths(ax, found, title)
        bar = fig.colorbar(lines, ax=ax, orientation="horizontal", shrink=0.7, aspect=30)
        bar.set_label("time (s)", fontsize=8)
        inner = grid[1, column].subgridspec(1, 2 if found.settings.leaders else 1)
        who = [("leader", 0), ("follower", found.settings.leaders)] if found.settings.leaders else [("one boid", 0)]
        for place, (label, i) in enumerate(who):
            simplex = fig.add_subplot(inner[place], projection="ternary")
            draw_simplex(simplex, _weights(found)[:, i], labels=place == 0)
            simplex.set_title(label, pad=12, fontweight="normal")
    return fig


def order(settings: FlockStudySettings, evidence: Evidence) -> Figure:
    """Fig. S2: the order parameters in time, with the controls."""
    fig = blank(7.4, 4.2)
    panels: Any = fig.subplots(2, 2)
    for ax, title, metric, label, curves in (
        (panels[0, 0], "No leaders", "polarization", "polarization",
         {"polarization": "composed", "polarization, fixed weights": "fixed w = 1/3"}),
        (panels[0, 1], "Milling", "milling", "milling",
         {"milling": "ring, collision term", "milling, no collision term": "ring, no term",
          "milling, random start": "random start"}),
        (panels[1, 0], "Leaders", "polarization", "polarization",
         {"leaders 10%": "10%", "leaders 20%": "20%", "leaders 100%": "100%", "leaders 0%": "none"}),
        (panels[1, 1], "Leaders", "goal_distance", "distance to goal (m)",
         {"leaders 10%": "10%", "leaders 20%": "20%", "leaders 100%": "100%", "leaders 0%": "none"}),
    ):  # fmt: skip
        colours = (*COLOURS[:3], COLOURS[-1]) if len(curves) > 3 else (COLOURS[0], COLOURS[-1], COLOURS[1])
        for (name, said), colour in zip(curves.items(), colours, strict=False):
            draw_series(ax, evidence[name], metric, colour, said)
        if metric == "goal_distance":
            ax.set(ylim=(0, None), ylabel=label)
        else:
            _order_axis(ax, label)
        ax.set_title(title, loc="left")
        ax.set_xlabel("time (s)")
        where = {"loc": "center right", "bbox_to_anchor": (1.0, 0.62)} if metric == "milling" else {}
        ax.legend(fontsize=7, handlelength=1.2, ncols=2 if len(curves) > 3 else 1, **where)
    return fig


def temperatures(settings: FlockStudySettings, evidence: Evidence) -> Figure:
    """Fig. S3c: polarization, distance and weights at three temperatures."""
    fig = blank(7.4, 4.4)
    grid = fig.add_gridspec(3, 4, width_ratios=(1.6, 1, 1, 1))
    left = grid[:, 0].subgridspec(2, 1)
    top, bottom = fig.add_subplot(left[0]), fig.add_subplot(left[1])
    for eps, colour in zip(TEMPERATURES, (COLOURS[4], COLOURS[2], COLOURS[3]), strict=True):
        found = evidence[f"temperature {eps:g}"]
        draw_series(top, found, "polarization", colour, f"{eps:g}")
        draw_series(bottom, found, "goal_distance", colour)
    _order_axis(top, "polarization")
    top.legend(title=r"$\epsilon$", ncols=3, fontsize=7, loc="lower right")
    top.set_title(f"mean ± sd, {settings.temperature_seeds} seeds", loc="left")
    bottom.set(ylim=(0, None), xlabel="time (s)", ylabel="distance to goal (m)")
    for column, eps in enumerate(TEMPERATURES):
        found = evidence[f"temperature {eps:g}"]
        seconds = found.settings.dt * np.arange(found.settings.steps)
        for row, force in enumerate(FORCES):
            ax = fig.add_subplot(grid[row, column + 1])
            for weights, colour, who in (
                (found.follower_weights, FOLLOWER, "follower"), (found.leader_weights, LEADER, "leader"),
            ):  # fmt: skip
                series = weights[:, :, 0, row]
                mean, sd = series.mean(axis=0), series.std(axis=0)
                ax.plot(seconds, mean, color=colour, linewidth=0.7, label=who)
                ax.fill_between(seconds, mean - sd, mean + sd, color=colour, alpha=0.2, linewidth=0)
            ax.set(ylim=(0, 1), xlim=(0, seconds[-1]))
            ax.tick_params(labelbottom=row == 2, labelleft=column == 0)
            if row == 0:
                ax.set_title(rf"$\epsilon$ = {eps:g}", loc="left")
            if column == 0:
                ax.set_ylabel(force)
            if row == 2:
                ax.set_xlabel("time (s)")
            if row == 0 and column == 2:
                ax.legend(fontsize=7, handlelength=1.0)
    return fig


def informed(settings: FlockStudySettings, evidence: Evidence) -> Figure:
    """Fig. S3a-b: all informed, and one in five."""
    return _guided(evidence, {"leaders 100%": "100% informed", "leaders 20%": "20% informed"}, "leaders 0%")


def followers(settings: FlockStudySettings, evidence: Evidence) -> Figure:
    """Fig. S4: followers of three models of the literature."""
    titles = {f"{model}, released": title for model, title in MODELS.items()}
    return _guided(evidence, titles, None)


def _guided(evidence: Evidence, titles: Mapping[str, str], control: str | None) -> Figure:
    fig = blank(7.4, 2.5 * len(titles))
    grid = fig.add_gridspec(len(titles), 3, width_ratios=(1.25, 1.25, 0.9))
    for row, (name, title) in enumerate(titles.items()):
        found = evidence[name]
        ax = fig.add_subplot(grid[row, 0])
        lines = draw_paths(ax, found, title)
        fig.colorbar(lines, ax=ax, shrink=0.9, aspect=25).set_label("time (s)", fontsize=8)
        inner = grid[row, 1].subgridspec(2, 1)
        upper, lower = fig.add_subplot(inner[0]), fig.add_subplot(inner[1])
        alone = evidence[control or f"{name}, no leaders"]
        for panel, metric in ((upper, "polarization"), (lower, "goal_distance")):
            draw_series(panel, alone, metric, COLOURS[-1], "no leaders")
            draw_series(panel, found, metric, COLOURS[0], "led")
        _order_axis(upper, "polarization")
        upper.tick_params(labelbottom=False)
        lower.set(ylim=(0, None), ylabel="to goal (m)", xlabel="time (s)")
        if row == 0:
            lower.legend(fontsize=7, handlelength=1.2)
        simplex = fig.add_subplot(grid[row, 2], projection="ternary")
        draw_simplex(simplex, _weights(found)[:, 0])
        simplex.set_title("weights of a leader", pad=14, fontweight="normal")
    return fig


def weights_of_all(settings: FlockStudySettings, evidence: Evidence) -> Figure:
    """Fig. S1."""
    return all_weights(evidence["polarization"])


def forms(settings: FlockStudySettings, evidence: Evidence) -> Figure:
    """How near followers of the literature come to the goal: released and original form, led and not."""
    fig = blank(7.2, 2.5)
    panels: Any = fig.subplots(1, len(MODELS), sharey=True)
    for ax, (model, title) in zip(panels, MODELS.items(), strict=True):
        for place, form in enumerate(FORMS):
            for shift, alone, colour in ((-0.17, "", FOLLOWER), (0.17, ", no leaders", COLOURS[-1])):
                near = evidence[f"{model}, {form}{alone}"].metrics.goal_distance.min(axis=1)
                spread = np.linspace(-0.06, 0.06, len(near)) if len(near) > 1 else np.zeros(1)
                ax.plot(place + shift + spread, near, "o", color=colour, markersize=3.5, alpha=0.7, markeredgewidth=0)
                middle = float(np.median(near))
                ax.plot([place + shift - 0.12, place + shift + 0.12], [middle, middle], color=colour, linewidth=2.2)
        ax.axhline(ARRIVED, color="0.3", linestyle="--", linewidth=0.8)
        ax.set_xticks(range(len(FORMS)), FORMS)
        ax.set(xlim=(-0.5, len(FORMS) - 0.5), ylim=(0, None))
        ax.set_title(title, loc="left")
    panels[0].set_ylabel("nearest to goal (m)")
    panels[-1].plot([], [], "o", color=FOLLOWER, markersize=4, label="6 leaders")
    panels[-1].plot([], [], "o", color=COLOURS[-1], markersize=4, label="none")
    fig.legend(*panels[-1].get_legend_handles_labels(), loc="outside upper right", ncols=2, fontsize=8)
    return fig


FIGURES: dict[str, Callable[[FlockStudySettings, Evidence], Figure]] = {
    "behaviours": behaviours,
    "weights_of_all": weights_of_all,
    "order": order,
    "informed": informed,
    "temperatures": temperatures,
    "followers": followers,
    "forms": forms,
}


def figures_of(found: Experiment) -> dict[str, Callable[[], Figure]]:
    """What is drawn of a single experiment."""
    drawn: dict[str, Callable[[], Figure]] = {"overview": partial(overview, found)}
    if found.shown.weights.shape[2] > 1:
        drawn["weights"] = partial(all_weights, found)
    return drawn
