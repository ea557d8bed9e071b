"""Controls of the theory study: what happens if the flow, its integrator or the place of the prior is changed."""

from ..study import Control, Evidence
from .circuits import SEARCHED, STATED
from .settings import TheorySettings


def controls(settings: TheorySettings, evidence: Evidence) -> list[Control]:
    """Each with an answer that follows its figures."""
    return [_integrator(evidence), _iteration(evidence), _prior(evidence), _ladder(settings, evidence)]


def _integrator(evidence: Evidence) -> Control:
    found = evidence["asides"]
    loose, strict = found.violations["default tolerances"], found.violations["rtol 1e-10"]
    if loose > strict:
        answer = (
            "No. The bound is a property of the flow, not of a numerical path: at its default tolerances the "
            "integrator leaves an energy error that the bound soon falls below. Tests of the theorem need strict "
            "tolerances."
        )
    elif loose == strict == 0:
        answer = "Yes: on these problems no path exceeds the bound."
    else:
        answer = "Strict tolerances did not help on these problems, so the violations are not the integrator's."
    return Control(
        "The integrator",
        "Does the energy bound survive SciPy's `solve_ivp` (RK45), which the paper names, at its default tolerances?",
        {
            "paths that exceed the bound, default tolerances": f"{loose} of {found.paths}",
            "the same at rtol 1e-10, atol 1e-13": f"{strict} of {found.paths}",
        },
        answer,
    )


def _iteration(evidence: Evidence) -> Control:
    found = evidence["asides"]
    if found.stuck:
        answer = (
            "Not always. Where a curvature of the problem exceeds the temperature, the undamped step jumps past the "
            "optimum and settles into a cycle of two. The flow takes small steps towards the same target and arrives."
        )
    else:
        answer = "On these problems it does."
    return Control(
        "A gate that is iterated",
        "Would repeating w = S(w) without the flow's damping find the optimum as well?",
        {
            "problems on which it does not settle": f"{found.stuck} of {found.tried}",
            "problems for which the linearisation says so (mu > eps)": f"{found.predicted} of {found.tried}",
        },
        answer,
    )


def _prior(evidence: Evidence) -> Control:
    moved = evidence["asides"].prior_moves
    wrong = [shape for shape, off in moved.items() if off > 1e-6]
    if not wrong:
        answer = "Yes, on all of these problems."
    elif len(wrong) == len(moved):
        answer = "No, on none of these shapes: the weights differ from those of the prior."
    else:
        answer = (
            f"Only where there are enough actions to carry it. With {', '.join(wrong)} no change of the input has the "
            "effect of the prior, and the weights differ; a circuit that adds eps ln(prior) to layer y is always exact."
        )
    return Control(
        "A prior as an input",
        "The supplement says that a bias can be given to the unchanged circuit through its input s. Can it?",
        {f"{shape}: weights off by up to": off for shape, off in moved.items()},
        answer,
    )


def _ladder(settings: TheorySettings, evidence: Evidence) -> Control:
    found = evidence["ladders"]
    failed = sum(found.corrected.values()) + found.failures
    answer = (
        "Yes: none of these circuits is unstable."
        if failed == 0
        else f"Not always: {failed} of these circuits are unstable."
    )
    measured = {
        f"{study}: unstable": f"{corrected} of {SEARCHED} (as stated: {found.unstable[study]})"
        for study, corrected in found.corrected.items()
    }
    measured["random circuits, eps from .001 to 10: unstable"] = f"{found.failures} of {settings.stability_draws}"
    return Control(
        "Corrected time scales",
        f"Does the circuit settle at a ratio of {STATED:g} if the two middle layers are sped up by min(eps, 1)?",
        measured,
        answer,
    )
