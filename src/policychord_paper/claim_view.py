"""A claim as the report shows it: what decides it, which parts hold, its formula, and its numbers as a table."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from .claim import SPACE, TIMES, VERDICTS, JudgedClaim, JudgedCondition, Quantity, Relation, number

FEW = 2  # parts of a rule that are named in the table of verdicts; of more, how many
WIDEST = 5  # columns, up to which measured numbers are a table of several columns,
EMPTY = 1.5  # and so many cells for each number
SIGNS: Mapping[Relation, str] = {"<": "<", "<=": "≤", ">": ">", ">=": "≥"}


class Deciding(NamedTuple):
    """The condition whose limit is nearest to what was measured, among those that could turn the verdict."""

    quantity: str
    measured: Quantity
    condition: JudgedCondition


def deciding(claim: JudgedClaim) -> Deciding | None:
    """What the verdict hangs on; without a smallest change of limits, the first condition of the rule."""
    conditions = {c.quantity: c for part in reversed(claim.parts) for c in reversed(part.conditions)}
    flip = claim.robustness.flip
    name = flip.moves[0].quantity if flip else next(iter(reversed(conditions)), None)
    if name not in conditions or name not in claim.measured:
        return None
    return Deciding(name, claim.measured[name], conditions[name])


def parts_of(claim: JudgedClaim) -> str:
    """Where a rule holds in part, the fewer of the parts that do and do not, by name, or how many."""
    held = [name for name, holds in claim.holds.items() if holds and name]
    failed = [name for name, holds in claim.holds.items() if not holds and name]
    if not held or not failed:
        return ""
    if len(failed) <= FEW:
        return f"not: {'; '.join(failed)}"
    if len(held) <= FEW:
        return f"only: {'; '.join(held)}"
    return f"{len(held)} of {len(claim.holds)} parts hold"


class Since(NamedTuple):
    """How many verdicts are other ones than before the last change of their rule."""

    higher: int
    lower: int
    same: int
    new: int  # nothing judged the statement before


def since(claims: list[JudgedClaim]) -> Since:
    judged = [(VERDICTS.index(before), VERDICTS.index(c.verdict)) for c in claims if (before := c.history[-1].verdict)]
    higher, lower = sum(now < before for before, now in judged), sum(now > before for before, now in judged)
    return Since(higher, lower, len(judged) - higher - lower, len(claims) - len(judged))


class _Table(NamedTuple):
    """Measured numbers with rows and columns."""

    columns: list[str]
    rows: dict[str, list[Quantity | float | None]]


def table_of(measured: Mapping[str, Any]) -> _Table:
    """Numbers named `quantity, of what`, with a column for each quantity and a row for each thing."""
    split = [(*name.partition(", ")[::2], value) for name, value in measured.items()]
    columns = list(dict.fromkeys(quantity for quantity, _, _ in split))
    rows: dict[str, list[Quantity | float | None]] = {}
    for quantity, whose, value in split:
        rows.setdefault(whose, [None] * len(columns))[columns.index(quantity)] = value
    if len(columns) > min(WIDEST, len(rows)) or len(columns) * len(rows) > EMPTY * len(split):
        return _Table([""], {name: [value] for name, value in measured.items()})
    return _Table(columns, rows)


def rest(claim: JudgedClaim) -> dict[str, Quantity]:
    """What was measured besides the quantities of the rule."""
    judged = {condition.quantity for part in claim.parts for condition in part.conditions}
    return {name: value for name, value in claim.measured.items() if name not in judged}


def numbered(claim: JudgedClaim) -> dict[str, int]:
    """The number that a quantity of the rule has in its formula."""
    quantities = dict.fromkeys(condition.quantity for part in claim.parts for condition in part.conditions)
    return {quantity: number for number, quantity in enumerate(quantities, 1)}


def formula(claim: JudgedClaim) -> Markup:
    """When a claim is reproduced: a conjunction of its conditions, in brackets for each part."""
    numbers = numbered(claim)

    def of(condition: JudgedCondition) -> str:
        name = f"<msub><mi>q</mi><mn>{numbers[condition.quantity]}</mn></msub>"
        sign, limit = escape(SIGNS[condition.relation]), limit_text(condition.limit)
        return f"<math><mrow>{name}<mo>{sign}</mo><mn>{limit}</mn></mrow></math>"

    joined = [" ∧ ".join(map(of, part.conditions)) for part in claim.parts]
    return Markup(" ∧ ".join(f"({part})" for part in joined) if len(joined) > 1 else "".join(joined))


def limit_text(value: float) -> str:
    """A limit in short, where a power of ten needs no factor."""
    return number(value).removeprefix(f"1{SPACE}{TIMES}{SPACE}")
