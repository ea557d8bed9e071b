"""The evidence of the bandit study: what its experiments found, by experiment and link."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ...choices.compare import OURS, Analysis, Rivals, weights_by_trial
from ...stats.glm import Link
from .experiments import CrossValidation, Gain, Recovery, Rounding, Sweep
from .settings import EXPERIMENTS, BanditSettings


class LinkEvidence(NamedTuple):
    """One experiment, with one link from utilities to probabilities."""

    fit: Analysis
    rivals: Rivals
    cross_validation: CrossValidation
    temperature: Sweep
    gain: Gain


class ExperimentEvidence(NamedTuple):
    """One experiment. What does not depend on the link was done with the probit."""

    probit: LinkEvidence
    logit: LinkEvidence
    as_released: CrossValidation  # the cross-validation as the released script reads
    rounding: Rounding
    recovery: Recovery


class Evidence(NamedTuple):
    """Both experiments."""

    first: ExperimentEvidence
    second: ExperimentEvidence


def gather(settings: BanditSettings, results: Mapping[str, Any]) -> Evidence:
    """The evidence from the results of the steps."""

    def of_link(e: str, link: Link) -> LinkEvidence:
        steps = ("fit", "rivals", "cross-validation", "temperature", "rare choices")
        return LinkEvidence(*(results[f"{step} {e} {link}"] for step in steps))

    def of_experiment(e: str) -> ExperimentEvidence:
        steps = ("cross-validation as released", "rounding", "recovery")
        return ExperimentEvidence(
            of_link(e, "probit"), of_link(e, "logit"), *(results[f"{step} {e}"] for step in steps)
        )

    return Evidence(*map(of_experiment, EXPERIMENTS))


def by_experiment(evidence: Evidence, link: Link = "probit") -> dict[str, LinkEvidence]:
    """What was found with one link, by the number of the experiment."""
    return {e: found.logit if link == "logit" else found.probit for e, found in zip(EXPERIMENTS, evidence, strict=True)}


def lead_over_hybrid(found: LinkEvidence) -> float:
    """PXP of the composed model against the Hybrid."""
    return found.fit.against_hybrid.pxp(OURS)


def mean_weights(found: LinkEvidence) -> np.ndarray:
    """Mean weights by trial of a block, (trials, primitives); at least three trials, unknown ones are NaN."""
    _, mean = weights_by_trial(found.fit)
    missing = max(0, 3 - len(mean))
    return np.concatenate([mean, np.full((missing, mean.shape[1]), np.nan)])
