"""Groups of people: empirical Bayes with Laplace approximations, and frequencies of models over a group.

Person n has z_n ~ N(mean, covariance). Given the group, each person's posterior is approximated by a normal
distribution around its mode (Laplace); given these, mean and covariance are those that make the evidence larger (EM).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import digamma, softmax

from .likelihoods import Likelihood
from .optimise import Progress, finished, maximise, objective_of, report, starts_around, with_normal_prior
from .parameters import size
from .search import Objective, maximise_from_starts, maximise_groups
from .selection import exceedance, posterior_frequencies
from .uncertainty import curvature, inverse_of

ROUNDS = 30
LEAST_VARIANCE = 1e-4  # of the group on the unconstrained scale: below it people do not differ
CLOSE = 1e-3  # standard errors from the mode at which a run of a person ends
BROAD = 6.25  # variance of the prior under which people are fitted before there is a group


class GroupFit(NamedTuple):
    """A group and its people."""

    mean: Float[np.ndarray, " K"]
    covariance: Float[np.ndarray, "K K"]
    z: Float[np.ndarray, "groups K"]  # modes, shrunk towards the group's mean
    covariances: Float[np.ndarray, "groups K K"]  # of each person's posterior
    log_likelihood: Float[np.ndarray, " groups"]  # at the modes
    log_evidence: Float[np.ndarray, " groups"]  # Laplace: of the person's data given the group
    rounds: int
    converged: bool
    complete: bool = True  # False if somebody interrupted it: then the group is the best so far

    @property
    def error(self) -> Float[np.ndarray, " K"]:
        """The standard error of the group's mean."""
        return np.sqrt(np.diag(self.covariance + self.covariances.mean(axis=0)) / len(self.z))


class _Persons(NamedTuple):
    z: np.ndarray
    covariances: np.ndarray
    log_likelihood: np.ndarray
    log_evidence: np.ndarray


def empirical_bayes(
    given: Likelihood,
    *,
    rounds: int = ROUNDS,
    starts: int = 4,
    tol: float = 1e-2,
    seed: int = 0,
    progress: Progress | None = None,
) -> GroupFit:
    """Mean and (diagonal) covariance of a group by EM, and everybody's estimate shrunk towards them.

    Begins at the pooled estimate with a broad covariance; each person is estimated from several starts then. Ends when
    the evidence of the whole group moves by less than `tol` nats, or after `rounds`. Ctrl-C during the rounds gives the
    group so far with `complete=False`.
    """
    count = size(given.parameters)
    objective = objective_of(given)
    mean, covariance = finished(maximise(given, starts=starts, seed=seed)).z, np.eye(count)
    persons = _persons(objective, mean, covariance, starts_around(mean, starts, given.groups, seed))
    before, converged, complete, done = -np.inf, False, True, 0
    try:
        while done < rounds and not converged:
            report(progress, "empirical Bayes", done, rounds)
            group = _group_of(persons)
            persons = _persons(objective, *group, persons)
            (mean, covariance), done = group, done + 1
            total = float(persons.log_evidence.sum())
            before, converged = total, abs(total - before) < tol
    except KeyboardInterrupt:
        complete = False
    return GroupFit(mean, covariance, *persons, done, converged, complete)


def _persons(objective: Objective, mean: np.ndarray, covariance: np.ndarray, begin: np.ndarray | _Persons) -> _Persons:
    """Modes, Laplace covariances and evidence under N(mean, covariance), from starts or from what was known before."""
    posterior = with_normal_prior(objective, mean, np.linalg.inv(covariance))
    if isinstance(begin, _Persons):
        modes = maximise_groups(posterior, begin.z, begin.covariances, near=CLOSE)
    else:
        modes = maximise_from_starts(posterior, begin, near=CLOSE)
    covariances, _ = inverse_of(curvature(posterior, modes.z))
    evidence = modes.log_posterior + 0.5 * (np.linalg.slogdet(covariances)[1] + len(mean) * np.log(2 * np.pi))
    return _Persons(modes.z, covariances, objective(modes.z, np.arange(len(modes.z)))[0], evidence)


def _group_of(persons: _Persons) -> tuple[np.ndarray, np.ndarray]:
    """The group's mean m and diagonal covariance, the mean over people of (z_n - m)^2 + diag C_n."""
    mean = persons.z.mean(axis=0)
    variance = ((persons.z - mean) ** 2 + np.einsum("gii->gi", persons.covariances)).mean(axis=0)
    return mean, np.diag(variance + LEAST_VARIANCE)


# ------------------------------------------------------------------------------- frequencies of models


class ModelFrequencies(NamedTuple):
    """How frequent each model is in a group, with everybody's parameters under each."""

    expected: Float[np.ndarray, " models"]  # posterior mean of the frequencies
    error: Float[np.ndarray, " models"]  # their posterior sd: nobody's model is known for sure
    alpha: Float[np.ndarray, " models"]  # counts of the Dirichlet posterior in mean field, as if models had been seen
    responsibilities: Float[np.ndarray, "groups models"]  # the probability that a person uses a model
    xp: Float[np.ndarray, " models"]  # exceedance probability, in mean field
    groups: tuple[GroupFit, ...]  # of each model
    log_evidence: Float[np.ndarray, "groups models"]
    rounds: int
    converged: bool


class _Hyper(NamedTuple):
    """Posterior of a model's group: mean ~ N(a, 1/(beta tau)), tau ~ Gamma(nu, sigma), number by number."""

    a: np.ndarray
    beta: float
    nu: float
    sigma: np.ndarray


# vague conjugate hyperpriors, as Piray et al. (2019, PLoS Computational Biology 15:e1007043) use them
_BETA, _NU, _SIGMA = 1.0, 0.5, 0.01


def model_frequencies(
    models: Sequence[Likelihood],
    *,
    rounds: int = 50,
    starts: int = 4,
    tol: float = 1e-3,
    seed: int = 0,
    progress: Progress | None = None,
) -> ModelFrequencies:
    """Which model each person uses, how frequent models are, and each model's group, all together.

    Hierarchical Bayesian inference in mean field: a person counts for a model's group as much as the model is
    responsible for the person, and group priors shape the evidence by which responsibilities are found. Frequencies and
    their errors then follow from that evidence without mean field, given the groups. All likelihoods have the same
    groups. If `converged` is False, a model may be taking over the people of one that it contains.
    """
    people, count = models[0].groups, len(models)
    if count < 2 or any(model.groups != people for model in models):
        raise ValueError(f"models have {[model.groups for model in models]} groups: pass two or more of the same "
                         "people.")  # fmt: skip
    responsibilities, alpha = np.full((people, count), 1.0 / count), np.full(count, 1.0 + people / count)
    objectives, persons, hypers = [objective_of(model) for model in models], [], []
    for model, objective in zip(models, objectives, strict=True):
        centre = finished(maximise(model, starts=starts, seed=seed)).z
        around = starts_around(centre, starts, people, seed)
        persons.append(_persons(objective, centre, BROAD * np.eye(len(centre)), around))
        hypers.append(_hyper(persons[-1], responsibilities[:, 0], centre))
    centres = [hyper.a for hyper in hypers]
    evidence, converged, done = np.zeros((people, count)), False, 0
    while done < rounds and not converged:
        report(progress, "model frequencies", done, rounds)
        for k, (objective, hyper) in enumerate(zip(objectives, hypers, strict=True)):
            persons[k] = _persons(objective, hyper.a, np.diag(hyper.sigma / hyper.nu), persons[k])
            # what is not known of the group makes the model's evidence smaller
            doubt = 0.5 * len(hyper.a) * (digamma(hyper.nu) - np.log(hyper.nu) - 1.0 / hyper.beta)
            evidence[:, k] = persons[k].log_evidence + doubt
        before, responsibilities = responsibilities, softmax(evidence + digamma(alpha), axis=1)
        hypers = [_hyper(persons[k], responsibilities[:, k], centres[k]) for k in range(count)]
        alpha = 1.0 + responsibilities.sum(axis=0)
        converged, done = bool(np.abs(responsibilities - before).max() < tol), done + 1
    groups = tuple(GroupFit(hyper.a, np.diag(hyper.sigma / hyper.nu), *everybody, done, converged)
                   for hyper, everybody in zip(hypers, persons, strict=True))  # fmt: skip
    frequencies = posterior_frequencies(evidence, seed=seed)
    return ModelFrequencies(*frequencies, alpha, responsibilities, exceedance(alpha), groups, evidence, done, converged)


def _hyper(persons: _Persons, weights: np.ndarray, centre: np.ndarray) -> _Hyper:
    """Conjugate update from everybody's mode and variance, each counted by its responsibility."""
    total = float(weights.sum()) + 1e-12
    mean = weights @ persons.z / total
    scatter = weights @ ((persons.z - mean) ** 2 + np.einsum("gii->gi", persons.covariances)) / total
    pull = _BETA / (_BETA + total) * (mean - centre) ** 2
    return _Hyper((total * mean + _BETA * centre) / (total + _BETA), _BETA + total, _NU + 0.5 * total,
                  _SIGMA + 0.5 * total * (scatter + pull))  # fmt: skip
