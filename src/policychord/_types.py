"""Aliases of types, and which of NumPy and JAX a call should speak."""

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

_Answer = TypeVar("_Answer")

Array = jax.Array | np.ndarray
ArrayLike = Any  # what a user may hand in: arrays, nested lists, anything that NumPy can read
Observation = Any  # what an agent sees: an array, or a NamedTuple of them
State = Any  # of the world: a NamedTuple of arrays
Watch = Callable[[str, int, int], None]  # is called with what is done next, how many steps are done, and of how many
Action = Any  # one point of an action set: a number, a label or a vector

# batch axes may broadcast against each other
Primitives = Float[Array, "*#batch d n"]
ActionValues = Float[Array, "*#batch d"]
Weights = Float[Array, "*#batch n"]
if TYPE_CHECKING:
    Scalars = Float[Array, "*#batch"]
else:  # NumPy makes a float of a lone entry
    Scalars = Float[Array, "*#batch"] | float
Counts = Int[Array, "*#batch"]
Flags = Bool[Array, "*#batch"]
Time = Int[Array, ""] | int  # k, the number of a step: an array inside a compiled loop


def namespace(*arrays: Any) -> ModuleType:
    """jax.numpy if any argument is a JAX array, else NumPy: what comes in decides what goes out."""
    for a in arrays:
        if type(a) is not np.ndarray and isinstance(a, jax.Array):  # the first question is the cheaper one
            return jnp
    return np


def is_traced(*arrays: Any) -> bool:
    """Whether values are not there yet (inside jit, vmap, grad or scan), so that only shapes can be checked."""
    return any(type(a) is not np.ndarray and isinstance(a, jax.core.Tracer) for a in arrays)


def in_kind(run: Callable[[], _Answer], *inputs: Any) -> _Answer:
    """Run in float64 and answer in kind: NumPy for inputs of NumPy, JAX for those of JAX."""
    arrays = jax.tree_util.tree_leaves(inputs)
    if is_traced(*arrays):
        require_float64()
        return run()
    with jax.enable_x64(True):
        answer = run()
        return answer if namespace(*arrays) is jnp else jax.tree_util.tree_map(np.asarray, answer)


def in_native_order(tree: Any) -> Any:
    """The same tree with its arrays in the byte order of this machine: compiled programs take every array for one."""
    return jax.tree_util.tree_map(_native, tree)


def _native(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray) and not leaf.dtype.isnative:
        return leaf.astype(leaf.dtype.newbyteorder("="))
    return leaf


def jax_has_float64() -> bool:
    """Whether JAX may compute in float64; programs decide that, the library never does."""
    return jax.dtypes.canonicalize_dtype(np.float64) == np.float64


def enable_x64() -> None:
    """Let JAX compute in float64, for the whole program: call it at the start, before the first array is made."""
    jax.config.update("jax_enable_x64", True)


def require_float64() -> None:
    """Certificates computed in float32 understate the gap, so JAX must be allowed to compute in float64."""
    if not jax_has_float64():
        raise ValueError(
            "JAX is restricted to float32, in which no certificate is honest: call policychord.enable_x64() at the "
            "start of the program, or pass NumPy arrays."
        )
