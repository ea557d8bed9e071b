"""Which trials form a block, and the place of each in it: light, because a table is read in a process without JAX."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from .data import Choices
    from .learners import Trials


class Places(NamedTuple):
    """Where each trial stands among the blocks of people."""

    block: np.ndarray  # (trials)
    place: np.ndarray  # (trials)
    first: np.ndarray  # (blocks) its first trial

    def spread(self, values: Any, fill: float = 0) -> np.ndarray:
        """From trials to (blocks, longest block, ...)."""
        values = np.asarray(values)
        table = np.full((len(self.first), self.place.max() + 1, *values.shape[1:]), fill, dtype=values.dtype)
        table[self.block, self.place] = values
        return table


def places_of(trials: "Trials | Choices") -> Places:
    """The consecutive trials of one person and one block are a block."""
    new = np.ones(len(trials.choice), dtype=bool)
    new[1:] = (trials.subject[1:] != trials.subject[:-1]) | (trials.block[1:] != trials.block[:-1])
    block, first = np.cumsum(new) - 1, np.flatnonzero(new)
    return Places(block, np.arange(len(block)) - first[block], first)
