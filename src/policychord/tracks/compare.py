"""Do these animals gate? All accounts on the same held-out decisions, and the sentence that follows from them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from ..inference import (
    Family,
    Fit,
    Likelihood,
    Model,
    Parameter,
    cross_validate,
    folds_of,
    likelihood,
    maximise,
    paired,
)
from ..inference.comparison import Difference
from ..inference.fits import fit_with_likelihood
from ..inference.parameters import natural, size, unconstrained
from ..inference.uncertainty import LEAST_MOVEMENT
from .decisions import Decisions, to_observations
from .family import accounts_of, family_of, units_of, weigh

Progress = Callable[[str, int, int], Any]
Call = Literal["gating", "constant", "worse than constant"]
Acts = Literal["by sample", "by mean"]
AT_ONCE = 64
STARTS = 2  # of every rival: the declared values, and a point near them
COMPOSED, CONSTANT, BY_MEAN, REGRESSION = "composed", "constant mixture", "composed, by mean", "regression"
COMPOSED_WORDS = "weights that the gate chooses at every decision, one force at a time"


class Scored(NamedTuple):
    """How well one account explains decisions that were held out, in nats a decision."""

    name: str
    description: str
    parameters: int
    theta: dict[str, Any]
    log_likelihood: float  # of all decisions, under estimates from all
    held_out: float  # mean, each decision under estimates without its fold
    over_random_walk: Difference
    each: Float[np.ndarray, " N"]  # held-out ln p of each decision


class Judged(NamedTuple):
    """Are weights that follow the situation needed, in the way of acting that explains the decisions better?

    By sample: an individual follows one force at a time, drawn by the weights; without a gate that is the constant
    mixture. By mean: it follows the weighted sum; without a gate that is the regression on the forces.
    """

    acts: Acts
    gain: Difference  # of the gate over constant weights, in that way of acting
    moved: float  # the largest standard deviation of a force's weight over the decisions
    call: Call
    other: Difference | None  # the gain in the other way of acting


class Answer(NamedTuple):
    """What was found about one file."""

    decisions: Decisions
    family: Family
    fit: Fit  # of the composed agent: estimates, errors, verdicts, weights with their certificates
    scores: tuple[Scored, ...]  # best first
    gain: Difference  # of the composed agent over constant weights, both by sample
    call: Call
    sentence: str
    judged: Judged


class Gating(NamedTuple):
    """The question alone, on held-out decisions."""

    fit: Fit  # of the composed agent
    scores: tuple[Scored, ...]  # of both ways of acting, with and without a gate, and the random walk; best first
    judged: Judged
    sentence: str


def gating(
    given: Decisions,
    *,
    free: tuple[str, ...] = (),
    fixed: dict[str, Any] | None = None,
    starts: int = STARTS,
    seed: int = 0,
    progress: Progress | None = None,
) -> Gating:
    """Does this group gate? As `answer`, without the rivals that the question does not need."""
    family = family_of(given, free)
    wanted = ("random walk", REGRESSION, CONSTANT, BY_MEAN)
    accounts = [one for one in accounts_of(given, family, fixed or {}) if one.name in wanted]
    found, scores = _fit_and_score(given, family, accounts, fixed, starts, False, seed, progress)
    judged = _judge(given, found, scores, fixed)
    return Gating(found, scores, judged, _sentence(scores, judged, given))


def answer(
    given: Decisions,
    *,
    free: tuple[str, ...] = (),
    fixed: dict[str, Any] | None = None,
    starts: int = 4,
    profiles: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Answer:
    """Fit the composed agent, score it and its rivals on the same folds, and say whether gating is needed."""
    family = family_of(given, free)
    accounts = [one for one in accounts_of(given, family, fixed or {}) if one.name != COMPOSED]
    found, scores = _fit_and_score(given, family, accounts, fixed, starts, profiles, seed, progress)
    judged = _judge(given, found, scores, fixed)
    by_name = {one.name: one.each for one in scores}
    gain = paired(by_name[COMPOSED], by_name[CONSTANT], given.block)
    return Answer(given, family, found, scores, gain, judged.call, _sentence(scores, judged, given), judged)


def _judge(given: Decisions, found: Fit, scores: Sequence[Scored], fixed: dict[str, Any] | None) -> Judged:
    by_mean = next(one for one in scores if one.name == BY_MEAN)
    weights, _ = weigh(given, {**(fixed or {}), **by_mean.theta})
    moved = {"by sample": found.weights, "by mean": weights}
    return judge(
        {one.name: one.each for one in scores},
        {way: float(values.std(axis=0).max()) for way, values in moved.items()}, given.block,
    )  # fmt: skip


def judge(each: Mapping[str, np.ndarray], moved: Mapping[str, float], block: np.ndarray) -> Judged:
    """The call from held-out ln p of each decision, by account; `moved` by way of acting; errors are over blocks."""
    ways: dict[Acts, tuple[str, str]] = {"by sample": (COMPOSED, CONSTANT), "by mean": (BY_MEAN, REGRESSION)}
    gains = {way: paired(each[gate], each[without], block) for way, (gate, without) in ways.items()}
    best = {way: max(each[name].mean() for name in pair) for way, pair in ways.items()}
    acts: Acts = "by mean" if best["by mean"] > best["by sample"] else "by sample"
    other: Acts = "by sample" if acts == "by mean" else "by mean"
    return Judged(acts, gains[acts], moved[acts], call_of(gains[acts], moved[acts]), gains[other])


def _fit_and_score(
    given: Decisions,
    family: Family,
    accounts: Sequence[Model],
    fixed: dict[str, Any] | None,
    starts: int,
    profiles: bool,
    seed: int,
    progress: Progress | None,
) -> tuple[Fit, tuple[Scored, ...]]:
    """The composed agent's fit, and scores of it and of other accounts on the same folds of blocks, best first."""
    found, posed = fit_with_likelihood(
        family, to_observations(given), None, fixed, starts=starts, method="map", hold_out="block", compare=False,
        profiles=profiles, seed=seed, progress=progress,
    )  # fmt: skip
    units, fold = units_of(given), folds_of(given.block)

    def tell(name: str, done: int) -> None:
        if progress is not None:
            progress(f"held out: {name}", done, len(accounts) + 1)

    tell(COMPOSED, 0)
    own = cross_validate(posed, fold, method="map", start=found.z)
    rows = [(COMPOSED, COMPOSED_WORDS, found.parameters, found.z, found.log_likelihood, own)]
    for i, account in enumerate(accounts, start=1):
        tell(account.name, i)
        begin = _from_composed(account, found) if account.name == CONSTANT else None
        begin = found.z[None] if account.name == BY_MEAN else begin
        of_account = likelihood(account, units, at_once=AT_ONCE)
        rows.append((account.name, account.description, account.parameters, *_score_one(of_account, fold, begin)))
    walk = next(row[-1] for row in rows if row[0] == "random walk")
    scored = [
        Scored(name, words, size(parameters), _theta(parameters, z), total, float(each.mean()),
               paired(each, walk, given.block), each)
        for name, words, parameters, z, total, each in rows
    ]  # fmt: skip
    return found, tuple(sorted(scored, key=lambda one: -one.held_out))


def _score_one(
    given: Likelihood, fold: np.ndarray, begin: np.ndarray | None = None
) -> tuple[np.ndarray, float, Float[np.ndarray, " N"]]:
    """(estimates from all decisions, their log-likelihood, held-out ln p of each decision)."""
    if not given.parameters:  # all is fixed, so there is nothing to hold out
        alone = jax.jit(lambda data: jax.lax.map(partial(given.model.log_prob, {}), data, batch_size=AT_ONCE))
        each = np.asarray(alone(given.data))
        return np.zeros(0), float(each.sum()), each
    best = maximise(given, starts=STARTS if begin is None else begin, method="map")
    return best.z, best.log_likelihood, cross_validate(given, fold, method="map", start=best.z)


def _from_composed(constant: Model, found: Fit) -> Float[np.ndarray, "2 K"]:
    """Starts of constant weights: the declared one, and the composed agent's estimates with its prior as weights.

    So constant weights never lose by a worse hill than the one on which the composed agent stands.
    """
    own = {one.name for one in constant.parameters}
    theta = {name: value for name, value in found.theta.items() if name in own}
    if "prior" in found.theta:
        prior = np.maximum(found.theta["prior"], 1e-6)
        theta["weights"] = prior / prior.sum()
    return np.stack([unconstrained(constant.parameters, {}), unconstrained(constant.parameters, theta)])


def _theta(parameters: Sequence[Parameter], z: np.ndarray) -> dict[str, Any]:
    return {name: np.asarray(value) for name, value in natural(parameters, z).items()}


def call_of(gain: Difference, moved: float) -> Call:
    """Gating, if held-out decisions are clearly better explained by weights that move; constant otherwise.

    A gain is clear if it is more than twice its error over blocks, and weights move if their standard deviation over
    the decisions is at least `LEAST_MOVEMENT` for some force.
    """
    if not gain.clear or moved < LEAST_MOVEMENT:
        return "constant"
    return "gating" if gain.mean > 0 else "worse than constant"


def _sentence(scores: Sequence[Scored], judged: Judged, given: Decisions) -> str:
    """The answer in words, made of the numbers."""
    gain, moved = judged.gain, judged.moved
    amount = _amount(gain)
    mean = judged.acts == "by mean"
    without = "constant weights, which are a regression on the forces" if mean else "constant weights"
    if judged.call == "gating":
        words = f"Gating is needed here: weights that follow the situation add {amount} over {without}."
    elif judged.call == "worse than constant":
        words = (f"This gate is the wrong account here: weights that follow the model of good motion explain less than "
                 f"{without} ({amount}).")  # fmt: skip
    elif moved < LEAST_MOVEMENT:
        words = (f"Gating is not needed here: the fitted weights hardly move (sd {moved:.4f}), so what the gate adds "
                 f"over {without} ({amount}) is not gating.")  # fmt: skip
    else:
        words = f"Gating is not needed here: weights that follow the situation add {amount} over {without}."
    if mean:
        words += " These individuals follow a weighted sum of the forces rather than one of them at a time"
        other = judged.other
        words += "." if other is None else f"; if they followed one at a time, the gate would add {_amount(other)}."
    gate = BY_MEAN if mean else COMPOSED
    best, own = scores[0], next(one for one in scores if one.name == gate)
    if best.name != gate:
        ahead = paired(best.each, own.each, given.block)
        words += f" Best of all: {best.name} ({ahead.mean:+.4f} ± {ahead.error:.4f} over {gate})."
    return f"{words} (Held out by {given.held_out_by}.)"


def _amount(gain: Difference) -> str:
    return f"{gain.mean:+.4f} ± {gain.error:.4f} nats a decision"


def score_rows(found: Answer) -> list[dict[str, Any]]:
    """One row for each account, best first."""
    return [
        {"account": one.name, "parameters": one.parameters, "held_out": one.held_out,
         "over_random_walk": one.over_random_walk.mean, "error": one.over_random_walk.error,
         "description": one.description}
        for one in found.scores
    ]  # fmt: skip
