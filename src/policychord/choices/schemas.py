"""From beliefs to behaviour, for all trials at once: schemas (simple policies to be mixed) and features of the arms."""

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import softmax

from .._types import namespace
from .beliefs import Trials

# (trials, arms): probabilities, or the value of a feature
OfTrials = Callable[[Trials], np.ndarray]
Schemas = Collection[str] | Mapping[str, OfTrials]  # names of ours, or functions by names of your own
SURE = 0.99  # how often exploitation takes the best arm


def exploit(trials: Trials, ties: float = 0.0) -> np.ndarray:
    """The best arm with probability .99, the others share the rest; arms within `ties` of the best share alike."""
    mean = trials.mean if trials.offered is None else np.where(trials.offered, trials.mean, -np.inf)
    best = mean >= mean.max(1, keepdims=True) - ties
    count, arms = best.sum(1, keepdims=True), np.isfinite(mean).sum(1, keepdims=True)
    others = np.maximum(arms - count, 1)
    prob = np.where(best, SURE / count, (1.0 - SURE) / others)
    return np.where(count == arms, 1.0 / arms, prob)


def _uncertainty(trials: Trials) -> np.ndarray:
    """s_j / sum s: the more uncertain, the more often."""
    total = trials.variance.sum(1, keepdims=True)
    share = np.full_like(trials.variance, 1.0 / trials.arms)
    return np.divide(trials.variance, total, out=share, where=total > 0)


def risk(trials: Trials) -> np.ndarray:
    """softmax(-s): the more uncertain, the more rarely."""
    return softmax(-trials.variance, axis=1)


def _repeat(trials: Trials) -> np.ndarray:
    """The arm taken last in the block with probability .99; any arm at first."""
    again = np.arange(trials.arms) == trials.previous[:, None]
    prob = np.where(again, SURE, (1.0 - SURE) / (trials.arms - 1))
    return np.where(trials.previous[:, None] < 0, 1.0 / trials.arms, prob)


def random(trials: Trials) -> np.ndarray:
    """Any arm."""
    return np.full_like(trials.mean, 1.0 / trials.arms)


PAPER: Mapping[str, OfTrials] = MappingProxyType({"exploit": exploit, "uncertainty": _uncertainty, "risk": risk})
KNOWN: Mapping[str, OfTrials] = MappingProxyType({**PAPER, "repeat": _repeat, "random": random})


def schemas_by_name(names: Schemas) -> dict[str, OfTrials]:
    """Schemas by name, or the user's own functions of `Trials` by the names they give them."""
    if isinstance(names, Mapping):
        chosen = dict(names)
    else:
        unknown = [name for name in names if name not in KNOWN]
        if unknown:
            raise ValueError(
                f"primitives has {', '.join(map(repr, unknown))}: known are {', '.join(KNOWN)}; "
                "for your own pass a dict of names to functions of Trials."
            )
        chosen = {name: KNOWN[name] for name in names}
    if not chosen:
        raise ValueError("primitives is empty: name at least one.")
    return chosen


def columns(schemas: Mapping[str, OfTrials], trials: Trials) -> np.ndarray:
    """Pi: (trials, arms, primitives). Where arms are not on offer, the others share their probability."""
    parts = []
    for name, schema in schemas.items():
        prob = np.asarray(schema(trials), dtype=float)
        if prob.shape != trials.mean.shape:
            raise ValueError(
                f"primitive {name!r} answered with shape {prob.shape}: a probability for each of the "
                f"{len(trials.choice)} trials and {trials.arms} arms was expected."
            )
        if trials.offered is not None:
            prob = np.where(trials.offered, prob, 0.0)
            left = prob.sum(1, keepdims=True)
            evenly = trials.offered / trials.offered.sum(1, keepdims=True)
            prob = np.where(left > 0, prob / np.where(left > 0, left, 1.0), evenly)
        parts.append(prob)
    return np.stack(parts, axis=-1)


# ------------------------------------------------------ what the classic models look at


def _value(trials: Trials) -> Any:
    return trials.mean


def _deviation(trials: Trials) -> Any:
    """sqrt(s), in NumPy or JAX; where nothing is uncertain it has no slope either."""
    xp = namespace(trials.variance)
    known = trials.variance <= 0
    return xp.where(known, 0.0, xp.sqrt(xp.where(known, 1.0, trials.variance)))


def _scaled_value(trials: Trials) -> Any:
    """Values in units of the total uncertainty; nothing to weigh where nothing is uncertain."""
    xp = namespace(trials.mean, trials.variance)
    total = trials.variance.sum(-1, keepdims=True)
    known = total <= 0
    return xp.where(known, 0.0, trials.mean / xp.sqrt(xp.where(known, 1.0, total)))


_V: Mapping[str, OfTrials] = {"V": _value}
_RU: Mapping[str, OfTrials] = {"RU": _deviation}
_SCALED: Mapping[str, OfTrials] = {"V/TU": _scaled_value}

# The weighted sum of its features is an arm's utility. With two arms only differences matter, and these are
# V = m1 - m2, RU = sqrt(s1) - sqrt(s2) and V/TU, TU = sqrt(s1 + s2), of Gershman (2018). With more arms the same
# utilities go through the softmax.
FEATURES: Mapping[str, Mapping[str, OfTrials]] = MappingProxyType(
    {"UCB": {**_V, **_RU}, "Thompson": _SCALED, "Hybrid": {**_SCALED, **_RU}, "Value": _V, "Habit": {}}
)
CLASSIC = ("UCB", "Thompson", "Hybrid", "Value")  # the Habit looks at nothing: stickiness is all it has


def features(model: str, trials: Trials) -> np.ndarray:
    """(trials, arms, features) of a classic model."""
    parts = [feature(trials) for feature in FEATURES[model].values()]
    return np.stack(parts, axis=-1) if parts else np.zeros((*trials.mean.shape, 0))
