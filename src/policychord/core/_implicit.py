"""The implicit derivative of the optimum, forwards (`push`) and backwards (`pull`), a batch at a time.

With S = diag(sqrt w) and K = Pi^T diag(1/p) Pi, p = Pi w, a change of what is given moves the log-weights by

    (S K S + eps I) y = -S (dg - w.dg),   d ln w = y / S,

where dg is the change of the gradient at fixed weights. Each is the transpose of the other, and JAX is told so: hence
two primitives of our own, with the compiled `pull` inside. The pure JAX route needs none of this (`_descent.tangent`).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.scipy.linalg import cho_factor, cho_solve

from ._descent import by_cg
from ._method import CG_REDUCTION, DENSE_UP_TO, LOG_FLOOR, MIXTURE_FLOOR

_Arrays = tuple[jax.Array, ...]
_Moved = tuple[bool, ...]  # which of pi, cost, eps and log_prior have a tangent


class Kept(NamedTuple):
    """What the derivative needs of a solved batch; batch axes are of equal number, and of equal length or one."""

    pi: jax.Array
    eps: jax.Array
    log_prior: jax.Array
    log_weights: jax.Array
    level: jax.Array  # ln p + s
    over_p: jax.Array
    curvature: jax.Array  # K where it is formed at all, else of size zero


_CORE_AXES = Kept(2, 0, 1, 1, 1, 1, 2)  # type: ignore[arg-type]
NO_SECOND_DERIVATIVE = 'second derivatives of `solve` need route="jax".'
_GIVEN_AXES = 2, 1, 0, 1  # of pi, cost, eps and log_prior, by which derivatives can be taken


def mixture(pi: jax.Array, cost: jax.Array, log_weights: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """ln p + s, 1/p and the curvature, as the compiled solver leaves them."""
    p = jnp.maximum(_times(pi, jnp.exp(log_weights)), MIXTURE_FLOOR)
    wide = pi.shape[-1] > DENSE_UP_TO
    curvature = jnp.zeros((*p.shape[:-1], 0, 0)) if wide else jnp.swapaxes(pi, -1, -2) @ (pi / p[..., None])
    return jnp.log(p) + cost, 1.0 / p, curvature


def push(kept: Kept, tangents: tuple[Any, ...], moved: _Moved) -> jax.Array:
    """The tangent of ln w; `tangents` are those of the inputs that moved."""
    return _push_p.bind(*kept, *tangents, moved=moved)


def pull(kept: Kept, cotangent: jax.Array) -> _Arrays:
    """The cotangents of pi, cost, eps and log_prior, from one of ln w."""
    return tuple(_pull_p.bind(*kept, cotangent, moved=(True,) * len(_GIVEN_AXES)))


# -------------------------------------------------------------------------------- in JAX


def _push(*operands: jax.Array, moved: _Moved) -> jax.Array:
    kept, tangents = Kept(*operands[: len(_CORE_AXES)]), iter(operands[len(_CORE_AXES) :])
    d_pi, d_cost, d_eps, d_log_prior = (next(tangents) if has else None for has in moved)
    z = jnp.maximum(kept.log_weights, LOG_FLOOR)
    w, root_w = jnp.exp(z), jnp.exp(0.5 * z)
    dg = jnp.zeros_like(z)
    if d_pi is not None:
        dg = dg + _on_columns(kept.pi, _times(d_pi, w) * kept.over_p) + _on_columns(d_pi, kept.level)
    if d_cost is not None:
        dg = dg + _on_columns(kept.pi, d_cost)
    if d_eps is not None:
        dg = dg + d_eps[..., None] * (z - kept.log_prior)
    if d_log_prior is not None:
        dg = dg - kept.eps[..., None] * d_log_prior
    return _turn(kept, root_w, -root_w * (dg - jnp.sum(w * dg, axis=-1, keepdims=True))) / root_w


def _pull(*operands: jax.Array, moved: _Moved) -> list[jax.Array]:
    """From a cotangent on ln w to those of the inputs that moved.

    (S K S + eps I) y = cotangent/S - S sum(cotangent), u = S y, q = Pi u; then ds = -q, d ln w_hat = eps u,
    d eps = -u . (ln w - ln w_hat) and dPi_ia = -[ u_a (ln p_i + s_i) + w_a q_i / p_i ].
    """
    cotangents = lax.platform_dependent(
        *operands, cpu=partial(_pull_natively, needs_pi=moved[0]), default=partial(_pull_in_jax, needs_pi=moved[0])
    )
    return [part for part, has in zip(cotangents, moved, strict=True) if has]


def _pull_in_jax(*operands: jax.Array, needs_pi: bool) -> _Arrays:
    kept, cotangent = Kept(*operands[:-1]), operands[-1]
    batch = _batch_of(operands)
    z = jnp.maximum(kept.log_weights, LOG_FLOOR)
    w, root_w = jnp.exp(z), jnp.exp(0.5 * z)
    force = cotangent / root_w - root_w * jnp.sum(cotangent, axis=-1, keepdims=True)
    u = root_w * _turn(kept, root_w, force)
    q = _times(kept.pi, u)
    d_pi = -(u[..., None, :] * kept.level[..., None] + w[..., None, :] * (q * kept.over_p)[..., None])
    d_pi = jnp.broadcast_to(d_pi, (*batch, *kept.pi.shape[-2:])) if needs_pi else jnp.zeros(_no_primitives(kept.pi))
    d_eps = -jnp.sum(u * (kept.log_weights - kept.log_prior), axis=-1)
    return d_pi, -q, jnp.broadcast_to(d_eps, batch), kept.eps[..., None] * u


def _pull_natively(*operands: jax.Array, needs_pi: bool) -> _Arrays:
    from ._native import pull_target_for

    pi, batch = operands[0], _batch_of(operands)
    d, n = pi.shape[-2:]
    target = pull_target_for(n)
    if target is None:
        return _pull_in_jax(*operands, needs_pi=needs_pi)
    primitives = (*batch, d, n) if needs_pi else _no_primitives(pi)
    shapes = [jax.ShapeDtypeStruct(shape, np.float64) for shape in (primitives, (*batch, d), batch, (*batch, n))]
    return tuple(jax.ffi.ffi_call(target, shapes)(*operands))


def _no_primitives(pi: jax.Array) -> tuple[int, ...]:
    return (0, *pi.shape[-2:])


def _turn(kept: Kept, root_w: jax.Array, force: jax.Array) -> jax.Array:
    """Solve (S K S + eps I) y = force."""
    n = force.shape[-1]
    if n > DENSE_UP_TO:
        solve_one = jnp.vectorize(partial(by_cg, reduction=CG_REDUCTION), signature="(d,n),(d),(n),(n),()->(n)")
        return solve_one(kept.pi, 1.0 / kept.over_p, root_w, force, kept.eps)
    system = root_w[..., :, None] * kept.curvature * root_w[..., None, :]
    system = system + kept.eps[..., None, None] * jnp.eye(n)
    batch = np.broadcast_shapes(system.shape[:-2], force.shape[:-1])
    factor = cho_factor(jnp.broadcast_to(system, (*batch, n, n)))
    return cho_solve(factor, jnp.broadcast_to(force, (*batch, n))[..., None])[..., 0]


def _times(pi: jax.Array, v: jax.Array) -> jax.Array:
    return (pi @ v[..., None])[..., 0]


def _on_columns(pi: jax.Array, values: jax.Array) -> jax.Array:
    return (values[..., None, :] @ pi)[..., 0, :]


# ------------------------------------------------------------------- what JAX is told about it


def _batch_of(operands: Any) -> tuple[int, ...]:
    cores = (*_CORE_AXES, 1)  # of a pull, and of a push as far as it goes
    return np.broadcast_shapes(*(a.shape[: a.ndim - core] for a, core in zip(operands, cores, strict=False)))


def _push_shape(*operands: Any, moved: _Moved) -> Any:
    tangents = zip(operands[len(_CORE_AXES) :], _only(moved, _GIVEN_AXES), strict=True)
    batches = [a.shape[: a.ndim - core] for a, core in tangents]
    batch = np.broadcast_shapes(_batch_of(operands[: len(_CORE_AXES)]), *batches)
    return jax.core.ShapedArray((*batch, operands[0].shape[-1]), np.dtype(np.float64))


def _pull_shapes(*operands: Any, moved: _Moved) -> Any:
    batch, (d, n) = _batch_of(operands), operands[0].shape[-2:]
    shapes = _only(moved, ((*batch, d, n), (*batch, d), batch, (*batch, n)))
    return [jax.core.ShapedArray(shape, np.dtype(np.float64)) for shape in shapes]


def _only(moved: _Moved, items: Any) -> list[Any]:
    return [item for item, has in zip(items, moved, strict=True) if has]


def _batched(primitive: Primitive, operands: Any, dims: Any, *, moved: _Moved) -> Any:
    """One more batch axis in front, of length one where an operand is shared."""
    front = [
        jnp.expand_dims(a, 0) if dim is batching.not_mapped else jnp.moveaxis(a, dim, 0)
        for a, dim in zip(operands, dims, strict=True)
    ]
    answer = primitive.bind(*front, moved=moved)
    return (answer, [0] * len(answer)) if primitive.multiple_results else (answer, 0)


def _linear(primitive: Primitive, primals: Any, tangents: Any, *, moved: _Moved) -> Any:
    kept = len(_CORE_AXES)
    if any(type(t) is not ad.Zero for t in tangents[:kept]):
        raise TypeError(NO_SECOND_DERIVATIVE)
    moving = [ad.instantiate_zeros(t) for t in tangents[kept:]]
    return primitive.bind(*primals, moved=moved), primitive.bind(*primals[:kept], *moving, moved=moved)


def _transposed_push(cotangent: Any, *operands: Any, moved: _Moved) -> list[Any]:
    kept, tangents = operands[: len(_CORE_AXES)], operands[len(_CORE_AXES) :]
    asked = [ad.is_undefined_primal(t) for t in tangents]
    where = iter(asked)
    cotangents = iter(_pull_p.bind(*kept, cotangent, moved=tuple(has and next(where) for has in moved)))
    pulled = [
        _summed_to(t.aval.shape, next(cotangents)) if ask else None for t, ask in zip(tangents, asked, strict=True)
    ]
    return [None] * len(kept) + pulled


def _transposed_pull(tangents: Any, *operands: Any, moved: _Moved) -> list[Any]:
    kept, cotangent = operands[: len(_CORE_AXES)], operands[-1]
    pushed = _push_p.bind(*kept, *map(ad.instantiate_zeros, tangents), moved=moved)
    return [None] * len(kept) + [_summed_to(cotangent.aval.shape, pushed)]


def _summed_to(shape: tuple[int, ...], array: jax.Array) -> jax.Array:
    """The cotangent of what was shared is the sum over those who shared it."""
    axes = tuple(k for k, size in enumerate(shape) if size != array.shape[k])
    return jnp.sum(array, axis=axes, keepdims=True) if axes else array


def _primitive(name: str, function: Any, shapes: Any, transpose: Any) -> Primitive:
    made = Primitive(name)
    made.multiple_results = function is _pull
    made.def_impl(jax.jit(function, static_argnames="moved"))
    made.def_abstract_eval(shapes)
    ad.primitive_jvps[made] = partial(_linear, made)
    ad.primitive_transposes[made] = transpose
    batching.primitive_batchers[made] = partial(_batched, made)
    mlir.register_lowering(made, mlir.lower_fun(function, multiple_results=made.multiple_results))
    return made


_push_p = _primitive("policychord_push", _push, _push_shape, _transposed_push)
_pull_p = _primitive("policychord_pull", _pull, _pull_shapes, _transposed_pull)
