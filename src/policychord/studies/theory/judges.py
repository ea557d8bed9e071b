"""Independent optimisers: generic methods from a library that know nothing of our solver."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize, root

from ...core.objective import Problem, complexity, energy


@jax.jit
def _energy_of_logits(z, problem: Problem):
    return energy(problem, jax.nn.softmax(jnp.append(z, 0.0)))


_slope = jax.jit(jax.grad(_energy_of_logits))
_bend = jax.jit(jax.hessian(_energy_of_logits))


def minimise_energy(problem: Problem, index: int) -> np.ndarray:
    """The weights of least energy of one problem of a batch: a trust-region method, then a root of its gradient.

    The energy alone cannot tell points apart that are closer than the root of its rounding, some 1e-8.
    """
    one = Problem(*(np.asarray(field)[index] for field in problem))

    def slope(z):
        return np.asarray(_slope(z, one))

    def bend(z):
        return np.asarray(_bend(z, one))

    start = np.zeros(one.log_prior.size - 1)
    near = minimize(lambda z: float(_energy_of_logits(z, one)), start, jac=slope, hess=bend, method="trust-exact")
    found = root(slope, near.x, jac=bend, tol=1e-14)
    return np.asarray(jax.nn.softmax(np.append(found.x, 0.0)))


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
