"""Figures of the theory study: the landscape, the decay, circuit beside flow, and where the circuit is stable."""

from itertools import pairwise
from typing import Any

import mpltern  # noqa: F401  registers the ternary projection
import numpy as np
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from ...core.circuit import circuit, time_scales
from ...core.equilibrium import solve
from ...core.flow import flow
from ...core.objective import Problem, energy, problem
from ...core.stability import circuit_stability
from ..drawing import COLOURS, OUTLINE, blank
from .claims import geometric_ladder
from .problems import STUDIES, bandit_problems, random_problems, random_weights
from .settings import TheorySettings


def landscape(settings: TheorySettings) -> Figure:
    """Energy over the simplex of three primitives, with the flow from many starts."""
    one = _illustration()
    best = solve(one)
    fig = blank(4.4, 3.3)
    ax: Any = fig.add_subplot(projection="ternary")
    fine = _simplex_grid(120)
    height = energy(Problem(*(field[None] for field in one)), fine) - float(energy(one, best.weights))
    levels = height.max() * np.linspace(0.0, 1.0, 26) ** 2  # closer together where the bowl is flat
    shading = ax.tricontourf(*fine.T, np.maximum(height, 0.0), levels=levels, cmap="Blues_r")
    shading.set_edgecolor("face")
    # starts on a ring just inside the border, so that no path hides another
    ring = _simplex_grid(8)
    starts = ring[np.isclose(ring.min(-1), 0.0)] * 0.94 + 0.02
    for path in np.asarray(flow(one, t1=settings.horizon, start=starts, save=401).weights):
        ax.plot(*path.T, color="white", linewidth=0.9)
        ax.plot(*path[:1].T, "o", color="white", markersize=2.5)
    ax.plot(*best.weights[:, None], "*", color=COLOURS[1], markersize=15, markeredgecolor="white")
    for axis, label in ((ax.taxis, "$w_1$"), (ax.laxis, "$w_2$"), (ax.raxis, "$w_3$")):
        axis.set_label_text(label)
        axis.set_ticks([0.0, 0.5, 1.0])
    fig.suptitle(r"The flow descends the energy to its optimum ($\epsilon$ = 0.3)", fontsize=9, fontweight="bold")
    fig.colorbar(shading, ax=ax, shrink=0.85, pad=0.14, label="$V - V^*$ (nats)", ticks=np.linspace(0, 2, 9))
    return fig


def decay(settings: TheorySettings) -> Figure:
    """The energy gap along the flow of random problems against the bound exp(-t/tau)."""
    fig = blank(3.6, 2.9)
    ax = fig.add_subplot()
    for k, batch in enumerate(random_problems(settings.seed, settings.problems)):
        path = flow(batch, t1=settings.horizon, start=random_weights(settings.seed + k, batch))
        gap = path.energy - energy(batch, solve(batch, tol=1e-20).weights)[:, None]
        shown = np.where(gap > 1e-13, gap, np.nan) / gap[:, :1]  # curves end where the energies have no digits left
        ax.semilogy(path.times, shown[:25].T, color=COLOURS[0], linewidth=0.5, alpha=0.35)
    ax.plot([], [], color=COLOURS[0], linewidth=0.8, label="75 random problems")
    ax.semilogy(path.times, np.exp(-path.times), color=COLOURS[1], linewidth=2, label=r"bound $e^{-t/\tau}$")
    ax.set(
        xlim=(0, settings.horizon), ylim=(1e-12, 1.5), xlabel=r"time ($\tau$)", ylabel="energy gap, relative to start"
    )
    ax.set_title("The gap never exceeds its bound", loc="left")
    ax.legend(loc="upper right", fontsize=8, handlelength=1.2)
    return fig


def circuit_and_flow(settings: TheorySettings) -> Figure:
    """Weights in time, circuit over flow, for a problem of each study."""
    fig = blank(7.2, 2.5)
    for k, (name, draw) in enumerate(STUDIES.items()):
        ax = fig.add_subplot(1, 3, k + 1)
        batch = draw(settings.seed, settings.circuits)
        shown = _telling(batch)
        ideal, neural = flow(batch, t1=6.0), circuit(batch, t1=6.0)  # the whole batch: already compiled for the claims
        ends = _apart(neural.layers.w[shown, -1], 0.07)
        for a, colour in zip(range(ends.size), COLOURS, strict=False):
            ax.plot(ideal.times, ideal.weights[shown, :, a], color=colour, linewidth=3, alpha=0.3)
            ax.plot(neural.times, neural.layers.w[shown, :, a], color=colour, linestyle="--")
            ax.text(6.1, ends[a], f"$w_{a + 1}$", color=colour, va="center")
        ax.set_title(rf"{name}, $\epsilon$ = {float(batch.eps[shown]):g}", loc="left")
        ax.set(xlabel=r"time ($\tau$)", xlim=(0, 6), ylim=(-0.02, 1.02))
        if k == 0:
            ax.set_ylabel("weight")
            ax.plot([], [], color="0.4", linewidth=3, alpha=0.4, label="flow")
            ax.plot([], [], color="0.4", linestyle="--", label="circuit")
            ax.legend(loc="upper right")
    return fig


def stability_map(settings: TheorySettings) -> Figure:
    """The circuit's growth rate over temperature and ratio of time scales: as stated, and as corrected."""
    eps, ratio = np.logspace(-3, 1, 81), np.logspace(0.3, 3, 73)
    base = bandit_problems(settings.seed, 8)
    fig = blank(7.4, 3.0)
    panels: Any = fig.subplots(1, 2, sharey=True)
    titles = (
        r"As stated: $\tau_g, \tilde\tau_g, \tau_s, \tau$ in one ratio",
        r"Corrected: $\tau_s, \tilde\tau_g/\tau_s \propto \min(\epsilon, 1)$",
    )
    for ax, title, corrected in zip(panels, titles, (False, True), strict=True):
        growth = np.stack([_worst_growth(base, e, ratio, corrected) for e in eps], axis=-1)
        shading = ax.pcolormesh(
            eps, ratio, growth, norm=TwoSlopeNorm(0.0, -1.0, 2.0), cmap="RdBu_r", shading="gouraud", rasterized=True
        )
        if (growth > 0).any():
            ax.contour(eps, ratio, growth, levels=[0.0], colors="black", linewidths=1.2)
            ax.text(1.25e-3, 30, "oscillates", color="white", fontweight="bold", fontsize=8)
        ax.text(0.7, 30, "settles", color="white", fontweight="bold", fontsize=8)
        ax.plot(0.01, 10, "o", color="black", markersize=5, markeredgecolor="white")
        ax.annotate("bandit, ratio 10", (0.01, 10), (6, -12), textcoords="offset points", path_effects=[OUTLINE])
        ax.set(xscale="log", yscale="log", xlabel=r"temperature $\epsilon$")
        ax.set_title(title, loc="left")
    panels[0].set_ylabel("ratio of successive time scales")
    fig.colorbar(shading, ax=panels, label="growth rate, worst of 8 problems ($1/\\tau$)", extend="max")
    return fig


FIGURES = {
    "landscape": landscape,
    "decay": decay,
    "circuit_and_flow": circuit_and_flow,
    "stability_map": stability_map,
}


def _worst_growth(base: Problem, eps: float, ratio: np.ndarray, corrected: bool) -> np.ndarray:
    """For each ratio, the largest growth rate over a few problems at one temperature."""
    batch = Problem(*(field[:, None] for field in base._replace(eps=np.full_like(base.eps, eps))))
    scales = time_scales(np.full_like(ratio, eps), 1.0, ratio) if corrected else geometric_ladder(ratio)
    return np.asarray(circuit_stability(batch, scales).growth).max(axis=0)


def _illustration() -> Problem:
    """Three overlapping primitives on a line of actions, none of which fits the cost alone."""
    actions = np.linspace(-1.0, 1.0, 61)
    log_pi = -((actions[:, None] - np.array([-0.65, 0.1, 0.6])) ** 2) / (2 * 0.3**2)
    pi = np.exp(log_pi)
    return problem(pi=pi / pi.sum(0), action_cost=4.0 * (np.abs(actions) - 0.35) ** 2 + 0.8 * actions, eps=0.3)


def _telling(batch: Problem) -> int:
    """A problem worth showing: its optimum is away from the start, but no primitive has it all."""
    w = np.asarray(solve(batch).weights)
    telling = np.sort(w, axis=-1)[:, -2] * np.abs(w - 1.0 / w.shape[-1]).max(-1)
    return int(np.argmax(telling))


def _apart(heights, least: float) -> np.ndarray:
    """Heights for labels, moved apart where they would overlap."""
    order = np.argsort(heights)
    placed = np.array(heights)
    for lower, upper in pairwise(order):
        placed[upper] = max(placed[upper], placed[lower] + least)
    return placed


def _simplex_grid(steps: int) -> np.ndarray:
    i, j = np.meshgrid(np.arange(steps + 1), np.arange(steps + 1), indexing="ij")
    inside = i + j <= steps
    return np.stack([i[inside], j[inside], steps - i[inside] - j[inside]], -1) / steps
