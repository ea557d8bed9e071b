"""`predict`: does behaviour that is simulated at the estimates look like the data? (A posterior predictive check.)

For draws r of the parameters, z_r ~ N(estimate, inverse curvature), an experiment is simulated and measured, and the
measures T(simulated_r) are set against T(data). What is predicted is what `simulate` simulates: whatever it takes from
the data, such as offers or rewards, is given. The estimates have seen the same data, so a measure inside its interval
is no evidence for a model; one outside speaks against it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .likelihoods import Data, Likelihood
from .optimise import Progress, report
from .parameters import FARTHEST, natural
from .recovery import SimulateModel
from .uncertainty import LEVEL, covariance_of, draw_laplace

Measure = Callable[[Data], float]


class Prediction(NamedTuple):
    """One measure of the data, and of simulated experiments."""

    name: str
    observed: float
    mean: float  # over simulated experiments
    low: float  # where the central 95% of them lie
    high: float
    share: float  # of simulated experiments with a value as large as the observed one: near 0 or 1 is a misfit

    @property
    def inside(self) -> bool:
        """Whether simulated experiments give such a value."""
        return self.low <= self.observed <= self.high


def predict(
    given: Likelihood,
    z: np.ndarray,
    data: Data,
    simulate: SimulateModel,
    measures: Mapping[str, Measure],
    *,
    draws: int = 100,
    method: str = "map",
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Prediction, ...]:
    """Measures of the data and of `draws` experiments simulated around the estimates z (groups, K)."""
    if draws < 2:
        raise ValueError(f"draws = {draws}: pass at least 2.")
    points = draw_laplace(z, covariance_of(given, z, method), draws, np.random.default_rng(seed))
    simulated = np.empty((draws, len(measures)))
    for r, point in enumerate(np.clip(points, -FARTHEST, FARTHEST)):
        report(progress, "simulating at the estimates", r, draws)
        again = simulate(given.model, natural(given.parameters, point), seed + r)
        simulated[r] = [measure(again) for measure in measures.values()]
    observed = np.array([float(measure(data)) for measure in measures.values()])
    return beside(tuple(measures), observed, simulated)


def beside(names: Sequence[str], observed: np.ndarray, simulated: np.ndarray) -> tuple[Prediction, ...]:
    """Measures of the data (measures) and of simulated experiments (experiments, measures)."""
    low, high = np.quantile(simulated, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    share = np.mean(simulated >= observed, axis=0)
    rows = zip(names, observed, simulated.mean(axis=0), low, high, share, strict=True)
    return tuple(Prediction(name, *map(float, numbers)) for name, *numbers in rows)
