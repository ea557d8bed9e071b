"""`one_step`: a single relaxation towards the gate, as the paper's released control scripts do it.

It is not the optimum, and repeated it need not converge: where the gate is steep it swings between two answers. It is
here so that the difference can be measured.
"""

import numpy as np

from .._types import Weights, namespace
from ._checks import check_weights
from .objective import Problem, require_problem

_RELAXATION = 10.0  # time, in units of tau, for which the scripts integrate towards a gate that they hold fixed
_FLOOR = 1e-8  # added to q = exp(-s) and to the mixture


def one_step(problem: Problem, weights: Weights) -> Weights:
    """w+ = S + e^-10 (w - S), S = softmax( -Pi^T ( ln(Pi w + 1e-8) - ln q ) / eps + ln w_hat ), q = exp(-s) + 1e-8."""
    pi, s, eps, log_prior = problem = require_problem(problem, "one_step")
    weights = check_weights("weights", weights, log_prior)
    xp = namespace(*problem, weights)
    mixture = (pi @ weights[..., None])[..., 0]
    surprise = xp.log(mixture + _FLOOR) - xp.logaddexp(-s, np.log(_FLOOR))  # exp(-s) may be too large to write down
    y = log_prior - (surprise[..., None, :] @ pi)[..., 0, :] / eps[..., None]
    response = xp.exp(y - xp.max(y, axis=-1, keepdims=True))
    response = response / xp.sum(response, axis=-1, keepdims=True)
    return response + np.exp(-_RELAXATION) * (weights - response)
