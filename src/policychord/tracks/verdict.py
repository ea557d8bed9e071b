"""Do these animals re-weight their social forces? Models on held-out decisions, surrogates, power, and a sentence.

A verdict has four steps. Each may settle it.
1. Constant weights and softmax gates, by sum and by sample, are compared on held-out decisions; all share one baseline
   of own motion. If company explains nothing beyond it, there is nothing to re-weight.
2. Gating problems and hidden states join them, and the gate with the largest gain over the best constant weights is
   judged.
3. If its gain is clear of its error, it must also be larger than in every surrogate without company, and in all
   draws from the constant weights. Both are compared by the gain in ln p of all decisions.
4. If there is no gain, the power says how large a switch these data would have shown. A gain that is not clear of its
   error settles nothing.
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
from .explained import LARGEST_SWITCH, Call, Judged, Rank, estimates_of, power_of, sentence_of, weights_of, what_moves
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
FEW, CLEAR = 6, 5.0  # after so many, a gain so many standard deviations above their mean needs no more
LEAST_ERRORS = 2.5  # of a gain: with 1.73, 14 of 166 groups with constant weights re-weight, with 2.5 nine
HINT_ERRORS = 1.73  # the quantile .95 of Student's t over 20 blocks: a gain between the two settles nothing
LEAST_FORCE = 2.0  # errors by which company must explain decisions before its weights mean anything
TEMPERATURES = (10.0, 3.0, 1.0, 0.3)  # at which a gating problem is tried
PLAIN_GAIN = 3.0  # of the forces where one search begins
COLD, COOL = 0.2, 0.5  # at which its two searches begin: near constant weights' estimates, and at plain forces
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
        name = self.judged.gate if self.judged.call == "re-weighting" else self.judged.constant
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
    acts, constant = _way(comparison), _best(comparison, (SUM, MIXTURE))
    company, hidden = comparison.difference(constant, ALONE), None
    if _more_than(company, LEAST_FORCE):
        report(progress, "hidden states and gating problems", 1, 3)
        more, hidden = _hidden(found[WAYS[acts][0]], names, given)
        for gated in (GATED, GATED_SUM):
            if problem := _gating_problem(found, names, units, gated):
                found[gated] = problem
                more.append(estimator(problem))
        if more:
            comparison = _joined(comparison, compare(more, data, fold=fold))
    gates = [name for name in (SOFT_SUM, SOFT_MIXTURE, GATED, GATED_SUM, STATES) if name in comparison.names]
    gate = max(gates, key=lambda name: comparison.difference(name, _reference(comparison, name, constant)).mean)
    acts = next((way for way, some in WAYS.items() if gate in some), acts)
    against = _reference(comparison, gate, constant)
    gain = comparison.difference(gate, against)
    moved = _moved(found, names, gate, hidden)
    features = what_moves(found[gate], names, given.block) if gate in (SOFT_SUM, SOFT_MIXTURE) else ()
    rank = None
    if _more_than(company, LEAST_FORCE) and _more_than(gain, LEAST_ERRORS) and moved >= LEAST_MOVEMENT and surrogates:
        report(progress, "surrogates", 2, 3)
        make = _surrogate_of(motion, given, settings, arena, units, situations, seed)
        rank = _rank(_gain_of(found, names, given, gate, WAYS[acts][0]), make, found[constant], names, arena,
                     surrogates, seed)  # fmt: skip
    power = power_of(found[SUM], situations)
    enough = given.size >= FEWEST * size(found[WAYS[acts][1]].model.parameters)
    call = call_of(gain, company, moved, rank, power, suspicious, enough)
    judged = Judged(call, acts, gate, against, gain, company, moved, features, rank, power, suspicious, resting, enough)
    return Verdict(judged, comparison, situations, given, found, hidden, arena)


def _reference(comparison: Comparison, gate: str, constant: str) -> str:
    """What a gate must beat: constant weights; for hidden states also states of own motion, where these are better."""
    rest = gate == STATES and comparison.score(REST).held_out > comparison.score(constant).held_out
    return REST if rest else constant


def _more_than(difference: Difference, errors: float) -> bool:
    return bool(difference.mean > errors * difference.error)


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
    if not _more_than(company, LEAST_FORCE):
        return "no social force"
    if moved >= LEAST_MOVEMENT and (rank is None or rank.exceeded):
        if _more_than(gain, LEAST_ERRORS):
            return "re-weighting"
        if _more_than(gain, HINT_ERRORS):
            return "cannot tell"
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


def _best(comparison: Comparison, names: tuple[str, ...]) -> str:
    return max(names, key=lambda name: comparison.score(name).held_out)


def _way(comparison: Comparison) -> str:
    """The way of acting with the best model."""
    best = _best(comparison, (SUM, SOFT_SUM, MIXTURE, SOFT_MIXTURE))
    return next(way for way, some in WAYS.items() if best in some)


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


def _gating_problem(found: Mapping[str, Found], names: Names, units: dict[str, np.ndarray], gate: str) -> Found | None:
    """The gating problem's estimates, if at some temperature it explains more than the constant weights inside it.

    Constant weights may explain one force at a time as two ways of moving, so searches begin where these say nothing.
    """
    model, first = models_of(names)[gate], _mixture_from(found[ALONE], names, units)
    theta = first.theta
    least = (first if gate == GATED else found[SUM]).log_likelihood
    if _best_temperature(model, first, units)[0] < least + LEAST_GAIN:
        return None
    plain = {name: theta[name] for name in theta if name not in ("social", "odds", "gain", "burst own")}
    gain = np.full(len(names.social), PLAIN_GAIN)
    starts = [at(model, {**theta, "eps": np.array(COLD)}), at(model, {**plain, "gain": gain, "eps": np.array(COOL)})]
    return search(model, units, starts, near=0.05)


def _mixture_from(alone: Found, names: Names, units: dict[str, np.ndarray]) -> Found:
    model = models_of(names)[MIXTURE]
    return search(model, units, [at(model, alone.theta)], near=0.05)


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
    found: Mapping[str, Found], names: Names, given: Decisions, gate: str, constant: str
) -> Callable[..., float]:
    """The gain of a gate over constant weights on all decisions of some units; of the real ones without them."""

    models = models_of(names)

    def again(name: str, theta: Mapping[str, np.ndarray], units: dict[str, np.ndarray]) -> Found:
        return search(models[name], units, [at(models[name], theta)], near=0.05)

    def gain(units: dict[str, np.ndarray] | None, start: str = ALONE, worth: float = 0.0) -> float:
        if gate in (GATED, GATED_SUM):
            first = _mixture_from(found[ALONE], names, found[MIXTURE].given.data if units is None else units)
            return _best_temperature(models[gate], first, dict(first.given.data))[0] - first.log_likelihood
        base = found[constant] if units is None else again(constant, found[start].theta, units)
        if gate == STATES:
            return find_hidden(base, names, given.trial, given.frame, True).gain
        other = found[gate] if units is None else again(gate, base.theta, units)
        if units is not None and other.log_likelihood - base.log_likelihood >= worth:
            base = max(base, again(constant, other.theta, units), key=lambda each: each.log_posterior)
        return other.log_likelihood - base.log_likelihood

    return gain


def _rank(
    gain: Callable[..., float], surrogate: Callable[[int], dict[str, np.ndarray]],
    constant: Found, names: Names, arena: tuple[float, ...], count: int, seed: int,
) -> Rank:  # fmt: skip
    """The real gain among others, until one of them is as large: the verdict is settled then."""
    real, others, constants = gain(None), list[float](), list[float]()
    for number in range(count):
        others.append(gain(surrogate(number), worth=real))
        if others[-1] < real:
            constants.append(gain(drawn(constant, names, seed + number), constant.model.name, real))
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
