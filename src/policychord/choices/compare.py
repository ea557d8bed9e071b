"""One set of choices, analysed: models, which of them the group uses, the composed one among them, and its controls."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..inference import ModelSelection, select_models
from .data import Choices
from .estimate import Fitted, borrow, coefficients_of, fit
from .learners import AbstractLearner, Trials, believe
from .models import (
    CLASSIC,
    OURS,
    PAPER,
    ROUNDING,
    USUAL_PRIMITIVES,
    ChoiceModel,
    Composition,
    Floor,
    Link,
    Schemas,
    classic,
    composed,
    exploit,
    model_by_name,
    schemas_by_name,
    weigh,
)
from .simulate import Design, play
from .tasks import Task

USUAL = (*CLASSIC, OURS)


class Selection(NamedTuple):
    """Group model selection with the models' names."""

    models: tuple[str, ...]
    selection: ModelSelection

    def pxp(self, model: str) -> float:
        """The protected exceedance probability of one model."""
        return float(self.selection.pxp[self.models.index(model)])


class Plan(NamedTuple):
    """What is fitted: models by name. If they compose, one of them is the reference that the mixture comes close to."""

    models: Mapping[str, ChoiceModel]  # without the composed one
    reference: str  # "" if no model composes
    link: Link
    eps: float
    primitives: Schemas
    learner: AbstractLearner | None = None  # with fixed parameters, for all models without one of their own

    @property
    def composes(self) -> bool:
        """Whether the composed model is compared, too."""
        return bool(self.reference)

    @property
    def ours(self) -> ChoiceModel:
        """The composed model."""
        return composed(self.primitives, self.models[self.reference], self.link, eps=self.eps)

    @property
    def everything(self) -> dict[str, ChoiceModel]:
        """All models that are compared, the composed one last."""
        return {**self.models, **({OURS: self.ours} if self.composes else {})}


def plan_models(
    task: Task,
    link: Link = "probit",
    eps: float = 0.01,
    primitives: Schemas = USUAL_PRIMITIVES,
    *,
    models: Sequence[str] = USUAL,
    reference: str = "",
    learner: AbstractLearner | None = None,
) -> Plan:
    """A plan from names, see `model_by_name`. No model is compared that is not named.

    `Composed` comes close to the `reference`: the Hybrid unless it is named. A `learner` with free parameters is
    fitted again with each model; one without is the same for all. Names of primitives mean the paper's definitions in
    the paper's two experiments, and definitions that know no unit elsewhere (see `schemas_by_name`).
    """
    if len(set(models)) < len(models) or not models:
        raise ValueError(f"models has {', '.join(models) or 'no name'}: name at least one, each once.")
    fitted = learner if learner is not None and learner.free else None
    known = {name: model_by_name(name, task, link, fitted) for name in models if name != OURS}
    composes = OURS in models
    if composes and not reference:
        if "Hybrid" not in known and len(known) > 1:
            raise ValueError(f"{OURS} comes close to one of {', '.join(known)}: say to which (reference).")
        reference = next(iter(known)) if len(known) == 1 else "Hybrid"
    if composes and reference not in known:
        raise ValueError(
            f"reference = {reference!r}, but models has {', '.join(known) or 'no other'}: name it there, too."
        )
    reference = reference if composes else ""
    schemas = schemas_by_name(primitives, task)
    return Plan(known, reference, link, eps, schemas, None if fitted is not None else learner)


class ComposedAnalysis(NamedTuple):
    """The composed model: its weights at every trial, and how it compares with its reference and with the others."""

    primitives: tuple[str, ...]
    reference: str
    composition: Composition
    against_reference: Selection  # alone: Fig 4b, top
    against_others: Selection  # all models but the reference: Fig 4b, bottom


class Analysis(NamedTuple):
    """Fits by the models' names, which of them the group uses, and the composed model if it is among them."""

    trials: Trials
    task_name: str
    link: Link
    eps: float
    left_out: int
    notes: tuple[str, ...]  # about the table of choices
    models: dict[str, Fitted]
    everything: Selection
    composed: ComposedAnalysis | None = None

    @property
    def ours(self) -> ComposedAnalysis:
        """The composed model's part; a ValueError if there is none."""
        if self.composed is None:
            raise ValueError(f"these models do not compose, so that there are no weights: name {OURS} among them.")
        return self.composed


def analyse(
    choices: Choices,
    link: Link = "probit",
    eps: float = 0.01,
    primitives: Schemas = USUAL_PRIMITIVES,
    *,
    plan: Plan | None = None,
) -> Analysis:
    """Fit everything to one set of choices: the classic models and the composed one, or what a plan says."""
    plan = plan_models(choices.task, link, eps, primitives) if plan is None else plan
    trials = believe_by(plan, choices)
    return compare_all(choices, trials, {name: fit(model, trials) for name, model in plan.models.items()}, plan)


def believe_by(plan: Plan, choices: Choices) -> Trials:
    """The beliefs of the plan's learner, or of the task's Kalman filter."""
    return believe(choices) if plan.learner is None else believe(choices, plan.learner)


def play_by(
    plan: Plan, model: ChoiceModel, choices: Choices, design: Design, coef: np.ndarray, rng: np.random.Generator
) -> Choices:
    """People with coefficients (people, K), in the order of their names, choose in a design of these choices.

    They learn as the model says, or else as the plan does.
    """
    learner = plan.learner if model.learner is None else model.learner
    at = np.searchsorted(np.unique(choices.subject), design.subject)
    return play(design, choices.task, model._replace(learner=learner), coef[at], rng)


def compare_all(choices: Choices, trials: Trials, fits: Mapping[str, Fitted], plan: Plan) -> Analysis:
    """The models' fits and the composed model with its reference's coefficients, compared over the group."""
    models, ours = dict(fits), None
    if plan.composes:
        base = fits[plan.reference]
        models[OURS] = borrow(plan.ours, trials, base)
        others = tuple(name for name in fits if name != plan.reference)
        ours = ComposedAnalysis(
            primitives=tuple(plan.primitives),
            reference=plan.reference,
            composition=weigh(plan.ours, trials, coefficients_of(base, trials)),
            against_reference=compare_models(models, (plan.reference, OURS)),
            against_others=compare_models(models, (*others, OURS)),
        )
    return Analysis(
        trials=trials,
        task_name=choices.task.name,
        link=plan.link,
        eps=plan.eps,
        left_out=choices.left_out,
        notes=choices.notes,
        models=models,
        everything=compare_models(models, tuple(models)),
        composed=ours,
    )


def compare_models(fits: Mapping[str, Fitted], names: Sequence[str]) -> Selection:
    """Which of these models is the most frequent? Their order changes nothing: they are counted by name."""
    order = sorted(names)
    evidence = np.stack([fits[name].log_evidence for name in order], axis=1)
    selection = select_models(evidence) if len(order) > 1 else _alone(len(evidence))
    at = [order.index(name) for name in names]
    rows = {name: getattr(selection, name)[at] for name in ("alpha", "expected", "xp", "pxp")}
    return Selection(tuple(names), selection._replace(**rows, responsibilities=selection.responsibilities[:, at]))


def _alone(people: int) -> ModelSelection:
    """Of one model there is nothing to select."""
    sure = np.ones(1)
    return ModelSelection(1.0 + people * sure, sure, sure, sure, 0.0, np.ones((people, 1)))


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
    trials: Trials,
    link: Link,
    eps: float,
    *,
    own: bool = False,
    plan: Plan | None = None,
    known: Fitted | None = None,
) -> Rivals:
    """What else explains a lead of the composed model over its reference, the Hybrid unless a plan says otherwise?

    `known` is the reference's fit to these trials, if there is one. Without a plan the primitives are the paper's.
    """
    primitives = dict(PAPER) if plan is None else schemas_by_name(plan.primitives)
    reference = "Hybrid" if plan is None else plan.reference
    base = classic("Hybrid", link) if plan is None else plan.models[reference]
    known = fit(base, trials) if known is None else known
    taken = partial(borrow, trials=trials, base=known)
    mixed: Callable[..., ChoiceModel] = partial(composed, reference=base, eps=eps)
    ours = taken(mixed(primitives))
    count = ours.parameters + 1

    def against(name: str, description: str, mine: Fitted = ours, theirs: Fitted = known) -> Rival:
        found = compare_models({"theirs": theirs, "mine": mine}, ("theirs", "mine"))
        new = theirs if mine is ours else mine
        words = f"{reference}, {description}"
        return Rival(name, words, float(new.log_likelihood.sum()), found.pxp("mine"), found.selection.bor)

    def floored(name: str, description: str, rule: Floor) -> Rival:
        return against(name, description, theirs=taken(base._replace(change=rule)))

    # two rivals are about the paper's primitives
    paper = primitives == dict(PAPER) and trials.arms == 2 and trials.offered is None
    exact = dict(PAPER) | {"exploit": partial(exploit, ties=ROUNDING)}
    return Rivals(
        floored(f"{reference} clipped to [.01, .99]", "with no probability under .01 or over .99", "clip"),
        floored(f"{1 - 0.01 * trials.arms:g} {reference} + .01", "mixed with .01 for every arm", "lapse"),
        against(f"{reference}, ours counted with {count} parameters", "if composing counts as one more parameter",
                taken(mixed(primitives, parameters=count))),
        floored(f"{reference} clipped to what mixtures can reach",
                "kept within what mixtures of the primitives can do", "hull") if paper else None,
        against(f"{reference}, ties within rounding taken as ties",
                "if exploiting takes nearly equal arms (1e-9) as equal", taken(mixed(exact))) if paper else None,
        against(f"{reference}, ours fitted by its own likelihood", "if composing has coefficients of its own",
                fit(mixed(primitives, coefficients="own"), trials)) if own and not base.learned else None,
    )  # fmt: skip


# ------------------------------------------------------------------------------------ weights along blocks


def weights_by_trial(analysis: Analysis) -> tuple[np.ndarray, np.ndarray]:
    """The trial numbers of a block, and the mean weights at each over people and blocks, (trials, primitives)."""
    mean = _weights(analysis).groupby(analysis.trials.trial).mean()
    return mean.index.to_numpy(), mean.to_numpy()


def _weights(analysis: Analysis) -> pd.DataFrame:
    return pd.DataFrame(analysis.ours.composition.weights)


class Course(NamedTuple):
    """Weights along the experiment: mean and standard deviation over people."""

    block: np.ndarray
    mean: np.ndarray  # (moments, primitives)
    sd: np.ndarray


def weights_in_course(analysis: Analysis) -> Course:
    """Blocks one after the other, as in Fig 4c."""
    moments = _weights(analysis).groupby([analysis.trials.block, analysis.trials.trial])
    mean = moments.mean()
    return Course(mean.index.get_level_values(0).to_numpy(), mean.to_numpy(), moments.std(ddof=0).to_numpy())


class WithinBlock(NamedTuple):
    """Weights at each trial of a block: means over a person's blocks, and over people with a standard error."""

    trial: np.ndarray
    person: np.ndarray  # (people, trials, primitives); NaN where a person has no such trial
    mean: np.ndarray  # (trials, primitives)
    error: np.ndarray


def weights_within_block(analysis: Analysis) -> WithinBlock:
    """What a paper prints: people are what varies, so blocks are averaged first."""
    each = _weights(analysis).groupby([analysis.trials.subject, analysis.trials.trial]).mean()
    trials = each.groupby(level=1)
    mean, error = trials.mean(), trials.sem()
    person = np.stack([each[name].unstack().to_numpy() for name in each], axis=-1)
    return WithinBlock(mean.index.to_numpy(), person, mean.to_numpy(), error.to_numpy())
