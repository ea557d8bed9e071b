"""Claims T1 to T22 with their rules, and the controls that say how much they are worth."""

from collections.abc import Iterable, Sequence

import numpy as np

from ..claim import Claim, Condition, Measured, Quantity, Revision, added, all_of, count, in_parts, revised, third
from ..study import Control
from .circuits import STATED
from .experiments import Evidence
from .flows import Bounded, bounded_distances, bounded_gaps, within_horizon
from .limits import COLD as COLD_FLOWS
from .problems import SHAPES, TheorySettings


def _stay_on_simplex(settings: TheorySettings, evidence: Evidence) -> Measured:
    # until the horizon: later the smallest weights are below what the integrator resolves
    weights = [paths.weights[:, within_horizon(settings, paths)] for paths in evidence.paths]
    return {
        "largest |sum - 1|": max(float(np.abs(w.sum(-1) - 1.0).max()) for w in weights),
        "smallest weight": min(float(w.min()) for w in weights),
        "problems": sum(map(len, weights)),
    }


def _reach_optimum(settings: TheorySettings, evidence: Evidence) -> Measured:
    pairs = list(zip(evidence.paths, evidence.judged_optima, strict=True))
    off = [float(np.abs(paths.weights[: len(judged), -1] - judged).max()) for paths, judged in pairs]
    return {"largest |w - optimum|": max(off), "problems": sum(map(len, evidence.judged_optima))}


def _bound_energy(settings: TheorySettings, evidence: Evidence) -> Measured:
    # without the start, where gap and bound are equal
    all_bounded = (bounded_gaps(settings, paths) for paths in evidence.paths)
    violation, tightest = _compare_with_bounds(all_bounded, first=1)
    violated = Quantity(violation, "nat")
    return {NO_EXCESS.quantity: violated, "largest gap / bound, t <= 5": tightest, "problems": _problems(evidence)}


def _bound_weights(settings: TheorySettings, evidence: Evidence) -> Measured:
    violation, tightest = _compare_with_bounds(bounded_distances(settings, paths) for paths in evidence.paths)
    shown = {"largest distance - bound": violation, "largest distance / bound, t <= 5": tightest}
    return shown | {"problems": _problems(evidence)}


def _certify(settings: TheorySettings, evidence: Evidence) -> Measured:
    off, above, below = evidence.certificates[:3]
    return {
        "largest (V - V*) - eps KL(w,S)": Quantity(float((off - above).max()), "nat"),
        "largest eps KL(w,w*) - (V - V*)": Quantity(float((below - off).max()), "nat"),
        "points": len(above),
    }


def _settle(settings: TheorySettings, evidence: Evidence) -> Measured:
    circuits = evidence.circuits
    return {
        FURTHEST: max(circuit.furthest for circuit in circuits.values()),
        FEWEST: min(circuit.problems for circuit in circuits.values()),
        "after": Quantity(settings.horizon, "tau"),
        **{f"{study}: largest |w - w*|": circuit.furthest for study, circuit in circuits.items()},
    }


def _order_layers(settings: TheorySettings, evidence: Evidence) -> Measured:
    """From which ratio of neighbouring time scales all recorded problems settle, and how many do not at ten."""
    ladders, tail = evidence.ladders, evidence.oscillation.tail
    return {
        RATIO: round(max(ladders.ratio.values()), 1),  # as fine as the search
        **{
            f"{study} (eps {ladders.eps[study]:g}), ratio {STATED:g}: unstable": Quantity(n, of=ladders.tried[study])
            for study, n in ladders.unstable.items()
        },
        **{f"{study}: ratio from which all settle": round(ratio, 1) for study, ratio in ladders.ratio.items()},
        "weights of the worst still swing, t in [80, 100], by": float(np.ptp(tail, axis=0).max()),
        "distance from the optimum meanwhile": float(np.abs(tail - evidence.oscillation.optimum).max()),
        "its growth rate": Quantity(ladders.growth, "1/tau"),
        "corrected ladder, random circuits: unstable": Quantity(ladders.failures, of=settings.stability_draws),
    }


def _hold_for_others(settings: TheorySettings, evidence: Evidence) -> Measured:
    """The worst number of each statement over all other complexities, and of each complexity the end of its flow."""
    others = evidence.others
    worst = {name: _worst(getattr(other, field) for other in others.values()) for name, field in OTHERS.items()}
    return {
        **worst,
        "smallest weight": min(other.smallest for other in others.values()),
        "complexities": len(others),
        "fewest problems of a complexity": min(other.problems for other in others.values()),
        "largest residual of the judge's optima": max(other.judge for other in others.values()),
        **{f"{name}: largest |w - optimum|": other.end for name, other in others.items()},
    }


def _start_anywhere(settings: TheorySettings, evidence: Evidence) -> Measured:
    paths = sum(len(batch.distance) for batch in evidence.starts)
    vertices = sum(batch.vertices for batch in evidence.starts)
    return {
        "largest |w - w*| after 40 tau": max(float(batch.distance.max()) for batch in evidence.starts),
        "random starts of a problem": settings.starts,
        "paths from a vertex": Quantity(vertices, of=paths),
    }


def _cool(settings: TheorySettings, evidence: Evidence) -> Measured:
    cooled = evidence.limits.cooled
    return {
        NEAR_VERTEX: cooled.corner,
        AT_VERTEX: Quantity(cooled.at_vertex, of=cooled.tried),
        "at random weights, eps = gap: the same": cooled.blunt,
    }


def _bias_by_input(settings: TheorySettings, evidence: Evidence) -> Measured:
    """The largest distance from the weights of the prior-weighted gate, for priors of both kinds."""
    limits = evidence.limits
    return {
        IN_RANGE: max(limits.in_range.values()),
        ANY: max(limits.any_prior.values()),
        **{f"{shape}, any prior: |w - w of the prior|": off for shape, off in limits.any_prior.items()},
    }


def _lose_by_freezing(settings: TheorySettings, evidence: Evidence) -> Measured:
    frozen = evidence.frozen
    least = {name: [f for study, f in frozen.items() if study.startswith(name)] for name in STUDIED}
    return {
        **{
            f"{name}: {FREEZES}": Quantity(min(f.moved / f.problems for f in some), "share")
            for name, some in least.items()
            if some
        },
        **{f"{study}: median of the largest change": f.median for study, f in frozen.items()},
        **{f"{study}: energy lost, median": Quantity(f.excess, "nat") for study, f in frozen.items()},
    }


def _follow_frank_wolfe(settings: TheorySettings, evidence: Evidence) -> Measured:
    """How far the coldest flow is from Frank-Wolfe, with enough actions and without."""
    few = {f"{d} actions, {n} primitives" for d, n in SHAPES if d < n}
    beside = evidence.limits.beside
    sides = {
        side: np.concatenate([off for shape, off in beside.items() if (shape in few) is fewer])
        for side, fewer in ((ENOUGH, False), (TOO_FEW, True))
    }
    return {
        **{f"{side}: {COLDEST}": float(off[:, -1].max()) for side, off in sides.items()},
        **{f"{side}: {FALLS}": count(np.diff(off, axis=1).max(axis=1) < 0) for side, off in sides.items()},
        **{
            f"{side}, eps {eps:g}: median distance": float(far)
            for side, off in sides.items()
            for eps, far in zip(COLD_FLOWS, np.median(off, axis=0), strict=True)
        },
    }


def _vanish(settings: TheorySettings, evidence: Evidence) -> Measured:
    fall, off = evidence.certificates.fall, evidence.certificates.suboptimality
    away = off > 1e-9  # nearer, rounding decides the quotient
    return {
        RISES: Quantity(max(float(np.diff(paths.energy, axis=1).max()) for paths in evidence.paths), "nat"),
        SLOWEST: float((fall[away] / off[away]).min()),
        REST: Quantity(float(np.abs(evidence.certificates.rest).max()), "nat/tau"),
        LEAST: Quantity(max(float(np.abs(paths.least).max()) for paths in evidence.paths), "nat"),
    }


def _worst(values: Iterable[float]) -> float:
    """The largest; not a number if one of them is not, which `max` would hide."""
    return float(np.max(list(values)))


def _hold_units(settings: TheorySettings, evidence: Evidence) -> Measured:
    units = evidence.units
    return {
        "fast unit: largest |y - (ln prior - grad F/eps)|": _worst(unit.fast_end for unit in units.values()),
        "slow unit: largest |w - softmax(y)|": _worst(unit.slow_end for unit in units.values()),
        "fast unit: least rate": Quantity(-_worst(-unit.fast_rate for unit in units.values()), "eps/tau~_g"),
        "slow unit: least rate": Quantity(-_worst(-unit.slow_rate for unit in units.values()), "1/tau"),
        **{f"{study}: problems": unit.problems for study, unit in units.items()},
    }


def _support(settings: TheorySettings, evidence: Evidence) -> Measured:
    least = {name: min(p for study, p in evidence.support.items() if study.startswith(name)) for name in STUDIED}
    return {f"{name}: least probability": p for name, p in least.items()} | {
        f"{study}: least probability": p for study, p in evidence.support.items() if study not in least
    }


def _problems(evidence: Evidence) -> int:
    return sum(len(paths.weights) for paths in evidence.paths)


def _at_most(limit: float, *quantities: str) -> tuple[Condition, ...]:
    """The same limit for each of these."""
    return tuple(Condition(quantity, "<=", limit) for quantity in quantities)


(NO_EXCESS,) = _at_most(1e-10, "largest gap - bound")
(SMOOTH,) = _at_most(1 + 1e-10, "largest eigenvalue / L_F")
STUDIED = ("flock", "bandit", "quadrotor")
FURTHEST, FEWEST = "largest |w - w*|", "fewest problems of a study"
RATIO = "ratio of time scales from which all settle"
MOCK_UPS = "the problems were made up in the likeness of the studies'; now they are recorded in their runs"
ORDERED = in_parts(
    {"each layer 10 times faster": _at_most(10, RATIO), "each layer 100 times faster": _at_most(100, RATIO)},
    "problems recorded in the studies' runs",
    history=revised(
        "no unstable problem of 200 made-up ones of the bandit at a ratio of 10",
        "the text says much smaller and not ten times smaller, so a ratio of up to 100 is now partly; " + MOCK_UPS,
        "not reproduced",
    ),
)
OTHERS = {
    "largest |sum - 1|": "sum_off",
    "largest |w - optimum|": "end",
    "largest relative error of the dissipation": "dissipation",
    "largest gap - bound": "energy",
    "largest distance - bound": "distance",
    "largest (V - V*) - eps KL(w,S)": "above",
    "largest eps KL(w,w*) - (V - V*)": "below",
}
COLD, NOT_BELOW = "largest (F - min F)/(eps ln n) at eps 1e-4", "least F - min F at eps 1e-4"
IN_RANGE = "ln prior in the range of Pi^T: largest |w - w of the prior|"
ANY = "any prior: largest |w - w of the prior|"
NEAR_VERTEX, AT_VERTEX = "at random weights: largest |S(w) - e_i*|", "at the optimum: problems with a weight > 0.99"
FREEZES = "share of problems of which freezing moves a weight by more than 0.1"
COLDEST = "eps 0.001, largest distance of the flow from Frank-Wolfe, t <= 5"
FALLS = "problems on which the distance falls with each temperature"
ENOUGH, TOO_FEW = "d >= n", "d < n"
RISES, SLOWEST = "largest rise of V between two moments", "least (-dV/dt) / (V - V*) away from the optimum"
REST, LEAST = "largest |dV/dt| at the optimum", "largest |V| at the optimum"
NEW = added("written after the first had been measured")
LIMITS = (
    Revision(
        "|w - uniform| <= 1e-3 at eps 1e4; F - min F <= 1e-3 and, where F is curved by at least 1/4, |w - argmin F| <= "
        "1e-3 at eps 1e-4, on 60 problems", "reproduced",
        "the curvature from which weights count had been chosen after they were seen to miss the minimiser where F is "
        "flat; now the bound of the theory is asked for, on every problem",
    ),
    Revision(
        "the same rule; the judge's minimiser of F was kept 1e-12 off the border of the simplex", "not reproduced",
        "the judge was changed, not the rule: its F lay above ours by up to 5.4e-12, which looked as if ours were "
        "below the minimum; now what it gives less than 1e-9 of the weight counts as zero",
    ),
)  # fmt: skip
PROVED = "no number given: a statement with a proof"

CLAIMS: tuple[Claim[TheorySettings, Evidence], ...] = (
    Claim("T1", "the flow stays on the simplex", "Lemma (invariance)",
          all_of(*_at_most(1e-12, "largest |sum - 1|"), Condition("smallest weight", ">", 0.0),
                 Condition("problems", ">=", 200), context="random problems"),
          _stay_on_simplex, PROVED),
    Claim("T2", "equilibria of the flow are the minimisers", "Lemma (optimum = equilibrium)",
          all_of(*_at_most(1e-8, "largest |w - optimum|"), context="end of the flow against a generic optimiser"),
          _reach_optimum, PROVED),
    Claim("T3", "the proximal map of the entropic barrier minus half the squared norm is softmax", "Lemma (prox)",
          all_of(*_at_most(1e-6, "largest |prox - softmax|"), context="prox by a generic optimiser"),
          lambda settings, evidence: {
              "largest |prox - softmax|": evidence.identities.prox, "points": settings.judged,
          }, PROVED),
    Claim("T4", "along the flow the energy falls by dV/dt = -(eps/tau) (KL(w,S) + KL(S,w))", "Dissipation identity",
          all_of(*_at_most(1e-6, "largest relative error"), context="against automatic differentiation"),
          lambda settings, evidence: {
              "largest relative error": evidence.identities.dissipation, "points": _problems(evidence),
          }, PROVED),
    Claim("T5", "the energy gap decays at least as exp(-t/tau)", "Theorem, energy", all_of(NO_EXCESS),
          _bound_energy, "rate 1/tau, with a proof"),
    Claim("T6", "the weights converge at rate 1/(2 tau)", "Theorem, weights",
          all_of(*_at_most(1e-8, "largest distance - bound")), _bound_weights, "rate 1/(2 tau), with a proof"),
    Claim("T7", "one look at the gate bounds the energy gap: V - V* <= eps KL(w, S(w))", "Remark (Bregman-PL)",
          all_of(*_at_most(1e-12, "largest (V - V*) - eps KL(w,S)", "largest eps KL(w,w*) - (V - V*)")),
          _certify, PROVED),
    Claim("T8", "F has the stated gradient, is convex, and is smooth with L_F = n pi_max/pi_min", "Lemma (gradient)",
          all_of(*_at_most(1e-10, "gradient error"), Condition("smallest eigenvalue", ">=", -1e-10), SMOOTH,
                 context="against automatic differentiation"),
          lambda settings, evidence: {
              "gradient error": evidence.identities.gradient,
              "smallest eigenvalue": evidence.identities.smallest_eigenvalue,
              SMOOTH.quantity: evidence.identities.largest_eigenvalue,
              "L_F, median": evidence.identities.median_bound,
          }, "L_F = n pi_max/pi_min, with a proof"),
    Claim("T9", "eps to infinity gives uniform weights, eps to 0 the minimiser of F", "Sec. 3",
          all_of(*_at_most(1e-3, "|w - uniform| at eps 1e4"), *_at_most(1, COLD), Condition(NOT_BELOW, ">=", -1e-12),
                 context="every random problem, with a uniform prior; -1e-12 is rounding", history=LIMITS),
          lambda settings, evidence: {
              "|w - uniform| at eps 1e4": evidence.identities.hot,
              COLD: evidence.identities.cold,
              NOT_BELOW: Quantity(evidence.identities.least, "nat"),
              "largest |w - argmin F| at eps 1e-4": evidence.identities.anywhere,
          }, "no number given: stated in words"),
    Claim("T10", "a bias makes the gate a prior-weighted softmax", "Sec. 4 (biases)",
          all_of(*_at_most(1e-10, "largest |w - S(w)|", "identical primitives, largest |w - prior|")),
          lambda settings, evidence: {
              "largest |w - S(w)|": evidence.identities.residual,
              "identical primitives, largest |w - prior|": evidence.identities.identical,
          }, "no number given: derived in the supplement"),
    Claim("T11", "the circuit's steady state is the optimum", "Neural circuit",
          all_of(*_at_most(1e-6, FURTHEST), Condition(FEWEST, ">=", 24),
                 context="problems recorded in the studies' runs, time scales that suit the temperature",
                 history=revised("the same on 12 made-up problems of each study", MOCK_UPS)),
          _settle, "no number given: the same weights as the flow on a subset of the experiments"),
    Claim("T12", "the stated ordering of the time scales is enough for the circuit to settle", "Neural circuit",
          ORDERED, _order_layers, "no number given: tau_g << tau~_g << tau_s << tau, without a condition on eps"),
    Claim("T13", "lemmas and theorem hold for any convex, continuously differentiable F", "Supplement Sec. 3",
          all_of(*_at_most(1e-12, "largest |sum - 1|"), Condition("smallest weight", ">", 0.0),
                 *_at_most(1e-8, "largest |w - optimum|"), *_at_most(1e-6, "largest relative error of the dissipation"),
                 *_at_most(1e-10, "largest gap - bound"), *_at_most(1e-8, "largest distance - bound"),
                 *_at_most(1e-12, "largest (V - V*) - eps KL(w,S)", "largest eps KL(w,w*) - (V - V*)"),
                 Condition("complexities", ">=", 5), Condition("fewest problems of a complexity", ">=", 40),
                 context="the rules of T1, T2 and T4 to T7 with quadratics, mixture proportions, congestion games, "
                 "semi-relaxed transport and log-sum-exp", history=NEW),
          _hold_for_others, PROVED),
    Claim("T14", "the flow converges from any start, borders included", "Sec. 3",
          all_of(*_at_most(1e-6, "largest |w - w*| after 40 tau"), Condition("random starts of a problem", ">=", 50),
                 context="from every vertex and from random points, half of them on the border", history=NEW),
          _start_anywhere, PROVED),
    Claim("T15", "as eps goes to 0 the gate tends to the vertex of steepest descent", "Sec. 3",
          in_parts({"at random weights": (Condition(NEAR_VERTEX, "<", 1e-3),),
                    "at the optimum": (Condition(AT_VERTEX, ">=", 0.95),)},
                   "at weights that are held, eps = 1e-3 of the gap between the two lowest entries of the gradient; at "
                   "the optimum, where the gradient moves with eps, eps = 1e-4",
                   history=NEW + revised(
                       "the gate at random weights only, within 1e-3 of the vertex at eps = 1e-3 of the gap",
                       "at weights that are held this is exp(-1000) and cannot fail; an independent reading found "
                       "one primitive above 0.99 at the optimum of 77 of the 240 problems at eps 1e-4, which is now a "
                       "part")),
          _cool, "no number given: stated in words"),
    Claim("T16", "a bias can be given through the circuit's input s", "Sec. 4 (biases)",
          in_parts({"ln prior in the range of Pi^T": _at_most(1e-6, IN_RANGE), "any prior": _at_most(1e-6, ANY)},
                   "the best change of s, by a convex programme, against the prior-weighted gate",
                   history=added(
                       "written when it was known that weights differ where there are fewer actions than primitives"
                   ) + revised(
                       "d >= n and d < n as parts, with the least-squares change of s", "the condition is that ln "
                       "prior lies in the range of Pi^T, which it can where there are fewer actions than primitives; "
                       "and the least-squares change is not the best one", "partly")),
          _bias_by_input, "no number given: stated in words"),
    Claim("T17", "the cost form of the generative model differs by a constant", "Results",
          all_of(*_at_most(1e-12, "largest |joint KL - (F + ln Z)|"),
                 context="joint distributions of states and actions, summed pair by pair", history=NEW),
          lambda settings, evidence: {
              "largest |joint KL - (F + ln Z)|": Quantity(evidence.identities.joint, "nat"), "models": settings.judged,
          }, "the constant ln Z, derived"),
    Claim("T18", "the primitives of the studies have full support", "Assumption 2",
          in_parts({name: (Condition(f"{name}: least probability", ">", 0.0),) for name in STUDIED},
                   "problems recorded in the studies' runs",
                   history=added("written when it was known that one primitive of Experiment 1 excludes an arm")),
          _support, "assumed: every primitive gives every action a positive probability"),
    Claim("T19", "with the other unit held, the fast unit converges exponentially to -grad F/eps and the slow one to "
          "the softmax", "Neural circuit",
          all_of(*_at_most(1e-8, "fast unit: largest |y - (ln prior - grad F/eps)|",
                          "slow unit: largest |w - softmax(y)|"),
                 *(Condition(f"{unit} unit: least rate", ">", 0.0) for unit in ("fast", "slow")),
                 context="problems recorded in the studies' runs; rates fitted between 1e-2 and 1e-6 of the first "
                 "distance", history=NEW + revised(
                     "the same; the record said that the paper has a proof", "the paper states it without a proof; the "
                     "rule, which asks for what is stated, is the same")),
          _hold_units, "exponentially stable: stated, without a proof"),
    Claim("T20", "context-dependent synapses are necessary: with synapses that stay, the circuit composes otherwise",
          "Discussion", in_parts({name: (Condition(f"{name}: {FREEZES}", ">=", 0.5),) for name in STUDIED},
          "problems recorded in the studies' runs; Pi stays at its mean over them, and s follows the context",
          history=third("before any circuit was frozen; 0.1 of a weight and half of the problems were chosen by us")),
          _lose_by_freezing, "no number given: a principled computational necessity"),
    Claim("T21", "as eps goes to 0 the flow becomes w' = e_i* - w, a path like that of Frank and Wolfe", "Sec. 3",
          in_parts({side: (Condition(f"{side}: {COLDEST}", "<=", 0.05), Condition(f"{side}: {FALLS}", ">=", 0.95))
                    for side in (ENOUGH, TOO_FEW)},
                   "both from equal weights; Frank-Wolfe in steps of 0.001 tau",
                   history=third("before any of these paths was integrated") + revised(
                       "the same two conditions over all problems", "the first run, on fresh seeds, found a distance "
                       "of 0.37, all of it where there are fewer actions than primitives: F has flat directions there, "
                       "on which the steepest vertex is tied and either path may go another way. It is a part of its "
                       "own now", "not reproduced")),
          _follow_frank_wolfe, "no number given: reminiscent of Frank-Wolfe"),
    Claim("T22", "the energy decreases along trajectories and vanishes only at the equilibrium", "Supplement Sec. 2",
          in_parts({"it decreases": _at_most(1e-10, RISES),
                    "its rate vanishes at the equilibrium only": (
                        Condition(SLOWEST, ">=", 1 - 1e-6), *_at_most(1e-12, REST)),
                    "it vanishes at the equilibrium": _at_most(1e-9, LEAST)},
                   history=third("when it was known that V* is not zero; that its rate vanishes is the reading that "
                                 "the theorem supports")),
          _vanish, "no number given: stated in words"),
)  # fmt: skip


# ------------------------------------------------------------------------------ controls

SAME_WEIGHTS = 1e-6  # weights that differ by less are the same


def controls(settings: TheorySettings, evidence: Evidence) -> Sequence[Control]:
    """What happens if the flow, its integrator or the time scales are changed."""
    return [_integrator(evidence), _iteration(evidence), _ladder(settings, evidence)]


def paths_beyond_bound(excesses: np.ndarray) -> Quantity:
    """How many paths exceed the energy bound by more than the rule of T5 allows."""
    return count(excesses > NO_EXCESS.limit)


def _integrator(evidence: Evidence) -> Control:
    loose = paths_beyond_bound(evidence.variants.excess_default)
    strict = paths_beyond_bound(evidence.variants.excess_strict)
    if loose.value > strict.value:
        answer = (
            "No. The bound is a property of the flow, not of a numerical path: at its default tolerances the "
            "integrator leaves an energy error that the bound soon falls below. Tests of the theorem need strict "
            "tolerances."
        )
    elif loose.value == strict.value == 0:
        answer = "Yes: on these problems no path exceeds the bound."
    else:
        answer = "Strict tolerances did not help on these problems, so the violations are not the integrator's."
    return Control(
        "The integrator",
        "Does the energy bound survive SciPy's `solve_ivp` (RK45), which the paper names, at its default tolerances?",
        {"paths that exceed the bound, default tolerances": loose, "the same at rtol 1e-10, atol 1e-13": strict},
        answer,
    )


def _iteration(evidence: Evidence) -> Control:
    variants = evidence.variants
    answer = "On these problems it does."
    if variants.stuck:
        answer = (
            "Not always. Where a curvature of the problem exceeds the temperature, the undamped step jumps past the "
            "optimum and settles into a cycle of two. The flow takes small steps towards the same target and arrives."
        )
    measured = {
        "problems on which it does not settle": Quantity(variants.stuck, of=variants.tried),
        "problems for which the linearisation says so (mu > eps)": Quantity(variants.predicted, of=variants.tried),
    }
    question = "Would repeating w = S(w) without the flow's damping find the optimum as well?"
    return Control("A gate that is iterated", question, measured, answer)


def _ladder(settings: TheorySettings, evidence: Evidence) -> Control:
    ladders = evidence.ladders
    failed = sum(ladders.corrected.values()) + ladders.failures
    measured = {f"{study}: unstable": Quantity(n, of=ladders.tried[study]) for study, n in ladders.corrected.items()}
    measured["random circuits, eps from .001 to 10: unstable"] = Quantity(ladders.failures, of=settings.stability_draws)
    measured |= {
        f"{study}, as stated: unstable": Quantity(n, of=ladders.tried[study]) for study, n in ladders.unstable.items()
    }
    return Control(
        "Corrected time scales",
        f"Does the circuit settle at a ratio of {STATED:g} if the two middle layers are sped up by min(eps, 1)?",
        measured,
        f"Not always: {failed} of these circuits are unstable." if failed else "Yes: none of these is unstable.",
    )


def _compare_with_bounds(all_bounded: Iterable[Bounded], first: int = 0) -> tuple[float, float]:
    """Largest series - bound, and largest series / bound in the first five tau, from moment `first` on."""
    rows = [((s - b)[:, first:].max(), (s / b)[:, first:][:, t[first:] <= 5.0].max()) for t, s, b in all_bounded]
    violation, tightest = np.max(rows, axis=0)
    return float(violation), float(tightest)
