"""Problems with closed forms, followed by NumPy alone: this library's solver, flow and gate have no part in them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, softmax

from policychord import Problem, problem

from .flows import Certificates, Paths, Starts
from .identities import OtherComplexity
from .problems import IndependentOptimum, TheorySettings, minimise_with_entropy, per_shape

EVERY, STEPS = 0.1, 4  # tau between stored moments, and steps of Runge and Kutta between them
SMALLEST = 1e-300
Velocity = Callable[[np.ndarray], np.ndarray]


class Hand(NamedTuple):
    """Disjoint primitives, Pi = I: F = sum w (ln w + c), V = F + eps KL(w, prior), one row a problem."""

    cost: np.ndarray
    eps: np.ndarray  # (problem, 1)
    log_prior: np.ndarray

    @classmethod
    def of(cls, batch: Problem) -> "Hand":
        return cls(np.asarray(batch.action_cost), np.asarray(batch.eps)[:, None], np.asarray(batch.log_prior))

    def optimum(self) -> np.ndarray:
        """w* = softmax((eps ln prior - c) / (1 + eps))."""
        w: np.ndarray = softmax((self.eps * self.log_prior - self.cost) / (1 + self.eps), axis=-1)
        return w

    def energy(self, w: np.ndarray) -> np.ndarray:
        log_w = np.log(np.maximum(w, SMALLEST))
        return np.sum(w * (log_w + self.cost + self.eps * (log_w - self.log_prior)), axis=-1)

    def log_gate(self, w: np.ndarray) -> np.ndarray:
        log_s: np.ndarray = log_softmax(
            self.log_prior - (np.log(np.maximum(w, SMALLEST)) + self.cost) / self.eps, axis=-1
        )
        return log_s

    def velocity(self, w: np.ndarray) -> np.ndarray:
        return np.exp(self.log_gate(w)) - w


class ByHand(NamedTuple):
    """The evidence of the statements on paths, certificates and the dissipation."""

    paths: list[Paths]
    judged_optima: list[np.ndarray]
    starts: list[Starts]
    certificates: Certificates
    identities: dict[str, float]


def diagonal(seed: int, count: int) -> Problem:
    """Random problems with disjoint primitives."""
    rng = np.random.default_rng((seed, 31))
    return problem(
        pi=np.broadcast_to(np.eye(3), (count, 3, 3)), action_cost=rng.normal(size=(count, 3)),
        eps=10 ** rng.uniform(-1.0, 0.5, count), prior=rng.dirichlet(np.full(3, 2.0), count),
    )  # fmt: skip


def closed_form(settings: TheorySettings) -> ByHand:
    """Flows of problems with disjoint primitives, and the statements along them."""
    batch = diagonal(settings.seed, settings.problems)
    hand, rng = Hand.of(batch), np.random.default_rng((settings.seed, 32))
    best, w = hand.optimum(), rng.dirichlet(np.ones(3), settings.problems)
    times, weights = follow_by_hand(hand.velocity, w, 3 * settings.horizon)
    along = Hand(*(field[:, None] for field in hand))
    paths = Paths(batch, times, weights, along.energy(weights), best, hand.energy(best), np.empty(0))
    near = 0.999 * best + 0.001 * w
    off, above, below, fall = map(np.concatenate, zip(*(_certify(hand, at, best) for at in (w, near)), strict=True))
    certificates = Certificates(off, above, below, fall, _fall(hand, best))
    rate = hand.energy(w + 1e-30j * hand.velocity(w)).imag / 1e-30  # a complex step: exact to rounding
    error = float((np.abs(rate + _fall(hand, w)) / (np.abs(rate) + 1e-4)).max())
    few = Hand(*(np.repeat(field[:4], 3 + settings.starts, axis=0) for field in hand))
    inside = rng.dirichlet(np.ones(3), (4, settings.starts)) * (
        np.arange(3) != rng.integers(3, size=(4, settings.starts, 1))
    )
    vertices = np.broadcast_to(np.eye(3), (4, 3, 3))
    begin = np.concatenate([vertices, inside / inside.sum(-1, keepdims=True)], axis=1).reshape(-1, 3)
    ends = follow_by_hand(few.velocity, begin, 40.0)[1][:, -1]
    starts = Starts(np.abs(ends - few.optimum()).max(-1), 12)
    judged = best[: per_shape(settings.judged)]
    return ByHand([paths], [judged], [starts], certificates, {"dissipation": error})


def _certify(hand: Hand, w: np.ndarray, best: np.ndarray) -> tuple[np.ndarray, ...]:
    eps = hand.eps[:, 0]
    above = eps * np.sum(w * (np.log(w) - hand.log_gate(w)), axis=-1)
    below = eps * np.sum(w * np.log(w / best), axis=-1)
    return hand.energy(w) - hand.energy(best), above, below, _fall(hand, w)


def _fall(hand: Hand, w: np.ndarray) -> np.ndarray:
    log_s = hand.log_gate(w)
    return hand.eps[:, 0] * np.sum((w - np.exp(log_s)) * (np.log(w) - log_s), axis=-1)


def follow_by_hand(velocity: Velocity, start: np.ndarray, end: float) -> tuple[np.ndarray, np.ndarray]:
    """w' = velocity(w) by the classic method of Runge and Kutta: times, and weights (problem, time, primitive)."""
    times, w, h = np.arange(round(end / EVERY) + 1) * EVERY, start.copy(), EVERY / STEPS
    path = [w]
    for _ in times[1:]:
        for _ in range(STEPS):
            a = velocity(w)
            b = velocity(w + h / 2 * a)
            c = velocity(w + h / 2 * b)
            w = w + h / 6 * (a + 2 * b + 2 * c + velocity(w + h * c))
        path.append(w)
    return times, np.stack(path, axis=1)


# ------------------------------------------------------------------- separable complexities

# f and its slope: F = sign sum_a (k_a f(w_a)) + c.w is convex with sign 1, and concave with sign -1
SEPARABLE: dict[str, tuple[Velocity, Velocity]] = {
    "squares": (lambda w: w**2 / 2, lambda w: w),
    "cubes": (lambda w: w**3 / 3, lambda w: w**2),
    "fourth powers": (lambda w: w**4 / 4, lambda w: w**3),
    "exponentials": (np.exp, np.exp),
    "entropies": (lambda w: w * np.log(np.maximum(w, SMALLEST)), lambda w: 1 + np.log(np.maximum(w, SMALLEST))),
}


def check_separable(settings: TheorySettings, sign: float) -> dict[str, OtherComplexity]:
    """The statements of T13 for separable complexities, each with problems of its own."""
    return {name: _check_one(*parts, sign, settings, k) for k, (name, parts) in enumerate(SEPARABLE.items())}


def _check_one(f: Velocity, slope: Velocity, sign: float, settings: TheorySettings, number: int) -> OtherComplexity:
    rng, count = np.random.default_rng((settings.seed, 33, number)), settings.others
    k, c = sign * rng.uniform(1.0, 6.0, (count, 4)), rng.normal(size=(count, 4))
    eps, log_prior = 10 ** rng.uniform(-0.5, 0.5, (count, 1)), np.log(rng.dirichlet(np.full(4, 2.0), count))
    w = rng.dirichlet(np.ones(4), count)

    def energy(w: np.ndarray, at: tuple[np.ndarray, ...] = (k, c, eps, log_prior)) -> np.ndarray:
        k, c, eps, log_prior = at
        return np.sum(k * f(w) + c * w + eps * w * (np.log(np.maximum(w, SMALLEST)) - log_prior), axis=-1)

    def log_gate(w: np.ndarray) -> np.ndarray:
        log_s: np.ndarray = log_softmax(log_prior - (k * slope(w) + c) / eps, axis=-1)
        return log_s

    def fall(w: np.ndarray) -> np.ndarray:
        return eps[:, 0] * np.sum((w - np.exp(log_gate(w))) * (np.log(w) - log_gate(w)), axis=-1)

    times, path = follow_by_hand(lambda w: np.exp(log_gate(w)) - w, w, 2 * settings.horizon)

    def minimise(i: int) -> IndependentOptimum:
        return minimise_with_entropy(
            lambda w: float(k[i] @ f(w) + c[i] @ w), lambda w: k[i] * slope(w) + c[i], float(eps[i, 0]), log_prior[i]
        )

    judged = list(map(minimise, range(count)))
    best = np.stack([optimum.weights for optimum in judged])
    gap = energy(path, tuple(a[:, None] for a in (k, c, eps, log_prior))) - energy(best)[:, None]
    early = times <= settings.horizon
    first = np.sqrt(2.0 / eps * np.maximum(gap[:, :1], 0.0))
    distance = np.linalg.norm(path - best[:, None], axis=-1)
    rate = energy(w + 1e-30j * (np.exp(log_gate(w)) - w)).imag / 1e-30
    above = eps[:, 0] * np.sum(w * (np.log(w) - log_gate(w)), axis=-1)
    below = eps[:, 0] * np.sum(w * np.log(w / best), axis=-1)
    return OtherComplexity(
        count, sum_off=float(np.abs(path[:, early].sum(-1) - 1.0).max()), smallest=float(path[:, early].min()),
        end=float(np.abs(path[:, -1] - best).max()), judge=_worst(judged),
        dissipation=float((np.abs(rate + fall(w)) / (np.abs(rate) + 1e-4)).max()),
        energy=float((gap - np.exp(-times) * gap[:, :1])[:, early][:, 1:].max()),
        distance=float((distance - first * np.exp(-times / 2))[:, early].max()),
        above=float((gap[:, 0] - above).max()), below=float((below - gap[:, 0]).max()),
    )  # fmt: skip


def _worst(judged: list[IndependentOptimum]) -> float:
    return max(optimum.residual for optimum in judged)
