"""Settings from a file and from options: who wins, and what is said when one of them is wrong."""

import difflib
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

Settled = TypeVar("Settled")

_NUMBERS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "text",
    "tuple": "a list",
}


class Sources(NamedTuple):
    """Where settings came from: names in the settings (`composition.eps`) to options that were given, and the file."""

    options: Mapping[str, str] = {}
    file: Path | None = None


NOWHERE = Sources()


def settle(
    build: Callable[[dict[str, Any]], Settled],
    model: "type[BaseModel]",
    given: Mapping[str, tuple[str, Any]],
    file: Path | None = None,
) -> Settled:
    """Settings from a file and, above it, from options: option -> (its setting, its value or None)."""
    from pydantic import ValidationError

    said = {name: (place, value) for name, (place, value) in given.items() if value is not None}
    changes = from_file(file) if file else {}
    for place, value in said.values():
        _put(changes, place.split("."), value)
    try:
        return build(changes)
    except ValidationError as error:
        sources = Sources({place: name for name, (place, _) in said.items()}, file)
        raise ValueError(in_words(error, model, sources)) from None


def from_file(path: Path) -> dict[str, Any]:
    """What a TOML or JSON file says."""
    kind = "JSON" if path.suffix.lower() == ".json" else "TOML"
    try:
        text = path.read_text(encoding="utf-8")
        values = json.loads(text) if kind == "JSON" else tomllib.loads(text)
    except (json.JSONDecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"--settings {path} is not valid {kind}: {error}.") from None
    if not isinstance(values, dict):
        raise ValueError(f"--settings {path} holds a {type(values).__name__}: write settings as names with values.")
    return values


def in_words(error: "ValidationError", model: "type[BaseModel] | None" = None, sources: Sources = NOWHERE) -> str:
    """What is wrong with settings: where it was said, the value and the remedy."""
    sentences = [_sentence(problem, model, sources) for problem in error.errors()]
    return " ".join(dict.fromkeys(sentences))


def _sentence(problem: Any, model: Any, sources: Sources) -> str:
    kind, value, more = problem["type"], problem["input"], problem.get("ctx", {})
    if kind == "value_error":
        return problem["msg"].removeprefix("Value error, ")
    place = tuple(str(part) for part in problem["loc"])
    if kind == "extra_forbidden":
        return _unknown(place, _fields(model, place[:-1]), sources)
    said = _spoken(place, sources, _shown(value))
    if kind in _NUMBERS:
        words, limit = _NUMBERS[kind]
        return f"{said}: must be {words} {more[limit]:g}."
    if kind == "literal_error":
        return f"{said}: use {more['expected']}."
    if kind in ("model_type", "model_attributes_type"):
        return f"{said}: must be a table with {', '.join(_fields(model, place))}."
    if kind == "missing":
        # pydantic shows what stands around the gap, which is not what is wrong
        return f"{_spoken(place, sources)} is missing: give it a value."
    if (wanted := _KINDS.get(kind.split("_")[0])) is not None:
        return f"{said}: must be {wanted}."
    message = problem["msg"]
    return f"{said}: {message[:1].lower()}{message[1:]}."


def _unknown(place: tuple[str, ...], names: Sequence[str], sources: Sources) -> str:
    close = difflib.get_close_matches(place[-1], names, n=1)
    remedy = f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}." if names else "leave it out."
    return f"{_spoken(place, sources)} is not a setting: {remedy}"


def _spoken(place: tuple[str, ...], sources: Sources, value: str = "") -> str:
    """`--eps -1`, `eps = -1 in own.toml`, or the same without the value."""
    name = ".".join(place)
    if name in sources.options:
        return f"{sources.options[name]} {value}".rstrip()
    said = f"{name} = {value}" if value else name
    return f"{said} in {sources.file.name}" if sources.file else said


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value) if isinstance(value, int) else repr(value)


def _fields(model: Any, place: Sequence[str]) -> list[str]:
    """The names that a model, or one inside it, knows."""
    for part in place:
        field = getattr(model, "model_fields", {}).get(part)
        if field is None:
            return []
        kinds = (field.annotation, *get_args(field.annotation))
        model = next((kind for kind in kinds if hasattr(kind, "model_fields")), None)
    return list(getattr(model, "model_fields", {}))


def _put(values: dict[str, Any], place: Sequence[str], value: Any) -> None:
    for part in place[:-1]:
        inner = values.setdefault(part, {})
        if not isinstance(inner, dict):  # wrong in the file, and the check will say so
            return
        values = inner
    values[place[-1]] = value
