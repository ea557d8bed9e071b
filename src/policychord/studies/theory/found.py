"""What we found in the theory study, with the numbers of this run."""

import numpy as np

from ..study import Evidence, Passage
from .circuits import SEARCHED, STATED
from .paths import decay_rate, distances, everything, gaps
from .settings import TheorySettings

EPS = {"flock": 0.5, "bandit": 0.01, "quadrotor": 0.05}


def found(settings: TheorySettings, evidence: Evidence) -> list[Passage]:
    """Three paragraphs on which the text says less than, or something else than, the measurements."""
    return [_time_scales(settings, evidence), _rates(evidence), _constants(evidence)]


def _time_scales(settings: TheorySettings, evidence: Evidence) -> Passage:
    ladders, shown = evidence["ladders"], evidence["oscillation"]
    cold_first = sorted(EPS, key=lambda study: EPS[study])
    counts = "; ".join(
        f"{study} (eps {EPS[study]:g}) {ladders.unstable[study]} of {SEARCHED}, settling for all from a ratio of "
        f"{ladders.ratio[study]:.1f}"
        for study in cold_first
    )
    tail = shown.stated[shown.times >= 80.0]
    swing, off = float(np.ptp(tail, axis=0).max()), float(np.abs(shown.corrected[-1] - shown.optimum).max())
    text = (
        "The text orders the layers by speed, tau_g << tau~_g << tau_s << tau, and asks nothing of the temperature. "
        "But layer y leaks at the rate eps/tau~_g, so its real time constant is tau~_g/eps, and the loop through all "
        "layers has a gain of up to 1/eps: at a low temperature a slow layer sits inside a loop of high gain. "
        f"With each layer {STATED:g} times faster than the next, the optimum is unstable on these many problems: "
        f"{counts}.\n\n"
    )
    if any(ladders.unstable.values()):
        text += (
            f"The worst of them does not come to rest: between 80 and 100 tau its weights still swing by {swing:.2f}"
            if swing > 1e-3
            else f"Yet the worst of them has come to rest by 80 tau (it swings by {swing:.1g})"
        )
        text += f", while with the corrected ladder it ends {off:.0e} from the optimum. "
    else:
        text += "No counter-example was found in this run. "
    text += (
        "The equilibrium is the optimum whatever the time scales; they only decide whether the circuit gets there. "
        "It does if tau_s and tau~_g/tau_s are shortened in proportion to the temperature: "
        "tau_s = min(eps, 1) tau/rho, tau~_g = min(eps, 1) tau_s/rho, tau_g = tau~_g/rho with rho = 10 left "
        f"{ladders.failures} of {settings.stability_draws} random circuits unstable. "
        "`circuit_stability` tells it for any problem before anything is integrated."
    )
    return Passage("The circuit's time scales", text)


def _rates(evidence: Evidence) -> Passage:
    rows = [
        (decay_rate(p.times, gaps(p), 1e-3, 1e-9), decay_rate(p.times, distances(p), 1e-2, 1e-6), p.slowest)
        for p in everything(evidence)
    ]
    energy, weights, slowest = (np.concatenate(column) for column in zip(*rows, strict=True))
    known = np.isfinite(weights) & np.isfinite(energy)
    if not known.any():
        return Passage("How fast the weights converge", "No path of this run was long enough to read a rate off.")
    median, least = float(np.median(weights[known])), float(weights[known].min())
    ratio = float(np.median(energy[known] / weights[known]))
    text = (
        "The theorem gives the energy the rate 1/tau and the weights half of it, 1/(2 tau), because a distance is the "
        "root of an energy. Both are guarantees from any start. Near the optimum the flow is linear, with the real "
        "rates (1 + mu/eps)/tau, mu between 0 and 1 a curvature of the problem; so in the end the weights must decay "
        f"at least at the rate 1/tau and the energy at twice theirs. Read off {int(known.sum())} paths, the "
        "weights decay "
        f"at {median:.2f}/tau (median; slowest {least:.2f}), and the energy {ratio:.2f} times as fast. "
    )
    if least < 1.0:
        text += (
            "A rate below 1/tau is no contradiction: it is read off while the distance falls from a hundredth to a "
            "millionth of the first one, and the flow need not be linear yet when that begins. "
        )
    if least > 0.5:
        text += "Every one of these paths is faster in the long run than the 1/(2 tau) of the text, which is safe. "
    else:
        text += "Some of these paths are no faster than the 1/(2 tau) of the text. "
    cold = float(np.median(slowest[known]))
    text += f"The slowest mode of these problems has the rate {cold:.2f}/tau in the median."
    return Passage("How fast the weights converge", text)


def _constants(evidence: Evidence) -> Passage:
    curved, aside = evidence["T8"].measured, evidence["asides"]
    loose = aside.violations["default tolerances"]
    used, constant = float(curved["largest eigenvalue / L_F"]), float(curved["L_F, median"])
    off = max(aside.prior_moves.values())
    text = (
        f"The smoothness constant L_F = n pi_max/pi_min {'holds' if used <= 1 + 1e-10 else 'does not hold'}: the "
        f"largest curvature found is {used:.2g} of it. It is also large ({constant:.0f} in the median), unbounded as "
        "primitives sharpen, and nothing needs it: relative to the entropy, F is smooth with the constant 1 "
        "whatever the "
        "primitives, which is why a step of ln w = (ln w - h + eps ln prior)/(1 + eps), normalised, never needs a step "
        "size.\n\n"
        "A damped step is needed, though. Iterating the gate itself, w = S(w), "
        + (
            f"fails to settle on {aside.stuck} of {aside.tried} random problems "
            f"(the linearisation predicts {aside.predicted})"
            if aside.stuck
            else f"settled on all {aside.tried} random problems of this run"
        )
        + f". And the energy bound, which holds along the flow, is exceeded on {loose} of {aside.paths} paths that "
        "SciPy's RK45 gives at its default tolerances. "
    )
    text += (
        "A prior enters the circuit exactly as eps ln(prior) added to layer y; pushed into the input s, as the "
        f"supplement suggests, it leaves the weights up to {off:.2f} away, where there are fewer actions than "
        "primitives."
        if off > 1e-6
        else "A prior pushed into the input s had the same effect as one added to layer y on all problems of this run."
    )
    return Passage("Constants, steps and priors", text)
