"""What the classic models look at: features of every arm, whose weighted sum is the arm's utility."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from .beliefs import Trials


def _value(trials: Trials) -> np.ndarray:
    return trials.mean


def _scaled_value(trials: Trials) -> np.ndarray:
    """Values in units of the total uncertainty; nothing to weigh where nothing is uncertain."""
    total = np.sqrt(trials.variance.sum(1, keepdims=True))
    return np.divide(trials.mean, total, out=np.zeros_like(trials.mean), where=total > 0)


def _uncertainty(trials: Trials) -> np.ndarray:
    return np.sqrt(trials.variance)


# With two arms only differences matter, and these are V = m1 - m2, RU = sqrt(s1) - sqrt(s2) and V/TU,
# TU = sqrt(s1 + s2), of Gershman (2018). With more arms the same utilities go through the softmax.
FEATURES: Mapping[str, tuple[tuple[str, Callable[[Trials], np.ndarray]], ...]] = MappingProxyType({
    "UCB": (("V", _value), ("RU", _uncertainty)),
    "Thompson": (("V/TU", _scaled_value),),
    "Hybrid": (("V/TU", _scaled_value), ("RU", _uncertainty)),
    "Value": (("V", _value),),
})  # fmt: skip
CLASSIC = tuple(FEATURES)


def features(model: str, trials: Trials) -> np.ndarray:
    """(trials, arms, features) of a classic model."""
    return np.stack([feature(trials) for _, feature in FEATURES[model]], axis=-1)
