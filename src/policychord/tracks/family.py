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
from .decisions import Decisions
from .forces import Seen

Theta = Any
COLLISION = 2.0  # strength of the collision term, as in the flock's milling
# A weak prior of every free number, for the composed agent and its rivals alike. A force that is hardly used would
# otherwise have a weight of zero, whose logarithm lies nowhere, and a search would go on for ever.
WEAK = Normal(0.0, 2.0)
FEATURE = Normal(0.0, 1.0)  # of the softmax gate, whose features have unit spread
WEIGHED, WEIGHED_AT_ONCE = 1024, 64  # decisions whose weights are found in one call, and together within it
PRECISION = 1.0  # of the wish for the neighbours' velocity, in usual changes
LEAST_SHARE = 1e-6  # of a force where a search begins
WALK, CONSTANT, BY_MEAN, REGRESSION = "random walk", "constant mixture", "composed, by mean", "regression"
_SPREAD = ("sd", "sideways", "tilt", "tail")


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
        positive("sd", 1.0, prior=WEAK),  # the spread around every mean: at the usual speed, across over along,
        positive("sideways", 1.0, prior=WEAK),  # growth with speed, and tail
        real("tilt", 0.0, prior=WEAK),
        positive("tail", 4.0, prior=Normal(float(np.log(4.0)), WEAK.sd)),
        positive("precision", PRECISION, prior=Normal(float(np.log(PRECISION)), WEAK.sd)),
        positive("collision", COLLISION, prior=Normal(float(np.log(COLLISION)), WEAK.sd)),
    )
    usual = ("eps", "prior", "gain", *_SPREAD)
    return Family("tracks", build, declared, free or usual, features)


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
    agent = family.build({p.name: jnp.asarray(theta.get(p.name, p.start), float) for p in family.parameters})
    parts = []
    for begin in range(0, given.size, WEIGHED):
        here = np.minimum(np.arange(begin, begin + WEIGHED), given.size - 1)  # one program for all
        weighed = _weigh(agent, Seen(*(jnp.asarray(field[here]) for field in given.seen)))
        parts.append([np.asarray(part)[: given.size - begin] for part in weighed])
    weights, gap = (np.concatenate(part) for part in zip(*parts, strict=True))
    return weights, gap


@eqx.filter_jit
def _weigh(agent: Composer, all_seen: Seen) -> Any:
    def weigh_one(seen: Seen) -> Any:
        equilibrium = solve(agent.problem(seen, 0))
        return equilibrium.weights, equilibrium.certificate.gap

    return jax.lax.map(weigh_one, all_seen, batch_size=WEIGHED_AT_ONCE)


# ----------------------------------------------------------------------------------------------- rivals


def models_of(
    given: Decisions, family: Family, fixed: Theta | None = None, theta: Theta | None = None
) -> tuple[Model, ...]:
    """The rivals of the composed agent on the same decisions: all are distributions over the same cells.

    `theta` are estimates of the composed agent: searches for those of the constant mixture, and of the agent that acts
    by its mean, begin there, so that neither loses by a worse mode. A unit has `observation`, `action`, `features`.
    """
    names, n = given.names, len(given.names)
    free = {parameter.name: parameter for parameter in family.parameters if parameter.name in family.free}
    begun = {name: _at(parameter, (theta or {}).get(name)) for name, parameter in free.items()}
    spread = tuple(free[name] for name in free if name in _SPREAD)
    held = {parameter.name: jnp.asarray(parameter.start, float) for parameter in family.parameters} | dict(fixed or {})
    around = partial(_around, Finite(given.cells.points), jnp.asarray(given.cells.log_area))

    def random_walk(theta: Theta, unit: Any) -> Any:
        return around({**held, **theta}, unit, jnp.zeros(2))

    def alone(a: int, theta: Theta, unit: Any) -> Any:
        return around({**held, **theta}, unit, theta["strength"] * unit["observation"].force[a])

    def regression(theta: Theta, unit: Any) -> Any:
        return around({**held, **theta}, unit, theta["slope"] @ unit["observation"].force)

    def mixed(theta: Theta, unit: Any, log_w: Any) -> Any:
        # what is fixed for the composed agent is fixed for those with the same mixture, too
        theta = {**held, **theta}
        each = [around(theta, unit, theta["gain"][a] * unit["observation"].force[a]) for a in range(n)]
        return logsumexp(jnp.stack(each) + log_w)

    def constant(theta: Theta, unit: Any) -> Any:
        return mixed(theta, unit, jnp.log(theta["weights"]))

    def softmax_gate(theta: Theta, unit: Any) -> Any:
        logits = jnp.reshape(theta["gate"], (n - 1, -1)) @ jnp.concatenate([jnp.ones(1), unit["features"]])
        return mixed(theta, unit, jax.nn.log_softmax(jnp.concatenate([logits, jnp.zeros(1)])))

    def by_mean(theta: Theta, unit: Any) -> Any:
        theta = {**held, **theta}
        w = jnp.exp(log_weights(family.build(theta).problem(unit["observation"], 0))[0])
        return around(theta, unit, (w * theta["gain"]) @ unit["observation"].force)

    looks = [*(f"strength of {name}" for name in names), "speed", "distance from the wanted velocity"]
    labels = [f"{name}: {look}" for name in names[:-1] for look in ("constant", *looks)]
    gain, begun_gain = (tuple(group[name] for name in group if name == "gain") for group in (free, begun))
    weights = _at(simplex("weights", names, prior=WEAK), (theta or {}).get("prior"))
    begun_spread = tuple(begun[name] for name in begun if name in _SPREAD)
    strength, slope = real("strength", 1.0, prior=WEAK), real("slope", 0.3, labels=names, prior=WEAK)
    gate = real("gate", labels=labels, prior=FEATURE)
    return (
        Model(WALK, spread, random_walk, "no force: the velocity changes at random"),
        *(Model(f"{name} alone", (*spread, strength), partial(alone, a), "one force") for a, name in enumerate(names)),
        Model(REGRESSION, (*spread, slope), regression, "a weighted sum of all forces, always the same"),
        Model(CONSTANT, (*begun_spread, *begun_gain, weights), constant, "one mixture of all forces, one at a time"),
        Model("softmax gate", (*spread, *gain, gate), softmax_gate, "weights by a softmax of what is seen"),
        Model(BY_MEAN, tuple(begun.values()), by_mean, "the gate's weights, acting by the weighted sum of the forces"),
    )


def _at(parameter: Parameter, value: Any) -> Parameter:
    """A parameter that begins at a value, if there is one; shares are kept off zero."""
    if value is None:
        return parameter
    if parameter.transform == "simplex":
        value = np.maximum(value, LEAST_SHARE)
        value = value / value.sum()
    return parameter._replace(start=np.asarray(value) if parameter.labels else float(value))


def _around(actions: Finite, log_area: Any, theta: Theta, unit: Any, mean: Any) -> Any:
    """ln of the probability of the observed cell under a spread around a mean."""
    cells = HeavyTailed(lambda seen, k: mean, eqx.Partial(_spread, theta), theta["tail"], log_area)
    return cells.log_prob(actions, unit["observation"], 0)[unit["action"]]
