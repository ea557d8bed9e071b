"""Measured numbers: for people with four significant digits and true minus signs, and with all of their digits."""

import math
from typing import Any, NamedTuple

from policychord.runs import plain

SIGNIFICANT = 4
MINUS = "\N{MINUS SIGN}"
SPACE = "\N{NO-BREAK SPACE}"
TIMES = "\N{MULTIPLICATION SIGN}"
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


class Quantity(NamedTuple):
    """A measured number. `unit` is "" for pure numbers and "share" for shares, which are written in percent."""

    value: float
    unit: str = ""
    of: int | None = None  # the total, where the value is a count out of it
    interval: tuple[float, float] | None = None  # 95%


def number(value: Any) -> str:
    """A value in short: 0.3, 12,346, 1.887 times a power of ten, yes."""
    if isinstance(value, Quantity):
        return _quantity(value)
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


def _quantity(it: Quantity) -> str:
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
    return f"{digits.replace('-', MINUS)}{SPACE}{TIMES}{SPACE}10{str(power).translate(_RAISED)}"


def _trimmed(digits: str, value: float) -> str:
    """Without zeros at the end where the value ends there; 0.99996 stays 1.000."""
    ends = "." in digits and math.isclose(float(digits), value, rel_tol=1e-9)
    return digits.rstrip("0").rstrip(".") if ends else digits


def _grouped(digits: str, large: bool = True) -> str:
    """Thousands apart from five digits on."""
    return (f"{int(digits):,}" if large and "." not in digits else digits).replace("-", MINUS)
