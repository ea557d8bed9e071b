"""What the solver is measured against: the flow by scipy's integrators, and an interior-point method."""

from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp

from policychord import Problem

HORIZON = 20.0  # in units of tau: the flow's energy then has shrunk by exp(-20) = 2e-9


def right_hand_side(one: Problem) -> Callable:
    """dw/dt = -w + S(w) of one problem (tau = 1), with everything that does not depend on w precomputed."""
    pi, columns = np.ascontiguousarray(one.pi), np.ascontiguousarray(one.pi.T)
    scale = columns / -one.eps
    constant = one.log_prior + scale @ one.action_cost

    def rhs(_time, w):
        y = constant + scale @ np.log(np.maximum(pi @ w, 1e-300))
        s = np.exp(y - y.max())
        return s / s.sum() - w

    return rhs


def integrate(one: Problem, method: str) -> np.ndarray:
    """Follow the flow from the prior to 20 tau; `method` is "RK45" or "LSODA"."""
    start = np.exp(one.log_prior)
    path = solve_ivp(right_hand_side(one), (0.0, HORIZON), start, method=method, rtol=1e-6, atol=1e-9, t_eval=[HORIZON])
    return path.y[:, -1]


class Clarabel:
    """The problem stated once as a cone program by cvxpy, to be solved many times.

    It is stated as the interior-point method likes it: the mixture is a variable of its own, and entries below
    1e-12 and actions without support are dropped. Otherwise it takes ten times longer or gives up.
    """

    def __init__(self, one: Problem):
        import cvxpy as cp

        pi = np.where(one.pi > 1e-12, one.pi, 0.0)
        taken = pi.any(axis=-1)
        pi, cost = pi[taken], one.action_cost[taken]
        self.weights, mixture = cp.Variable(pi.shape[1]), cp.Variable(pi.shape[0])
        complexity = -cp.sum(cp.entr(mixture)) + ((cost - cost.mean()) @ pi) @ self.weights
        divergence = cp.sum(cp.rel_entr(self.weights, np.exp(one.log_prior)))
        on_the_simplex = [mixture == pi @ self.weights, cp.sum(self.weights) == 1]
        self.program = cp.Problem(cp.Minimize(complexity + one.eps * divergence), on_the_simplex)

    def solve(self) -> np.ndarray:
        self.program.solve(solver="CLARABEL")
        return on_simplex(self.weights.value)


def on_simplex(weights: np.ndarray) -> np.ndarray:
    """Undo the rounding that leaves a rival's answer slightly outside, so that it can be certified."""
    weights = np.maximum(weights, 0.0)
    return weights / weights.sum()
