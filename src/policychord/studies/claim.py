"""A claim of the paper, the rule that judges it and what was measured."""

import time
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

Verdict = Literal["reproduced", "partly", "not reproduced"]


class Finding(NamedTuple):
    """What a measurement found: named figures, and whether the rule holds."""

    measured: dict[str, Any]
    verdict: Verdict


class Claim(NamedTuple):
    """One line of the ledger after it was judged."""

    id: str
    statement: str
    paper: str
    measured: dict[str, Any]
    rule: str
    verdict: Verdict
    seconds: float


class Entry(NamedTuple):
    """One line of the ledger before: a claim, its place in the paper, the rule fixed beforehand, the measurement."""

    id: str
    statement: str
    paper: str
    rule: str
    measure: Callable[..., Finding]


def reproduced_if(holds: bool) -> Verdict:
    return "reproduced" if holds else "not reproduced"


def judge(entry: Entry, *given) -> Claim:
    """Measure one claim and time it."""
    began = time.perf_counter()
    finding = entry.measure(*given)
    seconds = time.perf_counter() - began
    return Claim(
        entry.id, entry.statement, entry.paper, finding.measured, entry.rule, finding.verdict, round(seconds, 3)
    )
