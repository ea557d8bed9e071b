"""What is posed, and generic methods that solve it without this library's solver, flow or circuit.

Problems are random ones; those that were recorded in the paper's three studies are handed over.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import minimize, root
from scipy.special import softmax

from ...core.circuit import TimeScales
from ...core.objective import Problem, complexity, energy, gate, problem

# Few shapes, many problems: every shape costs a compilation.
SHAPES = ((2, 3), (12, 3), (40, 6))  # (actions, primitives)
STATED = 10.0  # "faster" in the paper's ordering of the circuit's layers is measured at this ratio

Value = Callable[[np.ndarray], float]
Slope = Callable[[np.ndarray], np.ndarray]


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


def random_circuits(seed: int, count: int) -> Problem:
    """Problems for the stability of the circuit: nearly deterministic to flat primitives, eps from .001 to 10."""
    rng = np.random.default_rng(seed)
    pi = rng.gamma(10 ** rng.uniform(-1, 1, (count, 1, 1)), size=(count, 8, 4)) + 1e-9
    return problem(
        pi=pi / pi.sum(1, keepdims=True),
        action_cost=rng.normal(scale=2.0, size=(count, 8)),
        eps=10 ** rng.uniform(-3, 1, count),
    )


def illustration() -> Problem:
    """Three overlapping primitives on a line of 12 actions (one of SHAPES), none of which fits the cost alone."""
    actions = np.linspace(-1.0, 1.0, 12)
    log_pi = -((actions[:, None] - np.array([-0.65, 0.1, 0.6])) ** 2) / (2 * 0.3**2)
    pi = np.exp(log_pi)
    return problem(pi=pi / pi.sum(0), action_cost=4.0 * (np.abs(actions) - 0.35) ** 2 + 0.8 * actions, eps=0.3)


def simplex_grid(steps: int) -> np.ndarray:
    """Points of the simplex of three, evenly spread."""
    i, j = np.meshgrid(np.arange(steps + 1), np.arange(steps + 1), indexing="ij")
    inside = i + j <= steps
    return np.stack([i[inside], j[inside], steps - i[inside] - j[inside]], -1) / steps


def ring_of_starts() -> np.ndarray:
    """Just inside the border, so that no path hides another."""
    grid = simplex_grid(8)
    return grid[np.isclose(grid.min(-1), 0.0)] * 0.94 + 0.02


def minimise_energy(batch: Problem, index: int) -> np.ndarray:
    """The weights of least energy of one problem of a batch: a quasi-Newton method, then a root of its gradient.

    The energy alone cannot tell points apart that are closer than the root of its rounding, some 1e-8.
    """
    one = pick(batch, index)

    def weights(z: np.ndarray) -> np.ndarray:
        return softmax(np.append(z, 0.0))

    def slope(z: np.ndarray) -> np.ndarray:
        w = weights(z)
        price = one.pi.T @ (np.log(one.pi @ w) + one.action_cost) + one.eps * (np.log(w) - one.log_prior)
        return (w * (price - w @ price))[:-1]

    start = np.zeros(one.log_prior.size - 1)
    near = minimize(lambda z: float(energy(one, weights(z))), start, jac=slope, method="BFGS", options={"gtol": 1e-9})
    return weights(root(slope, near.x, tol=1e-14).x)


def minimise_complexity(batch: Problem, index: int) -> np.ndarray:
    """The weights of least complexity F, the limit of no temperature, by sequential quadratic programming."""
    one = pick(batch, index)
    n = one.log_prior.size
    return minimise_on_simplex(
        lambda w: float(complexity(one, w)),
        lambda w: (np.log(np.maximum(one.pi @ w, 1e-300)) + one.action_cost + 1.0) @ one.pi,
        np.full(n, 1.0 / n),
    )


def minimise_on_simplex(value: Value, slope: Slope, start: np.ndarray) -> np.ndarray:
    """Minimise a smooth function over the probability simplex."""
    found = minimize(
        value,
        start,
        jac=slope,
        method="SLSQP",
        bounds=[(1e-12, 1.0)] * start.size,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": lambda w: np.ones_like(w)},
        options={"ftol": 1e-16, "maxiter": 1000},
    )
    return found.x


def integrate_flow(one: Problem, start: np.ndarray, times: np.ndarray, **options: Any) -> np.ndarray:
    """The flow of one problem by `solve_ivp` with its options: (time, primitive)."""
    path = solve_ivp(lambda t, w: gate(one, w) - w, (times[0], times[-1]), start, t_eval=times, **options)
    return path.y.T


def integrate_circuit(one: Problem, scales: TimeScales, times: np.ndarray) -> np.ndarray:
    """Weights of the circuit, all 2d + 3n + 1 neurons as the paper writes them (m as its logarithm)."""
    pi, s, eps, log_prior = (np.asarray(field) for field in one)
    d, n = pi.shape
    hidden, gradient, middle, tau = (float(t) for t in scales)
    layers = [slice(low, high) for low, high in pairwise(np.cumsum([0, d, d, n, 1, n, n]).tolist())]

    def log_sum(y: np.ndarray) -> Any:  # ln sum exp, without the checks that would take most of the time here
        top = y.max()
        return top + np.log(np.exp(y - top).sum())

    def velocity(t: float, x: np.ndarray) -> np.ndarray:
        a, b, y, log_m, r, w = (x[layer] for layer in layers)
        return np.concatenate([
            (pi @ w - a) / hidden,
            (np.log(np.maximum(a, 1e-300)) - b) / hidden,
            (eps * (log_prior - y) - (b + s) @ pi) / gradient,
            np.expm1(log_sum(y) - log_m) / middle,
            (y - log_m - r) / middle,
            (np.exp(r) - w) / tau,
        ])  # fmt: skip

    w = np.full(n, 1.0 / n)
    a = pi @ w
    y = log_prior - (np.log(a) + s) @ pi / eps
    start = np.concatenate([a, np.log(a), y, [log_sum(y)], y - log_sum(y), w])
    path = solve_ivp(velocity, (times[0], times[-1]), start, "LSODA", t_eval=times, rtol=1e-7, atol=1e-10)
    return path.y[-n:].T


def geometric_ladder(ratio: float | np.ndarray, tau: float = 1.0) -> TimeScales:
    """The ordering as the paper states it: each layer `ratio` times faster than the next, whatever eps."""
    ratio = np.asarray(ratio, dtype=float)
    return TimeScales(tau / ratio**3, tau / ratio**2, tau / ratio, np.full_like(ratio, tau))
