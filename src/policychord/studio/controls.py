"""Controls of a room, from the settings that they change: the model says what is allowed and what it means."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel

from ..wording import in_words

__all__ = ["Control", "check_limits", "check_names", "described", "in_words"]


class Control(NamedTuple):
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


def described(models: Sequence[type[BaseModel]], controls: Sequence[Control]) -> list[dict[str, Any]]:
    """What the page builds its controls from; words and choices come from the models."""
    return [{**control._asdict(), **_from_model(models, control)} for control in controls]


def _from_model(models: Sequence[type[BaseModel]], control: Control) -> dict[str, Any]:
    field = next(model.model_fields[control.name] for model in models if control.name in model.model_fields)
    words = field.description or control.label
    words = words[:1].upper() + words[1:]
    if field.annotation is bool:
        return {"kind": "switch", "description": words}
    if get_origin(field.annotation) is Literal:
        return {"kind": "choice", "description": words, "choices": list(get_args(field.annotation))}
    return {"kind": "range", "description": words, "whole": field.annotation is int}


def check_names(controls: Sequence[Control], changes: Mapping[str, Any]) -> None:
    """Refuse what has no control: nothing else can be set from the page."""
    names = [control.name for control in controls]
    for name in changes:
        if name not in names:
            raise ValueError(f"{str(name)[:60]} is not a setting of this room: it has {', '.join(names)}.")


def check_limits(controls: Sequence[Control], settings: BaseModel, names: Sequence[str]) -> None:
    """A study may be told anything that makes sense; a page that answers at once keeps to its sliders' limits."""
    for control in controls:
        value = getattr(settings, control.name, None) if control.name in names else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if not control.low <= value <= control.high:
            limits = f"{control.low:g} to {control.high:g} {control.unit}".strip()
            raise ValueError(f"{control.name} = {value:g}: the studio takes {limits}.")
