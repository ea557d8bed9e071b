"""The solver inside `jit`, `vmap` and `grad`: three operations of JAX, for batches of any shape.

`solve` chooses an implementation when a program is lowered for its platform, so that the other one is never traced. Its
derivative is `push`, of which `pull` is the transpose (`_implicit.py`); on a CPU `solve` and `pull` are native calls.
Batch axes of all operands are of equal number, and of equal length or one.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from .._types import Array, ArrayLike, Scalars
from . import _descent, _implicit
from ._implicit import INPUTS, KEPT, Kept, Moved, batch_of, input_shapes, only
from ._method import DENSE_UP_TO, MAX_PASSES

Route = Literal["auto", "compiled", "jax"]
_Arrays = tuple[jax.Array, ...]
_OPERANDS = "(d,n)", "(d)", "()", "(n)", "(n)", "()"  # pi, cost, eps, log_prior, log_start, tol
_NO_SECOND_DERIVATIVE = 'second derivatives of `solve` need route="jax".'


def solve_traced(
    route: Route, tol: ArrayLike, pi: Array, cost: Array, eps: Scalars, log_prior: Array, log_start: Array | None
) -> _Arrays:
    """Log-weights, gap, passes and outcome of a batch; inside a trace "compiled" means "auto"."""
    log_start = log_prior if log_start is None else log_start
    inputs = [jnp.asarray(a, jnp.float64) for a in (pi, cost, eps, log_prior)]
    tol = jnp.reshape(jnp.asarray(tol, jnp.float64), (1,) * np.ndim(eps))
    aside = [lax.stop_gradient(jnp.asarray(a, jnp.float64)) for a in (log_start, tol)]
    return tuple(_solve_p.bind(*inputs, *aside, route="jax" if route == "jax" else "auto", keep=False))


def pull(kept: Kept, cotangent: jax.Array) -> _Arrays:
    """The cotangents of pi, cost, eps and log_prior, from one of ln w."""
    return tuple(_pull_p.bind(*kept, cotangent, moved=(True,) * len(INPUTS)))


# ------------------------------------------------------------------------------------ to solve


def _solve_in_jax(*operands: jax.Array, route: Route, keep: bool) -> _Arrays:
    descend = partial(_descent.descend, max_passes=MAX_PASSES)
    solution = jnp.vectorize(descend, signature=f"{','.join(_OPERANDS)}->(n),(),(),()")(*operands)
    pi, cost, eps, log_prior, *_ = operands
    return (*solution, *_implicit.keep(pi, cost, eps, log_prior, solution[0])[4:]) if keep else solution


def _solve_natively(*operands: jax.Array, route: Route, keep: bool) -> _Arrays:
    """The compiled solver on XLA's own buffers; a callback would copy them and hold up Python."""
    if route == "jax":
        return _solve_in_jax(*operands, route=route, keep=keep)
    from ._native import target_for

    target = target_for(operands[0].shape[-1])
    if target is None:
        return _solve_by_callback(*operands, keep=keep)
    return tuple(jax.ffi.ffi_call(target, _answers(*operands, keep=keep))(*operands))


def _solve_by_callback(*operands: jax.Array, keep: bool) -> _Arrays:
    def host(*arrays: Any) -> Any:
        from ._kernels import solve_batch

        pi, cost, eps, log_prior, log_start, tol = arrays
        return solve_batch(pi, cost, eps, log_prior, log_start, float(np.min(tol)), MAX_PASSES, keep)

    return jax.pure_callback(host, tuple(_answers(*operands, keep=keep)), *operands)


def _answers(*operands: Any, keep: bool, route: Route = "auto") -> list[jax.ShapeDtypeStruct]:
    """Log-weights, gap, passes, outcome and, to keep for a derivative, ln p + s, 1/p and the curvature."""
    batch, (d, n) = batch_of(operands, _OPERANDS), operands[0].shape[-2:]
    side = n if n <= DENSE_UP_TO else 0
    shapes = [((*batch, n), np.float64), (batch, np.float64), (batch, np.int64), (batch, np.int8)]
    shapes += [((*batch, *tail), np.float64) for tail in ((d,), (d,), (side, side)) if keep]
    return [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]


def _differentiate(primals: Any, tangents: Any, *, route: Route, keep: bool) -> tuple[Any, Any]:
    if keep:
        raise TypeError(_NO_SECOND_DERIVATIVE)
    moved = tuple(type(t) is not ad.Zero for t in tangents[: len(INPUTS)])
    moving = [t for t in tangents[: len(INPUTS)] if type(t) is not ad.Zero]
    pi, cost, eps, log_prior, *_ = primals
    if route == "jax":  # in operations of JAX alone, which have derivatives in turn
        solution = _solve_p.bind(*primals, route=route, keep=False)
        kept = _implicit.keep(pi, cost, eps, log_prior, solution[0], always=True)
        change = _implicit.push(*kept, *moving, moved=moved)
    else:
        *solution, level, over_p, curvature = _solve_p.bind(*primals, route=route, keep=True)
        kept = Kept(pi, eps, log_prior, solution[0], level, over_p, curvature)
        (change,) = _push_p.bind(*kept, *moving, moved=moved)
    return solution, [change, *(ad.Zero(jax.typeof(a).to_tangent_aval()) for a in solution[1:])]


# ------------------------------------------------------------------------------ its derivative


def _push(*operands: jax.Array, moved: Moved) -> list[jax.Array]:
    return [_implicit.push(*operands, moved=moved)]


def _pull_natively(*operands: jax.Array, moved: Moved) -> list[jax.Array]:
    from ._native import pull_target_for

    pi = operands[0]
    target = pull_target_for(pi.shape[-1])
    if target is None:
        return list(_implicit.pull(*operands, moved=moved))
    shapes = input_shapes(batch_of(operands, (*KEPT, "(n)")), *pi.shape[-2:])
    if not moved[0]:  # the kernel fills what has space
        shapes[0] = jax.ShapeDtypeStruct((0, *pi.shape[-2:]), np.float64)
    return only(moved, jax.ffi.ffi_call(target, shapes)(*operands))


def _push_shape(*operands: Any, moved: Moved) -> list[jax.ShapeDtypeStruct]:
    batch = batch_of(operands, (*KEPT, *only(moved, INPUTS)))
    return [jax.ShapeDtypeStruct((*batch, operands[0].shape[-1]), np.float64)]


def _pull_shapes(*operands: Any, moved: Moved) -> list[jax.ShapeDtypeStruct]:
    return only(moved, input_shapes(batch_of(operands, (*KEPT, "(n)")), *operands[0].shape[-2:]))


def _linear(primitive: Primitive, primals: Any, tangents: Any, *, moved: Moved) -> tuple[Any, Any]:
    if any(type(t) is not ad.Zero for t in tangents[: len(KEPT)]):
        raise TypeError(_NO_SECOND_DERIVATIVE)
    moving = [ad.instantiate_zeros(t) for t in tangents[len(KEPT) :]]
    return primitive.bind(*primals, moved=moved), primitive.bind(*primals[: len(KEPT)], *moving, moved=moved)


def _transposed_push(cotangents: Any, *operands: Any, moved: Moved) -> list[Any]:
    kept, tangents = operands[: len(KEPT)], operands[len(KEPT) :]
    asked = [ad.is_undefined_primal(t) for t in tangents]
    where = iter(asked)
    pulled = iter(_pull_p.bind(*kept, *cotangents, moved=tuple(has and next(where) for has in moved)))
    answers = [_summed_to(t.aval.shape, next(pulled)) if ask else None for t, ask in zip(tangents, asked, strict=True)]
    return [None] * len(kept) + answers


def _transposed_pull(tangents: Any, *operands: Any, moved: Moved) -> list[Any]:
    kept, cotangent = operands[: len(KEPT)], operands[-1]
    (pushed,) = _push_p.bind(*kept, *map(ad.instantiate_zeros, tangents), moved=moved)
    return [None] * len(kept) + [_summed_to(cotangent.aval.shape, pushed)]


def _summed_to(shape: tuple[int, ...], array: jax.Array) -> jax.Array:
    """The cotangent of what was shared is the sum over those who shared it."""
    axes = tuple(k for k, size in enumerate(shape) if size != array.shape[k])
    return jnp.sum(array, axis=axes, keepdims=True) if axes else array


# --------------------------------------------------------------------- how JAX knows about them


def _primitive(name: str, in_jax: Callable, shapes: Callable, natively: Callable | None = None) -> Primitive:
    """An operation of JAX with several results; on a CPU it is `natively`, if there is such a function."""
    made = Primitive(f"policychord_{name}")
    made.multiple_results = True

    def batch(operands: Any, dims: Any, **settings: Any) -> Any:
        """One more batch axis in front, of length one where an operand is shared."""
        front = [
            jnp.expand_dims(a, 0) if dim is batching.not_mapped else jnp.moveaxis(a, dim, 0)
            for a, dim in zip(operands, dims, strict=True)
        ]
        answers = made.bind(*front, **settings)
        return answers, [0] * len(answers)

    def abstract(*operands: Any, **settings: Any) -> Any:
        return [jax.core.ShapedArray(a.shape, a.dtype) for a in shapes(*operands, **settings)]

    made.def_impl(jax.jit(made.bind, static_argnames=("route", "keep", "moved")))
    made.def_abstract_eval(abstract)
    batching.primitive_batchers[made] = batch
    mlir.register_lowering(made, mlir.lower_fun(in_jax, multiple_results=True))
    if natively is not None:
        mlir.register_lowering(made, mlir.lower_fun(natively, multiple_results=True), platform="cpu")
    return made


_solve_p = _primitive("solve", _solve_in_jax, _answers, _solve_natively)
_push_p = _primitive("push", _push, _push_shape)
_pull_p = _primitive("pull", _implicit.pull, _pull_shapes, _pull_natively)
ad.primitive_jvps[_solve_p] = _differentiate
ad.primitive_jvps[_push_p] = partial(_linear, _push_p)
ad.primitive_jvps[_pull_p] = partial(_linear, _pull_p)
ad.primitive_transposes[_push_p] = _transposed_push
ad.primitive_transposes[_pull_p] = _transposed_pull
