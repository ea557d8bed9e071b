"""What groups of people and conditions differ in: their mean coefficients, by empirical Bayes with a regression.

Every person's coefficients are drawn from a normal distribution. Its mean depends on the person's group, and in each
condition a person's weights of features may be others. Differences are those of the mean, with errors from the marginal
likelihood, and the smallest difference that so many people and trials would show.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import numpy as np
import pandas as pd

from ..inference import Effect, effects_of, empirical_bayes, likelihood
from ..inference.contrasts import InCondition, by_condition, contrasts_of
from ..inference.optimise import Progress
from .compare import Plan
from .data import Choices
from .estimate import AT_ONCE, choice_likelihood
from .learners import Trials
from .models import ChoiceModel
from .places import places_of

By = Literal["group", "condition"]
MEAN = "mean"
MOST_TOLD = 6  # differences in a sentence


class ModelEffects(NamedTuple):
    """Means of one model's coefficients over people, and their differences."""

    model: str
    coefficients: tuple[str, ...]  # of each effect
    contrasts: tuple[str, ...]  # of each: `mean`, "patient - control", or both of a group and a condition
    effects: tuple[Effect, ...]
    groups: dict[str, int]  # people by group
    conditions: tuple[str, ...]
    converged: bool


def groups_of(choices: Choices) -> np.ndarray:
    """The group of every person, in the order of their names; a ValueError where there are none to compare."""
    if choices.group is None:
        raise ValueError("effects by group: the table has no column of groups; name it with --columns group=...")
    groups = choices.group[np.unique(choices.subject, return_index=True)[1]].astype(str)
    if len(np.unique(groups)) < 2:
        raise ValueError(f"effects by group: everybody is in the group {str(groups[0])!r}.")
    return groups


def conditions_of(choices: Choices) -> np.ndarray:
    """The condition of every block; a ValueError where they cannot be compared within people."""
    if choices.condition is None:
        raise ValueError("effects by condition: the table has no column of conditions; name it with --columns "
                         "condition=...")  # fmt: skip
    at, condition = places_of(choices), choices.condition.astype(str)
    if (mixed := np.flatnonzero(condition != condition[at.first][at.block])).size:
        row = mixed[0]
        raise ValueError(f"effects by condition: it changes within block {choices.block[row]} of person "
                         f"{choices.subject[row]}; a block has one condition.")  # fmt: skip
    kinds = pd.DataFrame({"subject": choices.subject, "condition": condition}).groupby("subject")["condition"].nunique()
    if (kinds < 2).all():
        raise ValueError("effects by condition: nobody is in more than one condition; name the column as a group "
                         "(--columns group=...).")  # fmt: skip
    return condition[at.first]


CHECKS: dict[By, Callable[[Choices], np.ndarray]] = {"group": groups_of, "condition": conditions_of}


def fit_effects(
    choices: Choices, plan: Plan, trials: Trials, by: tuple[By, ...], progress: Progress | None = None
) -> tuple[ModelEffects, ...]:
    """Means and differences of the coefficients of every model of a plan that has some, but the composed one.

    The composed model has its reference's coefficients.
    """
    models = {name: model for name, model in plan.models.items() if model.coefficients and not model.pooled}
    answers = []
    for done, (name, model) in enumerate(models.items()):
        if progress is not None:
            progress("effects of groups and conditions", done, len(models))
        answers.append(_effects(name, model, choices, trials, by))
    return tuple(answers)


def _effects(name: str, model: ChoiceModel, choices: Choices, trials: Trials, by: tuple[By, ...]) -> ModelEffects:
    groups = groups_of(choices) if "group" in by else None
    kinds = contrasts_of(groups) if groups is not None else None
    given, conditions = choice_likelihood(model, trials), ()
    about: dict[str, tuple[str, str]] = {}
    with jax.enable_x64(True):
        if "condition" in by:
            block = conditions_of(choices)
            contrasts, conditions = contrasts_of(block), tuple(np.unique(block).tolist())
            varying = [each.name for each in given.parameters if each.transform == "real" and each.name not in
                       (model.learner.scales if model.learner else ())]  # fmt: skip
            varied, about = by_condition(given.model, contrasts.names, varying)
            units = InCondition(given.data, contrasts.values)
            given = likelihood(varied, units, groups=given.group, weight=given.weight, at_once=AT_ONCE)
        group = empirical_bayes(given, None if kinds is None else kinds.values)
    effects = effects_of(group, given, () if kinds is None else kinds.names)
    rows = [(effect, *about.get(effect.parameter, (effect.parameter, ""))) for effect in effects]
    contrast = [", ".join(part for part in (within, effect.predictor) if part) or MEAN for effect, _, within in rows]
    people = (
        {} if groups is None else dict(zip(*map(np.ndarray.tolist, np.unique(groups, return_counts=True)), strict=True))
    )
    return ModelEffects(
        name, tuple(row[1] for row in rows), tuple(contrast), effects, people, conditions, group.converged
    )


def effect_table(every: tuple[ModelEffects, ...]) -> pd.DataFrame:
    """One row for each model, coefficient and contrast."""
    return pd.DataFrame([
        {"model": each.model, "coefficient": coefficient, "contrast": contrast, "value": effect.value,
         "se": effect.error, "low": effect.low, "high": effect.high, "detectable": effect.detectable,
         "sd_people": effect.sd, "converged": each.converged}
        for each in every
        for coefficient, contrast, effect in zip(each.coefficients, each.contrasts, each.effects, strict=True)
    ])  # fmt: skip


# ------------------------------------------------------------------------------------------- sentences


def describe_effects(each: ModelEffects) -> tuple[str, ...]:
    """What differs, what does not, and which differences would have been found."""
    rows = [row for row in zip(each.coefficients, each.contrasts, each.effects, strict=True) if row[1] != MEAN]
    found, missed = [], []
    for name, contrast, effect in rows:
        text = f"{name} ({contrast}: {effect.value:+.3g}, {effect.low:+.3g} to {effect.high:+.3g}"
        if effect.established:
            found.append(f"{text})")
        else:
            missed.append(f"{text}; {effect.detectable:.3g})")
    lines = [f"{each.model}, means of coefficients by empirical Bayes, with 95% intervals."]
    if each.groups:
        lines.append("Groups: " + ", ".join(f"{name} ({count} people)" for name, count in each.groups.items()) + ".")
    if each.conditions:
        lines.append(f"Conditions within people: {', '.join(each.conditions)}. Learning rates and lapses do not vary "
                     "with the condition.")  # fmt: skip
    if found:
        lines.append(f"Differences whose interval excludes zero: {_some(found)}.")
    if missed:
        lines.append(f"No difference was found in {_some(missed)}. The last number is the smallest difference "
                     "that would have been found with a probability of .8: smaller ones are not excluded.")  # fmt: skip
    if len(rows) > 1:
        lines.append(
            f"These are {len(rows)} intervals of 95%: where nothing differs, one in twenty excludes zero by chance."
        )
    if not each.converged:
        lines.append("The estimates of the group had not settled when the rounds ended.")
    return tuple(lines)


def _some(texts: list[str]) -> str:
    """Not more than a reader takes in; the table has all."""
    more = f"; and {len(texts) - MOST_TOLD} more, see the table" if len(texts) > MOST_TOLD else ""
    return "; ".join(texts[:MOST_TOLD]) + more
