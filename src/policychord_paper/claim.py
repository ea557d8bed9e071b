"""A claim of the paper: what is measured, the rule that judges it, and the verdict that follows from both.

A rule is data. Each condition compares one measured quantity with a limit, so the limit stands once, the rule's text is
made from it, and the verdict can be recomputed from the measured numbers alone. So can what would change it.
"""

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from policychord.runs import plain

Verdict = Literal["reproduced", "partly", "not reproduced"]
VERDICTS: tuple[Verdict, ...] = ("reproduced", "partly", "not reproduced")
Relation = Literal["<", "<=", ">", ">="]
RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
SIGNIFICANT = 4
MINUS = "\N{MINUS SIGN}"
SPACE = "\N{NO-BREAK SPACE}"
TIMES = "\N{MULTIPLICATION SIGN}"
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
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
Numbers = dict[str, Quantity | float]  # the same while it is put together


class Fewer(NamedTuple):
    """Another limit for a run with less data: it counts if the measured quantity `_quantity` is below `than`."""

    quantity: str
    than: float
    limit: float


class Condition(NamedTuple):
    """`quantity relation limit`. A count out of a total is compared as a share of it; NaN fulfils nothing."""

    quantity: str  # its name among the measured ones
    relation: Relation
    limit: float
    fewer: Fewer | None = None


class _Part(NamedTuple):
    """A part of a rule: it holds if all its conditions do."""

    name: str
    conditions: tuple[Condition, ...]


class Revision(NamedTuple):
    """What stood before a rule that was set after a measurement: the rule, the verdict that it gave, why it changed.

    Where the statement was not judged before, the rule is empty and there is no verdict.
    """

    rule: str
    verdict: Verdict | None
    reason: str


class Rule(NamedTuple):
    """Reproduced if all parts hold, partly if some do, not reproduced if none does.

    A rule without a history was fixed before anything was measured.
    """

    parts: tuple[_Part, ...]
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


class _Move(NamedTuple):
    """A limit that would have to move, past what was measured."""

    quantity: str
    limit: float
    past: float


class _Flip(NamedTuple):
    """The smallest change of limits after which the verdict is another one."""

    verdict: Verdict
    moves: tuple[_Move, ...]
    size: float  # |limit - measured| / the larger of both, of the limit that moves most


class _Robustness(NamedTuple):
    """What would change a verdict, and how often it is the same if seeds or people are resampled."""

    flip: _Flip | None  # None if no change of limits does it, because something measured is not a number
    same: int | None = None  # draws that give this verdict; None where nothing is drawn
    draws: int = 0


class JudgedCondition(NamedTuple):
    """A condition with the limit that applied to this run, and whether what was measured fulfils it."""

    quantity: str
    relation: Relation
    limit: float
    holds: bool


class JudgedPart(NamedTuple):
    """A part of a rule after it was applied."""

    name: str
    conditions: tuple[JudgedCondition, ...]


Expected = Literal["rejected", "accepted"]


class Check(NamedTuple):
    """What a rule says where the answer is known: it must reject a null, and accept an alternative.

    A null is rejected if its verdict is not "reproduced"; an alternative is accepted if it is.
    """

    name: str
    what: str  # how its evidence was made
    expected: Expected
    got: Verdict
    holds: bool  # whether the rule did as expected
    parts: dict[str, bool]  # which parts of the rule hold there
    measured: dict[str, Quantity]  # what the rule compares, there


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
    robustness: _Robustness = _Robustness(None)
    context: str = ""  # of the rule
    parts: tuple[JudgedPart, ...] = ()
    checks: tuple[Check, ...] = ()


def all_of(*conditions: Condition, context: str = "", history: tuple[Revision, ...] = ()) -> Rule:
    """A rule of one part: reproduced if every condition holds, else not."""
    return Rule((_Part("", conditions),), context, history)


def in_parts(parts: Mapping[str, tuple[Condition, ...]], context: str = "", history: tuple[Revision, ...] = ()) -> Rule:
    """A rule of several parts, by name: partly reproduced if only some of them hold."""
    return Rule(tuple(_Part(name, conditions) for name, conditions in parts.items()), context, history)


def revised(rule: str, reason: str, verdict: Verdict | None = "reproduced") -> tuple[Revision, ...]:
    """The history of a rule that was set after a measurement, where one other stood before it."""
    return (Revision(rule, verdict, reason),)


def added(reason: str) -> tuple[Revision, ...]:
    """The history of a claim that the first edition did not have."""
    return revised("", f"new in the second edition, {reason}", None)


def third(reason: str) -> tuple[Revision, ...]:
    """The history of a claim that the first two editions did not have."""
    return revised("", f"new in the third edition, {reason}", None)


def in_readings(rule: Rule, *readings: str) -> Rule:
    """The rule for several readings of the paper: each part once for each of them.

    A reading is what the names of its quantities begin with, as `label` writes them; "" is the first one.
    """

    def read(reading: str, part: _Part) -> _Part:
        conditions = tuple(c._replace(quantity=label(reading, c.quantity)) for c in part.conditions)
        return _Part(label(reading, part.name), conditions)

    return rule._replace(parts=tuple(read(reading, part) for reading in readings for part in rule.parts))


def label(reading: str, name: str) -> str:
    """The name of a quantity or of a part of a rule in a reading."""
    return f"{reading}: {name}" if reading and name else reading or name


def median(values: np.ndarray) -> float:
    """The median; NaN of nothing, which fulfils no condition."""
    return float(np.median(values)) if values.size else np.nan


def count(which: np.ndarray) -> Quantity:
    """How many, out of all."""
    return Quantity(int(which.sum()), of=len(which))


def _value(quantity: Quantity) -> float:
    return quantity.value if quantity.of is None else quantity.value / quantity.of if quantity.of else np.nan


def _limit(condition: Condition, measured: Mapping[str, Quantity]) -> float:
    fewer = condition.fewer
    return fewer.limit if fewer and measured[fewer.quantity].value < fewer.than else condition.limit


def _holds(condition: Condition, measured: Mapping[str, Quantity]) -> bool:
    value = _value(measured[condition.quantity])
    return bool(RELATIONS[condition.relation](value, _limit(condition, measured)))


def _judge(part: _Part, measured: Mapping[str, Quantity]) -> JudgedPart:
    return JudgedPart(
        part.name,
        tuple(
            JudgedCondition(c.quantity, c.relation, _limit(c, measured), _holds(c, measured)) for c in part.conditions
        ),
    )


def _parts_that_hold(rule: Rule, measured: Mapping[str, Quantity]) -> dict[str, bool]:
    """Which parts of a rule hold, by name."""
    return {part.name: all(_holds(condition, measured) for condition in part.conditions) for part in rule.parts}


def _verdict_of(holds: Mapping[str, bool]) -> Verdict:
    """The verdict that follows from the parts that hold."""
    return "reproduced" if all(holds.values()) else "partly" if any(holds.values()) else "not reproduced"


def _nearest_flip(rule: Rule, measured: Mapping[str, Quantity]) -> _Flip | None:
    """The smallest change of limits that changes the verdict, from what was measured alone.

    A part that holds ends with the first of its conditions that fails, one that does not needs all that fail to hold.
    Limits may move together where one alone is not enough.
    """
    holds = _parts_that_hold(rule, measured)
    changed = {part.name: _turn(part, measured, holds[part.name]) for part in rule.parts}
    # lists, in the order of the rule: sets would be in another order in every process, and so would the report
    sides = [[name for name in holds if holds[name] is side] for side in (True, False)]
    flips = []
    for names in [*([name] for name in holds), *sides]:
        after = _verdict_of({name: held is not (name in names) for name, held in holds.items()})
        turns = [changed[name] for name in names]
        if after == _verdict_of(holds) or not names or any(turn is None for turn in turns):
            continue
        together = tuple(dict.fromkeys(move for turn in turns if turn for move in turn))
        flips.append(_Flip(after, together, max(map(_size, together))))
    return min(flips, key=lambda flip: flip.size, default=None)


def _turn(part: _Part, measured: Mapping[str, Quantity], holds: bool) -> tuple[_Move, ...] | None:
    """The limits that turn a part around; None if something measured is not a number."""
    moves = {
        condition: _Move(condition.quantity, _limit(condition, measured), _value(measured[condition.quantity]))
        for condition in part.conditions
    }
    if holds:
        # how many seeds or problems there are (a whole number, out of nothing, without a unit) was chosen, not measured
        chosen = {name for name, q in measured.items() if isinstance(q.value, int) and q.of is None and not q.unit}
        measurements = [move for move in moves.values() if move.quantity not in chosen]
        return (min(measurements, key=_size),) if measurements else None
    failing = tuple(move for condition, move in moves.items() if not _holds(condition, measured))
    return failing if all(np.isfinite(move.past) for move in failing) else None


def _size(move: _Move) -> float:
    return abs(move.past - move.limit) / (max(abs(move.past), abs(move.limit)) or 1.0)


def rule_text(rule: Rule) -> str:
    """The rule as a sentence, made from its conditions."""

    def text(condition: Condition) -> str:
        quantity, relation, limit, fewer = condition
        other = f" ({fewer.limit:g} if {fewer.quantity} < {fewer.than:g})" if fewer else ""
        return f"{quantity} {relation} {limit:g}{other}"

    def of_part(part: _Part) -> str:
        listed = " and ".join(map(text, part.conditions))
        named = all(condition.quantity.startswith(f"{part.name}: ") for condition in part.conditions)
        return f"{part.name}: {listed}" if part.name and not named else listed

    context = f"{rule.context}: " if rule.context else ""
    return context + "; ".join(map(of_part, rule.parts))


def history_text(history: tuple[Revision, ...], verdict: Verdict) -> str:
    """When the rule was set, and what stood before it; `verdict` is what it gives now."""
    if not history:
        return "Rule fixed beforehand."
    revisions = [
        f"{reason} (before: {rule}; verdict {before}, now {verdict})" if rule else reason
        for rule, before, reason in history
    ]
    return f"Set after a measurement: {'; '.join(revisions)}."


def firmness(robustness: _Robustness) -> str:
    """'33 of 50 draws' give this verdict; empty where all do, or nothing was drawn."""
    same, draws = robustness.same, robustness.draws
    return "" if same is None or same == draws else f"{same} of {draws} draws"


def _measure(claim: Claim[S, E], settings: S, evidence: E) -> dict[str, Quantity]:
    return {
        name: value if isinstance(value, Quantity) else Quantity(np.asarray(value).item())
        for name, value in claim.measure(settings, evidence).items()
    }


def check_claim(claim: Claim[S, E], settings: S, evidence: E, name: str, what: str, expected: Expected) -> Check:
    """Apply a claim's rule to the evidence of a world in which it is known whether the claim holds."""
    measured = _measure(claim, settings, evidence)
    parts = _parts_that_hold(claim.rule, measured)
    got = _verdict_of(parts)
    compared = {condition.quantity for part in claim.rule.parts for condition in part.conditions}
    return Check(
        name, what, expected, got, (got == "reproduced") == (expected == "accepted"), parts,
        {quantity: value for quantity, value in measured.items() if quantity in compared},
    )  # fmt: skip


def judge_claim(claim: Claim[S, E], settings: S, evidence: E) -> JudgedClaim:
    """Measure one claim and apply its rule."""
    measured = _measure(claim, settings, evidence)
    holds = _parts_that_hold(claim.rule, measured)
    return JudgedClaim(
        id=claim.id,
        statement=claim.statement,
        paper=claim.paper,
        reported=claim.reported,
        measured=measured,
        rule=rule_text(claim.rule),
        holds=holds,
        history=claim.rule.history,
        verdict=_verdict_of(holds),
        robustness=_Robustness(_nearest_flip(claim.rule, measured)),
        context=claim.rule.context,
        parts=tuple(_judge(part, measured) for part in claim.rule.parts),
    )


def robustness_text(robustness: _Robustness) -> str:
    """What would change a verdict, in a sentence or two."""
    sentences = []
    if robustness.same is not None:
        sentences.append(f"Same verdict in {robustness.same} of {robustness.draws} redraws of seeds or people.")
    if robustness.flip is not None:
        moves = robustness.flip.moves
        listed = " and ".join(f"beyond {move.past:.4g} (not {move.limit:g}) for {move.quantity}" for move in moves[:2])
        more = f", and of {len(moves) - 2} more" if len(moves) > 2 else ""
        limits = "a limit" if len(moves) == 1 else "limits"
        sentences.append(f"The verdict would be '{robustness.flip.verdict}' with {limits} {listed}{more}.")
    return " ".join(sentences)


def number(value: Any) -> str:
    """A value in short: 0.3, 12,346, 1.887 times a power of ten, yes."""
    if isinstance(value, Quantity):
        return _quantity_text(value)
    value = plain(value)
    if value is None or value == [] or value == {}:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return _grouped(f"{value:d}") if abs(value) >= 10_000 else f"{value:d}".replace("-", MINUS)
    if isinstance(value, float):
        return _short(value)
    return ", ".join(map(number, value)) if isinstance(value, list) else str(value)


def _quantity_text(it: Quantity) -> str:
    """7 of 8; 12.3 m (11.8 to 12.9); 87%."""
    if it.of is not None:
        return f"{number(it.value)} of {number(it.of)}"
    scale, unit = (100.0, "%") if it.unit == "share" else (1, f"{SPACE}{it.unit}" if it.unit else "")
    low_high = "" if it.interval is None else " ({} to {})".format(*(number(scale * end) for end in it.interval))
    return f"{number(scale * it.value)}{unit}{low_high}"


def _short(value: float) -> str:
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if value == 0:
        return "0"
    mantissa, _, exponent = f"{value:.{SIGNIFICANT - 1}e}".partition("e")
    power = int(exponent)
    if -3 <= power < 6:
        digits = f"{value:.{max(0, SIGNIFICANT - 1 - power)}f}"
        return _grouped(_trimmed(digits, value), abs(value) >= 9999.5)
    digits = _trimmed(mantissa, value / 10.0**power if power > -300 else float(mantissa))
    return f"{digits.replace('-', MINUS)}{SPACE}{TIMES}{SPACE}{raised(power)}"


def raised(power: int) -> str:
    """A power of ten."""
    return f"10{str(power).translate(_RAISED)}"


def _trimmed(digits: str, value: float) -> str:
    """Without zeros at the end where the value ends there; 0.99996 stays 1.000."""
    ends = "." in digits and math.isclose(float(digits), value, rel_tol=1e-9)
    return digits.rstrip("0").rstrip(".") if ends else digits


def _grouped(digits: str, large: bool = True) -> str:
    """Thousands apart from five digits on."""
    return (f"{int(digits):,}" if large and "." not in digits else digits).replace("-", MINUS)
