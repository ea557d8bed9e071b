"""One set of choices, analysed: the classic models, the composed one, and which of them the group uses."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...stats.glm import Link
from ...stats.model_selection import ModelSelection, select_models
from .beliefs import Trials, believe
from .compose import Composition
from .data import Choices
from .features import CLASSIC
from .models import ChoiceModel, Classic, Composed
from .primitives import PAPER

OURS = "Composed"


class Comparison(NamedTuple):
    """Group model selection with the models' names."""

    models: tuple[str, ...]
    selection: ModelSelection

    def pxp(self, model: str) -> float:
        return float(self.selection.pxp[self.models.index(model)])


class Analysis(NamedTuple):
    """Fitted models by name, the weights at every trial, and three comparisons."""

    trials: Trials
    task_name: str
    link: Link
    eps: float
    left_out: int
    models: dict[str, ChoiceModel]
    composition: Composition
    primitives: tuple[str, ...]
    classic: Comparison  # the four classic models, as in the original article
    against_hybrid: Comparison  # Fig 4b, top
    against_others: Comparison  # Fig 4b, bottom
    everything: Comparison


def analyse(choices: Choices, link: Link = "probit", eps: float = 0.01, primitives=tuple(PAPER)) -> Analysis:
    """Fit everything to one set of choices."""
    trials = believe(choices)
    classic: dict[str, ChoiceModel] = {name: Classic(name, link).fit(trials) for name in CLASSIC}
    return compared(choices, trials, classic, Composed(primitives, "Hybrid", link, eps=eps).fit(trials))


def compared(choices: Choices, trials: Trials, classic: dict[str, ChoiceModel], ours: Composed) -> Analysis:
    """What fitted models say of each other."""
    models = {**classic, OURS: ours}
    return Analysis(
        trials=trials,
        task_name=choices.task.name,
        link=ours.link,
        eps=ours.eps,
        left_out=choices.left_out,
        models=models,
        composition=ours.weigh(trials),
        primitives=ours.names,
        classic=compare(models, CLASSIC),
        against_hybrid=compare(models, ("Hybrid", OURS)),
        against_others=compare(models, ("UCB", "Thompson", "Value", OURS)),
        everything=compare(models, tuple(models)),
    )


def compare(models: dict[str, ChoiceModel], names: Sequence[str]) -> Comparison:
    """Which of these models is the most frequent?"""
    evidence = np.stack([models[name].log_evidence_ for name in names], axis=1)
    return Comparison(tuple(names), select_models(evidence))


def weights_by_trial(analysis: Analysis) -> tuple[np.ndarray, np.ndarray]:
    """The trial numbers of a block, and the mean weights at each over people and blocks, (trials, primitives)."""
    numbers = np.unique(analysis.trials.trial)
    return numbers, np.stack([analysis.composition.weights[analysis.trials.trial == k].mean(0) for k in numbers])


class Course(NamedTuple):
    """Weights along the experiment: mean and standard deviation over people."""

    block: np.ndarray
    mean: np.ndarray  # (moments, primitives)
    sd: np.ndarray


def weights_in_course(analysis: Analysis) -> Course:
    """Blocks one after the other, as in Fig 4c."""
    trials, weights = analysis.trials, analysis.composition.weights
    moments, at = np.unique(np.stack([trials.block, trials.trial]), axis=1, return_inverse=True)
    count = np.bincount(at)[:, None]
    mean = np.stack([np.bincount(at, column) for column in weights.T], axis=-1) / count
    square = np.stack([np.bincount(at, column) for column in (weights**2).T], axis=-1) / count
    return Course(moments[0], mean, np.sqrt(np.maximum(square - mean**2, 0.0)))
