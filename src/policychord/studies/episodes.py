"""What a study offers to sweeps: episodes by number, a few figures for each, and the whole of any one of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class Measured(NamedTuple):
    """A batch of episodes: a number for each episode and metric, and the whole of any of them, if wanted."""

    metrics: Mapping[str, np.ndarray]
    dataset: Callable[[Sequence[int]], Any]  # places in the batch -> an xarray.Dataset
    draw: Callable[[int], Any]  # place in the batch -> a figure


class Episodes(NamedTuple):
    """The episodes of a study. `settings(names with values)` checks them; a misspelt name is an error."""

    settings: Callable[..., Any]
    names: tuple[str, ...]  # of all settings
    metrics: Mapping[str, str]  # by name: what it is, with its unit
    run: Callable[[Any, Sequence[int]], Measured]  # (settings, numbers of the episodes)
