"""Lemmas and theorem on problems with five other convex complexities."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import softmax

from policychord import energy, flow, problem

from .flows import certify_at
from .identities import dissipation_errors
from .optima import IndependentOptimum, minimise_with_entropy
from .problems import random_weights
from .settings import TheorySettings

WEIGHTS = 4  # of every problem with another complexity


class OtherComplexity(NamedTuple):
    """The statements T1, T2 and T4 to T7 on problems with another complexity: the worst number of each."""

    problems: int
    sum_off: float  # |sum - 1| along the flow
    smallest: float  # weight along it
    end: float  # |w - optimum| at its end, the optimum by an independent method
    judge: float  # residual of that optimum
    dissipation: float  # relative
    energy: float  # gap - bound
    distance: float  # distance - bound
    above: float  # (V - V*) - eps KL(w, S)
    below: float  # eps KL(w, w*) - (V - V*)


class _Complexity(NamedTuple):
    """A convex F with its gradient by hand, and problems that are drawn for it."""

    value: Callable[..., Any]  # (weights, parameters, array module)
    slope: Callable[[np.ndarray, Any], np.ndarray]
    draw: Callable[[np.random.Generator, int], Any]  # parameters of so many problems


def _quadratic(w: Any, parameters: Any, xp: Any = jnp) -> Any:
    """|A w|^2/2 + b.w."""
    a, b = parameters
    return xp.sum((a @ w) ** 2) / 2 + b @ w


def _proportions(w: Any, likelihood: Any, xp: Any = jnp) -> Any:
    """The mean surprise of observations under a mixture."""
    return -xp.mean(xp.log(likelihood @ w))


def _congestion(w: Any, parameters: Any, xp: Any = jnp) -> Any:
    """Beckmann's integral of travel times free + slope load^4 over the links of all routes."""
    routes, free, slope = parameters
    load = routes @ w
    return free @ load + slope @ load**5 / 5


def _transport(w: Any, parameters: Any, xp: Any = jnp) -> Any:
    """Entropic transport from sources w, which are free, to a fixed demand."""
    cost, demand = parameters
    return -demand @ xp.log(xp.exp(-cost) @ w)


def _log_sum_exp(w: Any, parameters: Any, xp: Any = jnp) -> Any:
    """ln sum exp(A w + b)."""
    a, b = parameters
    x = a @ w + b
    return xp.max(x) + xp.log(xp.sum(xp.exp(x - xp.max(x))))


def _transport_slope(w: np.ndarray, parameters: Any) -> np.ndarray:
    kernel, demand = np.exp(-parameters[0]), parameters[1]
    return -kernel.T @ (demand / (kernel @ w))


COMPLEXITIES = {
    "quadratic": _Complexity(
        _quadratic, lambda w, p: p[0].T @ (p[0] @ w) + p[1],
        lambda rng, count: (2.0 * rng.normal(size=(count, 4, WEIGHTS)), rng.normal(size=(count, WEIGHTS))),
    ),
    "mixture proportions": _Complexity(
        _proportions, lambda w, p: -(p.T @ (1.0 / (p @ w))) / len(p),
        lambda rng, count: rng.gamma(0.7, size=(count, 30, WEIGHTS)) + 1e-3,
    ),
    "congestion game": _Complexity(
        _congestion, lambda w, p: p[0].T @ (p[1] + p[2] * (p[0] @ w) ** 4),
        lambda rng, count: (
            (rng.random((count, 7, WEIGHTS)) < 0.5).astype(float), rng.random((count, 7)), 9 * rng.random((count, 7)),
        ),
    ),
    "semi-relaxed transport": _Complexity(
        _transport, _transport_slope,
        lambda rng, count: (3.0 * rng.random((count, 8, WEIGHTS)), rng.dirichlet(np.ones(8), count)),
    ),
    "log-sum-exp": _Complexity(
        _log_sum_exp, lambda w, p: p[0].T @ softmax(p[0] @ w + p[1]),
        lambda rng, count: (3.0 * rng.normal(size=(count, 9, WEIGHTS)), rng.normal(size=(count, 9))),
    ),
}  # fmt: skip


def _one_of(w: Any, choice: Any) -> Any:
    """The complexity that `kind`, a one among zeros, points at: one program serves all of them."""
    kind, parameters = choice
    return kind @ jnp.stack([other.value(w, parameters[name]) for name, other in COMPLEXITIES.items()])


def other_problems(seed: int, count: int) -> Any:
    """So many random problems of each other complexity in one batch: hot and cold, each with a prior."""
    rng = np.random.default_rng(seed)
    total = count * len(COMPLEXITIES)
    parameters = {name: other.draw(rng, total) for name, other in COMPLEXITIES.items()}
    return problem(
        complexity=_one_of, n=WEIGHTS, parameters=(np.repeat(np.eye(len(COMPLEXITIES)), count, axis=0), parameters),
        eps=10 ** rng.uniform(-1.5, 0.5, total), prior=rng.dirichlet(np.full(WEIGHTS, 2.0), total),
    )  # fmt: skip


def minimise_other(batch: Any, index: int) -> IndependentOptimum:
    """The weights of least energy of one problem with another complexity, from its gradient by hand."""
    kind, parameters = jax.tree.map(lambda leaf: leaf[index], batch.parameters)
    name = list(COMPLEXITIES)[int(np.argmax(kind))]
    other, own = COMPLEXITIES[name], parameters[name]
    return minimise_with_entropy(
        lambda w: float(other.value(w, own, np)), lambda w: other.slope(w, own), float(batch.eps[index]),
        batch.log_prior[index],
    )  # fmt: skip


def check_others(settings: TheorySettings) -> dict[str, OtherComplexity]:
    """Lemmas and theorem on problems with other complexities, by complexity."""
    count = settings.others
    batch = other_problems(settings.seed, count)
    judged = [minimise_other(batch, i) for i in range(batch.eps.size)]
    best = np.stack([judgement.weights for judgement in judged])
    start = random_weights(settings.seed, batch)
    path = flow(batch, t1=3 * settings.horizon, start=start, save=3 * 200 + 1)
    least = np.asarray(energy(batch, best))
    times, early = np.asarray(path.times), np.asarray(path.times) <= settings.horizon * (1 + 1e-12)
    gap = np.asarray(path.energy) - least[:, None]
    distance = np.linalg.norm(path.weights - best[:, None], axis=-1)
    faded = np.sqrt(2.0 / batch.eps * gap[:, 0])[:, None] * np.exp(-times / 2)
    bounds = (certify_at(batch, best, w) for w in (start, 0.999 * best + 0.001 * start))
    off, certified, below = (np.stack(column) for column in zip(*bounds, strict=True))
    each = {
        "sum_off": np.abs(path.weights.sum(-1) - 1.0)[:, early].max(-1),
        "smallest": path.weights[:, early].min((-2, -1)),
        "end": np.abs(path.weights[:, -1] - best).max(-1),
        "judge": np.array([judgement.residual for judgement in judged]),
        "dissipation": dissipation_errors(batch, start),
        "energy": (gap - np.exp(-times) * gap[:, :1])[:, early][:, 1:].max(-1),
        "distance": (distance - faded)[:, early].max(-1),
        "above": (off - certified).max(0),
        "below": (below - off).max(0),
    }
    return {
        name: OtherComplexity(count, **{
            key: float((np.min if key == "smallest" else np.max)(values[k * count : (k + 1) * count]))
            for key, values in each.items()
        })
        for k, name in enumerate(COMPLEXITIES)
    }  # fmt: skip
