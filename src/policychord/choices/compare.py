"""One set of choices, analysed: the classic models, the composed one, which of them the group uses, and its rivals."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from ..stats.glm import Link
from ..stats.model_selection import ModelSelection, select_models
from .beliefs import Trials, believe
from .data import Choices
from .models import Composition, Fitted, Floor, classic, coefficients_of, composed, evaluate, fit, floored, weigh
from .schemas import CLASSIC, PAPER, Schemas, exploit

OURS = "Composed"
ROUNDING = 1e-9  # values closer than this are the same but for the order in which they were added up


class Comparison(NamedTuple):
    """Group model selection with the models' names."""

    models: tuple[str, ...]
    selection: ModelSelection

    def pxp(self, model: str) -> float:
        """The protected exceedance probability of one model."""
        return float(self.selection.pxp[self.models.index(model)])


class Analysis(NamedTuple):
    """Fits by the models' names, the weights at every trial, and four comparisons."""

    trials: Trials
    task_name: str
    link: Link
    eps: float
    left_out: int
    notes: tuple[str, ...]  # about the table of choices
    models: dict[str, Fitted]
    composition: Composition
    primitives: tuple[str, ...]
    classic: Comparison  # the four classic models, as in the original article
    against_hybrid: Comparison  # Fig 4b, top
    against_others: Comparison  # Fig 4b, bottom
    everything: Comparison


def analyse(choices: Choices, link: Link = "probit", eps: float = 0.01, primitives: Schemas = tuple(PAPER)) -> Analysis:
    """Fit everything to one set of choices."""
    trials = believe(choices)
    return compare_all(
        choices, trials, {name: fit(classic(name, link), trials) for name in CLASSIC}, link, eps, primitives
    )


def compare_all(
    choices: Choices, trials: Trials, fits: Mapping[str, Fitted], link: Link, eps: float, primitives: Schemas
) -> Analysis:
    """The classic models' fits and the composed model with the Hybrid's coefficients, compared over the group."""
    ours, hybrid = composed(primitives, link=link, eps=eps), fits["Hybrid"]
    models = {**fits, OURS: evaluate(ours, trials, hybrid.coef, hybrid.separated)}
    composition = weigh(ours, trials, coefficients_of(hybrid, trials))
    return Analysis(
        trials, choices.task.name, link, eps, choices.left_out, choices.notes, models, composition, tuple(primitives),
        classic=compare(models, CLASSIC),
        against_hybrid=compare(models, ("Hybrid", OURS)),
        against_others=compare(models, ("UCB", "Thompson", "Value", OURS)),
        everything=compare(models, tuple(models)),
    )  # fmt: skip


def compare(fits: Mapping[str, Fitted], names: Sequence[str]) -> Comparison:
    """Which of these models is the most frequent?"""
    evidence = np.stack([fits[name].log_evidence for name in names], axis=1)
    return Comparison(tuple(names), select_models(evidence))


class Rival(NamedTuple):
    """Another model, or another way of counting ours, and how the composed model compares with it."""

    name: str
    description: str  # for somebody who has not read how it is made
    log_likelihood: float  # of whichever of the two is new
    pxp: float  # of the composed model
    bor: float


class Rivals(NamedTuple):
    """Floors under the Hybrid with no more parameters, another count of ours, ties taken exactly, own coefficients."""

    clipped: Rival
    lapsed: Rival
    counted: Rival
    hull: Rival | None  # the paper's primitives and two arms
    tied: Rival | None
    own: Rival | None  # where it was asked for

    def known(self) -> list[Rival]:
        """Those that were measured."""
        return [rival for rival in self if rival is not None]


def fit_rivals(
    trials: Trials, link: Link, eps: float, *, own: bool = False, primitives: Schemas = tuple(PAPER)
) -> Rivals:
    """What else explains a lead of the composed model over the Hybrid?"""
    hybrid = fit_hybrid(trials, link)
    borrow = partial(evaluate, trials=trials, coef=hybrid.coef, separated=hybrid.separated)
    mixed = partial(composed, link=link, eps=eps)
    ours = borrow(mixed(primitives))
    count = ours.parameters + 1

    def against(name: str, description: str, mine: Fitted, theirs: Fitted = hybrid) -> Rival:
        selection = compare({"theirs": theirs, "mine": mine}, ("theirs", "mine")).selection
        new = theirs if mine is ours else mine
        return Rival(name, description, float(new.log_likelihood.sum()), float(selection.pxp[1]), selection.bor)

    def with_floor(name: str, description: str, rule: Floor) -> Rival:
        return against(name, description, ours, borrow(floored(rule, link=link)))

    paper = tuple(primitives) == tuple(PAPER) and trials.arms == 2  # two rivals are about the paper's primitives
    tied = borrow(mixed(dict(PAPER) | {"exploit": partial(exploit, ties=ROUNDING)})) if paper else None
    return Rivals(
        with_floor("Hybrid clipped to [.01, .99]", "Hybrid, with no probability under .01 or over .99", "clip"),
        with_floor(f"{1 - 0.01 * trials.arms:g} Hybrid + .01",
                   "Hybrid, who now and then picks any arm (.01 for each)", "lapse"),
        against(f"Hybrid, ours counted with {count} parameters", "Hybrid, if composing counts as one more parameter",
                borrow(mixed(primitives, parameters=count))),
        with_floor("Hybrid clipped to what mixtures can reach",
                   "Hybrid, kept within what mixtures of the primitives can do", "hull") if paper else None,
        against("Hybrid, ties within rounding taken as ties",
                "Hybrid, if exploiting takes nearly equal arms (1e-9) as equal", tied) if tied else None,
        against("Hybrid, ours fitted by its own likelihood", "Hybrid, if composing has coefficients of its own",
                fit(mixed(primitives, coefficients="own"), trials)) if own else None,
    )  # fmt: skip


def fit_hybrid(trials: Trials, link: Link) -> Fitted:
    """The reference: the same as by statsmodels to eight digits of the likelihood, and faster."""
    return fit(classic("Hybrid", link), trials, engine="scoring")


def weights_by_trial(found: Analysis) -> tuple[np.ndarray, np.ndarray]:
    """The trial numbers of a block, and the mean weights at each over people and blocks, (trials, primitives)."""
    numbers = np.unique(found.trials.trial)
    return numbers, np.stack([found.composition.weights[found.trials.trial == k].mean(0) for k in numbers])


class Course(NamedTuple):
    """Weights along the experiment: mean and standard deviation over people."""

    block: np.ndarray
    mean: np.ndarray  # (moments, primitives)
    sd: np.ndarray


def weights_in_course(found: Analysis) -> Course:
    """Blocks one after the other, as in Fig 4c."""
    trials, weights = found.trials, found.composition.weights
    moments, at = np.unique(np.stack([trials.block, trials.trial]), axis=1, return_inverse=True)
    count = np.bincount(at)[:, None]
    mean = np.stack([np.bincount(at, column) for column in weights.T], axis=-1) / count
    square = np.stack([np.bincount(at, column) for column in (weights**2).T], axis=-1) / count
    return Course(moments[0], mean, np.sqrt(np.maximum(square - mean**2, 0.0)))
