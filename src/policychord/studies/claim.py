"""A claim of the paper: what is measured, the rule that judges it, and the verdict that follows from both.

A rule is data. Each condition compares one measured quantity with a limit, so the limit stands once, the rule's text is
made from it, and the verdict can be recomputed from the measured numbers alone.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np

Verdict = Literal["reproduced", "partly", "not reproduced"]
VERDICTS: tuple[Verdict, ...] = ("reproduced", "partly", "not reproduced")
Relation = Literal["<", "<=", ">", ">="]
RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
S = TypeVar("S")  # settings of a study
E = TypeVar("E")  # its evidence


class Quantity(NamedTuple):
    """A measured number. `unit` is "" for pure numbers and "share" for shares, which are written in percent."""

    value: float
    unit: str = ""
    of: int | None = None  # the total, where the value is a count out of it
    interval: tuple[float, float] | None = None  # 95%


# By name, the most telling first; a bare number has no unit.
Measured = Mapping[str, Quantity | float]


class Condition(NamedTuple):
    """`quantity relation limit`. A count out of a total is compared as a share of it; NaN fulfils nothing."""

    quantity: str  # its name among the measured ones
    relation: Relation
    limit: float


class Part(NamedTuple):
    """A part of a rule: it holds if all its conditions do."""

    name: str
    conditions: tuple[Condition, ...]


class Revision(NamedTuple):
    """A rule that was replaced after a measurement, the verdict that it gave, and why it was replaced."""

    rule: str
    verdict: Verdict
    reason: str


class Rule(NamedTuple):
    """Reproduced if all parts hold, partly if some do, not reproduced if none does."""

    parts: tuple[Part, ...]
    context: str = ""  # what the quantities are taken over, where their names do not say it
    history: tuple[Revision, ...] = ()


class Claim(NamedTuple, Generic[S, E]):
    """A statement of the paper, its place there, the rule and the measurement."""

    id: str
    statement: str
    paper: str
    rule: Rule
    measure: Callable[[S, E], Measured]
    reported: str = ""  # the paper's own number, where it gives one


class JudgedClaim(NamedTuple):
    """A claim after it was measured."""

    id: str
    statement: str
    paper: str
    reported: str
    measured: dict[str, Quantity]
    rule: str
    holds: dict[str, bool]  # by part of the rule
    history: tuple[Revision, ...]
    verdict: Verdict


def all_of(*conditions: Condition, context: str = "", history: tuple[Revision, ...] = ()) -> Rule:
    """A rule of one part: reproduced if every condition holds, else not."""
    return Rule((Part("", conditions),), context, history)


def in_parts(parts: Mapping[str, tuple[Condition, ...]], context: str = "", history: tuple[Revision, ...] = ()) -> Rule:
    """A rule of several parts, by name: partly reproduced if only some of them hold."""
    return Rule(tuple(Part(name, conditions) for name, conditions in parts.items()), context, history)


def quantity(value: Any) -> Quantity:
    """A number as a quantity without a unit."""
    return value if isinstance(value, Quantity) else Quantity(np.asarray(value).item())


def check(rule: Rule, measured: Mapping[str, Quantity]) -> dict[str, bool]:
    """Which parts of a rule hold, by name."""

    def holds(condition: Condition) -> bool:
        found = measured[condition.quantity]
        value = found.value if found.of is None else found.value / found.of
        return bool(RELATIONS[condition.relation](value, condition.limit))

    return {part.name: all(map(holds, part.conditions)) for part in rule.parts}


def verdict_of(holds: Mapping[str, bool]) -> Verdict:
    """The verdict that follows from the parts that hold."""
    return "reproduced" if all(holds.values()) else "partly" if any(holds.values()) else "not reproduced"


def rule_text(rule: Rule) -> str:
    """The rule as a sentence, made from its conditions."""

    def text(part: Part) -> str:
        listed = " and ".join(f"{c.quantity} {c.relation} {c.limit:g}" for c in part.conditions)
        return f"{part.name}: {listed}" if part.name else listed

    context = f"{rule.context}: " if rule.context else ""
    return context + "; ".join(map(text, rule.parts))


def judge(claim: Claim[S, E], settings: S, evidence: E) -> JudgedClaim:
    """Measure one claim and apply its rule."""
    measured = {name: quantity(value) for name, value in claim.measure(settings, evidence).items()}
    holds = check(claim.rule, measured)
    return JudgedClaim(
        claim.id, claim.statement, claim.paper, claim.reported, measured, rule_text(claim.rule), holds,
        claim.rule.history, verdict_of(holds),
    )  # fmt: skip
