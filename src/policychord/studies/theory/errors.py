"""The largest error of every statement that is judged by one, beside what its rule allows."""

from typing import NamedTuple

from ..study import Evidence
from .claims import LEDGER
from .settings import TheorySettings

# claim -> figures of its finding that are errors, with what the rule allows
ALLOWED: dict[str, dict[str, float]] = {
    "T1": {"largest |sum - 1|": 1e-12},
    "T2": {"largest |w - optimum|": 1e-8},
    "T3": {"largest |prox - softmax|": 1e-6},
    "T4": {"largest relative error": 1e-6},
    "T5": {"largest gap - bound": 1e-10},
    "T6": {"largest distance - bound": 1e-8},
    "T7": {"largest (V - V*) - eps KL(w,S)": 1e-12, "largest eps KL(w,w*) - (V - V*)": 1e-12},
    "T8": {"gradient error": 1e-10},
    "T9": dict.fromkeys(
        ("|w - uniform| at eps 1e4", "F - min F at eps 1e-4", "|w - argmin F| at eps 1e-4, F curved"), 1e-3
    ),
    "T10": {"largest |w - S(w)|": 1e-10, "identical primitives, largest |w - prior|": 1e-10},
    "T11": {f"{study}: largest |w - w*|": 1e-6 for study in ("flock", "bandit", "quadrotor")},
}  # fmt: skip
# how the figure calls them
WORDS = {
    "T1": "weights sum to one", "T2": "end of the flow against an optimiser", "T3": "prox against softmax",
    "T4": "dissipation identity", "T5": "energy above its bound", "T6": "distance above its bound",
    "T7": "gap outside its certificate", "T8": "gradient against autodiff", "T9": "limits of the temperature",
    "T10": "prior-weighted gate", "T11": "end of the circuit against the optimum",
}  # fmt: skip


class Error(NamedTuple):
    """The worst figure of a claim against its limit."""

    id: str
    what: str
    error: float  # negative where a bound was never reached
    allowed: float


def errors(settings: TheorySettings, evidence: Evidence) -> list[Error]:
    """For every such claim, the figure that comes nearest to its limit."""
    found = {entry.id: entry.measure(settings, evidence).measured for entry in LEDGER if entry.id in ALLOWED}
    rows = []
    for name, limits in ALLOWED.items():
        figures = ((float(found[name][figure]), allowed) for figure, allowed in limits.items())
        error, allowed = max(figures, key=lambda pair: pair[0] / pair[1])
        rows.append(Error(name, WORDS[name], error, allowed))
    return rows
