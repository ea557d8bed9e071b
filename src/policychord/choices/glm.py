"""Regressions on choices: features of every option in, coefficients and likelihood out.

Two options: a binomial model on the difference of their features, by probit or logit. More: the softmax (conditional
logit), which for two options is the logit model. There is no intercept: options have no names, only features.
"""

from typing import Literal, NamedTuple, get_args

import numpy as np
from scipy.optimize import linprog, minimize
from scipy.special import log_ndtr, log_softmax

from .._types import ArrayLike

Link = Literal["probit", "logit"]
Engine = Literal["statsmodels", "scoring"]

# A coefficient times its feature's size beyond this is not an estimate but a choice that never varies.
_LARGEST_EFFECT = 100.0
# A choice whose log-probability is this near to 0 may be on its way to certainty, and is looked at.
_CERTAIN = 1e-6
# How much standardised features of all trials must speak for the choices, beyond what linear programmes round.
_SEPARATES = 1e-4
# Where the likelihood has no maximum (separation), a normal prior of this deviation on that product gives it one.
_PRIOR_SD = 10.0


class ChoiceFit(NamedTuple):
    """Coefficients that make the choices most likely."""

    coef: np.ndarray  # (features)
    log_likelihood: float
    separated: bool  # the likelihood has no maximum, so that a weak prior had to hold the coefficients


def fit_choices(
    features: ArrayLike,
    choice: ArrayLike,
    link: Link = "logit",
    *,
    engine: Engine = "statsmodels",
    start: ArrayLike | None = None,
) -> ChoiceFit:
    """Maximise sum_t ln p(choice_t), p from `log_choice_prob`, over the coefficients.

    `features` is (trials, options, features), `choice` (trials) an index from 0. Where the features separate the
    choices perfectly the likelihood has no maximum; then a weak normal prior decides, and `separated` says so.
    `engine="scoring"` finds the same maximum without statsmodels, some ten times faster, from `start` if that is
    given: for thousands of fits, and for more than two options.
    """
    if engine not in get_args(Engine):
        raise ValueError(f"engine = {engine!r}: use 'statsmodels' or 'scoring'.")
    x, y = _checked(features, choice, link)
    # a feature that never differs between options says nothing; the others are measured by their size
    scale = np.sqrt(np.mean((x - x.mean(1, keepdims=True)) ** 2, axis=(0, 1)))
    scale = np.where(scale > 0, scale, 1.0)
    if engine == "statsmodels" and x.shape[1] == 2 and np.linalg.matrix_rank(x[:, 0] - x[:, 1]) == x.shape[2]:
        coef, settled = (scale, False) if _separable(x / scale, y) else _by_glm(x[:, 0] - x[:, 1], y == 0, link)
    else:
        coef, settled = _by_scoring(x, y, link, start)
        # where the maximum lies at infinity, some choice has become certain on the way
        certain = log_choice_prob(x, coef, link).max() > -_CERTAIN
        settled = settled and not (certain and _separable(x / scale, y))
    separated = not settled or not np.all(np.abs(coef) * scale < _LARGEST_EFFECT)
    if separated:
        coef = _with_prior(x, y, link, scale)
    return ChoiceFit(coef, _log_likelihood(x, y, coef, link), separated)


def log_choice_prob(features: ArrayLike, coef: ArrayLike, link: Link = "logit") -> np.ndarray:
    """ln p(option) for every trial: ln Phi(+-z) with z the difference of utilities, or ln softmax of the utilities.

    `features` (trials, options, features); `coef` (features), or a row for each trial. Exact in the tails.
    """
    features = np.asarray(features, dtype=float)
    coef = np.asarray(coef, dtype=float)
    utility = features @ coef if coef.ndim == 1 else (features * coef[:, None]).sum(-1)
    _check_link(link, utility.shape[1])
    if link == "logit":
        return log_softmax(utility, axis=1)
    z = utility[:, 0] - utility[:, 1]
    return log_ndtr(np.stack([z, -z], axis=1))


def log_choice_slope(features: np.ndarray, coef: np.ndarray, link: Link = "logit") -> np.ndarray:
    """d ln p(option) / d coef, (trials, options, features): x - E x (logit), or +-phi/Phi times x1 - x2 (probit)."""
    return _slope(features, coef, link, log_choice_prob(features, coef, link))


def _slope(features: np.ndarray, coef: np.ndarray, link: Link, log_prob: np.ndarray) -> np.ndarray:
    if link == "logit":
        return features - np.einsum("to,tof->tf", np.exp(log_prob), features)[:, None]
    difference = features[:, 0] - features[:, 1]
    log_density = -0.5 * ((difference @ coef) ** 2 + np.log(2 * np.pi))
    ratio = np.exp(log_density[:, None] - log_prob) * np.array([1.0, -1.0])
    return ratio[..., None] * difference[:, None]


def _log_likelihood(x: np.ndarray, y: np.ndarray, coef: np.ndarray, link: Link) -> float:
    return float(log_choice_prob(x, coef, link)[np.arange(len(y)), y].sum())


def _by_glm(design: np.ndarray, first: np.ndarray, link: Link) -> tuple[np.ndarray, bool]:
    import statsmodels.api as sm  # takes a second to load, and only fits need it

    links = {"probit": sm.families.links.Probit, "logit": sm.families.links.Logit}
    with np.errstate(all="ignore"):  # overflow on the way
        try:
            fit = sm.GLM(first.astype(float), design, family=sm.families.Binomial(links[link]())).fit()
        except (np.linalg.LinAlgError, ValueError):
            return np.zeros(design.shape[1]), False
    coef = np.asarray(fit.params)
    return coef, bool(fit.converged and np.isfinite(coef).all())


def _separable(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether there are coefficients b with (x_chosen - x_other) b >= 0 in all trials, and > 0 in one.

    Then the likelihood grows without end along b (Albert and Anderson 1984, Biometrika 71). A linear programme finds b.
    """
    chosen = np.take_along_axis(x, y[:, None, None], axis=1)
    others = (chosen - x)[np.arange(x.shape[1]) != y[:, None]]
    program = linprog(-others.sum(0), A_ub=-others, b_ub=np.zeros(len(others)), bounds=(-1.0, 1.0))
    return bool(program.status == 0 and -program.fun > _SEPARATES)


def _by_scoring(
    x: np.ndarray, y: np.ndarray, link: Link, start: ArrayLike | None = None, turns: int = 60
) -> tuple[np.ndarray, bool]:
    """Fisher scoring: the gradient over the information sum_t E[slope slope^T], halved where the likelihood falls."""
    row = np.arange(len(y))
    coef = np.zeros(x.shape[2]) if start is None else np.asarray(start, dtype=float)
    log_prob = log_choice_prob(x, coef, link)
    for _ in range(turns):
        value, slope = log_prob[row, y].sum(), _slope(x, coef, link, log_prob)
        information = np.einsum("tof,tog->fg", np.exp(log_prob)[..., None] * slope, slope)
        step = np.linalg.pinv(information) @ slope[row, y].sum(0)
        for _halving in range(40):
            log_prob = log_choice_prob(x, coef + step, link)
            gain = log_prob[row, y].sum() - value
            if gain >= 0:
                break
            step = step / 2
        coef = coef + step if gain >= 0 else coef
        if gain < 1e-9:
            return coef, True
    return coef, False


def _with_prior(x: np.ndarray, y: np.ndarray, link: Link, scale: np.ndarray) -> np.ndarray:
    def loss(effect: np.ndarray) -> tuple[float, np.ndarray]:
        value = -_log_likelihood(x, y, effect / scale, link) + 0.5 * np.sum((effect / _PRIOR_SD) ** 2)
        slope = log_choice_slope(x, effect / scale, link)[np.arange(len(y)), y].sum(0) / scale
        return value, effect / _PRIOR_SD**2 - slope

    return minimize(loss, np.zeros(x.shape[2]), jac=True, method="BFGS").x / scale


def _checked(features: ArrayLike, choice: ArrayLike, link: Link) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(features, dtype=float), np.asarray(choice)
    if x.ndim != 3 or x.shape[1] < 2 or 0 in x.shape:
        raise ValueError(f"features has shape {x.shape}: pass (trials, options, features) with two options or more.")
    if not np.isfinite(x).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(x))[0])
        raise ValueError(f"features at {where} is {x[where]}: features must be finite.")
    if y.shape != x.shape[:1] or y.dtype.kind not in "iu" or (y < 0).any() or (y >= x.shape[1]).any():
        raise ValueError(
            f"choice has shape {y.shape} and dtype {y.dtype}: one index from 0 to {x.shape[1] - 1} for each of the "
            f"{len(x)} trials."
        )
    _check_link(link, x.shape[1])
    return x, y


def _check_link(link: Link, options: int) -> None:
    if link not in get_args(Link):
        raise ValueError(f"link = {link!r}: use 'probit' or 'logit'.")
    if link == "probit" and options > 2:
        raise ValueError(f"link = 'probit' with {options} options: it is there for two; use link='logit'.")
