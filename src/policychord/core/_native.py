"""The compiled solver as a native call inside `jit`: XLA runs it on its own buffers, without Python and without copies.

XLA hands a frame to the call, a C structure of eight-byte words (`xla/ffi/api/c_api.h`, major version 0):

    frame:  1 extension  2 api  9 arguments  14 results      extension: 1 kind  3 metadata
    buffer: 3 data  4 rank  5 dims                           api: 4 its version       metadata: 3 our version
"""

import ctypes
import warnings
from pathlib import Path

import jax
import numpy as np
from numba import carray, types
from numba.extending import intrinsic

from ._compile import compile_callback, compiled, once
from ._kernels import NOT_CONVERGED, _kernel_for, solve_batch
from ._method import DENSE_UP_TO, MAX_PASSES

MAJOR_VERSION = 0  # of the frame's layout
METADATA = 1  # the kind of extension by which XLA asks for our version


@once
def target_for(n: int) -> str | None:
    """The name under which XLA finds the solver for n primitives; None if it does not work with this JAX."""
    if f"#define XLA_FFI_API_MAJOR {MAJOR_VERSION}\n" not in _header():
        return None
    return _verified(n > DENSE_UP_TO)


def _header() -> str:
    path = Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


@once
def _verified(wide: bool) -> str | None:
    """The name, once the call has answered two problems that share their primitives as the kernel itself does."""
    name, n = _registered(wide), DENSE_UP_TO + 1 if wide else 3
    place = np.arange(4.0)[:, None] - np.linspace(0.0, 3.0, n)
    pi = np.exp(-(place**2))
    pi, cost, eps = pi / pi.sum(0), np.array([[0.0, 1.0, 0.5, 2.0], [1.0, 0.0, 0.2, 0.1]]), np.array([0.1, 0.7])
    given = pi[None], cost, eps, np.full((1, n), -np.log(n)), np.full((2, n), -np.log(n)), np.full(1, 1e-10)
    shapes = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in (
        ((2, n), np.float64), ((2,), np.float64), ((2,), np.int64), ((2,), np.int8),
    )]  # fmt: skip
    try:
        with jax.ensure_compile_time_eval(), jax.enable_x64(True):
            found = jax.jit(jax.ffi.ffi_call(name, shapes))(*given)
        if all(map(np.array_equal, found, solve_batch(*given[:5], 1e-10, MAX_PASSES))):
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
    # compiled code reads globals when it is compiled
    if wide:
        globals()["_wide_kernel"] = _kernel_for(True)
    else:
        globals()["_dense_kernel"] = _kernel_for(False)
    callback = compile_callback(types.intp(types.intp), _answer_wide if wide else _answer_dense)
    name = f"policychord_solve_{'wide' if wide else 'dense'}"
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(ctypes.cast(callback.address, ctypes.c_void_p)), platform="cpu")
    return name


@intrinsic
def _pointer(typing, address):
    def build(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.voidptr(address), build


@compiled()
def _words(address, count):
    return carray(_pointer(address), (count,), np.int64)


@compiled()
def _is_question(frame):
    """Answer XLA if it only asks for our version: that of its own frame, whose layout was checked."""
    extension = _words(frame, 2)[1]
    if extension == 0 or (_words(extension, 2)[1] & 0xFFFFFFFF) != METADATA:
        return False
    metadata = _words(_words(extension, 4)[3], 4)
    metadata[3] = _words(_words(frame, 3)[2], 5)[4]
    return True


@compiled()
def _size(buffer):
    dims = _words(buffer[5], buffer[4])
    size = 1
    for axis in range(dims.size):
        size *= dims[axis]
    return size


@compiled()
def _spread(buffer, batch, core):
    """The buffer as (problems, core numbers each): as it is, or repeated along the axes that it shares."""
    count = 1
    for axis in range(batch.size):
        count *= batch[axis]
    own = carray(_pointer(buffer[3]), (_size(buffer) // max(core, 1), core), np.float64)
    if own.shape[0] == count:
        return own
    dims = _words(buffer[5], buffer[4])
    whole = np.empty((count, core))
    for k in range(count):
        place, rest, step = 0, k, 1
        for axis in range(batch.size - 1, -1, -1):
            if dims[axis] > 1:
                place += step * (rest % batch[axis])
                step *= dims[axis]
            rest //= batch[axis]
        whole[k] = own[place]
    return whole


@compiled()
def _operands(frame):
    """What every kernel is given, read from the frame."""
    arguments, results = _words(_words(frame, 15)[9], 6), _words(_words(frame, 15)[14], 4)
    pi, tol = _words(arguments[0], 6), _words(arguments[5], 6)
    shape = _words(pi[5], pi[4])
    d, n = shape[pi[4] - 2], shape[pi[4] - 1]
    gap = _words(results[1], 6)
    batch = _words(gap[5], gap[4])
    count = _size(gap)
    shared = _size(pi) == d * n and count > 1
    columns = carray(_pointer(pi[3]), (1, d * n), np.float64) if shared else _spread(pi, batch, d * n)
    cost, eps = _spread(_words(arguments[1], 6), batch, d), _spread(_words(arguments[2], 6), batch, 1)
    log_prior, start = _spread(_words(arguments[3], 6), batch, n), _spread(_words(arguments[4], 6), batch, n)
    tolerances = carray(_pointer(tol[3]), (_size(tol),), np.float64)
    least = np.inf
    for k in range(tolerances.size):
        least = min(least, tolerances[k])
    log_weights = carray(_pointer(_words(results[0], 6)[3]), (count, n), np.float64)
    passes = carray(_pointer(_words(results[2], 6)[3]), (count,), np.int64)
    outcome = carray(_pointer(_words(results[3], 6)[3]), (count,), np.int8)
    bound = carray(_pointer(gap[3]), (count,), np.float64)
    bound[:], outcome[:] = np.inf, NOT_CONVERGED  # nothing is certified until the kernel has said so
    return (
        columns.reshape((columns.shape[0], d, n)), 0 if shared else 1, cost, eps.reshape(count), log_prior, start,
        least, log_weights, bound, passes, outcome,
    )  # fmt: skip


def _answer_dense(frame):
    if not _is_question(frame):
        pi, step, cost, eps, log_prior, start, tol, log_weights, gap, passes, outcome = _operands(frame)
        none = np.empty((0, pi.shape[1]))
        square = np.empty((0, pi.shape[2], pi.shape[2]))
        _dense_kernel(  # noqa: F821
            pi, step, cost, eps, log_prior, start, True, tol, MAX_PASSES,
            log_weights, gap, passes, outcome, none, none, square,
        )  # fmt: skip
    return 0


def _answer_wide(frame):
    if not _is_question(frame):
        pi, step, cost, eps, log_prior, start, tol, log_weights, gap, passes, outcome = _operands(frame)
        none = np.empty((0, pi.shape[1]))
        _wide_kernel(  # noqa: F821
            pi, step, cost, eps, log_prior, start, True, tol, MAX_PASSES,
            log_weights, gap, passes, outcome, none, none, np.empty((0, 0, 0)),
        )  # fmt: skip
    return 0
