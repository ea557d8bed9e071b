"""What the two integrations, flow and circuit, have in common."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .._types import Scalars, in_kind, is_traced
from ._checks import check_number
from .equilibrium import ConvergenceError

_Record = TypeVar("_Record")


def check_times(t1: float, tau: float, save: int) -> None:
    check_number("t1", t1)
    check_number("tau", tau)
    if not (isinstance(save, int | np.integer) and save >= 2):
        raise ValueError(f"save = {save!r}: at least the first and the last moment are kept, so pass an integer >= 2.")


def integrated(name: str, integrate: Callable[[], _Record], problem: Any, *others) -> _Record:
    """Run an integration in float64 and return it in kind, or say how far it came."""

    def run() -> _Record:
        path: Any = integrate()
        if not is_traced(path.weights):
            _raise_unless_finite(path, name, problem.eps)
        return path

    return in_kind(run, problem, *others)


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
