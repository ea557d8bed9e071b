"""The mirror step that both solvers take when Newton's steps are refused; `test_objective.py` has its theorem."""

from functools import partial

import jax
import numpy as np
import pytest

from policychord import primitive_cost
from policychord.core import _descent, _kernels, _method, _sweeps

from .families import member


def by_hand(p, w):
    """w+ proportional to exp( (ln w - h + eps ln prior)/(1 + eps) )."""
    z = (np.log(w) - primitive_cost(p, w) + p.eps[..., None] * p.log_prior) / (1.0 + p.eps[..., None])
    return z - np.log(np.exp(z - z.max(-1, keepdims=True)).sum(-1, keepdims=True)) - z.max(-1, keepdims=True)


def drawn(name, rng):
    """Problems warm enough that no restart comes before the mirror step, and weights to begin with."""
    p = member(name, (12,))
    return p._replace(eps=p.eps + 1.0), rng.dirichlet(np.full(5, 2.0), 12)


def refuse_newton(monkeypatch):
    """No energy falls as much as is asked for: the second pass is refused, the third at the mirror step, the last."""
    monkeypatch.setattr(_method, "ARMIJO", 1e12)
    monkeypatch.setattr(_method, "REJECTIONS_BEFORE_MIRROR", 1)


@pytest.mark.parametrize("name", ["generic", "biased"])
def test_in_jax(name, rng, monkeypatch):
    refuse_newton(monkeypatch)
    p, w = drawn(name, rng)
    found = jax.vmap(partial(_descent.descend, tol=0.0, max_passes=4))(*p, np.log(w))[0]
    np.testing.assert_allclose(found, by_hand(p, w), rtol=1e-9, atol=1e-9)


def test_in_the_kernel(rng, monkeypatch):
    refuse_newton(monkeypatch)
    # as Python, since compiled code has the numbers inside
    for module in (_kernels, _sweeps):
        for name, value in vars(module).copy().items():
            monkeypatch.setattr(module, name, getattr(value, "py_func", value))
    monkeypatch.setattr(_sweeps, "_log", np.log)
    monkeypatch.setattr(_kernels, "compiled", lambda: lambda function: function)
    parts = _sweeps.sweep_dense, _kernels._direction_dense, _kernels._diagonal_dense
    monkeypatch.setattr(_kernels, "_descend_dense", _kernels._descent(*parts))
    monkeypatch.setattr(_kernels, "_kernel_for", lambda wide: _kernels._solve_dense)
    p, w = drawn("generic", rng)
    found = _kernels.solve_batch(*p, np.log(w), 0.0, 4)[0]
    np.testing.assert_allclose(found, by_hand(p, w), rtol=1e-9, atol=1e-9)
