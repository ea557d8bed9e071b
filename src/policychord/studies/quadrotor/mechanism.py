"""Where the published result comes from, in plain words, with the figures of this run."""

from collections.abc import Mapping

import numpy as np

from ..study import Evidence
from .claims import CONTROL, LEAST_EVIDENCE, RELEASED, USEFUL, WRITTEN
from .metrics import table
from .settings import QuadrotorSettings
from .simulate import Flight


def alternation(flight: Flight) -> float:
    """The share of steps at which the leading primitive changes."""
    leads = flight.stabilising > 0.5
    return float(np.mean(leads[:, 1:] != leads[:, :-1]))


def explain(settings: QuadrotorSettings, evidence: Evidence) -> str:
    """The mechanism behind Figures 5 and S7, as measured."""

    def costs(name: str, world: str = "stale-point") -> str:
        """Median cost and delta against the baseline, in both experiments."""
        found = []
        for experiment in ("pd", "lqr"):
            rows = {row.name: row for row in table(settings, _only(evidence[f"{experiment}, {world}"], name))}
            found.append(f"{rows[name].cost.median:.0f} (delta {rows[name].against.delta:+.2f})")
        return " and ".join(found)

    control, released = (_medians(evidence, name) for name in (CONTROL, RELEASED))
    as_well = "does as well" if np.all(control <= released) else "is not all of it"
    pid, lqr = (np.median(evidence[f"{e}, stale-point"]["baseline"].cost) for e in ("pd", "lqr"))
    swaps, settled = (alternation(evidence["pd, stale-point"][name]) for name in (RELEASED, WRITTEN))
    return f"""# Where the quadrotor result comes from

Figures of this run: {settings.seeds} seeds for each controller, the same disturbances for all of them. Each pair of
figures is the median cost with PD primitives, beside PID at {pid:.0f}, and with LQR primitives under an impulse, beside
LQR at {lqr:.0f}; in brackets Cliff's delta against that baseline (negative: cheaper).

**The released gate takes turns.** The scripts evaluate the gradient once, at the previous weights, and relax fully
towards the softmax of it. That is one undamped fixed-point step for each decision, and where the two controllers
disagree it swings from one to the other: the leading primitive changes at {100 * swaps:.0f}% of the steps, at the
optimum at {100 * settled:.0f}%. Two controllers in turns act like their average. It costs
{costs(RELEASED)}; the paper has deltas of -0.14 and -0.34.

**The average {as_well} without any gate.** A fixed 50/50 mixture costs {costs(CONTROL)}.
The optimum of the objective, with the action drawn from it as the paper says, costs {costs(WRITTEN)},
with its mean action {costs("equilibrium, mean")}, and with the grid extended past the
limits of the thrusts, so that no primitive is cut short there, {costs("equilibrium, sample, wide")} for the drawn and
{costs("equilibrium, mean, wide")} for the mean action.
The cost of one step cannot see where a thrust leads: in the Euler model of the drone only the vertical speed and
the pitch rate depend on it.

**The disturbances are not what the text says.** They are forces, and the simulator lets them act where the drone was
when the decision was made; a moving drone then feels a torque that no wind exerts. With the same forces at the centre
of mass the released gate costs {costs(RELEASED, "centre")}.

**What makes the gate useful.** With the cost-to-go of the LQR in place of the cost of one step, the mean action and
eps = {settings.warm_eps:g} it costs {costs(USEFUL)}; with forces at the centre
{costs(USEFUL, "centre")}. {_beaten(settings, evidence)}
"""


def _medians(evidence: Evidence, name: str) -> np.ndarray:
    return np.array([np.median(evidence[f"{e}, stale-point"][name].cost) for e in ("pd", "lqr")])


def _beaten(settings: QuadrotorSettings, evidence: Evidence) -> str:
    """Whether anything is cheaper than LQR where LQR is at its best."""
    rows = table(settings, evidence["lqr, centre"])
    better = [row.name for row in rows if row.against.delta < 0 and row.against.p < LEAST_EVIDENCE]
    if better:
        return f"There the LQR baseline is beaten by {', '.join(better)}."
    return "There the LQR baseline is nearly optimal, and nothing here beats it."


def _only(flights: Mapping[str, Flight], name: str) -> dict[str, Flight]:
    return {"baseline": flights["baseline"], name: flights[name]}
