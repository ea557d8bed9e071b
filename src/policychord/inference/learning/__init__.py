"""Learning primitives: from an agent's own energy or from observed behaviour, how many there are, rivals, local rules.

`parts` (which numbers of an agent are learned), `objectives` (`learn`), `files` (results so far), `count` (how
many, which is which, degenerate answers), `rivals` (a mixture of experts, a hidden-Markov mixture), `local` (primitives
that drift by what the gate tells them).
"""

from .count import Matching, Number, Numbers, columns, degenerate, how_many, match
from .local import Drift, drift, drift_in_circuit
from .objectives import Learned, Posed, learn, learn_posed, pose, with_data
from .parts import family_of_agent
from .rivals import Markov, compare, hide, learn_markov, predict_markov

__all__ = [
    "Drift",
    "Learned",
    "Markov",
    "Matching",
    "Number",
    "Numbers",
    "Posed",
    "columns",
    "compare",
    "degenerate",
    "drift",
    "drift_in_circuit",
    "family_of_agent",
    "hide",
    "how_many",
    "learn",
    "learn_markov",
    "learn_posed",
    "match",
    "pose",
    "predict_markov",
    "with_data",
]
