"""What the two integrations, flow and circuit, have in common."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .._types import ArrayLike, Scalars, Weights, in_kind, is_traced
from ._checks import check_number, check_simplex
from .equilibrium import ConvergenceError

_Record = TypeVar("_Record")


def check_times(t1: float, tau: float, save: int) -> None:
    check_number("t1", t1)
    check_number("tau", tau)
    if not (isinstance(save, int | np.integer) and save >= 2):
        raise ValueError(f"save = {save!r}: at least the first and the last moment are kept, so pass an integer >= 2.")


def first_weights(start: ArrayLike | None, log_prior: Weights) -> Weights:
    """Where a path begins: uniform unless `start` says where."""
    n = log_prior.shape[-1]
    return np.full(n, 1.0 / n) if start is None else check_simplex("start", start, log_prior)


def follow(velocity: Callable[..., Any], method: Any, begin: Any, times: Any, tolerances: Any, max_steps: int) -> Any:
    """The states at `times` of dx/dt = velocity(t, x, nothing); infinity from where the integrator gave up."""
    import diffrax  # slow to import, and only the two integrators need it

    rtol, atol = tolerances
    return diffrax.diffeqsolve(
        diffrax.ODETerm(velocity), method, t0=times[0], t1=times[-1], dt0=None, y0=begin,
        saveat=diffrax.SaveAt(ts=times), stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
        max_steps=max_steps, throw=False,
    ).ys  # fmt: skip


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
