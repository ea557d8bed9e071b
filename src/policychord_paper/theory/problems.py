"""The settings of the theory study, the problems that it draws at random, and their optima: to all digits, and by
generic methods, which know nothing of this library's solver."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from scipy.optimize import minimize, root
from scipy.special import log_softmax, softmax

from policychord import Outcome, Problem, problem, solve

# Few shapes, many problems: every shape costs a compilation.
SHAPES = ((2, 3), (12, 3), (40, 6))  # (actions, primitives)


class TheorySettings(BaseModel):
    """Sizes and seed of the theory study; a misspelt setting is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = Field(default=0, ge=0, description="of all random draws")
    problems: int = Field(default=240, ge=3, description="random problems for the statements about the flow")
    judged: int = Field(default=60, ge=1, description="of these, problems given to an independent optimiser")
    circuits: int = Field(default=24, ge=1, description="recorded problems of each study for the circuit")
    stability_draws: int = Field(default=5000, ge=1, description="random circuits for the stable rule")
    others: int = Field(default=40, ge=1, description="random problems of each other complexity")
    starts: int = Field(default=50, ge=1, description="random points that the flow of a problem starts from")
    horizon: float = Field(default=20.0, gt=0, description="length of the paths, in units of tau")


def study_settings(*, quick: bool = True, seed: int = 0) -> TheorySettings:
    """The rules ask for a fixed number of problems, so quick and full are the same."""
    return TheorySettings(seed=seed)


def pick(batch: Problem, index: Any) -> Problem:
    """The same index of every field: one problem, some of them, or another axis."""
    return Problem(*(np.asarray(field)[index] for field in batch))


def per_shape(count: int) -> int:
    """How many problems of each shape make at least `count` of them."""
    return -(-count // len(SHAPES))


def join(batches: Sequence[Problem]) -> Problem:
    """Problems with equally many primitives as one batch; actions of probability zero fill them up to one shape."""
    most = max(batch.pi.shape[1] for batch in batches)
    filled = [
        batch._replace(
            pi=np.pad(batch.pi, ((0, 0), (0, most - batch.pi.shape[1]), (0, 0))),
            action_cost=np.pad(batch.action_cost, ((0, 0), (0, most - batch.pi.shape[1]))),
        )
        for batch in batches
    ]
    return Problem(*(np.concatenate(fields) for fields in zip(*filled, strict=True)))


def random_problems(seed: int, count: int) -> list[Problem]:
    """Batches of random problems, one batch a shape: peaked and flat primitives, hot and cold, half with a prior."""
    rng = np.random.default_rng(seed)
    return [_draw_batch(rng, per_shape(count), d, n) for d, n in SHAPES]


def _draw_batch(rng: np.random.Generator, batch: int, d: int, n: int) -> Problem:
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


Value = Callable[[np.ndarray], float]
Slope = Callable[[np.ndarray], np.ndarray]


class IndependentOptimum(NamedTuple):
    """An optimum of an independent method, and how far it is from being one: |w - softmax(-g/eps + ln prior)|."""

    weights: np.ndarray
    residual: float


def minimise_on_simplex(value: Value, slope: Slope, start: np.ndarray) -> np.ndarray:
    """Minimise a smooth function over the probability simplex."""
    total = {"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": np.ones_like}
    return minimize(
        value, start, jac=slope, method="SLSQP", bounds=[(1e-12, 1.0)] * start.size, constraints=total,
        options={"ftol": 1e-16, "maxiter": 1000},
    ).x  # fmt: skip


def minimise_with_entropy(value: Value, slope: Slope, eps: float, log_prior: np.ndarray) -> IndependentOptimum:
    """min F(w) + eps KL(w, prior) over the simplex: sequential quadratic programming, then a root of the conditions.

    The energy alone cannot tell points apart that are closer than the root of its rounding, some 1e-8. At the optimum
    slope + eps ln(w/prior) is the same for all, which is solved for in ln w. The residual needs no method at
    all: it vanishes at the optimum and nowhere else.
    """

    def price(log_w: np.ndarray) -> np.ndarray:
        return slope(np.exp(log_w)) + eps * (log_w - log_prior)

    def differences(z: np.ndarray) -> np.ndarray:
        prices = price(log_softmax(np.append(z, 0.0)))
        return prices[:-1] - prices[-1]

    near = minimise_on_simplex(
        lambda w: value(w) + eps * float(w @ (np.log(w) - log_prior)), lambda w: price(np.log(w)), np.exp(log_prior)
    )
    log_w = np.log(near / near.sum())
    weights = softmax(np.append(root(differences, log_w[:-1] - log_w[-1], tol=1e-14).x, 0.0))
    return IndependentOptimum(weights, float(np.abs(weights - softmax(log_prior - slope(weights) / eps)).max()))


def _minimise_energy(batch: Problem, index: int) -> IndependentOptimum:
    """The weights of least energy of one problem of a batch."""
    pi, s, eps, log_prior = map(np.asarray, pick(batch, index))
    return minimise_with_entropy(
        lambda w: float((pi @ w) @ (np.log(pi @ w) + s)), lambda w: pi.T @ (np.log(pi @ w) + s), float(eps), log_prior
    )


def judge_optima(settings: TheorySettings) -> list[np.ndarray]:
    """For each shape, the optima of its first problems by an independent optimiser."""
    share = per_shape(settings.judged)
    return [
        np.stack([_minimise_energy(batch, i).weights for i in range(min(share, batch.eps.size))])
        for batch in random_problems(settings.seed, settings.problems)
    ]
