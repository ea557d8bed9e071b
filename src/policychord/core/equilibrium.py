"""`solve`: the optimal weights of a gating problem, with their certificate.

The method. Work with z = ln w, in which the gradient of the energy is g = h + eps (z - ln w_hat).

1. Newton: with S = diag(sqrt w) and K = Pi^T diag(1/Pi w) Pi, solve (S K S + eps I) y = -S (g - w.g) and
   move z by y/S. S K S has its spectrum in [0, 1], so the system is never worse conditioned than 1 + 1/eps.
   Few primitives: Cholesky. Many: conjugate gradients, the matrix is never formed; a primitive of negligible weight
   that wants to grow, whose part of the residual would be lost in the rounding of the others, takes the step of its
   own diagonal.
2. A step that does not lower the energy enough is rejected. The first time, start again hot: at temperature 1 from
   the prior, cooling by 0.3 whenever the gap is below a tenth of the temperature. Later, shorten the step.
3. Where rounding hides whether the energy fell, a step counts if it lowers the gap by a tenth, or if it descended:
   the energy is convex, so g.(w - w_before) <= 0 at the new weights proves that it fell. Without this, two vertices of
   the same energy would swap for ever, one way because the energy seems to fall, the other way because the gap does.
4. After eight rejections in a row take the mirror step z - g/(1 + eps). F is 1-smooth relative to the entropy, so
   it lowers the energy whatever the problem.
5. Stop on the certificate, never on the size of a step, or after 100 passes in which rounding made up half of it.
   After 5,000 passes try once more: hot from the prior, cooling by 0.7.

One pass over the primitives gives everything a turn needs. Two implementations of these lines exist, compiled
(`_kernels.py`) and JAX (`_descent.py`); `solve` chooses between them, inside a trace by `_traced.py`.
"""

from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._types import ArrayLike, Counts, Flags, Scalars, Weights, in_kind, is_traced, namespace, require_float64
from ._checks import check_number, check_simplex, joint_batch, shown
from ._method import LOG_FLOOR, MAX_PASSES, Outcome
from ._traced import Route, solve_traced
from .objective import AnyProblem, Certificate, Problem, certificate_from_gap, checked_any, spread_over

if TYPE_CHECKING:
    from .convex import ConvexProblem
else:  # loaded when it is first needed
    ConvexProblem = Any

_jitted = jax.jit(solve_traced, static_argnums=0)


class Equilibrium(NamedTuple):
    """The optimal weights and the proof of it."""

    weights: Weights  # with the entropy never exactly zero: at least exp(-600)
    log_weights: Weights  # -inf where a weight is exactly zero
    certificate: Certificate
    passes: Counts  # evaluations of the gradient that it took
    outcome: Counts  # an `Outcome` for each problem

    @property
    def converged(self) -> Flags:
        """Whether certificate.gap <= tol."""
        return namespace(self.outcome).asarray(self.outcome == Outcome.CONVERGED)


class ConvergenceError(ValueError):
    """A problem could not be solved to the tolerance asked for."""


_CONVERGED, _LOCAL = int(Outcome.CONVERGED), int(Outcome.LOCAL)  # comparing with the enum itself is slow
_REMEDY = {
    Outcome.NOT_CONVERGED: "start from the prior (start=None), or accept a larger tol",
    Outcome.ROUNDING_LIMIT: "divide the cost, raise eps, or accept a larger tol",
    Outcome.BAD_INPUT: "build the problem with problem(...), which names what is wrong",
    Outcome.NOT_CONVEX: "use a convex complexity; nothing can be certified for another",
    Outcome.NOT_SMOOTH: "round the kink off, or accept a larger tol",
}


def solve(
    problem: AnyProblem,
    tol: float = 1e-10,
    start: ArrayLike | None = None,
    *,
    route: Route = "auto",
    throw: bool = True,
) -> Equilibrium:
    """The weights that minimise V(w) = F(w) + eps KL(w || w_hat), to a gap of at most `tol`.

    Any other complexity or regulariser of `problem` is solved by one Newton method in JAX (`_newton.py`).

    `start` gives weights to begin with, such as the previous step's; the prior otherwise. NumPy arrays in, NumPy
    arrays out; JAX arrays in, JAX arrays out. Raises `ConvergenceError` if any problem misses `tol`. With
    `throw=False`, and under JAX tracing, where nothing can be raised, every problem keeps its own `outcome` and
    certificate: one that cannot reach `tol` leaves the others as they are alone, and its own gap is still proved.

    `route` is for those who need it: "compiled" (CPU) and "jax" (any device) force one implementation. Both
    support derivatives, forwards and backwards; second derivatives need "jax".
    """
    problem = checked_any(problem)
    tol = tol if is_traced(tol) and np.shape(tol) == () else check_number("tol", tol)
    if not isinstance(route, str) or route not in ("auto", "compiled", "jax"):
        raise ValueError(f'route = {shown(route)}: choose "auto", "compiled" or "jax".')
    if isinstance(problem, Problem):
        answer = _solve_paper(problem, tol, start, route)
    else:
        answer = _solve_general(problem, tol, start)
    if throw and not is_traced(answer.outcome):
        _raise_unless_solved(problem, answer, tol)
    return answer


def _solve_paper(problem: Problem, tol: Any, start: ArrayLike | None, route: Route) -> Equilibrium:
    """`solve` for the paper's own problem: a mixture with the entropy."""
    log_start = None
    if start is not None:
        start = check_simplex("start", start, problem.log_prior)
        problem = spread_over(problem, joint_batch("start", start, problem.log_prior))
        xp = namespace(start)
        log_start = xp.broadcast_to(xp.log(xp.maximum(start, np.exp(LOG_FLOOR))), problem.log_prior.shape)
    xp = namespace(*problem, log_start)

    if is_traced(*problem, log_start, tol):
        require_float64()
        return _equilibrium(jnp, problem.eps, *solve_traced(route, tol, *problem, log_start))

    if route == "jax" or (route == "auto" and not _on_cpu(*problem)):
        with jax.enable_x64(True):
            solution = jax.tree.map(xp.asarray, _jitted("jax", tol, *problem, log_start))
    else:
        from ._kernels import solve_batch  # numba is loaded when it is first needed

        solution = solve_batch(*problem, log_start, tol, MAX_PASSES)
        solution = solution if xp is np else tuple(xp.asarray(a) for a in solution)
    return _equilibrium(xp, problem.eps, *solution)


def _solve_general(problem: ConvexProblem, tol: Any, start: ArrayLike | None) -> Equilibrium:
    """`solve` for another complexity or regulariser."""
    from ._newton import solve_convex  # loaded when it is first needed

    log_prior = problem.log_prior
    begin = namespace(log_prior).exp(log_prior) if start is None else check_simplex("start", start, log_prior)

    def run() -> Equilibrium:
        weights, certificate, passes, outcome = solve_convex(problem, begin, tol)
        alive = weights > 0.0
        log_weights = jnp.where(alive, jnp.log(jnp.where(alive, weights, 1.0)), -jnp.inf)
        return Equilibrium(weights, log_weights, certificate, passes, outcome)

    return in_kind(run, problem, begin, tol)


def _equilibrium(
    xp: ModuleType, eps: Scalars, log_weights: Weights, gap: Scalars, passes: Counts, outcome: Counts
) -> Equilibrium:
    # what is certified are weights above the floor; log_weights go on below it
    weights = xp.exp(xp.maximum(log_weights, LOG_FLOOR))
    return Equilibrium(weights, log_weights, certificate_from_gap(gap, eps), passes, outcome)


def _on_cpu(*arrays: ArrayLike) -> bool:
    on_devices = (a for a in arrays if type(a) is not np.ndarray and isinstance(a, jax.Array))
    return all(d.platform == "cpu" for a in on_devices for d in a.devices())


def _raise_unless_solved(problem: AnyProblem, answer: Equilibrium, tol: float) -> None:
    """Say of the first problem without an answer why it has none."""
    outcome = np.asarray(answer.outcome)
    bad = (outcome != _CONVERGED) & (outcome != _LOCAL)
    if not np.logical_or.reduce(bad, axis=None):
        return
    where = tuple(int(i) for i in np.argwhere(bad)[0])
    gap, eps = (float(np.broadcast_to(np.asarray(a), bad.shape)[where]) for a in (answer.certificate.gap, problem.eps))
    why, cost_range = Outcome(int(outcome[where])), ""
    remedy = _REMEDY[why]
    if isinstance(problem, Problem):
        cost = np.broadcast_to(np.asarray(problem.action_cost), (*bad.shape, problem.action_cost.shape[-1]))[where]
        cost_range = f", cost from {cost.min():.3g} to {cost.max():.3g}"
        # columns sum to one up to rounding, and so a constant counts
        if why is Outcome.ROUNDING_LIMIT and np.abs(cost).min() > np.ptp(cost):
            remedy = f"subtract a constant from the cost, {remedy}"
    raise ConvergenceError(
        f"{int(bad.sum())} of {bad.size} problems did not reach tol = {tol:.1e}; the first, at index {where}, stopped "
        f"at a gap of {gap:.3g} (eps = {eps:.3g}{cost_range}). {why.sentence} Remedy: {remedy}."
    )
