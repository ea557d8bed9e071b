"""Learning primitives: from an agent's own energy or from observed behaviour, how many there are, rivals, local rules.

`parts` (which numbers of an agent are learned), `objectives` (`learn`), `count` (how many, which is which, degenerate
answers), `markov` (a hidden-Markov mixture, and all mixings compared), `local` (drift by the gate's signals).
"""

from .count import Matching, Number, Numbers, columns, degenerate, how_many, match
from .local import Drift, drift
from .markov import Markov, compare_mixings, hide, learn_markov, predict_markov
from .objectives import Learned, Posed, learn, learn_posed, pose, with_data
from .parts import family_of_agent

__all__ = [
    "Drift", "Learned", "Markov", "Matching", "Number", "Numbers", "Posed", "columns", "compare_mixings", "degenerate",
    "drift", "family_of_agent", "hide", "how_many", "learn", "learn_markov", "learn_posed", "match",
    "pose", "predict_markov", "with_data",
]  # fmt: skip
