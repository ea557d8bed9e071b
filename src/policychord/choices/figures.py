"""Figures of one analysis: models, weights, coefficients with intervals, evidence person by person, predictions."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from .compare import Analysis, Selection, weights_in_course, weights_within_block
from .effects import MEAN, ModelEffects
from .models import OURS
from .predictive import PredictiveCheck

# Okabe-Ito: distinct for colour-blind readers and in print
_SPARE = ("#0072B2", "#56B4E9", "#E69F00", "#000000")
# one colour for a primitive: the studio's page has the same, and a test compares them
SCHEMA_COLOURS = {"exploit": "#0072B2", "uncertainty": "#D55E00", "risk": "#009E73", "repeat": "#B3518A",
                  "random": "#7A7F87"}  # fmt: skip
_PEOPLE = "0.25"
LONGEST_CURVE = 60  # trials of a block beyond which points would hide the line


def comparison(found: Analysis) -> Figure:
    """PXP of every model for one set of choices."""
    figure = Figure(figsize=(max(4.6, 1.0 * len(found.models)), 2.8), layout="constrained")
    draw_pxp(figure.add_subplot(), found.everything, _SPARE[0], "")
    entitle(figure, f"Which model is the most frequent? ({found.link})", found.trials.source)
    return figure


def weights(found: Analysis, individuals: bool = False) -> Figure:
    """Weights within a block, mean over people with a standard error; `individuals` adds a line for each person."""
    course = weights_within_block(found)
    names = found.ours.primitives
    figure = Figure(figsize=(7.0, 2.9), layout="constrained")
    axes: Any = figure.subplots(1, len(names), sharey=True, squeeze=False)[0] if individuals else None
    single: Any = None if individuals else figure.add_subplot()
    for k, (name, colour) in enumerate(zip(names, colours(names), strict=True)):
        ax = axes[k] if individuals else single
        if individuals:
            ax.plot(course.trial, course.person[:, :, k].T, color=colour, linewidth=0.6, alpha=0.3)
            ax.set_title(name, loc="left", fontweight="normal")
        low, high = course.mean[:, k] - course.error[:, k], course.mean[:, k] + course.error[:, k]
        ax.fill_between(course.trial, np.maximum(low, 0), np.minimum(high, 1), color=colour, alpha=0.25, linewidth=0)
        mark = "o" if len(course.trial) <= LONGEST_CURVE else ""
        ax.plot(course.trial, course.mean[:, k], color=colour, marker=mark, markersize=3, label=name)
        ax.set(xlabel="trial of the block", ylim=(-0.02, 1.02), yticks=(0, 0.5, 1))
        ax.locator_params(axis="x", integer=True)
    (axes[0] if individuals else single).set_ylabel("weight")
    if not individuals:
        single.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    people, blocks = len(np.unique(found.trials.subject)), len(np.unique(found.trials.block))
    told = f"mean and standard error over {people} people" + (f", {blocks} blocks averaged" if blocks > 1 else "")
    entitle(figure, f"Weights of the primitives ({found.link})\n{told}", found.trials.source)
    return figure


def course(found: Analysis) -> Figure:
    """Weights along one experiment, blocks one after the other."""
    figure = Figure(figsize=(7.4, 3.0), layout="constrained")
    ax: Any = figure.add_subplot()
    draw_course(ax, found)
    ax.set_xlabel("trial, blocks one after the other")
    entitle(figure, f"Weights of the primitives ({found.link})", found.trials.source)
    return figure


def coefficients(found: Analysis) -> Figure:
    """Every person's coefficients with 95% intervals, a panel for each coefficient of each model."""
    panels = [(name, k, label) for name, model in found.models.items() if name != OURS
              for k, label in enumerate(model.names)]  # fmt: skip
    columns = min(3, max(len(panels), 1))
    rows = -(-max(len(panels), 1) // columns)
    figure = Figure(figsize=(7.2, 1.9 * rows + 0.4), layout="constrained")
    axes: Any = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.ravel()[len(panels) :]:
        ax.set_axis_off()
    for ax, (name, k, label) in zip(axes.ravel(), panels, strict=False):
        model = found.models[name]
        order = np.argsort(model.coef[:, k], kind="stable")
        value, place = model.coef[order, k], np.arange(1, len(order) + 1)
        fine = ~model.separated[order]
        if model.low is not None and model.high is not None:
            low, high = model.low[order, k], model.high[order, k]
            ax.vlines(place[fine], low[fine], high[fine], color=_SPARE[0], linewidth=0.9, alpha=0.6)
            shown = np.concatenate([value[fine], low[fine], high[fine]])
            shown = shown[np.isfinite(shown)]
            if shown.size:
                ax.set_ylim(*_limits(value[fine], shown))
        ax.plot(place[fine], value[fine], "o", markersize=2.2, color=_SPARE[0])
        ax.axhline(0.0, color="0.7", linewidth=0.7)
        ax.set_title(f"{name}: {label}", loc="left", fontweight="normal")
        ax.set_xticks([])
    for ax in axes[-1]:
        ax.set_xlabel("people, in order")
    entitle(figure, "Coefficients with 95% intervals", found.trials.source)
    return figure


def _limits(values: np.ndarray, shown: np.ndarray) -> tuple[float, float]:
    """What holds all estimates, and their intervals as far as those are not out of all proportion."""
    spread = max(float(np.ptp(values)), 1e-9)
    low, high = float(values.min()) - spread, float(values.max()) + spread
    return max(float(shown.min()), low) - 0.05 * spread, min(float(shown.max()), high) + 0.05 * spread


def evidence(found: Analysis) -> Figure:
    """Log evidence of every person and model, relative to the person's best."""
    table = np.stack([model.log_evidence for model in found.models.values()], axis=1)
    table = table - table.max(1, keepdims=True)
    best = table.argmax(1)
    order = np.lexsort((table.min(1), best))
    figure = Figure(
        figsize=(max(5.2, 1.0 * len(found.models)), min(2.0 + 0.11 * len(table), 8.0)), layout="constrained"
    )
    ax: Any = figure.add_subplot()
    image = ax.imshow(
        np.maximum(table[order], -20.0), aspect="auto", cmap="viridis", interpolation="nearest", vmin=-20.0, vmax=0.0
    )
    ax.set_xticks(range(len(found.models)), list(found.models), rotation=25 if len(found.models) > 5 else 0, fontsize=8)
    ax.set_yticks([])
    ax.set_ylabel("people, by their best model")
    bar = figure.colorbar(image, ax=ax, label="log evidence below the best (-BIC/2)")
    bar.ax.set_yticks([0, -5, -10, -15, -20], ["0", "-5", "-10", "-15", "-20 or less"])
    entitle(figure, "Evidence, person by person", found.trials.source)
    return figure


def effects(each: ModelEffects, source: str) -> Figure:
    """Differences between groups and conditions with 95% intervals, in standard deviations over people."""
    rows = [row for row in zip(each.coefficients, each.contrasts, each.effects, strict=True) if row[1] != MEAN]
    rows = rows or list(zip(each.coefficients, each.contrasts, each.effects, strict=True))
    places = np.arange(len(rows))[::-1]
    middle, low, high = (np.array([getattr(row[2], name) / row[2].sd for row in rows])
                         for name in ("value", "low", "high"))  # fmt: skip
    figure = Figure(figsize=(5.6, min(1.4 + 0.32 * len(rows), 9.0)), layout="constrained")
    ax: Any = figure.add_subplot()
    ax.errorbar(middle, places, xerr=[middle - low, high - middle], fmt="o", color=_SPARE[0], markersize=4, capsize=2)
    ax.axvline(0.0, color="0.6", linewidth=0.8)
    ax.set_yticks(places, [f"{name}: {contrast}" for name, contrast, _ in rows])
    ax.set_xlabel("difference, in standard deviations over people")
    entitle(figure, f"What differs ({each.model})", source)
    return figure


def predictions(check: PredictiveCheck, source: str) -> Figure:
    """One-step checks: what people do, and what the models expect of them given what happened before."""
    figure = Figure(figsize=(7.4, 5.0), layout="constrained")
    bars: Any = figure.add_subplot(2, 1, 1)
    curve: Any = figure.add_subplot(2, 1, 2)
    shades = _model_colours(check.models)
    observed, error = _mean(check.observed)
    count = len(check.models) + 1
    places = np.arange(len(check.statistics))
    bars.bar(places - 0.4, observed, 0.8 / count, yerr=error, color=_PEOPLE, label="people", align="edge")
    for k, name in enumerate(check.models, 1):
        mean, _ = _mean(check.expected[k - 1])
        bars.bar(places - 0.4 + 0.8 * k / count, mean, 0.8 / count, color=shades[name], label=name, align="edge")
    bars.set_xticks(places, [text.replace(" that paid", "\nthat paid") for text in check.statistics])
    bars.set(ylabel="share of trials", ylim=(0, 1.02))
    mean, error = _mean(check.observed_course)
    there = np.isfinite(mean)
    curve.fill_between(check.trial[there], (mean - error)[there], (mean + error)[there], color=_PEOPLE, alpha=0.2,
                       linewidth=0)  # fmt: skip
    curve.plot(check.trial[there], mean[there], color=_PEOPLE, linewidth=1.8, label="people")
    for k, name in enumerate(check.models):
        curve.plot(check.trial[there], _mean(check.expected_course[k])[0][there], color=shades[name], linewidth=1.1)
    curve.set(xlabel="trial of the block", ylabel="takes the best so far", ylim=(0, 1.02))
    figure.legend(*bars.get_legend_handles_labels(), loc="outside right center", fontsize=8)
    entitle(figure, "One-step check: given what happened before (people: mean and standard error)", source)
    return figure


def _mean(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error over people (the first axis), without those who are missing."""
    there = np.isfinite(table).sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(table, axis=0) / there
        sd = np.sqrt(np.nansum((table - mean) ** 2, axis=0) / np.maximum(there - 1, 1))
        return mean, sd / np.sqrt(there)


def draw_pxp(ax: Any, compared: Selection, colour: str, title: str) -> None:
    """A bar for each model's PXP, and the Bayes omnibus risk above."""
    values = compared.selection.pxp
    bars = ax.bar(compared.models, values, 0.6, color=colour)
    for bar, model, value in zip(bars, compared.models, values, strict=True):
        bar.set_alpha(1.0 if model == OURS else 0.45)
        ax.text(bar.get_x() + 0.3, value + 0.02, probability_label(float(value)), ha="center", fontsize=8)
    ax.set(ylim=(0, 1.14), ylabel="PXP", yticks=(0, 0.5, 1))
    if max(map(len, compared.models)) > 12:
        ax.tick_params(axis="x", labelsize=7, rotation=15)
    ax.set_title(title, loc="left", fontweight="normal")
    # above the axes, where no bar and no number can be
    ax.set_title(f"BOR {compared.selection.bor:.2g}", loc="right", fontweight="normal", fontsize=8, color="0.35")


def draw_course(ax: Any, found: Analysis) -> None:
    """Mean and sd over people for every primitive; the first block again, larger, in an inset if there are several."""
    course = weights_in_course(found)
    first = course.block == course.block.min()
    # an empty moment between blocks: beliefs start again, so lines do not go on
    breaks = np.flatnonzero(np.diff(course.block)) + 1
    moments = np.insert(np.arange(1.0, len(course.block) + 1), breaks, breaks + 0.5)
    shown_mean, low, high = (
        np.insert(values, breaks, np.nan, axis=0)
        for values in (course.mean, np.maximum(course.mean - course.sd, 0), np.minimum(course.mean + course.sd, 1))
    )
    zoomed = np.arange(len(moments)) < first.sum()
    inset = None if first.all() else ax.inset_axes((1.05, 0.12, 0.26, 0.76))
    for k, (name, colour) in enumerate(zip(found.ours.primitives, colours(found.ours.primitives), strict=True)):
        for panel, shown in ((ax, slice(None)), *(() if inset is None else ((inset, zoomed),))):
            panel.fill_between(moments[shown], low[shown, k], high[shown, k], color=colour, alpha=0.16, linewidth=0)
            panel.plot(moments[shown], shown_mean[shown, k], color=colour, linewidth=1.1, label=name)
    ax.set(ylabel="weight", ylim=(-0.02, 1.02), xlim=(0.5, len(course.block) + 0.5))
    ax.legend(loc="upper center", ncols=len(found.ours.primitives), fontsize=8, bbox_to_anchor=(0.62, 1.2))
    if inset is not None:
        inset.set_title("first block", fontsize=8, fontweight="normal")
        inset.set(ylim=(-0.02, 1.02), yticks=(0, 0.5, 1), xlim=(0.7, first.sum() + 1.0))  # space for the last label
        inset.locator_params(axis="x", nbins=5, integer=True, steps=(1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10))
        inset.tick_params(labelsize=7)


def colours(primitives: tuple[str, ...]) -> list[str]:
    """A colour for each primitive: those that have a name keep theirs."""
    spare = iter(_SPARE * (1 + len(primitives) // len(_SPARE)))
    return [SCHEMA_COLOURS.get(name) or next(spare) for name in primitives]


def _model_colours(models: tuple[str, ...]) -> dict[str, str]:
    """A colour for each model."""
    shades = ("#0072B2", "#56B4E9", "#E69F00", "#999999", "#009E73", "#CC79A7", "#F0E442")
    others = [name for name in models if name != OURS]
    return {name: shades[k % len(shades)] for k, name in enumerate(others)} | {OURS: "#D55E00"}


def probability_label(value: float) -> str:
    """Three digits, and never 0 or 1."""
    return f"{value:.3f}" if 0.0005 <= value < 0.9995 else "<.001" if value < 0.5 else ">.999"


def entitle(figure: Figure, title: str, source: str) -> None:
    """Title and source above a figure; the source may come from a table, so that it is never read as mathematics."""
    text = f"{title}\n{source}"
    figure.suptitle(text, fontsize=9.5, fontweight="bold", x=0.01, ha="left", parse_math=False)
