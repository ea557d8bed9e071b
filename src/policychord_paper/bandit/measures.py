"""The evidence of the bandit study: what its experiments found, by experiment and link."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from policychord import Problem, problem
from policychord.choices import (
    LEAST,
    OURS,
    PAPER,
    Analysis,
    CrossValidation,
    Link,
    Rivals,
    classic,
    coefficients_of,
    columns,
    compare_models,
    log_proba,
    weights_by_trial,
)
from policychord.inference import ModelRecovery, select_models

from .attitudes import Planted, neutral_weights
from .experiments import EXPERIMENTS, LINKS, BanditSettings, Gain, Rounding, Stopped, Sweep
from .known import KNOWN


class LinkEvidence(NamedTuple):
    """One experiment, with one link from utilities to probabilities."""

    fit: Analysis
    rivals: Rivals
    cross_validation: CrossValidation
    temperature: Sweep
    gain: Gain
    neutral: np.ndarray  # weights at every trial without an attitude to uncertainty, (trials, primitives)
    same: np.ndarray  # everybody's mean weights on the same trials, (people, experiment of the trials, primitives)


class _ExperimentEvidence(NamedTuple):
    """One experiment. What does not depend on the link was done with the probit."""

    probit: LinkEvidence
    logit: LinkEvidence
    as_released: CrossValidation  # the cross-validation as the released script reads
    rounding: Rounding
    recovery: ModelRecovery
    planted: Planted
    known: dict[str, dict[Link, LinkEvidence]]  # simulated people of whom the answer is known
    alike: dict[Link, Sweep]  # temperatures of a model whose primitives are the same, on coin flippers
    stopped: Stopped | None = None  # None in a quick run


class Evidence(NamedTuple):
    """Both experiments."""

    first: _ExperimentEvidence
    second: _ExperimentEvidence


STEPS = ("fit", "rivals", "cross-validation", "temperature", "rare choices")  # of an experiment with one link


def gather(settings: BanditSettings, results: Mapping[str, Any]) -> Evidence:
    """The evidence from the results of the steps."""

    def same(e: str, link: Link, whose: str = "") -> np.ndarray:
        weights: np.ndarray = results[f"{whose} same trials {link}".strip()][EXPERIMENTS.index(e)]
        return weights

    def of_link(e: str, link: Link) -> LinkEvidence:
        found = [results[f"{step} {e} {link}"] for step in STEPS]
        return LinkEvidence._make([*found, neutral_weights(found[0]), same(e, link)])

    def of_known(name: str, e: str, link: Link) -> LinkEvidence:
        found = results[f"{name} {e} {link}"][: len(STEPS)]
        return LinkEvidence._make([*found, neutral_weights(found[0]), same(e, link, name)])

    def of_experiment(e: str) -> _ExperimentEvidence:
        return _ExperimentEvidence(
            probit=of_link(e, "probit"),
            logit=of_link(e, "logit"),
            as_released=results[f"cross-validation as released {e}"],
            rounding=results[f"rounding {e}"],
            recovery=results[f"recovery {e}"],
            planted=results[f"planted attitudes {e}"],
            known={name: {link: of_known(name, e, link) for link in LINKS} for name in KNOWN},
            alike={link: results[f"coin flippers {e} {link}"].alike for link in LINKS},
            stopped=results.get(f"stopped {e}"),
        )

    return Evidence(*map(of_experiment, EXPERIMENTS))


FEWER_PERMUTATIONS = 200  # where people are resampled many times


def redraw(settings: BanditSettings, evidence: Evidence, number: int) -> tuple[BanditSettings, Evidence]:
    """The evidence with people and random splits resampled; what no claim reads stays."""

    def of_link(linked: LinkEvidence, people: np.ndarray) -> LinkEvidence:
        swept, validated, fit = linked.temperature, linked.cross_validation, linked.fit
        splits = np.random.default_rng((number, 1)).integers(len(validated.score), size=len(validated.score))
        pxp = np.array([select_models(log_evidence[people]).pxp[1] for log_evidence in swept.log_evidence])
        models = {
            name: fitted._replace(log_evidence=fitted.log_evidence[people]) for name, fitted in fit.models.items()
        }
        subject = fit.trials.subject
        rows = [np.flatnonzero(subject == person) for person in np.unique(subject)]
        chosen = np.concatenate([rows[person] for person in people])
        trials = type(fit.trials)(*(_rows(field, chosen, len(subject)) for field in fit.trials))
        anew = np.repeat(np.arange(len(people)), [len(rows[person]) for person in people])
        ours = fit.ours
        fit = fit._replace(
            trials=trials._replace(subject=anew),
            composed=ours._replace(
                composition=ours.composition._replace(weights=ours.composition.weights[chosen]),
                against_reference=compare_models(models, ours.against_reference.models),
                against_others=compare_models(models, ours.against_others.models),
            ),
        )
        return linked._replace(
            fit=fit,
            neutral=linked.neutral[chosen],
            same=linked.same[people],
            cross_validation=validated._replace(score=validated.score[splits]),
            temperature=swept._replace(pxp=pxp),
        )

    drawn = []
    for e, experiment in enumerate(evidence):
        size = len(experiment.probit.fit.models[OURS].subjects)
        people = np.random.default_rng((number, 2, e)).integers(size, size=size)
        drawn.append(
            experiment._replace(probit=of_link(experiment.probit, people), logit=of_link(experiment.logit, people))
        )
    fewer = settings.model_copy(update={"permutations": min(settings.permutations, FEWER_PERMUTATIONS)})
    return fewer, Evidence(*drawn)


def _rows(field: Any, rows: np.ndarray, size: int) -> Any:
    """The rows of what has one for each trial, and anything else as it is."""
    return field[rows] if isinstance(field, np.ndarray) and len(field) == size else field


FITTED = tuple(f"fit {e} probit" for e in EXPERIMENTS)  # the steps that recorded problems are read from
RECORDED = 200  # of each experiment


def recorded(settings: BanditSettings, results: Mapping[str, Any]) -> dict[str, Problem]:
    """The gating problems of people's trials, evenly over all of them, with each person's fitted Hybrid."""
    problems = {}
    for e, step in zip(EXPERIMENTS, FITTED, strict=True):
        fit: Analysis = results[step]
        trials = fit.trials
        rows = np.linspace(0, len(trials.choice) - 1, min(RECORDED, len(trials.choice))).astype(int)
        log_q = log_proba(classic("Hybrid", fit.link), trials, coefficients_of(fit.models["Hybrid"], trials))
        problems[f"bandit, Exp {e}"] = problem(
            pi=columns(PAPER, trials)[rows],
            action_cost=-np.maximum(log_q[rows], np.log(LEAST)),
            eps=np.full(len(rows), settings.eps),
        )
    return problems


def by_experiment(evidence: Evidence, link: Link = "probit") -> dict[str, LinkEvidence]:
    """What was found with one link, by the number of the experiment."""
    return {
        e: experiment.logit if link == "logit" else experiment.probit
        for e, experiment in zip(EXPERIMENTS, evidence, strict=True)
    }


def lead_over_hybrid(linked: LinkEvidence) -> float:
    """PXP of the composed model against the Hybrid."""
    return linked.fit.ours.against_reference.pxp(OURS)


def mean_weights(linked: LinkEvidence) -> np.ndarray:
    """Mean weights by trial of a block, (trials, primitives); at least two trials, unknown ones are NaN."""
    _, mean = weights_by_trial(linked.fit)
    missing = max(0, 2 - len(mean))
    return np.concatenate([mean, np.full((missing, mean.shape[1]), np.nan)])


class _Permuted(NamedTuple):
    """The distance of two groups' mean weights, and what people dealt to groups at random give."""

    distance: float  # largest difference of a mean weight
    largest: float  # of all permutations
    p: float


def weights_by_person(linked: LinkEvidence, weights: np.ndarray | None = None) -> np.ndarray:
    """Mean weights of each person, (people, primitives): those of the fit, or others of the same trials."""
    subject, own = linked.fit.trials.subject, linked.fit.ours.composition.weights if weights is None else weights
    return np.stack([own[subject == person].mean(axis=0) for person in np.unique(subject)])


def permute_people(first: np.ndarray, second: np.ndarray, permutations: int, seed: int) -> _Permuted:
    """Whether the means of two groups, (people, ...), differ more than by chance, p = (1 + larger)/(1 + all)."""
    everybody, size = np.concatenate([first, second]), len(first)

    def distance(people: np.ndarray) -> float:
        return float(np.abs(people[:size].mean(axis=0) - people[size:].mean(axis=0)).max())

    rng, own = np.random.default_rng((seed, 11)), distance(everybody)
    dealt = np.array([distance(everybody[rng.permutation(len(everybody))]) for _ in range(permutations)])
    return _Permuted(own, float(dealt.max()), float((1 + (dealt >= own).sum()) / (1 + permutations)))


class _Beyond(NamedTuple):
    """By how much the courses of Experiment 2 are more marked than they would be without an attitude to uncertainty."""

    mean: np.ndarray  # of exploitation early, of the rise of risk-aversion, of uncertainty-seeking late (downwards)
    p: np.ndarray  # of each, one-sided, signs of people dealt at random


def beyond_the_task(linked: LinkEvidence, permutations: int, seed: int) -> _Beyond:
    """Person by person, the course of the weights against that of the same person with a neutral attitude."""
    trial = linked.fit.trials.trial
    early = trial <= trial.max() // 2
    own, neutral = linked.fit.ours.composition.weights, linked.neutral

    def course(weights: np.ndarray) -> np.ndarray:
        """Of each person: exploitation early, the rise of risk-aversion, minus uncertainty-seeking late."""
        first, second = (_by_person(linked, weights, half) for half in (early, ~early))
        return np.stack([first[:, 0], second[:, 2] - first[:, 2], -second[:, 1]], axis=1)

    more = course(own) - course(neutral)
    signs = np.random.default_rng((seed, 13)).choice([-1.0, 1.0], size=(permutations, len(more)))
    chance = signs @ more / len(more)
    mean = more.mean(axis=0)
    return _Beyond(mean, (1 + (chance >= mean).sum(axis=0)) / (1 + permutations))


def _by_person(linked: LinkEvidence, weights: np.ndarray, which: np.ndarray) -> np.ndarray:
    subject = linked.fit.trials.subject
    return np.stack([weights[which & (subject == person)].mean(axis=0) for person in np.unique(subject)])
