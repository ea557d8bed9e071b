"""The same data without what a verdict is about: surrogates without company, and changes drawn from constant weights.

In a round arena every track is rotated about its centre by an angle of its own. Elsewhere everybody keeps its own
motion and gets the company of somebody else at another time. Neither has anything social left, but everything about how
these animals move and how they were tracked. Changes that are drawn from the fitted constant weights, in the situations
of the data, have the social forces and no re-weighting.
"""

from collections.abc import Mapping
from functools import lru_cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .decisions import Decisions, decide
from .forces import ForceSettings
from .motion import Motion
from .nested import Found
from .rivals import Names, draw, units_of
from .situations import Situations, situations_of

OWN = ("change", "own", "before", "speed")  # what an individual keeps
LEAST_SHIFT = 0.1  # of a sequence of decisions


def rotated(
    motion: Motion, given: Decisions, settings: ForceSettings, arena: tuple[float, ...], rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Units of a surrogate in which each track is rotated about the centre of a round arena."""
    centre, trials = np.array(arena[:2]), []
    for trial in motion.trials:
        angle = rng.uniform(0, 2 * np.pi, len(trial.ids))
        turn = np.stack(
            [np.stack([np.cos(angle), -np.sin(angle)], -1), np.stack([np.sin(angle), np.cos(angle)], -1)], -2
        )
        place, velocity, change = (
            np.einsum("iab,tib->tia", turn, values)
            for values in (trial.position - centre, trial.velocity, trial.acceleration)
        )
        trials.append(trial._replace(position=place + centre, velocity=velocity, acceleration=change))
    other = motion._replace(trials=tuple(trials))
    return units_of(situations_of(other, decide(other, settings, layout=given.layout, cells=given.cells), arena))


def exchanged(given: Decisions, units: Mapping[str, np.ndarray], situations: Situations, rng: np.random.Generator
              ) -> dict[str, np.ndarray]:  # fmt: skip
    """Units of a surrogate in which everybody has the company of another one, at another time."""
    who = np.unique(np.stack([given.trial, given.individual], axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    order = np.lexsort((given.frame, who))
    parts = np.split(order, np.cumsum(np.bincount(who))[:-1])
    step = int(rng.integers(1, len(parts))) if len(parts) > 1 else 0
    shuffled = rng.permutation(len(parts))
    source = np.empty(given.size, int)
    for place, own in enumerate(shuffled):
        rows, other = parts[own], parts[shuffled[(place + step) % len(parts)]]
        least = max(1, int(LEAST_SHIFT * len(other)))
        shift = int(rng.integers(least, max(len(other) - least, least + 1)))
        source[rows] = other[(np.arange(len(rows)) + shift) % len(other)]
    new = {name: values if name in OWN else values[source] for name, values in units.items()}
    speed = situations.features.index("speed")
    new["feature"] = np.array(new["feature"])
    new["feature"][:, speed] = units["feature"][:, speed]
    by = [number for number, name in enumerate(situations.own_terms) if name.startswith("ahead by")]
    new["own"] = np.array(units["own"])
    new["own"][:, by] = units["own"][source][:, by]
    return new


def drawn(constant: Found, names: Names, seed: int) -> dict[str, np.ndarray]:
    """The situations of the data with changes of velocity drawn from constant weights."""
    count = constant.given.units
    length = -(-count // 512) * 512
    pad = np.minimum(np.arange(length), count - 1)
    units = jax.tree_util.tree_map(lambda leaf: jnp.asarray(leaf[pad]), dict(constant.given.data))
    theta = {name: jnp.asarray(value) for name, value in constant.theta.items()}
    change = _drawing(constant.model.name, names)(theta, units, jax.random.split(jax.random.key(seed), length))
    return {**constant.given.data, "change": np.asarray(change)[:count]}


@lru_cache(maxsize=16)
def _drawing(name: str, names: Names):  # type: ignore[no-untyped-def]
    return eqx.filter_jit(jax.vmap(partial(draw, name, names), in_axes=(None, 0, 0)))
