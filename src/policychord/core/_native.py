"""The compiled solver as a native call inside `jit`: XLA runs it on its own buffers, without Python and without copies.

XLA hands a frame to the call, a C structure of eight-byte words (`xla/ffi/api/c_api.h`, major version 0):

    frame:  1 extension  2 api  7 number of arguments  9 arguments  12 number of results  14 results
    buffer: 2 type  3 data  4 rank  5 dims             extension: 1 kind  3 metadata      metadata: 3 our version
    api:    4 its version  6 make an error             error: 0 its size  2 sentence  3 code

Every frame is measured before it is read: whatever called us, nothing beyond its buffers is touched.
"""

import ctypes
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic

from ._compile import compile_callback, compiled, once
from ._kernels import NOT_CONVERGED, _kernel_for, pull_dense, pull_wide, solve_batch
from ._method import DENSE_UP_TO, MAX_PASSES

_MAJOR_VERSION = 0  # of the frame's layout
_METADATA = 1  # the kind of extension by which XLA asks for our version
FLOAT64, INT64, _INT8 = 12, 5, 2  # types of buffers
_INVALID_ARGUMENT = 3  # code of an error
_REFUSAL = tuple(b"policychord: the shapes or types of these arrays do not fit together; nothing was read.\0")
_LARGE_PAGE, _ADVISE_LARGE_PAGES = 2**21, 14  # bytes; MADV_HUGEPAGE of Linux

if sys.platform == "linux":
    _madvise = types.ExternalFunction("madvise", types.int32(types.intp, types.uintp, types.int32))
else:

    @compiled()
    def _madvise(_address, _length, _advice):
        return 0


@once
def target_for(n: int) -> str | None:
    """The name under which XLA finds the solver for n primitives; None if it does not work with this JAX."""
    return _verified(n > DENSE_UP_TO) if frames_are_known() else None


def pull_target_for(n: int) -> str | None:
    """The same for the transpose of its derivative, which reads the same frames."""
    return None if target_for(n) is None else _registered_pull(n > DENSE_UP_TO)


def frames_are_known() -> bool:
    """Whether this JAX hands over frames of the layout that is read here."""
    path = Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"
    return path.is_file() and f"#define XLA_FFI_API_MAJOR {_MAJOR_VERSION}\n" in path.read_text(encoding="utf-8")


@once
def _verified(wide: bool) -> str | None:
    """The name, once the call has answered two problems that share their primitives as the kernel itself does."""
    name, n = _registered(wide), DENSE_UP_TO + 1 if wide else 3
    place = np.arange(4.0)[:, None] - np.linspace(0.0, 3.0, n)
    pi = np.exp(-(place**2))
    pi, cost, eps = pi / pi.sum(0), np.array([[0.0, 1.0, 0.5, 2.0], [1.0, 0.0, 0.2, 0.1]]), np.array([0.1, 0.7])
    operands = pi[None], cost, eps, np.full((1, n), -np.log(n)), np.full((2, n), -np.log(n)), np.full(1, 1e-10)
    shapes = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in (
        ((2, n), np.float64), ((2,), np.float64), ((2,), np.int64), ((2,), np.int8),
    )]  # fmt: skip
    try:
        with jax.ensure_compile_time_eval(), jax.enable_x64(True):
            answer = jax.jit(jax.ffi.ffi_call(name, shapes))(*operands)
        if all(map(np.array_equal, answer, solve_batch(*operands[:5], 1e-10, MAX_PASSES))):
            return name
        problem = "its answer to a known problem is wrong"
    except Exception as error:  # XLA raises what it likes
        problem = f"{type(error).__name__}: {error}"
    warnings.warn(
        f"the solver cannot be called natively from JAX {jax.__version__} ({problem}): a callback, which is slower, "
        "is used instead. Install the version of JAX that constraints.txt names.",
        RuntimeWarning, stacklevel=2,
    )  # fmt: skip
    return None


@once
def _registered(wide: bool) -> str:
    size, answer = ("wide", _answer_wide) if wide else ("dense", _answer_dense)
    globals()[f"_{size}_kernel"] = _kernel_for(wide)  # compiled code reads globals when it is compiled
    return register(f"policychord_solve_{size}", answer)


@once
def _registered_pull(wide: bool) -> str:
    size, answer = ("wide", _answer_pull_wide) if wide else ("dense", _answer_pull_dense)
    return register(f"policychord_pull_{size}", answer)


def register(name: str, answer: Callable) -> str:
    """Let XLA find the function `answer`, which gets the address of a frame, under this name."""
    callback = compile_callback(types.intp(types.intp), answer)
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(ctypes.cast(callback.address, ctypes.c_void_p)), platform="cpu")
    return name


@intrinsic
def _pointer(typing, address):
    def build(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.voidptr(address), build


@intrinsic
def _word(typing, address, k):
    """The k-th word of the structure at this address."""

    def build(context, builder, signature, arguments):
        words = builder.inttoptr(arguments[0], context.get_value_type(types.int64).as_pointer())
        return builder.load(builder.gep(words, [arguments[1]]))

    return types.int64(types.int64, types.int64), build


@intrinsic
def _ask(typing, function, address):
    """What the C function at an address answers, given another one."""

    def build(context, builder, signature, arguments):
        word = context.get_value_type(types.int64)
        pointer = builder.inttoptr(arguments[0], ir.FunctionType(word, [word]).as_pointer())
        return builder.call(pointer, [arguments[1]])

    return types.int64(types.int64, types.int64), build


@compiled()
def refuse(frame):
    """An error for XLA to raise, which copies its sentence."""
    sentence = np.empty(len(_REFUSAL), np.uint8)
    for k in range(len(_REFUSAL)):
        sentence[k] = _REFUSAL[k]
    request = np.zeros(4, np.int64)
    request[0], request[2], request[3] = 8 * request.size, sentence.ctypes.data, _INVALID_ARGUMENT
    error = _ask(_word(_word(frame, 2), 6), request.ctypes.data)
    return error + 0 * (sentence[0] + request[0])  # both live until it is made


@compiled()
def is_question(frame):
    """Answer XLA if it only asks for our version: that of its own frame, whose layout was checked."""
    extension = _word(frame, 1)
    if extension == 0 or (_word(extension, 1) & 0xFFFFFFFF) != _METADATA:
        return False
    carray(_pointer(_word(extension, 3)), (4,), np.int64)[3] = _word(_word(frame, 2), 4)
    return True


@compiled()
def argument(frame, k):
    return _word(_word(frame, 9), k)


@compiled()
def result(frame, k):
    return _word(_word(frame, 14), k)


@compiled()
def dim_of(buffer, axis):
    return _word(_word(buffer, 5), axis)


@compiled()
def size_of(buffer):
    size = 1
    for axis in range(_word(buffer, 4)):
        size *= dim_of(buffer, axis)
    return size


@compiled()
def holds(buffer, kind, size):
    """Whether it has so many numbers of this type."""
    return (_word(buffer, 2) & 0xFFFFFFFF) == kind and size_of(buffer) == size


@compiled()
def _fits(buffer, like, core):
    """Whether it has `core` float64 numbers for each problem of `like`, some axes of which may be shared."""
    rank, lead, inner = _word(buffer, 4), _word(like, 4), 1
    if (_word(buffer, 2) & 0xFFFFFFFF) != FLOAT64 or rank < lead:
        return False
    for axis in range(rank):
        dim = dim_of(buffer, axis)
        if axis >= lead:
            inner *= dim
        elif dim != 1 and dim != dim_of(like, axis):
            return False
    return inner == core


@compiled()
def _core_of(frame, like):
    """d and n, from pi, which every kernel is given first; zeros if it is no matrix for each problem of `like`."""
    pi = argument(frame, 0)
    if _word(pi, 4) != _word(like, 4) + 2:
        return 0, 0
    return dim_of(pi, _word(like, 4)), dim_of(pi, _word(like, 4) + 1)


@compiled()
def _is_solvable(frame, dense):
    """Whether a frame holds what `_operands` reads, and space for what a solver writes."""
    results = _word(frame, 12)
    if _word(frame, 7) != 6 or (results != 4 and results != 7):
        return False
    like = result(frame, 1)
    count, (d, n) = size_of(like), _core_of(frame, like)
    good = d > 0 and n > 0 and holds(like, FLOAT64, count)
    for k, core in ((0, d * n), (1, d), (2, 1), (3, n), (4, n)):
        good = good and _fits(argument(frame, k), like, core)
    good = good and holds(argument(frame, 5), FLOAT64, size_of(argument(frame, 5)))
    good = good and holds(result(frame, 0), FLOAT64, count * n)
    good = good and holds(result(frame, 2), INT64, count) and holds(result(frame, 3), _INT8, count)
    if good and results == 7:
        side = n if dense else 0
        good = holds(result(frame, 4), FLOAT64, count * d) and holds(result(frame, 5), FLOAT64, count * d)
        good = good and _fits(result(frame, 6), like, side * side) and _side(result(frame, 6)) == side
    return good


@compiled()
def _is_pullable(frame, dense):
    """Whether a frame holds what `_pull_operands` reads, and space for what is written."""
    if _word(frame, 7) != 8 or _word(frame, 12) != 4:
        return False
    like = result(frame, 2)
    count, (d, n) = size_of(like), _core_of(frame, like)
    side = n if dense else 0
    good = d > 0 and n > 0 and holds(like, FLOAT64, count)
    for k, core in ((0, d * n), (1, 1), (2, n), (3, n), (4, d), (5, d), (6, side * side), (7, n)):
        good = good and _fits(argument(frame, k), like, core)
    good = good and _side(argument(frame, 6)) == side
    whole, none = holds(result(frame, 0), FLOAT64, count * d * n), holds(result(frame, 0), FLOAT64, 0)
    good = good and (whole or none) and holds(result(frame, 1), FLOAT64, count * d)
    return good and holds(result(frame, 3), FLOAT64, count * n)


@compiled()
def rows_of(buffer, core):
    """The buffer as it is: (problems, core numbers each)."""
    return carray(_pointer(_word(buffer, 3)), (size_of(buffer) // max(core, 1), core), np.float64)


@compiled()
def _fresh_rows(buffer, core):
    """The same for a result that is about to be filled, in large pages where its memory is new.

    New memory comes from the system page by page when it is first touched, which takes several times longer than to
    fill it. NumPy asks for large pages too.
    """
    begin = _word(buffer, 3)
    first = (begin + _LARGE_PAGE - 1) // _LARGE_PAGE * _LARGE_PAGE
    last = (begin + 8 * size_of(buffer)) // _LARGE_PAGE * _LARGE_PAGE
    if last > first + _LARGE_PAGE:
        _madvise(first, last - first, _ADVISE_LARGE_PAGES)
    return rows_of(buffer, core)


@compiled()
def _spread(buffer, like, core):
    """The buffer as (problems, core numbers each): as it is, or repeated along the axes of `like` that it shares."""
    count, own = size_of(like), rows_of(buffer, core)
    if own.shape[0] == count:
        return own
    whole = np.empty((count, core))
    for k in range(count):
        place, rest, step = 0, k, 1
        for axis in range(_word(like, 4) - 1, -1, -1):
            if dim_of(buffer, axis) > 1:
                place += step * (rest % dim_of(like, axis))
                step *= dim_of(buffer, axis)
            rest //= dim_of(like, axis)
        for i in range(core):
            whole[k, i] = own[place, i]
    return whole


@compiled()
def _primitives(frame, like):
    """pi, which every kernel is given first, and its step; `like` is a buffer with a number for each problem."""
    pi, count = argument(frame, 0), size_of(like)
    d, n = dim_of(pi, _word(pi, 4) - 2), dim_of(pi, _word(pi, 4) - 1)
    shared = size_of(pi) == d * n and count > 1
    rows = rows_of(pi, d * n) if shared else _spread(pi, like, d * n)
    return rows.reshape((rows.shape[0], d, n)), 0 if shared else 1


@compiled()
def _side(curvature):
    """n, or 0 for a curvature that is never formed."""
    return dim_of(curvature, _word(curvature, 4) - 1)


@compiled()
def _operands(frame):
    """What every solver is given, and where it writes: four results, or seven where a derivative will follow."""
    like = result(frame, 1)
    pi, step = _primitives(frame, like)
    count, d, n = size_of(like), pi.shape[1], pi.shape[2]
    cost, log_prior = _spread(argument(frame, 1), like, d), _spread(argument(frame, 3), like, n)
    eps = _spread(argument(frame, 2), like, 1).reshape(count)
    start, tolerances = _spread(argument(frame, 4), like, n), rows_of(argument(frame, 5), 1)
    tol = np.inf
    for k in range(tolerances.shape[0]):
        tol = min(tol, tolerances[k, 0])
    log_weights, gap = rows_of(result(frame, 0), n), rows_of(like, 1).reshape(count)
    passes = carray(_pointer(_word(result(frame, 2), 3)), (count,), np.int64)
    outcome = carray(_pointer(_word(result(frame, 3), 3)), (count,), np.int8)
    for k in range(count):
        gap[k], outcome[k] = np.inf, NOT_CONVERGED  # nothing is certified until the kernel has finished
    if _word(frame, 12) > 4:
        level, over_p = _fresh_rows(result(frame, 4), d), _fresh_rows(result(frame, 5), d)
        side = _side(result(frame, 6))
        kept = rows_of(result(frame, 6), side * side).reshape((count, side, side))
    else:
        level, over_p, kept = np.empty((1, d)), np.empty((1, d)), np.empty((0, n, n))
    return (
        pi, step, cost, eps, log_prior, start, tol, MAX_PASSES,
        log_weights, gap, passes, outcome, level, over_p, kept,
    )  # fmt: skip


def _answer_dense(frame):
    if not is_question(frame):
        if not _is_solvable(frame, True):
            return refuse(frame)
        _dense_kernel(*_operands(frame))  # noqa: F821
    return 0


def _answer_wide(frame):
    if not is_question(frame):
        if not _is_solvable(frame, False):
            return refuse(frame)
        _wide_kernel(*_operands(frame))  # noqa: F821
    return 0


# ---------------------------------------------------------------- the transpose of its derivative


@compiled()
def _pull_operands(frame):
    """What `pull_dense` and `pull_wide` are given, and where they write."""
    like = result(frame, 2)
    pi, step = _primitives(frame, like)
    count, d, n = size_of(like), pi.shape[1], pi.shape[2]
    eps, log_prior = _spread(argument(frame, 1), like, 1).reshape(count), _spread(argument(frame, 2), like, n)
    log_weights, cotangent = _spread(argument(frame, 3), like, n), _spread(argument(frame, 7), like, n)
    level, over_p = _spread(argument(frame, 4), like, d), _spread(argument(frame, 5), like, d)
    side = _side(argument(frame, 6))
    curvature = _spread(argument(frame, 6), like, side * side).reshape((count, side, side))
    d_pi = _fresh_rows(result(frame, 0), d * n)
    return (
        pi, step, eps, log_prior, log_weights, level, over_p, curvature, cotangent,
        d_pi.reshape((d_pi.shape[0], d, n)), _fresh_rows(result(frame, 1), d),
        rows_of(like, 1).reshape(count), rows_of(result(frame, 3), n),
    )  # fmt: skip


def _answer_pull_dense(frame):
    if not is_question(frame):
        if not _is_pullable(frame, True):
            return refuse(frame)
        pull_dense(*_pull_operands(frame))
    return 0


def _answer_pull_wide(frame):
    if not is_question(frame):
        if not _is_pullable(frame, False):
            return refuse(frame)
        pull_wide(*_pull_operands(frame))
    return 0
