"""Do these animals gate? The composed agent and its rivals on the same held-out decisions, and what follows from it."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ..inference import Comparison, Difference, Fit, Model, fit
from ..inference.decisions import AGENT
from ..inference.findings import amount
from ..inference.optimise import Progress
from ..inference.uncertainty import LEAST_MOVEMENT
from .decisions import Decisions, to_observations
from .family import BY_MEAN, CONSTANT, REGRESSION, WALK, family_of, models_of, weigh

Call = Literal["gating", "constant", "worse than constant"]
Acts = Literal["by sample", "by mean"]
WAYS: dict[Acts, tuple[str, str]] = {"by sample": (AGENT, CONSTANT), "by mean": (BY_MEAN, REGRESSION)}
NEEDED = {WALK, *(name for pair in WAYS.values() for name in pair)}  # by the question alone


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

    def rivals(theta: Mapping[str, Any]) -> Sequence[Model]:
        return [model for model in models_of(given, family, fixed, theta) if not quick or model.name in NEEDED]

    fitted = fit(
        family, to_observations(given), fixed=fixed, method="map", starts=starts, hold_out="block", compare=rivals,
        profiles=profiles, seed=seed, progress=progress,
    )  # fmt: skip
    if not fitted.complete or fitted.comparison is None:
        raise KeyboardInterrupt
    comparison = fitted.comparison
    by_mean, _ = weigh(given, {**fixed, **comparison.score(BY_MEAN).theta()})
    weights = {"by sample": fitted.weights, "by mean": by_mean}
    moved = {way: float(values.std(axis=0).max()) for way, values in weights.items()}
    return Answer(given, fitted, comparison, judge(comparison, moved))


def judge(comparison: Comparison, moved: Mapping[str, float]) -> Judged:
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
    gain, moved, mean = judged.gain, judged.moved, judged.acts == "by mean"
    without = "constant weights, which are a regression on the forces" if mean else "constant weights"
    adds = f"weights that follow the situation add {amount(gain)} over {without}."
    if judged.call == "gating":
        words = f"Gating is needed here: {adds}"
    elif judged.call == "worse than constant":
        words = (f"This gate is the wrong model here: weights that follow the model of good motion predict worse than "
                 f"{without} ({amount(gain)}).")  # fmt: skip
    elif moved < LEAST_MOVEMENT:
        words = (f"Gating is not needed here: the fitted weights hardly move (sd {moved:.4f}), so what the gate adds "
                 f"over {without} ({amount(gain)}) is not gating.")  # fmt: skip
    else:
        words = f"Gating is not needed here: {adds}"
    if mean:
        words += (" These individuals follow a weighted sum of the forces rather than one of them at a time; if they "
                  f"followed one at a time, the gate would add {amount(judged.other)}.")  # fmt: skip
    gate, best = WAYS[judged.acts][0], comparison.names[0]
    if best != gate:
        ahead = comparison.difference(best, gate)
        words += f" Best of all: {best} ({amount(ahead)} over {gate})."
    return f"{words} (Held out by {held_out_by}.)"
