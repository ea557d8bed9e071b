"""Figures of the theory study: the landscape, the bounds, the errors, circuit beside flow, and where it settles."""

from itertools import pairwise
from typing import Any

import mpltern  # noqa: F401  registers the ternary projection
import numpy as np
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from scipy.interpolate import CubicHermiteSpline

from ...core.objective import Problem, energy, gate
from ..drawing import COLOURS, OUTLINE, blank
from ..study import Evidence
from .circuits import CIRCUITS, STATED
from .errors import errors
from .paths import FLOWS, Illustration, distances, everything, gaps, simplex_grid, within_horizon
from .settings import TheorySettings

DRAWN = 25  # paths of each shape


def landscape(settings: TheorySettings, evidence: Evidence) -> Figure:
    """Energy over the simplex of three primitives, with the flow from many starts."""
    (shown,) = (evidence[step].shown for step in FLOWS if evidence[step].shown is not None)
    one = Problem(*(field[None] for field in shown.problem))
    fig = blank(4.4, 3.3)
    ax: Any = fig.add_subplot(projection="ternary")
    fine = simplex_grid(100)
    height = energy(one, fine) - float(energy(shown.problem, shown.optimum))
    levels = height.max() * np.linspace(0.0, 1.0, 26) ** 2  # closer together where the bowl is flat
    shading = ax.tricontourf(*fine.T, np.maximum(height, 0.0), levels=levels, cmap="Blues_r")
    shading.set_edgecolor("face")
    for path in _smooth(shown):
        ax.plot(*path.T, color="white", linewidth=0.9)
        ax.plot(*path[:1].T, "o", color="white", markersize=2.5)
    ax.plot(*shown.optimum[:, None], "*", color=COLOURS[1], markersize=15, markeredgecolor="white")
    for axis, label in ((ax.taxis, "$w_1$"), (ax.laxis, "$w_2$"), (ax.raxis, "$w_3$")):
        axis.set_label_text(label)
        axis.set_ticks([0.0, 0.5, 1.0])
    title = rf"The flow on the energy landscape ($\epsilon$ = {float(shown.problem.eps):g})"
    fig.suptitle(title, fontsize=9, fontweight="bold")
    fig.colorbar(shading, ax=ax, shrink=0.85, pad=0.14, label="$V - V^*$ (nats)", ticks=np.linspace(0, 2, 9))
    return fig


def _smooth(shown: Illustration) -> np.ndarray:
    """Paths with as many points as the eye needs: the flow itself gives the slopes between those that were kept."""
    batch = Problem(*(field[None, None] for field in shown.problem))
    early = shown.times <= 12.0
    kept, times = shown.weights[:, early], shown.times[early]
    curve = CubicHermiteSpline(times, kept, gate(batch, kept) - kept, axis=1)
    return curve(np.concatenate([np.linspace(0, 2, 81), np.linspace(2, 12, 41)[1:]]))


def bounds(settings: TheorySettings, evidence: Evidence) -> Figure:
    """Energy gap and distance along the flow against their bounds, and the certificate against what it bounds."""
    fig = blank(7.4, 2.7)
    left, middle, right = fig.subplots(1, 3)
    drawn = 0
    for paths in everything(evidence):
        now = within_horizon(settings, paths)
        times, gap = paths.times[now], gaps(paths)[:, now]
        # curves end where the energies have no digits left
        shown = np.where(gap > 1e-13, gap, np.nan) / gap[:, :1]
        left.semilogy(times, shown[:DRAWN].T, color=COLOURS[0], linewidth=0.5, alpha=0.35)
        allowed = np.sqrt(2.0 / paths.problems.eps * gap[:, 0])[:, None]
        distance = distances(paths)[:, now]
        shown = np.where(distance > 1e-9, distance, np.nan) / allowed
        middle.semilogy(times, shown[:DRAWN].T, color=COLOURS[2], linewidth=0.5, alpha=0.35)
        drawn += len(gap[:DRAWN])
    left.semilogy(times, np.exp(-times), color=COLOURS[1], linewidth=2)
    middle.semilogy(times, np.exp(-times / 2), color=COLOURS[1], linewidth=2)
    for ax, label, rate, at in (
        (left, "energy gap / gap at start", r"$e^{-t/\tau}$", 9.0),
        (middle, "distance / bound at start", r"$e^{-t/2\tau}$", 9.0),
    ):
        ax.set(
            xlim=(0, settings.horizon), ylim=(1e-11 if ax is left else 1e-8, 2.0), xlabel=r"time ($\tau$)", ylabel=label
        )
        power = 1.0 if ax is left else 0.5
        ax.annotate(
            f"bound {rate}", (at, np.exp(-at * power)), (4, 6), textcoords="offset points", color=COLOURS[1], fontsize=8
        )
    left.set_title(f"a  energy, {drawn} problems", loc="left")
    middle.set_title("b  weights", loc="left")
    found = evidence["certificates"]
    order = (found.suboptimality > 1e-13) & (found.above > 1e-13)
    right.loglog(found.above[order], found.suboptimality[order], ".", color=COLOURS[0], markersize=2, label="$V - V^*$")
    right.loglog(
        found.above[order], np.maximum(found.below[order], 1e-16), ".", color=COLOURS[4], markersize=2,
        label=r"$\epsilon\,$KL$(w, w^*)$",
    )  # fmt: skip
    ends = np.array([found.above[order].min(), found.above[order].max()])
    right.loglog(ends, ends, color=COLOURS[1], linewidth=1.2)
    right.set(xlabel=r"$\epsilon\,$KL$(w, S(w))$ (nats)", ylabel="nats")
    right.legend(fontsize=7, markerscale=4, handletextpad=0.2, loc="lower right")
    right.set_title("c  certificate", loc="left")
    return fig


def agreement(settings: TheorySettings, evidence: Evidence) -> Figure:
    """The largest error of every statement that is judged by one, beside what its rule allows."""
    rows = errors(settings, evidence)
    fig = blank(7.2, 0.27 * len(rows) + 0.9)
    ax = fig.add_subplot()
    floor = 1e-18
    for y, row in enumerate(rows):
        inside = row.error <= row.allowed
        ax.plot([floor, row.allowed], [y, y], color="0.88", linewidth=5, solid_capstyle="butt", zorder=1)
        ax.plot(row.allowed, y, "|", color="0.35", markersize=9, markeredgewidth=1.6, zorder=2)
        if row.error <= floor:
            ax.plot(floor * 1.6, y, "<", color=COLOURS[0], markersize=5, zorder=3)
        else:
            ax.plot(row.error, y, "o", color=COLOURS[0 if inside else 1], markersize=5, zorder=3)
    ax.set_yticks(range(len(rows)), [f"{row.id}  {row.what}" for row in rows], fontsize=8)
    ax.set(xscale="log", xlim=(floor, 1e-1), ylim=(len(rows) - 0.5, -0.5), xlabel="largest error or violation")
    ax.tick_params(axis="y", length=0)
    ax.plot([], [], "o", color=COLOURS[0], markersize=5, label="measured")
    ax.plot([], [], "<", color=COLOURS[0], markersize=5, label="no violation at all")
    ax.plot([], [], "|", color="0.35", markersize=9, markeredgewidth=1.6, label="allowed by the rule")
    ax.legend(fontsize=7, loc="upper right", ncols=3, bbox_to_anchor=(1.0, 1.12), handletextpad=0.2)
    return fig


def circuit_and_flow(settings: TheorySettings, evidence: Evidence) -> Figure:
    """Weights in time, circuit over flow, for a problem of each study."""
    fig = blank(7.2, 2.5)
    settled = {name: found for step in CIRCUITS for name, found in evidence[step].items()}
    for k, (name, found) in enumerate(settled.items()):
        ax = fig.add_subplot(1, len(settled), k + 1)
        side = found.shown
        ends = _apart(side.circuit[-1], 0.07)
        for a, colour in zip(range(ends.size), COLOURS, strict=False):
            ax.plot(side.times, side.flow[:, a], color=colour, linewidth=3, alpha=0.3)
            ax.plot(side.times, side.circuit[:, a], color=colour, linestyle="--")
            ax.text(side.times[-1] * 1.02, ends[a], f"$w_{a + 1}$", color=colour, va="center")
        ax.set_title(rf"{name}, $\epsilon$ = {side.eps:g}", loc="left")
        ax.set(xlabel=r"time ($\tau$)", xlim=(0, side.times[-1]), ylim=(-0.02, 1.02))
        if k == 0:
            ax.set_ylabel("weight")
            ax.plot([], [], color="0.4", linewidth=3, alpha=0.4, label="flow")
            ax.plot([], [], color="0.4", linestyle="--", label="circuit")
            ax.legend(loc="upper right")
    return fig


def stability_map(settings: TheorySettings, evidence: Evidence) -> Figure:
    """The circuit's growth rate over temperature and ratio of time scales: as stated, and as corrected."""
    ladders = evidence["ladders"]
    fig = blank(7.4, 3.0)
    panels: Any = fig.subplots(1, 2, sharey=True)
    titles = (
        r"As stated: $\tau_g, \tilde\tau_g, \tau_s, \tau$ in one ratio",
        r"Corrected: $\tau_s, \tilde\tau_g/\tau_s \propto \min(\epsilon, 1)$",
    )
    eps, ratio = ladders.map_eps, ladders.map_ratio
    for ax, title, growth in zip(panels, titles, (ladders.map_stated, ladders.map_corrected), strict=True):
        shading = ax.pcolormesh(
            eps, ratio, growth, norm=TwoSlopeNorm(0.0, -1.0, 2.0), cmap="RdBu_r", shading="gouraud", rasterized=True
        )
        if (growth > 0).any():
            ax.contour(eps, ratio, growth, levels=[0.0], colors="black", linewidths=1.2)
            ax.text(1.25e-3, 30, "oscillates", color="white", fontweight="bold", fontsize=8)
        ax.text(0.7, 30, "settles", color="white", fontweight="bold", fontsize=8)
        for name, at, offset in (("bandit", 0.01, (-10, -13)), ("quadrotor", 0.05, (-8, 7)), ("flock", 0.5, (-8, -13))):
            ax.plot(at, STATED, "o", color="black", markersize=5, markeredgecolor="white")
            ax.annotate(name, (at, STATED), offset, textcoords="offset points", path_effects=[OUTLINE], fontsize=8)
        ax.set(xscale="log", yscale="log", xlabel=r"temperature $\epsilon$")
        ax.set_title(title, loc="left")
    panels[0].set_ylabel("ratio of successive time scales")
    fig.colorbar(shading, ax=panels, label="growth rate, worst of 8 problems ($1/\\tau$)", extend="max")
    return fig


def oscillation(settings: TheorySettings, evidence: Evidence) -> Figure:
    """The weights of the worst problem in time: time scales as stated, and as corrected."""
    shown = evidence["oscillation"]
    fig = blank(7.2, 2.4)
    top = 1.15 * max(shown.stated.max(), shown.corrected.max(), shown.optimum.max())
    panels: Any = fig.subplots(1, 2, sharey=True)
    titles = (f"As stated, ratio {STATED:g}", f"Corrected, ratio {STATED:g}")
    for ax, title, weights in zip(panels, titles, (shown.stated, shown.corrected), strict=True):
        for a, colour in zip(range(weights.shape[-1]), COLOURS, strict=False):
            ax.axhline(shown.optimum[a], color=colour, linewidth=3, alpha=0.25)
            ax.plot(shown.times, weights[:, a], color=colour, linewidth=0.9)
        # two weights may rest at the same height
        for a, at in enumerate(_apart(shown.optimum, 0.13 * top)):
            ax.text(40.6, at, f"$w_{a + 1}^*$", color=COLOURS[a], va="center")
        ax.set(xlabel=r"time ($\tau$)", xlim=(0, 40), ylim=(0, top))
        ax.set_title(title, loc="left")
    panels[0].set_ylabel("weight")
    return fig


FIGURES = {
    "landscape": landscape,
    "bounds": bounds,
    "agreement": agreement,
    "circuit_and_flow": circuit_and_flow,
    "stability_map": stability_map,
    "oscillation": oscillation,
}


def _apart(heights, least: float) -> np.ndarray:
    """Heights for labels, moved apart where they would overlap."""
    order = np.argsort(heights)
    placed = np.array(heights)
    for lower, upper in pairwise(order):
        placed[upper] = max(placed[upper], placed[lower] + least)
    return placed
