"""Other people's optimisers solve the same problems: never to a lower energy than ours, and to nearly the same."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from policychord import Problem, energy, primitive_cost, solve

from .families import FAMILIES, member

D, N, MEMBERS = 8, 3, 3


def singles(name):
    p = member(name, (MEMBERS,), d=D, n=N, seed=1)
    return [Problem(*(field[k : k + 1] for field in p)) for k in range(MEMBERS)]


def by_clarabel(p):
    """The problem as exponential cones."""
    pi, cost, eps, prior = p.pi[0], p.action_cost[0], p.eps[0], np.exp(p.log_prior[0])
    pi = np.where(pi < 1e-200, 0.0, pi)  # its equilibration divides by them
    w = cp.Variable(N)
    objective = -cp.sum(cp.entr(pi @ w)) + cost @ pi @ w + eps * cp.sum(cp.rel_entr(w, prior))
    cp.Problem(cp.Minimize(objective), [cp.sum(w) == 1, w >= 0]).solve(solver=cp.CLARABEL)
    return w.value


def by_slsqp(p):
    def value(w):
        return energy(p, w[None])[0]

    def slope(w):
        return (primitive_cost(p, w[None]) + 1 + p.eps[:, None] * (np.log(w) + 1 - p.log_prior))[0]

    found = minimize(
        value, np.full(N, 1 / N), jac=slope, method="SLSQP", bounds=[(1e-14, 1)] * N,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-14, "maxiter": 1000},
    )  # fmt: skip
    return found.x


def by_trust_region(p):
    def value(w):
        return energy(p, np.maximum(w, 1e-14)[None])[0]

    found = minimize(
        value, np.full(N, 1 / N), method="trust-constr", bounds=[(1e-9, 1)] * N,
        constraints=LinearConstraint(np.ones((1, N)), 1, 1), options={"gtol": 1e-9, "xtol": 1e-12},
    )  # fmt: skip
    return found.x


def judge(p, theirs, accuracy):
    theirs = np.maximum(theirs, 0.0)[None]
    theirs = theirs / theirs.sum()
    ours = solve(p)
    value, rival = energy(p, ours.weights), energy(p, theirs)
    scale = 1.0 + np.abs(p.action_cost).max()
    assert np.all(value <= rival + 1e-10 + 1e-14 * scale)
    assert np.all(rival <= value + accuracy * scale)


@pytest.mark.parametrize("name", FAMILIES)
def test_clarabel(name):
    for p in singles(name):
        judge(p, by_clarabel(p), accuracy=1e-6)


@pytest.mark.parametrize("name", FAMILIES)
def test_slsqp(name):
    for p in singles(name):
        judge(p, by_slsqp(p), accuracy=1e-6)


@pytest.mark.parametrize("name", ["generic", "biased", "hot"])
def test_trust_region(name):
    judge(singles(name)[0], by_trust_region(singles(name)[0]), accuracy=1e-5)
