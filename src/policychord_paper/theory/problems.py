"""Problems that are drawn at random, parts of batches, and optima to all digits."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from policychord import Outcome, Problem, problem, solve

# Few shapes, many problems: every shape costs a compilation.
SHAPES = ((2, 3), (12, 3), (40, 6))  # (actions, primitives)


def pick(batch: Problem, index: Any) -> Problem:
    """The same index of every field: one problem, some of them, or another axis."""
    return Problem(*(np.asarray(field)[index] for field in batch))


def per_shape(count: int) -> int:
    """How many problems of each shape make at least `count` of them."""
    return -(-count // len(SHAPES))


def join(batches: Sequence[Problem]) -> Problem:
    """Problems with equally many primitives as one batch; actions of probability zero fill them up to one shape."""
    most = max(batch.pi.shape[1] for batch in batches)
    filled = []
    for batch in batches:
        more = most - batch.pi.shape[1]
        pi = np.pad(batch.pi, ((0, 0), (0, more), (0, 0)))
        filled.append(batch._replace(pi=pi, action_cost=np.pad(batch.action_cost, ((0, 0), (0, more)))))
    return Problem(*(np.concatenate(fields) for fields in zip(*filled, strict=True)))


def random_problems(seed: int, count: int) -> list[Problem]:
    """Batches of random problems, one batch a shape: peaked and flat primitives, hot and cold, half with a prior."""
    rng = np.random.default_rng(seed)
    return [_random_batch(rng, per_shape(count), d, n) for d, n in SHAPES]


def _random_batch(rng: np.random.Generator, batch: int, d: int, n: int) -> Problem:
    spread = 10 ** rng.uniform(-0.5, 1.0, (batch, 1, 1))
    # a floor under the primitives: the paper assumes full support
    pi = rng.gamma(spread, size=(batch, d, n)) + 1e-3
    uniform, prior = np.full((batch, n), 1.0 / n), rng.dirichlet(np.full(n, 2.0), batch)
    return problem(
        pi=pi / pi.sum(axis=1, keepdims=True),
        action_cost=rng.normal(scale=2.0, size=(batch, d)),
        eps=10 ** rng.uniform(-1.5, 0.5, batch),
        prior=np.where(rng.random((batch, 1)) < 0.5, uniform, prior),
    )


def random_weights(seed: int, like: Problem) -> np.ndarray:
    """Random points of the simplex, one for each problem."""
    batch, n = like.log_prior.shape
    return np.random.default_rng(seed).dirichlet(np.ones(n), batch)


EXACT = 1e-20  # a gap at which the optimum is known to all digits that matter here
EXACT_ENOUGH = 1e-14  # what must be certified where rounding hides smaller gaps: recorded costs reach 2e4


def exact(batch: Problem, tol: float = EXACT) -> np.ndarray:
    """The optimum, to `tol` or, where rounding hides whether better weights exist, to the last gap that shows."""
    with jax.enable_x64(True):
        optima = jax.jit(solve)(batch, tol)  # traced, nothing is raised: the outcome says how it ended
    reached = (optima.outcome == Outcome.CONVERGED) | (optima.outcome == Outcome.ROUNDING_LIMIT)
    if not np.all(reached & (optima.certificate.gap <= EXACT_ENOUGH)):
        raise ValueError(
            f"an optimum is certified to {optima.certificate.gap.max():.1e} only: {EXACT_ENOUGH:g} is needed."
        )
    return np.asarray(optima.weights)
