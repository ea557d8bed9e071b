"""Settings from a file and from options: who wins, and what is said when one of them is wrong."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..wording import Sources, in_words

if TYPE_CHECKING:
    from pydantic import BaseModel

Settled = TypeVar("Settled")


def merge_settings(
    build: Callable[[dict[str, Any]], Settled],
    model: "type[BaseModel]",
    options: Mapping[str, tuple[str, Any]],
    file: Path | None = None,
) -> Settled:
    """Settings from a file and, above it, from options: option -> (its setting, its value or None)."""
    from pydantic import ValidationError

    chosen = {name: (place, value) for name, (place, value) in options.items() if value is not None}
    changes = _from_file(file) if file else {}
    for place, value in chosen.values():
        _put(changes, place.split("."), value)
    try:
        return build(changes)
    except ValidationError as error:
        sources = Sources({place: name for name, (place, _) in chosen.items()}, file)
        raise ValueError(in_words(error, model, sources)) from None


def _from_file(path: Path) -> dict[str, Any]:
    """What a TOML or JSON file says."""
    from ..runs.store import read_settings

    try:
        return read_settings(path)
    except ValueError as error:
        raise ValueError(f"--settings {error}") from None


def _put(values: dict[str, Any], place: Sequence[str], value: Any) -> None:
    for part in place[:-1]:
        inner = values.setdefault(part, {})
        if not isinstance(inner, dict):  # wrong in the file, and the check will say so
            return
        values = inner
    values[place[-1]] = value
