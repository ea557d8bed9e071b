"""Two arms have a closed form up to one root: a contender, and in tests an independent check of the solver."""

import numpy as np
from scipy.special import logsumexp


def two_arm_weights(first: np.ndarray, log_odds: np.ndarray, eps: float, turns: int = 200) -> np.ndarray:
    """w = softmax(lambda a), lambda the root of  h = eps lambda + logit m(lambda) - ln q(1)/q(2),  m = sum w a.

    `first` (trials, primitives) is a, the probability of arm 1 under each primitive. h rises with a slope of at least
    eps, so the root lies between 0 and -h(0)/eps: Newton, and bisection where it would leave the bracket.
    """
    with np.errstate(divide="ignore"):
        log_first, log_second = np.log(first), np.log1p(-first)

    def parts(lam: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        log_w = lam[:, None] * first
        log_w = log_w - logsumexp(log_w, axis=1, keepdims=True)
        log_m, log_rest = logsumexp(log_w + log_first, axis=1), logsumexp(log_w + log_second, axis=1)
        w = np.exp(log_w)
        spread = (w * (first - np.exp(log_m)[:, None]) ** 2).sum(1)
        h = eps * lam + (log_m - log_rest) - log_odds
        return w, h, eps + spread * np.exp(-log_m - log_rest)

    lam = np.zeros(len(first))
    w, h, rise = parts(lam)
    low, high = np.minimum(0.0, -h / eps), np.maximum(0.0, -h / eps)
    for _ in range(turns):
        low, high = np.where(h < 0, lam, low), np.where(h > 0, lam, high)
        step = lam - h / rise
        inside = (step > low) & (step < high)
        new = np.where(h == 0, lam, np.where(inside, step, (low + high) / 2))
        if np.all(np.abs(new - lam) <= 1e-15 * (1.0 + np.abs(lam))):
            break
        lam = new
        w, h, rise = parts(lam)
    return w
