"""Claims Q1 to Q5, each judged for the paper's released gate and for the optimum that its theory defines."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...stats.effect_size import Spread, spread
from ..claim import Entry, Finding, Verdict
from ..study import Evidence
from .metrics import Row, recovery, table
from .plan import flights_at
from .settings import QuadrotorSettings
from .simulate import Flight

# Both are "our model" of the paper: what its scripts compute, and what its text defines.
RELEASED, WRITTEN = "one-step gate", "equilibrium, sample"
CONTROL, USEFUL = "fixed 50/50", "cost-to-go, warm"
OTHERS = ("equilibrium, mean", "equilibrium, mean, wide", CONTROL, USEFUL)
SHOWN = (RELEASED, WRITTEN, *OTHERS)
LEAST_EVIDENCE = 0.05  # a p-value above it is no difference
Measured = dict[str, Any]


def _verdict(released: bool, written: bool) -> Verdict:
    if released and written:
        return "reproduced"
    return "partly" if released or written else "not reproduced"


def _rows(settings: QuadrotorSettings, flights: Mapping[str, Flight]) -> dict[str, Row]:
    return {row.name: row for row in table(settings, {name: flights[name] for name in ("baseline", *SHOWN)})}


def _costs(flights: Mapping[str, Flight]) -> dict[str, Spread]:
    return {name: spread(flight.cost) for name, flight in flights.items()}


def _both_worlds(settings: QuadrotorSettings, evidence: Evidence, experiment: str) -> list[dict[str, Flight]]:
    return [flights_at(settings, evidence, experiment, world) for world in ("stale-point", "centre")]


def composing_tracks(settings: QuadrotorSettings, evidence: Evidence) -> Finding:
    here, there = _both_worlds(settings, evidence, "pd")
    costs, centre = _costs(here), _costs(there)
    best = min(costs["stabilise"].median, costs["track"].median)
    first = (RELEASED, "stabilise", "track", WRITTEN, *OTHERS)
    measured: Measured = {f"median cost, {name}": costs[name].median for name in first}
    measured |= {f"centre: median cost, {name}": centre[name].median for name in first[:4]}
    return Finding(
        measured | _seeds(here, there), _verdict(costs[RELEASED].median < best, costs[WRITTEN].median < best)
    )


def cheaper_than_pid(settings: QuadrotorSettings, evidence: Evidence) -> Finding:
    here, there = _both_worlds(settings, evidence, "pd")
    rows, centre = _rows(settings, here), _rows(settings, there)
    measured = _deltas(rows, centre) | {"median cost, PID": rows["baseline"].cost.median} | _seeds(here, there)
    return Finding(measured, _difference(rows[RELEASED], rows[WRITTEN]))


def less_variable(settings: QuadrotorSettings, evidence: Evidence) -> Finding:
    here, there = _both_worlds(settings, evidence, "pd")
    costs, centre = _costs(here), _costs(there)
    named = {RELEASED: RELEASED, "baseline": "PID", WRITTEN: WRITTEN} | {name: name for name in OTHERS}
    measured: Measured = {f"inter-quartile range, {label}": costs[name].range for name, label in named.items()}
    measured |= {f"centre: inter-quartile range, {label}": centre[name].range for name, label in named.items()}
    pid = costs["baseline"].range
    return Finding(measured | _seeds(here, there), _verdict(costs[RELEASED].range < pid, costs[WRITTEN].range < pid))


def cheaper_than_lqr(settings: QuadrotorSettings, evidence: Evidence) -> Finding:
    here, there = _both_worlds(settings, evidence, "lqr")
    rows, centre, costs = _rows(settings, here), _rows(settings, there), _costs(here)
    best = min(costs["stabilise"].median, costs["track"].median)
    medians: Measured = {f"median cost, {n}": costs[n].median for n in ("stabilise", "track", RELEASED, WRITTEN)}
    medians |= {"median cost, LQR": costs["baseline"].median}
    below = (costs[RELEASED].median < best, costs[WRITTEN].median < best)
    measured = _deltas(rows, centre) | medians | _seeds(here, there)
    return Finding(measured, _difference(rows[RELEASED], rows[WRITTEN], below))


def recovers_faster(settings: QuadrotorSettings, evidence: Evidence) -> Finding:
    here, there = _both_worlds(settings, evidence, "lqr")
    named = {RELEASED: RELEASED, "baseline": "LQR", WRITTEN: WRITTEN, CONTROL: CONTROL, USEFUL: USEFUL}
    found, centre = ({name: recovery(settings, flights[name]) for name in named} for flights in (here, there))
    measured: Measured = {}
    for words, backs in (("", found), ("centre: ", centre)):
        measured |= {f"{words}seconds until back, {label}": _back(backs[n].time) for n, label in named.items()}
        measured |= {f"{words}error (m s), {label}": float(np.median(backs[n].error)) for n, label in named.items()}
    holds = (_faster(found[name], found["baseline"]) for name in (RELEASED, WRITTEN))
    return Finding(measured | _seeds(here, there), _verdict(*holds))


def _back(times: np.ndarray) -> float | str:
    middle = float(np.median(times))
    return middle if np.isfinite(middle) else "not in the episode"


def _seeds(here: Mapping[str, Flight], there: Mapping[str, Flight]) -> Measured:
    return {"seeds": len(here["baseline"].cost), "centre: seeds": len(there["baseline"].cost)}


def _deltas(rows: dict[str, Row], centre: dict[str, Row]) -> Measured:
    """Both readings of the paper first, then what they are to be compared with."""
    measured: Measured = {}
    for words, these in (("", rows), ("centre: ", centre)):
        for name in (RELEASED, WRITTEN):
            measured[f"{words}delta, {name}"] = these[name].against.delta
            measured[f"{words}p, {name}"] = these[name].against.p
            measured[f"{words}paired p, {name}"] = these[name].paired_p
        measured |= {f"{words}delta, {name}": these[name].against.delta for name in OTHERS}
        intervals = {name: these[name].against for name in SHOWN}
        measured |= {f"{words}95% interval, {n}": f"{e.low:+.2f} to {e.high:+.2f}" for n, e in intervals.items()}
    return measured


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


_BOTH = "; reproduced if for both gates, partly if for one"  # the lead says which
LEDGER = (
    Entry("Q1", "composing two PD controllers, each insufficient alone, tracks the figure of eight", "Fig. 5b",
          "composed median cost below both primitives" + _BOTH, composing_tracks,
          "no number given: one flight in Fig. 5b, costs in Fig. 5c"),
    Entry("Q2", "the composed PD pair has a lower median cost than PID", "Fig. 5c",
          "delta < 0 and Mann-Whitney p < 0.05" + _BOTH + ", or if the released gate has the sign but not the p",
          cheaper_than_pid, "delta = -0.14, p < 1e-7 (1000 seeds)"),
    Entry("Q3", "the composed PD pair varies less in cost than PID", "Fig. 5c",
          "smaller inter-quartile range" + _BOTH, less_variable,
          "no number given: the boxes of Fig. 5c"),
    Entry("Q4", "the composed LQR pair, pushed by an impulse, costs less than both its primitives and the LQR baseline",
          "Fig. S7b", "as Q2, and median cost below both primitives" + _BOTH, cheaper_than_lqr,
          "delta = -0.34, p < 1e-38 (1000 seeds)"),
    Entry("Q5", "the composed LQR pair recovers faster from the impulse than LQR", "Fig. S7a",
          "lower median time to return within 0.25 m, and lower median error over the next 2 s" + _BOTH,
          recovers_faster, "no number given: one flight in Fig. S7a"),
)  # fmt: skip
