"""What is wrong with settings, in words: its place, the value, and what may stand there instead."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

__all__ = ["Sources", "cut", "in_words", "nearest"]

LONGEST = 60  # characters of a value, or of a name, that are repeated
LONGEST_SENTENCE = 500
MOST_SENTENCES = 8  # the rest are counted

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
    "list": "a list",
    "dict": "a table of names with values",
}
_LENGTHS = {"too_short": ("at least", "min_length"), "too_long": ("at most", "max_length")}


class Sources(NamedTuple):
    """Where settings came from: names in the settings (`composition.eps`) to options that were given, and the file."""

    options: Mapping[str, str] = {}
    file: Path | None = None


NOWHERE = Sources()


def in_words(
    error: "ValidationError",
    model: "type[BaseModel] | None" = None,
    sources: Sources = NOWHERE,
    part_of: str = "a setting",
) -> str:
    """Everything that is wrong, a sentence each. The model knows names to suggest; `part_of` says what a name is."""
    problems = error.errors(include_url=False)
    sentences = dict.fromkeys(cut(_sentence(problem, model, sources, part_of), LONGEST_SENTENCE)
                         for problem in problems[:MOST_SENTENCES])  # fmt: skip
    left = len(problems) - MOST_SENTENCES
    return " ".join([*sentences, *([f"And {left:,} more."] if left > 0 else [])])


def nearest(name: str, names: Sequence[str]) -> str:
    """The remedy for an unknown name."""
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}." if names else "leave it out."


def _sentence(problem: Any, model: Any, sources: Sources, part_of: str) -> str:
    kind, value, more = problem["type"], problem["input"], problem.get("ctx", {})
    if kind == "value_error":  # raised by settings themselves, which name what they mean
        message = problem["msg"].removeprefix("Value error, ")
        return message if message.endswith((".", "?")) else f"{message}."
    place = tuple(cut(str(part)) for part in problem["loc"])
    if kind == "extra_forbidden":
        return f"{_spoken(place, sources)} is not {part_of}: {nearest(place[-1], _fields(model, place[:-1]))}"
    if kind == "missing":
        # pydantic shows what stands around the gap, which is not what is wrong
        return f"{_spoken(place, sources)} is missing: give it a value."
    return f"{_spoken(place, sources, _shown(value))}: {_remedy(kind, problem['msg'], more, _fields(model, place))}."


def _remedy(kind: str, message: str, more: Mapping[str, Any], fields: Sequence[str]) -> str:
    if kind in _NUMBERS:
        words, limit = _NUMBERS[kind]
        return f"must be {words} {more[limit]:g}"
    if kind in _LENGTHS:
        words, limit = _LENGTHS[kind]
        return f"must have {words} {more[limit]} {'entry' if more[limit] == 1 else 'entries'}"
    if kind == "literal_error":
        return f"use {more['expected']}"
    if kind in ("model_type", "model_attributes_type"):
        return f"must be a table with {', '.join(fields)}" if fields else "must be a table of names with values"
    if (wanted := _KINDS.get(kind.split("_")[0])) is not None:
        return f"must be {wanted}"
    return f"{message[:1].lower()}{message[1:]}".rstrip(".")


def _spoken(place: tuple[str, ...], sources: Sources, value: str = "") -> str:
    """`--eps -1`, `eps = -1 in own.toml`, or the same without the value."""
    name = ".".join(place)
    if name in sources.options:
        return f"{sources.options[name]} {value}".rstrip()
    setting = f"{name} = {value}" if value else name
    return f"{setting} in {sources.file.name}" if sources.file else setting


def _shown(value: Any) -> str:
    words = f"{value:g}" if isinstance(value, float) else str(value) if isinstance(value, int) else repr(value)
    return cut(words)


def cut(text: str, longest: int = LONGEST) -> str:
    """Text of a user, fit for a sentence."""
    return text if len(text) <= longest else f"{text[:longest]}..."


def _fields(model: Any, place: Sequence[str]) -> list[str]:
    """The names that a model, or one inside it, knows."""
    parts = iter(place)
    for part in parts:
        field = getattr(model, "model_fields", {}).get(part)
        if field is None:
            return []
        if get_origin(field.annotation) is dict:  # of models, each under a name of its own
            next(parts, None)
        model = _model_in(field.annotation)
    return list(getattr(model, "model_fields", {}))


def _model_in(annotation: Any) -> Any:
    """The model that a type is, or holds."""
    if hasattr(annotation, "model_fields"):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)
