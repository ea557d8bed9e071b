"""Inputs of a page, from the settings that they change: the model says what is allowed and what it means."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from ..wording import in_words
from .wire import LARGEST

__all__ = [
    "Input", "changed", "check_limits", "check_names", "describe_inputs", "differences", "in_page_words", "in_words",
    "inputs_of", "values_of",
]  # fmt: skip

Record = TypeVar("Record", bound=BaseModel)


class Input(NamedTuple):
    """How a setting is shown. Limits are those of a slider, and of what the studio is ready to compute."""

    name: str
    label: str
    group: str
    low: float = 0.0
    high: float = 1.0
    step: float = 0.01
    unit: str = ""
    scale: Literal["linear", "log"] = "linear"
    source: Literal["default", "paper"] = "default"  # whose value it goes back to


def describe_inputs(models: Sequence[type[BaseModel]], inputs: Sequence[Input]) -> list[dict[str, Any]]:
    """What the page builds its inputs from; descriptions and choices come from the models."""
    return [{**control._asdict(), **_from_model(models, control)} for control in inputs]


def _from_model(models: Sequence[type[BaseModel]], control: Input) -> dict[str, Any]:
    field = next(model.model_fields[control.name] for model in models if control.name in model.model_fields)
    text = field.description or control.label
    text = text[:1].upper() + text[1:]
    if field.annotation is str:  # the page has a place of its own for it
        return {"kind": "text", "description": text}
    if field.annotation is bool:
        return {"kind": "switch", "description": text}
    if get_origin(field.annotation) is Literal:
        return {"kind": "choice", "description": text, "choices": list(get_args(field.annotation))}
    return {"kind": "range", "description": text, "whole": field.annotation is int}


def check_names(inputs: Sequence[Input], changes: Mapping[str, Any]) -> None:
    """Refuse what has no input: nothing else can be set from the page."""
    names = [control.name for control in inputs]
    for name in changes:
        if name not in names:
            raise ValueError(f"{str(name)[:60]} is not a setting of this page: it has {', '.join(names)}.")


def check_limits(inputs: Sequence[Input], settings: BaseModel, names: Sequence[str]) -> None:
    """Refuse values outside the limits of the inputs: a study takes more, but the page must answer soon."""
    for control in inputs:
        value = getattr(settings, control.name, None) if control.name in names else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if not control.low <= value <= control.high:
            limits = f"{control.low:g} to {control.high:g} {control.unit}".strip()
            shown = f"{value:g}" if abs(value) <= LARGEST else f"{str(value)[:20]}..."
            raise ValueError(f"{control.name} = {shown}: the studio takes {limits}.")


def changed(record: Record, changes: Mapping[str, Any], inputs: Sequence[Input]) -> Record:
    """The record with those changes that are its own, within the limits of the inputs."""
    own = {name: value for name, value in changes.items() if name in type(record).model_fields}
    try:
        new = type(record)(**{**dict(record), **own})
    except ValidationError as error:
        raise ValueError(in_words(error)) from None
    check_limits(inputs, new, list(own))
    return new


def values_of(inputs: Sequence[Input], *records: BaseModel) -> dict[str, Any]:
    """What the inputs show, from the records that they change."""
    values = {name: value for record in records for name, value in record.model_dump().items()}
    return {control.name: values[control.name] for control in inputs}


def inputs_of(settings: Mapping[str, Any], without: Sequence[str] = ()) -> dict[str, Any]:
    """What a frame says that it was computed from: the page shows it only next to these settings."""
    return {"of": {name: value for name, value in settings.items() if name not in without}}


def in_page_words(text: str, words: Sequence[tuple[str, str]]) -> str:
    """A message of the command for somebody who has inputs instead of options; what is left belongs to the command."""
    for option, name in words:
        text = re.sub(option, name, text)
    return text if "--" not in text else f"{text} Options that begin with -- belong to the command."


def differences(record: Record, standard: Record) -> dict[str, Any]:
    """What a record has other than the standard one."""
    return {name: value for name, value in record.model_dump().items() if value != getattr(standard, name)}
