"""`call`: functions that users wrote, and a sentence about which part failed and what to do if they do.

`call_at` calls a controller, which may be a function of the observation alone.
"""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

OURS = __name__.partition(".")[0]


class PartError(ValueError):
    """A function that is part of an agent failed. Its own error is the cause."""


def call(part: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """function(*arguments). If it fails, an error that names the part, what it was given and the remedy.

    Parts of ours speak for themselves.
    """
    if type(function).__module__.partition(".")[0] == OURS:
        return function(*arguments)
    try:
        return function(*arguments)
    except PartError:
        raise
    except Exception as error:  # other people's code may raise anything
        raise PartError(f"{part} {_remedy(part, function, error, arguments)}") from error


def call_at(part: str, function: Callable[..., Any], observation: Any, k: Any) -> Any:
    """What a controller answers at step k: function(observation, k), or function(observation) if it takes no k."""
    return call(part, function, *((observation, k) if takes_step(function) else (observation,)))


def takes_step(function: Callable[..., Any], otherwise: bool = True, place: int = 1) -> bool:
    """Whether a function takes k, after as many arguments as `place`; `otherwise` if its signature does not tell.

    An argument with a default is k only if that is its name, so that lambda x, gain=2.0: ... keeps its gain.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return otherwise
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return otherwise
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    return any(each.default is each.empty or each.name == "k" for each in positional[place : place + 1])


def _remedy(part: str, function: Callable[..., Any], error: Exception, arguments: tuple[Any, ...]) -> str:
    priced = ("predict", "action_cost", "state_cost", "cost_to_go", "stage_cost")
    box = "models.BlackBox" if part in priced else "primitives.Policy"
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return (
            "uses NumPy or plain Python on numbers that JAX has not computed yet: write it with jax.numpy, or wrap it "
            f"in {box}."
        )
    if isinstance(error, jax.errors.ConcretizationTypeError):
        return (
            "needs a number that JAX has not computed yet, in a Python if, while, and, or, float() or bool(): use "
            f"jnp.where and jnp.clip, or wrap it in {box}."
        )
    if isinstance(error, TypeError) and not _takes(function, len(arguments)):
        return f"is called with {len(arguments)} arguments, which it does not accept ({error})."
    if isinstance(error, jax.errors.TracerIntegerConversionError):
        return "uses a number that JAX has not computed yet as a Python index: make the list a jax.numpy array."
    sentence = str(error).strip().partition("\n")[0]
    return (
        f"failed ({type(error).__name__}: {sentence}). It is called with {_shapes(arguments)}: make it work for "
        "these shapes, or pass observe=... where the agent plays."
    )


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Whether it can be called with so many arguments, as far as its signature tells."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # no signature is known
        pass
    return True


def _shapes(arguments: tuple[Any, ...]) -> str:
    def describe(value: Any) -> str:
        leaves, tree = jax.tree_util.tree_flatten(value)
        if len(leaves) == 1 and jax.tree_util.treedef_is_leaf(tree):
            return f"shape {np.shape(leaves[0])}"
        return f"{type(value).__name__} of shapes {', '.join(str(np.shape(leaf)) for leaf in leaves)}"

    return "; ".join(describe(value) for value in arguments)


def check_hashable(part: str, value: Any) -> None:
    """Everything in a part that is not an array must be hashable: a compiled program is known by it."""
    for leaf in jax.tree_util.tree_leaves(value):
        if isinstance(leaf, jax.Array | np.ndarray | np.generic | float | int | complex):
            continue
        try:
            hash(leaf)
        except TypeError as error:
            raise PartError(
                f"{part} is a {type(leaf).__name__} that cannot be hashed, so no program can be compiled for it: pass "
                "a function, make its class an equinox.Module, or give the class __hash__."
            ) from error
