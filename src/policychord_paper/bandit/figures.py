"""Figures of the bandit study: model comparison, weights in time, people left out, temperature, recovery."""

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from policychord.choices import OURS, Link, colours, draw_course, draw_pxp, entitle, probability_label, weights_by_trial
from policychord.drawing import COLOURS, blank
from policychord.inference import RecoveredParameter

from ..study import StudyFigure
from .experiments import EXPERIMENTS, LINKS, BanditSettings
from .measures import Evidence, by_experiment, lead_over_hybrid

EXPERIMENT_COLOURS = {"1": COLOURS[0], "2": COLOURS[4]}
MODEL_COLOURS = {"UCB": COLOURS[0], "Thompson": COLOURS[5], "Hybrid": COLOURS[4], "Value": COLOURS[6], OURS: COLOURS[1]}


def _comparison(settings: BanditSettings, evidence: Evidence, link: Link = "probit") -> Figure:
    """Protected exceedance probabilities, as Fig 4b, with the Bayes omnibus risk."""
    fig = blank(6.6, 4.2)
    panels: Any = fig.subplots(2, len(EXPERIMENTS), sharey=True, squeeze=False)
    for column, (e, experiment) in enumerate(by_experiment(evidence, link).items()):
        colour = EXPERIMENT_COLOURS[e]
        draw_pxp(
            panels[0, column], experiment.fit.ours.against_reference, colour, f"Experiment {e}: against the Hybrid"
        )
        draw_pxp(panels[1, column], experiment.fit.ours.against_others, colour, f"Experiment {e}: against the others")
    entitle(fig, f"Protected exceedance probabilities, {link}", settings.source)
    return fig


def _weights(settings: BanditSettings, evidence: Evidence, link: Link = "probit") -> Figure:
    """Weights along the experiments, as Fig 4c: mean and sd over people, the first block in an inset."""
    fig = blank(7.4, 2.5 * len(EXPERIMENTS) + 0.4)
    panels: Any = fig.subplots(len(EXPERIMENTS), 1, squeeze=False)[:, 0]
    for ax, (experiment, linked) in zip(panels, by_experiment(evidence, link).items(), strict=True):
        draw_course(ax, linked.fit)
        ax.set_title(f"Experiment {experiment}", loc="left")
    panels[-1].set_xlabel("trial, blocks one after the other")
    entitle(fig, f"Weights of the primitives, {link}", settings.source)
    return fig


def _panels(fig: Figure) -> dict[str, Any]:
    """A panel for each experiment, side by side, with one vertical axis."""
    panels: Any = fig.subplots(1, len(EXPERIMENTS), sharey=True, squeeze=False)[0]
    for ax, experiment in zip(panels, EXPERIMENTS, strict=True):
        ax.set_title(f"Experiment {experiment}", loc="left")
    return dict(zip(EXPERIMENTS, panels, strict=True))


def _within_block(settings: BanditSettings, evidence: Evidence) -> Figure:
    """Mean weights by trial within a block, both links."""
    fig = blank(6.6, 2.8)
    panels = _panels(fig)
    for experiment, ax in panels.items():
        for link, dash in zip(LINKS, ("-", ":"), strict=False):
            fit = by_experiment(evidence, link)[experiment].fit
            numbers, mean = weights_by_trial(fit)
            for name, colour, values in zip(fit.ours.primitives, colours(fit.ours.primitives), mean.T, strict=True):
                label = name if link == LINKS[0] else None
                ax.plot(numbers, values, dash, color=colour, label=label, marker="o", markersize=3)
        ax.set(xlabel="trial of the block", ylim=(0, 0.82), xticks=numbers)
    panels["1"].set_ylabel("mean weight")
    panels["2"].legend(loc="upper right", fontsize=8)
    entitle(fig, f"Weights within a block ({' solid, '.join(LINKS)} dotted)", settings.source)
    return fig


def _cross_validation(settings: BanditSettings, evidence: Evidence) -> Figure:
    """Predictive log-likelihood of people left out: every split a dot, the mean a line."""
    fig = blank(7.2, 4.4)
    panels: Any = fig.subplots(len(LINKS), len(EXPERIMENTS), squeeze=False)
    for row, link in enumerate(LINKS):
        for column, experiment in enumerate(EXPERIMENTS):
            ax, validation = panels[row, column], by_experiment(evidence, link)[experiment].cross_validation
            shake = np.random.default_rng(0).uniform(-0.22, 0.22, len(validation.score))
            for at, model in enumerate(validation.models):
                values = validation.score[:, at]
                ax.plot(at + shake, values, "o", color=MODEL_COLOURS[model], markersize=3, alpha=0.5, markeredgewidth=0)
                ax.hlines(values.mean(), at - 0.34, at + 0.34, color=MODEL_COLOURS[model], linewidth=2)
                words = f"{values.mean():.4f}\nbest {validation.best_in(model)}/{len(validation.score)}"
                ax.annotate(words, (at, values.max()), (0, 4), textcoords="offset points", ha="center", fontsize=6.5)
            ax.set_xticks(range(len(validation.models)), validation.models, fontsize=7.5)
            ax.margins(x=0.08, y=0.3)
            ax.set_title(f"Experiment {experiment}, {link}", loc="left")
            if column == 0:
                ax.set_ylabel("ln p a trial, left out")
    entitle(
        fig, f"Predicting people left out: {settings.folds} folds, {settings.splits} random splits", settings.source
    )
    return fig


def _temperature(settings: BanditSettings, evidence: Evidence) -> Figure:
    """PXP of the composed model and of the Hybrid over the temperature, as Figs S5b and S6d."""
    fig = blank(6.6, 2.8)
    panels = _panels(fig)
    for experiment, ax in panels.items():
        for link, colour in zip(LINKS, (COLOURS[1], COLOURS[0]), strict=False):
            swept = by_experiment(evidence, link)[experiment].temperature
            ax.semilogx(swept.eps, swept.pxp, "-o", color=colour, markersize=3.5, label=f"composed, {link}")
            ax.semilogx(swept.eps, 1 - swept.pxp, "--", color=colour, linewidth=1, label=f"Hybrid, {link}")
        ax.axvline(settings.eps, color="0.75", linewidth=0.8, zorder=0)
        ax.annotate("paper", (settings.eps, 1.03), (3, 0), textcoords="offset points", color="0.45", fontsize=7)
        ax.set(xlabel=r"temperature $\epsilon$", ylim=(-0.03, 1.1))
    panels["1"].set_ylabel("PXP")
    fig.legend(
        *panels["2"].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=7, handlelength=1.8
    )
    entitle(fig, "Protected exceedance probability over the temperature", settings.source)
    return fig


def _recovery(settings: BanditSettings, evidence: Evidence) -> Figure:
    """Confusion of models, and coefficients found again, on simulated people."""
    fig = blank(7.4, 5.6)
    panels: Any = fig.subplots(2, len(EXPERIMENTS), squeeze=False, height_ratios=(1.25, 1.0))
    for column, (experiment, result) in enumerate(zip(EXPERIMENTS, evidence, strict=True)):
        recovery = result.recovery
        ax = panels[0, column]
        ax.imshow(recovery.people, vmin=0, vmax=1, cmap="Blues")
        for i, j in np.ndindex(recovery.people.shape):
            dark = recovery.people[i, j] > 0.55
            words, colour = f"{recovery.people[i, j]:.2f}", "white" if dark else "0.15"
            ax.text(j, i, words, ha="center", va="center", fontsize=8, color=colour)
        ax.set_xticks(range(len(recovery.models)), recovery.models, rotation=30, ha="right")
        ax.set_yticks(range(len(recovery.models)), recovery.models)
        ax.set(xlabel="fitted best (least BIC)", ylabel="simulated with" if column == 0 else "")
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
        ax.set_title(f"Experiment {experiment}: share of people", loc="left")
        _coefficients(panels[1, column], list(recovery.parameters))
    entitle(fig, "Recovery of models and coefficients", "simulated cohorts")
    return fig


def _controls(settings: BanditSettings, evidence: Evidence) -> Figure:
    """PXP of the composed model against rivals with a floor, and counted otherwise."""
    fig = blank(6.8, 3.0)
    ax: Any = fig.add_subplot()
    for k, (experiment, linked) in enumerate(by_experiment(evidence).items()):
        rivals = linked.rivals.known()
        values = [lead_over_hybrid(linked), *(rival.pxp for rival in rivals)]
        at = np.arange(len(values)) + 0.38 * k
        ax.barh(at, values, 0.36, color=EXPERIMENT_COLOURS[experiment], label=f"Experiment {experiment}")
        for y, value in zip(at, values, strict=True):
            ax.text(value + 0.01, y, probability_label(value), va="center", fontsize=7)
    ax.axvline(0.5, color="0.6", linewidth=0.8, linestyle="--", zorder=0)
    labels = ["Hybrid (the paper's comparison)", *(rival.name for rival in rivals)]
    ax.set_yticks(np.arange(len(labels)) + 0.19, labels)
    ax.invert_yaxis()
    ax.set(xlim=(0, 1.1), xlabel="PXP of the composed model against ...")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2, fontsize=8)
    entitle(fig, "Controls, probit", settings.source)
    return fig


def _coefficients(ax: Any, parameters: list[RecoveredParameter]) -> None:
    labels = [f"{p.model} {p.name}" for p in parameters]
    values = [p.correlation for p in parameters]
    ax.barh(range(len(labels)), values, 0.62, color=[MODEL_COLOURS[p.model] for p in parameters])
    for y, value in enumerate(values):
        ax.text(value + 0.01, y, f"{value:.2f}", va="center", fontsize=7)
    ax.set_yticks(range(len(labels)), labels, fontsize=7)
    ax.invert_yaxis()
    ax.set(xlim=(0, 1.12), xlabel="correlation, true and estimated")


_COMPARISON = """Protected exceedance probability (PXP) of each model: how probable it is that this model is the most
frequent one among people, allowing for chance. Top, the composed model and the Hybrid, its own generative model;
bottom, it and the three other classic models. Each group of bars adds up to one. BOR is the probability that all models
of a panel are equally common: where it is large, bars near one half mean little."""
_COURSE = """Weights of the three primitives along the experiment, blocks one after the other; lines are means over
people, bands their standard deviation, lines break where a block begins and beliefs are reset. On the right the first
block, larger. Look for the order of the lines within a block: it is what the claims are about, and it repeats from
block to block because beliefs start again."""
_BLOCK = """Weights of the primitives by trial of a block, averaged over people and blocks: solid lines with the probit
link, dotted with the logit. Where solid and dotted lines lie on each other, the link does not matter. At the first
trial of Experiment 2 all primitives are alike and all weights are one third."""
_OTHERS = """How well models predict people whose choices they were not fitted to: mean log-probability of a choice,
higher is better. Every dot is one random division of the people into folds, the line is the mean; the words say in
how many divisions a model is the best one. Where the dots of two models overlap, a single division, as in the paper,
cannot rank them."""
_HEAT = """Probability that the composed model (solid) or the Hybrid (dashed) is the more common one, over the
temperature. The grey line marks the paper's temperature. At high temperatures the weights become uniform whatever the
beliefs, and the composed model no longer follows anybody."""
_CONTROLS = """PXP of the composed model against the Hybrid, as in the paper (first row), and against rivals: the
Hybrid with floors under its probabilities but without any primitive (one of them keeps to what mixtures of the
primitives can reach), and the Hybrid when the composed model is counted or computed otherwise. A bar that falls below
the dashed line is a control that the claim does not survive."""
_RECOVERY = """Simulated people whose model is known. Top: the model they were simulated with (row) and the one that
fits them best (column), as shares of people; a perfect analysis would be dark on the diagonal alone. Look at the last
row, that of the composed model. Bottom: how well the coefficients are found again."""

FIGURES: dict[str, StudyFigure[BanditSettings, Evidence]] = {
    "model_comparison": StudyFigure(_comparison, _COMPARISON, ("B1", "B2"), {"4b": ("B1", "B2")}),
    "controls": StudyFigure(_controls, _CONTROLS, ("B1",)),
    "weights": StudyFigure(_weights, _COURSE, ("B3", "B4", "B11", "B12"), {"4c": ("B3", "B4", "B11", "B12")}),
    "weights_within_block": StudyFigure(_within_block, _BLOCK, ("B3", "B4", "B8")),
    "cross_validation": StudyFigure(_cross_validation, _OTHERS, ("B5", "B9"), {"S5a": ("B5",), "S6c": ("B9",)}),
    "temperature": StudyFigure(_temperature, _HEAT, ("B6", "B10"), {"S5b": ("B6",), "S6d": ("B10",)}),
    "recovery": StudyFigure(_recovery, _RECOVERY, ("B1", "B7")),
    "model_comparison_logit": StudyFigure(
        partial(_comparison, link="logit"), _COMPARISON + " Logit link.", ("B7",), {"S6a": ("B7",)}
    ),
    "weights_logit": StudyFigure(partial(_weights, link="logit"), _COURSE + " Logit link.", ("B8",), {"S6b": ("B8",)}),
}
