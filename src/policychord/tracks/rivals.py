"""Explanations of the same changes of velocity, as densities: constant weights, and weights that follow the situation.

u is the change of velocity in body coordinates. Without company an individual moves by its own terms, in one of two
ways, such as bursts and coasting, whose odds depend on its own motion:

    p(u) = sum_k q_k(own motion) sum_a w_a t(u; own_k + m_k g_a force_a, spread_k)        one force at a time
    p(u) = sum_k q_k(own motion) t(u; own_k + m_k sum_a b_a force_a, spread_k)            a weighted sum of forces

with Student's t in the plane. All models share this baseline; they differ in the weights of the social forces alone:
w_a constant, a softmax of the features, or the solution of a gating problem. Constant weights are part of every other
model, so that what a gate adds is a gain over them.
"""

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from ..inference import Model, Normal, Parameter, positive, real, simplex
from ..inference.decisions import log_weights
from .decisions import cells_of
from .forces import Seen
from .gating import COLLISION, PRECISION, WEAK, gating_problem
from .situations import Situations

ALONE, SUM, MIXTURE = "own motion", "constant sum", "constant mixture"
SOFT_SUM, SOFT_MIXTURE = "softmax gate, sum", "softmax gate, mixture"
GATED_SUM, GATED = "gating problem, sum", "gating problem, mixture"
BURSTS = 4  # own terms in which the two ways of moving differ
GATE = Normal(0.0, 1.0)  # of a softmax gate, whose features have unit spread
# the gate looks at these changes of velocity: the same for all data, so that programs are shared
GRID = cells_of(np.array([[6.0, 0.0]]))


class Names(NamedTuple):
    """What the numbers of the models are called."""

    social: tuple[str, ...]
    shapes: tuple[str, ...]
    of: tuple[int, ...]  # the force that each shape belongs to
    own_terms: tuple[str, ...]
    features: tuple[str, ...]


def units_of(given: Situations) -> dict[str, np.ndarray]:
    """What a model knows about each decision."""
    names = ("change", "force", "shape", "own", "before", "speed", "feature", "wanted", "closeness")
    return {name: np.asarray(getattr(given, name)) for name in names}


def names_of(given: Situations) -> Names:
    """The names for `models_of`."""
    return Names(given.social, given.shapes, given.of, given.own_terms, given.features)


@lru_cache(maxsize=16)  # programs are kept by the function that they were made of
def models_of(names: Names) -> Mapping[str, Model]:
    """All models by name."""
    shape = (real("shape", labels=names.shapes, prior=GATE),) if names.shapes else ()
    base = (*_baseline(names), *shape)
    slope = real("slope", 0.1, labels=names.social, prior=WEAK)
    odds = simplex("odds", (*names.social, "none"), prior=WEAK)
    gain = positive("gain", 1.0, labels=names.social, prior=WEAK)
    gate = real("gate", labels=[f"{force}: {look}" for force in names.social for look in names.features], prior=GATE)
    eps = positive("eps", 3.0, prior=WEAK)
    own = tuple(p for p in base if p.name not in ("social", "shape"))
    models = (
        Model(ALONE, own, partial(log_prob_of, ALONE, names), "own motion and walls; no company"),
        Model(SUM, (*base, slope), partial(log_prob_of, SUM, names), "a weighted sum of the forces, always the same"),
        Model(MIXTURE, (*base, odds, gain), partial(log_prob_of, MIXTURE, names),
              "one force at a time, with constant odds"),
        Model(SOFT_SUM, (*base, slope, gate), partial(log_prob_of, SOFT_SUM, names),
              "a weighted sum, with weights by a softmax of the features"),
        Model(SOFT_MIXTURE, (*base, odds, gain, gate), partial(log_prob_of, SOFT_MIXTURE, names),
              "one force at a time, with odds by a softmax of the features"),
        Model(GATED, (*base, odds, gain, eps), partial(log_prob_of, GATED, names),
              "one force at a time, with odds that solve a gating problem"),
        Model(GATED_SUM, (*base, odds, gain, eps), partial(log_prob_of, GATED_SUM, names),
              "a weighted sum, with weights that solve a gating problem"),
    )  # fmt: skip
    return {model.name: model for model in models}


def _baseline(names: Names) -> tuple[Parameter, ...]:
    kinds = names.own_terms[:BURSTS]
    looks = ("constant", "speed", "change ahead before", "size of the change before")
    return (
        real("own", labels=names.own_terms, prior=WEAK),
        positive("sd", 0.7, prior=WEAK),
        positive("sideways", 1.0, prior=WEAK),
        real("tilt", 0.0, prior=WEAK),
        positive("tail", 8.0, prior=Normal(float(np.log(8.0)), 1.0)),
        real("burst", [-1.0, 0.0, 0.0, 0.0], labels=looks, prior=WEAK),
        real("burst own", labels=kinds, prior=WEAK),
        positive("burst sd", 2.0, prior=Normal(float(np.log(2.0)), 1.0)),
        positive("burst sideways", 1.0, prior=Normal(0.0, 1.0)),
        positive("social", 1.0, prior=Normal(0.0, 0.5)),
    )


class _Ways(NamedTuple):
    """The two ways of moving: ln of their odds, what is done without company, and spreads."""

    log_odds: Any  # (2)
    common: Any  # (2, 2)
    spread: Any  # (2, 2)
    social: Any  # (2): by what a push counts


def _ways(theta: Mapping[str, Any], unit: Mapping[str, Any]) -> _Ways:
    own, before = unit["own"], unit["before"]
    common = theta["own"] @ own
    looks = jnp.stack([jnp.ones(()), unit["speed"], before[0], jnp.sqrt(before @ before + 1e-12)])
    logit = theta["burst"] @ looks
    along = theta["sd"] * (0.5 + 0.5 * unit["speed"]) ** theta["tilt"]
    spread = jnp.stack([along, along * theta["sideways"]])
    wide = spread * theta["burst sd"] * jnp.stack([jnp.ones(()), theta["burst sideways"]])
    return _Ways(jnp.stack([jax.nn.log_sigmoid(-logit), jax.nn.log_sigmoid(logit)]),
                 jnp.stack([common, common + theta["burst own"] @ own[:BURSTS]]), jnp.stack([spread, wide]),
                 jnp.stack([jnp.ones(()), theta["social"]]))  # fmt: skip


def _density(theta: Mapping[str, Any], unit: Mapping[str, Any], push: Any, log_odds: Any) -> Any:
    """ln p of the change, where each of the pushes (c, 2) is followed with its odds."""
    ways, tail = _ways(theta, unit), theta["tail"]
    mean = ways.common[:, None] + ways.social[:, None, None] * push  # (way, c, 2)
    distance = jnp.sum(((unit["change"] - mean) / ways.spread[:, None]) ** 2, axis=-1)
    area = jnp.log(2 * jnp.pi * ways.spread[:, 0] * ways.spread[:, 1])[:, None]
    each = -area - (1.0 + 0.5 * tail) * jnp.log1p(distance / tail)
    return logsumexp(each + ways.log_odds[:, None] + log_odds)


def draw(name: str, names: Names, theta: Mapping[str, Any], unit: Any, key: Any) -> Any:
    """A change of velocity as a model has it in a situation, (2)."""
    theta = {"social": 1.0, **theta}
    push, log_odds = parts_of(name, names, theta, unit)
    ways = _ways(theta, unit)
    first, second, third, fourth = jax.random.split(key, 4)
    way, one = jax.random.categorical(first, ways.log_odds), jax.random.categorical(second, log_odds)
    scale = jnp.sqrt(theta["tail"] / (2.0 * jax.random.gamma(fourth, 0.5 * theta["tail"])))
    return ways.common[way] + ways.social[way] * push[one] + ways.spread[way] * jax.random.normal(third, (2,)) * scale


def pushes_of(names: Names, theta: Mapping[str, Any], unit: Any, by: str) -> Any:
    """Where each social force pushes, with its shapes, (s, 2); `by` is what multiplies it: slope or gain."""
    push = theta[by][:, None] * unit["force"]
    return push.at[np.array(names.of)].add(theta["shape"][:, None] * unit["shape"]) if names.shapes else push


def _with_none(push: Any) -> Any:
    return jnp.concatenate([push, jnp.zeros((1, 2))])


def gate_logits(theta: Mapping[str, Any], feature: Any) -> Any:
    """Of following each social force, against following none (the last, 0)."""
    return jnp.concatenate([jnp.reshape(theta["gate"], (-1, feature.shape[-1])) @ feature, jnp.zeros(1)])


def sum_factors(theta: Mapping[str, Any], feature: Any) -> Any:
    """By what a situation multiplies the weight of each force: (s + 1) softmax, one where nothing depends on it."""
    share = jax.nn.softmax(gate_logits(theta, feature))[:-1]
    return share * (len(share) + 1)


def mixture_log_odds(theta: Mapping[str, Any], feature: Any) -> Any:
    """ln of the odds of each social force, and of none, in a situation."""
    return jax.nn.log_softmax(jnp.log(theta["odds"]) + gate_logits(theta, feature))


def problem_of(names: Names, theta: Mapping[str, Any], unit: Mapping[str, Any]) -> Any:
    """The gating problem of a decision: primitives around what an individual does anyway and each social force."""
    mean = theta["own"] @ unit["own"] + _with_none(pushes_of(names, theta, unit, "gain"))
    seen = Seen(mean, unit["speed"], unit["wanted"], unit["closeness"])
    known = {
        **theta,
        "gain": jnp.ones(len(mean)),
        "prior": theta["odds"],
        "precision": PRECISION,
        "collision": COLLISION,
    }
    return gating_problem(GRID, known, seen)


def parts_of(name: str, names: Names, theta: Mapping[str, Any], unit: Any) -> tuple[Any, Any]:
    """What a model follows in a situation: pushes (c, 2) and ln of the odds of each."""
    if name == ALONE:
        return jnp.zeros((1, 2)), jnp.zeros(1)
    if name in (SUM, SOFT_SUM):
        push = pushes_of(names, theta, unit, "slope")
        factor = sum_factors(theta, unit["feature"]) if name == SOFT_SUM else 1.0
        return jnp.sum(push * jnp.reshape(factor, (-1, 1)), axis=0)[None], jnp.zeros(1)
    push = _with_none(pushes_of(names, theta, unit, "gain"))
    if name == MIXTURE:
        return push, jnp.log(theta["odds"])
    if name == SOFT_MIXTURE:
        return push, mixture_log_odds(theta, unit["feature"])
    log_odds = log_weights(problem_of(names, theta, unit))[0]
    return (push, log_odds) if name == GATED else ((jnp.exp(log_odds) @ push)[None], jnp.zeros(1))


def log_prob_of(name: str, names: Names, theta: Mapping[str, Any], unit: Any) -> Any:
    return _density({"social": 1.0, **theta}, unit, *parts_of(name, names, theta, unit))
