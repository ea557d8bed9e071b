"""What the two integrations, flow and circuit, have in common."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from .._types import Scalars, is_traced, namespace, require_float64
from ._checks import check_number
from .equilibrium import ConvergenceError

_Record = TypeVar("_Record")


def check_times(t1: float, tau: float, save: int) -> None:
    check_number("t1", t1)
    check_number("tau", tau)
    if not (isinstance(save, int | np.integer) and save >= 2):
        raise ValueError(f"save = {save!r}: at least the first and the last moment are kept, so pass an integer >= 2.")


def integrated(name: str, integrate: Callable[[], _Record], problem: Any, *others) -> _Record:
    """Run an integration in float64 and return it in kind: NumPy for NumPy, JAX for JAX."""
    arrays = [*jax.tree.leaves(problem), *others]
    if is_traced(*arrays):
        require_float64()
        return integrate()
    with jax.enable_x64(True):
        path = integrate()
        _raise_unless_finite(path, name, problem.eps)
        return path if namespace(*arrays) is jnp else jax.tree.map(np.asarray, path)


def _raise_unless_finite(path, name: str, eps: Scalars) -> None:
    """The integrators leave infinity where they gave up."""
    reached = np.isfinite(np.asarray(path.weights)).all(axis=-1)
    if not reached.all():
        t = float(np.asarray(path.times)[reached.reshape(-1, reached.shape[-1]).all(axis=0)].max())
        raise ConvergenceError(
            f"the {name} could not be integrated beyond t = {t:.3g}: at eps = {float(np.min(eps)):.3g} it is too "
            "stiff, or the complexity has a kink. `solve` gives its equilibrium at any temperature; for a path, raise "
            "eps or round the kink off."
        )
