"""What a composer may be given: each argument in the form that is kept, or a sentence about what is wrong with it."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._calls import call
from .._types import ArrayLike, Observation, Time, is_traced
from ..actions import AbstractActions, Finite, Grid, Sampled
from ..core._checks import as_floats, check_eps, normalised_prior, shown
from ..core.regularisers import Entropy, Tsallis, alpha_and_caps, is_plain
from ..primitives.base import AbstractPrimitive, Draws, Table
from ..primitives.gaussian import LOST, MOVED, Gaussian
from ..primitives.policy import Policy
from .decision import Selection
from .gates import AbstractGate, AtEquilibrium, Prior, words_of

MOVES = f"it misses more than {LOST:.0%} of its mass, or moves its mean by more than {MOVED} sd."
REMEDY = "Use a finer grid, a wider one, or Sampled actions."
SATURATES = "If its ends are the limits of what can be done, say so: Grid(..., saturates=True)."


def name_all(primitives: Any) -> tuple[tuple[str, ...], tuple[AbstractPrimitive, ...]]:
    """(names, primitives) of a dict, or of a list without names."""
    if not isinstance(primitives, Mapping | Sequence):
        raise ValueError(f"primitives is a {type(primitives).__name__}: pass a dict of names to primitives, or a list.")
    if not isinstance(primitives, Mapping):
        primitives = {f"primitive {i}": primitive for i, primitive in enumerate(primitives)}
    if not primitives:
        raise ValueError("primitives is empty: an agent needs at least one.")
    for name, primitive in primitives.items():
        check_kind(f"primitives[{name!r}]", primitive, AbstractPrimitive)
    return tuple(str(name) for name in primitives), tuple(primitives.values())


def check_kind(name: str, value: Any, kind: type) -> Any:
    """The value, which must be an instance of this class."""
    if isinstance(value, kind):
        return value
    hint = (
        " (wrap a controller in Gaussian(controller, sd), a policy or a function in primitives.Policy)"
        if kind is AbstractPrimitive
        else ""
    )
    raise ValueError(f"{name} is a {type(value).__name__}: pass an instance of {kind.__name__}{hint}.")


def check_choice(name: str, value: Any, choices: Any) -> Any:
    """The value, which must be one of the literals."""
    if not isinstance(value, str) or value not in choices.__args__:
        raise ValueError(f"{name} = {shown(value)}: use one of {', '.join(map(repr, choices.__args__))}.")
    return value


def as_temperature(eps: Any) -> Any:
    """A function of (observation, k) as it is, or one positive number."""
    if callable(eps):
        return eps
    eps = as_floats("eps", eps)
    if eps.shape != ():
        raise ValueError(f"eps has shape {eps.shape}: one number (agents that differ in it make a Population).")
    check_eps(eps)
    return jnp.asarray(eps)


def as_log_prior(prior: Any, names: tuple[str, ...]) -> Any:
    """The logarithm of a prior, or the function of (observation, k) that gives it."""
    if callable(prior):
        return eqx.Partial(_log_of_habit, prior)
    if prior is None:
        return jnp.full(len(names), -np.log(len(names)))
    prior = as_floats("prior", prior)
    if prior.shape != (len(names),):
        raise ValueError(f"prior has shape {prior.shape}: one entry for each of the {len(names)} primitives.")
    return jnp.asarray(normalised_prior("prior", prior, 1e-6))


def as_prior(log_prior: Any) -> Any:
    """What `log_prior` was made of."""
    return log_prior.args[0] if isinstance(log_prior, eqx.Partial) else jnp.exp(jnp.asarray(log_prior))


def _log_of_habit(prior: Callable[[Observation, Time], ArrayLike], observation: Observation, k: Time) -> jax.Array:
    """A prior that follows the situation, on the logarithmic scale."""
    return normalised_prior(
        "prior(observation, k)", jnp.asarray(call("prior", prior, observation, k), dtype=float), 1e-6
    )


def check_together(
    names: tuple[str, ...], primitives: tuple[AbstractPrimitive, ...], actions: AbstractActions, selection: Selection
) -> None:
    """Complain about parts that are good by themselves and do not fit together."""
    for name, primitive in zip(names, primitives, strict=True):
        if isinstance(primitive, Table) and primitive.log_rows.shape[1] != actions.size:
            raise ValueError(
                f"primitives[{name!r}] is a table of {primitive.log_rows.shape[1]} actions, but the action set has "
                f"{actions.size}."
            )
        if isinstance(actions, Sampled) and not isinstance(primitive, Draws | Policy):
            raise ValueError(
                f"primitives[{name!r}] is a {type(primitive).__name__}, from which no actions can be drawn: Sampled "
                "actions need primitives with sample and log_density, such as Gaussian, or Policy; else use Finite or "
                "Grid."
            )
        if isinstance(actions, Sampled) and isinstance(primitive, Policy):
            primitive.check_drawn(actions)
        if _is_coarse(primitive, actions):
            warnings.warn(f"the grid is coarse for primitives[{name!r}]: {MOVES} {REMEDY}", stacklevel=3)
    if selection == "mean" and isinstance(actions, Finite) and actions.labels:
        actions.mean(jnp.ones(actions.size))  # says why not


def regularise(regulariser: Any, n: int) -> Entropy | Tsallis | None:
    """A regulariser that fits n primitives, as arrays; None for the entropy without caps."""
    alpha, caps = alpha_and_caps(regulariser, n)
    if is_plain(regulariser):
        return None
    if alpha.shape != () or caps.shape != (n,):
        raise ValueError(
            f"regulariser has alpha of shape {alpha.shape} and caps of shape {caps.shape}: one alpha, and a cap for "
            f"each of the {n} primitives (agents that differ in it make a Population)."
        )
    return Tsallis(jnp.asarray(alpha), jnp.asarray(caps))


def check_general(
    regulariser: Any, combine: str, gate: AbstractGate, selection: Selection, actions: AbstractActions
) -> None:
    """Other regularisers and products have an optimum and a prior; the other gates and taking turns are a mixture's."""
    if regulariser is None and combine == "mixture":
        return
    obstacles = [] if combine == "mixture" else [f'combine="{combine}"']
    obstacle = " and ".join(obstacles + ([] if regulariser is None else ["a regulariser"]))
    if not isinstance(gate, AtEquilibrium | Prior):
        raise ValueError(
            f'gate = "{words_of(gate)}" is made for a mixture with the entropy, but this agent has {obstacle}: leave '
            'that out, or use gate="equilibrium" or "prior".'
        )
    if isinstance(actions, Sampled):
        raise ValueError(
            f"Sampled actions serve a mixture with the entropy, but this agent has {obstacle}: leave that out, or use "
            "Finite or Grid."
        )
    if combine != "mixture" and selection == "dither":
        raise ValueError('selection = "dither" lets primitives take turns, but in a product all act as one.')


def _is_coarse(primitive: AbstractPrimitive, actions: AbstractActions) -> bool:
    if not (isinstance(primitive, Gaussian) and isinstance(actions, Grid)) or callable(primitive.sd):
        return False  # a spread that follows the observation is not known yet
    if is_traced(primitive.sd, primitive.cholesky, actions.points):
        return False
    with jax.ensure_compile_time_eval():  # an agent that is made inside a trace, of parts that were made outside
        return bool(primitive.coarseness(actions) > MOVED)


def warn_of_grid(names: tuple[str, ...], cut: Any, where: str = "", stacklevel: int = 4) -> None:
    """Say which primitives the grid cuts off, given a flag for each. Python shows each warning once."""
    for name, bad in zip(names, np.asarray(cut), strict=True):
        if bad:
            warning = f"the grid cuts primitives[{name!r}] off{where}, or is coarse: {MOVES} {REMEDY} {SATURATES}"
            warnings.warn(warning, stacklevel=stacklevel)
