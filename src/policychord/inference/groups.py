"""Groups of people: empirical Bayes with Laplace approximations, and frequencies of models over a group.

Person n has z_n ~ N(x_n beta, covariance), with x_n what is known of the person: 1, and predictors such as the group.
Given beta and the covariance, each person's posterior is approximated by a normal distribution around its mode
(Laplace), with covariance C_n. With W_n = S^-1 - S^-1 C_n S^-1 and S the group's covariance, the marginal likelihood of
beta has the information sum_n x_n x_n^T (x) W_n; beta takes Newton's steps on it, and the covariance those of EM.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import digamma, softmax, stdtrit

from .._types import ArrayLike
from .likelihoods import Likelihood
from .optimise import Progress, finished, maximise, objective_of, report, starts_around, with_normal_prior
from .parameters import affine_of, free_names, size
from .search import Objective, maximise_from_starts, maximise_groups
from .selection import exceedance, posterior_frequencies
from .uncertainty import curvature, inverse_of

ROUNDS = 30
LEAST_VARIANCE = 1e-4  # of the group on the unconstrained scale: below it people do not differ
CLOSE = 1e-3  # standard errors from the mode at which a run of a person ends
POWER = 0.8  # with which the smallest detectable difference is detected
BROAD = 6.25  # variance of the prior under which people are fitted before there is a group


class GroupFit(NamedTuple):
    """A group and its people."""

    mean: Float[np.ndarray, " K"]  # of x_n beta over people
    covariance: Float[np.ndarray, "K K"]  # of people around x_n beta
    z: Float[np.ndarray, "groups K"]  # modes, shrunk towards x_n beta
    covariances: Float[np.ndarray, "groups K K"]  # of each person's posterior
    log_likelihood: Float[np.ndarray, " groups"]  # at the modes
    log_evidence: Float[np.ndarray, " groups"]  # Laplace: of the person's data given the group
    rounds: int
    converged: bool
    complete: bool = True  # False if somebody interrupted it: then the group is the best so far
    beta: Float[np.ndarray, "P K"] | None = None
    predictors: Float[np.ndarray, "groups P"] | None = None  # x_n; the first is 1
    beta_covariance: Float[np.ndarray, "P K P K"] | None = None  # from the marginal likelihood

    @property
    def error(self) -> Float[np.ndarray, " K"]:
        """The standard error of the group's mean, from the marginal likelihood."""
        if self.predictors is None or self.beta_covariance is None:
            ones = np.ones((len(self.z), 1))
            return np.sqrt(np.diag(_of_beta(ones, self.covariance, self.covariances)[0, :, 0]))
        at = self.predictors.mean(axis=0)
        return np.sqrt(np.einsum("p,pkqk,q->k", at, self.beta_covariance, at))


class Effect(NamedTuple):
    """What the group says of a parameter, on its unconstrained scale in natural units (logits of a rate)."""

    parameter: str
    predictor: str  # "": the mean, where all predictors are zero; else what one unit of it adds
    value: float
    error: float
    low: float  # ends of the 95% interval, by Student's t
    high: float
    detectable: float  # the smallest distance from zero that such data would establish with a probability of .8
    sd: float  # of the parameter over people with the same predictors

    @property
    def established(self) -> bool:
        """Whether the interval excludes zero."""
        return not self.low <= 0.0 <= self.high


class _Persons(NamedTuple):
    z: np.ndarray
    covariances: np.ndarray
    log_likelihood: np.ndarray
    log_evidence: np.ndarray


def empirical_bayes(
    given: Likelihood,
    predictors: ArrayLike | None = None,
    *,
    rounds: int = ROUNDS,
    starts: int = 4,
    tol: float = 1e-2,
    seed: int = 0,
    progress: Progress | None = None,
) -> GroupFit:
    """Mean and (diagonal) covariance of a group, and everybody's estimate shrunk towards what is expected of them.

    `predictors` (groups, P) are what the mean depends on, such as -1/2 and 1/2 for two kinds of people; without any all
    have the same. Begins at the pooled estimate with a broad covariance; each person is estimated from several starts
    then. Ends when the evidence of the whole group moves by less than `tol` nats, or after `rounds`. Ctrl-C during the
    rounds gives the group so far with `complete=False`.
    """
    x, count = _with_one(predictors, given.groups), size(given.parameters)
    objective = objective_of(given)
    beta, covariance = np.zeros((x.shape[1], count)), np.eye(count)
    beta[0] = finished(maximise(given, starts=starts, seed=seed)).z
    persons = _persons(objective, x @ beta, covariance, starts_around(beta[0], starts, given.groups, seed))
    before, converged, complete, done = -np.inf, False, True, 0
    try:
        while done < rounds and not converged:
            report(progress, "empirical Bayes", done, rounds)
            group = _group_of(persons, x, beta, covariance)
            persons = _persons(objective, x @ group[0], group[1], persons)
            (beta, covariance), done = group, done + 1
            total = float(persons.log_evidence.sum())
            before, converged = total, abs(total - before) < tol
    except KeyboardInterrupt:
        complete = False
    sure = _of_beta(x, covariance, persons.covariances)
    return GroupFit((x @ beta).mean(axis=0), covariance, *persons, done, converged, complete, beta, x, sure)


def effects_of(group: GroupFit, given: Likelihood, names: Sequence[str] = ()) -> tuple[Effect, ...]:
    """Mean and differences of every parameter, by the predictors' `names`, with what could have been detected."""
    if group.beta is None or group.predictors is None or group.beta_covariance is None:
        raise ValueError("the group has no regression: fit it by `empirical_bayes`.")
    people, wanted = group.predictors.shape
    if len(names) != wanted - 1:
        raise ValueError(f"names = {tuple(names)}: pass one for each of the {wanted - 1} predictors.")
    if (freedom := people - wanted) < 1:
        raise ValueError(f"{people} people with {wanted - 1} predictors leave nothing to estimate an error from.")
    (centre, scale), parameters = affine_of(given.parameters), free_names(given.parameters)
    quantile, power = float(stdtrit(freedom, 0.975)), float(stdtrit(freedom, POWER))
    sd, effects = scale * np.sqrt(np.diag(group.covariance)), []
    for p, predictor in enumerate(("", *names)):
        value = scale * group.beta[p] + (0.0 if predictor else centre)
        error = scale * np.sqrt(np.diag(group.beta_covariance[p, :, p]))
        effects += [
            Effect(name, predictor, v, e, v - quantile * e, v + quantile * e, (quantile + power) * e, spread)
            for name, v, e, spread in zip(parameters, value.tolist(), error.tolist(), sd.tolist(), strict=True)
        ]
    return tuple(effects)


def _with_one(predictors: ArrayLike | None, groups: int) -> np.ndarray:
    """x_n, (groups, 1 + P), checked."""
    if predictors is None:
        return np.ones((groups, 1))
    x = np.asarray(predictors, dtype=float)
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim != 2 or len(x) != groups or not np.isfinite(x).all():
        raise ValueError(f"predictors has shape {x.shape}: pass finite numbers, a row for each of {groups} groups.")
    x = np.concatenate([np.ones((groups, 1)), x], axis=1)
    if np.linalg.matrix_rank(x) < x.shape[1]:
        raise ValueError("predictors are constant, or one follows from the others: leave it out.")
    return x


def _persons(objective: Objective, mean: np.ndarray, covariance: np.ndarray, begin: np.ndarray | _Persons) -> _Persons:
    """Modes, Laplace covariances and evidence under N(mean, covariance), from starts or from what was known before.

    `mean` is (K) for all, or (groups, K).
    """
    posterior = with_normal_prior(objective, mean, np.linalg.inv(covariance))
    if isinstance(begin, _Persons):
        modes = maximise_groups(posterior, begin.z, begin.covariances, near=CLOSE)
    else:
        modes = maximise_from_starts(posterior, begin, near=CLOSE)
    covariances, _ = inverse_of(curvature(posterior, modes.z))
    evidence = modes.log_posterior + 0.5 * (np.linalg.slogdet(covariances)[1] + covariance.shape[0] * np.log(2 * np.pi))
    return _Persons(modes.z, covariances, objective(modes.z, np.arange(len(modes.z)))[0], evidence)


def _information(covariance: np.ndarray, covariances: np.ndarray) -> np.ndarray:
    """W_n = S^-1 - S^-1 C_n S^-1, (groups, K, K): what each person says of its mean. Never less than nothing."""
    inverse = np.linalg.inv(covariance)
    values, vectors = np.linalg.eigh(inverse - inverse @ covariances @ inverse)
    return (vectors * np.maximum(values, 0.0)[:, None, :]) @ np.swapaxes(vectors, -1, -2)


def _of_beta(x: np.ndarray, covariance: np.ndarray, covariances: np.ndarray) -> Float[np.ndarray, "P K P K"]:
    """The inverse of sum_n x_n x_n^T (x) W_n."""
    shape = (x.shape[1], len(covariance)) * 2
    information = np.einsum("np,nkl,nq->pkql", x, _information(covariance, covariances), x)
    return inverse_of(information.reshape(1, shape[0] * shape[1], -1))[0].reshape(shape)


def _group_of(
    persons: _Persons, x: np.ndarray, beta: np.ndarray, covariance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """beta after a step of Newton's, and the diagonal covariance after one of EM.

    The mean over people of (z_n - x_n beta)^2 + C_n, and what is not known of beta, as restricted likelihood has it: a
    variance is not too small because beta was fitted to the same people.
    """
    sure, off = _of_beta(x, covariance, persons.covariances), persons.z - x @ beta
    step = np.einsum("pkql,ql->pk", sure, x.T @ off @ np.linalg.inv(covariance))
    apart = covariance @ _information(covariance, persons.covariances)  # 1 - C_n S^-1: a mode follows by the rest
    off = off - np.einsum("nkl,nl->nk", apart, x @ step)
    unknown = apart @ np.einsum("np,pkql,nq->nkl", x, sure, x) @ np.swapaxes(apart, -1, -2)
    variance = (off**2 + np.einsum("gii->gi", persons.covariances + unknown)).mean(axis=0)
    return beta + step, np.diag(variance + LEAST_VARIANCE)


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
