"""What a study offers to sweeps: episodes by number, a few figures for each, and the whole of any one of them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args, get_origin

import numpy as np
from pydantic import BaseModel

PLANNED = ("seed", "seeds")  # a plan has its own seed and its own number of episodes


class Measured(NamedTuple):
    """A batch of episodes: a number for each episode and metric, and the whole of any of them, if wanted."""

    metrics: Mapping[str, np.ndarray]
    dataset: Callable[[Sequence[int]], Any]  # places in the batch -> an xarray.Dataset
    draw: Callable[[int], Any]  # place in the batch -> a figure


class EpisodeSetting(NamedTuple):
    """What a sweep may set: a name, what holds if it is not, what it means with its unit, and what it may be."""

    name: str
    default: Any
    meaning: str
    choices: tuple[str, ...] = ()
    varies: bool = True  # a single value; what is not can only be fixed


class Episodes(NamedTuple):
    """The episodes of a study. `settings(names with values)` checks them; a misspelt name is an error."""

    settings: Callable[..., Any]
    known_settings: tuple[EpisodeSetting, ...]
    metrics: Mapping[str, str]  # by name: what it is, with its unit
    run: Callable[[Any, Sequence[int]], Measured]  # (settings, numbers of the episodes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(setting.name for setting in self.known_settings)


def settings_of(
    model: type[BaseModel], own: Mapping[str, Any] = MappingProxyType({}), without: Collection[str] = ()
) -> tuple[EpisodeSetting, ...]:
    """The settings that a model knows, in its own words; `own` are defaults that sweeps have instead of the model's."""
    fields = {name: field for name, field in model.model_fields.items() if name not in without}
    return tuple(
        EpisodeSetting(
            name,
            own.get(name, field.default),
            field.description or "",
            tuple(map(str, get_args(field.annotation))) if get_origin(field.annotation) is Literal else (),
            isinstance(field.default, bool | int | float | str),
        )
        for name, field in fields.items()
    )
