"""Nulls and alternatives of the theory study: what each rule must reject, and what it must accept.

Nulls are mechanisms that are wrong in one place. Alternatives have closed forms, and are integrated, differentiated
and minimised by NumPy and SciPy alone, so that a rule that only this library can fulfil would be seen.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax

from policychord import Problem, energy, gate, primitive_cost, problem, time_scales

from ..claim import Expected
from ..study import Recorded, World
from .circuits import Settling, frozen, integrate_circuit, random_circuits, ratio_that_settles, units
from .flows import Certificates, Paths, Starts, certify_weights
from .hand import Hand, check_separable, closed_form, diagonal
from .identities import differentiate, limits_of, map_proximally, sum_over_pairs
from .limits import LONG_ENOUGH, beside_frank_wolfe, cool, frank_wolfe, move_prior, with_prior_in_range
from .problems import (
    SHAPES,
    TheorySettings,
    exact,
    minimise_with_entropy,
    per_shape,
    pick,
    random_problems,
    random_weights,
)

# Fields of the evidence, or of a record in it, as they are in that world.
Fields = dict[str, Any]
FEW = 4  # problems, where each is integrated neuron by neuron


class _Made(NamedTuple):
    """A world: which claims it is about, and what it puts in the place of the study's evidence."""

    name: str
    what: str
    expected: Expected
    claims: tuple[str, ...]
    fields: Callable[[TheorySettings], Fields]


# ------------------------------------------------------------------------------ nulls


def _blind_gate(settings: TheorySettings) -> Fields:
    """S is the softmax of each primitive's own expected cost: w(t) = S + (w(0) - S) exp(-t)."""
    paths, starts, errors = [], [], []
    for k, batch in enumerate(random_problems(settings.seed, settings.problems)):
        own = np.einsum("bda,bda->ba", batch.pi, np.log(batch.pi) + batch.action_cost[..., None])
        response, w = softmax(batch.log_prior - own / batch.eps[:, None], axis=-1), random_weights(k, batch)
        paths.append(_decaying(batch, w, response))
        n = w.shape[-1]
        ends = response[:FEW, None] + (np.eye(n) - response[:FEW, None]) * np.exp(-40.0)
        starts.append(Starts(np.abs(ends - exact(pick(batch, np.s_[:FEW]))[:, None]).max(-1).ravel(), FEW * n))
        slope = primitive_cost(batch, w) + batch.eps[:, None] * (np.log(w) - batch.log_prior)
        rate = np.sum(slope * (response - w), axis=-1)
        stated = -batch.eps * np.sum((w - response) * np.log(w / response), axis=-1)
        errors.append(np.abs(rate - stated) / (np.abs(rate) + 1e-4))
    judged = [p.optimum[: per_shape(settings.judged)] for p in paths]
    worst = {"dissipation": float(np.concatenate(errors).max())}
    return {"paths": paths, "judged_optima": judged, "starts": starts, "identities": worst}


def _unnormalised_gate(settings: TheorySettings) -> Fields:
    """exp(y - max y) in place of softmax(y), at the first weights."""
    paths = []
    for k, batch in enumerate(random_problems(settings.seed, settings.problems)):
        w = random_weights(k, batch)
        y = batch.log_prior - np.asarray(primitive_cost(batch, w)) / batch.eps[:, None]
        paths.append(_decaying(batch, w, np.exp(y - y.max(-1, keepdims=True))))
    return {"paths": paths}


def _decaying(batch: Problem, start: np.ndarray, response: np.ndarray) -> Paths:
    """The flow of a gate that is the same at all weights."""
    times = np.linspace(0.0, 60.0, 301)
    weights = response[:, None] + (start - response)[:, None] * np.exp(-times)[:, None]
    best = exact(batch)
    heights = np.asarray(energy(pick(batch, np.s_[:, None]), weights))
    return Paths(batch, times, weights, heights, best, np.asarray(energy(batch, best)), np.empty(0))


def _rising_energy(settings: TheorySettings) -> Fields:
    known = closed_form(settings)
    others = np.random.default_rng(settings.seed).permutation(len(known.certificates.fall))
    certificates = known.certificates
    turned = [paths._replace(energy=paths.energy[:, ::-1]) for paths in known.paths]
    return {
        "paths": turned,
        "certificates": certificates._replace(fall=certificates.fall[others], rest=certificates.fall),
    }


def _certificates_of_others(settings: TheorySettings) -> Fields:
    own: Certificates = certify_weights(settings)
    others = np.random.default_rng(settings.seed).permutation(len(own.above))
    return {"certificates": own._replace(above=own.above[others], below=own.below[others])}


def _concave_mixture(settings: TheorySettings) -> Fields:
    """F with the sign of its entropy turned."""

    def value(posed: Problem, w: Any) -> Any:
        p = posed.pi @ w
        return p @ (posed.action_cost - jnp.log(p))

    batch = random_problems(settings.seed, settings.problems)[1]
    error, least, largest, _ = differentiate(batch, random_weights(settings.seed, batch), value)
    return {"identities": {"gradient": error, "smallest_eigenvalue": least, "largest_eigenvalue": largest}}


def _same_temperature(settings: TheorySettings) -> Fields:
    """Weights at eps = 1 where it should be 1e4 and 1e-4."""
    few = pick(random_problems(settings.seed, settings.problems)[1], np.s_[:20])
    hot, cold, least, anywhere = limits_of(few, (1.0, 1.0))
    return {"identities": {"hot": hot, "cold": cold, "least": least, "anywhere": anywhere}}


def _no_prior(settings: TheorySettings) -> Fields:
    batch = random_problems(settings.seed, settings.problems)[1]
    prior = np.exp(batch.log_prior)
    even = np.full_like(prior, 1.0 / prior.shape[-1])
    w = exact(batch._replace(log_prior=np.log(even)))
    return {
        "identities": {
            "residual": float(np.abs(w - gate(batch, w)).max()),
            "identical": float(np.abs(even - prior).max()),
        }
    }


def _prior_left_out(settings: TheorySettings) -> Fields:
    def off(batch: Problem) -> float:
        uniform = np.full_like(batch.log_prior, -np.log(batch.log_prior.shape[-1]))
        return float(np.abs(exact(batch._replace(log_prior=uniform)) - exact(batch)).max())

    batches = random_problems(settings.seed, settings.problems)
    in_range = [with_prior_in_range(batch, settings.seed) for batch in batches]
    return {"limits": {"any_prior": {"all": max(map(off, batches))}, "in_range": {"all": max(map(off, in_range))}}}


def _warm_gate(settings: TheorySettings) -> Fields:
    batches = random_problems(settings.seed, settings.problems)
    return {"limits": {"cooled": cool(batches, [random_weights(1, batch) for batch in batches], share=1.0, eps=1.0)}}


def _warm_flow(settings: TheorySettings) -> Fields:
    few = pick(random_problems(settings.seed, settings.problems)[1], np.s_[:FEW])
    return _beside(beside_frank_wolfe(few, (10.0, 3.0, 1.0)))


def _beside(distances: np.ndarray) -> Fields:
    """The same distances for every shape of problems."""
    return {"limits": {"beside": {f"{d} actions, {n} primitives": distances for d, n in SHAPES}}}


def _cold_circuits(settings: TheorySettings, eps: float = 1e-3) -> Fields:
    """The least ratio of the stated ordering for random circuits at one temperature."""
    some = random_circuits(settings.seed, 10)
    return {"ladders": {"ratio": {f"eps {eps:g}": ratio_that_settles(some._replace(eps=np.full(10, eps)))}}}


def _excluding(settings: TheorySettings) -> Fields:
    return {"support": dict.fromkeys(("flock", "bandit", "quadrotor"), float(np.eye(3).min()))}


def _swapped_units(settings: TheorySettings) -> Fields:
    few = pick(random_problems(settings.seed, settings.problems)[1], np.s_[:FEW])
    return {"units": {"swapped": units(few, settings.seed, swapped=True)}}


def _staying_context(settings: TheorySettings) -> Fields:
    """Costs change from problem to problem, and the primitives do not."""
    batch = random_problems(settings.seed, settings.problems)[1]
    same = batch._replace(pi=np.broadcast_to(batch.pi[:1], batch.pi.shape))
    return {"frozen": dict.fromkeys(("flock", "bandit", "quadrotor"), frozen(same))}


# ------------------------------------------------------------------------------ alternatives


def _closed_form(settings: TheorySettings) -> Fields:
    return closed_form(settings)._asdict()


def _counted_from_minimum(settings: TheorySettings) -> Fields:
    known = closed_form(settings)
    paths = [p._replace(energy=p.energy - p.least[:, None], least=np.zeros_like(p.least)) for p in known.paths]
    return {"paths": paths, "certificates": known.certificates}


def _on_a_line(settings: TheorySettings) -> Fields:
    """The proximal map of two entries, by a root of its slope on the segment."""
    rng, worst = np.random.default_rng(settings.seed), 0.0
    for x in rng.normal(scale=1.5, size=(20, 2)):

        def slope(t: float, x: np.ndarray = x) -> float:
            z = np.array([t, 1.0 - t])
            each = np.log(z) + 1.0 - z - (x - z)
            return float(each[0] - each[1])

        worst = max(worst, abs(brentq(slope, 1e-12, 1 - 1e-12, xtol=1e-14) - softmax(x)[0]))
    return {"identities": {"prox": worst}}


def _complex_steps(settings: TheorySettings) -> Fields:
    """Derivatives by complex steps of a few lines of NumPy: exact to rounding, and no automatic differentiation."""
    batch, worst = random_problems(settings.seed, settings.problems)[1], []
    for i, w in enumerate(random_weights(settings.seed, batch)[:20]):
        pi, s = batch.pi[i], batch.action_cost[i]
        steps = w + 1e-30j * np.eye(w.size)
        mixed = steps @ pi.T
        slope = np.sum(mixed * (np.log(mixed) + s), axis=-1).imag / 1e-30
        bend = ((np.log(mixed) + s) @ pi).imag / 1e-30
        eigenvalues = np.linalg.eigvalsh((bend + bend.T) / 2)
        bound = w.size * pi.max() / pi.min()
        by_hand = (np.log(pi @ w) + s) @ pi + 1.0
        worst.append((np.abs(slope - by_hand).max(), -eigenvalues[0], eigenvalues[-1] / bound))
    error, least, largest = np.max(worst, axis=0)
    return {
        "identities": {
            "gradient": float(error), "smallest_eigenvalue": -float(least), "largest_eigenvalue": float(largest)
        }
    }  # fmt: skip


def _limits_by_hand(settings: TheorySettings) -> Fields:
    batch = diagonal(settings.seed, 40)
    n = batch.log_prior.shape[-1]
    hot, cold = (softmax(-batch.action_cost / (1 + eps), axis=-1) for eps in (1e4, 1e-4))
    above = np.sum(cold * (np.log(cold) + batch.action_cost), axis=-1) + logsumexp(-batch.action_cost, axis=-1)
    return {
        "identities": {
            "hot": float(np.abs(hot - 1 / n).max()), "cold": float(above.max() / (1e-4 * np.log(n))),
            "least": float(above.min()),
        }
    }  # fmt: skip


def _prior_by_hand(settings: TheorySettings) -> Fields:
    """Optima of a generic optimiser, among them those of identical primitives."""
    batch, residual, identical = diagonal(settings.seed, 10), 0.0, 0.0
    for cost, eps, log_prior in zip(batch.action_cost, batch.eps, batch.log_prior, strict=True):

        def value(w: np.ndarray, cost: np.ndarray = cost) -> float:
            return float(w @ (np.log(w) + cost))

        def slope(w: np.ndarray, cost: np.ndarray = cost) -> np.ndarray:
            return np.log(w) + cost + 1.0

        residual = max(residual, minimise_with_entropy(value, slope, float(eps), log_prior).residual)
        same = minimise_with_entropy(lambda w: 0.0, lambda w: np.zeros(w.size), float(eps), log_prior)
        identical = max(identical, float(np.abs(same.weights - np.exp(log_prior)).max()))
    return {"identities": {"residual": residual, "identical": identical}}


def _settled_by_hand(settings: TheorySettings) -> Fields:
    """All neurons of circuits whose optimum has a closed form, by a stiff integrator of SciPy's."""
    batch = diagonal(settings.seed, settings.circuits)._replace(eps=np.full(settings.circuits, 1.0))
    hand, times = Hand.of(batch), np.linspace(0.0, 40.0, 41)
    ends = np.stack([integrate_circuit(pick(batch, i), time_scales(1.0), times)[-1] for i in range(settings.circuits)])
    off = float(np.abs(ends - hand.optimum()).max())
    nothing = np.empty(0)
    return {"circuits": {"closed form": Settling(off, settings.circuits, 1.0, nothing, nothing, nothing)}}


def _nearly_linear(settings: TheorySettings) -> Fields:
    """Costs so large that the entropy of the mixture hardly counts: the optimum is a vertex."""
    batches = [
        batch._replace(action_cost=1e3 * batch.action_cost)
        for batch in random_problems(settings.seed, settings.problems)
    ]
    return {"limits": {"cooled": cool(batches, [random_weights(1, batch) for batch in batches])}}


def _priors_in_range(settings: TheorySettings) -> Fields:
    batches = random_problems(settings.seed + 1, settings.judged)
    moved = {"all": max(move_prior(with_prior_in_range(batch, settings.seed + 1)) for batch in batches)}
    return {"limits": {"any_prior": moved, "in_range": moved}}


def _joint_by_hand(settings: TheorySettings) -> Fields:
    def value(posed: Problem, w: np.ndarray) -> float:
        p = posed.pi @ w
        return float(p @ (np.log(p) + posed.action_cost))

    return {"identities": {"joint": sum_over_pairs(settings, value=value)}}


def _full_support(settings: TheorySettings) -> Fields:
    least = min(float(batch.pi.min()) for batch in random_problems(settings.seed, settings.problems))
    return {"support": dict.fromkeys(("flock", "bandit", "quadrotor"), least)}


def _diagonal_units(settings: TheorySettings) -> Fields:
    return {"units": {"closed form": units(diagonal(settings.seed, FEW), settings.seed)}}


def _new_contexts(settings: TheorySettings) -> Fields:
    """Each primitive favours another action in each problem."""
    rng, n = np.random.default_rng(settings.seed), 3
    order = rng.permuted(np.tile(np.arange(n), (60, 1)), axis=1)
    pi = 0.9 * np.eye(n)[order] + 0.1 / n
    posed = problem(pi=pi, action_cost=3.0 * np.arange(n)[None].repeat(60, 0), eps=0.3)
    return {"frozen": dict.fromkeys(("flock", "bandit", "quadrotor"), frozen(posed))}


def _larger_steps(settings: TheorySettings) -> Fields:
    """Frank-Wolfe in larger steps of time, in the place of the flow."""
    few = pick(random_problems(settings.seed, settings.problems)[1], np.s_[:FEW])
    times, n = np.linspace(0.0, LONG_ENOUGH, 51), few.log_prior.shape[-1]
    start = np.full((FEW, n), 1.0 / n)
    fine = frank_wolfe(few, start, times)
    coarse = [frank_wolfe(few, start, times, step) for step in (1e-1, 2e-2, 5e-3)]
    return _beside(np.stack([np.linalg.norm(path - fine, axis=-1).max(-1) for path in coarse], -1))


NULL: Expected = "rejected"
ALTERNATIVE: Expected = "accepted"
MADE = (
    _Made("a gate that is blind to the mixture", "softmax of each primitive's own expected cost, at all weights", NULL,
          ("T2", "T4", "T5", "T6", "T14"), _blind_gate),
    _Made("a gate that is not normalised", "exp(y - max y) in place of softmax(y)", NULL, ("T1",), _unnormalised_gate),
    _Made("a proximal map without the barrier", "half the squared distance alone", NULL, ("T3",),
          lambda settings: {"identities": {"prox": map_proximally(settings, barrier=0.0)}}),
    _Made("certificates of other problems", "bounds dealt to the problems at random", NULL, ("T7",),
          _certificates_of_others),
    _Made("a concave F", "the sign of the mixture's entropy turned", NULL, ("T8",), _concave_mixture),
    _Made("weights that ignore the temperature", "eps = 1 in the place of 1e4 and of 1e-4", NULL, ("T9",),
          _same_temperature),
    _Made("a gate without the prior", "uniform in its place", NULL, ("T10",), _no_prior),
    _Made("circuits with another context's synapses", "Pi of the next recorded problem", NULL, ("T11",),
          lambda settings: {}),
    _Made("cold circuits", "random circuits at eps = 0.001", NULL, ("T12",), _cold_circuits),
    _Made("concave complexities", "five separable functions with their sign turned, in NumPy", NULL, ("T13",),
          lambda settings: {"others": check_separable(settings, -1.0)}),
    _Made("a gate that does not cool", "eps = the gap, and eps = 1 at the optimum", NULL, ("T15",), _warm_gate),
    _Made("a prior that is left out", "s as it was", NULL, ("T16",), _prior_left_out),
    _Made("a constant for each action", "the next state's model normalised action by action", NULL, ("T17",),
          lambda settings: {"identities": {"joint": sum_over_pairs(settings, by_action=True)}}),
    _Made("primitives that exclude actions", "each has an action of its own", NULL, ("T18",), _excluding),
    _Made("units with another target", "where the next problem's weights would send them", NULL, ("T19",),
          _swapped_units),
    _Made("a context that stays", "the same primitives in all problems, other costs", NULL, ("T20",),
          _staying_context),
    _Made("a warm flow", "eps = 10, 3 and 1", NULL, ("T21",), _warm_flow),
    _Made("time turned around", "energies from the last moment to the first, rates of other problems", NULL, ("T22",),
          _rising_energy),
    _Made("closed form", "disjoint primitives, w* = softmax((eps ln prior - c)/(1 + eps)), Runge-Kutta in NumPy",
          ALTERNATIVE, ("T1", "T2", "T4", "T5", "T6", "T7", "T14"), _closed_form),
    _Made("two entries", "the root of a slope on a segment", ALTERNATIVE, ("T3",), _on_a_line),
    _Made("complex steps", "derivatives of NumPy lines, without automatic differentiation", ALTERNATIVE, ("T8",),
          _complex_steps),
    _Made("limits in closed form", "disjoint primitives", ALTERNATIVE, ("T9",), _limits_by_hand),
    _Made("a prior and a generic optimiser", "disjoint and identical primitives, SciPy", ALTERNATIVE, ("T10",),
          _prior_by_hand),
    _Made("neurons one by one", "all neurons of circuits with a closed form, SciPy", ALTERNATIVE, ("T11",),
          _settled_by_hand),
    _Made("hot circuits", "random circuits at eps = 10", ALTERNATIVE, ("T12",), partial(_cold_circuits, eps=10.0)),
    _Made("separable complexities", "five convex functions, in NumPy", ALTERNATIVE, ("T13",),
          lambda settings: {"others": check_separable(settings, 1.0)}),
    _Made("costs beside which entropy is nothing", "costs a thousand times as large", ALTERNATIVE, ("T15",),
          _nearly_linear),
    _Made("priors in the range", "ln prior = Pi^T x", ALTERNATIVE, ("T16",), _priors_in_range),
    _Made("F by hand", "the mixture's sum in NumPy", ALTERNATIVE, ("T17",), _joint_by_hand),
    _Made("full support", "the study's random primitives", ALTERNATIVE, ("T18",), _full_support),
    _Made("units in closed form", "disjoint primitives", ALTERNATIVE, ("T19",), _diagonal_units),
    _Made("contexts that change", "each primitive favours another action in each problem", ALTERNATIVE, ("T20",),
          _new_contexts),
    _Made("Frank-Wolfe", "in larger steps, in the place of the flow", ALTERNATIVE, ("T21",), _larger_steps),
    _Made("an energy counted from its minimum", "V - V* in the place of V, closed form", ALTERNATIVE, ("T22",),
          _counted_from_minimum),
)  # fmt: skip


def know(settings: TheorySettings) -> dict[str, Fields]:
    """By world, what it puts in the place of the study's evidence."""
    return {made.name: made.fields(settings) for made in MADE}


def know_recorded(settings: TheorySettings, recorded: Recorded) -> dict[str, Fields]:
    """The same where a world is made of the studies' recorded problems."""
    swapped = {}
    for name, batch in recorded.items():
        off = np.abs(exact(batch._replace(pi=np.roll(batch.pi, 1, axis=0))) - exact(batch)).max()
        nothing = np.empty(0)
        swapped[name] = Settling(float(off), batch.eps.size, float(np.median(batch.eps)), nothing, nothing, nothing)
    return {"circuits with another context's synapses": {"circuits": swapped}}


def _replaced(made: _Made, settings: TheorySettings, evidence: Any) -> tuple[TheorySettings, Any]:
    fields: Mapping[str, Any] = evidence.known[made.name]
    old = {name: getattr(evidence, name) for name in fields}
    nested = {
        name: old[name]._replace(**value) if hasattr(old[name], "_replace") and isinstance(value, dict) else value
        for name, value in fields.items()
    }
    return settings, evidence._replace(**nested)


WORLDS = tuple(World(m.name, m.what, m.expected, m.claims, partial(_replaced, m)) for m in MADE)
