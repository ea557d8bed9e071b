"""Group Bayesian model selection: which model is the most frequent, and how sure can we be?

Random effects (Stephan et al. 2009, NeuroImage 46): each person n uses one model, models have unknown frequencies
r ~ Dirichlet(alpha_0), and the evidence ln p(y_n | model k) is given. Protection against chance (Rigoux et al. 2014,
NeuroImage 84) weighs in the possibility that all models are equally frequent. Families as in Penny et al. (2010).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, expit, gammainc, gammaincinv, gammaln, logsumexp, xlogy

from .._types import ArrayLike

# Where the integrand of an exceedance probability may bend: quantiles of every gamma distribution involved.
_QUANTILES = np.concatenate(
    [10.0 ** np.arange(-16, -1, 2), np.linspace(0.05, 0.95, 10), 1 - 10.0 ** np.arange(-2, -17, -2)]
)
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(24)
_MOST_TURNS = 100_000


class ModelSelection(NamedTuple):
    """The posterior over model frequencies of a group."""

    alpha: np.ndarray  # (models) counts of the Dirichlet posterior
    expected: np.ndarray  # (models) expected frequencies, alpha / sum(alpha)
    xp: np.ndarray  # (models) exceedance probability: this model is the most frequent one
    pxp: np.ndarray  # (models) protected exceedance probability, (1 - bor) xp + bor / models
    bor: float  # Bayes omnibus risk: the probability that all are equally frequent
    responsibilities: np.ndarray  # (subjects, models) the probability that a subject uses a model


def select_models(log_evidence: ArrayLike, *, prior: float = 1.0, tol: float = 1e-3) -> ModelSelection:
    """Compare models over a group, from the log evidence (subjects, models); -BIC/2 is a common approximation.

    g_nk ~ exp( ln p_nk + psi(alpha_k) - psi(sum alpha) ),  alpha = prior + sum_n g_n, until alpha moves by less than
    `tol`. The default stops where the authors' own programs stop, so that figures compare; 1e-10 costs nothing.
    """
    log_evidence = _checked(log_evidence)
    prior, tol = _positive("prior", prior), _positive("tol", tol)
    return _select(log_evidence, np.full(log_evidence.shape[1], prior), np.eye(log_evidence.shape[1]), tol)


def select_families(
    log_evidence: ArrayLike, families: Mapping[str, Sequence[int]], *, tol: float = 1e-3
) -> ModelSelection:
    """Compare families of models: `families` names the columns of each, and every column belongs to one family.

    Families are equally likely beforehand whatever their size: each shares one prior count among its members.
    Fields are per family, in the order given; responsibilities are sums over members.
    """
    log_evidence = _checked(log_evidence)
    members = np.zeros((log_evidence.shape[1], len(families)))
    for column, (name, wanted) in enumerate(families.items()):
        for index in wanted:
            if not 0 <= index < len(members):
                raise ValueError(f"families[{name!r}] names model {index}: columns go from 0 to {len(members) - 1}.")
            members[index, column] += 1.0
    if not (members.sum(1) == 1).all() or (members.sum(0) == 0).any():
        raise ValueError(f"families = {dict(families)}: every model belongs to one family, and no family is empty.")
    prior = members @ (1.0 / members.sum(0))
    return _select(log_evidence, prior, members, _positive("tol", tol))


def exceedance(alpha: ArrayLike) -> np.ndarray:
    """P(r_k is the largest) for r ~ Dirichlet(alpha), by quadrature: int p_k(x) prod_{j != k} F_j(x) dx.

    r is a vector of gamma variables divided by their sum, and the largest of them is the largest before division.
    The integral is taken over ln x, where densities with counts below one have no pole.
    """
    alpha = np.asarray(alpha, dtype=float)
    if alpha.ndim != 1 or alpha.size == 0 or not np.all(np.isfinite(alpha) & (alpha > 0)):
        raise ValueError(f"alpha = {alpha.tolist()}: pass positive counts, one for each model.")
    if alpha.size == 1:
        return np.ones(1)
    quantiles = gammaincinv(np.unique(alpha)[:, None], _QUANTILES)
    edges = np.unique(np.log(np.maximum(quantiles, 1e-300)))
    # long stretches between quantiles of very different counts are cut further
    edges = np.interp(np.arange(0, len(edges) - 0.75, 0.25), np.arange(len(edges)), edges)
    half = np.diff(edges)[:, None] / 2
    t = ((edges[:-1, None] + half) + half * _NODES).ravel()
    step = (half * _NODE_WEIGHTS).ravel()
    with np.errstate(divide="ignore", invalid="ignore"):
        log_below = np.log(gammainc(alpha[:, None], np.exp(t)))
        log_density = alpha[:, None] * t - np.exp(t) - gammaln(alpha)[:, None]
        integrand = np.exp(log_density + log_below.sum(0) - log_below)
    integrand = np.where(np.isfinite(integrand), integrand, 0.0)  # all others have no mass below: 0, not inf - inf
    xp = integrand @ step
    return xp / xp.sum()


def _select(log_evidence: np.ndarray, prior: np.ndarray, members: np.ndarray, tol: float) -> ModelSelection:
    alpha = prior
    for _ in range(_MOST_TURNS):
        scores = log_evidence + digamma(alpha) - digamma(alpha.sum())
        responsibilities = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
        previous, alpha = alpha, prior + responsibilities.sum(0)
        if np.linalg.norm(alpha - previous) < tol:
            break
    counts = alpha @ members
    families = counts.size
    log_null = np.log(members @ (1.0 / members.sum(0)) / families)  # all families equally frequent, members share
    null = logsumexp(log_evidence + log_null, axis=1).sum()
    bor = float(expit(null - _free_energy(log_evidence, prior, alpha, responsibilities)))
    xp = exceedance(counts)
    pxp = (1.0 - bor) * xp + bor / families
    return ModelSelection(counts, counts / counts.sum(), xp, pxp, bor, responsibilities @ members)


def _free_energy(log_evidence: np.ndarray, prior: np.ndarray, alpha: np.ndarray, responsibilities: np.ndarray) -> float:
    """E[ln p(y, z, r)] + H(z) + H(r) under the posterior: a lower bound on the group's evidence."""
    log_r = digamma(alpha) - digamma(alpha.sum())
    joint = (responsibilities * (log_evidence + log_r)).sum() + (prior - 1) @ log_r - _log_beta(prior)
    entropy = -xlogy(responsibilities, responsibilities).sum() + _log_beta(alpha) - (alpha - 1) @ log_r
    return float(joint + entropy)


def _log_beta(alpha: np.ndarray) -> float:
    return float(gammaln(alpha).sum() - gammaln(alpha.sum()))


def _checked(log_evidence: ArrayLike) -> np.ndarray:
    try:
        array = np.asarray(log_evidence, dtype=float)
    except (TypeError, ValueError):
        raise ValueError("log_evidence is not a table of numbers: pass (subjects, models).") from None
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"log_evidence has shape {array.shape}: pass (subjects, models), one row for each subject.")
    if not np.isfinite(array).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(
            f"log_evidence[{row}, {column}] = {array[row, column]}: evidence must be finite; leave out subjects or "
            "models that could not be fitted."
        )
    return array


def _positive(name: str, value: float) -> float:
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name} = {value!r}: pass a positive number.")
    return float(value)
