"""Which arms were on offer: a list in each row, a left and a right arm, or a pair of stimuli."""

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from .tables import MISSING, Problem, Table, printable, refuse

SIDES = {"left": "right", "l": "r", "first": "second"}  # words for a left arm, and for the right one then
ARMS = "arms"  # in place of sides: the choice names the arm itself


def name_arms(
    table: Table, there: pd.Series, sides: tuple[str, ...], problems: list[Problem], said: list[str]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Cells in which the choice names an arm and `offered` the arms that could be taken, and all arms; () if no sets.

    Trials that are `there` were not missed. Where the choice is a side, `sides` says what it calls left and right (or
    first and second), in this order.
    """
    cells = table.cells
    both = None if "offered" in cells else _both(cells, table.names)
    if both is None:
        if sides:
            problems.append(Problem("--sides belongs to columns left and right, or pair: name them with --columns"))
        return cells, ()
    first, second = both["first"], both["second"]
    choice = cells["choice"]
    arms = tuple(sorted(set(first) | set(second), key=lambda name: (len(name), name) if name.isdigit() else (99, name)))
    theirs = "the pair" if "pair" in cells else "left and right"
    itself = ((choice == first) | (choice == second))[there]
    codes = sorted(choice[there].str.lower().unique())
    found, why = sides, ""
    if not sides and itself.all() and not (set(codes) == set(arms) and len(arms) == 2):
        found = (ARMS,)
    elif not sides:
        found, why = _sides(codes, "pair" in cells)
    if why:
        problems.append(Problem(f"choice has {printable(', '.join(codes), 60)} and {theirs}: {why}"))
        return cells, ()
    if found != (ARMS,):
        left, right = (choice.str.lower() == word.lower() for word in found)
        choice = choice.mask(left, first).mask(right, second)
        said.append(f"The choice is a side: {found[0]} is the first of {theirs}, {found[1]} the second one (--sides "
                    f"{found[1]},{found[0]} if not).")  # fmt: skip
    else:
        said.append(f"The choice names one of the two arms of {theirs}.")
    return cells.assign(choice=choice, offered=first + "|" + second), arms


def _sides(codes: list[str], pair: bool) -> tuple[tuple[str, ...], str]:
    """What left and right seem to be called, or why they must be named."""
    for left, right in SIDES.items():
        if codes in ([left], sorted([left, right])):
            return (left, right), ""
    if codes == ["0", "1"] and not pair:
        return ("0", "1"), ""
    if codes == ["0", "1"]:
        return (), ("which of them is the first of the pair? --sides 1,0 if 1 is (as in hBayesDM), --sides 0,1 if 0 is")
    if codes == ["1", "2"]:
        return (), "--sides 1,2 if 1 is the left or first arm, --sides arms if it names the arm"
    return (), "name what stands for the first and the second arm by --sides, or what a missed trial is by --missed"


def _both(cells: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame | None:
    """The two arms on offer in every row, (first, second); None if the table does not say."""
    if {"left", "right"} <= set(cells):
        return pd.DataFrame({"first": cells["left"], "second": cells["right"]})
    if "pair" not in cells:
        return None
    parts = [_split(text) for text in cells["pair"]]
    digits = cells["pair"].str.fullmatch(r"\d\d").all()
    if any(len(part) != 2 or part[0] == part[1] for part in parts) or (names["pair"].lower() == "type" and not digits):
        return None
    return pd.DataFrame(parts, columns=["first", "second"], index=cells.index)


def _split(text: str) -> list[str]:
    """`12`, `A|B`, `left-right` as two names."""
    return list(text) if len(text) == 2 else [part for part in re.split(r"[|/ ;,+&_-]+", text) if part]


def offered_arms(
    cells: pd.DataFrame, arms: tuple[str, ...], choice: pd.Series, problems: list[Problem]
) -> np.ndarray | None:
    """(rows, arms): cells such as `1|3` or `left right` name the arms that could be taken; an empty cell: all."""
    if "offered" not in cells:
        return None
    column = cells["offered"]
    offered = np.ones((len(cells), len(arms)), dtype=bool)
    odd = pd.Series(False, index=cells.index)
    for row, (text, taken) in enumerate(zip(column, choice, strict=True)):
        if text.lower() not in MISSING:
            names = [part for part in re.split(r"\|" if "|" in text else r"[/ ;,+&]+", text) if part]
            offered[row] = [arm in names for arm in arms]
            odd.iloc[row] = bool(set(names) - set(arms)) or (taken >= 0 and not offered[row, taken])
    refuse(column, problems, {"offered must name arms, that of the choice among them, such as 1|3": odd})
    return None if offered.all() else offered
