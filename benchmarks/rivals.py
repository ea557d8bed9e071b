"""What the solver is measured against: the flow by scipy's integrators, and interior-point methods."""

from collections.abc import Callable
from importlib.util import find_spec

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


class Moreau:
    """A batch of problems as conic programs with exponential cones, in moreau's own batch mode.

    The variables are weights w, mixture p, and their entropies t >= p ln p and u >= w ln(w / prior). As for Clarabel,
    entries below 1e-12 and actions without support are dropped.
    """

    def __init__(self, problems: Problem):
        import moreau

        pi = np.where(problems.pi > 1e-12, problems.pi, 0.0)
        taken = pi.any(axis=(0, 2))
        pi, cost = pi[:, taken], problems.action_cost[:, taken]
        batch, d, n = pi.shape
        each, one = np.arange(d), np.arange(n)
        entropies = d + 1 + 3 * d  # the first row of the cones of u; those of t begin at d + 1
        parts = [  # rows and columns of entries, and their value
            (np.repeat(each, n), np.tile(one, d), -pi.reshape(batch, -1)), (each, n + each, 1.0),
            (np.full(n, d), one, 1.0),
            (d + 1 + 3 * each, n + d + each, 1.0), (d + 2 + 3 * each, n + each, -1.0),
            (entropies + 3 * one, n + 2 * d + one, 1.0), (entropies + 1 + 3 * one, one, -1.0),
        ]  # fmt: skip
        rows, columns = (np.concatenate([part[k] for part in parts]) for k in range(2))
        values = np.concatenate([np.broadcast_to(value, (batch, len(row))) for row, _, value in parts], axis=1)
        kept = np.lexsort((columns, rows))
        kept = kept[(values[:, kept] != 0.0).any(axis=0)]
        width, height = 2 * (n + d), entropies + 3 * n
        self.limits = np.zeros((batch, height))
        self.limits[:, d], self.limits[:, d + 3 : entropies : 3] = 1.0, 1.0
        self.limits[:, entropies + 2 :: 3] = np.exp(problems.log_prior)
        price = [np.zeros((batch, n)), cost - cost.mean(-1, keepdims=True), np.ones((batch, d)), np.ones((batch, n))]
        price[3] *= problems.eps[:, None]
        self.price, self.values, self.n = np.concatenate(price, axis=1), values[:, kept], n
        tight = moreau.IPMSettings(tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
        self.solver = moreau.CompiledSolver(
            n=width, m=height, P_row_offsets=np.zeros(width + 1, int), P_col_indices=np.zeros(0, int),
            A_row_offsets=np.searchsorted(rows[kept], np.arange(height + 1)), A_col_indices=columns[kept],
            cones=moreau.Cones(num_zero_cones=d + 1, num_exp_cones=d + n),
            settings=moreau.Settings(device="cpu", batch_size=batch, solver="ipm", ipm_settings=tight),
        )  # fmt: skip

    def solve(self) -> np.ndarray:
        self.solver.setup(np.zeros((len(self.values), 0)), self.values)
        return on_simplex(self.solver.solve(self.price, self.limits).x[:, : self.n])


def is_installed(package: str) -> bool:
    """Whether a rival of the extra `bench` is here."""
    return find_spec(package) is not None


def on_simplex(weights: np.ndarray) -> np.ndarray:
    """Undo the rounding that leaves a rival's answer slightly outside, so that it can be certified."""
    weights = np.maximum(weights, 0.0)
    return weights / weights.sum(axis=-1, keepdims=True)
