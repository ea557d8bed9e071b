"""What the compiled kernels are made of."""

import math
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

from policychord import solve
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


def test_threads_do_not_disturb_each_other():
    problems = [member(name, *DENSE) for name in FAMILIES]
    alone = [solve(p, route="compiled") for p in problems]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda p: solve(p, route="compiled"), problems))
    for one, other in zip(together, alone, strict=True):
        assert np.array_equal(one.log_weights, other.log_weights)
        assert np.array_equal(one.certificate.gap, other.certificate.gap)
