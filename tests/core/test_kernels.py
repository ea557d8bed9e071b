"""What the compiled kernels are made of."""

import math
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

from policychord import certify, solve
from policychord.core import _kernels, _sweeps
from policychord.core._method import typical_rounding

from .families import DENSE, FAMILIES, member


def from_python(helper):
    """Helpers are compiled for kernels alone: called from Python they would crash it."""

    @numba.njit
    def each(values):
        return np.array([helper(value) for value in values])

    return each


def test_the_logarithm_is_right_to_two_units_in_the_last_place(rng):
    values = np.concatenate([
        10.0 ** rng.uniform(-300, 0, size=2000),
        rng.uniform(0.0, 1.0, size=2000),
        1.0 - 10.0 ** rng.uniform(-16, -1, size=2000),
        2.0 ** -np.arange(990.0),
        math.sqrt(0.5) * (1.0 + np.arange(-5, 6) * 2.0**-52),
        [1e-300, 1.0, 1.0 + 2.0**-52],
    ])  # fmt: skip
    found = from_python(_sweeps._log)(values)
    exact = np.log(values.astype(np.longdouble))
    off = np.abs(found - exact) / np.spacing(np.maximum(np.abs(exact.astype(float)), 2.0**-60))
    assert off.max() <= 2.0


def test_shared_helpers_compile_as_they_are_given():
    """Kernels are compiled from source where there is no cache, also while the type checker watches."""
    assert from_python(_kernels._typical_rounding)(np.array([50.0])) == typical_rounding(50)


@pytest.fixture
def nothing_compiled(monkeypatch):
    """As on a machine where this is the first problem."""
    monkeypatch.setattr(_kernels, "is_kept", lambda entry: False)
    _kernels._in_python.cache_clear()
    yield monkeypatch.setattr(_kernels, "_kernel_for", None)  # whoever asks for it fails
    _kernels._in_python.cache_clear()


@pytest.mark.parametrize("shape", [(20, 2), (20, 3), (20, 7), (8, 41)])
def test_the_first_small_problems_do_not_wait_for_a_compiler(shape, nothing_compiled, monkeypatch):
    """The same lines in Python: only the order of sums differs, and conjugate gradients stop a little elsewhere."""
    problems = [member(name, (), *shape) for name in FAMILIES if name != "disjoint" or shape[0] >= shape[1]]
    found = [solve(p, throw=False) for p in problems]
    monkeypatch.undo()
    _kernels._in_python.cache_clear()
    for p, early in zip(problems, found, strict=True):
        late = solve(p, throw=False, route="compiled")
        assert early.outcome == late.outcome
        assert abs(early.passes - late.passes) <= 1
        apart = early.certificate.distance + late.certificate.distance
        np.testing.assert_allclose(early.weights, late.weights, rtol=0.0, atol=min(apart, 1e-8))
        assert early.certificate.gap <= 1e-10
        assert certify(p, early.weights).gap <= 1e-10


def _given(d, n):
    """What a kernel takes for one problem: (operands, passes, results)."""
    p = member("generic", (1,), d, n)
    results = np.empty((1, n)), np.empty(1), np.empty(1, int), np.empty(1, np.int8)
    kept = np.empty((1, d)), np.empty((1, d)), np.empty((0, n, n))
    return (p.pi, 1, p.action_cost, p.eps, p.log_prior, p.log_prior, 1e-10), 5000, (*results, *kept)


def test_large_problems_many_and_hard_ones_are_compiled(nothing_compiled, monkeypatch):
    with pytest.raises(TypeError, match="NoneType"):
        solve(member("generic", (1000,), 20, 3))
    monkeypatch.setattr(_kernels, "_PATIENCE", 2)
    with pytest.raises(TypeError, match="NoneType"):
        solve(member("cold", (), 20, 3))
    monkeypatch.setattr(_kernels, "_PATIENCE", 200)
    in_python = sum(_kernels._solve_in_python(False, *_given(20, 3)) for _ in range(1000))
    assert 10 < in_python < 1000


def test_threads_do_not_disturb_each_other():
    problems = [member(name, *DENSE) for name in FAMILIES]
    alone = [solve(p, route="compiled") for p in problems]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda p: solve(p, route="compiled"), problems))
    for one, other in zip(together, alone, strict=True):
        assert np.array_equal(one.log_weights, other.log_weights)
        assert np.array_equal(one.certificate.gap, other.certificate.gap)
