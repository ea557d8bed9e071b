"""Optima by generic methods, which know nothing of this library's solver."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize, root
from scipy.special import log_softmax, softmax

from policychord import Problem

from .problems import per_shape, pick, random_problems
from .settings import TheorySettings

Value = Callable[[np.ndarray], float]
Slope = Callable[[np.ndarray], np.ndarray]


class IndependentOptimum(NamedTuple):
    """An optimum of an independent method, and how far it is from being one: |w - softmax(-g/eps + ln prior)|."""

    weights: np.ndarray
    residual: float


def minimise_on_simplex(value: Value, slope: Slope, start: np.ndarray) -> np.ndarray:
    """Minimise a smooth function over the probability simplex."""
    minimum = minimize(
        value,
        start,
        jac=slope,
        method="SLSQP",
        bounds=[(1e-12, 1.0)] * start.size,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": lambda w: np.ones_like(w)},
        options={"ftol": 1e-16, "maxiter": 1000},
    )
    return minimum.x


def minimise_with_entropy(value: Value, slope: Slope, eps: float, log_prior: np.ndarray) -> IndependentOptimum:
    """min F(w) + eps KL(w, prior) over the simplex: sequential quadratic programming, then a root of the conditions.

    The energy alone cannot tell points apart that are closer than the root of its rounding, some 1e-8. At the optimum
    slope + eps ln(w/prior) is the same for all, which is solved for in ln w. The residual needs no method at
    all: it vanishes at the optimum and nowhere else.
    """

    def price(log_w: np.ndarray) -> np.ndarray:
        return slope(np.exp(log_w)) + eps * (log_w - log_prior)

    def differences(z: np.ndarray) -> np.ndarray:
        prices = price(log_softmax(np.append(z, 0.0)))
        return prices[:-1] - prices[-1]

    near = minimise_on_simplex(
        lambda w: value(w) + eps * float(w @ (np.log(w) - log_prior)), lambda w: price(np.log(w)), np.exp(log_prior)
    )
    log_w = np.log(near / near.sum())
    weights = softmax(np.append(root(differences, log_w[:-1] - log_w[-1], tol=1e-14).x, 0.0))
    return IndependentOptimum(weights, float(np.abs(weights - softmax(log_prior - slope(weights) / eps)).max()))


def _minimise_energy(batch: Problem, index: int) -> IndependentOptimum:
    """The weights of least energy of one problem of a batch."""
    pi, s, eps, log_prior = map(np.asarray, pick(batch, index))

    def value(w: np.ndarray) -> float:
        return float((pi @ w) @ (np.log(pi @ w) + s))

    return minimise_with_entropy(value, lambda w: pi.T @ (np.log(pi @ w) + s), float(eps), log_prior)


def judge_optima(settings: TheorySettings) -> list[np.ndarray]:
    """For each shape, the optima of its first problems by an independent optimiser."""
    share = per_shape(settings.judged)
    return [
        np.stack([_minimise_energy(batch, i).weights for i in range(min(share, batch.eps.size))])
        for batch in random_problems(settings.seed, settings.problems)
    ]
