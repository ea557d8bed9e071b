"""Names of a package that are loaded when they are asked for: who only solves need not wait for figures or tables."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazily(
    package: str, homes: Mapping[str, Sequence[str]], modules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose names live in the modules `homes`, and of `modules`."""
    home_of = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name in modules:
            return import_module(f".{name}", package)
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f".{home_of[name]}", package), name)
        setattr(sys.modules[package], name, value)  # asked once only
        return value

    def names() -> list[str]:
        return sorted([*home_of, *modules, *(name for name in vars(sys.modules[package]) if name.startswith("__"))])

    return get, names, sorted(home_of)
