"""What a verdict's models say: weights at every decision, what moves them, estimates, power, and sentences."""

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..core.equilibrium import solve
from ..inference import Difference
from ..inference.findings import amount
from ..inference.likelihoods import scores, sums_of
from ..inference.parameters import errors_of, prior_of, size
from .hidden import STATES
from .nested import Found
from .rivals import GATED, GATED_SUM, SOFT_MIXTURE, SOFT_SUM, Names, problem_of
from .situations import Situations

Call = Literal["re-weighting", "constant weights", "cannot tell", "no social force", "withheld"]
LARGEST_SWITCH = 1.0  # of the weights: data that would not even show that they vanish cannot tell
SHOWN = 2.8  # errors of a change that would have been seen in four of five such data
NAMED = 9.0  # chi squared for each force from which a feature counts as moving weights
CHUNK = 512


class Rank(NamedTuple):
    """The gain of the judged gate on all decisions, in nats, and those where there is nothing to find."""

    real: float
    surrogates: Float[np.ndarray, " a"]
    kind: str  # how the surrogates were made
    constant: Float[np.ndarray, " b"]  # drawn from the constant weights

    @property
    def exceeded(self) -> bool:
        """Whether the real gain is larger than all others."""
        return bool(self.real > max(self.surrogates.max(initial=-np.inf), self.constant.max(initial=-np.inf)))


class Judged(NamedTuple):
    """What was found, and why."""

    call: Call
    acts: str  # by sum or by sample
    gate: str  # the gate that was judged
    constant: str  # and what it was compared with
    gain: Difference  # of the gate over constant weights, held out
    company: Difference  # of the constant weights over own motion, held out
    moved: float  # the largest standard deviation of a force's share of the weights
    features: tuple[tuple[str, float], ...]  # chi squared for each force of what moves the weights of a softmax gate
    rank: Rank | None
    power: Mapping[str, float]  # the switch between halves by each feature that would have been shown, in weights
    suspicious: float  # share of the positions
    resting: float  # share of the decisions
    enough: bool = True  # decisions for the numbers of the models


# ------------------------------------------------------------------------------------------------- estimates


def covariance_of(found: Found, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The covariance of z from the scores' products and the prior, and the sandwich over blocks, (K, K) each."""
    slope = scores(found.given, found.z).gradient
    inverse = np.linalg.inv(
        slope.T @ slope + np.diag(prior_of(found.model.parameters)[1]) + 1e-9 * np.eye(len(found.z))
    )
    index = np.unique(block, return_inverse=True)[1].reshape(-1)
    sums = sums_of(slope, index, int(index.max()) + 1)
    return inverse, inverse @ (sums.T @ sums) @ inverse


def estimates_of(found: Found, block: np.ndarray) -> list[tuple[str, float, float, float]]:
    """(name, estimate, error, error clustered over blocks) of every number on its natural scale."""
    plain, robust = (errors_of(found.model.parameters, found.z, each) for each in covariance_of(found, block))
    rows = []
    for parameter in found.model.parameters:
        labels = [f"{parameter.name}: {label}" for label in parameter.labels] or [parameter.name]
        values = (np.atleast_1d(part[parameter.name]) for part in (found.theta, plain, robust))
        rows += [(name, *map(float, row)) for name, *row in zip(labels, *values, strict=True)]
    return rows


# ------------------------------------------------------------------------------------------------- weights


def weights_of(found: Found, names: Names) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Names, shares (N, s + 1) of the social forces and of none at every decision, and a certified gap of each.

    The gap is that of the gating problem; a softmax needs no certificate, and its gap is zero.
    """
    some, theta, units = (*names.social, "none"), found.theta, dict(found.given.data)
    if found.model.name in (GATED, GATED_SUM):
        count = found.given.units
        pad = np.minimum(np.arange(-(-count // CHUNK) * CHUNK), count - 1)
        rows = jax.tree_util.tree_map(lambda leaf: jnp.asarray(leaf[pad]), units)
        weights, gap = _solved(names)({name: jnp.asarray(value) for name, value in theta.items()}, rows)
        return some, np.asarray(weights)[:count], np.asarray(gap)[:count]
    share = np.zeros((found.given.units, len(some)))
    if found.model.name in (SOFT_SUM, SOFT_MIXTURE):
        coef = theta["gate"].reshape(len(names.social), len(names.features))
        share[:, :-1] = units["feature"] @ coef.T
    if "odds" in theta:
        share += np.log(theta["odds"])
    share = np.exp(share - share.max(axis=1, keepdims=True))
    return some, share / share.sum(axis=1, keepdims=True), np.zeros(len(share))


@lru_cache(maxsize=16)
def _solved(names: Names) -> Any:
    def one(theta: Mapping[str, Any], unit: Any) -> Any:
        equilibrium = solve(problem_of(names, theta, unit))
        return equilibrium.weights, equilibrium.certificate.gap

    return eqx.filter_jit(lambda theta, units: jax.lax.map(partial(one, theta), units, batch_size=64))


def what_moves(soft: Found, names: Names, block: np.ndarray) -> tuple[tuple[str, float], ...]:
    """Features with chi squared for each force of their coefficients in a softmax gate, the largest first."""
    coef = soft.theta["gate"].reshape(len(names.social), len(names.features))
    begin = size(soft.model.parameters[: [p.name for p in soft.model.parameters].index("gate")])
    inner = covariance_of(soft, block)[0][begin : begin + coef.size, begin : begin + coef.size]
    inner = inner.reshape(*coef.shape, *coef.shape)
    chi = [(name, float(coef[:, f] @ np.linalg.pinv(inner[:, f, :, f]) @ coef[:, f]) / len(coef))
           for f, name in enumerate(names.features)]  # fmt: skip
    return tuple(sorted(chi, key=lambda pair: -pair[1]))


def power_of(constant: Found, situations: Situations) -> dict[str, float]:
    """For each feature the change d that would have been shown if weights were (1 + d) and (1 - d) in its halves.

    From the information that the decisions have of d, given all numbers of the constant sum.
    """
    model, slope = constant.model, scores(constant.given, constant.z).gradient
    begin = size(model.parameters[: [p.name for p in model.parameters].index("slope")])
    some = slice(begin, begin + len(situations.social))
    inside = slope.T @ slope + 1e-9 * np.eye(slope.shape[1])
    answer = {}
    for f, name in enumerate(situations.features):
        side = np.where(situations.feature[:, f] > np.median(situations.feature[:, f]), 1.0, -1.0)
        score = side * (slope[:, some] @ constant.theta["slope"])
        cross = slope.T @ score
        left = float(score @ score - cross @ np.linalg.solve(inside, cross))
        answer[name] = float(SHOWN / np.sqrt(left)) if left > 1e-9 else float("inf")
    return answer


# ------------------------------------------------------------------------------------------------- words


def sentence_of(judged: Judged, held_out_by: str) -> str:
    """The verdict in words, made of the numbers."""
    unseen, gain = f"(Held out by {held_out_by}.)", amount(judged.gain)
    adds = f"{_gate_in_words(judged)} add {gain} over constant ones"
    seen = float(np.median(list(judged.power.values())))
    if judged.call == "withheld":
        return (f"No verdict: {100 * judged.suspicious:.0f}% of the positions are jumps that no motion explains. "
                "Correct the identities first.")  # fmt: skip
    if judged.call == "re-weighting":
        return f"These individuals re-weight their social forces: {adds}. {_rank_in_words(judged.rank)}{unseen}"
    if judged.call == "no social force":
        return (f"No social force is established, so there is nothing to re-weight: forces with constant weights add "
                f"{amount(judged.company)} over own motion alone. {unseen}")  # fmt: skip
    if judged.call == "cannot tell" and not judged.enough:
        return f"These data cannot tell whether weights change: they have too few decisions. {unseen}"
    why = _rank_in_words(judged.rank)
    if judged.call == "constant weights":
        return (f"Constant weights are enough here: {adds}. {why}Weights that differ by ±{100 * seen:.0f}% between two "
                f"halves of the situations would have been seen. {unseen}")  # fmt: skip
    if seen <= LARGEST_SWITCH:
        return (f"These data cannot tell whether weights change: {adds}, which is too close to its error to be "
                f"established. {unseen}")  # fmt: skip
    return (f"These data cannot tell whether weights change: {adds}. {why}Even weights that vanish in half of the "
            f"situations could have been missed. {unseen}")  # fmt: skip


def _gate_in_words(judged: Judged) -> str:
    acts = "of a sum of forces" if judged.acts == "by sum" else "of following one force at a time"
    if judged.gate == STATES:
        return f"two hidden states of the group, each with its own weights {acts},"
    if judged.gate in (GATED, GATED_SUM):
        return f"weights {acts} that solve a gating problem (the neighbours' velocity without collisions)"
    named = [name for name, chi in judged.features if chi > NAMED]
    return f"weights {acts} that depend on {' and '.join(named) if named else 'the situation'}"


def _rank_in_words(rank: Rank | None) -> str:
    if rank is None:
        return ""
    counts = f"{len(rank.surrogates)} surrogates ({rank.kind}) and {len(rank.constant)} draws from constant weights"
    if rank.exceeded:
        most = max(rank.surrogates.max(), rank.constant.max())
        return f"The gain on all decisions is {rank.real:.1f} nats, and at most {most:.1f} in {counts}. "
    return f"But data without any re-weighting gain as much: {rank.real:.1f} nats here, no more than in {counts}. "
