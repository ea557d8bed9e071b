"""How values are written: as JSON for programs, durations for people."""

import math
from collections.abc import Mapping
from typing import Any

SPACE = "\N{NO-BREAK SPACE}"


def plain(value: Any, finite: bool = False) -> Any:
    """A value as JSON has it: records and settings become objects, arrays lists, all else text. With `finite`, numbers
    that JSON has no word for become null.
    """
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif hasattr(value, "model_dump"):
        value = value.model_dump()
    elif hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain(part, finite) for name, part in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(part, finite) for part in value]
    if finite and isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def duration(seconds: float) -> str:
    """0.4 s, 12 s, 2 min 41 s, 1 h 5 min."""
    if not math.isfinite(seconds) or seconds < 0:
        return "unknown"
    if seconds < 9.95:
        return f"{seconds:.1f}{SPACE}s"
    whole = round(seconds)
    hours, minutes, left = whole // 3600, whole % 3600 // 60, whole % 60
    if hours:
        return f"{hours}{SPACE}h {minutes}{SPACE}min"
    return f"{minutes}{SPACE}min {left}{SPACE}s" if minutes else f"{left}{SPACE}s"
