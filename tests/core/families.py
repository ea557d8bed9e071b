"""Problem families: every way in which primitives, costs, temperatures and priors can be awkward.

A family is a function of a generator and a shape that returns the arguments of `problem`. All members of one
batch have one shape, so that the JAX route compiles once for all families.
"""

import numpy as np

from policychord import Problem, problem


def primitives(rng, batch, d, n, concentration=1.0):
    """Columns drawn from a Dirichlet distribution: below one it favours few actions."""
    pi = rng.gamma(concentration, size=(*batch, d, n)) + 1e-12
    return pi / pi.sum(-2, keepdims=True)


def temperatures(rng, batch, low=-3.0, high=1.0):
    return 10.0 ** rng.uniform(low, high, size=batch)


def generic(rng, batch, d, n):
    return {
        "pi": primitives(rng, batch, d, n),
        "action_cost": rng.normal(size=(*batch, d)),
        "eps": temperatures(rng, batch),
    }


def sparse(rng, batch, d, n):
    pi = primitives(rng, batch, d, n) * (rng.random((*batch, d, n)) < 0.3)
    pi[..., 0, :] += 1e-3  # no column is empty
    return generic(rng, batch, d, n) | {"pi": pi / pi.sum(-2, keepdims=True)}


def unsupported(rng, batch, d, n):
    """Half of the actions are taken by nobody, and cost a fortune."""
    given = generic(rng, batch, d, n)
    given["pi"][..., d // 2 :, :] = 0.0
    given["pi"] /= given["pi"].sum(-2, keepdims=True)
    given["action_cost"][..., d // 2 :] = 1e9
    return given


def one_hot(rng, batch, d, n):
    """Each primitive always takes one action; several may take the same."""
    return generic(rng, batch, d, n) | {"pi": np.moveaxis(np.eye(d)[rng.integers(d, size=(*batch, n))], -1, -2)}


def nearly_identical(rng, batch, d, n):
    pi = primitives(rng, batch, d, 1) + 1e-9 * rng.random((*batch, d, n))
    return generic(rng, batch, d, n) | {"pi": pi / pi.sum(-2, keepdims=True)}


def identical(rng, batch, d, n):
    return generic(rng, batch, d, n) | {"pi": np.repeat(primitives(rng, batch, d, 1), n, axis=-1)}


def disjoint(rng, batch, d, n):
    """Action i belongs to primitive i mod n alone. Needs d >= n."""
    pi = primitives(rng, batch, d, n) * (np.arange(d)[:, None] % n == np.arange(n))
    return generic(rng, batch, d, n) | {"pi": pi / pi.sum(-2, keepdims=True)}


def cold(rng, batch, d, n):
    return generic(rng, batch, d, n) | {"eps": np.full(batch, 1e-3)}


def hot(rng, batch, d, n):
    return generic(rng, batch, d, n) | {"eps": np.full(batch, 10.0)}


def dear(rng, batch, d, n):
    """Costs up to 1e4 either way, over primitives that hardly touch each other."""
    pi, cost = primitives(rng, batch, d, n, concentration=0.1), rng.uniform(-1e4, 1e4, size=(*batch, d))
    return generic(rng, batch, d, n) | {"pi": pi, "action_cost": cost}


def balanced(rng, batch, d, n):
    """Costs up to 1e4 that cancel within every primitive, so that the weights stay inside the simplex."""
    pi, cost = primitives(rng, batch, d, n), rng.uniform(-1e4, 1e4, size=(*batch, d, 1))
    cost = cost - pi @ np.linalg.solve(np.swapaxes(pi, -1, -2) @ pi, np.swapaxes(pi, -1, -2) @ cost)
    return {"pi": pi, "action_cost": cost[..., 0], "eps": temperatures(rng, batch, low=-1.0)}


def faint(rng, batch, d, n):
    """Entries of 0 and 1e-300 beside ordinary ones."""
    pi, fate = primitives(rng, batch, d, n), rng.integers(3, size=(*batch, d, n))
    pi = np.where(fate == 0, 0.0, np.where(fate == 1, 1e-300, pi))
    pi[..., -1, :] += 1e-6
    return generic(rng, batch, d, n) | {"pi": pi / pi.sum(-2, keepdims=True)}


def biased(rng, batch, d, n):
    """Priors over many orders of magnitude."""
    prior = 10.0 ** rng.uniform(-12, 0, size=(*batch, n))
    return generic(rng, batch, d, n) | {"prior": prior / prior.sum(-1, keepdims=True)}


def permuted(rng, batch, d, n):
    """One column in n orders and no cost: all vertices have the same energy."""
    pi = rng.permuted(np.repeat(primitives(rng, batch, d, 1, concentration=0.5), n, axis=-1), axis=-2)
    return {"pi": pi, "action_cost": np.zeros((*batch, d)), "eps": temperatures(rng, batch)}


FAMILIES = {
    family.__name__: family
    for family in (
        generic, sparse, unsupported, one_hot, nearly_identical, identical, disjoint, cold, hot, dear,
        balanced, faint, biased, permuted,
    )
}  # fmt: skip

# The shapes that the JAX route compiles: few primitives (Cholesky) and many (conjugate gradients).
DENSE = ((12,), 50, 5)
WIDE = ((3,), 60, 48)


def member(name: str, batch=(), d: int = 50, n: int = 5, seed: int = 0) -> Problem:
    """A batch of problems of one family, the same every time."""
    return problem(**FAMILIES[name](np.random.default_rng([seed, *map(ord, name)]), batch, d, n))
