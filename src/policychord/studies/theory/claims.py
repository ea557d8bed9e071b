"""Claims T1 to T12: each reads what the work found and applies its rule."""

import numpy as np

from ..claim import Entry, Finding, reproduced_if
from ..study import Evidence
from .circuits import CIRCUITS, SEARCHED, STATED
from .paths import distances, everything, gaps, within_horizon
from .settings import TheorySettings


def simplex_kept(settings: TheorySettings, evidence: Evidence) -> Finding:
    # until the horizon: later the smallest weights are below what the integrator resolves
    paths = [p._replace(weights=p.weights[:, within_horizon(settings, p)]) for p in everything(evidence)]
    off = max(float(np.abs(p.weights.sum(-1) - 1.0).max()) for p in paths)
    least = min(float(p.weights.min()) for p in paths)
    count = sum(len(p.weights) for p in paths)
    measured = {"largest |sum - 1|": off, "smallest weight": least, "problems": count}
    return Finding(measured, reproduced_if(off <= 1e-12 and least > 0 and count >= 200))


def equilibria_are_optima(settings: TheorySettings, evidence: Evidence) -> Finding:
    pairs = list(zip(everything(evidence), evidence["judged optima"], strict=True))
    furthest = max(float(np.abs(p.weights[: len(judged), -1] - judged).max()) for p, judged in pairs)
    measured = {"largest |w - optimum|": furthest, "problems": sum(len(judged) for _, judged in pairs)}
    return Finding(measured, reproduced_if(furthest <= 1e-8))


def energy_gap_decays(settings: TheorySettings, evidence: Evidence) -> Finding:
    violation, tightest, count = -np.inf, 0.0, 0
    for paths in everything(evidence):
        now = within_horizon(settings, paths)
        gap, times = gaps(paths)[:, now], paths.times[now]
        bound = np.exp(-times) * gap[:, :1]
        violation = max(violation, float((gap - bound)[:, 1:].max()))
        tightest = max(tightest, float((gap / bound)[:, (times > 0) & (times <= 5.0)].max()))
        count += len(gap)
    measured = {"largest gap - bound": violation, "largest gap / bound, t <= 5": tightest, "problems": count}
    return Finding(measured, reproduced_if(violation <= 1e-10))


def weights_converge(settings: TheorySettings, evidence: Evidence) -> Finding:
    violation, tightest, count = -np.inf, 0.0, 0
    for paths in everything(evidence):
        now = within_horizon(settings, paths)
        times = paths.times[now]
        bound = np.sqrt(2.0 / paths.problems.eps * gaps(paths)[:, 0])[:, None] * np.exp(-times / 2)
        distance = distances(paths)[:, now]
        violation = max(violation, float((distance - bound).max()))
        tightest = max(tightest, float((distance / bound)[:, times <= 5.0].max()))
        count += len(distance)
    measured = {"largest distance - bound": violation, "largest distance / bound, t <= 5": tightest, "problems": count}
    return Finding(measured, reproduced_if(violation <= 1e-8))


def gap_is_certified(settings: TheorySettings, evidence: Evidence) -> Finding:
    found = evidence["certificates"]
    above = float((found.suboptimality - found.above).max())
    below = float((found.below - found.suboptimality).max())
    measured = {
        "largest (V - V*) - eps KL(w,S)": above,
        "largest eps KL(w,w*) - (V - V*)": below,
        "points": len(found.above),
    }
    return Finding(measured, reproduced_if(above <= 1e-12 and below <= 1e-12))


def circuit_reaches_optimum(settings: TheorySettings, evidence: Evidence) -> Finding:
    settled = {name: found for step in CIRCUITS for name, found in evidence[step].items()}
    measured = {f"{name}: largest |w - w*|": found.furthest for name, found in settled.items()}
    measured |= {"problems of each study": settings.circuits, "after (tau)": settings.horizon}
    return Finding(measured, reproduced_if(max(found.furthest for found in settled.values()) <= 1e-6))


def stated_ordering_suffices(settings: TheorySettings, evidence: Evidence) -> Finding:
    """A counter-example at the bandit's temperature, with every layer ten times faster than the next."""
    ladders, shown = evidence["ladders"], evidence["oscillation"]
    tail = shown.stated[shown.times >= 80.0]
    measured = {
        f"bandit (eps .01), ratio {STATED:g}: unstable": f"{ladders.unstable['bandit']} of {SEARCHED} problems",
        "ratio from which all of them settle": round(ladders.ratio["bandit"], 1),
        "weights of the worst still swing, t in [80, 100], by": float(np.ptp(tail, axis=0).max()),
        "distance from the optimum meanwhile": float(np.abs(tail - shown.optimum).max()),
        "its growth rate (1/tau)": ladders.growth,
        "quadrotor (eps .05): unstable": f"{ladders.unstable['quadrotor']} of {SEARCHED}",
        "flock (eps .5): unstable": f"{ladders.unstable['flock']} of {SEARCHED}",
        "corrected ladder: unstable": f"{ladders.failures} of {settings.stability_draws} random circuits",
    }
    return Finding(measured, reproduced_if(not ladders.unstable["bandit"]))


def measured_by(step: str):
    """A claim whose step of the work is its finding."""

    def read(settings: TheorySettings, evidence: Evidence) -> Finding:
        return evidence[step]

    return read


PROVED = "no number given: a statement with a proof"

LEDGER = (
    Entry("T1", "the flow stays on the simplex", "Lemma (invariance)",
          "over >= 200 random problems, |sum - 1| <= 1e-12 and w > 0", simplex_kept, PROVED),
    Entry("T2", "equilibria of the flow are the minimisers", "Lemma (optimum = equilibrium)",
          "flow end point within 1e-8 of an independent optimiser", equilibria_are_optima, PROVED),
    Entry("T3", "the proximal map of the entropic barrier minus half the squared norm is softmax", "Lemma (prox)",
          "within 1e-6 of a generic optimiser", measured_by("T3"), PROVED),
    Entry("T4", "along the flow the energy falls by dV/dt = -(eps/tau) (KL(w,S) + KL(S,w))", "Dissipation identity",
          "relative error <= 1e-6", measured_by("T4"), PROVED),
    Entry("T5", "the energy gap decays at least as exp(-t/tau)", "Theorem, energy",
          "no violation beyond 1e-10", energy_gap_decays, "rate 1/tau, with a proof"),
    Entry("T6", "the weights converge at rate 1/(2 tau)", "Theorem, weights",
          "no violation of the bound beyond 1e-8", weights_converge, "rate 1/(2 tau), with a proof"),
    Entry("T7", "one look at the gate bounds the energy gap: V - V* <= eps KL(w, S(w))", "Remark (Bregman-PL)",
          "no violation beyond 1e-12", gap_is_certified, PROVED),
    Entry("T8", "F has the stated gradient, is convex, and is smooth with L_F = n pi_max/pi_min", "Lemma (gradient)",
          "autodiff agreement 1e-10; eigenvalues within bounds", measured_by("T8"),
          "L_F = n pi_max/pi_min, with a proof"),
    Entry("T9", "eps to infinity gives uniform weights, eps to 0 the minimiser of F", "Sec. 3",
          "1e-3 at eps = 1e4 and 1e-4: in F, and in the weights where F has a curvature of 1/4 to place them",
          measured_by("T9"), "no number given: stated in words"),
    Entry("T10", "a bias makes the gate a prior-weighted softmax", "Sec. 4 (biases)",
          "fixed point, and w = prior for identical primitives, to 1e-10", measured_by("T10"),
          "no number given: derived in the supplement"),
    Entry("T11", "the circuit's steady state is the optimum", "Neural circuit",
          "1e-6 with stable time constants, over the three studies' problems", circuit_reaches_optimum,
          "no number given: the same weights as the flow on a subset of the experiments"),
    Entry("T12", "the stated ordering of the time scales is enough for the circuit to settle", "Neural circuit",
          "no counter-example found at the bandit's temperature", stated_ordering_suffices,
          "no number given: tau_g << tau~_g << tau_s << tau, without a condition on eps"),
)  # fmt: skip
