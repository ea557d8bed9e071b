"""The composed agent on decisions of a group: its gating problem, its weights, its estimates.

It has one cost, which is not estimated: come close to the velocity that the neighbours have on average, without
colliding with those ahead. `verdict.judge` says whether its weights, or others that change, are supported at all.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Observation, Time
from ..actions import AbstractActions
from ..core.equilibrium import solve
from ..core.objective import Problem
from ..inference import Family, Fit, Normal, Parameter, fit, positive, real, simplex
from ..inference.optimise import Progress
from ..inference.parameters import unconstrained
from ..primitives.base import AbstractPrimitive
from .decisions import Cells, Decisions, to_observations
from .forces import Seen

Theta = Mapping[str, Any]
COLLISION = 2.0  # strength of the collision term, as in the flock's milling
PRECISION = 1.0  # of the wish for the neighbours' velocity, in usual changes
# A weak prior of every free number, for the composed agent and its rivals alike. A force that is hardly used would
# otherwise have a weight of zero, whose logarithm lies nowhere, and a search would go on for ever.
WEAK = Normal(0.0, 2.0)
WEIGHED, WEIGHED_AT_ONCE = 1024, 64  # decisions whose weights are found in one call, and together within it
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
        mean, spread = self.mean(observation, k), self.spread(observation, k)
        return _heavy_tailed(actions.points, self.log_area, mean, spread, self.tail)


def _heavy_tailed(points: Any, log_area: Any, mean: Any, spread: Any, tail: Any) -> Any:
    offset = (points - mean) / spread
    distance = offset[:, 0] ** 2 + offset[:, 1] ** 2
    return jax.nn.log_softmax(log_area - (1.0 + 0.5 * tail) * jnp.log(1.0 + distance / tail))


def _around(cells: Cells, theta: Theta, seen: Seen, mean: Any) -> Float[Array, " d"]:
    """ln of the probabilities of all cells around a mean.

    The spread is sd along the heading and sideways * sd across, at the usual speed; it grows as ((1 + speed)/2)^tilt.
    """
    along = theta["sd"] * (0.5 + 0.5 * seen.speed) ** theta["tilt"]
    spread = jnp.stack([along, along * theta["sideways"]])
    return _heavy_tailed(jnp.asarray(cells.points), jnp.asarray(cells.log_area), mean, spread, theta["tail"])


def gating_problem(cells: Cells, theta: Theta, seen: Seen) -> Problem:
    """The gating problem of an individual that mixes forces: primitive a is heavy-tailed around gain_a force_a.

    s(u) = precision/2 |u - wanted|^2 + collision sum_j max(0, u.n_j)/d_j - ln area(u): the neighbours' mean velocity
    and no collision, as in the flock. The price of a cell makes the objective that of densities.
    """
    log_pi = jax.vmap(partial(_around, cells, theta, seen), out_axes=-1)(theta["gain"][:, None] * seen.force)
    points = jnp.asarray(cells.points)
    distance = jnp.sum((points - seen.wanted) ** 2, axis=-1)
    collision = jnp.sum(jnp.maximum(points @ seen.closeness.T, 0.0), axis=-1)
    cost = 0.5 * theta["precision"] * distance + theta["collision"] * collision - cells.log_area
    eps, log_prior = jnp.asarray(theta["eps"], float), jax.nn.log_softmax(jnp.log(theta["prior"]))
    return Problem(jnp.exp(log_pi), cost, eps, log_prior)


def _parameters(names: tuple[str, ...]) -> tuple[Parameter, ...]:
    return (
        positive("eps", 1.0, prior=WEAK),
        simplex("prior", names, prior=WEAK),
        positive("gain", 1.0, labels=names, prior=WEAK),
        positive("sd", 1.0, prior=WEAK),
        positive("sideways", 1.0, prior=WEAK),
        real("tilt", 0.0, prior=WEAK),
        positive("tail", 4.0, prior=Normal(float(np.log(4.0)), WEAK.sd)),
        positive("precision", PRECISION, prior=Normal(float(np.log(PRECISION)), WEAK.sd)),
        positive("collision", COLLISION, prior=Normal(float(np.log(COLLISION)), WEAK.sd)),
    )


def complete(names: tuple[str, ...], theta: Theta) -> dict[str, Any]:
    """Values of all parameters of the composed agent, checked; what `theta` lacks is at its start."""
    parameters = _parameters(names)
    unconstrained(parameters, theta)  # says what is wrong
    return {p.name: jnp.asarray(theta.get(p.name, p.start), float) for p in parameters}


def family_of(given: Decisions, free: tuple[str, ...] = ()) -> Family:
    """Individuals that mix the forces of these decisions, by their gating problems.

    Temperature and the cost's scale can hardly be distinguished, so precision and collision stay fixed unless `free`
    names them.
    """

    def build(theta: Theta) -> Callable[[Seen, Time], Problem]:
        known = {name: jnp.asarray(value, float) for name, value in theta.items()}
        return lambda seen, k: gating_problem(given.cells, known, seen)

    return Family("tracks", build, _parameters(given.names), free or ("eps", "prior", "gain", *_SPREAD), features)


def features(seen: Seen) -> Any:
    """What a softmax gate may look at: how strong each force is, the own speed, and how far the neighbours' is."""
    strength = jnp.sqrt(jnp.sum(seen.force**2, axis=-1) + 1e-12)
    return jnp.concatenate([strength, jnp.stack([seen.speed, jnp.sqrt(jnp.sum(seen.wanted**2) + 1e-12)])])


def weigh(given: Decisions, theta: Theta) -> tuple[Float[np.ndarray, "N n"], Float[np.ndarray, " N"]]:
    """The composed agent's weights at decisions, with their certified gap; what `theta` lacks is at its start."""
    known, parts = complete(given.names, theta), []
    for begin in range(0, given.size, WEIGHED):
        here = np.minimum(np.arange(begin, begin + WEIGHED), given.size - 1)  # one program for all
        weighed = _weigh(given.cells, known, Seen(*(jnp.asarray(field[here]) for field in given.seen)))
        parts.append([np.asarray(part)[: given.size - begin] for part in weighed])
    weights, gap = (np.concatenate(part) for part in zip(*parts, strict=True))
    return weights, gap


@eqx.filter_jit
def _weigh(cells: Cells, theta: Theta, all_seen: Seen) -> Any:
    def weigh_one(seen: Seen) -> Any:
        equilibrium = solve(gating_problem(cells, theta, seen))
        return equilibrium.weights, equilibrium.certificate.gap

    return jax.lax.map(weigh_one, all_seen, batch_size=WEIGHED_AT_ONCE)


def fit_agent(
    given: Decisions, *, free: tuple[str, ...] = (), fixed: Mapping[str, Any] | None = None, starts: int = 3,
    seed: int = 0, progress: Progress | None = None,
) -> Fit:  # fmt: skip
    """The composed agent's estimates, whatever the verdict: for its weights, films and simulated groups."""
    fitted = fit(family_of(given, free), to_observations(given), fixed=dict(fixed or {}), method="map", starts=starts,
                 hold_out="block", compare=False, profiles=False, seed=seed, progress=progress)  # fmt: skip
    if not fitted.complete:
        raise KeyboardInterrupt
    return fitted
