"""Estimates of models that contain each other, each begun where a smaller one ended, and the same without each fold.

The estimates of constant weights are where the search for a gate begins, and a gate without any effect is one of its
points: a gate never loses by a worse mode. Programs are compiled once for all groups.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ..inference import Estimator, Likelihood, Model, likelihood
from ..inference.likelihoods import pointwise, restrict
from ..inference.optimise import objective_of
from ..inference.parameters import natural, size, unconstrained
from ..inference.search import maximise_from_starts, maximise_groups

AT_ONCE = 256  # decisions worked on together: a density is cheap
FOLD_NEAR, FOLD_STEPS = 0.05, 12  # standard errors from the mode, and steps, without a fold


class Found(NamedTuple):
    """Estimates of one model from all decisions."""

    model: Model
    given: Likelihood
    z: Float[np.ndarray, " K"]
    inverse: Float[np.ndarray, "K K"]  # about their covariance
    log_posterior: float

    @property
    def theta(self) -> dict[str, np.ndarray]:
        """On natural scales."""
        return {name: np.asarray(value) for name, value in natural(self.model.parameters, self.z).items()}

    @property
    def log_likelihood(self) -> float:
        """Of all decisions, in nats."""
        return float(pointwise(self.given, self.z).sum())


def at(model: Model, theta: Mapping[str, np.ndarray]) -> np.ndarray:
    """z of a model at the values of another one, where it has them."""
    own = {parameter.name for parameter in model.parameters}
    return unconstrained(model.parameters, {name: value for name, value in theta.items() if name in own})


def search(model: Model, units: Mapping[str, np.ndarray], starts: Sequence[np.ndarray], near: float = 0.01) -> Found:
    """The mode of a model's posterior on all decisions, from the best of some starts."""
    given = likelihood(model, units, at_once=AT_ONCE)
    best = maximise_from_starts(objective_of(given, "map"), np.stack(starts)[:, None], near=near)
    return Found(model, given, best.z[0], best.inverse[0], float(best.log_posterior[0]))


def estimator(found: Found) -> Estimator:
    """What was found as a model of a comparison: without a fold the search goes on from it."""

    def without(fold: Int[np.ndarray, " N"], z: np.ndarray) -> np.ndarray:
        count = int(fold.max()) + 1
        rows = [np.flatnonzero(fold != k) for k in range(count)]
        group = np.repeat(np.arange(count), [len(part) for part in rows])
        train = restrict(found.given, np.concatenate(rows))._replace(group=group)
        ended = maximise_groups(objective_of(train, "map", count), np.tile(z, (count, 1)),
                                np.tile(found.inverse, (count, 1, 1)), steps=FOLD_STEPS, near=FOLD_NEAR)  # fmt: skip
        return ended.z

    return Estimator(found.model.name, size(found.model.parameters), lambda: found.z, without,
                     lambda z: pointwise(found.given, z), found.model.description)  # fmt: skip
