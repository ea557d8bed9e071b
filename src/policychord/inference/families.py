"""The paper's agents as families to be fitted: which of their numbers may be parameters, and how to build and simulate.

A line in FAMILIES offers one to the command, which checks its options by their types.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from pydantic import Field

from .._types import Time
from ..actions import Finite
from ..agent import Composer
from ..loops.rollout import rollout
from ..models import Cost, GaussianTarget, Reference, Sum
from ..population import Population
from ..primitives import Categorical, Gaussian
from ..worlds.bandit import Bandit, Belief
from ..worlds.flock import agents as flock_agents
from ..worlds.flock.settings import FlockSettings
from ..worlds.quadrotor import agents as quadrotor_agents
from ..worlds.quadrotor.settings import QuadrotorSettings
from .decisions import Family, Observations, from_dataset, from_trace, observations
from .parameters import Theta, positive, real, simplex, unconstrained
from .recovery import Design

SURE = 0.99  # how often exploitation takes the better arm
Spread = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]  # the variance of an arm


# ------------------------------------------------------------------------------------------------ flock


def flock(
    boids: Annotated[int, Field(ge=2, le=1000)] = 40,
    steps: Annotated[int, Field(ge=1, le=10_000)] = 25,
    collision: bool = True,
) -> Design:
    """Boids with the paper's three forces. Precision and collision are the scale of the cost, so eps alone is free."""
    settings = FlockSettings(boids=boids, steps=steps, collision_term=collision)
    env = flock_agents.flock_world(settings)
    grid = flock_agents.actions_of(settings)
    strength = jnp.asarray(settings.max_acceleration)
    sd = float(np.sqrt(settings.separation_variance))
    usual = {name: Gaussian(eqx.Partial(flock_agents.force, strength, name), sd) for name in flock_agents.FORCES}
    aim = jnp.zeros(3)

    def build(theta: Theta) -> Composer:
        primitives = _spread(usual, theta["sd"], sd)
        demands: dict[str, Any] = {
            "velocity": GaussianTarget(eqx.Partial(flock_agents.next_of, env, 1),
                                       eqx.Partial(flock_agents.wanted_velocity, aim), 1.0 / theta["precision"]),
        }  # fmt: skip
        if collision:
            careful = Categorical(eqx.Partial(flock_agents.collisions, grid.points, theta["collision"]))
            demands["collision"] = Reference(careful, floor=settings.collision_floor)
        return Composer(primitives, Sum(**demands), grid, theta["eps"], theta["prior"])

    parameters = [
        positive("eps", settings.eps),
        simplex("prior", flock_agents.FORCES),
        positive("precision", 1.0 / settings.desired_variance),
        positive("sd", sd),
    ]
    parameters += [positive("collision", settings.collision_strength)] if collision else []
    family = Family("flock", build, tuple(parameters), ("eps", "prior"), _flock_features)
    return _design(family, env, steps, f"{boids} boids, {steps} steps an episode", boids=boids, tidy=_compact)


def _flock_features(view: Any) -> Any:
    """What a boid could gate on: how strong each force is."""
    return jnp.stack([jnp.sqrt(jnp.sum(getattr(view, name) ** 2) + 1e-12) for name in flock_agents.FORCES])


def _compact(seen: Observations) -> Observations:
    """The same decisions with as many places for close neighbours as any boid needs, nearest places first."""
    view = seen.observation
    there = np.any(view.closeness != 0, axis=-1)
    most = max(1, int(there.sum(axis=1).max()))
    order = np.argsort(~there, axis=1, kind="stable")[:, :most]
    closeness = np.take_along_axis(view.closeness, order[..., None], axis=1)
    return seen._replace(observation=view._replace(closeness=closeness))


# ------------------------------------------------------------------------------------------------ bandit


def bandit(
    variance: tuple[Spread, Spread] = (100.0, 100.0), trials: Annotated[int, Field(ge=1, le=10_000)] = 10
) -> Design:
    """Two arms: exploitation, uncertainty seeking and risk aversion, mixed to come close to a Hybrid policy."""
    actions = Finite(len(variance))
    primitives = {
        "exploit": Categorical(_exploit),
        "uncertainty": Categorical(_uncertain),
        "risk": Categorical(_risk),
    }
    env = Bandit(variance)

    def build(theta: Theta) -> Composer:
        hybrid = Reference(Categorical(eqx.Partial(_hybrid, theta["coef"])))
        return Composer(primitives, hybrid, actions, theta["eps"], theta["prior"])

    parameters = (
        real("coef", [1.0, 0.16], labels=("V/TU", "RU")),
        positive("eps", 0.01),
        simplex("prior", tuple(primitives)),
    )
    family = Family("bandit", build, parameters, ("coef", "prior"), _bandit_features)
    return _design(family, env, trials, f"blocks of {trials} trials, variances {variance}")._replace(read=of_choices)


def of_choices(trials: Any) -> Observations:
    """Choices of people (`policychord.choices.Trials`) with the beliefs they were made with."""
    seen = Belief(trials.mean, trials.variance)
    return observations(seen, trials.choice, k=trials.trial, subject=trials.subject, block=trials.block)


def _exploit(belief: Belief, k: Time) -> Any:
    best = belief.mean >= jnp.max(belief.mean)
    count, arms = jnp.sum(best), belief.mean.shape[0]
    prob = jnp.where(best, SURE / count, (1.0 - SURE) / jnp.maximum(arms - count, 1))
    return jnp.log(jnp.where(count == arms, 1.0 / arms, prob))


def _uncertain(belief: Belief, k: Time) -> Any:
    return jnp.log(belief.variance / jnp.sum(belief.variance))


def _risk(belief: Belief, k: Time) -> Any:
    return -belief.variance


def _hybrid(coef: Any, belief: Belief, k: Time) -> Any:
    """Probit of w1 V/TU + w2 RU for two arms, as logits."""
    total = jnp.sqrt(jnp.sum(belief.variance))
    deviation = jnp.sqrt(belief.variance)
    utility = coef[0] * (belief.mean[0] - belief.mean[1]) / total + coef[1] * (deviation[0] - deviation[1])
    return jnp.stack([jax.scipy.special.log_ndtr(utility), jax.scipy.special.log_ndtr(-utility)])


def _bandit_features(belief: Belief) -> Any:
    deviation = jnp.sqrt(belief.variance)
    return jnp.stack([belief.mean[0] - belief.mean[1], deviation[0] - deviation[1], jnp.sqrt(belief.variance.sum())])


# --------------------------------------------------------------------------------------------- quadrotor


def quadrotor(points: Annotated[int, Field(ge=2, le=300)] = 20) -> Design:
    """Two controllers with a spread around their commands; their thrusts as a tracking cost of one step."""
    settings = QuadrotorSettings()
    how = settings.composition.model_copy(update={"points": points})
    usual = quadrotor_agents.composer(settings, "pd", how)
    env = quadrotor_agents.quadrotor_world(settings.model_copy(update={"thrust_sd": 0.0}), "pd")
    assert isinstance(usual.model, Cost)
    tracking: Any = usual.model.action_cost

    def build(theta: Theta) -> Composer:
        scaled = Cost(eqx.Partial(_scaled, tracking, theta["scale"]))
        controllers: Any = dict(zip(usual.names, usual.primitives, strict=True))
        primitives = _spread(controllers, theta["sd"], how.spread)
        return Composer(primitives, scaled, usual.actions, theta["eps"], theta["prior"])

    parameters = (
        positive("eps", how.eps),
        simplex("prior", usual.names),
        positive("scale", 1.0),
        positive("sd", how.spread),
    )
    family = Family("quadrotor", build, parameters, ("eps", "prior"), _quadrotor_features)
    return _design(family, env, settings.steps, f"{settings.steps} steps along a {settings.path}")


def _scaled(tracking: Any, scale: Any, view: Any, thrust: Any, k: Time) -> Any:
    return scale * tracking(view, thrust, k)


def _quadrotor_features(view: Any) -> Any:
    return view.x


# ------------------------------------------------------------------------------------------------- shared


def _design(
    family: Family,
    env: Any,
    steps: int,
    description: str,
    *,
    boids: int = 0,
    tidy: Callable[[Any], Any] = lambda seen: seen,
) -> Design:
    """A family in its environment: episodes of so many steps, of one agent or of so many boids."""

    def simulate(theta: Theta, decisions: int, seed: int) -> Observations:
        agent = family.build(full(family, theta))
        episodes = -(-decisions // (steps * max(boids, 1)))
        trace = rollout(Population([agent] * boids) if boids else agent, env, steps=steps, episodes=episodes, seed=seed)
        return jax.tree_util.tree_map(lambda leaf: leaf[:decisions], tidy(from_trace(trace, env)))

    return Design(family, simulate, description, lambda dataset: tidy(from_dataset(dataset, env)))


def full(family: Family, theta: Theta) -> dict[str, Any]:
    """All parameters of a family: those given, the others at their start."""
    unconstrained(family.parameters, theta)  # says what is wrong with a name or a value
    return {each.name: jnp.asarray(theta.get(each.name, each.start), float) for each in family.parameters}


def _spread(primitives: Mapping[str, Gaussian], sd: Any, usual: float) -> dict[str, Gaussian]:
    """The primitives with another sd, if it is a parameter here or another number than usual."""
    if isinstance(sd, jax.core.Tracer) or float(sd) != usual:
        return {name: Gaussian(primitive.mean, sd) for name, primitive in primitives.items()}
    return dict(primitives)


FAMILIES: Mapping[str, Callable[..., Design]] = MappingProxyType(
    {"flock": flock, "bandit": bandit, "quadrotor": quadrotor}
)
