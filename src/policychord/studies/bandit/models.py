"""Models of choice with `fit`, `predict_proba` and `score`, as users of scikit-learn expect them."""

from abc import ABC, abstractmethod
from itertools import product
from typing import Literal, get_args

import numpy as np
from scipy.optimize import minimize

from ...stats.glm import Engine, Link, fit_choices, log_choice_prob, log_choice_slope
from .beliefs import Trials, take
from .compose import Composition, compose, slope
from .controls import RULES, Rule
from .features import FEATURES, features
from .primitives import PAPER, columns, named

# Where to look for the coefficients of the own likelihood: shares of the reference's, and climbs from the best of them.
_SHARES = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0)
_CLIMBS = 6


class ChoiceModel(ABC):
    """A model with coefficients for each person, or with `pooled=True` the same for all.

    After `fit`: `subjects_`, `coef_` (subjects, coefficients), and for each subject `log_likelihood_`, `bic_`,
    `aic_`, `log_evidence_` (-bic/2) and `separated_`.
    """

    classic: str  # the classic model whose coefficients these are
    link: Link
    pooled: bool
    engine: Engine = "statsmodels"  # of the regression; "scoring" is the same and faster
    parameters: int  # counted by bic_ and aic_

    @abstractmethod
    def log_proba(self, trials: Trials, coef: np.ndarray | None = None) -> np.ndarray:
        """ln p of every arm at every trial, (trials, arms); with the fitted coefficients unless a row each is given."""

    def fit(self, trials: Trials) -> "ChoiceModel":
        """Estimate the coefficients, person by person."""
        x = features(self.classic, trials)
        groups = [np.arange(len(trials.choice))] if self.pooled else _by_subject(trials.subject)
        fits = [fit_choices(x[rows], trials.choice[rows], self.link, engine=self.engine) for rows in groups]
        self.separated_ = np.array([fit.separated for fit in fits])
        self.coef_ = self._refine(np.stack([fit.coef for fit in fits]), trials, groups)
        self.subjects_ = np.unique(trials.subject)
        self.score_subjects(trials)
        return self

    def _refine(self, coef: np.ndarray, trials: Trials, groups: list[np.ndarray]) -> np.ndarray:
        return coef

    def score_subjects(self, trials: Trials) -> None:
        """Likelihood and evidence of every subject, with the coefficients as they are."""
        chosen = self.log_proba(trials)[np.arange(len(trials.choice)), trials.choice]
        groups = _by_subject(trials.subject)
        self.log_likelihood_ = np.array([chosen[rows].sum() for rows in groups])
        counts = np.array([len(rows) for rows in groups])
        self.bic_ = self.parameters * np.log(counts) - 2 * self.log_likelihood_
        self.aic_ = 2 * self.parameters - 2 * self.log_likelihood_
        self.log_evidence_ = -self.bic_ / 2

    def rows(self, trials: Trials) -> np.ndarray:
        """The coefficients of whoever made each choice, (trials, coefficients)."""
        if not hasattr(self, "coef_"):
            raise ValueError(f"this {type(self).__name__} is not fitted: call fit(trials) first.")
        if self.pooled:
            return np.broadcast_to(self.coef_[0], (len(trials.choice), self.coef_.shape[1]))
        at = np.searchsorted(self.subjects_, trials.subject)
        at = np.minimum(at, len(self.subjects_) - 1)
        if (unknown := self.subjects_[at] != trials.subject).any():
            raise ValueError(
                f"subject {trials.subject[unknown][0]} was not among those fitted: fit with pooled=True to predict "
                "people who were not."
            )
        return self.coef_[at]

    def predict_proba(self, trials: Trials) -> np.ndarray:
        """The probability of every arm, (trials, arms)."""
        return np.exp(self.log_proba(trials))

    def score(self, trials: Trials) -> float:
        """The mean of ln p(choice) over trials."""
        return float(self.log_proba(trials)[np.arange(len(trials.choice)), trials.choice].mean())


class Classic(ChoiceModel):
    """UCB, Thompson, Hybrid or Value: p(arm) from a weighted sum of features, by probit or logit."""

    def __init__(self, name: str = "Hybrid", link: Link = "probit", *, pooled: bool = False):
        if name not in FEATURES:
            raise ValueError(f"name = {name!r}: the classic models are {', '.join(FEATURES)}.")
        self.classic, self.link, self.pooled = name, link, pooled
        self.parameters = len(FEATURES[name])

    def log_proba(self, trials, coef=None):
        coef = self.rows(trials) if coef is None else coef
        return log_choice_prob(features(self.classic, trials), coef, self.link)


class Composed(ChoiceModel):
    """Primitives mixed at every trial so that they come close to a classic model, the reference.

    `coefficients="reference"` are those that fit the reference best, as in the paper; `"own"` maximise this model's
    own likelihood. `parameters` are the reference's unless counted otherwise. `primitives`: names, or a dict of
    names to functions of `Trials`. `weights_` after `fit`, or `weigh(trials)`.
    """

    def __init__(
        self,
        primitives=tuple(PAPER),
        reference: str = "Hybrid",
        link: Link = "probit",
        *,
        eps: float = 0.01,
        prior=None,
        coefficients: Literal["reference", "own"] = "reference",
        parameters: int | None = None,
        pooled: bool = False,
    ):
        base = Classic(reference, link, pooled=pooled)
        if coefficients not in ("reference", "own"):
            raise ValueError(f"coefficients = {coefficients!r}: use 'reference' or 'own'.")
        self.primitives, self.eps, self.prior, self.coefficients = named(primitives), eps, prior, coefficients
        self.base, self.classic, self.link, self.pooled = base, reference, link, pooled
        self.parameters = base.parameters if parameters is None else parameters

    def weigh(self, trials: Trials, coef: np.ndarray | None = None) -> Composition:
        """Weights and policy at every trial, all solved as one batch."""
        log_q = self.base.log_proba(trials, self.rows(trials) if coef is None else coef)
        return compose(columns(self.primitives, trials), log_q, self.eps, self.prior)

    def log_proba(self, trials, coef=None):
        return self.weigh(trials, coef).log_prob

    def fit(self, trials: Trials) -> "Composed":
        super().fit(trials)
        return self

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.primitives)

    def _refine(self, coef, trials, groups):
        if self.coefficients == "reference":
            return coef
        return np.stack([self._own(start, take(trials, rows)) for start, rows in zip(coef, groups, strict=True)])

    def _own(self, start: np.ndarray, trials: Trials) -> np.ndarray:
        """The best of several climbs: the likelihood has hills, and plains where the policy is at its border."""
        pi, x = columns(self.primitives, trials), features(self.classic, trials)
        row = np.arange(len(trials.choice))

        def loss(coef):
            policy = compose(pi, log_choice_prob(x, coef, self.link), self.eps, self.prior)
            towards_q = slope(pi, policy.weights, trials.choice, self.eps)
            gradient = np.einsum("ta,taf->f", towards_q, log_choice_slope(x, coef, self.link))
            return -policy.log_prob[row, trials.choice].sum(), -gradient

        candidates = np.stack([start * share for share in product(_SHARES, repeat=len(start))])
        log_q = np.concatenate([log_choice_prob(x, coef, self.link) for coef in candidates])
        tried = compose(np.tile(pi, (len(candidates), 1, 1)), log_q, self.eps, self.prior).log_prob
        value = tried.reshape(len(candidates), *trials.mean.shape)[:, row, trials.choice].sum(1)
        best = candidates[np.argsort(-value, kind="stable")[:_CLIMBS]]
        climbs = [minimize(loss, coef, jac=True, method="BFGS") for coef in best]
        return min(climbs, key=lambda fit: fit.fun).x


class Control(ChoiceModel):
    """The reference with a floor under its probabilities and no primitive to choose from: what a floor alone gives."""

    def __init__(self, rule: Rule, reference: str = "Hybrid", link: Link = "probit", *, pooled: bool = False):
        if rule not in get_args(Rule):
            raise ValueError(f"rule = {rule!r}: use one of {', '.join(get_args(Rule))}.")
        self.rule, self.base = rule, Classic(reference, link, pooled=pooled)
        self.classic, self.link, self.pooled, self.parameters = reference, link, pooled, self.base.parameters

    def log_proba(self, trials, coef=None):
        log_q = self.base.log_proba(trials, self.rows(trials) if coef is None else coef)
        return RULES[self.rule](log_q, trials)


def _by_subject(subject: np.ndarray) -> list[np.ndarray]:
    """The rows of each subject, in the order of their numbers."""
    order = np.argsort(subject, kind="stable")
    _, starts = np.unique(subject[order], return_index=True)
    return np.split(order, starts[1:])
