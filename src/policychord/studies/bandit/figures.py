"""Figures of the bandit study: who wins, weights in time, other people, temperature, recovery."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ...stats.glm import Link
from ..drawing import COLOURS, blank
from ..study import Evidence
from .analysis import OURS, Analysis, Comparison, weights_by_trial, weights_in_course
from .settings import BanditSettings

SCHEMA_COLOURS = {"exploit": COLOURS[2], "uncertainty": COLOURS[3], "risk": COLOURS[6]}
EXPERIMENT_COLOURS = {"1": COLOURS[0], "2": COLOURS[4]}
MODEL_COLOURS = {"UCB": COLOURS[0], "Thompson": COLOURS[5], "Hybrid": COLOURS[4], "Value": COLOURS[6], OURS: COLOURS[1]}


def comparison(settings: BanditSettings, evidence: Evidence, link: Link = "probit") -> Figure:
    """Protected exceedance probabilities, as Fig 4b, with the Bayes omnibus risk."""
    fig = blank(6.6, 4.2)
    panels: Any = fig.subplots(2, len(settings.experiments), sharey=True, squeeze=False)
    for column, experiment in enumerate(settings.experiments):
        fit = evidence[f"fit {experiment} {link}"]
        colour = EXPERIMENT_COLOURS[experiment]
        _bars(panels[0, column], fit.against_hybrid, colour, f"Experiment {experiment}: against the Hybrid")
        _bars(panels[1, column], fit.against_others, colour, f"Experiment {experiment}: against the others")
    _entitle(fig, f"Protected exceedance probabilities, {link}", settings.source)
    return fig


def weights(settings: BanditSettings, evidence: Evidence, link: Link = "probit") -> Figure:
    """Weights along the experiments, as Fig 4c: mean and sd over people, the first block in an inset."""
    fig = blank(7.4, 2.5 * len(settings.experiments) + 0.4)
    panels: Any = fig.subplots(len(settings.experiments), 1, squeeze=False)[:, 0]
    for ax, experiment in zip(panels, settings.experiments, strict=True):
        draw_course(ax, evidence[f"fit {experiment} {link}"])
        ax.set_title(f"Experiment {experiment}", loc="left")
    panels[-1].set_xlabel("trial, blocks one after the other")
    _entitle(fig, f"Weights of the primitives, {link}", settings.source)
    return fig


def within_block(settings: BanditSettings, evidence: Evidence) -> Figure:
    """Mean weights by trial within a block, both links."""
    fig = blank(6.6, 2.8)
    panels: Any = fig.subplots(1, len(settings.experiments), sharey=True, squeeze=False)[0]
    for ax, experiment in zip(panels, settings.experiments, strict=True):
        for link, dash in zip(settings.links, ("-", ":"), strict=False):
            fit = evidence[f"fit {experiment} {link}"]
            numbers, mean = weights_by_trial(fit)
            for name, colour, values in zip(fit.primitives, _colours(fit.primitives), mean.T, strict=True):
                label = name if link == settings.links[0] else None
                ax.plot(numbers, values, dash, color=colour, label=label, marker="o", markersize=3)
        ax.set(xlabel="trial of the block", ylim=(0, 0.82), xticks=numbers)
        ax.set_title(f"Experiment {experiment}", loc="left")
    panels[0].set_ylabel("mean weight")
    panels[-1].legend(loc="upper right", fontsize=8)
    _entitle(fig, f"Weights within a block ({' solid, '.join(settings.links)} dotted)", settings.source)
    return fig


def cross_validation(settings: BanditSettings, evidence: Evidence) -> Figure:
    """Predictive log-likelihood of people left out: every split a dot, the mean a line."""
    fig = blank(7.2, 4.4)
    panels: Any = fig.subplots(len(settings.links), len(settings.experiments), squeeze=False)
    for row, link in enumerate(settings.links):
        for column, experiment in enumerate(settings.experiments):
            ax, found = panels[row, column], evidence[f"cross-validation {experiment} {link}"]
            shake = np.random.default_rng(0).uniform(-0.22, 0.22, len(found.score))
            for at, model in enumerate(found.models):
                values = found.score[:, at]
                ax.plot(at + shake, values, "o", color=MODEL_COLOURS[model], markersize=3, alpha=0.5, markeredgewidth=0)
                ax.hlines(values.mean(), at - 0.34, at + 0.34, color=MODEL_COLOURS[model], linewidth=2)
                words = f"{values.mean():.4f}\nbest {found.best_in(model)}/{len(found.score)}"
                ax.annotate(words, (at, values.max()), (0, 4), textcoords="offset points", ha="center", fontsize=6.5)
            ax.set_xticks(range(len(found.models)), found.models, fontsize=7.5)
            ax.margins(x=0.08, y=0.3)
            ax.set_title(f"Experiment {experiment}, {link}", loc="left")
            if column == 0:
                ax.set_ylabel("ln p a trial, left out")
    _entitle(
        fig, f"Predicting people left out: {settings.folds} folds, {settings.splits} random splits", settings.source
    )
    return fig


def temperature(settings: BanditSettings, evidence: Evidence) -> Figure:
    """PXP of the composed model and of the Hybrid over the temperature, as Figs S5b and S6d."""
    fig = blank(6.6, 2.8)
    panels: Any = fig.subplots(1, len(settings.experiments), sharey=True, squeeze=False)[0]
    for ax, experiment in zip(panels, settings.experiments, strict=True):
        for link, colour in zip(settings.links, (COLOURS[1], COLOURS[0]), strict=False):
            swept = evidence[f"temperature {experiment} {link}"]
            ax.semilogx(swept.eps, swept.pxp, "-o", color=colour, markersize=3.5, label=f"composed, {link}")
            ax.semilogx(swept.eps, 1 - swept.pxp, "--", color=colour, linewidth=1, label=f"Hybrid, {link}")
        ax.axvline(settings.eps, color="0.75", linewidth=0.8, zorder=0)
        ax.annotate("paper", (settings.eps, 1.03), (3, 0), textcoords="offset points", color="0.45", fontsize=7)
        ax.set(xlabel=r"temperature $\epsilon$", ylim=(-0.03, 1.1))
        ax.set_title(f"Experiment {experiment}", loc="left")
    panels[0].set_ylabel("PXP")
    panels[-1].legend(loc="center left", fontsize=7, handlelength=1.8)
    _entitle(fig, "Protected exceedance probability over the temperature", settings.source)
    return fig


def recovery(settings: BanditSettings, evidence: Evidence) -> Figure:
    """Confusion of models, and coefficients found again, on simulated people."""
    fig = blank(7.4, 5.6)
    panels: Any = fig.subplots(2, len(settings.experiments), squeeze=False, height_ratios=(1.25, 1.0))
    for column, experiment in enumerate(settings.experiments):
        found = evidence[f"recovery {experiment}"]
        ax = panels[0, column]
        ax.imshow(found.best, vmin=0, vmax=1, cmap="Blues")
        for i, j in np.ndindex(found.best.shape):
            dark = found.best[i, j] > 0.55
            ax.text(
                j, i, f"{found.best[i, j]:.2f}", ha="center", va="center", fontsize=8, color="white" if dark else "0.15"
            )
        ax.set_xticks(range(len(found.models)), found.models, rotation=30, ha="right")
        ax.set_yticks(range(len(found.models)), found.models)
        ax.set(xlabel="fitted best (least BIC)", ylabel="simulated with" if column == 0 else "")
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
        ax.set_title(f"Experiment {experiment}: share of people", loc="left")
        _coefficients(panels[1, column], found.parameters)
    _entitle(fig, "Recovery of models and coefficients", "simulated cohorts")
    return fig


def controls(settings: BanditSettings, evidence: Evidence) -> Figure:
    """PXP of the composed model against rivals with a floor, and counted otherwise."""
    fig = blank(6.8, 3.0)
    ax: Any = fig.add_subplot()
    link = settings.links[0]
    names = list(evidence[f"controls {settings.experiments[0]} {link}"])
    for k, experiment in enumerate(settings.experiments):
        fit = evidence[f"fit {experiment} {link}"]
        rivals = evidence[f"controls {experiment} {link}"]
        values = [fit.against_hybrid.pxp(OURS), *(rivals[name].pxp for name in names)]
        at = np.arange(len(values)) + 0.38 * k
        ax.barh(at, values, 0.36, color=EXPERIMENT_COLOURS[experiment], label=f"Experiment {experiment}")
        for y, value in zip(at, values, strict=True):
            ax.text(value + 0.01, y, _percent(value), va="center", fontsize=7)
    ax.axvline(0.5, color="0.6", linewidth=0.8, linestyle="--", zorder=0)
    ax.set_yticks(np.arange(len(names) + 1) + 0.19, ["Hybrid (the paper's comparison)", *names])
    ax.invert_yaxis()
    ax.set(xlim=(0, 1.1), xlabel="PXP of the composed model against ...")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2, fontsize=8)
    _entitle(fig, f"Controls, {link}", settings.source)
    return fig


def own_comparison(fit: Analysis) -> Figure:
    """PXP of every model for one set of choices."""
    fig = blank(4.6, 2.8)
    _bars(fig.add_subplot(), fit.everything, COLOURS[0], "")
    _entitle(fig, f"Which model is the most frequent? ({fit.link})", fit.trials.source)
    return fig


def own_weights(fit: Analysis) -> Figure:
    """Weights along one experiment."""
    fig = blank(7.4, 3.0)
    ax: Any = fig.add_subplot()
    draw_course(ax, fit)
    ax.set_xlabel("trial, blocks one after the other")
    _entitle(fig, f"Weights of the primitives ({fit.link})", fit.trials.source)
    return fig


def draw_course(ax: Any, fit: Analysis) -> None:
    """Mean and sd over people for every primitive; the first block again, larger, in an inset on the right."""
    course = weights_in_course(fit)
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
    for k, (name, colour) in enumerate(zip(fit.primitives, _colours(fit.primitives), strict=True)):
        for panel, shown in ((ax, slice(None)), (inset, zoomed)):
            panel.fill_between(moments[shown], low[shown, k], high[shown, k], color=colour, alpha=0.16, linewidth=0)
            panel.plot(moments[shown], shown_mean[shown, k], color=colour, linewidth=1.1, label=name)
    ax.set(ylabel="weight", ylim=(-0.02, 1.02), xlim=(0.5, len(course.block) + 0.5))
    ax.legend(loc="upper center", ncols=len(fit.primitives), fontsize=8, bbox_to_anchor=(0.62, 1.2))
    inset.set_title("first block", fontsize=8, fontweight="normal")
    inset.set(ylim=(-0.02, 1.02), yticks=(0, 0.5, 1), xlim=(0.7, first.sum() + 1.0))  # room for the last label
    inset.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    inset.tick_params(labelsize=7)


def _bars(ax: Any, compared: Comparison, colour: str, title: str) -> None:
    values = compared.selection.pxp
    bars = ax.bar(compared.models, values, 0.6, color=colour)
    for bar, model, value in zip(bars, compared.models, values, strict=True):
        bar.set_alpha(1.0 if model == OURS else 0.45)
        ax.text(bar.get_x() + 0.3, value + 0.02, _percent(float(value)), ha="center", fontsize=8)
    ax.set(ylim=(0, 1.14), ylabel="PXP", yticks=(0, 0.5, 1))
    ax.set_title(title, loc="left", fontweight="normal")
    # above the axes, where no bar and no number can be
    ax.set_title(f"BOR {compared.selection.bor:.2g}", loc="right", fontweight="normal", fontsize=8, color="0.35")


def _coefficients(ax: Any, parameters) -> None:
    labels = [f"{p.model} {p.coefficient}" for p in parameters]
    values = [p.correlation for p in parameters]
    ax.barh(range(len(labels)), values, 0.62, color=[MODEL_COLOURS[p.model] for p in parameters])
    for y, value in enumerate(values):
        ax.text(value + 0.01, y, f"{value:.2f}", va="center", fontsize=7)
    ax.set_yticks(range(len(labels)), labels, fontsize=7)
    ax.invert_yaxis()
    ax.set(xlim=(0, 1.12), xlabel="correlation, true and estimated")


def _colours(primitives: tuple[str, ...]) -> list[str]:
    spare = iter(COLOURS[i] for i in (0, 1, 4, 5, 6, 2, 3) * (1 + len(primitives) // 7))
    return [SCHEMA_COLOURS.get(name) or next(spare) for name in primitives]


def _percent(value: float) -> str:
    return f"{value:.3f}" if 0.0005 <= value < 0.9995 else "<.001" if value < 0.5 else ">.999"


def _entitle(fig: Figure, words: str, source: str) -> None:
    fig.suptitle(f"{words}\n{source}", fontsize=9.5, fontweight="bold", x=0.01, ha="left")


FIGURES = {
    "model_comparison": comparison,
    "model_comparison_logit": lambda settings, evidence: comparison(settings, evidence, "logit"),
    "weights": weights,
    "weights_logit": lambda settings, evidence: weights(settings, evidence, "logit"),
    "weights_within_block": within_block,
    "cross_validation": cross_validation,
    "temperature": temperature,
    "controls": controls,
    "recovery": recovery,
}
