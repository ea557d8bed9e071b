"""The composed policy: all trials as one batch of gating problems for the general solver."""

from typing import NamedTuple

import numpy as np

from ...core.equilibrium import ConvergenceError, solve
from ...core.objective import problem

# ||w - w*||_1 <= sqrt(2 gap/eps), so a gap of 1e-22 places every weight to 1e-9 or better at eps = 1e-3 and above
GAP = 1e-22
PLAIN_GAP = (
    1e-12  # where rounding does not allow as much: very cold, or very sure; the certificate says what was reached
)
LEAST = 1e-300  # no choice is impossible, only unheard of (as in `models.Reference`)


class Composition(NamedTuple):
    """Weights of the primitives at every trial and the policy they make."""

    weights: np.ndarray  # (trials, primitives)
    log_prob: np.ndarray  # (trials, arms)
    distance: np.ndarray  # (trials) certificate: |w - w*|_1 is at most this


def compose(pi: np.ndarray, log_q: np.ndarray, eps: float, prior=None) -> Composition:
    """min_w KL(Pi w, q) + eps KL(w, prior) for every trial. State terms cancel (q(x|.) = p(x|.)), so s = -ln q."""
    problems = problem(pi=pi, action_cost=-np.maximum(log_q, np.log(LEAST)), eps=eps, prior=prior)
    try:
        best = solve(problems, tol=GAP)
    except ConvergenceError:
        best = solve(problems, tol=PLAIN_GAP)
    weights, distance = np.asarray(best.weights), np.asarray(best.certificate.distance)
    # Both arms by the same sum, never as 1 - p: a primitive that excludes an arm leaves it to the others.
    prob = np.einsum("tan,tn->ta", pi, weights)
    return Composition(weights, np.log(np.maximum(prob, LEAST)), distance)


def slope(pi: np.ndarray, weights: np.ndarray, choice: np.ndarray, eps: float) -> np.ndarray:
    """d ln p(choice) / d ln q, (trials, arms), by the implicit derivative of the optimum.

    With S = diag(sqrt w) and K = Pi^T diag(1/p) Pi, dw solves (S K S + eps) S^-1 dw = S Pi^T d ln q, less what would
    change the sum of the weights.
    """
    root = np.sqrt(weights)
    prob = np.maximum(np.einsum("tan,tn->ta", pi, weights), LEAST)
    scaled = pi * root[:, None]
    matrix = np.einsum("tan,tam->tnm", scaled, scaled / prob[..., None]) + eps * np.eye(pi.shape[-1])
    row = np.arange(len(choice))
    asked = scaled[row, choice] / prob[row, choice, None]
    answer = np.linalg.solve(matrix, np.stack([asked, root], axis=-1))
    moved, along = answer[..., 0], answer[..., 1]
    share = (root * moved).sum(1) / (root * along).sum(1)
    return np.einsum("tan,tn->ta", scaled, moved - share[:, None] * along)
