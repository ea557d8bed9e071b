"""What happens as the temperature goes to zero, and which biases an input of the circuit can stand for."""

from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import log_softmax, logsumexp, softmax

from policychord import Problem, gate, primitive_cost, solve

from .problems import SHAPES, TheorySettings, exact, pick, random_problems, random_weights

SMALL_STEP = 1e-3  # tau, of Frank-Wolfe along time
COLD = (1e-1, 1e-2, 1e-3)  # temperatures of the flow to compare it with, the coldest last
FOLLOWED = 24  # problems
LONG_ENOUGH = 5.0  # tau
AT_A_VERTEX = 0.99  # a weight above it has left nearly nothing for the others


class Cooled(NamedTuple):
    """The gate as it cools: at random weights, and at its own optimum."""

    corner: float  # |S(w) - e_i| at a temperature of 1e-3 of the gap between the two lowest entries of the gradient
    blunt: float  # the same at that gap
    at_vertex: int  # problems of which one primitive has nearly all weight at the optimum, eps 1e-4
    tried: int


class Limits(NamedTuple):
    """As the temperature falls; and the bias as an input."""

    cooled: Cooled
    beside: dict[str, np.ndarray]  # by shape, (problem, temperature): largest distance from Frank-Wolfe, t <= 5
    any_prior: dict[str, float]  # by shape: |w - w of the prior| after the best change of s
    in_range: dict[str, float]  # the same for priors with ln prior in the range of Pi^T


def check_limits(settings: TheorySettings) -> Limits:
    """All of it on the study's random problems."""
    batches = random_problems(settings.seed, settings.problems)
    points = [random_weights(settings.seed + k, batch) for k, batch in enumerate(batches)]
    return Limits(
        cool(batches, points),
        {_shape(b): beside_frank_wolfe(pick(b, np.s_[: FOLLOWED // len(SHAPES)]), COLD) for b in batches},
        {_shape(batch): move_prior(batch) for batch in batches},
        {_shape(batch): move_prior(with_prior_in_range(batch, settings.seed)) for batch in batches},
    )


def _shape(batch: Problem) -> str:
    _, d, n = batch.pi.shape
    return f"{d} actions, {n} primitives"


def cool(batches: list[Problem], points: list[np.ndarray], share: float = 1e-3, eps: float = 1e-4) -> Cooled:
    """The gate at a share of the gap between the two lowest entries of the gradient, and its optimum at eps."""
    near: list[float] = []
    far: list[float] = []
    at_vertex: list[np.ndarray] = []
    for batch, w in zip(batches, points, strict=True):
        slope = np.asarray(primitive_cost(batch, w))
        lowest, second = np.sort(slope, axis=-1)[:, :2].T
        vertex = np.eye(slope.shape[-1])[np.argmin(slope, axis=-1)]
        for part, distance in ((share, near), (1.0, far)):
            response = gate(batch._replace(eps=part * (second - lowest)), w)
            distance.append(float(np.linalg.norm(response - vertex, axis=-1).max()))
        optimum = solve(batch._replace(eps=np.full_like(batch.eps, eps))).weights
        at_vertex.append(np.asarray(optimum).max(-1) > AT_A_VERTEX)
    ends = np.concatenate(at_vertex)
    return Cooled(max(near), max(far), int(ends.sum()), ends.size)


def frank_wolfe(posed: Problem, start: np.ndarray, times: np.ndarray, step: float = SMALL_STEP) -> np.ndarray:
    """w' = e_i(w) - w in small steps, i the lowest entry of the gradient: (problem, time, primitive)."""
    w, path, vertices = start.copy(), [], np.eye(start.shape[-1])
    stored = np.rint(times / step).astype(int)
    for k in range(int(stored[-1]) + 1):
        if k in stored:
            path.append(w.copy())
        w += step * (vertices[np.argmin(_slope(posed, w), axis=-1)] - w)
    return np.stack(path, axis=1)


def beside_frank_wolfe(batch: Problem, temperatures: tuple[float, ...]) -> np.ndarray:
    """For each problem and temperature, the flow's largest distance from Frank-Wolfe, both from equal weights."""
    n = batch.log_prior.shape[-1]
    start, times = np.full((batch.eps.size, n), 1.0 / n), np.linspace(0.0, LONG_ENOUGH, 51)
    straight = frank_wolfe(batch, start, times)
    off = np.empty((batch.eps.size, len(temperatures)))
    for i in range(batch.eps.size):
        posed = pick(batch, np.s_[i : i + 1])
        for k, eps in enumerate(temperatures):
            path = _cold_flow(posed._replace(eps=np.array([eps])), start[i], times)
            off[i, k] = np.linalg.norm(path - straight[i], axis=-1).max()
    return off


def _cold_flow(posed: Problem, start: np.ndarray, times: np.ndarray) -> np.ndarray:
    def velocity(t: float, w: np.ndarray) -> np.ndarray:
        return softmax(posed.log_prior[0] - _slope(posed, w[None])[0] / posed.eps[0]) - w

    return solve_ivp(velocity, (times[0], times[-1]), start, "LSODA", t_eval=times, rtol=1e-8, atol=1e-10).y.T


def _slope(posed: Problem, w: np.ndarray) -> np.ndarray:
    """h = Pi^T (ln(Pi w) + s), by NumPy alone."""
    mixed = np.maximum(np.einsum("bda,ba->bd", posed.pi, w), 1e-300)
    return np.einsum("bda,bd->ba", posed.pi, np.log(mixed) + posed.action_cost)


# ------------------------------------------------------------------ a bias as an input


def with_prior_in_range(batch: Problem, seed: int) -> Problem:
    """The same problems with priors whose logarithm lies in the range of Pi^T: softmax(Pi^T x), x drawn at random."""
    x = np.random.default_rng((seed, 5)).normal(scale=2.0, size=batch.pi.shape[:2])
    return batch._replace(log_prior=log_softmax(np.einsum("bda,bd->ba", batch.pi, x), axis=-1))


def move_prior(batch: Problem) -> float:
    """The largest |w - w of the prior| where the best change of s stands for the prior.

    Whatever s is, the weights of a uniform prior are softmax(Pi^T x) for some x, and every x can be had. So the best
    change is min_x KL(w, softmax(Pi^T x)), w those of the prior: convex in x. It is exact where ln prior lies in the
    range of Pi^T.
    """
    wanted = exact(batch)
    x = np.stack([_closest(pi, w) for pi, w in zip(batch.pi, wanted, strict=True)])
    near = softmax(np.einsum("bda,bd->ba", batch.pi, x), axis=-1)
    mixed = np.einsum("bda,ba->bd", batch.pi, near)
    uniform = np.full_like(batch.log_prior, -np.log(near.shape[-1]))
    # the s at which these weights are the optimum: Pi^T (ln(Pi w) + s) = -eps Pi^T x + a constant
    as_input = batch._replace(action_cost=-batch.eps[:, None] * x - np.log(mixed), log_prior=uniform)
    return float(np.abs(exact(as_input) - wanted).max())


def _closest(pi: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """argmin_x logsumexp(Pi^T x) - w.Pi^T x by Newton's method, from the least squares of Pi^T x = ln w."""
    x = np.linalg.lstsq(pi.T, np.log(wanted), rcond=None)[0]

    def value(x: np.ndarray) -> float:
        return float(logsumexp(pi.T @ x) - wanted @ (pi.T @ x))

    for _ in range(100):
        w = softmax(pi.T @ x)
        slope = pi @ (w - wanted)
        bend = (pi * w) @ pi.T - np.outer(pi @ w, pi @ w)
        step = -np.linalg.lstsq(bend, slope, rcond=1e-12)[0]
        size = next((s for s in 0.5 ** np.arange(30) if value(x + s * step) <= value(x)), 0.0)
        if size == 0.0 or np.abs(step).max() * size < 1e-13:
            break
        x = x + size * step
    return x
