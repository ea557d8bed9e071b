"""Figures of the theory study: landscape, bounds, errors, the circuit's wiring, circuit and flow, where it settles."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import mpltern  # noqa: F401  registers the ternary projection
import numpy as np
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle
from scipy.interpolate import CubicHermiteSpline

from policychord import energy, gate
from policychord.drawing import COLOURS, OUTLINE, blank

from ..claim import judge_claim
from ..study import StudyFigure
from .circuits import STATED
from .claims import CLAIMS
from .experiments import Evidence
from .flows import Paths, bounded_distances, bounded_gaps, simplex_grid
from .problems import TheorySettings, pick

DRAWN = 25  # paths of each shape


def _landscape(settings: TheorySettings, evidence: Evidence) -> Figure:
    """Energy over the simplex of three primitives: as a surface with two paths on it, and from above with many."""
    ring = evidence.ring
    eps = float(np.asarray(ring.problems.eps)[0])
    fig = blank(7.4, 3.4)
    fine = simplex_grid(100)
    height = np.maximum(energy(pick(ring.problems, [0]), fine) - ring.least[0], 0.0)
    paths = _smooth(ring)
    _surface(fig.add_subplot(1, 2, 1, projection="3d"), ring, fine, height, paths)
    ax: Any = fig.add_subplot(1, 2, 2, projection="ternary")
    levels = height.max() * np.linspace(0.0, 1.0, 26) ** 2  # closer together where the bowl is flat
    shading = ax.tricontourf(*fine.T, height, levels=levels, cmap="Blues_r")
    shading.set_edgecolor("face")
    for path in paths:
        ax.plot(*path.T, color="white", linewidth=0.9)
        ax.plot(*path[:1].T, "o", color="white", markersize=2.5)
    ax.plot(*ring.optimum[0][:, None], "*", color=COLOURS[1], markersize=15, markeredgecolor="white")
    for axis, label in ((ax.taxis, "$w_1$"), (ax.laxis, "$w_2$"), (ax.raxis, "$w_3$")):
        axis.set_label_text(label)
        axis.set_ticks([0.0, 0.5, 1.0])
    fig.suptitle(rf"The flow on the energy landscape ($\epsilon$ = {eps:g})", fontsize=9, fontweight="bold")
    fig.colorbar(shading, ax=ax, shrink=0.85, pad=0.16, label="$V - V^*$ (nats)", ticks=np.linspace(0, 2, 9))
    return fig


def _surface(ax: Any, ring: Paths, fine: np.ndarray, height: np.ndarray, paths: np.ndarray) -> None:
    """The energy as a surface above the simplex, and the flow running down on it to the diamond."""
    x, y = _flat(fine)
    surface = ax.plot_trisurf(x, y, height, cmap="Blues_r", linewidth=0.4, rasterized=True)
    surface.set_edgecolor("face")  # else the page shows between the triangles
    shown = pick(ring.problems, [0])
    for path in paths[:: max(1, len(paths) // 6)]:
        along = energy(shown, path) - ring.least[0]
        ax.plot(*_flat(path), along + 0.01 * height.max(), color="0.15", linewidth=1.1, zorder=10)
    at = _flat(ring.optimum[0])
    ax.plot(*([value] for value in at), [0.02 * height.max()], "D", color=COLOURS[1], markersize=6, zorder=11)
    tops = energy(shown, np.eye(3)) - ring.least[0]
    for k, corner in enumerate(np.eye(3)):
        ax.text(*_flat(corner), tops[k] + 0.07 * height.max(), f"$w_{k + 1}$ = 1", fontsize=7, ha="center", zorder=12)
    ax.set(xticks=[], yticks=[], zlabel="$V - V^*$ (nats)")
    ax.view_init(elev=34, azim=-72)
    ax.set_box_aspect((1.0, 0.87, 0.8), zoom=1.15)


def _flat(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The plane of the simplex: corners at (0, 0), (1, 0) and (1/2, .87)."""
    return weights[..., 1] + 0.5 * weights[..., 2], np.sqrt(0.75) * weights[..., 2]


def _smooth(ring: Paths) -> np.ndarray:
    """Paths with enough points for the eye: the flow itself gives the slopes between the stored ones."""
    early = ring.times <= 12.0
    stored, times = ring.weights[:, early], ring.times[early]
    curve = CubicHermiteSpline(times, stored, gate(pick(ring.problems, np.s_[:, None]), stored) - stored, axis=1)
    return curve(np.concatenate([np.linspace(0, 2, 81), np.linspace(2, 12, 41)[1:]]))


def _bounds(settings: TheorySettings, evidence: Evidence) -> Figure:
    """Energy gap and distance along the flow against their bounds, and the certificate against what it bounds."""
    fig = blank(7.4, 2.7)
    left, middle, right = fig.subplots(1, 3)
    for paths in evidence.paths:
        # curves end where the numbers have no digits left
        for ax, (times, series, bound), least, colour in (
            (left, bounded_gaps(settings, paths), 1e-13, COLOURS[0]),
            (middle, bounded_distances(settings, paths), 1e-9, COLOURS[2]),
        ):
            shown = np.where(series > least, series, np.nan) / bound[:, :1]
            ax.semilogy(times, shown[:DRAWN].T, color=colour, linewidth=0.5, alpha=0.35)
    for ax, label, rate, power, floor in (
        (left, "energy gap / gap at start", r"$e^{-t/\tau}$", 1.0, 1e-11),
        (middle, "distance / bound at start", r"$e^{-t/2\tau}$", 0.5, 1e-8),
    ):
        ax.semilogy(times, np.exp(-power * times), color=COLOURS[1], linewidth=2)
        ax.set(xlim=(0, settings.horizon), ylim=(floor, 2.0), xlabel=r"time ($\tau$)", ylabel=label)
        at = (9.0, np.exp(-9.0 * power))
        ax.annotate(f"bound {rate}", at, (4, 6), textcoords="offset points", color=COLOURS[1], fontsize=8)
    drawn = sum(len(paths.weights[:DRAWN]) for paths in evidence.paths)
    left.set_title(f"a  energy, {drawn} problems", loc="left")
    middle.set_title("b  weights", loc="left")
    certificates = evidence.certificates
    order = (certificates.suboptimality > 1e-13) & (certificates.above > 1e-13)
    right.loglog(
        certificates.above[order],
        certificates.suboptimality[order],
        ".",
        color=COLOURS[0],
        markersize=2,
        label="$V - V^*$",
    )
    right.loglog(
        certificates.above[order], np.maximum(certificates.below[order], 1e-16), ".", color=COLOURS[4], markersize=2,
        label=r"$\epsilon\,$KL$(w, w^*)$",
    )  # fmt: skip
    ends = np.array([certificates.above[order].min(), certificates.above[order].max()])
    right.loglog(ends, ends, color=COLOURS[1], linewidth=1.2)
    right.set(xlabel=r"$\epsilon\,$KL$(w, S(w))$ (nats)", ylabel="nats")
    right.legend(fontsize=7, markerscale=4, handletextpad=0.2, loc="lower right")
    right.set_title("c  certificate", loc="left")
    return fig


# how the figure calls the claims that are judged by an error
LABELS = {
    "T1": "weights sum to one", "T2": "end of the flow against an optimiser", "T3": "prox against softmax",
    "T4": "dissipation identity", "T5": "energy above its bound", "T6": "distance above its bound",
    "T7": "gap outside its certificate", "T8": "gradient against autodiff", "T9": "limits of the temperature",
    "T10": "prior-weighted gate", "T11": "end of the circuit against the optimum",
    "T13": "any convex F: the worst of T1 to T7", "T14": "flow from any start, after 40 tau",
    "T15": "cold gate against the best vertex", "T16": "a prior as an input of the circuit",
    "T17": "joint divergence against F + ln Z", "T19": "units of the circuit, the other held",
    "T21": "cold flow against Frank-Wolfe", "T22": "what vanishes at the equilibrium",
}  # fmt: skip


class _Error(NamedTuple):
    """The worst number of a claim against the limit of its rule."""

    id: str
    error: float  # negative where a bound was never reached
    allowed: float


def _errors(settings: TheorySettings, evidence: Evidence) -> list[_Error]:
    """For every claim with such conditions, the error that comes nearest to its limit."""
    rows = []
    for claim in CLAIMS:
        measured = judge_claim(claim, settings, evidence).measured
        # an error has a small positive limit; a count may be 0, a ratio 1
        small = [
            c for part in claim.rule.parts for c in part.conditions if c.relation in ("<", "<=") and 0 < c.limit < 1
        ]
        errors = [_Error(claim.id, float(measured[c.quantity].value), c.limit) for c in small]
        rows += sorted(errors, key=lambda row: row.error / row.allowed)[-1:]
    return rows


def _agreement(settings: TheorySettings, evidence: Evidence) -> Figure:
    """The largest error of every statement that is judged by one, and what its rule allows."""
    rows = _errors(settings, evidence)
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
    ax.set_yticks(range(len(rows)), [f"{row.id}  {LABELS[row.id]}" for row in rows], fontsize=8)
    largest = max(1e-1, *(3 * row.error for row in rows))  # what a rule does not allow must not lie beyond the axis
    ax.set(xscale="log", xlim=(floor, largest), ylim=(len(rows) - 0.5, -0.5), xlabel="largest error or violation")
    ax.tick_params(axis="y", length=0)
    ax.plot([], [], "o", color=COLOURS[0], markersize=5, label="measured")
    ax.plot([], [], "<", color=COLOURS[0], markersize=5, label="no violation at all")
    ax.plot([], [], "|", color="0.35", markersize=9, markeredgewidth=1.6, label="allowed by the rule")
    ax.legend(fontsize=7, loc="upper right", ncols=3, bbox_to_anchor=(1.0, 1.12), handletextpad=0.2)
    return fig


# layer, place, what it holds at rest; fast unit first
LAYERS = {
    "w": (0.0, "weights"), "a": (1.0, "mixture"), "b": (2.0, "its logarithm"), "y": (3.0, r"$-\nabla F/\epsilon$"),
    "m": (4.0, "normaliser"), "r": (5.0, "ln of the gate"),
}  # fmt: skip
FAST = ("a", "b", "y")


def _wiring(settings: TheorySettings, evidence: Evidence) -> Figure:
    """The circuit: its layers, which excites (arrow) or inhibits (bar) which, and their time constants."""
    fig = blank(7.4, 3.0)
    ax = fig.add_subplot()
    ax.set(xlim=(-0.6, 7.1), ylim=(-1.45, 1.6))
    ax.axis("off")
    where = {name: np.array([x, 0.0]) for name, (x, _) in LAYERS.items()} | {"m": np.array([4.0, 0.75])}
    where |= {"s": np.array([3.0, 1.3]), "out": np.array([6.4, 0.0]), "r": np.array([5.0, 0.0])}
    for low, high, text, colour in (
        (0.6, 3.45, r"fast unit: $\tau_g$ ($a$, $b$), $\tilde\tau_g/\epsilon$ ($y$)", COLOURS[0]),
        (3.55, 6.85, r"slow unit: $\tau_s$ ($m$, $r$), $\tau$ ($w$)", COLOURS[2]),
    ):
        ax.add_patch(
            Rectangle((low, -0.75), high - low, 1.85 if high > 4 else 1.25, color=colour, alpha=0.09, linewidth=0)
        )
        ax.text((low + high) / 2, -0.98, text, ha="center", fontsize=8, color=colour)
    at = where | {"w": where["out"]}
    for name in ("a", "b", "y", "m", "r", "w"):
        _layer(ax, at[name], name, LAYERS[name][1], COLOURS[0] if name in FAST else COLOURS[2])
    for start, end, sign, label, broad in (
        ("a", "b", "+", r"$\ln$", False), ("b", "y", "-", r"$\Pi^\top$", True), ("y", "m", "+", r"$\exp$", False),
        ("y", "r", "+", "", False), ("m", "r", "-", r"$\ln$", False), ("r", "w", "+", r"$\exp$", False),
    ):  # fmt: skip
        _synapse(ax, at[start], at[end], sign, label, broad)
    ax.text(where["s"][0], where["s"][1] + 0.12, "input $s$: cost of each action", ha="center", fontsize=8)
    _synapse(ax, where["s"] + [0.0, 0.1], at["y"] + [0.0, 0.28], "-", r"$\Pi^\top$", True)
    # the weights go back to the first layer, below everything
    back = [6.4, 6.4, 0.0, 0.0, 0.1], [-0.68, -1.25, -1.25, 0.0, 0.0]
    ax.plot(*back, color="0.25", linewidth=2.4, solid_joinstyle="miter", solid_capstyle="butt")
    _synapse(ax, np.array([-0.12, 0.0]), at["a"], "+", r"$\Pi$", True)
    return fig


def _layer(ax: Any, at: np.ndarray, name: str, rest: str, colour: str) -> None:
    """Three neurons in a column for a layer of many, one for m."""
    for dy in (0.0,) if name == "m" else (-0.28, 0.0, 0.28):
        ax.add_patch(Circle((at[0], at[1] + dy), 0.115, facecolor=colour, edgecolor="white", linewidth=1.0, zorder=4))
    ax.text(*at, f"${name}$", color="white", ha="center", va="center", fontsize=8, fontweight="bold", zorder=5)
    beside = (at[0], at[1] + (0.18 if name == "m" else -0.58))
    ax.text(*beside, rest, ha="center", fontsize=7, color="0.25")


def _synapse(ax: Any, start: np.ndarray, end: np.ndarray, sign: str, label: str, broad: bool) -> None:
    """A line from layer to layer: an arrow excites, a bar inhibits; those of the primitives are broad."""
    along = (end - start) / np.linalg.norm(end - start)
    style = "-|>,head_width=0.22,head_length=0.4" if sign == "+" else "|-|,widthA=0,widthB=0.3"
    ax.add_patch(FancyArrowPatch(
        start + 0.17 * along, end - 0.19 * along, arrowstyle=style, color="0.25", linewidth=2.4 if broad else 1.1,
        mutation_scale=14, shrinkA=0, shrinkB=0, zorder=3,
    ))  # fmt: skip
    if label:
        beside = np.array([-along[1], along[0]])
        away = (0.13 + 0.07 * abs(along[1])) * beside * (1 if beside[1] >= 0 else -1)  # letters are wider than tall
        ax.text(*(start + end) / 2 + away, label, ha="center", va="center", fontsize=8)


def _circuit_and_flow(settings: TheorySettings, evidence: Evidence) -> Figure:
    """Weights in time, circuit over flow, for a problem of each study."""
    fig = blank(7.4, 4.6)
    for k, (name, side) in enumerate(evidence.circuits.items()):
        ax = fig.add_subplot(2, 3, k + 1)
        ends = _apart(side.circuit[-1], 0.07)
        for a, colour in zip(range(ends.size), COLOURS, strict=False):
            ax.plot(side.times, side.flow[:, a], color=colour, linewidth=3, alpha=0.3)
            ax.plot(side.times, side.circuit[:, a], color=colour, linestyle="--")
            ax.text(side.times[-1] * 1.02, ends[a], f"$w_{a + 1}$", color=colour, va="center")
        ax.set_title(rf"{name}, $\epsilon$ = {side.eps:g}", loc="left")
        ax.set(xlabel=r"time ($\tau$)", xlim=(0, side.times[-1]), ylim=(-0.02, 1.02))
        if k % 3 == 0:
            ax.set_ylabel("weight")
        if k == 0:
            ax.plot([], [], color="0.4", linewidth=3, alpha=0.4, label="flow")
            ax.plot([], [], color="0.4", linestyle="--", label="circuit")
            ax.legend(loc="upper right")
    return fig


def _stability_map(settings: TheorySettings, evidence: Evidence) -> Figure:
    """The circuit's growth rate over temperature and ratio of time scales: as stated, and as corrected."""
    ladders = evidence.ladders
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
        studies = {name.partition(",")[0]: temperature for name, temperature in ladders.eps.items()}
        for (name, temperature), above in zip(studies.items(), (False, False, True), strict=False):
            ax.plot(temperature, STATED, "o", color="black", markersize=5, markeredgecolor="white")
            ax.annotate(
                name, (temperature, STATED), (-9, 7 if above else -13), textcoords="offset points",
                path_effects=[OUTLINE], fontsize=8,
            )  # fmt: skip
        ax.set(xscale="log", yscale="log", xlabel=r"temperature $\epsilon$")
        ax.set_title(title, loc="left")
    panels[0].set_ylabel("ratio of successive time scales")
    fig.colorbar(shading, ax=panels, label="growth rate, worst of 8 problems ($1/\\tau$)", extend="max")
    return fig


def _oscillation(settings: TheorySettings, evidence: Evidence) -> Figure:
    """The weights of the worst problem in time: time scales as stated, and as corrected."""
    shown = evidence.oscillation
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


def _apart(heights: np.ndarray, least: float) -> np.ndarray:
    """Heights for labels, moved apart where they would overlap."""
    order = np.argsort(heights)
    placed = np.array(heights)
    for lower, upper in pairwise(order):
        placed[upper] = max(placed[upper], placed[lower] + least)
    return placed


FIGURES: Mapping[str, StudyFigure[TheorySettings, Evidence]] = {
    "landscape": StudyFigure(_landscape, """\
The energy of one problem with three primitives, over all mixtures of them. Left, as a surface: along
every path of the flow it only falls, to the diamond. Right, from above: a corner is one primitive alone, dark is
low. White lines are the flow from a ring of starts (dots); the star is the optimum found by the solver. Look at where
the lines end: all meet at the star, and none leaves the triangle.""",
        ("T1", "T2", "T14"), {"2b": ("T1", "T2", "T5", "T14")}),
    "bounds": StudyFigure(_bounds, """\
**a** The energy gap of random problems along the flow, divided by the gap at the start, against the
bound of the theorem (orange). **b** The distance of the weights from the optimum, divided by the bound at the
start. A curve above orange would refute the theorem; curves that run parallel to it show where the bound is tight,
steeper ones where the flow is faster than guaranteed. **c** For weights far from and near the optimum, how far
their energy is from the least (blue) against the certificate that one evaluation of the gate gives: below the
diagonal, the certificate holds. Yellow is the bound from the other side.""", ("T5", "T6", "T7")),
    "agreement": StudyFigure(_agreement, """\
The largest error over all problems (dot) for every statement judged by an error, and what its rule
allows (bar). A dot right of its bar, in orange, fails. A triangle at the left means that a bound was never even
reached.""", tuple(LABELS)),
    "wiring": StudyFigure(_wiring, """\
The circuit as it is integrated here. Each column is a layer, named with what it holds at rest. Arrows
excite, bars inhibit, and broad lines are the synapses that carry the primitives. The fast unit (blue) turns weights
into the gradient, the slow one (green) turns the gradient into weights, which go back to the first layer.""",
        ("T11", "T12", "T16", "T19", "T20"), {"2c": ("T11", "T12", "T16", "T19", "T20")}),
    "circuit_and_flow": StudyFigure(_circuit_and_flow, """\
Weights in time on one recorded problem of each of the paper's experiments: the flow (broad, pale) and
the circuit with time scales that suit its temperature (dashed). The circuit trails the flow a little where weights
move fast, since its layers take time to follow, and ends at the same weights.""",
        ("T11", "T18"), {"2c": ("T11", "T12")}),
    "stability_map": StudyFigure(_stability_map, """\
How fast the circuit departs from the optimum (red) or returns to it (blue), by temperature and
by how much faster each layer is than the next; the line is where it neither grows nor decays. Dots are the paper's
three temperatures at a ratio of ten. Left, with the time scales ordered as in the text; right, with the two middle
ones shortened in proportion to the temperature. The line tells the least ratio that the ordering needs at each
temperature.""", ("T12",)),
    "oscillation": StudyFigure(_oscillation, """\
One problem of the bandit study (temperature 0.01), integrated neuron by neuron, with each layer
ten times faster than the next (left) and with the corrected ladder (right). Broad lines are the optimal weights.
Look at whether the thin lines come to rest on them.""", ("T12",)),
}  # fmt: skip
