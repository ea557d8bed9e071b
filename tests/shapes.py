"""A type checker for packages that load late: it checks arguments and results with a shape, nothing else."""

from beartype import beartype


def check(function):
    hints = getattr(function, "__annotations__", {})
    function.__annotations__ = {name: hint for name, hint in hints.items() if "jaxtyping" in f"{hint!r} {hint}"}
    return beartype(function) if function.__annotations__ else function
