"""A type checker for rooms that load late: functions that name shapes are checked, others are left as they are."""

from beartype import BeartypeConf, beartype

_check = beartype(conf=BeartypeConf(is_pep484_tower=True))  # a whole number will do where a number is asked for


def check(function):
    hints = getattr(function, "__annotations__", {}).values()
    return _check(function) if any("jaxtyping" in f"{hint!r} {hint}" for hint in hints) else function
