"""What differs between kinds of people and between conditions: predictors of a group, and parameters by condition."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from .._types import ArrayLike
from .likelihoods import Model
from .parameters import Parameter, real


class Contrasts(NamedTuple):
    """Differences to the first of several labels, as numbers whose mean over labels is zero."""

    names: tuple[str, ...]  # "B - A", for each label but the first
    values: Float[np.ndarray, "rows names"]


class InCondition(NamedTuple):
    """A unit of a model, and the contrasts of its condition."""

    unit: Any
    contrast: Any  # (units, names)


def contrasts_of(labels: ArrayLike) -> Contrasts:
    """Contrasts of labels, one for each row: [label = B] - 1/labels, so that the intercept is the mean over labels."""
    labels = np.asarray(labels).astype(str)
    kinds = np.unique(labels)
    if len(kinds) < 2:
        raise ValueError(f"labels are all {kinds[0] if len(kinds) else 'missing'}: there is nothing to compare.")
    values = 1.0 * (labels[:, None] == kinds[1:]) - 1.0 / len(kinds)
    return Contrasts(tuple(f"{kind} - {kinds[0]}" for kind in kinds[1:]), values)


def by_condition(
    model: Model, names: Sequence[str], varying: Sequence[str]
) -> tuple[Model, dict[str, tuple[str, str]]]:
    """The model with a parameter more for each contrast in `names` and each real parameter in `varying`.

    Its units are `InCondition`, and a parameter is theta + sum_c contrast_c theta_c. Answers with the model, and with
    the parameter and the contrast that each of the new ones is about.
    """
    known = {parameter.name: parameter for parameter in model.parameters}
    if odd := [name for name in varying if name not in known or known[name].transform != "real" or known[name].labels]:
        raise ValueError(f"{odd[0]} is no real number of the model {model.name}: only these may vary with a condition.")
    new: dict[str, Parameter] = {}
    about: dict[str, tuple[str, str]] = {}
    for name in varying:
        for contrast in names:
            label = f"{name}: {contrast}"
            new[label] = real(label, 0.0, scale=known[name].scale, prior=known[name].prior)
            about[label] = (name, contrast)

    def log_prob(theta: Any, unit: InCondition) -> Any:
        own = {name: theta[name] for name in known}
        for name in varying:
            own[name] = own[name] + sum(unit.contrast[c] * theta[f"{name}: {each}"] for c, each in enumerate(names))
        return model.log_prob(own, unit.unit)

    parameters = (*model.parameters, *new.values())
    return model._replace(parameters=parameters, log_prob=log_prob, family=()), about
