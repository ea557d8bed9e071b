"""Figures of the flock study with their captions: paths, weights, order parameters, temperature, followers."""

from collections.abc import Mapping
from typing import Any

import mpltern  # noqa: F401  registers the ternary projection
import numpy as np
from matplotlib.figure import Figure

from policychord.drawing import COLOURS, blank
from policychord.worlds.flock import ARRIVED, FORCES, FlockFlight, draw_band, draw_paths, draw_simplex

from ..study import StudyFigure
from .experiments import TEMPERATURES, Evidence, FlockStudySettings, by_model

ORDER = (0, 1.03)  # limits of an axis for order parameters
LEADER, FOLLOWER = COLOURS[1], COLOURS[0]


def _behaviours(settings: FlockStudySettings, evidence: Evidence) -> Figure:
    """Fig. 3b-d."""
    fig = blank(7.4, 4.4)
    grid = fig.add_gridspec(2, 3, height_ratios=(1.7, 1))
    flights = {
        "No leaders": evidence.leaderless.gated,
        "With the collision term": evidence.milling.ring,
        "10% leaders": evidence.leaders.tenth,
    }
    for column, (title, flight) in enumerate(flights.items()):
        ax = fig.add_subplot(grid[0, column])
        lines = draw_paths(ax, flight, title)
        bar = fig.colorbar(lines, ax=ax, orientation="horizontal", shrink=0.7, aspect=30)
        bar.set_label("time (s)", fontsize=8)
        inner = grid[1, column].subgridspec(1, 2 if flight.settings.leaders else 1)
        who = [("leader", 0), ("follower", flight.settings.leaders)] if flight.settings.leaders else [("one boid", 0)]
        for place, (label, i) in enumerate(who):
            weights = flight.shown.weights[0, :, i]
            draw_simplex(fig, inner[place], weights, label, labels=place == 0, pad=12, fontweight="normal")
    return fig


def _order(settings: FlockStudySettings, evidence: Evidence) -> Figure:
    """Fig. S2."""
    fig = blank(7.4, 4.2)
    panels: Any = fig.subplots(2, 2)
    leaderless = dict(zip(("composed", "fixed w = 1/3"), evidence.leaderless, strict=True))
    milling = dict(zip(("ring, collision term", "ring, no term", "random start"), evidence.milling, strict=False))
    none, tenth, fifth, everyone = evidence.leaders
    leaders = {"10%": tenth, "20%": fifth, "100%": everyone, "none": none}
    for ax, title, metric, curves in (
        (panels[0, 0], "No leaders", "polarization", leaderless),
        (panels[0, 1], "Milling", "milling", milling),
        (panels[1, 0], "Leaders", "polarization", leaders),
        (panels[1, 1], "Leaders", "goal_distance", leaders),
    ):
        colours = (*COLOURS[:3], COLOURS[-1]) if len(curves) > 3 else (COLOURS[0], COLOURS[-1], COLOURS[1])
        for (name, flight), colour in zip(curves.items(), colours, strict=False):
            draw_band(ax, flight, getattr(flight.measured, metric), colour, name)
        far = metric == "goal_distance"
        ax.set(ylim=(0, None) if far else ORDER, ylabel="distance to goal (m)" if far else metric, xlabel="time (s)")
        ax.set_title(title, loc="left")
        where = {"loc": "center right", "bbox_to_anchor": (1.0, 0.62)} if metric == "milling" else {}
        ax.legend(fontsize=7, handlelength=1.2, ncols=2 if len(curves) > 3 else 1, **where)
    return fig


def _temperatures(settings: FlockStudySettings, evidence: Evidence) -> Figure:
    """Fig. S3c."""
    fig = blank(7.4, 4.4)
    grid = fig.add_gridspec(3, 4, width_ratios=(1.6, 1, 1, 1))
    left = grid[:, 0].subgridspec(2, 1)
    top, bottom = fig.add_subplot(left[0]), fig.add_subplot(left[1])
    flights = dict(zip(TEMPERATURES, evidence.temperatures, strict=True))
    colours = (COLOURS[4], COLOURS[2], COLOURS[3])
    for (eps, flight), in_turn, colour in zip(flights.items(), evidence.in_turn.temperatures, colours, strict=True):
        seconds = flight.settings.dt * np.arange(in_turn.measured.polarization.shape[1])
        draw_band(top, flight, flight.measured.polarization, colour, f"{eps:g}")
        draw_band(bottom, flight, flight.measured.goal_distance, colour)
        top.plot(seconds, in_turn.measured.polarization.mean(axis=0), "--", color=colour, linewidth=0.9)
        bottom.plot(seconds, in_turn.measured.goal_distance.mean(axis=0), "--", color=colour, linewidth=0.9)
    top.set(ylim=ORDER, ylabel="polarization")
    top.legend(title=r"$\epsilon$", ncols=3, fontsize=7, loc="lower right")
    top.set_title(f"mean ± sd, {settings.temperature_seeds} seeds", loc="left")
    bottom.set(ylim=(0, None), xlabel="time (s)", ylabel="distance to goal (m)")
    for column, (eps, flight) in enumerate(flights.items()):
        for row, force in enumerate(FORCES):
            ax = fig.add_subplot(grid[row, column + 1])
            followers, leaders = flight.measured.follower_weights, flight.measured.leader_weights
            draw_band(ax, flight, followers[:, :, 0, row], FOLLOWER, "follower", linewidth=0.7)
            draw_band(ax, flight, leaders[:, :, 0, row], LEADER, "leader", linewidth=0.7)
            ax.set(ylim=(0, 1), ylabel=force if column == 0 else "", xlabel="time (s)" if row == 2 else "")
            ax.tick_params(labelbottom=row == 2, labelleft=column == 0)
            if row == 0:
                ax.set_title(rf"$\epsilon$ = {eps:g}", loc="left")
            if row == 0 and column == 2:
                ax.legend(fontsize=7, handlelength=1.0)
    return fig


def _informed(settings: FlockStudySettings, evidence: Evidence) -> Figure:
    none, _, fifth, everyone = evidence.leaders
    return _guided({"100% informed": (everyone, none), "20% informed": (fifth, none)})


def _guided(flights: Mapping[str, tuple[FlockFlight, FlockFlight]]) -> Figure:
    """Fig. S3a-b and S4: a row for each flight with leaders and the same flock without, by title."""
    fig = blank(7.4, 2.7 * len(flights))
    grid = fig.add_gridspec(len(flights), 3, width_ratios=(1.25, 1.25, 0.9))
    for row, (title, (flight, alone)) in enumerate(flights.items()):
        ax = fig.add_subplot(grid[row, 0])
        lines = draw_paths(ax, flight, title)
        fig.colorbar(lines, ax=ax, shrink=0.9, aspect=25).set_label("time (s)", fontsize=8)
        inner = grid[row, 1].subgridspec(2, 1)
        upper, lower = fig.add_subplot(inner[0]), fig.add_subplot(inner[1])
        for flown, colour, label in ((alone, COLOURS[-1], "no leaders"), (flight, COLOURS[0], "led")):
            draw_band(upper, flown, flown.measured.polarization, colour, label)
            draw_band(lower, flown, flown.measured.goal_distance, colour, label)
        upper.set(ylim=ORDER, ylabel="polarization")
        upper.tick_params(labelbottom=False)
        lower.set(ylim=(0, None), ylabel="to goal (m)", xlabel="time (s)")
        if row == 0:
            lower.legend(fontsize=7, handlelength=1.2)
        weights, leaders = flight.shown.weights[0], flight.settings.leaders
        both = weights.shape[1] > leaders  # boids without a goal that weigh forces too
        shown = {"an informed boid": 0, "an uninformed boid": leaders} if both else {"weights of a leader": 0}
        places = grid[row, 2].subgridspec(len(shown), 1)
        for place, (whose, i) in enumerate(shown.items()):
            draw_simplex(fig, places[place], weights[:, i], whose, labels=not place, pad=12, fontweight="normal")
    return fig


def _forms(settings: FlockStudySettings, evidence: Evidence) -> Figure:
    """How near followers of the literature come to the goal: released and original form, led and not."""
    fig = blank(7.2, 2.5)
    models = by_model(evidence)
    panels: Any = fig.subplots(1, len(models), sharey=True)
    for ax, (title, compared) in zip(panels, models.items(), strict=True):
        for place, (led, alone) in enumerate(compared):
            for shift, flight, colour in ((-0.17, led, FOLLOWER), (0.17, alone, COLOURS[-1])):
                near = flight.measured.goal_distance.min(axis=1)
                spread = np.linspace(-0.06, 0.06, len(near)) if len(near) > 1 else np.zeros(1)
                ax.plot(place + shift + spread, near, "o", color=colour, markersize=3.5, alpha=0.7, markeredgewidth=0)
                middle = float(np.median(near))
                ax.plot([place + shift - 0.12, place + shift + 0.12], [middle, middle], color=colour, linewidth=2.2)
        ax.axhline(ARRIVED, color="0.3", linestyle="--", linewidth=0.8)
        ax.set_xticks(range(len(compared)), compared._fields)
        ax.set(xlim=(-0.5, len(compared) - 0.5), ylim=(0, None))
        ax.set_title(title, loc="left")
    panels[0].set_ylabel("nearest to goal (m)")
    panels[-1].plot([], [], "o", color=FOLLOWER, markersize=4, label="6 leaders")
    panels[-1].plot([], [], "o", color=COLOURS[-1], markersize=4, label="none")
    fig.legend(*panels[-1].get_legend_handles_labels(), loc="outside upper right", ncols=2, fontsize=8)
    return fig


def all_weights(flight: FlockFlight) -> Figure:
    """Fig. S1: a simplex for every boid; plain triangles, as forty ternary axes would take ten times as long."""
    weights = flight.shown.weights[0, :, :40]
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
        dots = ax.scatter(x, y, c=np.arange(len(weights)), cmap="viridis", s=1.6, linewidths=0, rasterized=True)
        ax.plot(*(centre + at), "+", color=COLOURS[1], markersize=5, markeredgewidth=1.0)
    for (x, y), name, side, up in zip(
        corners, ("sep", "ali", "coh"), ("left", "center", "center"), ("center", "top", "top"), strict=True
    ):
        ax.text(x + 0.06 * (side == "left"), y - 0.02 * (up == "top"), name, ha=side, va=up, fontsize=6)
    ax.set_aspect("equal")
    ax.margins(0.02)
    ax.set_axis_off()
    bar = fig.colorbar(dots, ax=ax, orientation="horizontal", shrink=0.4, aspect=40, pad=0.02)
    bar.set_ticks([0, len(weights) - 1], labels=["start", f"{flight.settings.dt * len(weights):g} s"])
    more = f" (the first {boids} of {flight.settings.boids})" if boids < flight.settings.boids else ""
    fig.suptitle(f"Weights of all boids over time{more}; + is the balanced mixture", fontsize=9, fontweight="bold")
    return fig


FIGURES: Mapping[str, StudyFigure[FlockStudySettings, Evidence]] = {
    "behaviours": StudyFigure(_behaviours, """\
Paths of one seed, colour is time: crosses mark the start, dots the end (leaders orange), the star is the goal.
Below, the weights of one boid in time on the simplex of the three forces; the orange cross is the balanced mixture.
Compare how far a follower's dots and a leader's keep from the cross.""",
        ("F1", "F2", "F3", "F4", "F5", "F12", "F13", "F14"),
        {"3b": ("F1", "F2", "F14"), "3c": ("F3", "F12"), "3d": ("F4", "F5", "F13")}),
    "weights_of_all": StudyFigure(
        lambda settings, evidence: all_weights(evidence.leaderless.gated), """\
The weights of every boid of the leaderless flock, one triangle each: top is separation, left alignment, right
cohesion, colour is time. Late (yellow) dots that lie off the centre are a bias that stays.""",
        ("F2",), {"S1": ("F2",)}),
    "order": StudyFigure(_order, """\
Mean and one standard deviation over the seeds. **Top left**: the leaderless flock with the gate, and with weights
held at a third. **Top right**: the milling order parameter from the ring with the collision term, without it, and
from a random start. **Bottom**: polarization and distance to the goal by share of leaders; after arrival the
distance rises again, as nothing in the model asks the flock to stop. Grey is the control in every panel.""",
        ("F1", "F3", "F4", "F6", "F7"), {"S2a": ("F1",), "S2b": ("F3",), "S2c": ("F4",)}),
    "informed": StudyFigure(_informed, """\
All boids informed (top) and one in five (bottom): paths of one seed, order and distance over all seeds against the
flock without leaders (grey), and the weights of one informed and, where there is one, one uninformed boid.""",
        ("F6", "F7"), {"S3a": ("F6",), "S3b": ("F7",)}),
    "temperatures": StudyFigure(_temperatures, """\
Left: polarization and distance to the goal at three temperatures, mean and one standard deviation over the seeds;
dashed, the mean of flocks whose boids move one after another. Right: the weights of one leader (orange) and one
follower (blue). The hotter, the flatter the weights; where the leader's curve lies on the follower's, the leaders do
not lead.""", ("F8", "F15"), {"S3c": ("F8", "F15")}),
    "followers": StudyFigure(
        lambda settings, evidence: _guided({name: two.released for name, two in by_model(evidence).items()}), """\
Six leaders of the paper's model among followers of three models of the literature, with the constants of the
released scripts: paths of one seed, order and distance over all seeds against the same followers without leaders
(grey), and the weights of one leader.""", ("F9", "F10", "F11", "F13", "F16"),
        {"S4a": ("F9", "F13", "F16"), "S4b": ("F10", "F13", "F16"), "S4c": ("F11", "F13", "F16")}),
    "forms": StudyFigure(_forms, """\
How near the flock's centre comes to the goal, one dot for each seed and a bar at their median: followers with the
released constants and in the form of the original papers, with six leaders (colour) and with none (grey). Below the
dashed line the flock counts as arrived.""", ("F9", "F10", "F11")),
}  # fmt: skip
