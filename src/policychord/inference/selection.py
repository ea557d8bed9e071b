"""Group Bayesian model selection: which model is the most frequent, and how sure can we be?

Random effects (Stephan et al. 2009, NeuroImage 46): each person n uses one model, models have unknown frequencies
r ~ Dirichlet(alpha_0), and the evidence ln p(y_n | model k) is given. Protection against chance (Rigoux et al. 2014,
NeuroImage 84) weighs in the possibility that all models are equally frequent; so do comparisons of groups and of
conditions. Families as in Penny et al. (2010). Power is found by drawing groups from people who were measured.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import product
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
_MOST_TUPLES = 4096  # of models over conditions
_CHAINS, _WARM_UP, _SWEEPS = 64, 30, 150
ESTABLISHED = 0.95  # a statement needs a probability above this
UNDECIDED = 0.25  # with a Bayes omnibus risk above this nothing is established


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
    return _select(log_evidence, np.full(log_evidence.shape[1], prior), np.eye(log_evidence.shape[1]), tol).selection


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
    return _select(log_evidence, _shared_prior(members), members, _positive("tol", tol)).selection


def not_excluded(selection: ModelSelection) -> list[int]:
    """The models that may be the most frequent one: the fewest, by PXP, that together have a probability above .95.

    One model alone is established. All of them are left if the Bayes omnibus risk is above .25.
    """
    order = np.argsort(-selection.pxp, kind="stable")
    if selection.bor > UNDECIDED:
        return [int(k) for k in order]
    enough = int(np.argmax(np.cumsum(selection.pxp[order]) > ESTABLISHED))
    return [int(k) for k in order[: enough + 1]]


class GroupComparison(NamedTuple):
    """Whether several groups have the same model frequencies."""

    names: tuple[str, ...]
    same: float  # the probability that the frequencies are the same, both being equally likely beforehand
    log_same: float  # ln evidence (a lower bound) of one set of frequencies for all
    log_different: float  # ln evidence of a set for each group
    groups: tuple[ModelSelection, ...]
    together: ModelSelection


def compare_groups(groups: Mapping[str, ArrayLike], *, tol: float = 1e-6) -> GroupComparison:
    """Do groups of people use the models with the same frequencies? `groups` has log evidence (subjects, models) each.

    ln p(all | same) is the free energy of all people together, ln p(all | different) the sum over groups, and
    p(same | all) = 1 / (1 + p(all | different)/p(all | same)).
    """
    checked = {name: _checked(evidence) for name, evidence in groups.items()}
    sizes = {evidence.shape[1] for evidence in checked.values()}
    if len(checked) < 2 or len(sizes) != 1:
        raise ValueError(f"groups has {len(checked)} entries with {sorted(sizes)} models: pass two or more groups with "
                         "the same models.")  # fmt: skip
    tol, prior, members = _positive("tol", tol), np.ones(max(sizes)), np.eye(max(sizes))
    alone = [_select(evidence, prior, members, tol) for evidence in checked.values()]
    together = _select(np.concatenate(list(checked.values())), prior, members, tol)
    log_same, log_different = together.free_energy, float(sum(group.free_energy for group in alone))
    return GroupComparison(
        tuple(checked), float(expit(log_same - log_different)), log_same, log_different,
        tuple(group.selection for group in alone), together.selection,
    )  # fmt: skip


def detectable_difference(
    groups: Mapping[str, ArrayLike],
    differences: Sequence[float] = (0.2, 0.4, 0.6, 0.8, 1.0),
    *,
    draws: int = 30,
    seed: int = 0,
) -> float | None:
    """The smallest difference in the share of a model that groups of these sizes would show with a probability of .8.

    Groups are drawn with replacement from all people: of every second group a share of (1 + difference)/2, of the
    others (1 - difference)/2, from those who use the most frequent model, by their responsibilities. They differ where
    `compare_groups` says so with a probability above .95. None if not even the largest is found.
    """
    checked = {name: _checked(evidence) for name, evidence in groups.items()}
    evidence = np.concatenate(list(checked.values()))
    selection = select_models(evidence)
    uses = selection.responsibilities[:, int(selection.expected.argmax())]
    drawn_by = np.stack([uses, 1.0 - uses]) + 1e-12
    drawn_by /= drawn_by.sum(axis=1, keepdims=True)

    def found(difference: float) -> bool:
        count = 0
        for number in range(draws):
            rng, drawn = np.random.default_rng((seed, number)), {}
            for k, (name, part) in enumerate(checked.items()):
                own = round(0.5 * (1.0 + (difference if k % 2 == 0 else -difference)) * len(part))
                rows = [rng.choice(len(evidence), size, p=p) for size, p in zip((own, len(part) - own), drawn_by,
                                                                                strict=True)]  # fmt: skip
                drawn[name] = evidence[np.concatenate(rows)]
            count += compare_groups(drawn, tol=1e-3).same < 1.0 - ESTABLISHED
        return count >= 0.8 * draws

    place = bisect_left(range(len(differences)), True, key=lambda k: found(differences[k]))  # larger ones are easier
    return float(differences[place]) if place < len(differences) else None


class ConditionComparison(NamedTuple):
    """Whether people use the same model in several conditions."""

    names: tuple[str, ...]
    stable: float  # expected share of people who use one model throughout
    xp: float  # the probability that more people stay with a model than change it
    pxp: float  # the same, protected against chance
    bor: float
    tuples: tuple[tuple[int, ...], ...]  # the model in each condition, by its column
    frequency: np.ndarray  # (tuples) expected share of people
    conditions: tuple[ModelSelection, ...]  # each condition for itself


def compare_conditions(conditions: Mapping[str, ArrayLike], *, tol: float = 1e-3) -> ConditionComparison:
    """Do the same people use the same model in all conditions? Each has log evidence (subjects, models), rows alike.

    A person uses a tuple of models, one in each condition, whose evidence is the sum. Tuples are compared as two
    families, all the same and not, which are equally likely beforehand.
    """
    checked = {name: _checked(evidence) for name, evidence in conditions.items()}
    shapes = {evidence.shape for evidence in checked.values()}
    if len(checked) < 2 or len(shapes) != 1:
        raise ValueError(f"conditions has {len(checked)} entries of shapes {sorted(shapes)}: pass two or more, with "
                         "the same people in the same order and the same models.")  # fmt: skip
    models = shapes.pop()[1]
    if models < 2 or models ** len(checked) > _MOST_TUPLES:
        raise ValueError(f"{models} models in {len(checked)} conditions: pass two or more models, and at most "
                         f"{_MOST_TUPLES} combinations of them.")  # fmt: skip
    tuples = tuple(product(range(models), repeat=len(checked)))
    evidence = sum(rows[:, columns] for rows, columns in zip(checked.values(), np.array(tuples).T, strict=True))
    same = np.array([len(set(used)) == 1 for used in tuples])
    members = np.stack([same, ~same], axis=1).astype(float)
    selected = _select(np.asarray(evidence), _shared_prior(members), members, _positive("tol", tol))
    stays = selected.selection
    return ConditionComparison(
        tuple(checked), float(stays.expected[0]), float(stays.xp[0]), float(stays.pxp[0]), stays.bor, tuples,
        selected.alpha / selected.alpha.sum(), tuple(select_models(each, tol=tol) for each in checked.values()),
    )  # fmt: skip


class Power(NamedTuple):
    """How often a group of a certain size establishes a model."""

    sizes: np.ndarray  # people
    power: np.ndarray  # share of drawn groups in which the model's PXP is above the threshold
    error: np.ndarray  # its standard error, from the number of draws
    wrong: np.ndarray  # share of groups that establish another model
    enough: int | None  # the least of `sizes` with a power of .8 or more; None if none is


def power(
    log_evidence: ArrayLike,
    model: int,
    sizes: Sequence[int] = (10, 20, 40, 80, 160),
    *,
    draws: int = 200,
    threshold: float = ESTABLISHED,
    seed: int = 0,
) -> Power:
    """How many people are needed until a model has a PXP above the threshold?

    Groups are drawn with replacement from the people of a pilot, or of a simulation with `model` planted: their log
    evidence (subjects, models).
    """
    evidence = _checked(log_evidence)
    if not 0 <= model < evidence.shape[1]:
        raise ValueError(f"model = {model}: columns go from 0 to {evidence.shape[1] - 1}.")
    if draws < 1 or not 0 < threshold < 1 or not sizes or min(sizes) < 1:
        raise ValueError(f"sizes = {tuple(sizes)}, draws = {draws}, threshold = {threshold}: pass sizes and draws of "
                         "at least 1, and a probability.")  # fmt: skip
    rates = []
    for size in sizes:
        rng = np.random.default_rng((seed, size))
        pxp = np.stack([select_models(evidence[rng.integers(0, len(evidence), size)]).pxp for _ in range(draws)])
        others = np.delete(pxp, model, axis=1).max(1, initial=0.0)
        rates.append((np.mean(pxp[:, model] > threshold), np.mean(others > threshold)))
    share, wrong = (np.array(column) for column in zip(*rates, strict=True))
    good = np.flatnonzero(share >= 0.8)
    return Power(np.asarray(sizes), share, np.sqrt(share * (1 - share) / draws), wrong,
                 int(sizes[good[0]]) if len(good) else None)  # fmt: skip


class Frequencies(NamedTuple):
    """How frequent models are, without knowing who uses which."""

    mean: np.ndarray  # (models)
    sd: np.ndarray  # (models)


def posterior_frequencies(log_evidence: ArrayLike, *, prior: float = 1.0, seed: int = 0) -> Frequencies:
    """Mean and sd of p(r | data) ~ Dir(r | prior) prod_n sum_k r_k p_nk, by Gibbs sampling over everybody's model.

    `select_models` counts responsibilities as if they were models that had been seen: its Dirichlet posterior is as
    narrow as if everybody's model were known. Here models are drawn, and r given them, in 64 chains of 150 sweeps.
    """
    log_evidence = _checked(log_evidence)
    prior, rng = _positive("prior", prior), np.random.default_rng(seed)
    evidence = np.exp(log_evidence - log_evidence.max(axis=1, keepdims=True))
    people, models = evidence.shape
    r = rng.dirichlet(np.full(models, prior), size=_CHAINS)
    means, variances = [], []
    for sweep in range(_WARM_UP + _SWEEPS):
        below = np.cumsum(r[:, None, :] * evidence, axis=2)
        used = (below < rng.random((_CHAINS, people, 1)) * below[:, :, -1:]).sum(axis=2)
        alpha = prior + np.stack([(used == k).sum(axis=1) for k in range(models)], axis=1)
        r = rng.standard_gamma(alpha)
        r /= r.sum(axis=1, keepdims=True)
        if sweep >= _WARM_UP:  # moments given the models: less noisy than those of r
            means.append(alpha / alpha.sum(axis=1, keepdims=True))
            variances.append(means[-1] * (1 - means[-1]) / (alpha.sum(axis=1, keepdims=True) + 1))
    mean = np.concatenate(means)
    return Frequencies(mean.mean(axis=0), np.sqrt(np.concatenate(variances).mean(axis=0) + mean.var(axis=0)))


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


def _posterior(log_evidence: np.ndarray, prior: np.ndarray, tol: float) -> tuple[np.ndarray, np.ndarray]:
    """alpha, and everybody's responsibilities."""
    alpha, responsibilities = prior, np.zeros_like(log_evidence)
    for _ in range(_MOST_TURNS):
        scores = log_evidence + digamma(alpha) - digamma(alpha.sum())
        responsibilities = np.exp(scores - scores.max(axis=1, keepdims=True))
        responsibilities /= responsibilities.sum(axis=1, keepdims=True)
        previous, alpha = alpha, prior + responsibilities.sum(0)
        if np.linalg.norm(alpha - previous) < tol:
            break
    return alpha, responsibilities


class _Selected(NamedTuple):
    selection: ModelSelection  # of families
    alpha: np.ndarray  # (models)
    free_energy: float  # a lower bound on ln p(everybody's data)


def _shared_prior(members: np.ndarray) -> np.ndarray:
    """One count for each family, shared among its members."""
    return np.asarray(members @ (1.0 / members.sum(0)))


def _select(log_evidence: np.ndarray, prior: np.ndarray, members: np.ndarray, tol: float) -> _Selected:
    alpha, responsibilities = _posterior(log_evidence, prior, tol)
    counts, free_energy = alpha @ members, _free_energy(log_evidence, prior, alpha, responsibilities)
    log_null = np.log(_shared_prior(members) / counts.size)  # all families equally frequent, members share
    bor = float(expit(logsumexp(log_evidence + log_null, axis=1).sum() - free_energy))
    xp = exceedance(counts)
    pxp = (1.0 - bor) * xp + bor / counts.size
    selection = ModelSelection(counts, counts / counts.sum(), xp, pxp, bor, responsibilities @ members)
    return _Selected(selection, alpha, free_energy)


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
