"""The agents that are fitted: forces as heavy-tailed primitives, the flock's model of good motion, and their rivals."""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from .._types import Observation, Time
from ..actions import AbstractActions, Finite
from ..agent import Composer
from ..core.equilibrium import solve
from ..inference import Family, Model, Normal, Parameter, positive, real, simplex
from ..inference.decisions import log_weights
from ..models import Cost, GaussianTarget, Sum
from ..primitives.base import AbstractPrimitive
from .decisions import Cells, Decisions
from .forces import Seen

Theta = Any
COLLISION = 2.0  # strength of the collision term, as in the flock's milling
# A weak prior of every free number, for the composed agent and its rivals alike. A force that is hardly used would
# otherwise have a weight of zero, whose logarithm lies nowhere, and a climb would go on for ever.
WEAK = Normal(0.0, 2.0)
FEATURE = Normal(0.0, 1.0)  # of the softmax gate, whose features have unit spread
WEIGHED, WEIGHED_AT_ONCE = 1024, 64  # decisions whose weights are found in one call, and together within it
PRECISION = 1.0  # of the wish for the neighbours' velocity, in usual changes


class HeavyTailed(AbstractPrimitive):
    """pi(u | x) proportional to area(u) (1 + |(u - m)/s|^2 / tail)^-(1 + tail/2) on the points of a set in the plane.

    m = mean(observation, k) and s = spread(observation, k) are vectors (2). It is Student's t with `tail` degrees of
    freedom, a Gaussian if there are many, on cells of the areas exp(log_area).
    """

    mean: Callable[[Observation, Time], Any]
    spread: Callable[[Observation, Time], Any]
    tail: Float[Array, ""] | float
    log_area: Float[Array, " d"]

    def log_prob(self, actions: AbstractActions, observation: Observation, k: Time) -> Float[Array, " d"]:
        offset = (actions.points - self.mean(observation, k)) / self.spread(observation, k)
        distance = offset[:, 0] ** 2 + offset[:, 1] ** 2
        return jax.nn.log_softmax(self.log_area - (1.0 + 0.5 * self.tail) * jnp.log(1.0 + distance / self.tail))


def family_of(given: Decisions, free: tuple[str, ...] = ()) -> Family:
    """Individuals that mix the forces of these decisions.

    s(u) = precision/2 |u - wanted|^2 + collision sum_j max(0, u.n_j)/d_j: the neighbours' mean velocity and no
    collision, as in the flock. Temperature and the cost's scale cannot be told apart well, so precision and collision
    stay fixed unless `free` names them.
    """
    names, cells = given.names, given.cells
    actions = Finite(cells.points)
    # a price for cells makes the objective that of densities: sum_i P_i ln(P_i / area_i)
    area, flat = jnp.asarray(cells.log_area), Cost(-cells.log_area)

    def build(theta: Theta) -> Composer:
        primitives = {
            name: HeavyTailed(eqx.Partial(_push, theta["gain"], a), eqx.Partial(_spread, theta), theta["tail"], area)
            for a, name in enumerate(names)
        }
        model = Sum(
            velocity=GaussianTarget(_changed, _wanted, 1.0 / theta["precision"]),
            collision=Cost(eqx.Partial(_collide, theta["collision"])),
            area=flat,
        )
        return Composer(primitives, model, actions, theta["eps"], theta["prior"])

    declared = (
        positive("eps", 1.0, prior=WEAK),
        simplex("prior", names, prior=WEAK),
        positive("gain", 1.0, labels=names, prior=WEAK),
        *spread_parameters(),
        positive("precision", PRECISION, prior=Normal(float(np.log(PRECISION)), WEAK.sd)),
        positive("collision", COLLISION, prior=Normal(float(np.log(COLLISION)), WEAK.sd)),
    )
    usual = ("eps", "prior", "gain", "sd", "sideways", "tilt", "tail")
    return Family("tracks", build, declared, free or usual, features)


def spread_parameters() -> tuple[Parameter, ...]:
    """The spread around every mean: sd at the usual speed, across over along, growth with speed, and tail."""
    return (
        positive("sd", 1.0, prior=WEAK),
        positive("sideways", 1.0, prior=WEAK),
        real("tilt", 0.0, prior=WEAK),
        positive("tail", 4.0, prior=Normal(float(np.log(4.0)), WEAK.sd)),
    )


def features(seen: Seen) -> Any:
    """What a softmax gate may look at: how strong each force is, the own speed, and how far the neighbours' is."""
    strength = jnp.sqrt(jnp.sum(seen.force**2, axis=-1) + 1e-12)
    return jnp.concatenate([strength, jnp.stack([seen.speed, jnp.sqrt(jnp.sum(seen.wanted**2) + 1e-12)])])


def _push(gain: Any, a: int, seen: Seen, k: Time) -> Any:
    return gain[a] * seen.force[a]


def _spread(theta: Theta, seen: Seen, k: Time) -> Any:
    """Along and across the heading; it grows with speed as ((1 + speed)/2)^tilt, and is sd at the usual speed."""
    along = theta["sd"] * (0.5 + 0.5 * seen.speed) ** theta["tilt"]
    return jnp.stack([along, along * theta["sideways"]])


def _changed(seen: Seen, action: Any, k: Time) -> Any:
    return action


def _wanted(seen: Seen, k: Time) -> Any:
    return seen.wanted


def _collide(strength: Any, seen: Seen, action: Any, k: Time) -> Any:
    return strength * jnp.sum(jnp.maximum(seen.closeness @ action, 0.0))


def weigh(given: Decisions, theta: Theta) -> tuple[Float[np.ndarray, "N n"], Float[np.ndarray, " N"]]:
    """The composed agent's weights at decisions, with their certified gap; what `theta` lacks is at its start."""
    family = family_of(given)
    agent = family.build({one.name: jnp.asarray(theta.get(one.name, one.start), float) for one in family.parameters})
    parts = []
    for begin in range(0, given.size, WEIGHED):
        here = np.minimum(np.arange(begin, begin + WEIGHED), given.size - 1)  # one program for all
        found = _weigh(agent, Seen(*(jnp.asarray(field[here]) for field in given.seen)))
        parts.append([np.asarray(part)[: given.size - begin] for part in found])
    weights, gap = (np.concatenate(part) for part in zip(*parts, strict=True))
    return weights, gap


@eqx.filter_jit
def _weigh(agent: Composer, all_seen: Seen) -> Any:
    def one(seen: Seen) -> Any:
        found = solve(agent.problem(seen, 0))
        return found.weights, found.certificate.gap

    return jax.lax.map(one, all_seen, batch_size=WEIGHED_AT_ONCE)


# ----------------------------------------------------------------------------------------------- rivals


def accounts_of(given: Decisions, family: Family, fixed: Theta) -> list[Model]:
    """The composed agent, acting by sample and by mean, and its rivals on the same decisions.

    A unit has `seen`, `action` and `features`. All are distributions over the same cells.
    """
    names, n = given.names, len(given.names)
    known = {one.name: one for one in family.parameters}
    usual = tuple(known[name] for name in family.free)
    spread = tuple(known[name] for name in family.free if name in _SPREAD)
    gain = tuple(known[name] for name in family.free if name == "gain")
    at_start = {one.name: jnp.asarray(one.start, float) for one in family.parameters}
    around = partial(_around, Finite(given.cells.points), jnp.asarray(given.cells.log_area))

    def whole(theta: Theta) -> dict[str, Any]:
        return {**at_start, **fixed, **theta}

    def random_walk(theta: Theta, unit: Any) -> Any:
        return around(whole(theta), unit, jnp.zeros(2))

    def alone(a: int, theta: Theta, unit: Any) -> Any:
        return around(whole(theta), unit, theta["strength"] * unit["seen"].force[a])

    def regression(theta: Theta, unit: Any) -> Any:
        return around(whole(theta), unit, theta["slope"] @ unit["seen"].force)

    def mixed(theta: Theta, unit: Any, log_w: Any) -> Any:
        # what is fixed for the composed agent is fixed for those with the same mixture, too
        each = [around(theta, unit, theta["gain"][a] * unit["seen"].force[a]) for a in range(n)]
        return logsumexp(jnp.stack(each) + log_w)

    def constant(theta: Theta, unit: Any) -> Any:
        return mixed(whole(theta), unit, jnp.log(theta["weights"]))

    def softmax_gate(theta: Theta, unit: Any) -> Any:
        looked = jnp.concatenate([jnp.ones(1), unit["features"]])
        logits = jnp.reshape(theta["gate"], (n - 1, -1)) @ looked
        return mixed(whole(theta), unit, jax.nn.log_softmax(jnp.concatenate([logits, jnp.zeros(1)])))

    def composed(theta: Theta, unit: Any) -> Any:
        posed = family.build(whole(theta)).problem(unit["seen"], 0)
        return logsumexp(jnp.log(jnp.maximum(posed.pi[unit["action"]], 1e-300)) + log_weights(posed)[0])

    def by_mean(theta: Theta, unit: Any) -> Any:
        theta = whole(theta)
        w = jnp.exp(log_weights(family.build(theta).problem(unit["seen"], 0))[0])
        return around(theta, unit, (w * theta["gain"]) @ unit["seen"].force)

    looks = [*(f"strength of {name}" for name in names), "speed", "distance from the wanted velocity"]
    gate = real("gate", labels=[f"{name}: {look}" for name in names[:-1] for look in ("constant", *looks)],
                prior=FEATURE)  # fmt: skip
    return [
        Model("random walk", spread, random_walk, "no force: the velocity changes at random"),
        *(
            Model(f"{name} alone", (*spread, real("strength", 1.0, prior=WEAK)), partial(alone, a), "one force")
            for a, name in enumerate(names)
        ),
        Model(
            "regression",
            (*spread, real("slope", 0.3, labels=names, prior=WEAK)),
            regression,
            "a weighted sum of all forces, always the same",
        ),
        Model(
            "constant mixture",
            (*spread, *gain, simplex("weights", names, prior=WEAK)),
            constant,
            "one mixture of all forces, one at a time",
        ),
        Model("softmax gate", (*spread, *gain, gate), softmax_gate, "weights by a softmax of what is seen"),
        Model("composed", usual, composed, "weights that the gate chooses at every decision, one force at a time"),
        Model("composed, by mean", usual, by_mean, "the gate's weights, acting by the weighted sum of the forces"),
    ]


_SPREAD = ("sd", "sideways", "tilt", "tail")


def _around(actions: Finite, log_area: Any, theta: Theta, unit: Any, mean: Any) -> Any:
    """ln of the probability of the observed cell under a spread around a mean."""
    one = HeavyTailed(lambda seen, k: mean, eqx.Partial(_spread, theta), theta["tail"], log_area)
    return one.log_prob(actions, unit["seen"], 0)[unit["action"]]


def units_of(given: Decisions) -> dict[str, Any]:
    """The decisions as data of a likelihood, features scaled to mean zero and unit spread."""
    values = np.asarray(jax.jit(jax.vmap(features))(given.seen))
    spread = values.std(axis=0)
    scaled = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return {"seen": given.seen, "action": given.action, "features": scaled}


__all__ = [
    "Cells",
    "HeavyTailed",
    "accounts_of",
    "family_of",
    "features",
    "spread_parameters",
    "units_of",
    "weigh",
]
