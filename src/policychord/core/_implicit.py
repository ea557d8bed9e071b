"""The implicit derivative of the optimum: one rule for every problem and every route.

At the optimum rho = grad F + eps (l(w) - l(w_hat)) is the same number mu for all weights inside their bounds; l is the
link of the regulariser, ln for the entropy. With D = dw/dl(w), zero on the bounds, and H the curvature of F, a change
d rho at fixed weights moves them by dw = D v,

    H D v + eps v = d mu - d rho,   D . v = 0,

which is Newton's step for d rho (`newton_step`; `_newton.py` searches with it too). For a mixture with the entropy D is
diag(w), H is K = Pi^T diag(1/p) Pi with p = Pi w, v is d ln w, and the system is (S K S + eps I) y = -S (d rho - d mu)
with S = diag(sqrt w) and y = S v: as `push` here, and transposed in `_kernels.py`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import cho_factor, cho_solve
from jax.scipy.sparse.linalg import cg

from ._method import CG_REDUCTION, DENSE_UP_TO, LOG_FLOOR, MIXTURE_FLOOR


class _Step(NamedTuple):
    """A Newton step on the simplex."""

    moved: jax.Array  # dw, which sums to zero
    bend: jax.Array  # H dw
    share: jax.Array  # of each weight in a balanced sum; zeros if all are on their bounds


def newton_step(d: Any, rho: Any, temperature: Any, curvature: Any, reduction: Any, damping: Any = 0.0) -> _Step:
    """dw = D v with rho + (H + damping) D v + T v = mu inside the bounds and D . v = 0.

    `curvature` is H, or a function that multiplies by it. Sums over all weights are balanced by how far each would move
    alone, since a small weight that F holds fast must not take on the rounding of a large one.
    """
    q, formed = jnp.sqrt(d), not callable(curvature)
    own = jnp.diagonal(curvature) if formed else jnp.zeros_like(d)
    ease = d / (temperature + (own + damping) * d)
    share = ease / _or_one(jnp.sum(ease))
    force = q * (jnp.sum(share * rho) - rho)
    if formed:
        system = cho_factor(q[:, None] * curvature * q + jnp.diag(temperature + damping * d))
        # apart, because under differentiation one of them is a tangent and the other is not
        pulled, level = cho_solve(system, force), cho_solve(system, q)
        moved = q * (pulled - level * (q @ pulled) / _or_one(q @ level))
        moved = moved - share * jnp.sum(moved)
        return _Step(moved, curvature @ moved, share)
    total = _or_one(jnp.sum(d))

    def project(x: Any) -> jax.Array:
        return x - q * (q @ x) / total

    def times(x: Any) -> jax.Array:
        x = project(x)
        return project(q * curvature(q * x)) + temperature * x

    def search(times: Callable, force: Any) -> jax.Array:
        return cg(times, force, tol=reduction, maxiter=4 * d.size)[0]

    # the start of JAX's own search counts as a tangent, and would have no transpose
    y = lax.custom_linear_solve(times, project(force), search, search, symmetric=True)
    moved = q * project(y)
    return _Step(moved, curvature(moved), share)


def _or_one(total: jax.Array) -> jax.Array:
    return jnp.where(total > 0.0, total, 1.0)


# ------------------------------------------------------------------- a mixture with the entropy


class Kept(NamedTuple):
    """What the derivative needs of a solved batch; batch axes are of equal number, and of equal length or one."""

    pi: jax.Array
    eps: jax.Array
    log_prior: jax.Array
    log_weights: jax.Array
    level: jax.Array  # ln p + s
    over_p: jax.Array
    curvature: jax.Array  # K where it is formed at all, else of size zero


KEPT = "(d,n)", "()", "(n)", "(n)", "(d)", "(d)", "(k,k)"  # the core axes of its arrays
INPUTS = "(d,n)", "(d)", "()", "(n)"  # pi, cost, eps and log_prior, by which derivatives can be taken
Moved = tuple[bool, ...]  # which of them have a tangent


def keep(
    pi: jax.Array, cost: jax.Array, eps: jax.Array, log_prior: jax.Array, log_weights: jax.Array, *,
    always: bool = False,
) -> Kept:  # fmt: skip
    """What the compiled solver leaves for the derivative; of more than a few weights the curvature only if `always`."""
    p = jnp.maximum((pi @ jnp.exp(log_weights)[..., None])[..., 0], MIXTURE_FLOOR)
    formed = always or pi.shape[-1] <= DENSE_UP_TO
    curvature = jnp.swapaxes(pi, -1, -2) @ (pi / p[..., None]) if formed else jnp.zeros((*p.shape[:-1], 0, 0))
    return Kept(pi, eps, log_prior, log_weights, jnp.log(p) + cost, 1.0 / p, curvature)


def push(*operands: jax.Array, moved: Moved) -> jax.Array:
    """The tangent of ln w from the arrays of `Kept` and the tangents of those inputs that moved."""

    def tangent(*operands: jax.Array) -> jax.Array:
        kept, tangents = Kept(*operands[: len(KEPT)]), iter(operands[len(KEPT) :])
        d_pi, d_cost, d_eps, d_log_prior = (next(tangents) if has else None for has in moved)
        z = jnp.maximum(kept.log_weights, LOG_FLOOR)
        w = jnp.exp(z)
        d_rho = jnp.zeros_like(z)
        if d_pi is not None:
            d_rho = d_rho + ((d_pi @ w) * kept.over_p) @ kept.pi + kept.level @ d_pi
        if d_cost is not None:
            d_rho = d_rho + d_cost @ kept.pi
        if d_eps is not None:
            d_rho = d_rho + d_eps * (z - kept.log_prior)
        if d_log_prior is not None:
            d_rho = d_rho - kept.eps * d_log_prior
        formed = kept.curvature.size > 0
        curvature = kept.curvature if formed else lambda x: ((kept.pi @ x) * kept.over_p) @ kept.pi
        return newton_step(w, d_rho, kept.eps, curvature, CG_REDUCTION).moved / w

    signature = ",".join((*KEPT, *only(moved, INPUTS)))
    return jnp.vectorize(tangent, signature=f"{signature}->(n)")(*operands)


def pull(*operands: jax.Array, moved: Moved) -> tuple[jax.Array, ...]:
    """Its transpose: the cotangents of those inputs, from the arrays of `Kept` and a cotangent of ln w."""
    *kept, cotangent = operands
    batch = np.broadcast_shapes(batch_of(kept, KEPT), cotangent.shape[:-1])
    transposed = jax.linear_transpose(
        lambda *tangents: push(*kept, *tangents, moved=moved), *only(moved, input_shapes(batch, *kept[0].shape[-2:]))
    )
    return transposed(jnp.broadcast_to(cotangent, (*batch, cotangent.shape[-1])))


def only(moved: Moved, items: Any) -> list[Any]:
    """Those items that belong to an input which moved."""
    return [item for item, has in zip(items, moved, strict=True) if has]


def batch_of(operands: Any, cores: Any) -> tuple[int, ...]:
    """The batch shape to which arrays with these core axes broadcast."""
    axes = [core.count(",") + (core != "()") for core in cores]
    return np.broadcast_shapes(*(a.shape[: a.ndim - core] for a, core in zip(operands, axes, strict=True)))


def input_shapes(batch: tuple[int, ...], d: int, n: int) -> list[jax.ShapeDtypeStruct]:
    """Of pi, cost, eps and log_prior."""
    return [jax.ShapeDtypeStruct((*batch, *core), np.float64) for core in ((d, n), (d,), (), (n,))]
