"""From behaviour back to parameters: likelihoods, estimates, their uncertainty, groups of people, and recovery.

In layers, each usable alone: `parameters` (names and scales), `likelihoods` (units in chunks), `optimise` (climbs),
`uncertainty` (errors, profiles, verdicts), `validate` (held-out scores), `groups` (empirical Bayes, frequencies of
models). For composed agents: `decisions` (their likelihood and their rivals), `fits` (`fit`), `recovery` and `output`.
"""

from .decisions import Family, Observations, from_dataset, from_trace, observations
from .fits import Fit, Rival, fit, likelihood_of, sentence_of
from .groups import GroupFit, ModelFrequencies, empirical_bayes, model_frequencies
from .likelihoods import Likelihood, likelihood
from .optimise import Optimum, maximise
from .output import (
    describe,
    draw_correlations,
    draw_estimates,
    draw_people,
    draw_recovery,
    draw_rivals,
    draw_weights,
    to_datatree,
)
from .parameters import Normal, Parameter, bounded, positive, real, simplex
from .recovery import Design, Information, Recovery, coverage, information, needed_for, recover
from .uncertainty import Uncertainty, Verdict, verdicts
from .validate import cross_validate, folds_of, paired

__all__ = [
    "Design",
    "Family",
    "Fit",
    "GroupFit",
    "Information",
    "Likelihood",
    "ModelFrequencies",
    "Normal",
    "Observations",
    "Optimum",
    "Parameter",
    "Recovery",
    "Rival",
    "Uncertainty",
    "Verdict",
    "bounded",
    "coverage",
    "cross_validate",
    "describe",
    "draw_correlations",
    "draw_estimates",
    "draw_people",
    "draw_recovery",
    "draw_rivals",
    "draw_weights",
    "empirical_bayes",
    "fit",
    "folds_of",
    "from_dataset",
    "from_trace",
    "information",
    "likelihood",
    "likelihood_of",
    "maximise",
    "model_frequencies",
    "needed_for",
    "observations",
    "paired",
    "positive",
    "real",
    "recover",
    "sentence_of",
    "simplex",
    "to_datatree",
    "verdicts",
]
