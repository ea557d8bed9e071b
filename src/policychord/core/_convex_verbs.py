"""The same theory for any convex complexity F: the energy, the gate and the certificate of a `ConvexProblem`.

    V(w) = F(w) + eps D(w, w_hat),   S(w) = argmin_s <grad F(w), s> + eps D(s, w_hat),   flow: tau dw/dt = -w + S(w)
    V(w) - V* <= G(w) = <grad F, w - S> + eps (D(w, w_hat) - D(S, w_hat)),   |w - w*|_1 <= sqrt(2 n^(alpha-1) G/eps)

D is the divergence of the regulariser (`regularisers.py`). The bound needs convexity of F and nothing else: it is the
Bregman-PL remark of the paper for the entropy, a generalised Frank-Wolfe gap otherwise.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._types import ArrayLike, in_kind, is_traced, namespace
from . import _checks as checks
from . import regularisers as reg
from ._certificate import gap_rounding, relative_rounding
from ._method import FUNCTION_ROUNDING, UNIT_ROUNDOFF
from .convex import ConvexProblem, checked_convex
from .objective import Certificate

# Problems solved side by side wait for the slowest of them, and so many numbers stay in a processor's cache.
_SIDE_BY_SIDE = 80_000
_OUTSIDE = 1e-6  # weights further than this from the simplex have infinite energy

_Function = Callable[..., Any]


# -------------------------------------------------------------------------- verbs of one problem


def energy_of(problem: ConvexProblem, weights: Any) -> jax.Array:
    """V(w), infinite off the simplex and above the caps."""
    outside = (jnp.abs(jnp.sum(weights) - 1.0) > _OUTSIDE) | jnp.any(weights < 0.0) | _above_a_cap(problem, weights)
    divergence = reg.value(weights, problem.log_prior, problem.alpha)
    return jnp.where(outside, jnp.inf, problem.complexity.value(problem.parameters, weights) + problem.eps * divergence)


def gate_of(problem: ConvexProblem, weights: Any) -> jax.Array:
    """S(w)."""
    g = problem.complexity.gradient(problem.parameters, weights)[0]
    return reg.respond(reg.link(problem.log_prior, problem.alpha) - g / problem.eps, problem.caps, problem.alpha)[0]


class _Judged(NamedTuple):
    """What is known about some weights from the gradient there."""

    gap: Any  # G with its floor
    floor: Any  # what rounding adds to it
    response: Any  # S(w)
    noise: Any  # the largest rounding of the gradient that counts


def judge(problem: ConvexProblem, weights: Any, temperature: Any, g: Any, rounding: Any) -> _Judged:
    """The gap G from the gradient and its rounding; the proof is in docs/explanation/mathematics.md.

    G is <g, w> + T R(w) + T R*(-g/T), and R* is smooth with the constant n^(alpha-1) in the largest entry.
    """
    n, lean = weights.size, reg.link(problem.log_prior, problem.alpha)
    fenchel = reg.fenchel_gap(weights, lean - g / temperature, problem.caps, problem.alpha)
    own = temperature * (1.0 + jnp.abs(reg.link(reg.floored_log(weights), problem.alpha)) + jnp.abs(lean))
    error = rounding + relative_rounding(0, n) * own
    alive = (weights > 0.0) | (fenchel.response > 0.0)
    largest = jnp.max(jnp.where(alive, error, 0.0))
    # what has no weight counts if rounding could give it some
    noise = jnp.max(jnp.where(alive | (fenchel.margin <= 2.0 * (error + largest) / temperature), error, 0.0))
    moved = noise * (fenchel.mismatch + relative_rounding(0, n))
    floor = jnp.minimum(moved + reg.strength(n, problem.alpha) * noise**2 / (2.0 * temperature), 2.0 * noise)
    floor = floor + relative_rounding(0, n) * temperature * fenchel.slope + problem.complexity.slack(problem.parameters)
    return _Judged(temperature * fenchel.gap * gap_rounding(n) + floor, floor, fenchel.response, noise)


def certificate_of(problem: ConvexProblem, weights: Any) -> Certificate:
    """The certificate, with nothing in it if the complexity is not convex."""
    weights = weights / jnp.sum(weights)
    outside = jnp.any(weights < 0.0) | _above_a_cap(problem, weights)
    gap = judge(problem, weights, problem.eps, *problem.complexity.gradient(problem.parameters, weights)).gap
    return certificate_from(problem, jnp.where(outside, jnp.inf, gap))


def _above_a_cap(problem: ConvexProblem, weights: Any) -> Any:
    """By more than rounding, or at all where nothing is allowed."""
    caps = problem.caps
    return False if caps is None else jnp.any(weights > caps + jnp.where(caps > 0.0, _OUTSIDE, 0.0))


def certificate_from(problem: ConvexProblem, gap: Any) -> Certificate:
    """|w - w*|_1 <= sqrt(2 n^(alpha-1) G/eps), and never more than 2."""
    alpha = 1.0 if problem.alpha is None else problem.alpha
    proved = (gap >= 0.0) & (problem.eps > 0.0) & (alpha >= 1.0) & (alpha <= 2.0)
    gap = jnp.where(proved & problem.complexity.convex, gap, jnp.inf)
    spread = reg.strength(problem.log_prior.shape[-1], problem.alpha)
    distance = jnp.sqrt(2.0 * spread * gap / problem.eps) * (1.0 + FUNCTION_ROUNDING * UNIT_ROUNDOFF)
    return problem.complexity.certificate(gap, jnp.where(proved, jnp.minimum(distance, 2.0), 2.0))


def dissipation_of(problem: ConvexProblem, weights: Any) -> jax.Array:
    """dV/dt along the flow with tau = 1: <grad F + eps (l(w) - l(w_hat)), S - w>."""
    g = problem.complexity.gradient(problem.parameters, weights)[0]
    slope = g + problem.eps * (
        reg.link(reg.floored_log(weights), problem.alpha) - reg.link(problem.log_prior, problem.alpha)
    )  # fmt: skip
    moved = gate_of(problem, weights) - weights
    rate = jnp.sum((slope - jnp.sum(weights * slope)) * moved)
    # the entropy's slope is infinite at a weight of zero, which grows unless it is capped at zero
    steep = True if problem.alpha is None else problem.alpha <= 1.0
    grows = (weights <= 0.0) & (True if problem.caps is None else problem.caps > 0.0)
    return jnp.where(steep & jnp.any(grows), -jnp.inf, rate)


# ------------------------------------------------------------------------------ verbs of batches


def over_batch(function: _Function, problem: ConvexProblem, *vectors: ArrayLike) -> Any:
    """`function` of one problem and one row of each of the vectors (..., n), for all of them."""
    lead = [np.shape(vector)[:-1] for vector in vectors]
    batch = np.broadcast_shapes(problem.eps.shape, *lead)
    own = len(problem.eps.shape)

    def flat(array: Any, tail: tuple[int, ...]) -> jax.Array:
        return jnp.broadcast_to(jnp.asarray(array), (*batch, *tail)).reshape((-1, *tail))

    many = jax.tree.map(lambda leaf: flat(leaf, leaf.shape[own:]), problem)
    rows = [flat(vector, np.shape(vector)[-1:]) for vector in vectors]
    answers = _side_by_side(lambda each: function(*each), (many, *rows), int(np.prod(batch)))
    return jax.tree.map(lambda a: a.reshape((*batch, *a.shape[1:])), answers)


def _side_by_side(function: _Function, rows: Any, count: int) -> Any:
    """`function` of each of `count` rows: all at once, or on a CPU in chunks of at most `_SIDE_BY_SIDE` numbers."""
    chunks = min(count, -(-sum(leaf.size for leaf in jax.tree.leaves(rows)) // _SIDE_BY_SIDE))
    if chunks <= 1 or jax.default_backend() != "cpu":
        return jax.vmap(function)(rows)
    size = -(-count // chunks)
    if size * chunks > count:  # the last chunk is filled up, so that one program serves all of them
        index = np.minimum(np.arange(size * chunks), count - 1)
        rows = jax.tree.map(lambda a: a[index], rows)
    return jax.tree.map(lambda a: a[:count], jax.lax.map(function, rows, batch_size=size))


def _normal(weights: Any) -> Any:
    """Weights that compiled programs, which may take the least numbers for zero, do not lose."""
    tiny = np.finfo(np.float64).tiny
    if is_traced(weights) or not np.any((np.asarray(weights) > 0.0) & (np.asarray(weights) < tiny)):
        return weights
    host = np.asarray(weights)
    return namespace(weights).asarray(np.where((host > 0.0) & (host < tiny), tiny, host))


def _verb(function: _Function, check: _Function = checks.check_weights) -> _Function:
    """The same function for a batch of problems and weights: checked, compiled once, answered in kind."""
    compiled = jax.jit(partial(over_batch, function))

    def answer(problem: ConvexProblem, weights: ArrayLike) -> Any:
        problem = checked_convex(problem)
        weights = _normal(check("weights", weights, problem.log_prior))
        return in_kind(lambda: compiled(problem, weights), problem, weights)

    return answer


VERBS: dict[str, _Function] = {
    "primitive_cost": _verb(lambda problem, weights: problem.complexity.gradient(problem.parameters, weights)[0]),
    "complexity": _verb(lambda problem, weights: problem.complexity.value(problem.parameters, weights)),
    "energy": _verb(energy_of),
    "gate": _verb(gate_of),
    "certify": _verb(certificate_of, checks.check_simplex),
    "dissipation": _verb(dissipation_of),
}
