"""Independent optimisers: generic methods from a library that know nothing of our solver."""

import numpy as np
from scipy.optimize import minimize, root
from scipy.special import softmax

from ...core.objective import Problem, complexity, energy


def minimise_energy(problem: Problem, index: int) -> np.ndarray:
    """The weights of least energy of one problem of a batch: a quasi-Newton method, then a root of its gradient.

    The energy alone cannot tell points apart that are closer than the root of its rounding, some 1e-8.
    """
    one = Problem(*(np.asarray(field)[index] for field in problem))

    def weights(z):
        return softmax(np.append(z, 0.0))

    def slope(z):
        w = weights(z)
        price = one.pi.T @ (np.log(one.pi @ w) + one.action_cost) + one.eps * (np.log(w) - one.log_prior)
        return (w * (price - w @ price))[:-1]

    start = np.zeros(one.log_prior.size - 1)
    near = minimize(lambda z: float(energy(one, weights(z))), start, jac=slope, method="BFGS", options={"gtol": 1e-9})
    return weights(root(slope, near.x, tol=1e-14).x)


def minimise_complexity(problem: Problem, index: int) -> np.ndarray:
    """The weights of least complexity F, the limit of no temperature, by sequential quadratic programming."""
    one = Problem(*(np.asarray(field)[index] for field in problem))
    n = one.log_prior.size
    return on_simplex(
        lambda w: float(complexity(one, w)),
        lambda w: (np.log(np.maximum(one.pi @ w, 1e-300)) + one.action_cost + 1.0) @ one.pi,
        np.full(n, 1.0 / n),
    )


def on_simplex(value, slope, start: np.ndarray) -> np.ndarray:
    """Minimise a smooth function over the probability simplex."""
    found = minimize(
        value,
        start,
        jac=slope,
        method="SLSQP",
        bounds=[(1e-12, 1.0)] * start.size,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": lambda w: np.ones_like(w)},
        options={"ftol": 1e-16, "maxiter": 1000},
    )
    return found.x
