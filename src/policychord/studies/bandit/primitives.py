"""Behavioural schemas as policies: from beliefs to the probability of every arm, for all trials at once."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from scipy.special import softmax

from .beliefs import Trials

# (trials, arms) probabilities
Schema = Callable[[Trials], np.ndarray]
SURE = 0.99  # how often exploitation takes the best arm


def exploit(trials: Trials, ties: float = 0.0) -> np.ndarray:
    """The best arm with probability .99, the others share the rest; arms within `ties` of the best share alike."""
    best = trials.mean >= trials.mean.max(1, keepdims=True) - ties
    count, arms = best.sum(1, keepdims=True), trials.arms
    others = np.maximum(arms - count, 1)
    prob = np.where(best, SURE / count, (1.0 - SURE) / others)
    return np.where(count == arms, 1.0 / arms, prob)


def uncertainty(trials: Trials) -> np.ndarray:
    """s_j / sum s: the more uncertain, the more often."""
    total = trials.variance.sum(1, keepdims=True)
    share = np.full_like(trials.variance, 1.0 / trials.arms)
    return np.divide(trials.variance, total, out=share, where=total > 0)


def risk(trials: Trials) -> np.ndarray:
    """softmax(-s): the more uncertain, the more rarely."""
    return softmax(-trials.variance, axis=1)


def repeat(trials: Trials) -> np.ndarray:
    """The arm taken last in the block with probability .99; any arm at first."""
    again = np.arange(trials.arms) == trials.previous[:, None]
    prob = np.where(again, SURE, (1.0 - SURE) / (trials.arms - 1))
    return np.where(trials.previous[:, None] < 0, 1.0 / trials.arms, prob)


def random(trials: Trials) -> np.ndarray:
    """Any arm."""
    return np.full_like(trials.mean, 1.0 / trials.arms)


PAPER: Mapping[str, Schema] = MappingProxyType({"exploit": exploit, "uncertainty": uncertainty, "risk": risk})
KNOWN: Mapping[str, Schema] = MappingProxyType({**PAPER, "repeat": repeat, "random": random})


def named(names) -> dict[str, Schema]:
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


def columns(schemas: Mapping[str, Schema], trials: Trials) -> np.ndarray:
    """Pi: (trials, arms, primitives)."""
    parts = []
    for name, schema in schemas.items():
        prob = np.asarray(schema(trials), dtype=float)
        if prob.shape != trials.mean.shape:
            raise ValueError(
                f"primitive {name!r} answered with shape {prob.shape}: a probability for each of the "
                f"{len(trials.choice)} trials and {trials.arms} arms was expected."
            )
        parts.append(prob)
    return np.stack(parts, axis=-1)
