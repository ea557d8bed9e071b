"""Floors under a policy's probabilities, without any parameter: how much of a gain over the Hybrid they explain."""

from collections.abc import Callable
from typing import Literal

import numpy as np

from .beliefs import Trials
from .primitives import PAPER, columns

FLOOR = 0.01  # that of the exploitation primitive
Rule = Literal["clip", "lapse", "hull"]


def clip(log_q: np.ndarray, trials: Trials) -> np.ndarray:
    """q kept within [.01, .99]; with more arms, raised to .01 and normalised."""
    prob = np.clip(np.exp(log_q), FLOOR, 1 - FLOOR)
    return np.log(prob / prob.sum(1, keepdims=True))


def lapse(log_q: np.ndarray, trials: Trials) -> np.ndarray:
    """.98 q + .01 for two arms: in one trial of fifty an arm is drawn blindly."""
    return np.log((1 - FLOOR * trials.arms) * np.exp(log_q) + FLOOR)


def hull(log_q: np.ndarray, trials: Trials) -> np.ndarray:
    """q kept between the most extreme of the paper's primitives (two arms): what any mixture of them can reach."""
    if trials.arms != 2:
        raise ValueError(f"rule = 'hull' with {trials.arms} arms: it is there for two; use 'clip' or 'lapse'.")
    pi = columns(PAPER, trials)
    bounded = np.clip(np.exp(log_q), pi.min(-1), pi.max(-1))
    return np.log(np.maximum(bounded, 1e-300))


RULES: dict[str, Callable[[np.ndarray, Trials], np.ndarray]] = {"clip": clip, "lapse": lapse, "hull": hull}
