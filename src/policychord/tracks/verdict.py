"""Do these animals re-weight their social forces? Models on held-out decisions, surrogates, power, and a sentence.

A verdict has four steps. Each may settle it.
1. Constant weights and gates are estimated and compared on held-out decisions; all share one baseline of own motion.
2. The gate with the largest gain over its reference is judged, in the way of acting (by sum or by sample) that explains
   more.
3. If its gain is more than two and a half times its error, it must also be larger than in every surrogate without
   company, and in all draws from the constant weights. Both are compared by the gain in ln p of all decisions.
4. If there is no gain, the power says how large a switch these data would have shown.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..inference import Comparison, Data, Difference, Model, compare, folds_of, likelihood
from ..inference.likelihoods import pointwise
from ..inference.optimise import Progress, report
from ..inference.parameters import size, unconstrained
from ..inference.uncertainty import LEAST_MOVEMENT
from .arena import find_arena
from .decisions import Decisions, rows_of
from .explained import Call, Judged, Rank, estimates_of, power_of, sentence_of, weights_of, what_moves
from .hidden import REST, STATES, Hidden, find_hidden
from .motion import Motion
from .nested import Found, at, estimator, search
from .rivals import (
    ALONE,
    GATED,
    GATED_SUM,
    MIXTURE,
    SOFT_MIXTURE,
    SOFT_SUM,
    SUM,
    Names,
    models_of,
    names_of,
    units_of,
)  # fmt: skip
from .settings import SURROGATES, ForceSettings
from .situations import RESTING, Situations, situations_of
from .surrogates import drawn, exchanged, rotated

WAYS: dict[str, tuple[str, str, str]] = {
    "by sum": (SUM, SOFT_SUM, GATED_SUM),
    "by sample": (MIXTURE, SOFT_MIXTURE, GATED),
}
FEWEST = 10  # decisions for each number of a softmax gate: with fewer, estimates without a fold are wild
FEW, CLEAR = 6, 8.0  # after so many, a gain so many standard deviations above their mean needs no more
BEST_OF_SEVERAL = 2.5  # errors: about the quantile 1 - .05/3 of Student's t over 20 blocks
LEAST_FORCE = 2.0  # errors by which company must explain decisions before its weights mean anything
LARGEST_SWITCH = 1.0  # of the weights: data that would not even show that they vanish cannot tell
TEMPERATURES = (10.0, 3.0, 1.0, 0.3)  # at which a gating problem is tried
LEAST_GAIN = 2.0  # nats at one of them from which its other numbers are estimated too
SUSPECT = 0.1  # share of suspicious frames from which there is no verdict


class Verdict(NamedTuple):
    """The comparison, and what follows from it."""

    judged: Judged
    comparison: Comparison
    situations: Situations
    decisions: Decisions  # those that are judged
    found: Mapping[str, Found]
    hidden: Hidden | None
    arena: tuple[float, ...]

    @property
    def model(self) -> Found:
        """The estimates that the verdict is about: the gate's if weights change, else those of constant weights."""
        name = self.judged.gate if self.judged.call == "re-weighting" else WAYS[self.judged.acts][0]
        return self.found[name if name in self.found else WAYS[self.judged.acts][0]]

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        return sentence_of(self.judged, self.decisions.held_out_by)


def judge(
    motion: Motion, given: Decisions, settings: ForceSettings | None = None, *, surrogates: int = SURROGATES,
    seed: int = 0, progress: Progress | None = None,
) -> Verdict:  # fmt: skip
    """The verdict on decisions of a motion. `surrogates` of each kind at most; 0 leaves them out, and the rank test."""
    settings = ForceSettings() if settings is None else settings
    arena = settings.arena or find_arena(motion)
    suspicious = motion.suspicions.share
    given, resting = _awake(given)
    situations = situations_of(motion, given, arena)
    names, units = names_of(situations), units_of(situations)
    report(progress, "estimating constant weights and gates", 0, 3)
    found = _estimates(names, units)
    data, fold = Data(units, np.zeros(given.size, int), given.block), folds_of(given.block)
    first = [found[name] for name in (ALONE, SUM, MIXTURE, SOFT_SUM, SOFT_MIXTURE)]
    comparison = compare([estimator(each) for each in first], data, fold=fold)
    acts = _way(comparison, first)
    constant, soft, gated = WAYS[acts]
    report(progress, "hidden states and gating problems", 1, 3)
    more, hidden = _hidden(found[constant], names, given)
    if problem := _gating_problem(found, names, units, constant, gated):
        found[gated] = problem
        more.append(estimator(problem))
    if more:
        comparison = _joined(comparison, compare(more, data, fold=fold))
    gates = [name for name in (soft, gated, STATES) if name in comparison.names]
    gate = max(gates, key=lambda name: comparison.difference(name, _reference(comparison, name, constant)).mean)
    against = _reference(comparison, gate, constant)
    gain, company = comparison.difference(gate, against), comparison.difference(constant, ALONE)
    moved = _moved(found, names, gate, hidden)
    features = what_moves(found[soft], names, given.block) if gate == soft else ()
    rank = None
    if _established(gain) and moved >= LEAST_MOVEMENT and surrogates:
        report(progress, "surrogates", 2, 3)
        make = _surrogate_of(motion, given, settings, arena, units, situations, seed)
        rank = _rank(_gain_of(found, names, given, gate, constant, hidden), make, found[constant], names, arena,
                     surrogates, seed)  # fmt: skip
    power = power_of(found[SUM], situations)
    enough = given.size >= FEWEST * size(found[soft].model.parameters)
    call = call_of(gain, company, moved, rank, power, suspicious, enough)
    judged = Judged(call, acts, gate, against, gain, company, moved, features, rank, power, suspicious, resting, enough)
    return Verdict(judged, comparison, situations, given, found, hidden, arena)


def _reference(comparison: Comparison, gate: str, constant: str) -> str:
    """What a gate must beat: constant weights; for hidden states also states of own motion, where these are better."""
    rest = gate == STATES and comparison.score(REST).held_out > comparison.score(constant).held_out
    return REST if rest else constant


def _established(gain: Difference) -> bool:
    """A gate was chosen among several: its gain must be larger than what is asked of one."""
    return bool(gain.mean > BEST_OF_SEVERAL * gain.error)


def call_of(
    gain: Difference, company: Difference, moved: float, rank: Rank | None, power: Mapping[str, float],
    suspicious: float = 0.0,
    enough: bool = True,
) -> Call:  # fmt: skip
    """Re-weighting, if a gate whose weights move predicts better, and better than where there is nothing to find."""
    if suspicious > SUSPECT:
        return "withheld"
    if not enough:
        return "cannot tell"
    if _established(gain) and moved >= LEAST_MOVEMENT and (rank is None or rank.exceeded):
        return "re-weighting"
    if company.mean <= LEAST_FORCE * company.error:
        return "no social force"
    return "constant weights" if np.median(list(power.values())) <= LARGEST_SWITCH else "cannot tell"


# ------------------------------------------------------------------------------------------------- estimates


def _awake(given: Decisions) -> tuple[Decisions, float]:
    """The decisions of those that move, and the share of the others, whose heading would be noise."""
    moves = np.asarray(given.seen.speed) >= RESTING
    return rows_of(given, moves), float(1 - moves.mean())


def _estimates(names: Names, units: dict[str, np.ndarray]) -> dict[str, Found]:
    """All models whose weights need no search of their own, each from where a smaller one ended."""
    models, found = models_of(names), {}
    found[ALONE] = search(models[ALONE], units, [unconstrained(models[ALONE].parameters, {})])
    for constant, gate, _ in WAYS.values():
        found[constant] = search(models[constant], units, [at(models[constant], found[ALONE].theta)])
        found[gate] = search(models[gate], units, [at(models[gate], found[constant].theta)])
        back = at(models[constant], found[gate].theta)  # the gate may have found a better mode of what they share
        again = search(models[constant], units, [back])
        if again.log_posterior > found[constant].log_posterior + 0.01:
            found[constant] = again
    return found


def _way(comparison: Comparison, found: list[Found]) -> str:
    """The way of acting with the best model."""
    best = {way: max(comparison.score(name).held_out for name in some[:2]) for way, some in WAYS.items()}
    return max(best, key=lambda way: best[way])


def _joined(one: Comparison, other: Comparison) -> Comparison:
    ranked = sorted((*one.scores, *other.scores), key=lambda score: -score.held_out)
    return one._replace(scores=tuple(ranked), selected=tuple(sorted({*one.selected, *other.selected})))


def _hidden(constant: Found, names: Names, given: Decisions) -> tuple[list[Any], Hidden | None]:
    """Hidden states, if those of the weights explain more than their numbers cost."""
    states = find_hidden(constant, names, given.trial, given.frame, True)
    if states.gain < states.extra:
        return [], None
    rest = find_hidden(constant, names, given.trial, given.frame, False)
    return [states.estimator, rest.estimator], states


def _gating_problem(
    found: Mapping[str, Found], names: Names, units: dict[str, np.ndarray], constant: str, gate: str
) -> Found | None:
    """The gating problem's estimates, if at some temperature it explains as much as constant weights do."""
    model = models_of(names)[gate]
    height, eps = _best_temperature(model, found[MIXTURE], units)
    if height < found[constant].log_likelihood + LEAST_GAIN:
        return None
    return search(model, units, [at(model, {**found[MIXTURE].theta, "eps": np.array(eps)})], near=0.05)


def _best_temperature(model: Model, mixture: Found, units: dict[str, np.ndarray]) -> tuple[float, float]:
    """The highest ln L of a gating problem with all other numbers those of the constant mixture, and where."""
    given = likelihood(model, units, at_once=64)
    heights = [
        float(pointwise(given, at(model, {**mixture.theta, "eps": np.array(eps)})).sum()) for eps in TEMPERATURES
    ]
    return max(zip(heights, TEMPERATURES, strict=True))


# ------------------------------------------------------------------------------------------------- surrogates


def _surrogate_of(
    motion: Motion, given: Decisions, settings: ForceSettings, arena: tuple[float, ...],
    units: dict[str, np.ndarray], situations: Situations, seed: int,
) -> Callable[[int], dict[str, np.ndarray]]:  # fmt: skip
    def make(number: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng([seed, number])
        if len(arena) == 3:
            return _kept(rotated(motion, given, settings, arena, rng), given)
        return exchanged(given, units, situations, rng)

    return make


def _kept(units: dict[str, np.ndarray], given: Decisions) -> dict[str, np.ndarray]:
    moves = units["speed"] >= RESTING
    return {name: values[moves] for name, values in units.items()}


def _gain_of(
    found: Mapping[str, Found], names: Names, given: Decisions, gate: str, constant: str, hidden: Hidden | None
) -> Callable[..., float]:
    """The gain of a gate over constant weights on all decisions of some units; of the real ones without them."""

    def gain(units: dict[str, np.ndarray] | None, start: str = ALONE) -> float:
        if gate in (GATED, GATED_SUM):
            seen = found[MIXTURE].given.data if units is None else units
            mixture = found[MIXTURE] if units is None else _constant_on(found, names, units, MIXTURE, start)
            return _best_temperature(models_of(names)[gate], mixture, seen)[0] - mixture.log_likelihood
        if units is None:
            base, other = found[constant], found.get(gate)
        else:
            base, other = _pair(found, names, units, gate, constant, start)
        if other is not None:
            return other.log_likelihood - base.log_likelihood
        return find_hidden(base, names, given.trial, given.frame, True).gain

    return gain


def _constant_on(
    found: Mapping[str, Found], names: Names, units: dict[str, np.ndarray], constant: str, start: str
) -> Found:
    model = models_of(names)[constant]
    return search(model, units, [at(model, found[start].theta)], 0.05)


def _pair(
    found: Mapping[str, Found], names: Names, units: dict[str, np.ndarray], gate: str, constant: str, start: str
) -> tuple[Found, Found | None]:
    """Constant weights and the gate on other changes, or in other company, from estimates of the real ones."""
    models, near = models_of(names), 0.05
    base = _constant_on(found, names, units, constant, start)
    if gate not in models:
        return base, None
    other = search(models[gate], units, [at(models[gate], base.theta)], near)
    again = search(models[constant], units, [at(models[constant], other.theta)], near)
    return (again if again.log_posterior > base.log_posterior else base), other


def _rank(
    gain: Callable[..., float], surrogate: Callable[[int], dict[str, np.ndarray]],
    constant: Found, names: Names, arena: tuple[float, ...], count: int, seed: int,
) -> Rank:  # fmt: skip
    """The real gain among others, until one of them is as large: the verdict is settled then."""
    real, others, constants = gain(None), list[float](), list[float]()
    for number in range(count):
        others.append(gain(surrogate(number)))
        if others[-1] < real:
            constants.append(gain(drawn(constant, names, seed + number), constant.model.name))
        so_far = np.array([*others, *constants])
        if so_far.max() >= real:
            break
        if number + 1 >= FEW and real > max(np.mean(part) + CLEAR * np.std(part) for part in (others, constants)):
            break
    kind = "each track rotated about the arena's centre" if len(arena) == 3 else "company exchanged between individuals"
    return Rank(real, np.array(others), kind, np.array(constants))


def _moved(found: Mapping[str, Found], names: Names, gate: str, hidden: Hidden | None) -> float:
    """The largest standard deviation of a force's share of the weights."""
    if gate == STATES and hidden is not None:
        return float(np.abs(hidden.theta["change"]).max())
    return float(weights_of(found[gate], names)[1].std(axis=0).max())


def plain_slopes(verdict: Verdict) -> list[tuple[str, float, float, float]]:
    """(force, slope, error, error clustered over blocks) in a constant sum of the forces as they are defined."""
    names = names_of(verdict.situations)._replace(shapes=(), of=())
    model = models_of(names)[SUM]
    units = {name: values for name, values in units_of(verdict.situations).items() if name != "shape"}
    found = search(model, units, [at(model, {**verdict.found[SUM].theta})])
    rows = estimates_of(found, verdict.decisions.block)
    return [(name.removeprefix("slope: "), slope, error, robust) for name, slope, error, robust in rows
            if name.startswith("slope: ")]  # fmt: skip
