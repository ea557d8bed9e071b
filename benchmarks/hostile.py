"""Problems that are meant to break a certificate: each family is a way in which float64 could prove what is not true.

`adversarial` holds problems that are hard to solve. Here they are hard to judge: near ties that rounding decides, sums
that lose a little in the same direction at every action, weights that do not sum to one, actions that a product leaves
out. Shapes are few, because an outcome is read under `jit` and every shape is compiled.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from policychord import Entropy, Tsallis

from .adversarial import COSTS, PRIMITIVES, PRIORS, log_gamma, normalised

BATCH = 16
SHAPES = ((2, 4), (2, 30), (3, 6), (5, 12), (5, 100), (12, 40), (40, 60), (40, 250), (48, 60))  # (primitives, actions)
FEW_SHAPES = ((2, 4), (3, 30), (6, 40))  # of problems that are solved by JAX, where a shape costs seconds
LARGEST_SPREAD = 1e12
LARGEST_OFF = 0.99e-6  # how far `certify` lets a sum of weights be from one


class Case(NamedTuple):
    """The arguments of `problem` for some problems of one shape, and the weights to certify; None: solve them."""

    family: str
    given: dict[str, Any]
    weights: np.ndarray | None = None


def draw(family: str, seed: int, index: int) -> Case:
    """Batch number `index` of a family; it depends on nothing but the seed, the family and the number."""
    rng = np.random.default_rng([seed, index, *map(ord, family)])
    found = FAMILIES[family](rng, index)
    given, weights = found if isinstance(found, tuple) else (found, None)
    return Case(family, given, weights)


def _shape(index: int, shapes: tuple[tuple[int, int], ...] = SHAPES) -> tuple[int, int]:
    return shapes[index % len(shapes)]


def _powers(rng: np.random.Generator, low: float, high: float, *size: int) -> np.ndarray:
    return 10.0 ** rng.uniform(low, high, size)


# ---------------------------------------------------------------------- near ties at vertices


def near_ties(rng: np.random.Generator, index: int) -> dict[str, Any]:
    """Columns a relative 1e-8 to 1e-3 apart, costs to the limit that cancel between them; cost/eps up to 1e20."""
    n, d = _shape(index)
    pi = normalised(
        log_gamma(rng, BATCH, 1, d) * 0.3 + _powers(rng, -8, -3, BATCH, 1, 1) * rng.normal(size=(BATCH, d, n))
    )
    cost = rng.normal(size=(BATCH, d))
    if d > n:  # what tells the columns apart is removed, up to rounding
        cost = np.where(rng.random((BATCH, 1)) < 0.8, _unseen(pi, cost), cost)
    size = _powers(rng, 4, np.log10(LARGEST_SPREAD), BATCH, 1)
    cost *= 0.99 * size / np.ptp(cost, axis=-1, keepdims=True)
    return {"pi": pi, "action_cost": cost, "eps": _powers(rng, -9, -3, BATCH)}


def strong_priors(rng: np.random.Generator, index: int) -> dict[str, Any]:
    """Priors down to exp(-1e6) for what is by far the best, costs to the limit, cold: exponents of 1e20."""
    n, d = _shape(index)
    pi = PRIMITIVES[str(rng.choice(["dirichlet", "bumps", "sparse"]))](rng, BATCH, n, d)
    log_prior = -_powers(rng, 0, 6, BATCH, 1) * rng.random((BATCH, n))
    log_prior -= log_prior.max(-1, keepdims=True)
    log_prior -= np.log(np.exp(log_prior).sum(-1, keepdims=True))
    cost = rng.normal(size=(BATCH, d))
    if d > 1:
        cost *= 0.9 * _powers(rng, 6, np.log10(LARGEST_SPREAD), BATCH, 1) / np.ptp(cost, axis=-1, keepdims=True)
    return {"pi": pi, "action_cost": cost, "eps": _powers(rng, -9, -3, BATCH), "log_prior": log_prior}


def _unseen(pi: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """The part of a cost that every primitive expects to be the same."""
    apart = pi[..., 1:] - pi[..., :1]
    apart /= np.linalg.norm(apart, axis=-2, keepdims=True)
    basis, _ = np.linalg.qr(apart)
    for _ in range(3):
        cost = cost - (basis @ (np.swapaxes(basis, -1, -2) @ cost[..., None]))[..., 0]
    return cost


# ------------------------------------------------------------------------ systematic rounding


def lost_sums(rng: np.random.Generator, index: int) -> dict[str, Any]:
    """A large term first, many that vanish beside it, and one that takes it away: plain sums lose up to d u."""
    shapes = ((2, 500), (12, 700), (40, 250), (41, 240), (60, 160), (3, 3000))
    n, d = _shape(index, shapes)
    return _lost_sums(rng, n, d, blocks=int(rng.choice([1, 1, 2, 5])), batch=4)


def _lost_sums(rng: np.random.Generator, n: int, d: int, blocks: int, batch: int = 1) -> dict[str, Any]:
    """`blocks` times +C, tiny rows in the even columns, -C; rows 0.01 to 0.49 ulp of the partial sum that they meet."""
    size = np.where(rng.random(batch) < 0.25, 0.0, _powers(rng, 1, 7, batch))
    beside = np.where(size > 0.0, size / (2.0 * blocks), 0.5 * np.log(2.0 * blocks))
    share = rng.choice([0.45, 0.45, 0.3, 0.49, 0.1, 0.02], batch)
    tiny = np.minimum(share * np.spacing(beside), 0.5 / d)
    first = np.linspace(0, d, blocks + 1).astype(int)[:-1]
    last = np.append(first[1:], d) - 1
    large = np.zeros(d, bool)
    large[first] = large[last] = True
    even = np.arange(n) % 2 == 0
    pi, cost = np.zeros((batch, d, n)), np.ones((batch, d))
    for k in range(batch):
        rows = tiny[k] * (rng.uniform(0.8, 1.0, d) if rng.random() < 0.3 else np.ones(d))
        pi[k] = np.where(even, rows[:, None], 0.0)
        pi[k, large] = np.where(even, (1.0 - rows[~large].sum()) / large.sum(), 1.0 / large.sum())
        cost[k, first], cost[k, last] = size[k], -size[k]
    eps = np.where(size > 0.0, _powers(rng, -5, -3, batch), _powers(rng, -9, -7, batch))
    return {"pi": pi, "action_cost": cost if rng.random() < 0.8 else -cost, "eps": eps}


def alternating_sums(rng: np.random.Generator, index: int) -> dict[str, Any]:
    """Large and small terms in turn, whose roundings all point the same way."""
    shapes = ((2, 500), (12, 700), (40, 250), (41, 240), (60, 160), (3, 3000))
    n, d = _shape(index, shapes)
    return _alternating_sums(rng, n, d, batch=4)


def _alternating_sums(rng: np.random.Generator, n: int, d: int, batch: int = 1) -> dict[str, Any]:
    odd = np.arange(d) % 2 == 1
    even = np.arange(n) % 2 == 0
    size = _powers(rng, 0, 7, batch, 1)
    cost = np.where(np.arange(d) < d // 2, size, -size) * np.where(odd, 1.0, 1.0 + _powers(rng, -16, -8, batch, 1))
    tiny = _powers(rng, -17, -12, batch, 1, 1) / d
    rows = np.where(odd[:, None] & even, tiny, 1.0 / d)
    pi = np.broadcast_to(rows, (batch, d, n)).copy()
    return {"pi": pi / pi.sum(-2, keepdims=True), "action_cost": cost, "eps": _powers(rng, -9, -2, batch)}


def large(seed: int, index: int) -> Case:
    """One problem with up to 100,000 actions and up to 500 primitives, dense (up to 40) and wide in turn."""
    rng = np.random.default_rng([seed, index, 500])
    n = int(rng.choice([2, 5, 12, 40])) if index % 2 else int(rng.choice([41, 60, 128, 500]))
    d = min(int(10.0 ** rng.uniform(4.0, 5.0)), 20_000_000 // n)
    if index % 10 == 0:
        n, d = (500, 100_000) if index == 0 else (41, 100_000)
    kind = ("lost", "lost", "alternating", "random")[index // 2 % 4]
    if kind == "lost":
        given = _lost_sums(rng, n, d, blocks=int(rng.choice([1, 1, 2, 10])))
    elif kind == "alternating":
        given = _alternating_sums(rng, n, d)
    else:
        pi = rng.exponential(size=(1, d, n))
        given = {
            "pi": pi / pi.sum(-2, keepdims=True),
            "action_cost": rng.normal(size=(1, d)) * _powers(rng, -1, 5, 1, 1),
        }
        given["eps"] = _powers(rng, -5, 0, 1)
    return Case(f"large: {kind}, {'wide' if n > 40 else 'dense'}", given)


# ------------------------------------------------------------------- weights that are certified


def unnormalised(rng: np.random.Generator, index: int) -> tuple[dict[str, Any], np.ndarray]:
    """Weights whose sum is off by up to 1e-6 either way: vertices, near them, inside, with zeros and denormals."""
    n, d = _shape(index, SHAPES[:-3])
    apart = np.where(rng.random((BATCH, 1, 1)) < 0.5, 1.0, _powers(rng, -8, -3, BATCH, 1, 1))
    pi = normalised(0.3 * log_gamma(rng, BATCH, 1, d) + apart * rng.normal(size=(BATCH, d, n)))
    cost = rng.normal(size=(BATCH, d)) * _powers(rng, 0, 9, BATCH, 1)
    given = {"pi": pi, "action_cost": cost, "eps": _powers(rng, -3, 1, BATCH)}
    weights = np.stack([_candidate(rng, given, k) for k in range(BATCH)])
    off = np.where(
        rng.random((BATCH, 1)) < 0.2, 0.0, rng.choice([-1.0, 1.0], (BATCH, 1)) * _powers(rng, -16, -6, BATCH, 1)
    )
    return given, weights * (1.0 + LARGEST_OFF * off / 1e-6)


def _candidate(rng: np.random.Generator, given: dict[str, Any], k: int) -> np.ndarray:
    n = given["pi"].shape[-1]
    best = np.zeros(n)
    best[np.argmin((given["action_cost"][k, :, None] * given["pi"][k]).sum(0))] = 1.0
    kind = rng.integers(6)
    if kind == 0:
        return np.eye(n)[rng.integers(n)]
    if kind == 1:
        return best
    if kind == 2:  # nearly a vertex
        vertex = np.maximum(np.eye(n)[rng.integers(n)], _powers(rng, -14, -6, n))
        return vertex / vertex.sum()
    if kind == 3:
        return rng.dirichlet(np.ones(n))
    if kind == 4:  # denormal and tiny
        vertex = np.maximum(best, _powers(rng, -323, -290, n))
        return vertex / vertex.sum()
    sparse = rng.dirichlet(np.ones(n)) * (rng.random(n) < 0.5)
    return sparse / sparse.sum() if sparse.sum() > 0 else best


# -------------------------------------------------------------- other complexities, regularisers


def products(rng: np.random.Generator, index: int) -> dict[str, Any]:
    """Products of experts that take every action, some of them rarely."""
    n, d = _shape(index, FEW_SHAPES)
    pi = normalised(np.maximum(log_gamma(rng, BATCH, n, d), -_powers(rng, 0, 2.8, BATCH, 1, 1)))
    return _other(rng, pi, combine="product")


def partial_products(rng: np.random.Generator, index: int) -> dict[str, Any]:
    """Products of experts of which some never take an action: any weight on those makes the objective infinite."""
    n, d = _shape(index, FEW_SHAPES)
    pi = normalised(np.maximum(log_gamma(rng, BATCH, n, d), -50.0))
    left_out = rng.random((BATCH, d, n)) < 1.5 / d
    left_out[:, :, 0] &= rng.random((BATCH, 1)) < 0.2  # mostly, one of them takes every action
    left_out[:, 0, :] = False
    pi = np.where(left_out, 0.0, pi)
    return _other(rng, pi / pi.sum(-2, keepdims=True), combine="product")


def regularised(rng: np.random.Generator, index: int) -> dict[str, Any]:
    """Tsallis' entropies with alpha from 1 to 2, half of them with caps, on any primitives."""
    n, d = _shape(index, FEW_SHAPES)
    pi = PRIMITIVES[str(rng.choice(list(PRIMITIVES)))](rng, BATCH, n, d)
    alpha = rng.choice([1.0, 1.1, 1.25, 1.5, 1.75, 2.0], BATCH)
    return _other(rng, pi, regulariser=Tsallis(alpha, _caps(rng, n)))


def capped_entropy(rng: np.random.Generator, index: int) -> dict[str, Any]:
    """The entropy with caps, on mixtures and products."""
    n, d = _shape(index, FEW_SHAPES)
    pi = PRIMITIVES[str(rng.choice(["dirichlet", "bumps", "nearly identical"]))](rng, BATCH, n, d) + 1e-12
    pi /= pi.sum(-2, keepdims=True)
    combine = "product" if index // len(FEW_SHAPES) % 2 else "mixture"
    return _other(rng, pi, regulariser=Entropy(_caps(rng, n)), combine=combine)


def _caps(rng: np.random.Generator, n: int) -> np.ndarray:
    """None, for all weights, or for some of them."""
    caps = rng.uniform(1.0 / n + 1e-3, 1.0, (BATCH, n))
    return np.where(rng.random((BATCH, n)) < rng.choice([0.0, 0.5, 1.0], (BATCH, 1)), 1.0, caps)


def _other(rng: np.random.Generator, pi: np.ndarray, **more: Any) -> dict[str, Any]:
    batch, d, n = pi.shape
    cost = COSTS[str(rng.choice(["normal", "offset", "heavy tails", "constant", "surprise"]))](rng, batch, d)
    prior = PRIORS[str(rng.choice(list(PRIORS)))](rng, batch, n)
    return {"pi": pi, "action_cost": cost, "eps": _powers(rng, -4, 1, batch), "prior": prior, **more}


# ------------------------------------------------------------------------- offsets and limits


def offsets(rng: np.random.Generator, index: int) -> dict[str, Any]:
    """A constant of 1e3 to 1e12 on every cost, which means nothing but takes digits away."""
    n, d = _shape(index)
    pi = PRIMITIVES[str(rng.choice(list(PRIMITIVES)))](rng, BATCH, n, d)
    constant = rng.choice([-1.0, 1.0], (BATCH, 1)) * _powers(rng, 3, 12, BATCH, 1)
    cost = rng.normal(size=(BATCH, d)) * _powers(rng, -3, 3, BATCH, 1) + constant
    return {"pi": pi, "action_cost": cost, "eps": _powers(rng, -4, 1, BATCH)}


def extremes(rng: np.random.Generator, index: int) -> dict[str, Any]:
    """Entries of pi down to the denormals, priors down to exp(-1e6), eps at and between its limits."""
    n, d = _shape(index)
    pi = normalised(log_gamma(rng, BATCH, n, d))
    fate = rng.random((BATCH, d, n))
    np.put_along_axis(fate, pi.argmax(axis=-2, keepdims=True), 1.0, axis=-2)
    pi = np.where(fate < 0.2, 0.0, np.where(fate < 0.6, _powers(rng, -323.3, -280, BATCH, d, n), pi))
    pi /= pi.sum(axis=-2, keepdims=True)
    log_prior = -rng.exponential(size=(BATCH, n)) * _powers(rng, 0, 4.5, BATCH, 1)
    log_prior -= np.logaddexp.reduce(log_prior, axis=-1, keepdims=True)
    eps = rng.choice([1e-9, 1e9, 0.0], BATCH)
    eps = np.where(eps > 0.0, eps, _powers(rng, -9, 9, BATCH))
    cost = rng.normal(size=(BATCH, d)) * _powers(rng, -3, 4, BATCH, 1)
    return {"pi": pi, "action_cost": cost, "eps": eps, "log_prior": np.maximum(log_prior, -9e5)}


FAMILIES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "near ties": near_ties,
    "lost sums": lost_sums,
    "alternating sums": alternating_sums,
    "unnormalised weights": unnormalised,
    "strong priors": strong_priors,
    "products": products,
    "partial products": partial_products,
    "regularised": regularised,
    "capped entropy": capped_entropy,
    "offsets": offsets,
    "extremes": extremes,
}
