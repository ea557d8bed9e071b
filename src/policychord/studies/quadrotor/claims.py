"""Claims Q1 to Q5, each judged for the paper's released gate and for the optimum that its theory defines."""

from collections.abc import Mapping

import numpy as np

from ...stats.effect_size import Spread, spread
from ..claim import Entry, Finding, Verdict
from ..study import Evidence
from .metrics import Row, recovery, table
from .settings import QuadrotorSettings
from .simulate import Flight

# Both are "our model" of the paper: what its scripts compute, and what its text defines.
RELEASED, WRITTEN = "one-step gate", "equilibrium, sample"
CONTROL, USEFUL = "fixed 50/50", "cost-to-go, warm"
SHOWN = (RELEASED, WRITTEN, "equilibrium, mean", "equilibrium, mean, wide", CONTROL, USEFUL)
LEAST_EVIDENCE = 0.05  # a p-value above it is no difference


def _verdict(released: bool, written: bool) -> Verdict:
    if released and written:
        return "reproduced"
    return "partly" if released or written else "not reproduced"


def _rows(settings: QuadrotorSettings, flights: Mapping[str, Flight]) -> dict[str, Row]:
    return {row.name: row for row in table(settings, {name: flights[name] for name in ("baseline", *SHOWN)})}


def _against(rows: dict[str, Row], name: str) -> str:
    effect = rows[name].against
    return f"{effect.delta:+.2f} [{effect.low:+.2f}, {effect.high:+.2f}], p {effect.p:.1g}"


def _costs(flights: Mapping[str, Flight]) -> dict[str, Spread]:
    return {name: spread(flight.cost) for name, flight in flights.items()}


def composing_tracks(settings: QuadrotorSettings, evidence: Evidence) -> Finding:
    costs, centre = _costs(evidence["pd, stale-point"]), _costs(evidence["pd, centre"])
    best = min(costs["stabilise"].median, costs["track"].median)
    measured = {
        "seeds": settings.seeds,
        "median cost, primitives": f"{costs['stabilise'].median:.0f} and {costs['track'].median:.0f}",
        **{f"median cost, {name}": costs[name].median for name in SHOWN},
        "centre: primitives": f"{centre['stabilise'].median:.0f} and {centre['track'].median:.0f}",
        f"centre: {RELEASED}": centre[RELEASED].median,
        f"centre: {CONTROL}": centre[CONTROL].median,
    }
    return Finding(measured, _verdict(costs[RELEASED].median < best, costs[WRITTEN].median < best))


def cheaper_than_pid(settings: QuadrotorSettings, evidence: Evidence) -> Finding:
    rows, centre = (_rows(settings, evidence[f"pd, {world}"]) for world in ("stale-point", "centre"))
    measured = _deltas(rows, centre) | {"median cost, PID": rows["baseline"].cost.median}
    return Finding(measured, _difference(rows[RELEASED], rows[WRITTEN]))


def less_variable(settings: QuadrotorSettings, evidence: Evidence) -> Finding:
    costs, centre = _costs(evidence["pd, stale-point"]), _costs(evidence["pd, centre"])
    pid = costs["baseline"].range
    measured = {
        "inter-quartile range, PID": pid,
        **{name: costs[name].range for name in SHOWN},
        "centre: PID": centre["baseline"].range,
        f"centre: {RELEASED}": centre[RELEASED].range,
        f"centre: {CONTROL}": centre[CONTROL].range,
    }
    return Finding(measured, _verdict(costs[RELEASED].range < pid, costs[WRITTEN].range < pid))


def cheaper_than_lqr(settings: QuadrotorSettings, evidence: Evidence) -> Finding:
    rows, centre = (_rows(settings, evidence[f"lqr, {world}"]) for world in ("stale-point", "centre"))
    costs = _costs(evidence["lqr, stale-point"])
    best = min(costs["stabilise"].median, costs["track"].median)
    medians = {f"median cost, {n}": costs[n].median for n in ("baseline", "stabilise", "track", RELEASED, WRITTEN)}
    below = (costs[RELEASED].median < best, costs[WRITTEN].median < best)
    return Finding(_deltas(rows, centre) | medians, _difference(rows[RELEASED], rows[WRITTEN], below))


def recovers_faster(settings: QuadrotorSettings, evidence: Evidence) -> Finding:
    measured, holds = {}, []
    for world in ("stale-point", "centre"):
        found = {n: recovery(settings, f) for n, f in evidence[f"lqr, {world}"].items()}
        for name in ("baseline", RELEASED, WRITTEN, CONTROL, USEFUL):
            time, error = float(np.median(found[name].time)), float(np.median(found[name].error))
            back = f"{time:.2f} s" if np.isfinite(time) else "not in the episode"
            measured[f"{world}: {name}"] = f"back {back}, error {error:.2f} m s"
        if world == "stale-point":
            holds = [_faster(found[name], found["baseline"]) for name in (RELEASED, WRITTEN)]
    return Finding(measured, _verdict(*holds))


def _deltas(rows: dict[str, Row], centre: dict[str, Row]) -> dict[str, str]:
    return {f"delta, {name}": _against(rows, name) for name in SHOWN} | {
        f"centre: delta, {name}": _against(centre, name) for name in SHOWN
    }


def _cheaper(row: Row) -> bool:
    return row.against.delta < 0 and row.against.p < LEAST_EVIDENCE


def _difference(released: Row, written: Row, also: tuple[bool, bool] = (True, True)) -> Verdict:
    """As `_verdict`, but a delta of the right sign is not refuted by too few seeds."""
    verdict = _verdict(_cheaper(released) and also[0], _cheaper(written) and also[1])
    if verdict == "not reproduced" and released.against.delta < 0 and also[0]:
        return "partly"
    return verdict


def _faster(composed, baseline) -> bool:
    quicker = np.median(composed.time) < np.median(baseline.time)
    return bool(quicker and np.median(composed.error) < np.median(baseline.error))


_BOTH = "; reproduced if it holds for the released gate and for the optimum as written, partly if for one of them"
LEDGER = (
    Entry("Q1", "composing two insufficient PD controllers tracks the lemniscate", "Fig. 5b",
          "composed median cost below both primitives" + _BOTH, composing_tracks),
    Entry("Q2", "lower median cost than PID (delta = -0.14, p < 1e-7, 1000 seeds)", "Fig. 5c",
          "delta < 0 and Mann-Whitney p < 0.05" + _BOTH + ", or if the released gate has the sign but not the p",
          cheaper_than_pid),
    Entry("Q3", "less variable than PID", "Fig. 5c",
          "smaller inter-quartile range" + _BOTH, less_variable),
    Entry("Q4", "LQR pair under an impulse: below both primitives and the LQR baseline (delta = -0.34, p < 1e-38)",
          "Fig. S7b", "as Q2, and median cost below both primitives" + _BOTH, cheaper_than_lqr),
    Entry("Q5", "recovers faster from the impulse", "Fig. S7a",
          "lower median time to return within 0.25 m, and lower median error over the next 2 s" + _BOTH,
          recovers_faster),
)  # fmt: skip
