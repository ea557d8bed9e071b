"""A claim of the paper, the rule that judges it and what was measured."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

Verdict = Literal["reproduced", "partly", "not reproduced"]
VERDICTS: tuple[Verdict, ...] = ("reproduced", "partly", "not reproduced")


class Finding(NamedTuple):
    """What a measurement found: named figures, the most telling first, and whether the rule holds."""

    measured: dict[str, Any]
    verdict: Verdict


class Claim(NamedTuple):
    """One line of the ledger after it was judged."""

    id: str
    statement: str
    paper: str
    reported: str
    measured: dict[str, Any]
    rule: str
    verdict: Verdict


class Entry(NamedTuple):
    """One line of the ledger before: a claim, its place in the paper, the rule fixed beforehand, the measurement."""

    id: str
    statement: str
    paper: str
    rule: str
    measure: Callable[..., Finding]
    reported: str = ""  # the paper's own figure, where it gives one


def reproduced_if(holds: bool) -> Verdict:
    return "reproduced" if holds else "not reproduced"


def judge(entry: Entry, *given) -> Claim:
    """Measure one claim."""
    finding = entry.measure(*given)
    return Claim(entry.id, entry.statement, entry.paper, entry.reported, finding.measured, entry.rule, finding.verdict)
