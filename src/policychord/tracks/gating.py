"""Do these animals gate? The composed agent and its rivals, fitted to the same decisions, and what follows from it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from .._types import Observation, Time
from ..actions import AbstractActions
from ..core.equilibrium import solve
from ..core.objective import Problem
from ..inference import Comparison, Difference, Family, Fit, Model, Normal, Parameter, fit, positive, real, simplex
from ..inference.decisions import AGENT, log_weights
from ..inference.findings import amount
from ..inference.optimise import Progress
from ..inference.parameters import unconstrained
from ..inference.uncertainty import LEAST_MOVEMENT
from ..primitives.base import AbstractPrimitive
from .decisions import Cells, Decisions, to_observations
from .forces import Seen

Theta = Mapping[str, Any]
COLLISION = 2.0  # strength of the collision term, as in the flock's milling
PRECISION = 1.0  # of the wish for the neighbours' velocity, in usual changes
# A weak prior of every free number, for the composed agent and its rivals alike. A force that is hardly used would
# otherwise have a weight of zero, whose logarithm lies nowhere, and a search would go on for ever.
WEAK = Normal(0.0, 2.0)
FEATURE = Normal(0.0, 1.0)  # of the softmax gate, whose features have unit spread
WEIGHED, WEIGHED_AT_ONCE = 1024, 64  # decisions whose weights are found in one call, and together within it
LEAST_SHARE = 1e-6  # of a force where a search begins
WALK, CONSTANT, BY_MEAN, REGRESSION = "random walk", "constant mixture", "composed, by mean", "regression"
Call = Literal["gating", "constant", "worse than constant"]
Acts = Literal["by sample", "by mean"]
WAYS: dict[Acts, tuple[str, str]] = {"by sample": (AGENT, CONSTANT), "by mean": (BY_MEAN, REGRESSION)}
NEEDED = {WALK, *(name for pair in WAYS.values() for name in pair)}  # by the question alone
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

    Temperature and the cost's scale cannot be told apart well, so precision and collision stay fixed unless `free`
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


# ----------------------------------------------------------------------------------------------- rivals


def models_of(
    given: Decisions, family: Family, fixed: Theta | None = None, theta: Theta | None = None
) -> tuple[Model, ...]:
    """The rivals of the composed agent on the same decisions: all are distributions over the same cells.

    `theta` are estimates of the composed agent: searches for those of the constant mixture, and of the agent that acts
    by its mean, begin there, so that neither loses by a worse mode. A unit has `observation`, `action`, `features`.
    """
    names, n = given.names, len(given.names)
    theta, fixed = theta or {}, fixed or {}
    free = {parameter.name: parameter for parameter in family.parameters if parameter.name in family.free}
    begun = {name: _at(parameter, theta.get(name)) for name, parameter in free.items()}
    # what is fixed for the composed agent is fixed for those with the same mixture, too
    held = {parameter.name: jnp.asarray(parameter.start, float) for parameter in family.parameters} | dict(fixed)

    def around(theta: Theta, unit: Any, mean: Any) -> Any:
        return _around(given.cells, {**held, **theta}, unit["observation"], mean)[unit["action"]]

    def pushes(theta: Theta, unit: Any) -> Any:
        return {**held, **theta}["gain"][:, None] * unit["observation"].force

    def mixed(theta: Theta, unit: Any, log_w: Any) -> Any:
        return logsumexp(jax.vmap(partial(around, theta, unit))(pushes(theta, unit)) + log_w)

    def random_walk(theta: Theta, unit: Any) -> Any:
        return around(theta, unit, jnp.zeros(2))

    def alone(a: int, theta: Theta, unit: Any) -> Any:
        return around(theta, unit, theta["strength"] * unit["observation"].force[a])

    def regression(theta: Theta, unit: Any) -> Any:
        return around(theta, unit, theta["slope"] @ unit["observation"].force)

    def constant(theta: Theta, unit: Any) -> Any:
        return mixed(theta, unit, jnp.log(theta["weights"]))

    def softmax_gate(theta: Theta, unit: Any) -> Any:
        logits = jnp.reshape(theta["gate"], (n - 1, -1)) @ jnp.concatenate([jnp.ones(1), unit["features"]])
        return mixed(theta, unit, jax.nn.log_softmax(jnp.concatenate([logits, jnp.zeros(1)])))

    def by_mean(theta: Theta, unit: Any) -> Any:
        log_w, _ = log_weights(gating_problem(given.cells, {**held, **theta}, unit["observation"]))
        return around(theta, unit, jnp.exp(log_w) @ pushes(theta, unit))

    looks = [*(f"strength of {name}" for name in names), "speed", "distance from the wanted velocity"]
    labels = [f"{name}: {look}" for name in names[:-1] for look in ("constant", *looks)]
    spread, begun_spread = (tuple(group[name] for name in group if name in _SPREAD) for group in (free, begun))
    gain, begun_gain = (tuple(group[name] for name in group if name == "gain") for group in (free, begun))
    weights = _at(simplex("weights", names, prior=WEAK), theta.get("prior"))
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


# ------------------------------------------------------------------------------------------- the answer


class Judged(NamedTuple):
    """Are weights that follow the situation needed, in the way of acting that explains the decisions better?

    By sample: an individual follows one force at a time, drawn by the weights; without a gate that is the constant
    mixture. By mean: it follows the weighted sum; without a gate that is the regression on the forces.
    """

    acts: Acts
    gain: Difference  # of the gate over constant weights, in that way of acting
    moved: float  # the largest standard deviation of a force's weight over the decisions
    call: Call
    other: Difference  # the gain in the other way of acting


class Answer(NamedTuple):
    """What was found about one file."""

    decisions: Decisions
    fit: Fit  # of the composed agent: estimates, errors, verdicts, weights with their certificates
    comparison: Comparison  # of it and its rivals
    judged: Judged

    @property
    def sentence(self) -> str:
        """The answer in words."""
        return _sentence(self.comparison, self.judged, self.decisions.held_out_by)


def answer(
    given: Decisions,
    *,
    free: tuple[str, ...] = (),
    fixed: dict[str, Any] | None = None,
    starts: int = 4,
    quick: bool = False,
    profiles: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Answer:
    """Fit the composed agent, compare it with its rivals on the same folds, and say whether gating is needed.

    `quick` leaves out rivals that the question does not need.
    """
    family, fixed = family_of(given, free), fixed or {}

    def rivals(theta: Theta) -> Sequence[Model]:
        return [model for model in models_of(given, family, fixed, theta) if not quick or model.name in NEEDED]

    fitted = fit(
        family, to_observations(given), fixed=fixed, method="map", starts=starts, hold_out="block", compare=rivals,
        profiles=profiles, seed=seed, progress=progress,
    )  # fmt: skip
    comparison = fitted.comparison
    if not fitted.complete or comparison is None:
        raise KeyboardInterrupt
    by_mean, _ = weigh(given, {**fixed, **comparison.score(BY_MEAN).theta()})
    moved = {way: float(weights.std(axis=0).max())
             for way, weights in (("by sample", fitted.weights), ("by mean", by_mean))}  # fmt: skip
    return Answer(given, fitted, comparison, _judge(comparison, moved))


def _judge(comparison: Comparison, moved: Mapping[str, float]) -> Judged:
    """The call in the way of acting with the best model; `moved` by way of acting."""
    gains = {way: comparison.difference(*pair) for way, pair in WAYS.items()}
    best = {way: max(comparison.score(name).held_out for name in pair) for way, pair in WAYS.items()}
    acts: Acts = "by mean" if best["by mean"] > best["by sample"] else "by sample"
    other: Acts = "by sample" if acts == "by mean" else "by mean"
    return Judged(acts, gains[acts], moved[acts], call_of(gains[acts], moved[acts]), gains[other])


def call_of(gain: Difference, moved: float) -> Call:
    """Gating, if weights that move are established to predict held-out decisions better; constant otherwise.

    Weights move if their standard deviation over the decisions is at least `LEAST_MOVEMENT` for some force.
    """
    if moved < LEAST_MOVEMENT:
        return "constant"
    calls: dict[str, Call] = {"better": "gating", "worse": "worse than constant", "not established": "constant"}
    return calls[gain.call]


def _sentence(comparison: Comparison, judged: Judged, held_out_by: str) -> str:
    """The answer in words, made of the numbers."""
    gain, mean = judged.gain, judged.acts == "by mean"
    without = "constant weights, which are a regression on the forces" if mean else "constant weights"
    if judged.call == "worse than constant":
        words = (f"This gate is the wrong model here: weights that follow the model of good motion predict worse than "
                 f"{without} ({amount(gain)}).")  # fmt: skip
    elif judged.call == "constant" and judged.moved < LEAST_MOVEMENT:
        words = (f"Gating is not needed here: the fitted weights hardly move (sd {judged.moved:.4f}), so what the gate "
                 f"adds over {without} ({amount(gain)}) is not gating.")  # fmt: skip
    else:
        needed = "needed" if judged.call == "gating" else "not needed"
        words = f"Gating is {needed} here: weights that follow the situation add {amount(gain)} over {without}."
    if mean:
        words += (" These individuals follow a weighted sum of the forces rather than one of them at a time; if they "
                  f"followed one at a time, the gate would add {amount(judged.other)}.")  # fmt: skip
    gate, best = WAYS[judged.acts][0], comparison.names[0]
    if best != gate:
        words += f" Best of all: {best} ({amount(comparison.difference(best, gate))} over {gate})."
    return f"{words} (Held out by {held_out_by}.)"
