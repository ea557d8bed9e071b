"""Problems that are meant to break a solver: every kind of primitives with every kind of cost, prior and start."""

from typing import NamedTuple

import numpy as np

from policychord import ConvergenceError, problem, solve

from .families import Arrays

ENTRIES_PER_BATCH = 1_000_000
PROBLEMS_PER_BATCH = 32  # few, so that a run draws many shapes and combinations


class Batch(NamedTuple):
    """Problems of one shape, the kinds they were drawn from, and the weights to start from, if any."""

    kinds: tuple[str, ...]
    arrays: Arrays
    start: np.ndarray | None


def draw(seed: int, index: int, most: int = PROBLEMS_PER_BATCH) -> Batch:
    """Batch number `index` of a run; it depends on nothing but the seed and its number."""
    rng = np.random.default_rng([seed, index])
    # small problems are the most frequent, but every run has some of the largest
    n = round(128 ** rng.random() ** 1.3)
    d = round(4096 ** rng.random() ** 1.1)
    batch = int(np.clip(ENTRIES_PER_BATCH // (n * d), 1, min(most, PROBLEMS_PER_BATCH)))
    primitives, cost, prior, start = (
        list(kinds)[rng.integers(len(kinds))] for kinds in (PRIMITIVES, COSTS, PRIORS, STARTS)
    )
    coldest = -3.0
    if primitives in TIED:  # half of them without a cost that would break the tie, and colder than the others
        cost, coldest = ("constant" if rng.random() < 0.5 else cost), -6.0
    arrays = Arrays(
        pi=PRIMITIVES[primitives](rng, batch, n, d),
        action_cost=COSTS[cost](rng, batch, d),
        eps=10.0 ** rng.uniform(coldest, 1.0, batch),
        prior=PRIORS[prior](rng, batch, n),
    )
    return Batch(
        (primitives, f"cost: {cost}", f"prior: {prior}", f"start: {start}"), arrays, STARTS[start](rng, arrays)
    )


# ----------------------------------------------------------------------- primitives (batch, d, n)


def log_gamma(rng, batch: int, n: int, d: int) -> np.ndarray:
    """Logarithms of Dirichlet columns before normalisation, concentration 0.01 to 10.

    Below concentration 1 most entries underflow as numbers; G(c) = G(c + 1) U^(1/c) keeps their logarithms.
    """
    concentration = 10.0 ** rng.uniform(-2.0, 1.0, (batch, 1, 1))
    size = (batch, d, n)
    return np.log(rng.gamma(concentration + 1.0, size=size)) - rng.exponential(size=size) / concentration


def normalised(log_pi: np.ndarray, axis: int = -2) -> np.ndarray:
    """Probabilities from logarithms, of which some may be -inf."""
    pi = np.exp(log_pi - log_pi.max(axis=axis, keepdims=True))
    return pi / pi.sum(axis=axis, keepdims=True)


def dirichlet(rng, batch, n, d):
    """From nearly deterministic to nearly uniform."""
    return normalised(log_gamma(rng, batch, n, d))


def sparse(rng, batch, n, d):
    """Most entries are zero, one in each column never."""
    log_pi = log_gamma(rng, batch, n, d)
    kept = rng.random((batch, d, n)) < 10.0 ** rng.uniform(-2.0, 0.0, (batch, 1, 1))
    np.put_along_axis(kept, rng.integers(d, size=(batch, 1, n)), True, axis=-2)
    return normalised(np.where(kept, log_pi, -np.inf))


def one_hot(rng, batch, n, d):
    """Each primitive always takes the same action; several may take the same one."""
    pi = np.zeros((batch, d, n))
    np.put_along_axis(pi, rng.integers(d, size=(batch, 1, n)), 1.0, axis=-2)
    return pi


def nearly_identical(rng, batch, n, d):
    """One primitive n times, but for a relative 1e-12 to 1e-3."""
    apart = 10.0 ** rng.uniform(-12.0, -3.0, (batch, 1, 1))
    return normalised(log_gamma(rng, batch, 1, d) + apart * rng.normal(size=(batch, d, n)))


def disjoint(rng, batch, n, d):
    """Every action belongs to one primitive; where there are too few, late primitives share one."""
    rank = rng.random((batch, d)).argsort(axis=-1)
    owned = (rank % n)[..., None] == np.arange(n)
    landless = ~owned.any(axis=-2, keepdims=True)
    owned |= landless & (np.arange(d)[:, None] == np.arange(n) % d)
    return normalised(np.where(owned, log_gamma(rng, batch, n, d), -np.inf))


def tiny_entries(rng, batch, n, d):
    """Entries replaced by exactly 0 and by 1e-300, never the largest of a column."""
    log_pi = log_gamma(rng, batch, n, d)
    kind = rng.random((batch, d, n))
    np.put_along_axis(kind, log_pi.argmax(axis=-2, keepdims=True), 1.0, axis=-2)
    pi = normalised(np.where(kind < 0.5, -np.inf, log_pi))
    return np.where(kind < 0.25, 1e-300, pi)


def duplicated(rng, batch, n, d):
    """Columns that occur several times, so that the curvature is singular."""
    pi = dirichlet(rng, batch, max(1, n // 2), d)
    return np.take_along_axis(pi, rng.integers(pi.shape[-1], size=(batch, 1, n)), axis=-1)


def unsupported_rows(rng, batch, n, d):
    """Many actions that no primitive ever takes."""
    taken = rng.random((batch, d, 1)) < rng.uniform(0.0, 0.7, (batch, 1, 1))
    np.put_along_axis(taken, rng.integers(d, size=(batch, 1, 1)), True, axis=-2)
    return normalised(np.where(taken, log_gamma(rng, batch, n, d), -np.inf))


def bumps(rng, batch, n, d):
    """Gaussians on a line, from a thousandth of its length to all of it."""
    sd = 10.0 ** rng.uniform(-3.0, 0.0, (batch, 1, n))
    return normalised(-0.5 * ((np.linspace(0.0, 1.0, d)[:, None] - rng.random((batch, 1, n))) / sd) ** 2)


def mixed(rng, batch, n, d):
    """Sharp, sparse and flat primitives side by side."""
    kind = rng.integers(3, size=(batch, 1, n))
    flat = np.full((batch, d, n), 1.0 / d)
    return np.where(kind == 0, flat, np.where(kind == 1, one_hot(rng, batch, n, d), sparse(rng, batch, n, d)))


def permuted(rng, batch, n, d):
    """One column in n orders: without a cost all vertices have the same energy."""
    return rng.permuted(np.repeat(dirichlet(rng, batch, 1, d), n, axis=-1), axis=-2)


def equal_entropy(rng, batch, n, d):
    """Columns of two shapes and one entropy, each in many orders."""
    flat, steep = log_gamma(rng, batch, 1, d), log_gamma(rng, batch, 1, d)
    target = np.minimum(entropy(normalised(flat)), entropy(normalised(steep)))
    shapes = np.concatenate([sharpened(flat, target), sharpened(steep, target)], axis=-1)
    chosen = np.take_along_axis(shapes, rng.integers(2, size=(batch, 1, n)), axis=-1)
    return rng.permuted(chosen, axis=-2)


def entropy(pi: np.ndarray) -> np.ndarray:
    """-sum p ln p of each column."""
    return -np.sum(pi * np.log(np.maximum(pi, 1e-300)), axis=-2, keepdims=True)


def sharpened(log_pi: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The column proportional to pi^b whose entropy is the target, by bisection on ln b; b >= 1."""
    low, high = np.zeros_like(target), np.full_like(target, 7.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = entropy(normalised(np.exp(middle) * log_pi)) > target
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return normalised(np.exp(low) * log_pi)


PRIMITIVES = {
    "dirichlet": dirichlet,
    "sparse": sparse,
    "one-hot": one_hot,
    "nearly identical": nearly_identical,
    "disjoint": disjoint,
    "0 and 1e-300": tiny_entries,
    "duplicated": duplicated,
    "unsupported rows": unsupported_rows,
    "bumps": bumps,
    "mixed": mixed,
    "permuted": permuted,
    "equal entropy": equal_entropy,
}
TIED = ("permuted", "equal entropy")


# ------------------------------------------------------------------------------ costs (batch, d)

LARGEST = 1e4


def normal_cost(rng, batch, d):
    """From a thousandth of a nat to ten nats."""
    return rng.normal(size=(batch, d)) * 10.0 ** rng.uniform(-3.0, 1.0, (batch, 1))


def offset_cost(rng, batch, d):
    """A large constant that means nothing."""
    return normal_cost(rng, batch, d) + rng.uniform(-LARGEST, LARGEST, (batch, 1))


def heavy_cost(rng, batch, d):
    """Cauchy tails, cut at the largest size promised."""
    return np.clip(rng.standard_cauchy((batch, d)) * 10.0 ** rng.uniform(-1.0, 2.0, (batch, 1)), -LARGEST, LARGEST)


def bimodal_cost(rng, batch, d):
    """Some actions are forbidden by a cost of up to 1e4."""
    forbidden = rng.random((batch, d)) < rng.random((batch, 1))
    return forbidden * 10.0 ** rng.uniform(0.0, 4.0, (batch, 1)) + 0.01 * rng.normal(size=(batch, d))


def huge_cost(rng, batch, d):
    """As large as promised, in both directions."""
    return rng.uniform(-LARGEST, LARGEST, (batch, d))


def constant_cost(rng, batch, d):
    """Nothing to choose by but the primitives' own entropy."""
    return np.full((batch, d), rng.uniform(-LARGEST, LARGEST))


def surprise_cost(rng, batch, d):
    """-ln q of a random model, as a fitted policy would give."""
    log_q = log_gamma(rng, batch, 1, d)[..., 0]
    return np.minimum(log_q.max(axis=-1, keepdims=True) - log_q, LARGEST)


COSTS = {
    "normal": normal_cost,
    "offset": offset_cost,
    "heavy tails": heavy_cost,
    "bimodal": bimodal_cost,
    "huge": huge_cost,
    "constant": constant_cost,
    "surprise": surprise_cost,
}


# ------------------------------------------------------------------ priors and starts (batch, n)


def even_prior(rng, batch, n):
    """The default."""
    return np.full((batch, n), 1.0 / n)


def random_prior(rng, batch, n):
    """Anywhere in the simplex."""
    return normalised(np.log(rng.exponential(size=(batch, n))), axis=-1)


def extreme_prior(rng, batch, n):
    """Down to 1e-12 of the favourite."""
    return normalised(rng.uniform(np.log(1e-12), 0.0, (batch, n)), axis=-1)


def lopsided_prior(rng, batch, n):
    """One favourite, 1e-12 for everybody else."""
    prior = np.full((batch, n), 1e-12)
    np.put_along_axis(prior, rng.integers(n, size=(batch, 1)), 1.0, axis=-1)
    return prior / prior.sum(axis=-1, keepdims=True)


PRIORS = {"even": even_prior, "random": random_prior, "extreme": extreme_prior, "lopsided": lopsided_prior}


def cold_start(rng, arrays: Arrays) -> None:
    """From the prior, as when nothing is passed."""


def vertex_start(rng, arrays: Arrays):
    """All weight on one primitive, often a wrong one."""
    batch, _, n = arrays.pi.shape
    return one_hot(rng, batch, 1, n)[..., 0]


def near_vertex_start(rng, arrays: Arrays):
    """Nearly all weight on one primitive: the others have 1e-300 to 1e-3 of it."""
    start = vertex_start(rng, arrays)
    start += 10.0 ** rng.uniform(rng.uniform(-300.0, -3.0, (len(start), 1)), -3.0, start.shape)
    return start / start.sum(axis=-1, keepdims=True)


def previous_start(rng, arrays: Arrays):
    """The optimum of another cost, as when an agent goes on from its last decision."""
    given = arrays._asdict() | {"action_cost": rng.permutation(arrays.action_cost, axis=-1)}
    try:
        return solve(problem(**given), tol=1e-6).weights
    except ConvergenceError:
        return vertex_start(rng, arrays)


def random_start(rng, arrays: Arrays):
    """Anywhere in the simplex, often close to its boundary."""
    batch, _, n = arrays.pi.shape
    return normalised(log_gamma(rng, batch, 1, n)[..., 0], axis=-1)


STARTS = {
    "cold": cold_start,
    "vertex": vertex_start,
    "near a vertex": near_vertex_start,
    "previous problem": previous_start,
    "random": random_start,
}
